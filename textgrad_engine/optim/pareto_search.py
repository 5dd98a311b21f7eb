"""`ParetoSearch`: GEPA (arXiv 2507.19457), a population kept by its Pareto frontier, mutated by feedback, and merged.

What is the paper's: candidates that are best on some example live on, and are drawn by how often they are (algorithm
2); a child is made from a minibatch's feedback and comes into the population when its sum of scores there is higher
than its parent's; only then is it scored on the validation set; two candidates with a common ancestor are merged by
taking each prompt from the one that changed it (appendix, system-aware merge).

What is not:

- The feedback is that of our backward pass: a critic is asked about what went wrong, and what it says is traced through
  the graph to the prompts. The paper's reflection sees traces and writes the new prompt in one call; so searches are
  compared on the same feedback here, and a line is traced to the examples that asked for it. With
  ``Trainer(critic=False)`` (``--no-critic``) it is as in the paper: the proposer reads the cases themselves.
- Which prompt to change is drawn by how much of the feedback went to it (`optim.search.credit`); the paper takes turns,
  and spends as many proposals on a prompt that nothing speaks about.
- Where two candidates have both changed one prompt, the paper takes it from the one with the higher score. Here their
  changes are put together line by line when they do not touch the same lines, or the same sentences of long ones, else
  by a model (`proposers.Crossover`): so what both have learned stays, and programs of one prompt can be merged, too.
- Of several common ancestors the youngest counts, where the paper draws one: least has changed since then twice.
- It ends after so many proposals, where the paper counts runs of examples; budgets are the Trainer's and `tg.budget`'s.
- What is measured on the validation set selects, as in the paper; the test set stays sealed, and the final choice is
  the Trainer's, so that all searches end by one rule. Texts that guards refuse stay in the population, as parents.
- GEPA's implementation keeps by ``frontier_type`` what is best by a metric, too, which is ``frontier=`` here. Whether a
  child comes in, whether two candidates can be merged, and which is the best one go by the score there and here. Of an
  example that was not answered a mean says nothing there; here it counts as the first candidate's, and the lead on the
  others.
- Where tokens or seconds have a price, all of this is about scores less it, so of candidates that get the same examples
  right the cheapest holds these examples.

The plain ``>`` on a minibatch of three is kept, as it is the method's rule: it lets chance into the population, which
is what the frontier on the validation set is there for.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from textgrad_engine.autograd import Variable
from textgrad_engine.checks import at_least, check
from textgrad_engine.errors import UNANSWERED
from textgrad_engine.keywords import names_told
from textgrad_engine.llm.model import Model
from textgrad_engine.optim.contracts import Contract
from textgrad_engine.optim.demo_runs import demos_and_queries
from textgrad_engine.optim.gather import gather
from textgrad_engine.optim.proposers import Proposer, Rewrite
from textgrad_engine.optim.search.credit import credit
from textgrad_engine.optim.search.drafts import Draft, Job
from textgrad_engine.optim.search.evolving import Outcome, PopulationSearcher, in_words, lost
from textgrad_engine.optim.search.frontier import Places, PopulationFrontier
from textgrad_engine.optim.search.merging import Pair, merged, pairs_in
from textgrad_engine.optim.search.objective import Objective, Texts, after_costs, worths
from textgrad_engine.optim.search.volume import Range, Sizes, Volume
from textgrad_engine.optim.settings import may_show, reads_words
from textgrad_engine.optim.transforms import FeedbackTransform

GLANCE = 5
"""So many validation examples decide whether a merged candidate is worth scoring on all, as in the paper's code."""


class ParetoSearch(PopulationSearcher):
    """Searches with a population: reflective mutation, acceptance on a minibatch, a Pareto frontier, merges.

    It is GEPA (arXiv 2507.19457); ``help("textgrad_engine.optim.pareto_search")`` says where it departs from the paper.

    Args:
        params: the parameters, or groups of them with their own settings.
        model: the model that writes new texts; None stands for the optimizer of `use_models`.
        proposer: makes a new text of a parameter from feedback; None is `proposers.Rewrite`, as in the paper.
        batch_size: training examples of a minibatch.
        proposals: after how many proposals the search is finished.
        merges: the most merges that are tried, each after a mutation came into the population.
        frontier: which texts live on, to be changed and merged: those that are best on a validation example
            (``"instance"``, as in the paper). If the score is made of several metrics (`nn.Weighted`), or of criteria
            that all examples share (`nn.Rubric`), also: those that are best by the mean of a metric (``"objective"``),
            in one or the other (``"hybrid"``), or on an example by a metric (``"cartesian"``), as in GEPA's
            implementation (``frontier_type``).
        max_edits: the most edits in a proposal, if the proposer makes edits.
        constraints: texts that the model is told, and contracts that are checked (`optim.contracts`).
        max_tokens: the most tokens in a parameter. None stands for 2,000, or for 1.5 times the longest text of its
            group at the start, if that is more.
        max_feedback_tokens: the most tokens of feedback that are shown; beyond it whole items are left out.
        transforms: changes to the feedback before it is shown, e.g. ``[cluster(), worst_first()]``; None is
            ``[dedupe()]``. They must be stateless, as proposals do not know of each other.
        feedback_batch_size: how many examples may share one feedback call.
        seed: of the minibatches, of which candidate is drawn, and of the merges.

    Raises:
        ValueError: there is no parameter, or a setting is out of range. A step, and a Trainer before its first call:
            the frontier is of metrics, and the score is not made of several.
        TypeError: a setting is of a wrong kind.

    Example:
        >>> from textgrad_engine import nn, use_models
        >>> from textgrad_engine.testing import FunctionModel
        >>> from textgrad_engine.train import Objective
        >>> def model(request):
        ...     if request.purpose == "backward":
        ...         return {f"case_{n}": {"system": "Say to shout."} for n in range(1, 4)}
        ...     if request.purpose == "optimizer":
        ...         return {"text": "Repeat. Shout.", "reason": "asked for"}
        ...     text = request.messages[-1].text
        ...     return text.upper() if "Shout" in request.messages[0].text else text
        >>> system = nn.Parameter("Repeat.", role="system prompt")
        >>> program = nn.ChatCompletion("{word}", system=system)
        >>> rows = [{"word": word, "target": word.upper()} for word in "one two three four".split()]
        >>> search = ParetoSearch(program.parameters())
        >>> with use_models(forward=FunctionModel(model)):
        ...     search.step(Objective(program, nn.ExactMatch(), rows)).why
        'better on its minibatch (0.000 -> 1.000), and the best on validation (1.000)'
        >>> system.data
        'Repeat. Shout.'

        Where a score is made of metrics, what is best by one of them can be kept for its sake:

        >>> brief = nn.Metric(lambda said, _: len(said) < 4, "is at most three letters long", scale=(0, 1))
        >>> loss = nn.Weighted({"right": nn.ExactMatch(), "brief": brief}, {"right": 4, "brief": 1})
        >>> system.data = "Repeat."
        >>> search = ParetoSearch(program.parameters(), frontier="hybrid")
        >>> with use_models(forward=FunctionModel(model)):
        ...     search.step(Objective(program, loss, rows)).why
        'better on its minibatch (0.067 -> 0.867), and the best on validation (0.900)'
    """

    _several = "; proposals= says how many it tries, one after the other"
    _has_solved = True

    @names_told
    def __init__(
        self,
        params: Iterable[Variable | Mapping[str, Any]],
        model: str | Model | None = None,
        *,
        proposer: Proposer | None = None,
        batch_size: int = 3,
        proposals: int = 100,
        merges: int = 5,
        frontier: Places = "instance",
        max_edits: int = 4,
        constraints: Iterable[Contract | str] = (),
        max_tokens: int | None = None,
        max_feedback_tokens: int = 8000,
        transforms: Iterable[FeedbackTransform] | None = None,
        feedback_batch_size: int = 8,
        seed: int = 0,
    ) -> None:
        settings = {
            "constraints": constraints,
            "max_tokens": max_tokens,
            "max_feedback_tokens": max_feedback_tokens,
            "transforms": transforms,
        }
        super().__init__(params, settings, model, seed)
        self.proposer = self._proposer(proposer, Rewrite())
        most = at_least(1, "batch_size", "proposals", "max_edits", "feedback_batch_size")
        check(ParetoSearch.__init__, locals(), most, at_least(0, "merges"))
        self.batch_size, self.proposals, self.frontier = batch_size, proposals, frontier
        self.merges, self.max_edits, self.feedback_batch_size = merges, max_edits, feedback_batch_size
        self._drawn = 0
        self._merge_due = False
        self._merged: list[tuple[int, int]] = []
        self._best_somewhere = PopulationFrontier()
        self._order: tuple[str, list[int]] = ("", [])  # the examples in that of an epoch, by its name

    @property
    def reads_runs(self) -> bool:
        """Whether its proposer may show what was solved."""
        return may_show(self.proposer)

    @property
    def hears_critic(self) -> bool:
        """Whether its proposer reads what is said of answers."""
        return reads_words(self.proposer)

    @property
    def _looks_at_metrics(self) -> bool:
        return self.frontier != "instance"

    def check_metrics(self, metrics: Sequence[str]) -> None:
        """Refuse a score of one metric where the frontier is of several; see `Searcher.check_metrics`."""
        if self._looks_at_metrics and len(metrics) < 2:
            raise ValueError(
                f"ParetoSearch(frontier={self.frontier!r}) keeps texts that are best by one of several metrics, and "
                "this score is one; give an nn.Weighted of several as the loss, such as "
                'nn.Weighted({"right": nn.ExactMatch(), "polite": nn.Judge("Is it polite?")}), or leave frontier away'
            )

    def volume(self, sizes: Sizes) -> Volume:
        """How much it will do; see `Searcher.volume`."""
        most = sizes.decisions(self.proposals)
        batch, merges = min(self.batch_size, sizes.train), min(self.merges, most // 2)
        usual = sizes.usually(most)
        entered = sizes.val + 2 * sizes.guarded
        extra = self.most_asked_by_transforms()
        return Volume(
            decisions=Range(0, most, usual),
            examples=Range(0, most * (2 * batch + entered) + merges * GLANCE, usual * (1.7 * batch + 0.45 * sizes.val)),
            feedback=Range(0, most * batch, usual * batch),
            asked=Range(0, 2 * (most + merges * (sizes.parameters - 1)) + extra * most, (0.8 + bool(extra)) * usual),
            shared=min(self.feedback_batch_size, batch),
            waits=(
                Range(0, 4 * most, 1.6 * usual),
                Range(0, most, 0.8 * usual),
                Range(0, (2 + extra) * most, (0.8 + bool(extra)) * usual),
            ),
            growth=Range(0, self.room_to_grow(), 100),
            told=Range(0, self.most_told(), 40 * batch),
        )

    def _memory(self) -> dict[str, Any]:
        return {"drawn": self._drawn, "merge_due": self._merge_due, "merged": [list(pair) for pair in self._merged]}

    def _remember(self, memory: Mapping[str, Any]) -> None:
        self._drawn, self._merge_due = int(memory.get("drawn", 0)), bool(memory.get("merge_due", False))
        self._merged = [(int(one), int(other)) for one, other in memory.get("merged", ())]

    def _propose(self, objective: Objective) -> Sequence[Outcome]:
        if self._count >= self.proposals:
            return ()
        number = self._next_number()
        rng = random.Random(f"{self.seed}/{number}")
        if self._merge_due and len(self._merged) < self.merges:
            self._merge_due = False
            if pairs := self._pairs():
                return (self._merge(objective, number, rng.choice(pairs), rng),)
        return (self._mutation(objective, number, rng),)

    # Reflective mutation.

    def _mutation(self, objective: Objective, number: int, rng: random.Random) -> Outcome:
        counts = self._frontier()
        parent = rng.choices(list(counts), weights=list(counts.values()))[0]
        draft = self._reflected(objective, number, parent, rng)
        texts, old = draft.candidate.texts, self.population.candidates[parent].texts
        if texts == old:
            return Outcome(draft, draft.dropped or self._why_nothing(draft), vain=bool(draft.written))
        if self.population.number_of(texts) is not None:
            return Outcome(draft, "it is in the population already", vain=True)
        return _judged(draft, functools.partial(self._against_parent, objective, draft, old))

    def _why_nothing(self, draft: Draft) -> str:
        """Why a draft has the texts of its parent, where no answer was lost, in words."""
        if draft.written:
            return "nothing was proposed"
        top = self.population.top(draft.scores)
        if all(score is None or score >= top for score in draft.scores):
            return "all answers of its minibatch were right"
        return "there was no feedback on its minibatch"

    def _against_parent(self, objective: Objective, draft: Draft, old: Texts) -> Outcome:
        """Take a mutation in if it is better than its parent on its minibatch."""
        texts = draft.candidate.texts
        after = objective.scores(texts, draft.examples, "train")
        before, now = _sums(
            worths(objective, old, draft.examples, draft.scores, "train"),
            worths(objective, texts, draft.examples, after, "train"),
        )
        if now <= before:
            return Outcome(draft, f"not better on its minibatch ({before:z.3f} -> {now:z.3f}{after_costs(objective)})")
        self._merge_due = True
        why = f"better on its minibatch ({before:z.3f} -> {now:z.3f}{after_costs(objective)})"
        return self._taken_in(objective, draft, why)

    def _reflected(self, objective: Objective, number: int, parent: int, rng: random.Random) -> Draft:
        """A candidate with one text made anew from the feedback on a minibatch; its parent where there was none."""
        candidate = self.population.candidates[parent]
        positions = self._minibatch(len(objective.train))
        with self.hearing(self.feedback_batch_size):
            said = objective.feedback(candidate.texts, positions)
        draft = Draft(
            number=number,
            kind="mutation",
            candidate=replace(candidate, parents=(parent,)),
            examples=positions,
            scores=said.scores,
            feedback=sum(map(len, said.gradients)),
            problems=said.problems,
        )
        credited = credit(said.gradients)
        if not any(credited):
            return draft
        parameter = rng.choices(range(len(credited)), weights=credited)[0]
        (shown,) = gather([self._desk.heard(said.gradients[parameter], candidate, parameter, number)])
        if isinstance(shown, str):
            return replace(draft, problems=(*draft.problems, shown))
        if not shown.items:
            return draft
        solved: dict[str, Any] = {}
        if self.reads_runs:
            scores, top = dict(zip(positions, said.scores)), self.population.top(said.scores)
            solved = demos_and_queries(objective, candidate.texts, scores, top, parameter)
        brief = self._desk.brief(
            candidate,
            parameter,
            step=number,
            max_edits=self.max_edits,
            items=shown.items,
            left_out=shown.left_out,
            history=shown.history,
            **solved,
        )
        (answer,) = self._desk.ask([Job(self.proposer, brief)])
        return self._desk.filled(draft, parameter, brief, answer)

    def _minibatch(self, size: int) -> tuple[int, ...]:
        """The next training examples: each epoch goes over all of them in an order of its own."""
        found: list[int] = []
        while len(found) < min(self.batch_size, size):
            epoch, place = divmod(self._drawn, size)
            drawn = self._order_of(epoch, size)[place]
            if drawn not in found:
                found.append(drawn)
            self._drawn += 1
        return tuple(sorted(found))

    def _order_of(self, epoch: int, size: int) -> list[int]:
        """The order of an epoch; that of the last one that was asked for is kept."""
        name, order = f"{self.seed}/epoch/{epoch}", self._order[1]
        if self._order[0] != name or len(order) != size:
            order = list(range(size))
            random.Random(name).shuffle(order)
            self._order = name, order
        return order

    # Merges.

    def _pairs(self) -> list[Pair]:
        """Pairs of the frontier that have a common ancestor and were not merged yet."""
        known = {(min(pair), max(pair)) for pair in self._merged}
        return [pair for pair in pairs_in(self.population, self._frontier()) if pair.key not in known]

    def _merge(self, objective: Objective, number: int, pair: Pair, rng: random.Random) -> Outcome:
        self._merged.append(pair.key)
        population = self.population
        draft = merged(self._desk, population, pair, number)
        if population.number_of(draft.candidate.texts) is not None:
            return Outcome(draft, draft.dropped or "together they say nothing that is not in the population already")
        return _judged(draft, functools.partial(self._against_parents, objective, draft, pair, rng))

    def _against_parents(self, objective: Objective, draft: Draft, pair: Pair, rng: random.Random) -> Outcome:
        """Take merged texts in if they do not do worse than the better one of both on a few examples."""
        population = self.population
        rows = [population.worth(each) for each in (pair.better, pair.other)]
        positions = _telling(population.known(pair.better), population.known(pair.other), rng)
        scores = objective.scores(draft.candidate.texts, positions)
        new = worths(objective, draft.candidate.texts, positions, scores)
        best, got = max(_sums([row[n] for n in positions], new) for row in rows)
        said = f"on {len(positions) - new.count(None)} examples ({best:z.3f} -> {got:z.3f}{after_costs(objective)})"
        if got < best:
            return Outcome(draft, f"the merged texts do worse {said}")
        return self._taken_in(objective, draft, f"the merged texts do not do worse {said}")

    # What both come to.

    def _frontier(self) -> dict[int, int]:
        return self._best_somewhere.counts(self.population, self.frontier)

    def _taken_in(self, objective: Objective, draft: Draft, why: str) -> Outcome:
        """Take a candidate into the population, and score it on the whole validation set."""
        population = self.population
        number = population.add(draft.candidate)
        population.score(objective, [number], range(len(objective.val)))
        race = population.compared(number, self._best, objective.clusters)
        mean = f"{population.mean(number):z.3f}{after_costs(objective)}"
        if population.lead(number, self._best) > 0:
            return Outcome(draft, f"{why}, and the best on validation ({mean})", number, race)
        return Outcome(draft, f"{why}, so it joins the population (validation {mean})", None, race)


def _judged(draft: Draft, judge: Callable[[], Outcome]) -> Outcome:
    """What a judge says of a draft, who runs examples; the draft is lost where most of them go unanswered."""
    try:
        return judge()
    except UNANSWERED as error:
        return lost(draft, in_words(error))


def _sums(before: Sequence[float | None], after: Sequence[float | None]) -> tuple[float, float]:
    """The means of two lists over the examples that both have scores for; 0 when there is none."""
    both = [(old, new) for old, new in zip(before, after) if old is not None and new is not None]
    count = len(both) or 1
    return sum(old for old, _ in both) / count, sum(new for _, new in both) / count


def _telling(one: Mapping[int, float], other: Mapping[int, float], rng: random.Random) -> list[int]:
    """Validation examples to try merged texts on: about as many where one, the other, and neither is better."""
    both = [position for position in one if position in other]
    parts = [
        [n for n in both if one[n] > other[n]],
        [n for n in both if one[n] < other[n]],
        [n for n in both if one[n] == other[n]],
    ]
    for part in parts:
        rng.shuffle(part)
    mixed = [n for group in itertools.zip_longest(*parts) for n in group if n is not None]
    return sorted(mixed[:GLANCE])
