"""What calls may not use of the budgets around them, as it is kept for what comes later, or was paid for before."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from typing import Literal, Self

from textgrad_engine.llm.account import Budget
from textgrad_engine.llm.amounts import UNLIMITED, Amount
from textgrad_engine.scoped import setting

BUDGETS: ContextVar[tuple[Budget, ...]] = ContextVar("textgrad_engine_budgets", default=())
"""The budgets that hold for the calls made here, the outermost first."""

RESERVES: ContextVar[tuple[Reserve, ...]] = ContextVar("textgrad_engine_reserves", default=())
"""The blocks that hold for them, likewise."""


class Reserve:
    """What calls inside its block may not use of the budgets around it, as it is kept for what comes after the block.

    That holds for a call of the block whenever it is sent, also when the block is left by then.

    Attributes:
        kept: how much; set it with `keep`.
        parts: of that, the parts of a run's end.
        decided: whether it is known by now what comes after the block; None leaves that to the blocks around. See
            `Waiting`.

    Example:
        >>> from textgrad_engine.llm.budget import budget
        >>> with budget(calls=100) as b:
        ...     with Reserve() as later:
        ...         later.keep(Amount(calls=30))
        ...         pass  # at most 70 calls here
        ...     b.remaining.calls
        100
    """

    def __init__(self, *, decided: bool | None = None) -> None:
        self.kept, self.decided = Amount(), decided
        self.parts: dict[Part, Amount] = {}
        self._budgets = BUDGETS.get()
        self._token: Token[tuple[Reserve, ...]] | None = None

    def __enter__(self) -> Self:
        self._token = RESERVES.set((*RESERVES.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        RESERVES.reset(self._token)

    def keep(self, amount: Amount) -> None:
        """Keep this much, instead of what was kept before; calls that wait for room may have the difference."""
        self.kept.add(
            Amount(amount.calls - self.kept.calls, amount.tokens - self.kept.tokens, amount.pico - self.kept.pico)
        )
        for each in self._budgets:
            each.serve()

    @contextlib.contextmanager
    def lifted(self, *, inside: bool = False) -> Iterator[None]:
        """Inside the block, calls may use it: they are what it is kept for.

        Args:
            inside: they may use what the blocks inside keep, too.
        """
        around = RESERVES.get()
        if self in around:
            at = around.index(self)
            around = around[:at] if inside else around[:at] + around[at + 1 :]
        with setting(RESERVES, around):
            yield

    def of(self, given: Budget) -> bool:
        """Whether it keeps anything of a budget."""
        return given in self._budgets

    @property
    def free(self) -> Amount:
        """What all of the budgets have left, what is kept included; vast where there is no limit."""
        everything = Amount(UNLIMITED, UNLIMITED, UNLIMITED)
        return functools.reduce(lambda least, each: least.by(min, each.free), self._budgets, everything)

    @property
    def held(self) -> Amount:
        """What is held for calls whose cost nobody knows: calls, tokens and money each by itself."""
        return functools.reduce(lambda most, each: most.by(max, each.held), self._budgets, Amount())

    @property
    def largest(self) -> Amount:
        """The most that a call could have needed so far: calls, tokens and money each by itself."""
        return functools.reduce(lambda most, each: most.by(max, each.largest), self._budgets, Amount())


Part = Literal["seed", "best", "controls"]
"""A part of a run's end: the test of its seed texts, that of its best ones, and all that its controls take."""

CERTAIN: tuple[Part, ...] = ("seed", "controls")
"""The parts that ask the same whatever texts are the best ones."""


@dataclass(frozen=True)
class LastTest:
    """The last test in the end of a run: on how many examples, and of which texts, which were its best ones then."""

    examples: int = 0
    best: Mapping[str, str] = field(default_factory=dict)


UNTESTED = LastTest()
"""No test at all."""


class Waiting(Reserve):
    """What was paid for before the block, by a run that goes on in it, and was not asked for again yet.

    Its end is mostly what blocks inside keep, too, for what comes after them. As long as it is not `decided` what that
    is, as a search may find other texts, they share only what is `CERTAIN`.

    Attributes:
        tested: the last test that belongs to what is on record.
        moved: whether a search went on behind what is on record, so that its best texts may be others.
    """

    def __init__(self, tested: LastTest = UNTESTED) -> None:
        super().__init__()
        self.tested, self.moved = tested, False

    @property
    def ends_as_before(self) -> bool:
        """Whether the run is on its way to the test that is on record."""
        return bool(self.tested.examples) and not self.moved

    def come_to(self, best: Mapping[str, str]) -> None:
        """The search has ended with these texts: it may have found no better ones than those that were tested."""
        self.moved = self.moved and best != self.tested.best

    def add(self, amount: Amount, part: Part | None, sign: int = 1) -> None:
        """Keep so much more; with ``sign=-1``, less, as it was asked for again.

        Args:
            amount: how much.
            part: of the run's end; None for what does not belong to that.
            sign: 1 or -1.
        """
        if part is not None:
            self.parts.setdefault(part, Amount()).add(amount, sign)
        left = Amount()
        left.add(self.kept)
        left.add(amount, sign)
        self.keep(left)


def decided() -> bool:
    """Whether it is known, by the innermost block that knows, what comes after the `Reserve` blocks around."""
    return _decided(RESERVES.get())


def waiting() -> list[Waiting]:
    """The `Waiting` blocks around."""
    return [each for each in RESERVES.get() if isinstance(each, Waiting)]


def kept_of(given: Budget, reserves: tuple[Reserve, ...]) -> Callable[[], Amount]:
    """What a call in these blocks may not use of a budget."""
    held = [each for each in reserves if each.of(given)]
    return functools.partial(_kept, held) if held else Amount


def _kept(reserves: Sequence[Reserve]) -> Amount:
    later, paid = Amount(), Amount()
    for each in reserves:
        (paid if isinstance(each, Waiting) else later).add(each.kept)
    shared = paid.by(min, later)
    if not _decided(reserves):
        some = Amount()
        for part in CERTAIN:
            on_record, wanted = Amount(), Amount()
            for each in reserves:
                (on_record if isinstance(each, Waiting) else wanted).add(each.parts.get(part, Amount()))
            some.add(on_record.by(min, wanted))
        shared = shared.by(min, some)
    later.add(paid)
    later.add(shared, -1)
    return later


def _decided(reserves: Sequence[Reserve]) -> bool:
    return next((each.decided for each in reversed(reserves) if each.decided is not None), True)
