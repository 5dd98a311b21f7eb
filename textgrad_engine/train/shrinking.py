"""`shrink`: the shortest prompt that a paired race does not show to be worse."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from textgrad_engine import dispatch
from textgrad_engine.attributes import attributes_told
from textgrad_engine.autograd import Variable
from textgrad_engine.checks import Range, at_least, check
from textgrad_engine.data import Examples
from textgrad_engine.errors import BudgetExceeded, DataError
from textgrad_engine.keywords import names_told
from textgrad_engine.llm.meters import meter
from textgrad_engine.llm.response import Usage
from textgrad_engine.nn import Module
from textgrad_engine.optim.contracts import Contract
from textgrad_engine.optim.contracts.standard import slots_stay
from textgrad_engine.optim.growing import AT_ONCE
from textgrad_engine.optim.search.objective import Texts, tokens_of
from textgrad_engine.optim.search.race import KEEP
from textgrad_engine.optim.search.threshold import MOST_STEPS
from textgrad_engine.optim.shrink import shrink as leave_out
from textgrad_engine.optim.texts import texts_now, write_texts
from textgrad_engine.train.comparison import Comparison, compare
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.fields import check_examples
from textgrad_engine.train.front import FrontPoint
from textgrad_engine.train.guards import Guards
from textgrad_engine.train.interrupt import interruptible, stopping_on_interrupt
from textgrad_engine.train.noninferiority import ERROR, MOST_ASKED, MOST_FRESH, AsGood, usual_margin
from textgrad_engine.train.objective import Objective
from textgrad_engine.train.shorter import MOST_LOOKS, ShorterTexts, most_searched

Ended: TypeAlias = Literal["finished", "tries", "budget", "noise", "runs"]

USUAL_RUNS = 8, 39
"""So many runs of each example are usual. Simulated, 20 to 150 lines of which 7 matter and 96 examples: 8 runs where
nothing slips, 20 to 23 on the average where 2 answers of 100 do, 35 to 39 where 10 do, and 59 at most."""


def most_runs(examples: int, texts: int = 1, lanes: int = 1) -> int:
    """So many runs of the program on an example `shrink` makes at most.

    Args:
        examples: how many there are.
        texts: how many texts are shrunk.
        lanes: so many races at a time.
    """
    # A search is looked at between races and rounds, so one of those may have begun. Then it is asked what single
    # examples keep, and both texts are shown.
    race = 1 + MOST_LOOKS
    begun = max(lanes * race * examples, examples + AT_ONCE * (1 + MOST_STEPS))
    shown = MOST_ASKED + race + 3 * MOST_FRESH
    return examples * (race + MOST_FRESH) + texts * (examples * (1 + shown) + most_searched(examples) + begun)


@attributes_told
@dataclass(frozen=True)
class ShrinkResult:
    """The result of shrinking.

    Attributes:
        before: the texts that were given, by dotted name.
        after: the short ones.
        removed: for each text the numbers of the lines that it does without, from 1; the sentences of long lines count
            as lines (`optim.shrink.Shrunk`).
        tokens: how many tokens the texts have together, before and after.
        before_val: the given texts on the validation set.
        after_val: the short ones on it. They were chosen there, so it flatters them.
        comparison: the short texts against the given ones there.
        tried: how many shorter texts were raced.
        front: the given texts and all that were raced and that guards did not refuse, those that no other beats by
            fewer tokens or a higher score without losing in the other, longest first. Where a race ended early, the
            score is what it leads to expect.
        margin: the mean may be lower by less than this, as a share of the scores' scale.
        at_worst: by how much it may be lower with the short texts, but for 5%; 0 where nothing was left out.
        refused: for each text of which a shorter one was found than it has now, by how much the mean may be lower with
            that: by more than `margin`; infinite where too few answers were to be had, or the budget was spent before
            that was known.
        needed: where a text was not begun with, as nothing could be shown of it (``"noise"``), how many examples would
            do, and which margin, above 1 where none would; else None.
        ended: ``"finished"``, or what ended it before every line was tried: ``"tries"`` (`max_tries`), ``"budget"``,
            ``"runs"`` (as many as a search may take: `most_runs`), or ``"noise"``: these examples, and answers that
            change so much by themselves, could not show 9 times in 10 that a text is just as good, so nothing was
            looked for.
        usage: what it used.
    """

    before: dict[str, str]
    after: dict[str, str]
    removed: dict[str, tuple[int, ...]]
    tokens: tuple[int, int]
    before_val: Evaluation
    after_val: Evaluation
    comparison: Comparison
    tried: int
    front: tuple[FrontPoint, ...]
    margin: float
    at_worst: float
    refused: dict[str, float]
    needed: tuple[int, float] | None
    ended: Ended
    usage: Usage


@dispatch.waits("await train.ashrink(...)")
@names_told
def shrink(
    program: Module,
    loss: Callable[..., Variable],
    val: Examples[Mapping[str, Any]],
    *,
    target: str = "target",
    parameters: Sequence[Variable] | None = None,
    contracts: Iterable[Contract] | Mapping[str, Iterable[Contract]] = (),
    guards: Guards | None = None,
    clusters: str | None = None,
    doubt: float = KEEP,
    margin: float | None = None,
    allowance: int | None = None,
    max_tries: int | None = None,
    lanes: int = 1,
    concurrency: int | None = None,
    seed: int = 0,
    on_score: Callable[[int], None] | None = None,
) -> ShrinkResult:
    r"""Leave out the lines of a program's texts that it does not need; the program holds the short texts afterwards.

    It begins with next to nothing, and puts in the lines that single examples lack (`optim.growing`), so the cost
    depends on the lines that are needed. Then each of these is ablated. A shorter text is raced against the given
    texts, never against the last short one, or small losses would add up. Before that, it is measured how often answers
    vary by themselves; an example that got worse is run again (`train.shorter`). Several texts are shrunk one after the
    other.

    The result is shown to be as good by answers that chose nothing (`train.noninferiority`): first the text that was
    put together, then the shortest. The first of these for which that is not shown ends it, with what was shown before.

    Of simulated prompts of 150 lines, of which 7 matter, 96 examples leave these 7 after some 800 calls; after 2,200
    where 2 answers of 100 go wrong by themselves, and 3,400 where 10 do. A line that makes all answers better, and that
    no example by itself tells of, takes 1,700 to 4,700 calls.

    Args:
        program: the module.
        loss: called with the prediction and the example's target; its data must be a number (higher is better).
        val: the examples to race on; not the test set, as they choose.
        target: the field that holds an example's target.
        parameters: what is shrunk; None for all parameters of the program that require grad.
        contracts: what each text must keep, beside its ``{slots}``, for which `optim.Placeholders` may say otherwise;
            by dotted name where they must keep different things. What a text does not keep as it is given, as it lacks
            a phrase that only another one is to have, is not asked of it, since leaving out lines could not repair it.
        guards: what must not break.
        clusters: the field that says which examples belong together; races, intervals and the verdict then do not take
            them for independent.
        doubt: a line stays if the texts are worse without it with this probability, by the examples whose change is no
            slip; above 0.5. It also stays if the mean of all is worse with 97.5%.
        margin: the short texts stay only where the mean is shown to be lower by less than this, as a share of the
            scores' scale, in answers that chose nothing; of runs with texts that are worse by that, 5% take them
            (`train.noninferiority`). None is 0.05, or 6 of the examples where there are fewer than 120; of fewer than
            24 it is 0.25, or, of fewer than 11, what is shown where none of them loses.
        allowance: at most so many examples in a race; None for all.
        max_tries: the most races for each text; None sets no limit.
        lanes: how many races run at a time. It does not change the result; some races turn out not to have been needed.
        concurrency: at most so many examples at once; None leaves it to the models' own limits.
        seed: of the order of the examples in races.
        on_score: called when another example of the first evaluation has its score; on any thread.

    Raises:
        DataError: there are no examples, or one lacks a field.
        ValueError: a number is out of range, or there is nothing to shrink.
        BudgetExceeded: the budget does not allow to run the given texts; later it ends shrinking with what was found.
        ModelError: the models cannot be asked at all.

    Example:
        >>> from textgrad_engine import nn
        >>> from textgrad_engine.testing import FunctionModel
        >>> def model(request):
        ...     text = request.messages[-1].text
        ...     return text.upper() if "Shout" in request.messages[0].text else text
        >>> system = nn.Parameter("Repeat.\nShout.\nBe kind.", role="system prompt")
        >>> program = nn.ChatCompletion("{word}", system=system, model=FunctionModel(model))
        >>> rows = [{"word": word, "target": word.upper()} for word in ("one", "two", "three", "four")]
        >>> found = shrink(program, nn.ExactMatch(), rows)
        >>> found.after, found.removed
        ({'system': 'Shout.'}, {'system': (1, 3)})
    """
    counts = at_least(1, "allowance", "max_tries", "lanes", "concurrency")
    check(shrink, locals(), counts, _PROBABLE, _SHARE)
    every = check_examples(val, "val", "shrink")
    if len(every) == 0:
        raise DataError("there is nothing to shrink on: there are no examples")
    objective = Objective(
        program,
        loss,
        every,
        target=target,
        concurrency=concurrency,
        parameters=parameters,
        guards=guards,
        clusters=clusters,
    )
    named = dict(zip(objective.names, objective.parameters))
    start, kept = texts_now(objective.parameters), _contracts_of(named, contracts)
    objective.adopt(start)
    with meter() as used:
        before = objective.evaluation(start, on_score)
        races = ShorterTexts(objective, start, before, doubt, allowance, seed)
        margin = usual_margin(objective, before, ERROR / len(start)) if margin is None else margin
        shortening = _Shortening(objective.names, start, races, margin, kept)
        for number in range(len(start)):
            shortening.shorten(number, lanes=lanes, max_tries=max_tries)
        now = shortening.texts
        after = races.evaluation(now)
    write_texts(objective.parameters, now)
    return ShrinkResult(
        before=dict(zip(objective.names, start)),
        after=dict(zip(objective.names, now)),
        removed=shortening.removed,
        tokens=(tokens_of(start), tokens_of(now)),
        before_val=before,
        after_val=after,
        comparison=compare(before, after),
        tried=len(races.records),
        front=races.front({now: after.mean}),
        margin=margin,
        at_worst=shortening.at_worst,
        refused=shortening.refused,
        needed=shortening.needed,
        ended=shortening.ended,
        usage=used.total,
    )


class _Shortening:
    """Texts that are made shorter one after the other, and what is known of them by then.

    Args:
        names: of the texts.
        texts: as they were given.
        races: races shorter ones against these.
        margin: as `shrink` has it.
        contracts: what each text must keep, by its name.

    Attributes:
        texts: as they are now.
        removed: the numbers of the lines that each lost, by its name.
        refused: of texts that were not shown to be as good, by how much the mean may be lower.
        at_worst: by how much that of the texts of now may be.
        needed: what it takes to show that a good text is one, where that cannot be shown; else None.
    """

    def __init__(
        self,
        names: Sequence[str],
        texts: Texts,
        races: ShorterTexts,
        margin: float,
        contracts: Mapping[str, tuple[Contract, ...]],
    ) -> None:
        self._names, self.texts, self._races = names, texts, races
        self._margin, self._contracts = margin, contracts
        self.removed: dict[str, tuple[int, ...]] = dict.fromkeys(names, ())
        self.refused: dict[str, float] = {}
        self.at_worst = 0.0
        self.needed: tuple[int, float] | None = None
        self._error, self._kept_by = 0.0, dict[int, float]()
        self._finished, self._over = True, False

    def shorten(self, number: int, *, lanes: int, max_tries: int | None) -> None:
        """Make one text shorter, as far as that is shown to be as good; a budget that ends leaves it as it is.

        Args:
            number: which one.
            lanes: so many races at a time.
            max_tries: at most so many races; None sets no limit.
        """
        races, name, put = self._races, self._names[number], functools.partial(_put, self.texts, number)
        text = self.texts[number]
        self._error += ERROR / len(self._names)
        races.begin()
        try:
            proof = AsGood(races, put, self._margin, self._error, self._kept_by)
            if proof.fresh is None:
                self.needed = max(self.needed or proof.needed, proof.needed)  # of the smallest share of the error
                return
            work = functools.partial(
                leave_out,
                text,
                functools.partial(races.is_not_worse, put),
                is_shown=proof.is_shown,
                is_over=lambda: races.is_over,
                holds=functools.partial(races.holds, put),
                examples=races.examples,
                slip=races.slip,
                contracts=[each for each in self._contracts[name] if each.problem(text, text) is None],
                lanes=lanes,
                max_tries=max_tries,
            )
            found = dispatch.run(work, label="a shorter text")
        except BudgetExceeded:
            races.spent = True
            return
        self._finished, self._over = self._finished and found.finished, self._over or races.is_over
        self.texts, self.removed[name] = put(found.text), found.removed
        if proof.at_worst is not None:
            self.at_worst, self._kept_by = proof.at_worst, proof.kept_by
        if proof.refused is not None:
            self.refused[name], self._error = proof.refused, 0.0

    @property
    def ended(self) -> Ended:
        """What ended it, as `ShrinkResult` has it."""
        if self._races.spent:
            return "budget"
        if self.needed:
            return "noise"
        return "finished" if self._finished else "runs" if self._over else "tries"


async def ashrink(*args: Any, **kwargs: Any) -> ShrinkResult:
    r"""`shrink` for code that has an event loop of its own; the loop is not blocked.

    When the wait for it is cancelled, nothing more is sent, the program keeps its texts, and the wait is over when that
    is so.

    Example:
        >>> import asyncio
        >>> from textgrad_engine import nn
        >>> from textgrad_engine.testing import FunctionModel
        >>> system = nn.Parameter("Repeat.\nBe kind.", role="system prompt")
        >>> model = FunctionModel(lambda request: request.messages[-1].text)
        >>> program = nn.ChatCompletion("{word}", system=system, model=model)
        >>> rows = [{"word": word, "target": word} for word in ("one", "two", "three", "four")]
        >>> asyncio.run(ashrink(program, nn.ExactMatch(), rows)).removed
        {'system': (2,)}
    """

    def work() -> ShrinkResult:
        with stopping_on_interrupt():
            return shrink(*args, **kwargs)

    return await interruptible(work)


def _contracts_of(
    named: Mapping[str, Variable], given: Iterable[Contract] | Mapping[str, Iterable[Contract]]
) -> dict[str, tuple[Contract, ...]]:
    """What each text must keep, by its name; its slots in any case.

    Raises:
        ValueError: there is no text of a name.
    """
    if not isinstance(given, Mapping):
        given = dict.fromkeys(named, tuple(given))
    elif unknown := [name for name in given if name not in named]:
        raise ValueError(f"contracts names {unknown[0]!r}, and what is shrunk is {', '.join(named)}")
    wanted = {name: tuple(given.get(name, ())) for name in named}
    return {name: (*slots_stay(own, named[name]), *own) for name, own in wanted.items()}


def _put(texts: Texts, number: int, text: str) -> Texts:
    return (*texts[:number], text, *texts[number + 1 :])


_SHARE = Range("above 0 and at most 1", lambda value: 0 < value <= 1, ("margin",))
_PROBABLE = Range("above 0.5 and at most 1", lambda value: 0.5 < value <= 1, ("doubt",))
