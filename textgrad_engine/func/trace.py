"""`trace`: what ran, in order, with what it was given, what came out, and what it cost."""

from __future__ import annotations

import contextlib
import threading
import time
import unicodedata
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Self

from textgrad_engine import pytree
from textgrad_engine.attributes import attributes_told
from textgrad_engine.autograd import Function, Layer, Variable
from textgrad_engine.dispatch import Call
from textgrad_engine.func.pmap import next_place
from textgrad_engine.llm.charged import usage_of
from textgrad_engine.llm.usage import CallRecord, observe
from textgrad_engine.ops.pass_on import detached
from textgrad_engine.scoped import setting

_EXCERPT = 500
"""Characters of an input or output that a record keeps."""

_WIDTH = 80


@attributes_told
@dataclass(frozen=True)
class TraceRecord:
    """One operation that passed through the level of a trace.

    Attributes:
        function: the name of the Function.
        role: the role of the result; of several results, their roles with commas between.
        inputs: excerpts of the Variables and texts among its arguments, in order; a batch is shown as a list.
        outputs: excerpts of its results, none when it failed.
        calls: how many answers of models it took.
        tokens: how many tokens these calls had, of requests and answers.
        seconds: from when its inputs were there to when its result was.
        error: what it failed with, "" when it did not.
    """

    function: str
    role: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    calls: int
    tokens: int
    seconds: float
    error: str


class _Entry:
    """One operation while it runs."""

    def __init__(self, log: Trace, function: type[Function], args: tuple[Any, ...]) -> None:
        self.log, self.function = log, function
        self.place = next_place()
        self.inputs = [detached(leaf) for leaf in pytree.leaves(args) if isinstance(leaf, Variable | str)]
        self.outputs: list[Any] = []
        self.error: BaseException | None = None
        self.calls = self.tokens = 0
        self._lock = threading.Lock()
        self.ended = self.began = time.perf_counter()
        for value in self.inputs:
            for call in _pending(value):
                call.on_done(self._input_is_there)

    def _input_is_there(self, _: Call) -> None:
        self.began = max(self.began, time.perf_counter())

    def _output_is_there(self, _: Call) -> None:
        self.ended = max(self.ended, time.perf_counter())

    def finish(self, outs: Any) -> None:
        """The call is dispatched or done: keep what came out."""
        self.ended = time.perf_counter()
        self.outputs = [detached(leaf) for leaf in pytree.leaves(outs)]
        for value in self.outputs:
            for call in _pending(value):
                call.on_done(self._output_is_there)

    def count(self, record: CallRecord) -> None:
        """A model was asked for this operation."""
        usage = record.completion.usage if record.completion is not None else usage_of(record.error or Exception())
        with self._lock:
            self.calls += usage.calls if usage is not None else 1
            self.tokens += usage.total_tokens if usage is not None else 0

    def record(self) -> TraceRecord:
        """What is known about it, waited for if need be."""
        error = self.error or next((failed for value in self.outputs if (failed := failure_of(value))), None)
        values = [] if error is not None else self.outputs
        roles = [value.role for value in values if isinstance(value, Variable) and value.role]
        return TraceRecord(
            function=self.function.__name__,
            role=", ".join(roles),
            inputs=tuple(["<failed>" if failure_of(value) else _excerpt(value) for value in self.inputs]),
            outputs=tuple([_excerpt(value) for value in values]),
            calls=self.calls,
            tokens=self.tokens,
            seconds=max(0.0, self.ended - self.began),
            error="" if error is None else f"{type(error).__name__}: {error}",
        )


_CURRENT: ContextVar[tuple[_Entry, ...]] = ContextVar("textgrad_engine_trace", default=())
"""The operations of all traces that a call of a model is made for, outermost first."""


class Trace(Layer):
    """The level that `trace` puts on the stack, and its log.

    Attributes:
        records: what passed, in order, and what ran at the same time in a `pmap` (or as the passes of a `jacrev`) item
            by item; reading it waits for results that are pending. It may be read while the block is open.
    """

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._observing = contextlib.ExitStack()

    def __enter__(self) -> Self:
        super().__enter__()
        self._observing.enter_context(observe(self._asked))
        return self

    def __exit__(self, *exc: object) -> None:
        self._observing.close()
        super().__exit__(*exc)

    def _asked(self, record: CallRecord) -> None:
        for entry in _CURRENT.get():
            if entry.log is self:
                entry.count(record)

    def process(self, function: type[Function], args: tuple[Any, ...]) -> Any:
        """Write the call down and pass it on."""
        entry = _Entry(self, function, args)
        self._entries.append(entry)
        try:
            with setting(_CURRENT, (*_CURRENT.get(), entry)):
                outs = function.apply(*args)
        except BaseException as error:
            entry.error, entry.ended = error, time.perf_counter()
            raise
        entry.finish(outs)
        return outs

    @property
    def records(self) -> list[TraceRecord]:
        """What passed, in order."""
        return [entry.record() for entry in sorted(self._entries, key=attrgetter("place"))]

    def __str__(self) -> str:
        return _table(self.records)

    def __repr__(self) -> str:
        return f"<Trace of {len(self._entries)} operations>"


def trace() -> Trace:
    """Record every operation that runs in a block: ``with func.trace() as log: …``.

    It is a level like `grad` and `vmap`: it sees what passes through its place on the stack. Around `vmap`, it shows
    each example; inside the mapped function, one operation for the whole batch. It also shows what a backward pass
    asks, if that runs inside the block.

    Returns:
        A context manager. Its `records` (`TraceRecord`) are there during the block and after it, and ``str(log)`` is a
        plain table of at most 80 columns.

    Example:
        >>> from textgrad_engine import ops
        >>> with trace() as log:
        ...     greeting = ops.join(["Hello", Variable("Ann", role="name")], ", ")
        >>> [(record.function, record.role, record.outputs) for record in log.records]
        [('_Join', 'name', ('Hello, Ann',))]
    """
    return Trace()


def _pending(value: Any) -> list[Call]:
    return [call for call in value._pending() if isinstance(call, Call)] if isinstance(value, Variable) else []


def failure_of(value: Any) -> BaseException | None:
    """What a value failed with; None where it is there. It is waited for, and not read."""
    calls = _pending(value)
    for call in calls:
        call.wait()
    return next((call._error for call in calls if call._error is not None), None)


def _plain(value: Any) -> Any:
    """The data of a value of any level; where it stands for one value per example, all of them."""
    if not isinstance(value, Variable):
        return value
    if value._layer is None:
        return value.data
    return [_plain(entry) for entry in value._inner] if isinstance(value._inner, list) else _plain(value._primal())


def _excerpt(value: Any) -> str:
    text = str(_plain(value))
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}… ({len(text) - _EXCERPT:,} more characters)"


def _table(records: Sequence[TraceRecord]) -> str:
    """The records as lines of at most 80 columns: figures first, then what went in and what came out."""
    lines = [_row("#", "function", "result", "calls", "tokens", "seconds")]
    for number, record in enumerate(records, 1):
        figures = (f"{record.calls:,}", f"{record.tokens:,}", f"{record.seconds:.2f}")
        lines.append(_row(str(number), record.function, record.role, *figures))
        lines.append(f"     in   {_side_by_side(record.inputs)}")
        lines.append(f"     out  {_side_by_side(record.outputs or (record.error,))}")
    total = (f"{sum(r.calls for r in records):,}", f"{sum(r.tokens for r in records):,}", "")
    lines.append(_row("", "total", f"{len(records):,} operations", *total))
    return "\n".join(line.rstrip() for line in lines)


def _side_by_side(texts: Sequence[str]) -> str:
    """Several texts on one line, each with its share of it; what a short one leaves goes to the next."""
    room, parts = _WIDTH - 10, []
    for left, text in zip(range(len(texts), 0, -1), texts):
        part = _fit(text, max(1, (room - 3 * (left - 1)) // left))
        room -= sum(map(_cells, part)) + 3
        parts.append(part)
    return _fit(" | ".join(parts), _WIDTH - 10)


def _row(number: str, function: str, role: str, calls: str, tokens: str, seconds: str) -> str:
    return f"{number:>3}  {_padded(function, 18)}  {_padded(role, 28)}  {calls:>6}  {tokens:>8}  {seconds:>7}"


def _padded(text: str, width: int) -> str:
    fitted = _fit(text, width)
    return fitted + " " * (width - sum(_cells(character) for character in fitted))


def _fit(text: str, width: int) -> str:
    """One line of at most so many terminal cells; control characters become spaces."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if sum(_cells(character) for character in line) <= width:
        return line
    used, kept = 1, []
    for character in line:
        used += _cells(character)
        if used > width:
            break
        kept.append(character)
    return "".join(kept) + "…"


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
