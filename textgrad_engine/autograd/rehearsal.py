"""What `gradcheck` does again and again: one forward and one backward on copies of the inputs, with models observed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from textgrad_engine import pytree
from textgrad_engine.autograd.api import grad
from textgrad_engine.autograd.grad_mode import enable_grad
from textgrad_engine.autograd.starts import begins_at
from textgrad_engine.autograd.variable import Variable

ENTRY_MARK = "entrymark"
"""What ends the feedback on an entry of a batch, with the number of the entry among those of all outputs."""


class Observed(Protocol):
    """What stands in for models while a function is checked.

    Attributes:
        requests: the text of every request so far.
        repeats: None for models that answer as they like. Otherwise True is set when the backward pass begins: from
            then on every text in an answer begins with `gradcheck_marks.CRITIC_MARK` and repeats the marks of its
            request, those of feedback and of entries in their order, each once, and `gradcheck_marks.WHOLE_MARK` with
            the number of every hostile text that the request holds as it is.
    """

    requests: list[str]
    repeats: bool | None


Observe: TypeAlias = Callable[[int], AbstractContextManager[Observed]]
"""Makes a block in which models are observed; the number shuffles the order in which requests are answered."""

OBSERVE: list[Observe] = []
"""How models are observed by default. `ops.echo` registers it, since this package knows no models."""


class ForwardFailed(Exception):
    """The function itself failed, not its backward rule."""


@dataclass(frozen=True)
class Run:
    """One forward and backward.

    Attributes:
        gradients: for each input that is checked the texts of its feedback; None when no output depends on it.
        requests: what was asked in the backward pass, sorted.
        repeats: whether the models that answered repeat marks.
        is_loss: whether the pass began by itself, at every output.
        entries: how many entries the outputs have that are batches and were spoken to, in each use.
    """

    gradients: list[list[str] | None]
    requests: list[str]
    repeats: bool
    is_loss: bool
    entries: int = 0

    def text(self, number: int) -> str:
        """All feedback on one input."""
        return "\n".join(self.gradients[number] or [])


class Rehearsal:
    """A function and its inputs, to be run on copies of these.

    Attributes:
        leaves: the inputs that want feedback.
    """

    def __init__(self, fn: Callable[..., Any], inputs: tuple[Any, ...], observe: Observe) -> None:
        self._fn, self._inputs, self._observe = fn, inputs, observe
        self.leaves: list[Variable] = []
        for leaf in pytree.leaves(inputs):
            if isinstance(leaf, Variable) and leaf.requires_grad and not any(leaf is known for known in self.leaves):
                self.leaves.append(leaf)

    def outputs(self) -> int:
        """How many outputs want feedback, with the inputs as they are; an error is the function's own."""
        with self._observe(0):
            return len(self._results(self._copies([leaf.data for leaf in self.leaves], None)))

    def run(
        self,
        values: Sequence[Any],
        said: Sequence[Sequence[str]],
        *,
        seed: int = 0,
        wanted: int | None = None,
        output: int | None = None,
        each_output: Sequence[Sequence[str]] | None = None,
        roles: Sequence[str] | None = None,
        numbers_begin: bool = False,
    ) -> Run:
        """Run the function forward as often as `said` is long, and once backward from all results.

        Args:
            values: the data of the inputs that are checked.
            said: for each use of the function the items of feedback on each of its outputs.
            seed: shuffles the order in which models answer.
            wanted: only this input wants feedback.
            output: only this output gets feedback.
            each_output: the items of feedback on each output, where they are not the same for all, as in `said`.
            roles: the roles of the inputs, if not their own.
            numbers_begin: the pass begins by itself, at the outputs that are numbers; nothing is said about others.

        Raises:
            ForwardFailed: from what the function raised.
        """
        leaves = self._copies(values, wanted, roles)
        with self._observe(seed) as seen:
            uses = [self._forward(leaves) for _ in said]
            roots: list[Variable] = []
            gradients: list[list[Variable] | None] = []
            entries = 0
            for outs, texts in zip(uses, said):
                entries = 0
                for place, out in enumerate(outs):
                    if output not in (None, place) or (numbers_begin and not isinstance(out.data, int | float)):
                        continue
                    roots.append(out)
                    own = numbers_begin or begins_at(out)
                    items = each_output[place] if each_output and place < len(each_output) else texts
                    if own:
                        gradients.append(None)
                        continue
                    shaped = [_in_shape(out.data, text, itertools.count(entries)) for text in items]
                    gradients.append([Variable(text, role="feedback") for text in shaped])
                    entries += len(pytree.leaves(out.data)) if isinstance(out.data, list) else 0
            before = len(seen.requests)
            if seen.repeats is not None:
                seen.repeats = True
            targets = [leaf for leaf in leaves if leaf.requires_grad]
            found = iter(grad(roots, targets, gradients, allow_unused=True) if roots else [None] * len(targets))
            texts_of = [_texts(next(found)) if leaf.requires_grad else [] for leaf in leaves]
            asked = sorted(seen.requests[before:])
            repeats = seen.repeats is not None
        is_loss = bool(roots) and all(gradient is None for gradient in gradients)
        return Run(texts_of, asked, repeats, is_loss, entries)

    def _copies(self, values: Sequence[Any], wanted: int | None, roles: Sequence[str] | None = None) -> list[Variable]:
        return [
            Variable(value, role=leaf.role if roles is None else roles[number], requires_grad=wanted in (None, number))
            for number, (leaf, value) in enumerate(zip(self.leaves, values))
        ]

    def _forward(self, leaves: list[Variable]) -> list[Variable]:
        try:
            return self._results(leaves)
        except Exception as error:
            raise ForwardFailed from error

    def _results(self, leaves: list[Variable]) -> list[Variable]:
        """The outputs that want feedback, computed."""
        copies = {id(leaf): copy for leaf, copy in zip(self.leaves, leaves)}
        given = pytree.map_leaves(lambda leaf: copies.get(id(leaf), leaf), self._inputs)
        with enable_grad():
            result = self._fn(*given)
        outs = [leaf for leaf in pytree.leaves(result) if isinstance(leaf, Variable) and leaf.requires_grad]
        for out in outs:
            _ = out.data  # waits
        return outs


def _in_shape(data: Any, text: str, numbers: Iterator[int]) -> Any:
    """A text of feedback on some data; of a batch one for each entry, which ends with a mark of its own."""
    if not isinstance(data, list):
        return text
    marked = (f"{text} {ENTRY_MARK}{next(numbers)}" if text and not isinstance(entry, list) else text for entry in data)
    return [_in_shape(entry, words, numbers) for entry, words in zip(data, marked)]


def _texts(items: list[Variable] | None) -> list[str] | None:
    if items is None:
        return None
    return ["\n".join(map(str, item.data)) if isinstance(item.data, list) else str(item.data) for item in items]
