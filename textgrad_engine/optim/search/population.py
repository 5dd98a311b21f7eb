"""A population of candidates: their texts, where these come from, and what each scores on the validation examples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from textgrad_engine.llm import tokens
from textgrad_engine.optim.cells import Origin
from textgrad_engine.optim.search.marks import marks_of, nothing_to_show
from textgrad_engine.optim.search.objective import Objective, Texts, costs_of, rows_of, scores_by_metric
from textgrad_engine.optim.search.race import Race
from textgrad_engine.optim.search.racing import RaceRecord, run_race


@dataclass(frozen=True)
class Candidate:
    """The texts of a program, as a search proposed them.

    Attributes:
        texts: a text for each parameter.
        origins: for each parameter the origins of its lines.
        parents: the numbers of the candidates that they were made of; none for the first.
    """

    texts: Texts
    origins: tuple[tuple[Origin | None, ...], ...]
    parents: tuple[int, ...] = ()


@dataclass
class Population:
    """Candidates by number, each once; number 0 has the texts that a search begins with.

    Attributes:
        val: the ids of the validation examples.
        limits: the worst and the best score that there can be, where the loss says so.
        candidates: the candidates.
        scores: for each candidate its validation scores by position; None where no answer was to be had.
        costs: for each candidate what each of these costs, in units of the score (`optim.search.objective.costs_of`).
            Means, leads and the frontier are of scores less their costs.
        train: the ids of the training examples that candidates are made from.
        digest: tells both from other examples with the same ids (`Objective.digest`).
        metrics: the names of the metrics that scores are made of; () where nobody looks at these.
        by_metric: for each candidate what each of them gave the examples that have a score, as parts of their scales.
    """

    val: tuple[str, ...]
    limits: tuple[float, float] | None = None
    candidates: list[Candidate] = field(default_factory=list)
    scores: list[dict[int, float | None]] = field(default_factory=list)
    costs: list[dict[int, float]] = field(default_factory=list)
    train: tuple[str, ...] = ()
    digest: str = ""
    metrics: tuple[str, ...] = ()
    by_metric: list[dict[int, tuple[float, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._standings: dict[int, _Standing] = {}  # no field, so it is no part of the state

    def add(self, candidate: Candidate) -> int:
        """Take a candidate in. Returns its number."""
        self.candidates.append(candidate)
        self.scores.append({})
        self.costs.append({})
        self.by_metric.append({})
        return len(self.candidates) - 1

    def sizes(self) -> list[tuple[int, int, int]]:
        """How much is known of each candidate, for `back_to`."""
        return [(len(scores), len(costs), len(parts)) for scores, costs, parts in zip(*self._known_of())]

    def back_to(self, sizes: list[tuple[int, int, int]]) -> None:
        """Forget the candidates, and what is known of them, that came since it had these sizes."""
        del self.candidates[len(sizes) :]
        for place, rows in enumerate(self._known_of()):
            del rows[len(sizes) :]
            for row, known in zip(rows, sizes):
                while len(row) > known[place]:
                    row.popitem()
        self._standings.clear()  # they are told apart by sizes, which may be the same again with other examples

    def _known_of(self) -> tuple[list[dict[int, Any]], list[dict[int, Any]], list[dict[int, Any]]]:
        return self.scores, self.costs, self.by_metric

    def number_of(self, texts: Texts) -> int | None:
        """The number of the candidate with these texts; None when there is none."""
        return next((number for number, each in enumerate(self.candidates) if each.texts == texts), None)

    def score(self, objective: Objective, numbers: Sequence[int], positions: Sequence[int]) -> None:
        """See that candidates have scores on validation examples; what is missing is bought all at once.

        A candidate for which most of these went unanswered has no score on them.

        Raises:
            ModelError: that is so of all candidates that were run; or the models cannot be asked at all.
        """
        rows = [number for number in numbers if any(position not in self.scores[number] for position in positions)]
        columns = [position for position in positions if any(position not in self.scores[number] for number in rows)]
        if rows:
            found = rows_of(objective, [self.candidates[number].texts for number in rows], columns)
            for number, row in zip(rows, found):
                texts = self.candidates[number].texts
                self.scores[number].update(zip(columns, row))
                self.costs[number].update(zip(columns, costs_of(objective, texts, columns)))
                if self.metrics:
                    self.by_metric[number].update(scores_by_metric(objective, texts, columns, row))

    def worth(self, number: int) -> Mapping[int, float]:
        """The scores that a candidate has, each less its cost, by position; the same object until it is run on more."""
        return self._standing(number).worth

    def worth_by_metric(self, number: int) -> dict[int, tuple[float, ...]]:
        """What each metric gave the examples that a candidate has scores on, less what they cost, by position."""
        costs = self.costs[number]
        return {
            position: tuple([part - costs.get(position, 0.0) for part in parts])
            for position, parts in self.by_metric[number].items()
        }

    def means_by_metric(self, number: int) -> tuple[float, ...]:
        """The mean of each metric with a candidate, less what it costs; () when it has no scores.

        It is over the examples that the first candidate has scores on, so that nobody is better for what he did not
        answer: there a candidate counts as ahead of the first by as much as on the others.
        """
        first, own = self.worth_by_metric(0), self.worth_by_metric(number)
        both = [position for position in first if position in own]
        if not both:
            return ()
        found = []
        for metric in range(len(self.metrics)):
            lead = math.fsum(own[n][metric] - first[n][metric] for n in both) / len(both)
            row = [own[n][metric] if n in own else first[n][metric] + lead for n in first]
            found.append(math.fsum(row) / len(row))
        return tuple(found)

    def known(self, number: int) -> dict[int, float]:
        """The scores that a candidate has, by position."""
        return {position: score for position, score in self.scores[number].items() if score is not None}

    def mean(self, number: int, positions: Sequence[int] | None = None) -> float:
        """The mean score of a candidate, less what it costs; minus infinity when it has none.

        Args:
            number: which candidate.
            positions: over these examples; None for all that it was run on.
        """
        if positions is None:
            return self._standing(number).mean
        known = self.worth(number)
        return _mean([known[n] for n in positions if n in known])

    def lead(self, number: int, over: int) -> float:
        """By how much a candidate's mean is above another's, on the examples that both have scores on; 0 for none."""
        mine, theirs = self.worth(number), self.worth(over)
        both = [position for position in mine if position in theirs]
        if not both:
            return 0.0
        return sum(mine[n] - theirs[n] for n in both) / len(both)

    def length(self, number: int) -> int:
        """How many tokens a candidate's texts have."""
        return sum(tokens.count(text) for text in self.candidates[number].texts)

    def ancestors(self, number: int) -> set[int]:
        """The numbers of all that a candidate descends from."""
        found: set[int] = set()
        left = list(self.candidates[number].parents)
        while left:
            parent = left.pop()
            if parent not in found:
                found.add(parent)
                left.extend(self.candidates[parent].parents)
        return found

    def compared(self, number: int, over: int, clusters: Sequence[str]) -> RaceRecord | None:
        """A candidate beside another on all that it was run on, as a race would put it; None when that is nothing.

        It decides nothing, so nobody pays for measuring the noise of scores for it.

        Args:
            number: of the candidate.
            over: the number of the other.
            clusters: of the validation examples (`Objective.clusters`).
        """
        positions = sorted(self.scores[number])
        if not positions:
            return None
        rows = [[self.scores[each].get(position) for position in positions] for each in (over, number)]
        race = Race([positions], first=len(positions), scale=self.scale, clusters=clusters)
        return run_race(race, self.val, lambda some: rows)

    def top(self, beside: Iterable[float | None] = ()) -> float:
        """What does as well is right; infinite where nothing is known to be (`optim.search.marks`).

        Args:
            beside: other scores that were seen, such as those of training examples.
        """
        return marks_of(self.limits, [*self._seen, *(score for score in beside if score is not None)]).top

    def nothing_to_show(self, objective: Objective, number: int) -> str:
        """Why no other can lead a candidate, in words, by the validation examples that it was run on.

        Args:
            objective: says what counts.
            number: of the candidate.
        """
        return nothing_to_show(objective, self.known(number).values(), self._seen)

    @property
    def scale(self) -> float:
        """The distance between the best and the worst score."""
        return marks_of(self.limits, self._seen).scale

    def state_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return asdict(self)

    @property
    def _seen(self) -> list[float]:
        """The lowest and the highest score of each candidate: what scores mean does not depend on those between."""
        return [score for number in range(len(self.scores)) for score in self._standing(number).ends]

    def _standing(self, number: int) -> _Standing:
        """What the scores of a candidate come to, worked out once; scores come in, and none is changed."""
        scores, costs = self.scores[number], self.costs[number]
        held = self._standings.get(number)
        if held is None or held.of is not scores or held.sizes != (len(scores), len(costs)):
            held = self._standings[number] = _Standing.from_scores(scores, costs)
        return held


@dataclass(frozen=True)
class _Standing:
    """What the scores of a candidate come to.

    Attributes:
        of: the scores.
        sizes: how many there were, and how many costs.
        worth: the scores less their costs.
        mean: of these; minus infinity when there is none.
        ends: the lowest and the highest score; nothing when there is none.
    """

    of: Mapping[int, float | None]
    sizes: tuple[int, int]
    worth: Mapping[int, float]
    mean: float
    ends: tuple[float, ...]

    @classmethod
    def from_scores(cls, scores: Mapping[int, float | None], costs: Mapping[int, float]) -> _Standing:
        known = {position: score for position, score in scores.items() if score is not None}
        worth = {position: score - costs.get(position, 0.0) for position, score in known.items()}
        ends = (min(known.values()), max(known.values())) if known else ()
        return cls(scores, (len(scores), len(costs)), worth, _mean(list(worth.values())), ends)


def _mean(scores: Sequence[float]) -> float:
    return sum(scores) / len(scores) if scores else float("-inf")
