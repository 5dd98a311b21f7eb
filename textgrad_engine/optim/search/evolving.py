"""`PopulationSearcher`: base of searches that keep a population of candidates, of which one is the best."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter

from textgrad_engine.autograd import Variable
from textgrad_engine.errors import UNANSWERED, ModelError
from textgrad_engine.llm.model import Model
from textgrad_engine.optim.change import Change
from textgrad_engine.optim.search.drafts import Desk, Draft
from textgrad_engine.optim.search.objective import Objective, Texts, metrics_of
from textgrad_engine.optim.search.population import Candidate, Population
from textgrad_engine.optim.search.racing import RaceRecord
from textgrad_engine.optim.search.searcher import Decision, Searcher
from textgrad_engine.optim.search.vain import Vain
from textgrad_engine.optim.texts import texts_now


@dataclass(frozen=True)
class Outcome:
    """What became of a draft.

    Attributes:
        draft: the draft.
        why: in a few words what became of it and why.
        leads: the number of the candidate that is the best from now on; None when it stays the one it is.
        race: the draft's candidate beside the one that was the best, on what was bought; None when nothing was.
        lost: whether it came to nothing because its examples went unanswered.
        vain: whether something was asked for, and nothing new was in it that could be tried.
    """

    draft: Draft
    why: str
    leads: int | None = None
    race: RaceRecord | None = None
    lost: bool = False
    vain: bool = False


@dataclass(frozen=True)
class Round:
    """Drafts that were made and run together, before it is decided about them, as guards are still to look at them.

    Attributes:
        drafts: the drafts.
        before: the number of the candidate that was the best.
        arms: by the number of a draft, that of its candidate, where it was run.
        reasons: by the number of a draft, why it was not.
        vain: the numbers of those in which nothing new could be tried.
        failed: by the number of a candidate, why its examples could not be run.
        record: the highest score of before, where the search's model is shown scores.
    """

    drafts: tuple[Draft, ...]
    before: int
    arms: dict[int, int]
    reasons: dict[int, str]
    vain: tuple[int, ...] = ()
    failed: dict[int, str] = field(default_factory=dict)
    record: float = 0.0


def in_words(error: ModelError) -> str:
    """Why examples could not be run."""
    return f"the examples could not be run: {type(error).__name__}: {error}"


def lost(draft: Draft, why: str) -> Outcome:
    """What becomes of a draft most of whose examples went unanswered; its texts may break the program, others need not.

    Args:
        draft: the draft.
        why: the first failure, `in_words`.
    """
    return Outcome(replace(draft, problems=(*draft.problems, why)), why, lost=True)


def unanswered(draft: Draft) -> Outcome:
    """What becomes of a draft to whose texts there were no answers, where others were run beside it.

    Args:
        draft: the draft.
    """
    why = "its texts got no answers"
    return Outcome(replace(draft, problems=(*draft.problems, why)), why, lost=True)


class PopulationSearcher(Searcher):
    """Base of searches with a population; a subclass proposes, and says which candidate is the best.

    A round of proposals may come to several decisions, which `step` hands out one at a time. The parameters hold the
    texts of the best candidate. What decides inside the population is the rule of the method that a subclass is named
    after; `Decision.race` only shows what the bought scores say, and is no condition.

    Args:
        params: the parameters, or groups of them with their own settings.
        settings: the settings of groups, from `optim.settings.shared`.
        model: who is asked for new texts; None stands for the optimizer of `use_models`.
        seed: of everything random.
    """

    _races = True

    def __init__(
        self,
        params: Iterable[Variable | Mapping[str, Any]],
        settings: Mapping[str, Any],
        model: str | Model | None,
        seed: int,
    ) -> None:
        super().__init__(params, settings)
        self.model, self.seed = model, seed
        self._population: Population | None = None
        self._waiting: deque[Outcome] = deque()
        self._best = 0
        self._begun = self._before = 0
        self._round_run: Round | None = None

    @property
    def population(self) -> Population:
        """All candidates that were taken in, with their scores, for reports and tests.

        Raises:
            RuntimeError: no step was made yet.
        """
        if self._population is None:
            raise RuntimeError("the search has no population before its first step")
        return self._population

    @property
    def expected(self) -> float:
        """The mean validation score that the best candidate is expected to have: the first's, and its gain on that."""
        first, best = self.population.known(0), self.population.known(self._best)
        gains = [best[position] - first[position] for position in first if position in best]
        return sum(first.values()) / len(first) + sum(gains) / (len(gains) or 1) if first else float("-inf")

    def texts(self) -> Texts:
        """The texts of the best candidate so far."""
        return self.population.candidates[self._best].texts

    def state_dict(self) -> dict[str, Any]:
        """State and settings as plain data, with the population and what is decided but not handed out yet."""
        return {
            **super().state_dict(),
            "population": None if self._population is None else self._population.state_dict(),
            "waiting": [asdict(outcome) for outcome in self._waiting],
            "best": self._best,
            "begun": self._begun,
            "before": self._before,
            "memory": self._memory(),
            **({} if self._round_run is None else {"round_run": asdict(self._round_run)}),
        }

    def _reading(self, state: Mapping[str, Any]) -> Callable[[], None]:
        """Read what `state_dict` gave, and change nothing; see `Optimizer._reading`."""
        take = super()._reading(state)
        held = state["population"]
        population = None if held is None else TypeAdapter(Population).validate_python(held)
        waiting = TypeAdapter(list[Outcome]).validate_python(state["waiting"])
        best, begun, memory = int(state["best"]), int(state["begun"]), state["memory"]
        before = int(state["before"])
        run = TypeAdapter(Round | None).validate_python(state.get("round_run"))

        def take_all() -> None:
            take()
            self._population, self._waiting = population, deque(waiting)
            self._best, self._begun, self._before = best, begun, before
            self._round_run = run
            self._remember(memory)

        return take_all

    # For subclasses.

    @property
    def _looks_at_metrics(self) -> bool:
        """Whether its population is to know what each of several metrics gave."""
        return False

    def _propose(self, objective: Objective) -> Round | Sequence[Outcome]:
        """Make one or more proposals and decide about them; nothing when nothing is left to try.

        A round is decided about by `_decided`, where guards run examples again: if a budget or Ctrl-C ends that, the
        next step asks these anew, and nobody for proposals.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a `_propose`")

    def _decided(self, objective: Objective, run: Round) -> Sequence[Outcome]:
        """What becomes of a round that `_propose` gave."""
        raise NotImplementedError(f"{type(self).__name__} gives rounds, and needs a `_decided`")

    def _memory(self) -> dict[str, Any]:
        """What a subclass remembers besides the population, as plain data."""
        return {}

    def _remember(self, memory: Mapping[str, Any]) -> None:
        """Take over what `_memory` gave; an empty mapping stands for a new search."""

    @property
    def _count(self) -> int:
        """How many proposals were begun with the population of now."""
        return self._begun - self._before

    def _next_number(self) -> int:
        """The number of a new proposal."""
        self._begun += 1
        return self._begun

    def _leader(self, objective: Objective, ranked: Iterable[int]) -> tuple[int | None, dict[int, str]]:
        """The candidate that is to be the best one of now, as far as guards let it.

        Args:
            objective: has the guards.
            ranked: candidates, first the one that would be.

        Returns:
            The first that is not refused, None where there is none; and why those before it are.
        """
        now, refused = self.texts(), dict[int, str]()
        for number in ranked:
            refusal = objective.refusal(now, self.population.candidates[number].texts)
            if not refusal:
                return number, refused
            refused[number] = f"refused: {refusal}"
        return None, refused

    # What all of them do.

    def _begin(self, objective: Objective) -> None:
        super()._begin(objective)
        self._desk = Desk.of(self, self.model)
        variables = self.variables()
        texts = texts_now(variables)
        train, val = tuple(objective.train), tuple(objective.val)
        held = self._population
        metrics = metrics_of(objective) if self._looks_at_metrics else ()
        now = (texts, train, val, objective.digest)
        if (
            held is None
            or (self.texts(), held.train, held.val, held.digest) != now
            or (metrics and metrics != held.metrics)
        ):
            self._population = Population(val, objective.scale, train=train, digest=objective.digest, metrics=metrics)
            self._population.add(Candidate(texts, tuple(tuple(self.origins(variable)) for variable in variables)))
            self._waiting.clear()
            self._round_run = None
            self._best, self._before = 0, self._begun  # numbers go on, so that the edits of before keep their ids
            self._remember({})
            self.vain = Vain()
        objective.adopt(texts)

    @property
    def has_decided(self) -> bool:
        """Whether more of a round is to be told."""
        return bool(self._waiting)

    def decide(self, objective: Objective) -> Decision | None:
        """What became of the next proposal of the round; see `Searcher.decide`."""
        if not self._waiting:
            if not self.population.scores[0]:
                self.population.score(objective, [0], range(len(objective.val)))
            self.at_the_top = "" if self._round_run else self._nothing_to_show(objective)
            if not self.at_the_top:
                self._waiting.extend(self._proposed(objective))
        if not self._waiting:
            return None
        outcome = self._waiting.popleft()
        try:
            return self._handed_out(objective, outcome)
        except BaseException:  # a budget, or Ctrl-C, while guards run examples again; it is told the next time
            self._waiting.appendleft(outcome)
            raise

    def _proposed(self, objective: Objective) -> Sequence[Outcome]:
        """The next proposals, decided about; what a budget or Ctrl-C ends has not been, and is made anew."""
        if self._round_run is None:
            with self._as_it_was_if_ended():
                run = self._propose(objective)
            if not isinstance(run, Round):
                return run
            self._round_run = run
        with self._as_it_was_if_ended():
            outcomes = self._decided(objective, self._round_run)
        self._round_run = None
        return outcomes

    @contextlib.contextmanager
    def _as_it_was_if_ended(self) -> Iterator[None]:
        sizes, begun, memory = self.population.sizes(), self._begun, self._memory()
        try:
            yield
        except BaseException:
            self.population.back_to(sizes)
            self._begun = begun
            self._remember(memory)
            raise

    def _nothing_to_show(self, objective: Objective) -> str:
        """Why no candidate can lead the best one, in words; that one is run on all examples, as it is in the end."""
        population, best = self.population, self._best
        if self.to_the_end or not population.nothing_to_show(objective, best):
            return ""
        try:
            population.score(objective, [best], range(len(objective.val)))
        except UNANSWERED:
            return ""
        return population.nothing_to_show(objective, best)

    def _handed_out(self, objective: Objective, outcome: Outcome) -> Decision:
        draft, before = outcome.draft, self.texts()
        changes = self._desk.changes(draft)
        if outcome.leads is not None:
            leader, refused = self._leader(objective, [outcome.leads])
            outcome = replace(outcome, leads=leader, why=refused.get(outcome.leads, outcome.why))
        if outcome.leads is not None:
            self._best = outcome.leads
            best = self.population.candidates[self._best]
            objective.adopt(best.texts)
            self._note_origins(zip(self.variables(), best.texts, best.origins))
            changes = (*changes, *self._inherited(draft, before, best.texts))
        return Decision(
            number=draft.number,
            kind=draft.kind,
            examples=tuple(objective.train[n] for n in draft.examples),
            scores=draft.scores,
            feedback=draft.feedback,
            changes=changes,
            race=outcome.race,
            kept=outcome.leads is not None,
            why=outcome.why,
            problems=draft.problems,
            lost=outcome.lost,
            vain=outcome.vain,
            more=bool(self._waiting),
        )

    def _inherited(self, draft: Draft, before: Texts, after: Texts) -> tuple[Change, ...]:
        """Parameters that the best texts now have otherwise than before, without the draft having written them."""
        written = {each.parameter for each in draft.written}
        return tuple(
            Change(variable, old, new, (), (), 0, "")
            for n, (variable, old, new) in enumerate(zip(self.variables(), before, after))
            if old != new and n not in written
        )
