"""Hard limits on dollars, tokens and calls: the worst case is reserved before a call is sent, and settled after."""

from __future__ import annotations

import contextlib
import itertools
import logging
import math
import re
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextvars import ContextVar
from decimal import Decimal
from typing import Any

from textgrad_engine.blocks import block
from textgrad_engine.errors import BadRequest, BudgetExceeded, ModelError, UnknownPriceError
from textgrad_engine.keywords import names_told
from textgrad_engine.llm.account import Budget, Hold, as_amount, as_usage
from textgrad_engine.llm.amounts import PICO, UNLIMITED, Amount
from textgrad_engine.llm.charged import costs_nothing, is_estimated, mark, unknown_of, usage_of, was_sent
from textgrad_engine.llm.model import Model, Wrapper, defaults_of, is_free
from textgrad_engine.llm.prices import highest_price_of, price_of, tier_of
from textgrad_engine.llm.request import GenerateConfig, Request
from textgrad_engine.llm.reserve import BUDGETS, RESERVES, Reserve, kept_of
from textgrad_engine.llm.response import Completion, Usage
from textgrad_engine.llm.stop import check_stop, failing_on_stop, note_if_direct
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

_NUMBERS = itertools.count(1)
"""Of calls that wait for room, in the order in which they began to."""

_HOLDS: ContextVar[tuple[Hold, ...]] = ContextVar("textgrad_engine_holds", default=())
"""What the calls have set aside inside of which this one is made, the outermost first."""


@block
@contextlib.contextmanager
@names_told
def budget(
    dollars: float | Decimal | None = None, calls: float | None = None, tokens: float | None = None
) -> Iterator[Budget]:
    """Inside the block, no call is sent that could exceed a limit; nested blocks all apply.

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
    with setting(BUDGETS, (*BUDGETS.get(), made)):
        yield made


@contextlib.contextmanager
def limited(most: Amount, whole: Callable[[Amount], Amount] | None = None) -> Iterator[Budget]:
    """A `budget` of an amount; what is vast there limits nothing.

    Args:
        most: the amount.
        whole: of a part of a budget around: how large that has to be for a part of so much, as that can be raised.
    """
    calls, tokens, pico = (None if each >= UNLIMITED else each for each in (most.calls, most.tokens, most.pico))
    with budget(None if pico is None else pico / PICO, calls, tokens) as made:
        made.whole = whole
        yield made


def budgets_around() -> tuple[Budget, ...]:
    """The budgets that hold for the calls made here, the outermost first."""
    return BUDGETS.get()


def charge(used: Usage) -> None:
    """Count in the budgets around what was used before, without a call."""
    for each in BUDGETS.get():
        each.settle(Amount(), used, charged=True)


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
        budgets = BUDGETS.get()
        return self._within(request, budgets, RESERVES.get()) if budgets else self._ask(request)

    async def play(self, request: Request, give: Callable[[], Completion]) -> Completion:
        """Charge the budgets for an answer that was recorded as for the call that got it: reserve, and settle.

        Args:
            request: what was asked.
            give: gives the answer or raises the failure, and is called when there is room for the call.

        Raises:
            BudgetExceeded: there is none.
        """
        budgets, reserves = BUDGETS.get(), RESERVES.get()
        if not budgets:
            return give()
        try:
            return await self._within(request, budgets, reserves, give)
        except BudgetExceeded as error:
            if not costs_nothing(error):  # recorded: there was room for an attempt, and none for the one after it
                stated = _max_tokens_in(request.config.over(self._defaults))
                amount = self._worst_case(request, stated or self._most_output, ())
                error.refused_by = await _refuser(budgets, reserves, amount)
                note_if_direct(error)
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
        try:
            await _reserve(budgets, reserves, amount)
        except BudgetExceeded as error:
            note_if_direct(error)
            raise
        usage, charged, estimated, unknown = None, True, False, None
        hold = Hold(budgets, amount)
        try:
            check_stop()  # it may have been set while this call waited for its reservation
            with setting(_HOLDS, (*_HOLDS.get(), hold)):
                if give is not None:
                    completion = give()
                elif stated is None and self._needs_an_end(budgets):
                    completion = await self._ask_with_an_end(request)
                else:
                    completion = await self._ask(request)
            usage = completion.usage
            estimated, unknown = is_estimated(completion), unknown_of(completion)
            return completion
        except Exception as error:
            usage, charged, unknown = usage_of(error), _may_be_charged(error), unknown_of(error)
            estimated = isinstance(error, ModelError) and error.usage_estimated
            raise
        finally:
            hold.end()
            on_record = None if give is None or unknown is None else as_amount(unknown)  # else each attempt is settled
            for each in budgets:
                if on_record is not None:
                    each.hold(on_record)
                each.settle(amount, usage, charged=charged and on_record is None, estimated=estimated)
            if give is None and usage is not None and usage.total_tokens > amount.tokens:
                self._warn(usage, amount, budgets)

    async def _ask(self, request: Request) -> Completion:
        try:
            completion = await self.inner.complete(request)
        except ModelError as error:
            if (used := usage_of(error)) is not None:
                mark(error, usage=self._with_price(used, request))
            elif _may_be_charged(error):
                most = _max_tokens_in(request.config.over(self._defaults)) or self._most_output
                mark(error, unknown=as_usage(self._worst_case(request, most, ())))
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
                "price=llm.Price(input=..., output=...) (llm.resolve, OpenAIModel) or llm.set_price(name, input, "
                "output), in a config with [models.prices], or limit calls or tokens instead"
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
            "%r says that a call used %d tokens, but its text and max_tokens allow at most %d: it ignores max_tokens, "
            "or counts otherwise, and can exceed the budget by as much",
            self.name,
            usage.total_tokens,
            amount.tokens,
        )


def _may_be_charged(error: Exception) -> bool:
    """Whether what a call failed with leaves open that it was charged.

    What an app of the user's own has asked before there was no room for more is counted by itself.
    """
    return was_sent(error) and not isinstance(error, BudgetExceeded)


def _max_tokens_in(config: GenerateConfig) -> int | None:
    """What a config allows an answer; what is in `extra` is sent as it is, and instead of the setting's own name."""
    stated = [config.max_tokens, *[config.extra.get(name) for name in _NAMES_OF_MAX_TOKENS]]
    numbers = [number for number in stated if isinstance(number, int) and not isinstance(number, bool) and number > 0]
    return max(numbers, default=None)


async def _reserve(budgets: tuple[Budget, ...], reserves: tuple[Reserve, ...], amount: Amount) -> None:
    """Set an amount aside in every budget; wait where one has no room, and hold nothing of the others meanwhile.

    Two that wait for room in each other's budgets would give back what they have got in turns, for ever: the one that
    has waited longest keeps it.
    """
    around = _HOLDS.get()
    inside, waiting = bool(around), budgets[0].waiting
    if len(budgets) == 1 and budgets[0].reserve(amount, kept_of(budgets[0], reserves), inside=inside):
        return
    held: list[Budget] = []

    def first_full() -> Budget | None:
        """Set it aside in one budget after the other, up to one that has no room; None where all have."""
        for each in budgets:
            if each not in held:
                if not each.reserve(amount, kept_of(each, reserves), inside=inside):
                    return each
                held.append(each)
        return None

    with contextlib.ExitStack() as stack:
        failed = stack.enter_context(contextlib.ExitStack())
        failed.callback(_give_back, held, amount)
        rank = (not inside, next(_NUMBERS))  # those inside of other calls come first, as these wait for them
        full = first_full()
        if full is not None:
            waiting.add(rank)
            stack.callback(waiting.discard, rank)
            _give_back(held, amount)
            for hold in around:  # before it is queued, as what calls around it have set aside is nothing to wait for
                hold.wait(1)
                stack.callback(hold.wait, -1)
        while full is not None:
            await _wait_for_room(full, held, amount, kept_of(full, reserves), inside=inside)
            full = first_full()
            if full is not None and rank > min(waiting):
                _give_back(held, amount)
        failed.pop_all()


async def _wait_for_room(
    full: Budget, held: list[Budget], amount: Amount, kept: Callable[[], Amount], *, inside: bool
) -> None:
    """Queue for an amount of a budget, which is then held, too; what is held by then comes back to nobody meanwhile."""
    future = full.queue(amount, kept, inside=inside)
    own = Hold(tuple(held), amount)
    own.wait(1)
    try:
        with failing_on_stop(future):
            if await future:
                held.append(full)
    except BaseException:
        full.give_up(future, amount)
        raise
    finally:
        own.end()


def _give_back(held: list[Budget], amount: Amount) -> None:
    """Give back what was set aside of some budgets."""
    while held:
        held.pop().settle(amount, None, charged=False)


async def _refuser(budgets: tuple[Budget, ...], reserves: tuple[Reserve, ...], amount: Amount) -> int | None:
    """The `id` of the budget that has no room for an amount; None where all have."""
    try:
        await _reserve(budgets, reserves, amount)
    except BudgetExceeded as error:
        return error.refused_by
    for each in budgets:
        each.settle(amount, None, charged=False)
    return None
