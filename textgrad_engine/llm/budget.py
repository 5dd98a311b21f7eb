"""Hard limits on dollars, tokens and calls: the worst case is reserved before a call is sent, and settled after."""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, fields

from textgrad_engine.errors import BudgetExceeded, ModelError, UnknownPriceError
from textgrad_engine.llm.model import Model, Wrapper, defaults_of
from textgrad_engine.llm.prices import price_of
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Completion, Usage
from textgrad_engine.llm.stop import check_stop, failing_on_stop
from textgrad_engine.llm.tokens import count_request
from textgrad_engine.llm.usage import mark, usage_of, was_sent

__all__ = ["DEFAULT_MAX_TOKENS", "Amount", "Budget", "Budgeted", "Remaining", "budget"]

DEFAULT_MAX_TOKENS = 4096
"""Output tokens that are reserved for a request that sets no ``max_tokens``."""

_PICO = 10**12


@dataclass(frozen=True)
class Remaining:
    """What a budget still has that is neither spent nor reserved; None where it sets no limit."""

    dollars: float | None
    calls: int | None
    tokens: int | None


@dataclass
class Amount:
    """Calls, tokens and money that are reserved or used.

    Attributes:
        calls: requests.
        tokens: input and output together.
        pico: picodollars (millionths of a millionth of a dollar).
    """

    # Whole numbers only (money in picodollars): sums are exact, whatever the order in which calls end.
    calls: int = 0
    tokens: int = 0
    pico: int = 0

    def add(self, other: Amount, sign: int = 1) -> None:
        """Add another amount; with ``sign=-1``, take it away."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + sign * getattr(other, field.name))


class Budget:
    """The account of one `budget` block. Its numbers may be read from any thread while calls run.

    ``spent + unknown + reserved`` stays within the limits, given that no call uses more than its worst case: the
    counted input (see `tokens`) and ``max_tokens``, or `DEFAULT_MAX_TOKENS` where a request sets none. Set
    ``max_tokens`` when the last cent matters.

    Args:
        dollars: the most it may cost, in US dollars.
        calls: the most requests that may be answered.
        tokens: the most tokens, input and output together.
    """

    def __init__(self, dollars: float | None = None, calls: int | None = None, tokens: int | None = None) -> None:
        for name, limit in (("dollars", dollars), ("calls", calls), ("tokens", tokens)):
            if limit is not None and not 0 <= limit < math.inf:
                raise ValueError(f"budget({name}=...) must be a number of at least 0, got {limit}")
        self.dollars, self.calls, self.tokens = dollars, calls, tokens
        self._pico = None if dollars is None else math.floor(dollars * _PICO)
        self._lock = threading.Lock()
        self._spent = Usage()
        self._settled, self._reserved, self._unknown = Amount(), Amount(), Amount()
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def spent(self) -> Usage:
        """What answered calls used, as far as it is known (see `unknown`)."""
        with self._lock:
            dollars = None if self._spent.dollars is None else self._settled.pico / _PICO
            return self._spent.model_copy(update={"dollars": dollars, "calls": self._settled.calls})

    @property
    def unknown(self) -> Usage:
        """The worst case of calls that failed without saying what they cost, e.g. by a timeout; counted as spent.

        Its tokens are given as output tokens.
        """
        with self._lock:
            return _as_usage(self._unknown)

    @property
    def reserved(self) -> Usage:
        """The worst case of the calls in flight; its tokens are given as output tokens."""
        with self._lock:
            return _as_usage(self._reserved)

    @property
    def remaining(self) -> Remaining:
        """What is neither spent nor reserved."""
        with self._lock:
            used = self._used()
            return Remaining(
                dollars=None if self._pico is None else max(0, self._pico - used.pico) / _PICO,
                calls=None if self.calls is None else max(0, self.calls - used.calls),
                tokens=None if self.tokens is None else max(0, self.tokens - used.tokens),
            )

    def reserve(self, amount: Amount) -> bool:
        """Set an amount aside if it fits; False means that it may fit when calls in flight have been settled.

        Raises:
            BudgetExceeded: it does not fit, and waiting cannot change that.
        """
        with self._lock:
            if self._short(amount, self._used()) is None:
                self._reserved.add(amount)
                return True
            committed = self._used()
            committed.add(self._reserved, -1)
            if self._reserved.calls and self._short(amount, committed) is None:
                return False
            raise BudgetExceeded(self._short(amount, self._used()))

    def settle(self, amount: Amount, usage: Usage | None, *, charged: bool) -> None:
        """Replace a reservation by what was used: `usage`, or the reservation itself if unknown, or nothing."""
        with self._lock:
            self._reserved.add(amount, -1)
            if usage is not None:
                self._spent += usage
                pico = amount.pico if usage.dollars is None else round(usage.dollars * _PICO)
                self._settled.add(Amount(max(usage.calls, amount.calls), usage.total_tokens, pico))
            elif charged:
                self._unknown.add(amount)
            waiting, self._waiting = self._waiting, []
        for future in waiting:
            _wake(future)

    def changed(self) -> asyncio.Future[None]:
        """A future that is done when a call has been settled."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._lock:
            self._waiting.append(future)
            if not self._reserved.calls:  # the last one was settled between the refusal and this line
                future.set_result(None)
        return future

    def _used(self) -> Amount:
        used = Amount()
        for part in (self._settled, self._unknown, self._reserved):
            used.add(part)
        return used

    def _short(self, amount: Amount, used: Amount) -> str | None:
        limits = {"calls": self.calls, "tokens": self.tokens, "pico": self._pico}
        for name, limit in limits.items():
            have, want = getattr(used, name), getattr(amount, name)
            if limit is None or have + want <= limit:
                continue
            aside, unknown = getattr(self._reserved, name), getattr(self._unknown, name)
            shown, unit = ("dollars", _PICO) if name == "pico" else (name, 1)
            return (
                f"the budget of {limit / unit:g} {shown} does not allow the next call: "
                f"{(have - aside - unknown) / unit:g} spent, {aside / unit:g} reserved by calls in flight, "
                f"{unknown / unit:g} held for calls that failed at unknown cost, and the next call may need "
                f"{want / unit:g}; raise budget({shown}=...)" + ("" if name == "calls" else " or lower max_tokens")
            )
        return None

    def __repr__(self) -> str:
        return f"Budget(dollars={self.dollars}, calls={self.calls}, tokens={self.tokens}, remaining={self.remaining})"


@contextlib.contextmanager
def budget(dollars: float | None = None, calls: int | None = None, tokens: int | None = None) -> Iterator[Budget]:
    """Inside the block, no call is sent that could pass a limit; of nested blocks every one applies.

    Args:
        dollars: the most it may cost, in US dollars.
        calls: the most requests that may be answered. A request that the endpoint refuses (4xx) does not count.
        tokens: the most tokens, input and output together.

    Example:
        >>> with budget(calls=500) as b:
        ...     b.remaining.calls
        500
    """
    made = Budget(dollars, calls, tokens)
    token = _budgets.set((*_budgets.get(), made))
    try:
        yield made
    finally:
        _budgets.reset(token)


class Budgeted(Wrapper):
    """Sends a call only when its worst case fits every budget around it, and puts the price on its answer.

    A call that would fit once others in flight have been settled waits for them.
    """

    def __init__(self, inner: Model) -> None:
        super().__init__(inner)
        self._defaults = defaults_of(inner)

    async def complete(self, request: Request) -> Completion:
        """Reserve, pass on, settle.

        Raises:
            BudgetExceeded: the call could pass a limit; it was not sent.
            UnknownPriceError: a limit is in dollars and the model's price is not known; it was not sent.
        """
        budgets = _budgets.get()
        if not budgets:
            return await self._ask(request)
        amount = self._worst_case(request, budgets)
        await _reserve(budgets, amount)
        usage, charged = None, True
        try:
            check_stop()  # it may have been set while this call waited for its reservation
            completion = await self._ask(request)
            usage = completion.usage
            return completion
        except Exception as error:
            usage, charged = usage_of(error), was_sent(error)
            raise
        finally:
            for each in budgets:
                each.settle(amount, usage, charged=charged)

    async def _ask(self, request: Request) -> Completion:
        try:
            completion = await self.inner.complete(request)
        except ModelError as error:
            if (used := usage_of(error)) is not None:
                mark(error, usage=self._with_price(used))
            raise
        usage = self._with_price(completion.usage)
        return completion if usage is completion.usage else completion.model_copy(update={"usage": usage})

    def _worst_case(self, request: Request, budgets: tuple[Budget, ...]) -> Amount:
        output = request.config.max_tokens or self._defaults.max_tokens or DEFAULT_MAX_TOKENS
        usage = Usage(input_tokens=count_request(request, self.name), output_tokens=output, calls=1)
        dollars = price_of(self.inner, usage)
        if dollars is None and any(each.dollars is not None for each in budgets):
            raise UnknownPriceError(
                f"a budget in dollars needs the price of {self.name!r}, which is not known; state it with "
                f"llm.set_price({self.name!r}, input_per_million, output_per_million), or limit calls or tokens instead"
            )
        return Amount(1, usage.total_tokens, math.ceil((dollars or 0.0) * _PICO))

    def _with_price(self, usage: Usage) -> Usage:
        if usage.dollars:  # the endpoint said so itself
            return usage
        dollars = price_of(self.inner, usage)
        return usage if usage.dollars == dollars else usage.model_copy(update={"dollars": dollars})


async def _reserve(budgets: tuple[Budget, ...], amount: Amount) -> None:
    while True:
        held: list[Budget] = []
        full: Budget | None = None
        try:
            for each in budgets:
                if not each.reserve(amount):
                    full = each
                    break
                held.append(each)
            if full is None:
                held = []
                return
        finally:
            for each in held:  # all or none: a half reservation would keep others from what they need
                each.settle(amount, None, charged=False)
        future = full.changed()
        with failing_on_stop(future):
            await future


def _as_usage(amount: Amount) -> Usage:
    return Usage(calls=amount.calls, output_tokens=amount.tokens, dollars=amount.pico / _PICO)


def _wake(future: asyncio.Future[None]) -> None:
    def finish() -> None:
        if not future.done():
            future.set_result(None)

    with contextlib.suppress(RuntimeError):  # its loop is closed, and nobody waits any more
        future.get_loop().call_soon_threadsafe(finish)


_budgets: ContextVar[tuple[Budget, ...]] = ContextVar("textgrad_engine_budgets", default=())
