"""Run a race to its end, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from textgrad_engine.attributes import attributes_told
from textgrad_engine.errors import AnswerError
from textgrad_engine.optim.search.lost import lost_more
from textgrad_engine.optim.search.race import ACCEPT, Outcome, Race


@attributes_told
@dataclass(frozen=True)
class RaceRecord:
    """A race that is over, as the journal keeps it.

    Attributes:
        outcome: what was decided about the candidate.
        examples: the examples that were run, in order.
        before: their scores with the current texts; None where no answer was to be had.
        after: their scores with the candidate.
        probability: how probable it is that the candidate's mean is higher, by these examples.
        difference: the difference of the means, put together from the strata.
        cost: what the candidate's examples cost more on the average, in units of the score, where time is charged for;
            `probability` is that of a gain beyond it.
        handicap: what its tokens cost more, likewise.
    """

    outcome: Outcome
    examples: tuple[str, ...]
    before: tuple[float | None, ...]
    after: tuple[float | None, ...]
    probability: float
    difference: float
    cost: float = 0.0
    handicap: float = 0.0

    @property
    def gained(self) -> tuple[str, ...]:
        """The examples that the candidate does better on."""
        return tuple(name for name, change in self._changes() if change > 0)

    @property
    def lost(self) -> tuple[str, ...]:
        """The examples that the candidate does worse on."""
        return tuple(name for name, change in self._changes() if change < 0)

    @property
    def in_words(self) -> str:
        """The outcome; "better on balance" where it was decided at the end only, by less than `ACCEPT`."""
        return "better on balance" if self.outcome == "better" and self.probability < ACCEPT else self.outcome

    @property
    def odds(self) -> str:
        """How probable it is that the candidate is better, and what it must make up for."""
        parts = (("its length", self.handicap), ("its time", self.cost))
        costs = [f"{what} {'costs' if much > 0 else 'saves'} {abs(much):.3f}" for what, much in parts if much]
        return ", ".join([*costs, f"better with probability {self.probability:.2f}"])

    def _changes(self) -> list[tuple[str, float]]:
        return [
            (name, after - before)
            for name, before, after in zip(self.examples, self.before, self.after)
            if before is not None and after is not None
        ]


Scores = Callable[[Sequence[int]], Sequence[Sequence[float | None]]]

Costs = Callable[[Sequence[int]], Sequence[float]]
"""What examples cost more with the candidate than with the current texts, in units of the score."""


class LosesAnswers(AnswerError):
    """With the candidate fewer answers are to be had: it is refused for what it does, and nothing is out of order."""


def answered(scores: Scores) -> Scores:
    """Scores for `run_race` that end a race whose candidate loses its answers: such texts may break the program.

    Args:
        scores: as for `run_race`.

    Returns:
        The same, which raises AnswerError when more than half of what the candidate was run on has no answer, and
        `LosesAnswers` when more of what has one with the current texts has none than is lost by chance.
    """
    before: list[bool] = []
    after: list[bool] = []

    def checked(positions: Sequence[int]) -> Sequence[Sequence[float | None]]:
        rows = scores(positions)
        before.extend(score is None for score in rows[0])
        after.extend(score is None for score in rows[1])
        if (lost := sum(after)) > len(after) / 2:
            raise AnswerError(f"{lost} of {len(after)} examples had no answer with the proposed texts")
        if lost := lost_more(before, after):
            raise LosesAnswers(
                f"{lost} of {len(after)} examples had no answer with the proposed texts, and had one before; that is "
                "more than chance"
            )
        return rows

    return checked


def run_race(
    race: Race,
    names: Sequence[str],
    scores: Scores,
    costs: Costs | None = None,
) -> RaceRecord:
    """Run a race to its end.

    Args:
        race: a new race.
        names: the examples' ids by position.
        scores: gives the scores at some positions, first with the current texts, then with the candidate.
        costs: gives what these positions cost more with the candidate, asked after their scores; None for nothing.

    Returns:
        The record; what `scores` raises is raised.
    """
    ran: list[int] = []
    old: list[float | None] = []
    new: list[float | None] = []
    while batch := race.next():
        there, now = scores(batch)
        more = [0.0] * len(batch) if costs is None else costs(batch)
        for position, a, b, cost in zip(batch, there, now, more):
            race.add(position, a, b, cost)
        ran.extend(batch)
        old.extend(there)
        new.extend(now)
    assert race.outcome is not None
    return RaceRecord(
        race.outcome,
        tuple(names[position] for position in ran),
        tuple(old),
        tuple(new),
        round(race.probability, 6),
        round(race.difference, 6),
        round(race.cost, 6),
        round(race.handicap, 6),
    )
