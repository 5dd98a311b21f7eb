"""The law of the budget, by a machine that calls, answers, fails and gives up in every order it can think of."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from textgrad_engine.errors import BudgetExceeded
from textgrad_engine.llm import Budget, Usage
from textgrad_engine.llm.amounts import Amount

PICO = 10**12


# No lambdas: hypothesis 6.100 reads the source of one at each step, which takes minutes.
def there_is_room(machine):
    return len(machine.flying) < machine.width


def some_fly(machine):
    return bool(machine.flying)


class Account(RuleBasedStateMachine):
    """Calls in flight are kept as their reservations; `width` at most at once."""

    width = 1

    @initialize(
        calls=st.none() | st.integers(0, 40),
        tokens=st.none() | st.integers(0, 4000),
        cents=st.none() | st.integers(0, 400),
    )
    def begin(self, calls, tokens, cents):
        self.budget = Budget(dollars=None if cents is None else cents / 100, calls=calls, tokens=tokens)
        self.flying = []
        self.settled = self.unknown = 0

    @precondition(there_is_room)
    @rule(many=st.integers(1, 64), tokens=st.integers(1, 300), cents=st.integers(0, 30))
    def call(self, many, tokens, cents):
        for _ in range(min(many, self.width - len(self.flying))):
            amount = Amount(1, tokens, cents * PICO // 100)
            before = self.used()
            try:
                if self.budget.reserve(amount):
                    self.flying.append(amount)
                else:
                    assert self.flying, "told to wait, with nothing in flight to wait for"
                    assert self.used() == before
                    return
            except BudgetExceeded:
                assert self.used() == before
                assert not self.fits_alone(amount), "refused, though it would fit when nothing is in flight"
                return

    def end(self, data):
        return self.flying.pop(data.draw(st.integers(0, len(self.flying) - 1)))

    @precondition(some_fly)
    @rule(data=st.data())
    def answer(self, data):
        amount = self.end(data)
        tokens = data.draw(st.integers(0, amount.tokens))
        known = data.draw(st.booleans())
        dollars = data.draw(st.floats(0, 1)) * amount.pico / PICO if known else None
        self.budget.settle(amount, Usage(calls=1, output_tokens=tokens, dollars=dollars), charged=True)
        self.settled += 1

    @precondition(some_fly)
    @rule(data=st.data())
    def lose(self, data):
        self.budget.settle(self.end(data), None, charged=True)
        self.unknown += 1

    @precondition(some_fly)
    @rule(data=st.data())
    def refuse(self, data):
        self.budget.settle(self.end(data), None, charged=False)

    @precondition(some_fly)
    @rule(data=st.data())
    def answer_without_usage(self, data):
        amount = self.end(data)
        tokens = data.draw(st.integers(0, amount.tokens))
        before = self.used()[1]
        guess = Usage(calls=1, output_tokens=tokens, dollars=0.0)
        self.budget.settle(amount, guess, charged=True, estimated=True)
        self.settled += 1
        assert self.used()[1] == before

    def fits_alone(self, amount):
        b, pico = self.budget, self.budget._committed().pico
        spent, unknown = b.spent, b.unknown
        return (
            (b.calls is None or spent.calls + unknown.calls + amount.calls <= b.calls)
            and (b.tokens is None or spent.total_tokens + unknown.total_tokens + amount.tokens <= b.tokens)
            and (b.dollars is None or pico + amount.pico <= round(b.dollars * PICO))
        )

    def used(self):
        spent, unknown, reserved = self.budget.spent, self.budget.unknown, self.budget.reserved
        return (
            spent.calls + unknown.calls + reserved.calls,
            spent.total_tokens + unknown.total_tokens + reserved.total_tokens,
        )

    @invariant()
    def settled_reserved_and_unknown_never_exceed_the_limit(self):
        if not hasattr(self, "budget"):
            return
        calls, tokens = self.used()
        assert self.budget.calls is None or calls <= self.budget.calls
        assert self.budget.tokens is None or tokens <= self.budget.tokens
        used = self.budget._used()  # in picodollars, exact
        assert self.budget.dollars is None or used.pico <= round(self.budget.dollars * PICO)
        remaining = self.budget.remaining
        assert remaining.calls is None or remaining.calls == self.budget.calls - calls
        assert remaining.tokens is None or remaining.tokens == self.budget.tokens - tokens

    @invariant()
    def nothing_is_counted_twice_or_lost(self):
        if not hasattr(self, "budget"):
            return
        assert self.budget.spent.calls == self.settled
        assert self.budget.unknown.calls == self.unknown
        assert self.budget.reserved.calls == len(self.flying)
        assert self.budget.reserved.total_tokens == sum(amount.tokens for amount in self.flying)


@pytest.mark.parametrize("width", [1, 16, 64])
def test_the_sum_never_exceeds_the_limit_at_any_concurrency(width):
    """Whatever is asked, answered, lost and refused, in whatever order."""
    from hypothesis.stateful import run_state_machine_as_test

    machine = type(f"Account{width}", (Account,), {"width": width})
    run_state_machine_as_test(machine, settings=settings(max_examples=25, stateful_step_count=40, deadline=None))
