"""What the end of a run takes, kept back from its budget.

NOTE [The end is paid for first]
    Whoever limits a run wants the best prompt that the money buys, and to be told what it is worth. A search can spend
    any budget, and what is left then tells nothing: the test set stays closed, and the validation set flatters what
    was chosen on it. So from the first validation on, a run keeps back what its end takes: the best texts on the
    validation examples that they were not run on yet, and both prompts on the test set. The search ends where it would
    need that. New texts that won on a part of the validation set have the rest of it to come: where there is no room
    for both, the test goes first. Where the test set would take more than half of what is left after the first
    validation, too little would be left to search with, so a part of it is drawn that takes half; where that is too
    small to tell anything, the test set stays closed. The result says either.

    Whoever asks for controls wants them beside a search of as many calls, and gets nothing of a search that took all
    there was. So where they are asked for, each keeps as much as the search and all before it may take, and what its
    texts take on the validation and the test set: of what all ends leave, the search has an equal part. Where that is
    less than the first validation took, or a test of all texts has no room, nothing is kept for them: the search has
    it, and the result says so. So it does where that was too little for a step, which nobody knows before.

    What an example costs is what it cost with the seed texts, answers from the cache counted as if they were paid, and
    with what the budget holds for answers whose endpoint did not say what they used; for longer texts as many tokens
    more as they are longer. Tokens and money vary, so a part more is kept of them, and the worst case of one call of
    the program, without which the last one would not be sent. Calls whose connection was lost may have been answered,
    so they count, and were asked for again: as many more are kept as there were of them so far, and a part more of
    these.
    Where less is left than that in the end, a test is begun that has room if it takes no more than expected. What both
    prompts were run on when the budget is spent is what is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from textgrad_engine.llm.amounts import PICO, UNLIMITED, Amount
from textgrad_engine.llm.reserve import Part, Reserve, waiting
from textgrad_engine.llm.response import Usage

_BESIDE = 1.25
"""Of tokens and money, and of calls that fail, so many times what is expected is kept."""

FEWEST = 20
"""Test examples that a part of the test set has at the least."""

_SORTS = {"calls": ("calls", 1), "tokens": ("tokens", 1), "pico": ("dollars", PICO)}
"""The sorts of an amount: what they are called, and how much of one is one of these."""

_BYTES = 3
"""Bytes of UTF-8 that a token has at the least, in the mean over a text."""


@dataclass(frozen=True)
class _Cost:
    """What running a text on one example takes, in the mean."""

    calls: float
    tokens: float
    pico: float

    def of(self, examples: int) -> Amount:
        return Amount(
            math.ceil(self.calls * examples), math.ceil(self.tokens * examples), math.ceil(self.pico * examples)
        )


class Ending(Reserve):
    """What the end of a run takes, kept from the calls in the block; see NOTE [The end is paid for first].

    Args:
        seed: the bytes of the seed texts.
        prompts: how many texts are trained.
        tests: test examples; 0 for none.
        controls: how many searches without feedback follow.

    Attributes:
        tests: so many of them room is kept for.
        shortage: why it is not kept for all, in words; else "".
        controls: so many searches room is kept for.
        share: what each of them may take, as the optimizer's may; vast where there is no limit.
        no_controls: why none is kept for them, in words; else "".
        unasked: what a run that goes on had paid for, and did not ask for again.
    """

    def __init__(self, seed: int, prompts: int, tests: int, controls: int = 0) -> None:
        super().__init__(decided=False)
        self._seed, self._prompts, self.controls = seed, prompts, controls
        self._held, self._begun = self.held, self.free.calls  # for calls of before
        self.share = Amount(UNLIMITED, UNLIMITED, UNLIMITED)
        self.unasked = Amount()
        self._searches, self.no_controls = Amount(), ""
        self._every = self.tests = tests
        self._cost: _Cost | None = None
        self._call = Amount()  # the most that one of the program may need
        self.shortage = ""

    def learn(self, used: Usage, examples: int) -> None:
        """What running the seed texts on some examples has taken; from now on the end's part is kept."""
        share = 1 / examples
        held = self.held
        held.add(self._held, -1)
        tokens, pico = used.total_tokens + held.tokens, (used.dollars or 0.0) * PICO + held.pico
        self._cost = _Cost(used.calls * share, tokens * share, pico * share)
        self._call = self.largest
        free = self.free
        half = Amount(free.calls // 2, free.tokens // 2, free.pico // 2)
        self.tests = self._that_fit(self._seed, half)
        if self.controls:
            self._share_with_controls(examples, half)
            if not self.controls:
                self.tests = self._that_fit(self._seed, half)
        if self.tests < self._every:
            every = _in_words(self._test(self._seed, self._every), half)
            prompts = "two prompts and those of the controls" if self.controls else "two prompts"
            self.shortage = f"all {self._every} with {prompts} take about {every}"

    def keep_for(self, best: int, missing: int) -> None:
        """Keep what the end takes as of now; nothing as long as it is not known what an example takes.

        Args:
            best: the bytes of the best texts.
            missing: the validation examples that they were not run on yet.
        """
        if self._cost is None:
            return
        amount = self._with_margin(self._cost_of(best).of(missing), best)
        amount.add(self._test(best, self.tests))
        amount.add(self._searches)
        self.parts = self._parts(best, self.tests)
        self.parts["controls"].add(self._searches)
        self.keep(amount)

    def drawn(self, best: int | None) -> int:
        """How many test examples there is room for in the end; None stands for no texts but the seed texts.

        They are no fewer than a run was tested on before that went on with what is on record and came to nothing else.
        """
        if self._cost is None:
            return self._every
        room, on_record, tested = self.free, dict[Part, Amount](), 0
        for each in waiting():
            room.add(each.kept, -1)
            tested = max(tested, 0 if each.moved else each.tested.examples)
            for part, amount in each.parts.items():
                if part != "best" or not each.moved:
                    on_record.setdefault(part, Amount()).add(amount)

        def fits(some: int, controls: bool, spare: bool = True) -> bool:
            parts, new = self._parts(best, some, spare), Amount()
            parts["controls"].add(self._searches)
            for part, amount in parts.items():
                if controls or part != "controls":
                    known = on_record.get(part, Amount())
                    new.add(amount.by(lambda takes, has: max(0, takes - has), known))
            largest = Amount() if new == Amount() else self._largest_with(best or self._seed)
            return Amount(new.calls, new.tokens + largest.tokens, new.pico + largest.pico).within(room)

        drawn = self._most_that(lambda some: fits(some, controls=True))
        # A search that is played back may have more than its part, and a test goes before controls.
        if drawn < self.tests:
            drawn = max(drawn, self._most_that(lambda some: some <= self.tests and fits(some, controls=False)))
        if not drawn:  # it may take no more than expected, and what was run when the budget is spent is kept
            drawn = self._most_that(lambda some: some <= self.tests and fits(some, controls=False, spare=False))
        return max(drawn, tested) if Amount().within(room) else drawn

    def _share_with_controls(self, val: int, half: Amount) -> None:
        """Give the search and each control as much of what is left, or where that is too little, the controls none."""
        fewest = min(self._every, FEWEST)
        if self.tests < fewest:
            takes = _in_words(self._test(self._seed, fewest), half)
            self._leave_controls_out(f"{fewest} test examples with their texts, too, take about {takes}")
            return
        before, tested = self._cost_of(self._seed).of(val), self._test(self._seed, self.tests)
        validated = self._with_margin(before, self._seed)
        share, searches = Amount(UNLIMITED, UNLIMITED, UNLIMITED), Amount()
        for name, left in vars(self.free).items():
            if left >= UNLIMITED:
                continue
            first, later = getattr(before, name), getattr(validated, name)
            rest = left - getattr(tested, name) - self.controls * (first + later)
            part = -(-rest // (self.controls + 1))  # rounded up
            if part < first:
                word, unit = _SORTS[name]
                self._leave_controls_out(
                    f"shared with them it would have left the search {_figure(max(0, part) / unit)} {word}, and the "
                    f"first validation alone took {_figure(first / unit)}"
                )
                return
            setattr(share, name, first + part)
            setattr(searches, name, self.controls * (first + part + later))
        self.share, self._searches = share, searches

    @property
    def no_step(self) -> str:
        """Where a search came to no step beside controls, why, in words; "" where none are kept for."""
        most = [f"{_figure(getattr(self.share, name) / unit)} {word}" for name, (word, unit) in _SORTS.items()]
        limits = [said for said, each in zip(most, vars(self.share).values()) if each < UNLIMITED]
        if not self.controls or not limits:
            return ""
        return (
            f"no step fitted into what the budget has for the search beside controls, {' and '.join(limits)} with the "
            "first validation; raise it, or leave the controls out"
        )

    def unspent(self, used: Usage) -> str:
        """How much the budget has left, and why, in words; "" where that is less than a tenth of it.

        Of several limits it is that which ended the run: one that a call no longer fits into, else the nearest.

        Args:
            used: what the run used.
        """
        pico, free = (used.dollars or 0.0) * PICO, self.free
        free.add(self.unasked, -1)
        found: list[tuple[bool, float, str]] = []
        for name, spent in (("pico", pico), ("tokens", used.total_tokens), ("calls", used.calls)):
            left, most, held = getattr(free, name), getattr(self.largest, name), getattr(self.held, name)
            if left < UNLIMITED // 2:
                share = max(0, left) / (left + spent) if left + spent > 0 else 0.0
                found.append((left >= most, share, self._left(name, left, spent, most, held)))
        return min(found, key=lambda each: each[:2])[2] if found else ""

    def _left(self, name: str, left: int, spent: float, most: int, held: int) -> str:
        """The same of one sort."""
        word, unit = _SORTS[name]
        if (left + held) * 9 < spent or left + held <= 0:
            return ""
        if held * 9 >= spent and held > left:
            return (
                f"{_figure(held / unit)} {word} of the budget are held for calls whose endpoint did not say what "
                "they used: the most that they can have used counts; a lower max_tokens makes that less"
            )
        if left * 9 < spent or left <= 0:
            return ""
        why = (
            f"a call is sent only if its longest answer fits, too, and one may need {_figure(most / unit)}; a lower "
            "max_tokens, or shorter examples, make that less"
            if left < most
            else "they were kept for the end of the run, which took less than it could have"
        )
        return f"{_figure(left / unit)} {word} of the budget are left: {why}"

    def _leave_controls_out(self, why: str) -> None:
        self.controls, self.no_controls = 0, f"the budget had no room for controls: {why}; raise it"

    def _that_fit(self, best: int | None, room: Amount) -> int:
        """So many test examples fit: all, or a part that is large enough to tell something, or none."""
        return self._most_that(lambda some: self._test(best, some).within(room))

    def _most_that(self, fit: Callable[[int], bool]) -> int:
        """The most test examples that fit: all, or a part that is large enough to tell something, or none."""
        parts = [self._every, *range(self._every - 1, FEWEST - 1, -1)]
        return next(filter(fit, parts), 0)

    def _cost_of(self, best: int, spare: bool = True) -> _Cost:
        """What an example takes with texts of a length, where some calls fail as they did so far, or none."""
        assert self._cost is not None
        cost = self._cost
        more = max(0, best - self._seed) / _BYTES * max(1.0, cost.calls / self._prompts)
        tokens = cost.tokens + more
        pico = cost.pico * tokens / cost.tokens if cost.tokens else cost.pico
        return _Cost(cost.calls * (1 + _BESIDE * self._failed * spare), tokens, pico)

    def _largest_with(self, best: int) -> Amount:
        """The most that a call of the program may need with texts of a length, where each byte may be a token."""
        if not self._call.tokens:  # a cache answered
            return self.largest
        tokens = self._call.tokens + max(0, best - self._seed)
        return self.largest.by(min, Amount(1, tokens, -(-self._call.pico * tokens // self._call.tokens)))

    @property
    def _failed(self) -> float:
        """For each call that was answered, so many failed in a way that the budget counts them, too."""
        failed = self.held.calls - self._held.calls
        if self._begun >= UNLIMITED:
            return 0.0
        return failed / max(1, self._begun - self.free.calls - failed)

    def _parts(self, best: int | None, tests: int, spare: bool = True) -> dict[Part, Amount]:
        """What is kept of a test, by whose texts are run; with best texts of None, those are the seed texts.

        Without what is spare, it is what is expected.
        """
        seed, others = [self._cost_of(each, spare).of(tests) for each in (self._seed, best or self._seed)]
        found: dict[Part, Amount] = {"seed": seed, "best": Amount() if best is None else others, "controls": Amount()}
        for _ in range(self.controls):
            found["controls"].add(others)
        return {part: _beside(amount) for part, amount in found.items()} if spare else found

    def _test(self, best: int | None, tests: int) -> Amount:
        """What the seed texts, the best ones, if there are others, and those of controls take on test examples."""
        amount, others = self._cost_of(self._seed).of(tests), self.controls + (best is not None)
        for _ in range(others):
            amount.add(self._cost_of(best or self._seed).of(tests))
        return self._with_margin(amount, best or self._seed)

    def _with_margin(self, amount: Amount, best: int) -> Amount:
        if amount == Amount():
            return amount
        largest, amount = self._largest_with(best), _beside(amount)
        return Amount(amount.calls, amount.tokens + largest.tokens, amount.pico + largest.pico)


def _beside(amount: Amount) -> Amount:
    """What is kept of an amount that is expected."""
    return Amount(amount.calls, math.ceil(amount.tokens * _BESIDE), math.ceil(amount.pico * _BESIDE))


def _figure(amount: float) -> str:
    return f"{round(amount):,}" if amount >= 1e6 else f"{amount:,.6g}"


def _in_words(amount: Amount, half: Amount) -> str:
    """The first sort of which an amount is more than half of what is left, in words."""
    for name, (word, unit) in _SORTS.items():
        wanted, most = getattr(amount, name), getattr(half, name)
        if wanted > most:
            return f"{_figure(wanted / unit)} {word}, more than half of what was left after the first validation"
    raise AssertionError("it fits")
