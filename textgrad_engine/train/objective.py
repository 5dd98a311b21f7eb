"""`Objective`: a program, its loss and its examples as a function of the program's texts, for searches."""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import json
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from contextvars import ContextVar
from typing import Any, TypeAlias

from textgrad_engine.autograd import Node, Variable, backward, example, no_grad
from textgrad_engine.autograd.forgiving import forgiving
from textgrad_engine.autograd.hooks import call_hooks_of
from textgrad_engine.autograd.value import label_of
from textgrad_engine.data import examples_of, ids_of
from textgrad_engine.dispatch import result_of
from textgrad_engine.errors import UNANSWERED, AutogradError, DataError
from textgrad_engine.func import functional_call
from textgrad_engine.llm.cache import repeat as sampling
from textgrad_engine.nn import Module
from textgrad_engine.optim.demos import Demo, demo_of
from textgrad_engine.optim.search.objective import FeedbackOn, Split, Texts
from textgrad_engine.train.calling import inputs_and_target, refusing_batches, run_on, run_scored, with_fields
from textgrad_engine.train.evaluator import (
    Evaluation,
    Scored,
    clusters_of,
    evaluation_of,
    refuse_if_mostly_lost,
    scale_of,
    scored,
)
from textgrad_engine.train.events import current_phase
from textgrad_engine.train.grid import is_uniform, run_grid, same_shape, same_slots
from textgrad_engine.train.guards import Guarded, Guards
from textgrad_engine.train.latency import Stopwatch
from textgrad_engine.train.nearness import Nearness
from textgrad_engine.train.splits import clusters_of_equals

__all__ = ["Objective", "Phases"]

Rows = Sequence[dict[str, Any]]

_Key = tuple[Texts, Split, int, int]

_Begun = tuple[Any, Variable, Stopwatch | None]
"""The prediction and the loss of an example, and what times it."""

Phases: TypeAlias = Callable[[int], contextlib.AbstractContextManager[None]]
"""Makes the context in which a proposal's calls are made, from its number."""

_proposal: ContextVar[tuple[int, int]] = ContextVar("textgrad_engine_proposal", default=(0, sys.maxsize))
"""The number of the proposal that code works on, and how many texts had been adopted when it was begun; captured when a
lane begins it."""


class Objective:
    """What a searching optimizer's `step` takes as its closure.

    Args:
        program: the module whose texts are searched for; it is not changed.
        loss: called with the prediction and the example's target; its data must be a number (higher is better).
        train: the examples that feedback is taken on.
        val: the examples that decide which texts are kept; None for the training examples.
        target: the field that holds an example's target.
        concurrency: at most so many examples at once, over everything that goes on at a time; None leaves it to the
            models' own limits.
        parameters: what is trained, in this order; None for all parameters of the program that require grad.
        phases: makes the context in which a proposal's calls are made, from its number, for the journal.
        guards: what no new texts may break.
        clusters: the field that says which validation examples belong together, for `evaluation`; races do not look at
            it.
        tokens_weight: what 1000 tokens of the texts cost, in units of the score; texts are compared by their mean
            scores less that.
        latency_weight: what a second of an example's forward calls costs, in units of the score; the same way. 0 notes
            the time without charging for it, None does not note it (`train.latency` says what it is, and why a search
            that charges for it can be repeated only where the models' latencies can).

    Raises:
        DataError: a set is empty, or an example lacks a field, or one that the guards name is not there.
        ValueError: there is nothing to train, or a parameter is not the program's.

    Example:
        >>> from textgrad_engine import nn
        >>> from textgrad_engine.testing import FunctionModel
        >>> model = FunctionModel(lambda request: "yes" if "agree" in request.messages[0].text else "no")
        >>> system = nn.Parameter("Answer.", role="system prompt")
        >>> program = nn.ChatCompletion("{question}", system=system, model=model)
        >>> objective = Objective(program, nn.ExactMatch(), [{"question": "Is it?", "target": "yes"}])
        >>> objective.scores(("Answer.",), [0]), objective.scores(("Always agree.",), [0])
        ([0.0], [1.0])
    """

    def __init__(
        self,
        program: Module,
        loss: Callable[..., Variable],
        train: Rows,
        val: Rows | None = None,
        *,
        target: str = "target",
        concurrency: int | None = None,
        parameters: Sequence[Variable] | None = None,
        phases: Phases | None = None,
        guards: Guards | None = None,
        clusters: str | None = None,
        tokens_weight: float = 0.0,
        latency_weight: float | None = None,
    ) -> None:
        self.tokens_weight, self.latency_weight = tokens_weight, latency_weight or 0.0
        self.timed = latency_weight is not None
        self.scale = scale_of(loss)
        self._phases = phases
        self._program, self._score, self._concurrency = program, with_fields(loss), concurrency
        named = named_in(program, parameters)
        self.names = tuple(named)
        self.parameters: tuple[Variable, ...] = tuple(named.values())
        read = inputs_and_target(program, loss, target)
        self._refuse = refusing_batches(loss)
        self._loss = loss
        self._rows: dict[Split, list[tuple[str, dict[str, Any], Any]]] = {}
        digest = hashlib.sha256(target.encode("utf-8", "backslashreplace"))
        for split, rows in (("train", train), ("val", train if val is None else val)):
            if len(rows) == 0:
                raise DataError(f"the {split} set is empty")
            held = list(examples_of(rows))
            self._rows[split] = [  # type: ignore[index]
                (name, *read(row, name)) for row, name in zip(held, ids_of(rows))
            ]
            for row in held:
                digest.update(_written(row).encode("utf-8", "backslashreplace"))
        self.digest = digest.hexdigest()
        proven = train if val is None else val
        self._guarded = None if guards is None else guards.on(proven, self.scale)
        self._clusters = clusters_of_equals(program, proven) if clusters is None else clusters_of(proven, clusters)
        self.train = tuple(name for name, _, _ in self._rows["train"])
        self.val = tuple(name for name, _, _ in self._rows["val"])
        self._room = None if concurrency is None else threading.BoundedSemaphore(concurrency)
        self._lock = threading.Lock()
        self._shared: dict[_Key, Future[Scored]] = {}
        self._own: dict[tuple[int, _Key], Future[Scored]] = {}
        self._adopted: dict[Texts, tuple[int, int]] = {}  # the phase, and how many were before it
        self._leads_back = False  # whether any loss so far has led back to a text

    def scores(
        self, texts: Texts, positions: Sequence[int], split: Split = "val", *, repeat: int = 0
    ) -> list[float | None]:
        """The scores of some examples with these texts; see `optim.search.objective`.

        Raises:
            TypeError: the loss is no number.
            ModelError: the models cannot be asked at all, or the budget is spent.
        """
        return self.matrix([texts], positions, split, repeat=repeat)[0]

    def matrix(
        self, candidates: Sequence[Texts], positions: Sequence[int], split: Split = "val", *, repeat: int = 0
    ) -> list[list[float | None]]:
        """The scores of every candidate on every example, those that are not known yet bought all at once.

        They are those that each candidate gets alone. Several go through nested `vmap` where the program and its loss
        are made of the library's modules alone, fields and targets are texts, and nothing is noted or limited by
        example (`timed`, `concurrency`). Otherwise each is run on each example by itself, as `evaluate` does it, so
        that a forward that branches on a field, and a loss that compares a target, see the same values as there.
        """
        wanted: list[list[_Key]] = [[(texts, split, n, repeat) for n in positions] for texts in candidates]
        return [[found.score for found in row] for row in self._results(wanted)]

    def latencies(self, texts: Texts, positions: Sequence[int], split: Split = "val") -> list[float | None]:
        """The seconds that the forward calls of some examples took with these texts; see `optim.search.objective`."""
        found: list[float | None] = []
        for position in positions:
            key: _Key = (texts, split, position, 0)
            with self._lock:
                future = self._known(key)
            known = future is not None and future.done() and future.exception() is None
            found.append(future.result().latency if known and future is not None else None)
        return found

    def missing(self, texts: Texts) -> int:
        """How many validation examples were not run with these texts yet."""
        with self._lock:
            return sum(not self._is_known((texts, "val", position, 0)) for position in range(len(self.val)))

    def evaluation(self, texts: Texts, on_score: Callable[[int], None] | None = None) -> Evaluation:
        """The validation set with these texts, as `evaluate` would give it; what is known is not paid for again.

        Args:
            texts: the candidate.
            on_score: called when another example's score is there; on any thread. It must not raise.

        Raises:
            ModelError: more than half of the examples went unanswered, or the models cannot be asked at all.
        """
        keys: list[_Key] = [(texts, "val", position, 0) for position in range(len(self.val))]
        found = self._results([keys], on_score)[0]
        return evaluation_of(self.val, found, clusters=self._clusters, scale=self.scale)

    def known(self, texts: Texts) -> Evaluation | None:
        """What is known of the validation set with these texts, without asking; None when that is nothing."""
        with self._lock:
            futures = [self._known((texts, "val", position, 0)) for position in range(len(self.val))]
        scores = [f.result().score if f is not None and f.done() and f.exception() is None else None for f in futures]
        if all(score is None for score in scores):
            return None
        lost = {name: "it was not run with these texts" for name, score in zip(self.val, scores) if score is None}
        latency = tuple(self.latencies(texts, range(len(self.val)))) if self.timed else ()
        said = tuple(None for _ in scores)
        return Evaluation(
            self.val, tuple(scores), said, lost, clusters=self._clusters, scale=self.scale, latency=latency
        )

    def validated(self, seed: Texts) -> list[tuple[Texts, Evaluation]]:
        """The texts that answered each validation example that the seed texts did, sorted, with what they came to.

        So all of them are told by the same examples, and one that never answers hides nobody. There are none before the
        seed texts were run on the whole validation set.

        Args:
            seed: the texts that a run began with.
        """
        with self._lock:
            own = [(key, future) for (_, key), future in sorted(self._own.items(), key=lambda item: item[0][0])]
            held = [*self._shared.items(), *own]
        results: dict[Texts, dict[int, Scored]] = {seed: {}}
        tried: set[int] = set()
        for (texts, split, position, repeat), future in held:
            if split == "val" and not repeat and future.done() and future.exception() is None:
                result = future.result()
                if texts == seed:
                    tried.add(position)
                if result.score is not None:
                    results.setdefault(texts, {}).setdefault(position, result)
        shared = sorted(results[seed])
        if not shared or len(tried) < len(self.val):
            return []
        names = tuple(self.val[position] for position in shared)
        return [
            (texts, evaluation_of(names, [found[position] for position in shared], scale=self.scale))
            for texts, found in sorted(results.items())
            if found.keys() >= results[seed].keys()
        ]

    def texts_of(self, named: Mapping[str, str]) -> Texts:
        """The candidate that texts by dotted name make."""
        return tuple(named[name] for name in self.names)

    def feedback(self, texts: Texts, positions: Sequence[int]) -> FeedbackOn:
        """Run training examples with these texts and go backward; each goes as soon as its own loss is there."""
        leaves = self._leaves(texts)
        call_hooks_of([*zip(self.parameters, leaves.values())])
        # Feedback on other texts of the program is wanted by nobody, and would be paid for and left in them.
        others = {
            name: _stand_in(parameter, parameter.data, requires_grad=False)
            for name, parameter in self._program.named_parameters()
            if name not in leaves and parameter.requires_grad
        }
        rows = [self._rows["train"][position] for position in positions]
        problems: list[str] = []

        def start(number: int) -> tuple[tuple[Any, Stopwatch | None], Variable]:
            name, fields, wanted = rows[number]
            with example(name), self._watching() as watch:
                program = functools.partial(functional_call, self._program, others | leaves)
                prediction, loss = run_on(name, program, fields, self._score, wanted)
                return (prediction, watch), loss

        results = run_scored(start, len(rows), self._concurrency, room=self._room)
        if roots := [loss for _, loss in results if loss.requires_grad]:
            with forgiving(functools.partial(note_lost, problems)):
                backward(roots)
        every = [
            self._scored("train", position, prediction, loss, watch)
            for position, ((prediction, watch), loss) in zip(positions, results)
        ]
        self._leads_back = self._leads_back or bool(roots)
        if not self._leads_back:
            refuse_if_cut_off([found.score for found in every])
        for position, found in zip(positions, every):
            self._remember((texts, "train", position, 0), found)
        gradients = tuple(tuple(leaf.grad) for leaf in leaves.values())
        return FeedbackOn(tuple(found.score for found in every), gradients, tuple(problems))

    def demos(self, positions: Sequence[int], texts: Texts | None = None) -> list[Demo | None]:
        """Training examples to be shown, with their targets as answers, or with what the program says with these texts.

        Raises:
            ModelError: the models cannot be asked at all, or more than half went unanswered.
        """
        rows = [self._rows["train"][position] for position in positions]
        if texts is None:
            answers = [wanted for _, _, wanted in rows]
        else:
            keys: list[_Key] = [(texts, "train", position, 0) for position in positions]
            answers = [found.prediction for found in self._results([keys])[0]]
        return [
            None if answer is None else demo_of(name, fields, answer, wanted)
            for (name, fields, wanted), answer in zip(rows, answers)
        ]

    def near(self, positions: Sequence[int], among: Sequence[int]) -> list[int]:
        """The validation examples `among`, by the rarer words that they share with the training examples."""
        return self._nearness.by(positions, among)

    @contextlib.contextmanager
    def proposal(self, number: int) -> Iterator[None]:
        """Inside the block, what is asked belongs to the proposal of that number."""
        with self._phases(number) if self._phases is not None else contextlib.nullcontext():
            token = _proposal.set((number, len(self._adopted)))
            try:
                yield
            finally:
                _proposal.reset(token)

    def adopt(self, texts: Texts, number: int | None = None) -> None:
        """Take these texts for the best of now: what is known of them is shared by proposals begun from now on.

        Args:
            texts: the best texts.
            number: of the proposal that they come from. What later ones found, which may be under way, stays theirs, as
                it depends on how far they are; None shares what all found.
        """
        with self._lock:
            if texts in self._adopted:
                return
            self._adopted[texts] = current_phase.get(), len(self._adopted)
            for (found_by, key), future in sorted(self._own.items(), key=lambda item: item[0][0]):
                if key[0] == texts and (number is None or found_by <= number):
                    self._shared.setdefault(key, future)

    def refusal(self, before: Texts, after: Texts, number: int = 0) -> str:
        """Why the guards refuse texts that won their race; see `optim.search.objective`.

        Raises:
            ModelError: the models cannot be asked at all, or the budget is spent.
        """
        if self._guarded is None or before == after:
            return ""
        try:
            return self._guarded.broken(*self._on_guarded(self._guarded, before, after, number))
        except UNANSWERED as error:
            return f"the guarded examples could not be run: {type(error).__name__}: {error}"

    def broken(self, before: Texts, after: Texts, number: int = 0) -> tuple[int, ...]:
        """The positions of the examples for which the guards refuse texts; see `optim.search.objective`.

        Raises:
            ModelError: the models cannot be asked at all, or the budget is spent.
        """
        if self._guarded is None or before == after:
            return ()
        try:
            return self._guarded.culprits(*self._on_guarded(self._guarded, before, after, number))
        except UNANSWERED:
            return ()

    def _on_guarded(
        self, guarded: Guarded, before: Texts, after: Texts, number: int
    ) -> tuple[dict[int, float | None], dict[int, float | None]]:
        token = _proposal.set((number, sys.maxsize))
        try:
            old, new = self.matrix([before, after], guarded.positions)
        finally:
            _proposal.reset(token)
        return dict(zip(guarded.positions, old)), dict(zip(guarded.positions, new))

    def _results(self, wanted: list[list[_Key]], on_score: Callable[[int], None] | None = None) -> list[list[Scored]]:
        with self._lock:
            missing: dict[_Key, Future[Scored]] = {}
            futures = [[self._future(key, missing) for key in row] for row in wanted]
        if missing:
            self._buy(missing, on_score)
        found = [[result_of(future) for future in row] for row in futures]
        refuse_if_mostly_lost([each for row in found for each in row])
        return found

    def _is_known(self, key: _Key) -> bool:
        return self._known(key) is not None

    def _known(self, key: _Key) -> Future[Scored] | None:
        number, _ = _proposal.get()
        shared = self._shared.get(key) if self._phase_shared(key[0]) is not None else None
        return self._own.get((number, key)) if shared is None else shared

    def _phase_shared(self, texts: Texts) -> int | None:
        """The phase that the calls with these texts belong to, where proposals share them; None where they do not.

        A proposal shares the texts that were adopted before it was begun. When it is told of later ones depends on how
        far it is, so it goes on by itself.
        """
        phase, before = self._adopted.get(texts, (0, sys.maxsize))
        return phase if before < _proposal.get()[1] else None

    def _future(self, key: _Key, missing: dict[_Key, Future[Scored]]) -> Future[Scored]:
        # Note on order: the texts of now are scored by whoever comes first, and a proposal by itself alone, so that the
        # calls that a phase makes do not depend on which proposal was quicker.
        if (known := self._known(key)) is not None:
            return known
        found = missing[key] = Future()
        if self._phase_shared(key[0]) is not None:
            self._shared[key] = found
        else:
            self._own[_proposal.get()[0], key] = found
        return found

    def _remember(self, key: _Key, found: Scored) -> None:
        with self._lock:
            missing: dict[_Key, Future[Scored]] = {}
            future = self._future(key, missing)
            if missing:
                future.set_result(found)

    def _buy(self, missing: dict[_Key, Future[Scored]], on_score: Callable[[int], None] | None) -> None:
        keys = list(missing)
        try:
            apart = on_score is not None or self._room is not None or self.timed
            started: dict[_Key, _Begun] = {} if apart else self._started_together(keys)
            alone = [key for key in keys if key not in started]
            started |= zip(alone, self._started(alone, on_score))
            failures: list[Exception] = []
            for key in keys:  # each by itself: what was answered stays known when others could not be asked
                try:
                    missing[key].set_result(self._scored(key[1], key[2], *started[key]))
                except Exception as error:
                    failures.append(error)
            if failures:
                raise failures[0]
        except BaseException as error:
            with self._lock:
                for key, future in missing.items():
                    if not future.done():  # who waits for it learns why; who asks again pays again
                        if self._shared.get(key) is future:
                            del self._shared[key]
                        self._own.pop((_proposal.get()[0], key), None)
                        future.set_exception(error)
            raise

    def _scored(self, split: Split, position: int, prediction: Any, loss: Variable, watch: Stopwatch | None) -> Scored:
        name, _, wanted = self._rows[split][position]
        return scored(prediction, loss, watch, functools.partial(self._refuse, name, prediction, wanted))

    def _started(self, keys: list[_Key], on_score: Callable[[int], None] | None) -> list[_Begun]:
        """The predictions and losses of examples, each run by itself."""
        leaves = {texts: self._leaves(texts) for texts in dict.fromkeys(key[0] for key in keys)}

        def start(number: int) -> tuple[tuple[Any, Stopwatch | None], Variable]:
            texts, split, position, index = keys[number]
            name, fields, wanted = self._rows[split][position]
            with example(name), no_grad(), sampling(index), self._phase_of(texts), self._watching() as watch:
                program = functools.partial(functional_call, self._program, leaves[texts])
                prediction, loss = run_on(name, program, fields, self._score, wanted)
                return (prediction, watch), loss

        results = run_scored(start, len(keys), self._concurrency, on_score, self._room)
        return [(prediction, loss, watch) for (prediction, watch), loss in results]

    def _started_together(self, keys: list[_Key]) -> dict[_Key, _Begun]:
        """Those of candidates that miss the same examples, by nested `vmap` where that does the same."""
        if not is_uniform(self._program, self._loss):
            return {}
        missing: dict[tuple[Texts, Split, int], list[int]] = {}
        for texts, split, position, index in keys:
            missing.setdefault((texts, split, index), []).append(position)
        blocks: dict[tuple[Split, int, int, tuple[int, ...]], list[Texts]] = {}
        for (texts, split, index), positions in missing.items():
            shared = self._phase_shared(texts)
            phase = current_phase.get() if shared is None else shared  # a block's calls all belong to one
            blocks.setdefault((split, index, phase, tuple(positions)), []).append(texts)
        started: dict[_Key, _Begun] = {}
        for (split, index, _, some), candidates in blocks.items():
            rows = [self._rows[split][position] for position in some]
            if len(candidates) == 1 or not same_shape(rows) or not same_slots(candidates):
                continue
            leaves = [self._leaves(texts) for texts in candidates]
            with no_grad(), sampling(index), self._phase_of(candidates[0]):
                grid = run_grid(self._program, self._score, leaves, rows)
            for texts, pairs in zip(candidates, grid):
                started |= {(texts, split, position, index): (*pair, None) for position, pair in zip(some, pairs)}
        return started

    @contextlib.contextmanager
    def _watching(self) -> Iterator[Stopwatch | None]:
        watch = Stopwatch() if self.timed else None
        with contextlib.nullcontext() if watch is None else watch.running():
            yield watch

    @contextlib.contextmanager
    def _phase_of(self, texts: Texts) -> Iterator[None]:
        shared = self._phase_shared(texts)
        token = current_phase.set(current_phase.get() if shared is None else shared)
        try:
            yield
        finally:
            current_phase.reset(token)

    def _leaves(self, texts: Texts) -> dict[str, Variable]:
        if len(texts) != len(self.names):
            raise ValueError(f"a candidate has a text for each of {', '.join(self.names)}; got {len(texts)} texts")
        return {
            name: _stand_in(parameter, text, requires_grad=True)
            for name, parameter, text in zip(self.names, self.parameters, texts)
        }

    @functools.cached_property
    def _nearness(self) -> Nearness:
        train, val = ([fields for _, fields, _ in self._rows[split]] for split in ("train", "val"))
        return Nearness(train, val)


def _stand_in(parameter: Variable, text: str, *, requires_grad: bool) -> Variable:
    """A leaf like a parameter, of its class and with its attributes, that holds a text of its own."""
    leaf = copy.copy(parameter)
    leaf.data = text
    return leaf.requires_grad_(requires_grad)


def named_in(program: Module, parameters: Sequence[Variable] | None) -> dict[str, Variable]:
    """The parameters to train with their dotted names, in the order given, else in that of the program.

    Raises:
        ValueError: there is none, or one is not the program's.
    """
    own: dict[str, Variable] = dict(program.named_parameters())
    if parameters is None:
        found = {name: parameter for name, parameter in own.items() if parameter.requires_grad}
    else:
        names = {id(parameter): name for name, parameter in own.items()}
        for parameter in parameters:
            if id(parameter) not in names:
                raise ValueError(
                    f"{label_of(parameter)} is no parameter of the program, which has {', '.join(own) or 'none'}"
                )
        found = {names[id(parameter)]: parameter for parameter in parameters}
    if not found:
        raise ValueError("the program has no parameter that requires grad, so there is nothing to train")
    return found


def refuse_if_cut_off(scores: Sequence[float | None]) -> None:
    """Refuse to go on when no loss leads back to a text: nothing would ever be heard about it.

    Args:
        scores: of a minibatch of which no loss requires grad, nor did any before; None where there is none.

    Raises:
        AutogradError: some example has a score.
    """
    known = [score for score in scores if score is not None]
    if known:
        raise AutogradError(
            f"none of the {len(known)} losses of this minibatch requires grad, so no feedback would reach the texts. "
            "The program must return the Variable that it computes from its parameters, not its .data, a new Variable "
            "or what .detach() gives, and not under no_grad(); the loss must use it."
        )


def note_lost(problems: list[str], node: Node, error: BaseException) -> bool:
    """Pass over a lost answer of the critic, or an example whose own answer was lost (it has no score).

    Args:
        problems: gets the lost answers of the critic, in words.
        node: whose rule failed.
        error: what it raised.

    Returns:
        Whether it is passed over.
    """
    if not isinstance(error, UNANSWERED):
        return False
    if node.call is not None and node.call.failed:
        return True
    problems.append(f"no feedback from {node.name()}: {type(error).__name__}: {error}")
    return True


def _written(row: dict[str, Any]) -> str:
    """An example's content, as it is written in every process and of every copy: no addresses, and sets in order."""
    try:
        text = json.dumps(row, default=_plain)
    except (TypeError, ValueError):  # of names that are no text, and of what holds itself
        text = repr(row)
    return _ADDRESS.sub("", text)


def _plain(value: Any) -> Any:
    return sorted(map(repr, value)) if isinstance(value, AbstractSet) else repr(value)


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
