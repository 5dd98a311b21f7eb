"""Runs of a program on examples: which of its calls is shown to which of its prompts, as a demonstration.

NOTE [Whose demonstration]
    A prompt is shown what the calls that use it were given, and what they answered, in a run whose end is right (DSPy
    traces its predictors for that). A run that makes one call is that call: it is shown as the example's own fields and
    what the program said, unless Python took that out of another answer, such as JSON. Of several calls that use one
    prompt in a run the last one is shown, as it is the nearest to the end that was found right: in a loop that improves
    a text, those before it were not good enough. Where some of them gave the program's answer, it is the last of these:
    in a vote, others were wrong. (DSPy takes the last or any other, at even chances.) A prompt that a run has no use
    for has no demonstration of it.
    A text that describes a tool has none: there the model looks for what the tool does, not for how to answer.
    What no text can hold, such as an image, no demonstration shows: with words in its place it would teach that all
    else has this answer. So no call that is given images is shown, and an example with images only to prompts whose
    calls are not given these.
    The data's own answers are those of the whole program. They are shown to a prompt whose call gives the program's
    answer as it is, and with those of the example's fields that this call is given, in more than half of the runs
    that use it. A target that is one field of an answer is none, nor a word where the form of the answers is JSON.
    Where some runs use a prompt and others do not, as behind a router, it is shown the data's answers of
    those examples whose runs use it: what is another specialist's says nothing of its own. Of an example without a
    run nobody knows that, unless nearly all runs use the prompt.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from textgrad_engine.optim.demos import Demo, HasDemos

MOSTLY = 0.9
"""A text that so large a share of the runs use is not behind a branch; what leaves it out is an exception."""


@dataclass(frozen=True)
class Asked:
    """One call of a model in a run of a program.

    Attributes:
        texts: the positions of the trained texts that it uses.
        given: what it was asked about, by name: not what it was told to do.
        answer: what was answered.
        shows_all: whether nothing else was given, such as an image.
        tools: the positions of the trained texts that describe its tools.
        in_form: whether the answer had to have a form (``response_format``).
    """

    texts: tuple[int, ...]
    given: tuple[tuple[str, str], ...]
    answer: str
    shows_all: bool = field(default=True, repr=False)
    tools: tuple[int, ...] = field(default=(), repr=False)
    in_form: bool = field(default=False, repr=False)


@dataclass(frozen=True)
class Run:
    """A program on one example.

    Attributes:
        whole: the example's fields and what the program said; it need not be right.
        asked: its calls, in order.
    """

    whole: Demo
    asked: tuple[Asked, ...]

    def of_text(self, position: int) -> Demo | None:
        """The demonstration for one text of the program; None where it has none. See NOTE [Whose demonstration].

        Args:
            position: of the text.

        Example:
            >>> calls = Asked((0,), (("mail", "My bill?"),), "a bill"), Asked((1,), (("about", "a bill"),), "billing")
            >>> from textgrad_engine.optim.demos import demo_of
            >>> Run(demo_of("t1", {"mail": "My bill?"}, "billing"), calls).of_text(0)
            Demo(inputs=(('mail', 'My bill?'),), answer='a bill', label='', example='t1')
        """
        if self._is_by_one_call_of(position):
            return None if self.whole.unshown else self.whole
        own = [each for each in self.asked if position in each.texts]
        shown = (self._ends(own) or own)[-1:]
        if not shown or not shown[0].given or not shown[0].shows_all:
            return None
        return replace(self.whole, inputs=shown[0].given, answer=shown[0].answer, unshown=())

    def _ends(self, calls: Sequence[Asked]) -> list[Asked]:
        """Those of some calls that answer what the program does; without any, those that do but for case and signs."""
        said = self.whole.answer.strip()
        letters = _letters_of(said)
        same = [call for call in calls if call.answer.strip() == said]
        return same or [call for call in calls if letters and _letters_of(call.answer) == letters]

    def _is_by_one_call_of(self, position: int) -> bool:
        """Whether nothing else than one call, which uses a text as far as one can see, makes the answer."""
        if len(self.asked) != 1:
            return not self.asked
        (call,) = self.asked
        # Where Python puts a prompt into a text, or asks in a way of its own, nobody knows who uses it.
        if position in call.texts:
            return bool(self._ends(self.asked))
        return not call.texts and position not in call.tools

    def uses(self, position: int) -> bool:
        """Whether a text is used, as far as one can see."""
        return self._is_by_one_call_of(position) or any(position in each.texts for each in self.asked)

    def in_form(self, position: int) -> bool:
        """Whether a call that uses a text gives the program's answer, and had to make it an object or a list."""
        ends = self._ends(self.asked)
        if not ends or not (position in ends[-1].texts or self._is_by_one_call_of(position)):
            return False
        return ends[-1].in_form and _holds_values(ends[-1].answer)

    def withheld(self, position: int) -> frozenset[str] | None:
        """The fields that the call is not given which uses a text and gives the program's answer; None without one."""
        if self._is_by_one_call_of(position):
            return frozenset()
        ends = self._ends(self.asked)
        if not ends or position not in ends[-1].texts:
            return None
        return frozenset(
            [name for name, text in self.whole.inputs if not any(text in own for _, own in ends[-1].given)]
        )


def _letters_of(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _holds_values(text: str) -> bool:
    """Whether a text is an object or a list in JSON."""
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False


@dataclass(frozen=True)
class Steps:
    """Which calls of a program use which of its texts, as runs of it tell; see NOTE [Whose demonstration].

    Attributes:
        together: the positions of texts that the same calls use; each text is in one of these.
        withheld: for each text the fields of an example that its call is not given; None where the program's answer is
            none of its answers.
        unseen: the positions of texts that no call is seen to use, of a program that makes several or uses others.
        of_tools: the positions of those that do nothing else than describe tools.
        shares: for each text the share of the runs that use it; none of a program of which no run is known.
        in_form: the positions of texts whose calls give the program's answer as an object or a list, by their form.
    """

    together: tuple[tuple[int, ...], ...]
    withheld: tuple[tuple[str, ...] | None, ...]
    unseen: tuple[int, ...] = ()
    of_tools: tuple[int, ...] = field(default=(), repr=False)
    shares: tuple[float, ...] = field(default=(), repr=False)
    in_form: tuple[int, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, runs: Iterable[Run | None], count: int) -> Steps:
        """Those of a program.

        Args:
            runs: of it, in which its texts may be any; without a known one it is taken for a program of one call.
            count: how many texts it has.

        Example:
            >>> calls = Asked((0,), (("mail", "My bill?"),), "a bill"), Asked((1,), (("mail", "My bill?"),), "billing")
            >>> from textgrad_engine.optim.demos import demo_of
            >>> Steps.of([Run(demo_of("t1", {"mail": "My bill?"}, "billing"), calls)], 2)
            Steps(together=((0,), (1,)), withheld=(None, ()), unseen=())
        """
        known = [run for run in runs if run is not None]
        groups = [set(each.texts) for run in known for each in run.asked if each.texts]
        unseen = set(range(count)).difference(*groups)
        of_tools = unseen.intersection([text for run in known for each in run.asked for text in each.tools])
        unseen -= of_tools
        groups += unseen, of_tools
        together: list[set[int]] = []
        for group in groups:
            apart = [other for other in together if not other & group]
            together = [*apart, group.union(*[other for other in together if other & group])]
        found = sorted(tuple(sorted(group)) for group in together if group)
        many = any(len(run.asked) > 1 or run.asked[0].texts for run in known if run.asked)
        withheld = tuple([_withheld(known, position) for position in range(count)])
        shares = tuple([sum(run.uses(n) for run in known) / len(known) for n in range(count)] if known else ())
        in_form = tuple([n for n in range(count) if _mostly_in_form(known, n)])
        unseen_ones = tuple(sorted(unseen)) if many else ()
        return cls(tuple(found), withheld, unseen_ones, tuple(sorted(of_tools)), shares, in_form)

    @property
    def branches(self) -> bool:
        """Whether one must know the run of an example to tell which texts it gets to, as behind a router."""
        return any(0 < share < MOSTLY for share in self.shares)

    def labelled(self, demo: Demo, position: int, run: Run | None = None) -> Demo | None:
        """An example with its right answer, as one text may show it; None where it may not.

        Args:
            demo: the example's fields and its right answer.
            position: of the text.
            run: of the example, where there was one; it tells whether the example gets to the text.
        """
        withheld = self.withheld[position]
        if withheld is None or demo.part or not set(demo.unshown) <= set(withheld):
            return None
        if position in self.in_form and not _holds_values(demo.answer):
            return None
        share = self.shares[position] if self.shares else 0.0
        if share and not (share >= MOSTLY if run is None else run.uses(position)):
            return None
        inputs = tuple([(name, text) for name, text in demo.inputs if name not in withheld])
        return replace(demo, inputs=inputs, unshown=()) if inputs or not demo.inputs else None


def _mostly_in_form(runs: Sequence[Run], position: int) -> bool:
    """Whether more than half of the runs that use a text end with a call of it whose answer has a form."""
    using = [run for run in runs if run.uses(position)]
    return 2 * sum(run.in_form(position) for run in using) > len(using)


def _withheld(runs: Sequence[Run], position: int) -> tuple[str, ...] | None:
    """What more than half of the runs say that use a text."""
    if not runs:
        return ()
    using = [run for run in runs if run.uses(position)]
    ending = [(run, withheld) for run in using if (withheld := run.withheld(position)) is not None]
    if not 2 * len(ending) > len(using):
        return None
    fields = Counter([name for run, _ in ending for name, _ in run.whole.inputs])
    lacking = Counter([name for _, withheld in ending for name in withheld])
    return tuple([name for name, count in lacking.items() if 2 * count > fields[name]])


class _Examples(HasDemos, Protocol):
    """The same of an `Objective` that also tells what a program asked its models."""

    def runs(self, texts: tuple[str, ...], positions: Sequence[int]) -> list[Run | None]: ...


def demos_and_queries(
    examples: _Examples, texts: tuple[str, ...], scores: Mapping[int, float | None], top: float, position: int
) -> dict[str, Any]:
    """What the training examples give a proposer beside feedback: `Brief.demos` and `Brief.queries`.

    The demonstrations are those of the examples that the program has just solved, with its own answers, and those that
    the data has an answer for, but for the ones that it has just failed; the inputs of these are the queries. All are
    those of one text; see NOTE [Whose demonstration]. Nothing is run.

    Args:
        examples: the objective of a search.
        texts: what the examples were run with.
        scores: of the examples that were run with these texts, by position; None where no answer was to be had.
        top: the score from which an example counts as solved.
        position: of the text that is to be shown them.
    """
    known = {number: score for number, score in scores.items() if score is not None}
    runs = dict(zip(known, examples.runs(texts, list(known))))
    steps = Steps.of(runs.values(), len(texts))
    answered = {number: None if run is None else run.of_text(position) for number, run in runs.items()}
    failed = [number for number, score in known.items() if not score >= top]
    given = enumerate(examples.demos(range(len(examples.train))))
    found = {n: None if demo is None else steps.labelled(demo, position, runs.get(n)) for n, demo in given}
    found |= {number: demo for number, demo in answered.items() if demo is not None}
    asked = [demo for number in failed if (demo := answered[number]) is not None]
    return {
        "demos": tuple([demo for number, demo in found.items() if demo is not None and number not in failed]),
        "queries": tuple([" ".join(text for _, text in demo.inputs) for demo in asked]),
    }
