"""Hard limits on dollars, tokens and calls: the worst case is reserved before a call is sent, and settled after."""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import re
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, Self

from textgrad_engine.errors import BadRequest, BudgetExceeded, ModelError, UnknownPriceError
from textgrad_engine.keywords import names_told
from textgrad_engine.llm.account import PICO, UNLIMITED, Amount, Budget
from textgrad_engine.llm.charged import is_estimated, mark, usage_of, was_sent
from textgrad_engine.llm.model import Model, Wrapper, defaults_of, is_free
from textgrad_engine.llm.prices import highest_price_of, price_of, tier_of
from textgrad_engine.llm.request import GenerateConfig, Request
from textgrad_engine.llm.response import Completion, Usage
from textgrad_engine.llm.stop import check_stop, failing_on_stop
from textgrad_engine.llm.tokens import most_of_request
from textgrad_engine.scoped import setting

DEFAULT_MAX_TOKENS = 8192
"""The ``max_tokens`` that a request is sent with under a limit in tokens or dollars when it sets none."""

_LEAST_MAX_TOKENS = 1024
"""Where an endpoint refuses `DEFAULT_MAX_TOKENS` as more than its model can say, the half is tried, down to this."""

_NAMES_OF_MAX_TOKENS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_ABOUT_MAX_TOKENS = re.compile(
    r"max_(?:\w+_)?tokens|max(?:imum)? output|completion tokens|in the (?:completion|output)|messages or completion",
    re.IGNORECASE,
)
_UNKNOWN_MAX_TOKENS = re.compile(r"unsupported|unknown|unrecogni[sz]ed|not (?:supported|permitted)", re.IGNORECASE)

_log = logging.getLogger("textgrad_engine.llm.budget")


@contextlib.contextmanager
@names_told
def budget(
    dollars: float | Decimal | None = None, calls: float | None = None, tokens: float | None = None
) -> Iterator[Budget]:
    """Inside the block, no call is sent that could pass a limit; of nested blocks every one applies.

    Args:
        dollars: the most it may cost, in US dollars.
        calls: the most requests that may be answered. A request that the endpoint refuses (4xx) does not count.
        tokens: the most tokens, input and output together.

    Raises:
        TypeError: a limit is no number.
        ValueError: a limit is below 0.
        BudgetExceeded: (where an answer is read) its call could have passed a limit.
        UnknownPriceError: (likewise) dollars are limited, and the price of the model is not known.

    Example:
        >>> with budget(calls=500) as b:
        ...     b.remaining.calls, b.spent.calls
        (500, 0)
    """
    made = Budget(dollars, calls, tokens)
    with setting(_budgets, (*_budgets.get(), made)):
        yield made


def limited(most: Amount) -> contextlib.AbstractContextManager[Budget]:
    """A `budget` of an amount; what is vast there limits nothing."""
    calls, tokens, pico = (None if each >= UNLIMITED else each for each in (most.calls, most.tokens, most.pico))
    return budget(None if pico is None else pico / PICO, calls, tokens)


def budgets_around() -> tuple[Budget, ...]:
    """The budgets that hold for the calls made here, the outermost first."""
    return _budgets.get()


def charge(used: Usage) -> None:
    """Count in the budgets around what was used before, without a call."""
    for each in _budgets.get():
        each.settle(Amount(), used, charged=True)


class Reserve:
    """What calls inside its block may not use of the budgets around it, as it is kept for what comes after the block.

    That holds for a call of the block whenever it is sent, also when the block is left by then.

    Attributes:
        kept: how much; set it with `keep`.
        parts: of that, the parts of a run's end.
        decided: whether it is known by now what comes after the block; None leaves that to the blocks around. See
            `Waiting`.

    Example:
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
        self._budgets = _budgets.get()
        self._token: Token[tuple[Reserve, ...]] | None = None

    def __enter__(self) -> Self:
        self._token = _reserves.set((*_reserves.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        _reserves.reset(self._token)

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
        around = _reserves.get()
        if self in around:
            at = around.index(self)
            around = around[:at] if inside else around[:at] + around[at + 1 :]
        with setting(_reserves, around):
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
    return _decided(_reserves.get())


def waiting() -> list[Waiting]:
    """The `Waiting` blocks around."""
    return [each for each in _reserves.get() if isinstance(each, Waiting)]


class Budgeted(Wrapper):
    """Sends a call only when its worst case fits every budget around it, and puts the price on its answer.

    A call that would fit once others in flight have been settled waits for them; one that would not fit even then is
    refused.
    """

    def __init__(self, inner: Model) -> None:
        super().__init__(inner)
        self._defaults = defaults_of(inner)
        self._most_output = DEFAULT_MAX_TOKENS  # less where the endpoint was found to refuse so much
        self._warned = False

    def complete(self, request: Request) -> Coroutine[Any, Any, Completion]:
        """Reserve, pass on, settle.

        Raises:
            BudgetExceeded: the call could pass a limit; it was not sent.
            UnknownPriceError: a limit is in dollars and the model's price is not known; it was not sent.
        """
        budgets = _budgets.get()
        return self._within(request, budgets, _reserves.get()) if budgets else self._ask(request)

    async def play(self, request: Request, give: Callable[[], Completion]) -> Completion:
        """Charge the budgets for an answer that was recorded as for the call that got it: reserve, and settle.

        Args:
            request: what was asked.
            give: gives the answer or raises the failure, and is called when there is room for the call.

        Raises:
            BudgetExceeded: there is none.
        """
        budgets, reserves = _budgets.get(), _reserves.get()
        if not budgets:
            return give()
        try:
            return await self._within(request, budgets, reserves, give)
        except BudgetExceeded as error:
            if usage_of(error) is not None:  # recorded: there was room for an attempt, and none for the one after it
                stated = _max_tokens_in(request.config.over(self._defaults))
                amount = self._worst_case(request, stated or self._most_output, ())
                error.refused_by = await _refuser(budgets, reserves, amount)
            raise

    async def _within(
        self,
        request: Request,
        budgets: tuple[Budget, ...],
        reserves: tuple[Reserve, ...],
        give: Callable[[], Completion] | None = None,
    ) -> Completion:
        stated = _max_tokens_in(request.config.over(self._defaults))
        amount = self._worst_case(request, stated or self._most_output, () if give else budgets)
        await _reserve(budgets, reserves, amount)
        usage, charged, estimated = None, True, False
        try:
            check_stop()  # it may have been set while this call waited for its reservation
            if give is not None:
                completion = give()
            elif stated is None and self._needs_an_end(budgets):
                completion = await self._ask_with_an_end(request)
            else:
                completion = await self._ask(request)
            usage = completion.usage
            estimated = is_estimated(completion)
            return completion
        except Exception as error:
            usage, charged = usage_of(error), was_sent(error)
            estimated = isinstance(error, ModelError) and error.usage_estimated
            raise
        finally:
            for each in budgets:
                each.settle(amount, usage, charged=charged, estimated=estimated)
            if give is None and usage is not None and usage.total_tokens > amount.tokens:
                self._warn(usage, amount, budgets)

    async def _ask(self, request: Request) -> Completion:
        try:
            completion = await self.inner.complete(request)
        except ModelError as error:
            if (used := usage_of(error)) is not None:
                mark(error, usage=self._with_price(used, request))
            raise
        usage = self._with_price(completion.usage, request, completion.raw)
        return completion if usage is completion.usage else completion.model_copy(update={"usage": usage})

    async def _ask_with_an_end(self, request: Request) -> Completion:
        """Send a request without ``max_tokens`` with one, so that its reservation is what it can cost at most."""
        most = self._most_output
        while True:
            config = request.config.model_copy(update={"max_tokens": most})
            try:
                completion = await self._ask(request.model_copy(update={"config": config}))
            except BadRequest as error:  # refused, hence free: the reservation is still whole
                if was_sent(error) or not _ABOUT_MAX_TOKENS.search(str(error)):
                    raise
                if most <= _LEAST_MAX_TOKENS or _UNKNOWN_MAX_TOKENS.search(str(error)):
                    error.add_note(
                        f"under a limit in tokens or dollars a request that sets no max_tokens is sent with {most}; "
                        "set max_tokens, or extra={...} with the name that this endpoint has for it"
                    )
                    raise
                most //= 2
            else:
                self._most_output = min(self._most_output, most)
                return completion

    def _needs_an_end(self, budgets: tuple[Budget, ...]) -> bool:
        """Whether a limit is at stake that a longer answer could pass."""
        free = is_free(self.inner)
        return any(each.tokens is not None or (each.dollars is not None and not free) for each in budgets)

    def _worst_case(self, request: Request, output: int, budgets: tuple[Budget, ...]) -> Amount:
        usage = Usage(input_tokens=most_of_request(request, self.name), output_tokens=output, calls=1)
        dollars = highest_price_of(self.inner, usage, tier_of(self.inner, request.config))
        if dollars is None and any(each.dollars is not None for each in budgets):
            error = UnknownPriceError(
                f"a budget in dollars needs the price of {self.name!r}, which is not known; state it with "
                "price=llm.Price(input=..., output=...) (llm.resolve, OpenAIModel) or llm.set_price, in a config with "
                "[models.prices], or limit calls or tokens instead"
            )
            raise mark(error, sent=False)
        return Amount(1, usage.total_tokens, math.ceil(Decimal(str(dollars or 0.0)) * PICO))

    def _with_price(self, usage: Usage, request: Request, answer: Mapping[str, Any] | None = None) -> Usage:
        if usage.dollars:  # the endpoint said so itself
            return usage
        if is_free(self.inner):
            dollars: float | None = 0.0
        else:
            served = (answer or {}).get("service_tier")  # another one than was asked for, when that is full
            tier = served if isinstance(served, str) else tier_of(self.inner, request.config)
            dollars = price_of(self.inner, usage, tier)
        return usage if usage.dollars == dollars else usage.model_copy(update={"dollars": dollars})

    def _warn(self, usage: Usage, amount: Amount, budgets: tuple[Budget, ...]) -> None:
        if self._warned or not any(each.tokens is not None or each.dollars is not None for each in budgets):
            return
        self._warned = True
        _log.warning(
            "%r says that a call used %d tokens, and at most %d were possible by its text and max_tokens: it takes no "
            "notice of max_tokens, or counts otherwise, and can pass the budget by as much",
            self.name,
            usage.total_tokens,
            amount.tokens,
        )


def _max_tokens_in(config: GenerateConfig) -> int | None:
    """What a config allows an answer; what is in `extra` is sent as it is, and instead of the setting's own name."""
    stated = [config.max_tokens, *[config.extra.get(name) for name in _NAMES_OF_MAX_TOKENS]]
    numbers = [number for number in stated if isinstance(number, int) and not isinstance(number, bool) and number > 0]
    return max(numbers, default=None)


async def _reserve(budgets: tuple[Budget, ...], reserves: tuple[Reserve, ...], amount: Amount) -> None:
    """Set an amount aside in every budget; wait where one has no room, and hold nothing of the others meanwhile."""
    granted: Budget | None = None
    while True:
        held = [] if granted is None else [granted]
        full: Budget | None = None
        try:
            for each in budgets:
                if each is granted:
                    continue
                if not each.reserve(amount, _kept_of(each, reserves)):
                    full = each
                    break
                held.append(each)
            if full is None:
                held = []
                return
        finally:
            for each in held:  # all or none: a half reservation would keep others from what they need
                each.settle(amount, None, charged=False)
        future = full.queue(amount, _kept_of(full, reserves))
        try:
            with failing_on_stop(future):
                granted = full if await future else None
        except BaseException:
            full.give_up(future, amount)
            raise


async def _refuser(budgets: tuple[Budget, ...], reserves: tuple[Reserve, ...], amount: Amount) -> int | None:
    """The `id` of the budget that has no room for an amount; None where all have."""
    try:
        await _reserve(budgets, reserves, amount)
    except BudgetExceeded as error:
        return error.refused_by
    for each in budgets:
        each.settle(amount, None, charged=False)
    return None


def _kept_of(given: Budget, reserves: tuple[Reserve, ...]) -> Callable[[], Amount]:
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


_reserves: ContextVar[tuple[Reserve, ...]] = ContextVar("textgrad_engine_reserves", default=())
_budgets: ContextVar[tuple[Budget, ...]] = ContextVar("textgrad_engine_budgets", default=())
