"""Candidates run on examples: begun many at a time, and read when they are there. Nothing is remembered here."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from textgrad_engine.autograd import Variable, example, no_grad
from textgrad_engine.func import functional_call
from textgrad_engine.llm.cachekey import repeat as sampling
from textgrad_engine.llm.places import trying
from textgrad_engine.nn import Module, Weighted
from textgrad_engine.nn.metric_functions import with_fields
from textgrad_engine.optim.search.objective import Split, Texts
from textgrad_engine.train.asked import Asking, Call
from textgrad_engine.train.calling import Ran, run_on, run_scored
from textgrad_engine.train.evaluator import Scored, scored
from textgrad_engine.train.grid import Row, is_uniform, run_grid, same_shape, same_slots
from textgrad_engine.train.known import Key, KnownScores
from textgrad_engine.train.latency import Stopwatch
from textgrad_engine.train.leaves import frozen_beside, leaves_of
from textgrad_engine.train.scale import held_to
from textgrad_engine.train.targets import counting_entries

Begun: TypeAlias = tuple[Ran, Stopwatch | None, tuple[Call, ...] | None]
"""The program on an example, what times it, and what the program asked, where that is noted."""


_Started: TypeAlias = tuple[tuple[Ran, Stopwatch | None, Asking | None], Variable]


class Trials:
    """How a program, with a candidate's texts in the place of its parameters, is run on examples.

    Args:
        program: the program; it is not changed.
        loss: its loss.
        rows: the examples of each set.
        named: the parameters that candidates have texts for, by dotted name.
        known: says which phase the calls with a candidate's texts belong to.
        concurrency: at most so many examples at once, over all threads; None for no limit.
        timed: whether to note how long the forward calls of an example take.
    """

    def __init__(
        self,
        program: Module,
        loss: Callable[..., Variable],
        rows: Mapping[Split, Sequence[Row]],
        named: Mapping[str, Variable],
        known: KnownScores,
        *,
        concurrency: int | None,
        timed: bool,
    ) -> None:
        self._program, self._loss, self._score = program, loss, with_fields(loss)
        self._entries, self._scale = counting_entries(loss), held_to(loss)
        self._by_field = isinstance(loss, Weighted) and loss.targets is not None
        self._rows, self._named, self._known = rows, named, known
        self._concurrency, self._timed = concurrency, timed
        self._room = None if concurrency is None else threading.BoundedSemaphore(concurrency)
        self._own = [value for _, value in (*program.named_parameters(), *program.named_buffers())]

    def begin(
        self, keys: Sequence[Key], on_score: Callable[[int], None] | None = None, *, noted: bool = False
    ) -> dict[Key, Begun]:
        """Run examples, without recording anything for a backward pass.

        Candidates that miss the same examples go through nested `vmap` where that does the same and nothing is noted
        or limited by example; others are run by themselves.

        Args:
            keys: what is to be run.
            on_score: called with the position of a key when its score is there; on any thread. It must not raise.
            noted: whether to note what the program asks (`train.asked`); demonstrations are made of that.
        """
        apart = on_score is not None or self._room is not None or self._timed
        begun: dict[Key, Begun] = {} if apart else self._begin_together(keys, noted)
        alone = [key for key in keys if key not in begun]
        return begun | dict(zip(alone, self._begin_alone(alone, on_score, noted)))

    def begin_recorded(self, leaves: dict[str, Variable], positions: Sequence[int], *, noted: bool) -> list[Begun]:
        """Run training examples so that feedback can go back to the leaves.

        Args:
            leaves: stand for the parameters that candidates have texts for, by dotted name.
            positions: of the examples.
            noted: as for `begin`.
        """
        values = frozen_beside(self._program, leaves) | leaves
        rows = [self._rows["train"][position] for position in positions]
        with trying([str(leaf.data) for leaf in leaves.values()]):
            return self._begin(lambda number: self._run(rows[number], values, leaves if noted else None), len(rows))

    def read(
        self,
        split: Split,
        position: int,
        ran: Ran,
        watch: Stopwatch | None,
        calls: tuple[Call, ...] | None,
    ) -> Scored:
        """Wait for an example and read what came of it.

        Args:
            split: the set.
            position: of the example in it.
            ran: of what was begun; so are the others.
            watch: what times it.
            calls: what the program asked.

        Raises:
            TypeError: the loss is no number.
            ModelError: the models cannot be asked at all.
        """
        name, _, wanted = self._rows[split][position]
        found = scored(ran, watch, functools.partial(self._entries, name, ran.prediction, wanted), scale=self._scale)
        return found if calls is None or found.score is None else found._replace(calls=calls)

    def _begin_alone(self, keys: Sequence[Key], on_score: Callable[[int], None] | None, noted: bool) -> list[Begun]:
        """The predictions and losses of examples, each run by itself."""
        leaves = {texts: leaves_of(self._named, texts) for texts in dict.fromkeys(key[0] for key in keys)}

        def start(number: int) -> _Started:
            texts, split, position, index = keys[number]
            with no_grad(), sampling(index), self._known.phase_of(texts), trying(texts):
                values = leaves[texts]
                return self._run(self._rows[split][position], values, values if noted else None)

        return self._begin(start, len(keys), on_score)

    def _begin_together(self, keys: Sequence[Key], noted: bool) -> dict[Key, Begun]:
        """Those of candidates that miss the same examples, by nested `vmap` where that does the same."""
        if not is_uniform(self._program, self._loss):
            return {}
        missing: dict[tuple[Texts, Split, int], list[int]] = {}
        for texts, split, position, index in keys:
            missing.setdefault((texts, split, index), []).append(position)
        blocks: dict[tuple[Split, int, int, tuple[int, ...]], list[Texts]] = {}
        for (texts, split, index), positions in missing.items():
            phase = self._known.phase(texts)  # a block's calls all belong to one
            blocks.setdefault((split, index, phase, tuple(positions)), []).append(texts)
        begun: dict[Key, Begun] = {}
        for (split, index, _, some), candidates in blocks.items():
            rows = [self._rows[split][position] for position in some]
            if len(candidates) == 1 or not same_shape(rows, by_field=self._by_field) or not same_slots(candidates):
                continue
            leaves = [leaves_of(self._named, texts) for texts in candidates]
            asking = Asking([tuple(each.values()) for each in leaves], self._own) if noted else None
            with no_grad(), sampling(index), self._known.phase_of(candidates[0]), asking or contextlib.nullcontext():
                grid = run_grid(self._program, self._score, leaves, rows)
            for texts, every in zip(candidates, grid):
                for position, ran in zip(some, every):
                    calls = None if asking is None else asking.calls_behind(ran.prediction)
                    begun[texts, split, position, index] = ran, None, calls
        return begun

    def _begin(
        self, start: Callable[[int], _Started], count: int, on_score: Callable[[int], None] | None = None
    ) -> list[Begun]:
        results = run_scored(self._program, start, count, self._concurrency, on_score, self._room)
        return [(ran, watch, None if asking is None else asking.calls()) for (ran, watch, asking), _ in results]

    def _run(self, row: Row, values: dict[str, Variable], noted: dict[str, Variable] | None) -> _Started:
        """Run one example.

        Args:
            row: the example.
            values: stand in the place of the program's own.
            noted: those of them of which it is noted what is asked with them; None where it is not.
        """
        name, fields, wanted = row
        watch = Stopwatch() if self._timed else None
        asking = None if noted is None else Asking([tuple(noted.values())], [*self._own, *values.values()])

        def program(**given: Any) -> Any:
            with asking or contextlib.nullcontext():  # not the loss, which may ask a judge
                return functional_call(self._program, values, **given)

        with example(name), contextlib.nullcontext() if watch is None else watch.running():
            ran = run_on(name, program, fields, self._score, wanted)
        return (ran, watch, asking), ran.loss
