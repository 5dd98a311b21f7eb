"""The account of a budget: what is spent, reserved by calls in flight, and held for calls of unknown cost."""

from __future__ import annotations

import asyncio
import math
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from textgrad_engine.attributes import attributes_told
from textgrad_engine.checks import Range, at_least, check, finite
from textgrad_engine.errors import BudgetExceeded
from textgrad_engine.llm.amounts import PICO, UNLIMITED, Amount
from textgrad_engine.llm.response import Usage


@attributes_told
@dataclass(frozen=True)
class Remaining:
    """What a budget still has that is neither spent nor reserved; None where it sets no limit."""

    dollars: float | None
    calls: int | None
    tokens: int | None


class Hold:
    """What a call has set aside of budgets while it is under way, as calls inside of it may wait for room there.

    An app of the user's own (`CallableModel`) may ask models of ours. As long as one of those waits, what the app's
    call has set aside comes back to nobody.

    Args:
        budgets: those around the call.
        amount: what it has set aside of each.
    """

    def __init__(self, budgets: tuple[Budget, ...], amount: Amount) -> None:
        self._budgets, self._amount = budgets, amount
        self._lock = threading.Lock()
        self._inside, self._over = 0, False

    def wait(self, sign: int) -> None:
        """A call inside of it waits for room; with ``sign=-1``, no longer."""
        self._change(sign, self._over)

    def end(self) -> None:
        """The call is over: what it had set aside is settled."""
        self._change(0, True)

    def _change(self, sign: int, over: bool) -> None:
        with self._lock:
            before = self._inside > 0 and not self._over
            self._inside, self._over = self._inside + sign, over
            change = (self._inside > 0 and not self._over) - before
        if change:
            for each in self._budgets:
                each.stick(self._amount, change)


_COUNTS = Range("a whole number", lambda value: value % 1 == 0, ("calls", "tokens"))
"""1e6 tokens are a whole number, too."""


@attributes_told
class Budget:
    """The account of one `budget` block. Its numbers may be read from any thread while calls run.

    ``spent + unknown + reserved`` stays within the limits, at any concurrency: a call is sent when its worst case fits,
    which is as many input tokens as its text has bytes, with room for what chat formats add (`most_of_request`), and
    ``max_tokens`` of output. So that there is a worst case, a request that sets no ``max_tokens`` is sent with
    `DEFAULT_MAX_TOKENS` where tokens or dollars are limited. What is not used is released when the answer is there. An
    endpoint that ignores ``max_tokens`` can exceed the limit, and the log says so; so can charges for other things than
    tokens, such as searches.

    Args:
        dollars: the most it may cost, in US dollars.
        calls: the most requests that may be answered.
        tokens: the most tokens, input and output together.
    """

    def __init__(
        self, dollars: float | Decimal | None = None, calls: float | None = None, tokens: float | None = None
    ) -> None:
        limits = "dollars", "calls", "tokens"
        check(Budget.__init__, locals(), at_least(0, *limits), finite(*limits), _COUNTS)
        self.dollars = None if dollars is None else float(dollars)
        self.calls, self.tokens = (None if limit is None else int(limit) for limit in (calls, tokens))
        exact = None if dollars is None else Decimal(str(self.dollars))  # 0.57 is 0.57, not less
        self._pico = None if exact is None else math.floor(exact * PICO)
        self._most = Amount(
            *[UNLIMITED if limit is None else math.floor(limit) for limit in (calls, tokens, self._pico)]
        )
        self._lock = threading.Lock()
        self._spent = Usage()
        self._settled, self._reserved, self._unknown = Amount(), Amount(), Amount()
        self._stuck = Amount()  # of what is reserved, that of calls inside of which another one waits for room
        self._largest = Amount()
        self._queue: deque[_Queued] = deque()
        self.waiting: set[tuple[bool, int]] = set()  # the ranks of calls, of which this is the outermost budget
        self.whole: Callable[[Amount], Amount] | None = None  # of a part: which whole budget gives it so much

    @property
    def spent(self) -> Usage:
        """What answered calls used, as far as it is known (see `unknown`)."""
        with self._lock:
            dollars = None if self._spent.dollars is None else self._settled.pico / PICO
            return self._spent.model_copy(update={"dollars": dollars, "calls": self._settled.calls})

    @property
    def unknown(self) -> Usage:
        """The worst case of calls that failed without saying what they cost, e.g. by a timeout; counted as spent.

        Of answers that came without their usage, it holds what the worst case has beyond the estimate in `spent`. Its
        tokens are given as output tokens.
        """
        with self._lock:
            return as_usage(self._unknown)

    @property
    def held(self) -> Amount:
        """The same as `unknown`, in whole numbers."""
        with self._lock:
            return Amount(self._unknown.calls, self._unknown.tokens, self._unknown.pico)

    @property
    def reserved(self) -> Usage:
        """The worst case of the calls in flight; its tokens are given as output tokens."""
        with self._lock:
            return as_usage(self._reserved)

    @property
    def largest(self) -> Amount:
        """The most that a call could have needed so far: calls, tokens and money each by itself."""
        with self._lock:
            return self._largest

    @property
    def free(self) -> Amount:
        """What is neither spent nor reserved, in whole numbers; `UNLIMITED` where there is no limit."""
        with self._lock:
            return self._most.by(lambda most, used: most if most >= UNLIMITED else most - used, self._used())

    @property
    def remaining(self) -> Remaining:
        """What is neither spent nor reserved."""
        with self._lock:
            used = self._used()
            return Remaining(
                dollars=None if self._pico is None else max(0, self._pico - used.pico) / PICO,
                calls=None if self.calls is None else max(0, self.calls - used.calls),
                tokens=None if self.tokens is None else max(0, self.tokens - used.tokens),
            )

    def reserve(self, amount: Amount, kept: Callable[[], Amount] = Amount, *, inside: bool = False) -> bool:
        """Set an amount aside if it fits; False means that it may fit when calls in flight have been settled.

        It also means to `queue` up behind those that wait already, so that a large call is not starved by small ones.

        Args:
            amount: of one call.
            kept: gives what this call may not use, as it is kept for later ones; see `Reserve`.
            inside: the call is made inside of another one, which has set something aside (`Hold`): those that wait may
                wait for that, so it waits behind none of them, and not for calls inside of which one waits.

        Raises:
            BudgetExceeded: it does not fit, and waiting cannot change that.
        """
        with self._lock:
            used, most = self._used(), self._largest
            if not amount.within(most):
                self._largest = most.by(max, amount)
            later = kept()  # read once: it may change while this runs
            if self._fits(amount, used, later):
                if self._queue and not inside:  # those at its head are being served: room was made just now
                    return False
                self._reserved.add(amount)
                return True
            if self._may_fit(amount, later, inside):
                return False
            too_small = used == Amount() and not self._fits(amount, used, Amount())
            later = Amount() if too_small else later
            error = BudgetExceeded(self._shortage(amount, used, later))
            error.too_small, error.refused_by, error.enough = too_small, id(self), self._enough(amount, used, later)
            raise error

    def refused(self, error: BudgetExceeded) -> bool:
        """Whether it was this budget that had no room for a call, and none around it or inside."""
        return error.refused_by == id(self)

    def settle(self, amount: Amount, usage: Usage | None, *, charged: bool, estimated: bool = False) -> None:
        """Replace a reservation by what was used: `usage`, or the reservation itself if unknown, or nothing.

        Args:
            amount: what was reserved.
            usage: what was used; None when nobody knows.
            charged: whether anything may have been charged.
            estimated: `usage` is no more than an estimate, so that the worst case stays held.
        """
        with self._lock:
            self._reserved.add(amount, -1)
            if usage is not None:
                self._spent += usage
                pico = amount.pico if usage.dollars is None else round(usage.dollars * PICO)
                used = Amount(max(usage.calls, amount.calls), usage.total_tokens, pico)
                self._settled.add(used)
                if estimated:
                    self._unknown.add(Amount(0, max(0, amount.tokens - used.tokens), max(0, amount.pico - used.pico)))
            elif charged:
                self._unknown.add(amount)
        self.serve()

    def hold(self, amount: Amount) -> None:
        """Count an amount as spent that nobody knows whether it was: that of calls which failed before."""
        with self._lock:
            self._unknown.add(amount)

    def queue(
        self, amount: Amount, kept: Callable[[], Amount] = Amount, *, inside: bool = False
    ) -> asyncio.Future[bool]:
        """Wait for room; True says that the amount has been set aside, False that it never will fit.

        Who no longer wants it gives it back with `give_up`. The arguments are those of `reserve`.
        """
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        with self._lock:
            behind = sum(each.inside for each in self._queue) if inside else len(self._queue)
            self._queue.insert(behind, _Queued(future, amount, kept, inside))
        self.serve()  # what was in flight may have been settled between the refusal and the line above
        return future

    def give_up(self, future: asyncio.Future[bool], amount: Amount) -> None:
        """Leave the queue; what was set aside meanwhile is free for the next."""
        if future.done() and not future.cancelled() and future.exception() is None:
            if future.result():
                self.settle(amount, None, charged=False)
        else:
            future.cancel()
            self.serve()

    def stick(self, amount: Amount, sign: int) -> None:
        """What a call has set aside comes back to nobody, as one inside of it waits; with ``sign=-1``, it may again."""
        with self._lock:
            self._stuck.add(amount, sign)
        self.serve()

    def serve(self) -> None:
        """Set aside what those at the head of the queue wait for, first come first served, as far as it fits."""
        if not self._queue:
            return
        served: list[tuple[asyncio.Future[bool], Amount, bool]] = []
        with self._lock:
            while self._queue:
                future, amount, kept, inside = self._queue[0]
                if not future.done():
                    later = kept()
                    fits = self._fits(amount, self._used(), later)
                    if not fits and self._may_fit(amount, later, inside):
                        break
                    if fits:
                        self._reserved.add(amount)
                    served.append((future, amount, fits))
                self._queue.popleft()
        for each in served:
            self._tell(*each)

    def _tell(self, future: asyncio.Future[bool], amount: Amount, fits: bool) -> None:
        def tell() -> None:
            if not future.done():
                future.set_result(fits)
            elif fits:  # it was stopped or cancelled meanwhile
                self.settle(amount, None, charged=False)

        loop = future.get_loop()
        if loop is _running_loop():
            tell()
            return
        try:
            loop.call_soon_threadsafe(tell)
        except RuntimeError:  # it is closed, and nobody waits any more
            if fits:
                self.settle(amount, None, charged=False)

    def _may_fit(self, amount: Amount, kept: Amount, inside: bool) -> bool:
        """Whether there may be room for an amount when what is in flight has been settled."""
        least = self._committed()
        if inside:
            least.add(self._stuck)
        return bool(self._reserved.calls) and self._fits(amount, least, kept)

    def _used(self) -> Amount:
        used = self._committed()
        used.add(self._reserved)
        return used

    def _committed(self) -> Amount:
        committed = Amount()
        committed.add(self._settled)
        committed.add(self._unknown)
        return committed

    def _fits(self, amount: Amount, used: Amount, kept: Amount) -> bool:
        calls, tokens = used.calls + amount.calls + kept.calls, used.tokens + amount.tokens + kept.tokens
        pico, most = used.pico + amount.pico + kept.pico, self._most
        return calls <= most.calls and tokens <= most.tokens and pico <= most.pico

    def _shortage(self, amount: Amount, used: Amount, kept: Amount) -> str:
        """Which limit an amount does not fit, in words."""
        limits = {"calls": self.calls, "tokens": self.tokens, "pico": self._pico}
        name, limit = next(
            (name, limit)
            for name, limit in limits.items()
            if limit is not None and sum([getattr(part, name) for part in (used, amount, kept)]) > limit
        )
        aside, unknown = getattr(self._reserved, name), getattr(self._unknown, name)
        later = getattr(kept, name)
        shown, unit = ("dollars", PICO) if name == "pico" else (name, 1)

        def said(part: int) -> str:
            return f"{part / PICO:g}" if name == "pico" else f"{part:,}"

        budget = f"the {'part' if self.whole else 'budget'} of {said(limit)} {shown if limit != unit else shown[:-1]}"
        if used == kept == Amount():
            text = "" if name == "calls" else ", for its text and the longest answer that max_tokens allows"
            most = f"{said(getattr(self.whole(amount), name))} {shown}" if self.whole else "that"
            return (
                f"{budget} does not allow a single call: the first one may need "
                f"{said(getattr(amount, name))}{text}; raise the budget to {most} or more"
                + ("" if name == "calls" else ", or set a lower max_tokens")
            )
        parts = {
            "spent": getattr(used, name) - aside - unknown,
            "reserved by calls in flight": aside,
            "held for calls whose endpoint did not say what they cost": unknown,
            "kept for the rest of the run": later,
        }
        return (
            f"{budget} does not allow the next call: "
            + "".join([f"{said(part)} {what}, " for what, part in parts.items() if part])
            + f"and the next call may need {said(getattr(amount, name))}"
            + ("" if name == "calls" else ", for its text and the longest answer that max_tokens allows")
            + f"; raise the limit of {shown}"
            + ("" if name == "calls" else " or lower max_tokens")
        )

    def _enough(self, amount: Amount, used: Amount, kept: Amount) -> str:
        """The limits with which there would have been room for an amount, of those that had none, in words."""
        needed = Amount()
        for part in (amount, used, kept):
            needed.add(part)
        most, found, whole = self._most, [], self.whole(needed) if self.whole else needed
        if needed.calls > most.calls:
            found.append(f"{whole.calls:,} calls")
        if needed.tokens > most.tokens:
            found.append(f"{whole.tokens:,} tokens")
        if needed.pico > most.pico:
            found.append(f"${math.ceil(whole.pico * 100 / PICO) / 100:,.2f}")
        return " and ".join(found)

    def __repr__(self) -> str:
        return f"Budget(dollars={self.dollars}, calls={self.calls}, tokens={self.tokens}, remaining={self.remaining})"


class _Queued(NamedTuple):
    """A call that waits for room, as `Budget.reserve` has it."""

    future: asyncio.Future[bool]
    amount: Amount
    kept: Callable[[], Amount]
    inside: bool


def as_amount(used: Usage) -> Amount:
    """A usage in whole numbers; what nobody knows the price of counts as free."""
    return Amount(used.calls, used.total_tokens, round((used.dollars or 0.0) * PICO))


def as_usage(amount: Amount) -> Usage:
    """An amount as a usage, whose tokens are given as output tokens."""
    return Usage(calls=amount.calls, output_tokens=amount.tokens, dollars=amount.pico / PICO)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
