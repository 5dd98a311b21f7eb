"""`gradcheck`: tells the author of a Function whether its backward rule is sound.

The shape is that of `torch.autograd.gradcheck`, and of `check_grads` in HIPS autograd: the library ships its own proof,
and a failure shows what was expected and what came. Words have no numerical derivative to compare with; what can be
checked is where they go. So marks are put into feedback and inputs, and must turn up where a sound rule brings them.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from textgrad_engine.autograd.gradcheck_marks import (
    CRITIC_MARK,
    HOSTILE,
    VALUE_MARK,
    WHOLE_MARK,
    difference,
    feedback_mark,
    holds,
    hostile,
    is_text,
    marks_in,
    place_of,
    whole_marks,
    with_words,
)
from textgrad_engine.autograd.rehearsal import ENTRY_MARK, OBSERVE, ForwardFailed, Observe, Rehearsal, Run
from textgrad_engine.checks import check
from textgrad_engine.dispatch import aside, waits
from textgrad_engine.errors import AutogradError


@waits("await autograd.agradcheck(...)")
def gradcheck(
    fn: Callable[..., Any],
    inputs: Any,
    *,
    raise_exception: bool = True,
    symmetric: bool | Sequence[tuple[int, int]] = False,
    vary_inputs: bool = True,
    check_values: bool = True,
    observe: Observe | None = None,
) -> bool:
    """Check the backward rule of a Function, or of a program made of several.

    It runs the function some twenty times on copies of the inputs; nobody's `.grad` is touched. Calls of models
    that are chosen by `use_models` are answered by a stand-in that costs nothing. Checked is that

    - every input that wants feedback gets some, together with the others and alone;
    - the rule listens to each of several outputs, to one that has feedback alone and to all together;
    - what is said about the output, every item of it, reaches every gradient, in order: through the critic's prompt
      where a critic is asked; of a batch, what is said about each entry reaches a gradient;
    - the critic is shown the value of the input that it is asked about; without a critic, two gradients that differ
      only in the other input's value, which each of them shows instead of its own, are taken for crossed;
    - a result used twice accumulates in the order of its uses; interchangeable inputs get interchangeable feedback;
    - empty feedback is a true zero, and asks nobody; the start of a pass at a number, which has no words either, is
      none;
    - requests and gradients are the same, byte by byte, when it is repeated and in whatever order models answer;
    - closing tags, template braces and control characters, in feedback and in inputs, come through as they are: into
      each gradient, or into the request whose answer it is.

    Of a loss (what begins a backward pass by itself) the feedback is its own, and no marks are looked for in it; check
    it on inputs that it criticizes.

    Args:
        fn: takes Variables, returns Variables: ``Shout.apply``, a function, a module.
        inputs: its arguments: one Variable, or a tuple or list of arguments, in which Variables may stand inside
            lists and dicts. The Variables with requires_grad=True are checked.
        raise_exception: False returns False instead of raising.
        symmetric: True when the inputs that are checked are interchangeable, or the pairs of their numbers that are.
        vary_inputs: False leaves the inputs as they are, for a function that accepts only certain texts; then hostile
            text is not tried in them.
        check_values: False where the critic cannot be shown the inputs themselves, e.g. because they were
            rewritten on the way to the model, and where gradients tell each input the value of the other.
        observe: makes the stand-in for models; see `rehearsal.Observed`.

    Returns:
        Whether all is well.

    Raises:
        AutogradError: something is not; every finding is named, with what was expected and what came.
        ValueError: no input wants feedback, or `symmetric` names inputs that there are not.

    Example:
        >>> from textgrad_engine import Function, Variable
        >>> class Shout(Function):
        ...     @staticmethod
        ...     def forward(ctx, text):
        ...         return Variable(text.data.upper(), role=text.role)
        ...     @staticmethod
        ...     def backward(ctx, grad_out):
        ...         return f"(before shouting) {grad_out.data}"
        >>> gradcheck(Shout.apply, Variable("hello", role="greeting", requires_grad=True))
        True
    """
    check(gradcheck, locals() | {"symmetric": False, "observe": None})
    if observe is None:
        if not OBSERVE:
            importlib.import_module("textgrad_engine.ops.echo")  # by name: the import statement would point upwards
        observe = OBSERVE[0]
    rehearsal = Rehearsal(fn, tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,), observe)
    if not rehearsal.leaves:
        raise ValueError("gradcheck: no input wants feedback; give at least one Variable with requires_grad=True")
    checks = _Checks(rehearsal, vary_inputs, check_values, _pairs(symmetric, len(rehearsal.leaves)))
    checks.all()
    if checks.findings and raise_exception:
        found = "\n".join(f"- {finding}" for finding in checks.findings)
        raise AutogradError(f"gradcheck of {_name(fn)} found:\n{found}") from checks.cause
    return not checks.findings


async def agradcheck(*args: Any, **kwargs: Any) -> bool:
    """`gradcheck` for code that has an event loop of its own; the loop is not blocked.

    Example:
        >>> import asyncio
        >>> from textgrad_engine import Variable
        >>> asyncio.run(agradcheck(Variable.clone, Variable("hello", requires_grad=True)))
        True
    """
    return await aside(functools.partial(gradcheck, *args, **kwargs))


def _name(fn: Callable[..., Any]) -> str:
    owner = getattr(fn, "__self__", None)
    if isinstance(owner, type):  # Shout.apply
        return f"{owner.__name__}.{fn.__name__}"
    return getattr(fn, "__qualname__", None) or type(fn).__name__


def _pairs(symmetric: bool | Sequence[tuple[int, int]], count: int) -> list[tuple[int, int]]:
    """The pairs of inputs that are interchangeable."""
    if isinstance(symmetric, bool):
        return list(itertools.pairwise(range(count))) if symmetric else []
    for number in itertools.chain.from_iterable(symmetric):
        if not 0 <= number < count:
            raise ValueError(
                f"gradcheck: symmetric names input {number}; {count} want feedback, numbered from 0 in their order"
            )
    return list(symmetric)


@dataclass(frozen=True)
class _Finding:
    check: str
    where: str
    expected: str
    got: str

    def __str__(self) -> str:
        where = f" ({self.where})" if self.where else ""
        return f"{self.check}{where}\n    expected: {self.expected}\n    got:      {self.got}"


class _Stop(Exception):
    """A check cannot go on; what was found is noted."""


class _Checks:
    """The checks; each adds to `findings` what it finds."""

    def __init__(self, rehearsal: Rehearsal, vary: bool, check_values: bool, pairs: list[tuple[int, int]]) -> None:
        self.rehearsal, self.vary, self.check_values, self.pairs = rehearsal, vary, check_values, pairs
        self.findings: list[_Finding] = []
        self.cause: BaseException | None = None
        self.plain = [leaf.data for leaf in rehearsal.leaves]
        self.values = [with_words(data, f" {VALUE_MARK}{n}") if vary else data for n, data in enumerate(self.plain)]
        self.numbers = range(len(self.plain))
        self.outputs = 0
        self.base = Run([], [], repeats=False, is_loss=False)

    def all(self) -> None:
        """Run every check; the first run must succeed, since the others are compared with it."""
        self.outputs = self.rehearsal.outputs()
        with contextlib.suppress(_Stop):
            self.base = self.run("one gradient for each input", [_SAID])
            for number in self.numbers:
                self.gradient("one gradient for each input", self.base, number)
                self.reached("feedback reaches every gradient", self.base, number)
            for check in self.others() if all(self.base.gradients) else ():
                with contextlib.suppress(_Stop):
                    check()

    def others(self) -> list[Callable[[], None]]:
        """The checks behind the first."""
        every: list[Callable[[], None]] = [
            self.value_shown,
            self.not_crossed,
            self.each_input_alone,
            self.each_output_alone,
            self.uses_in_order,
            self.swapped,
            self.repeated,
            self.any_order,
        ]
        if not self.base.is_loss:  # a loss speaks for itself
            every += [self.each_entry, self.several_items, self.zero, self.hostile_feedback, self.start]
        return [*every, self.hostile_inputs] if self.vary else every

    # tools

    def run(self, check: str, said: Sequence[Sequence[str]], values: Sequence[Any] | None = None, **how: Any) -> Run:
        """One run; an error in it is a finding."""
        try:
            return self.rehearsal.run(self.values if values is None else values, said, **how)
        except ForwardFailed as failed:
            error: BaseException | None = failed.__cause__
            expected = "forward takes its inputs with words added to them (where it cannot: vary_inputs=False)"
        except Exception as failed:  # whatever the rule raises is what its author wants to see
            error, expected = failed, "the backward pass succeeds"
        self.cause = self.cause or error
        self.add(check, "", expected, f"{type(error).__name__}: {error}")
        raise _Stop

    def add(self, check: str, where: str, expected: str, got: str) -> None:
        """Note a finding."""
        self.findings.append(_Finding(check, where, expected, got))

    def named(self, number: int) -> str:
        """An input, for messages."""
        role = self.rehearsal.leaves[number].role
        return f"input {number}, {role!r}" if role else f"input {number}"

    def gradient(self, check: str, run: Run, number: int) -> None:
        """There is feedback on an input."""
        if run.gradients[number] is None:
            got = "none: no output depends on it (was its .data used outside of a Function, or the result detached?)"
            self.add(check, self.named(number), "feedback on it", got)
        elif not run.gradients[number]:
            hint = " (a loss that is satisfied sends nothing: check it on inputs that it criticizes)"
            self.add(check, self.named(number), "feedback on it", "None, or empty" + (hint if run.is_loss else ""))

    def reached(self, check: str, run: Run, number: int, marks: Sequence[str] = ()) -> None:
        """What was said about the output is in the feedback on an input, in order."""
        if run.is_loss or not run.gradients[number]:
            return
        text, wanted = run.text(number), marks or _SAID
        places = [place_of(mark, text) for mark in wanted]
        if min(places) >= 0 and places == sorted(places):
            return
        if not run.repeats and all(any(place_of(mark, asked) >= 0 for asked in run.requests) for mark in wanted):
            return  # the model decides what the gradient says; it was told
        words = ", then ".join(repr(mark) for mark in wanted)
        by = " (the critic repeats what its prompt holds)" if CRITIC_MARK in text else ""
        expected = f"the words said about the output, {words}, in its gradient{by}"
        self.add(check, self.named(number), expected, repr(text))

    def same(self, check: str, first: Run, second: Run) -> None:
        """Two runs asked the same and gave the same."""
        if first.requests != second.requests:
            expected, got = difference(first.requests, second.requests)
            self.add(check, "requests", expected, got)
        for number in self.numbers:
            if first.gradients[number] != second.gradients[number]:
                expected, got = difference(first.gradients[number] or [], second.gradients[number] or [])
                self.add(check, self.named(number), expected, got)

    # checks

    def value_shown(self) -> None:
        """Where a critic wrote the feedback on an input, it was shown the input's value."""
        for number in self.numbers if self.check_values else ():
            value = self.values[number]
            if not is_text(value) or not self.base.requests or not self.base.text(number):
                continue
            if self.vary and self.base.repeats:
                text = self.base.text(number)
                shown = CRITIC_MARK not in text or place_of(f"{VALUE_MARK}{number}", text) >= 0
                got = f"a critic that was shown {marks_in(text) or 'none of the values'}"
            else:
                parts = value if isinstance(value, list) else [value]
                shown = all(any(holds(request, part) for request in self.base.requests) for part in parts)
                got = f"{len(self.base.requests)} requests without it, the first of them {self.base.requests[0]!r:.300}"
            if not shown:
                expected = f"its value {value!r:.80} in the request that asks for feedback on it"
                self.add("each input in its own request", self.named(number), expected, got)

    def not_crossed(self) -> None:
        """No critic was asked, and two gradients do not each speak of the other's input."""
        for one, other in itertools.combinations(self.numbers, 2) if self.vary and self.check_values else ():
            texts = self.base.text(one), self.base.text(other)
            values = self.values[one], self.values[other]
            if not all(isinstance(value, str) for value in values) or any(CRITIC_MARK in text for text in texts):
                continue
            if texts[0] == texts[1] or any(place_of(f"{VALUE_MARK}{n}", t) >= 0 for n, t in zip((one, other), texts)):
                continue
            # each as it would be, if it were about its own input
            crossed = texts[0].replace(values[1], values[0]), texts[1].replace(values[0], values[1])
            if crossed == texts[::-1]:
                for number, expected, got in zip((one, other), crossed, texts):
                    self.add("each gradient about its own input", self.named(number), repr(expected), repr(got))

    def each_input_alone(self) -> None:
        """Feedback does not depend on whether other inputs want some."""
        for number in self.numbers if len(self.plain) > 1 else ():
            with contextlib.suppress(_Stop):
                run = self.run("each input alone", [_SAID], wanted=number)
                self.gradient("each input alone", run, number)
                self.reached("each input alone", run, number)

    def each_output_alone(self) -> None:
        """The rule listens to each output, also without feedback on the others and together with them."""
        if self.outputs < 2:
            return
        marks = [feedback_mark(output + 1) for output in range(self.outputs)]
        alone: dict[int, Run] = {}
        for output, mark in enumerate(marks):
            check = f"feedback on output {output} alone"
            with contextlib.suppress(_Stop):
                run = alone[output] = self.run(check, [[mark]], output=output)
                if not run.is_loss and not any(self.hears(run, number, mark) for number in self.numbers):
                    expected = f"the words said about this output, {mark!r}, in a gradient"
                    self.add(check, "", expected, repr([run.text(number) for number in self.numbers]))
        check = "feedback on all outputs"
        together = self.run(check, [_SAID], each_output=[[mark] for mark in marks])
        for output, number in itertools.product(alone, self.numbers):
            mark, run = marks[output], alone[output]
            if not run.is_loss and self.hears(run, number, mark) and not self.hears(together, number, mark):
                expected = f"the words said about output {output}, {mark!r}, in its gradient, as when they come alone"
                self.add(check, self.named(number), expected, repr(together.text(number)))

    def hears(self, run: Run, number: int, mark: str) -> bool:
        """Whether a mark of feedback is in the feedback on an input; it may be in requests to models of one's own."""
        if place_of(mark, run.text(number)) >= 0:
            return True
        return not run.repeats and bool(run.text(number)) and any(place_of(mark, asked) >= 0 for asked in run.requests)

    def each_entry(self) -> None:
        """Feedback on a batch has a text for each entry; all of them count."""
        for mark in [f"{ENTRY_MARK}{entry}" for entry in range(self.base.entries)]:
            if not any(self.hears(self.base, number, mark) for number in self.numbers):
                expected = f"the words said about this entry of the outputs, {mark!r}, in a gradient"
                got = repr([self.base.text(number) for number in self.numbers])
                self.add("feedback on every entry of a batch", "", expected, got)

    def several_items(self) -> None:
        """An output's feedback may be several items; all of them count."""
        run = self.run("all items of feedback", [[feedback_mark(1), feedback_mark(2)]])
        for number in self.numbers:
            self.gradient("all items of feedback", run, number)
            self.reached("all items of feedback", run, number, [feedback_mark(1), feedback_mark(2)])

    def uses_in_order(self) -> None:
        """Used several times, an input gets the feedback of each use, in the order of the uses."""
        check = "fan-out accumulates in order"
        uses = [self.base, *[self.run(check, [[feedback_mark(use)]]) for use in (2, 3)]]
        together = self.run(check, [[feedback_mark(use)] for use in (1, 2, 3)])
        for number in self.numbers:
            expected = [text for use in uses for text in use.gradients[number] or []]
            got = together.gradients[number] or []
            if got != expected:
                self.add(check, self.named(number), *difference(expected, got))

    def swapped(self) -> None:
        """Interchangeable inputs that change places take their feedback with them."""
        for one, other in self.pairs:
            order = list(self.numbers)
            order[one], order[other] = other, one
            roles = [self.rehearsal.leaves[number].role for number in order]
            run = self.run("swapping inputs swaps gradients", [_SAID], [self.values[n] for n in order], roles=roles)
            for here, there in ((one, other), (other, one)):
                if run.gradients[there] != self.base.gradients[here]:
                    where = f"{self.named(here)}, put in the place of input {there}"
                    expected, got = difference(self.base.gradients[here] or [], run.gradients[there] or [])
                    self.add("swapping inputs swaps gradients", where, expected, got)

    def zero(self) -> None:
        """Empty feedback is a true zero."""
        run = self.run("empty feedback makes no call", [[""]])
        if run.requests:
            got = f"{len(run.requests)} requests, the first of them {run.requests[0]!r:.300}"
            self.add("empty feedback makes no call", "", "no request", got)
        for number in self.numbers:
            if run.gradients[number]:
                self.add("empty feedback makes no call", self.named(number), "no feedback", repr(run.text(number)))

    def start(self) -> None:
        """The start of a pass, which has no words, goes on behind a number, or words go on instead."""
        try:
            run = self.rehearsal.run(self.values, [_SAID], numbers_begin=True)
        except Exception:  # a rule may refuse it: only silence is wrong
            return
        if run.is_loss and not any(run.gradients):
            got = (
                "none, as if a loss were satisfied. To pass the gradient on, return it (or a clone), and no text made "
                "of it: the start of a pass has no words. (A loss that is satisfied sends nothing: check it on inputs "
                "that it criticizes.)"
            )
            self.add("a pass begins at a number", "", "a gradient on an input", got)

    def repeated(self) -> None:
        """A second time is like the first."""
        self.same("same on repeat", self.base, self.run("same on repeat", [_SAID]))

    def any_order(self) -> None:
        """Nothing depends on which request is answered first."""
        check = "same at any concurrency"
        said = [[feedback_mark(use)] for use in (1, 2, 3)]
        first = self.run(check, said)
        for seed in (1, 2, 3):
            found = len(self.findings)
            self.same(check, first, self.run(check, said, seed=seed))
            if len(self.findings) > found:
                return

    def hostile_feedback(self) -> None:
        """Hostile text in feedback comes through as it is."""
        run = self.run("hostile text in feedback", [[hostile(0)]])
        for number in self.numbers:
            if holds(run.text(number), hostile(0)):
                continue
            asked = bool(run.requests) and (CRITIC_MARK in run.text(number) or not run.repeats)
            if not asked:
                self.add(
                    "hostile text in feedback", self.named(number), f"as it is: {HOSTILE!r}", repr(run.text(number))
                )
            else:
                self.whole("hostile text in feedback", run, number, 0)

    def hostile_inputs(self) -> None:
        """Hostile text in inputs breaks nothing, and is shown as it is."""
        check = "hostile text in inputs"
        run = self.run(check, [_SAID], [with_words(data, " " + hostile(n)) for n, data in enumerate(self.plain)])
        for number in self.numbers:
            self.gradient(check, run, number)
            asked = run.requests and (CRITIC_MARK in run.text(number) or not run.repeats)
            if asked and self.check_values and is_text(self.plain[number]):
                self.whole(check, run, number, number)

    def whole(self, check: str, run: Run, number: int, which: int) -> None:
        """The request whose answer is the feedback on an input holds the hostile text of a number."""
        if run.repeats and place_of(f"{WHOLE_MARK}{which}", run.text(number)) >= 0:
            return
        without = [request for request in run.requests if which not in whole_marks(request)]
        if not run.repeats and len(without) < len(run.requests):
            return  # which of them was asked about this input only the models know
        expected = f"as it is in the request that asks for feedback on it: {HOSTILE!r}"
        got = f"{len(without)} requests without it" + (f", the first of them {without[0]!r:.300}" if without else "")
        self.add(check, self.named(number), expected, got)


_SAID = [feedback_mark(1)]
