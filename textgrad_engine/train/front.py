"""The front of score, metrics, tokens and time: what no other texts beat, of all that was validated."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from textgrad_engine.attributes import attributes_told
from textgrad_engine.optim.search.objective import Texts, tokens_of
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.latency import latency_change

if TYPE_CHECKING:
    from textgrad_engine.train.objective import Objective


@attributes_told
@dataclass(frozen=True)
class FrontPoint:
    """Texts that no others of the run beat without losing in another objective: score, metrics, tokens and time.

    Attributes:
        texts: by dotted name.
        tokens: how many tokens they have together.
        score: their mean score on the validation examples that the seed texts answered.
        latency: the mean seconds of an example's forward calls there; None where that was not noted.
        metrics: where the score is made of several metrics (`nn.Weighted`), the mean of each there, by name and on its
            own scale; else empty.
    """

    texts: dict[str, str]
    tokens: int
    score: float
    latency: float | None = None
    metrics: dict[str, float] = field(default_factory=dict)


def front_of(objective: Objective, seed: Texts) -> tuple[FrontPoint, ...]:
    """The front of all texts that answered each validation example that the seed texts did, longest first.

    Their scores are means over these examples, so an example that never answers takes nobody off the front. Texts whose
    race was decided before all were run are not on it, as nobody knows their mean; nor are those that lost one, or that
    guards refuse beside the seed texts. Of a score that is made of several metrics each counts by itself, too, so who
    would weigh them otherwise finds a text here. Time counts where the objective has noted it; as it is noisy, texts
    are faster than others only where the 95% interval of the mean difference over the same examples says so.

    Args:
        objective: the one that ran them.
        seed: the texts that the run began with.
    """
    tried = [_Tried(texts, tokens_of(texts), found) for texts, found in objective.validated(seed)]
    tried.sort(key=lambda each: (each.tokens, -each.score))  # of equal ones the first stays
    front: list[_Tried] = []
    for one in tried:
        if not any(other.beats(one) or other.equals(one) for other in front):
            front = [other for other in front if not one.beats(other)]
            front.append(one)
    return tuple(
        FrontPoint(
            dict(zip(objective.names, each.texts)), each.tokens, each.score, _mean(each.found.latency), each.metrics
        )
        for each in reversed(front)
    )


@dataclass(frozen=True)
class _Tried:
    """Texts, their tokens, and what they came to."""

    texts: Texts
    tokens: int
    found: Evaluation

    @property
    def score(self) -> float:
        return self.found.mean

    @property
    def metrics(self) -> dict[str, float]:
        parts = [part for part in self.found.parts if not part.is_criterion] if len(self.found.parts) > 1 else []
        return {part.name: part.mean for part in parts if part.mean is not None}

    def time_against(self, other: _Tried) -> str:
        change = latency_change(other.found, self.found)
        return "not shown" if change is None else change.verdict

    def beats(self, other: _Tried) -> bool:
        """Whether there is no loss in any objective, and a gain in one of them."""
        time = self.time_against(other)
        pairs = list(zip(self._gains, other._gains))
        if time == "slower" or any(mine < theirs for mine, theirs in pairs):
            return False
        return time == "faster" or any(mine > theirs for mine, theirs in pairs)

    def equals(self, other: _Tried) -> bool:
        return self._gains == other._gains and self.time_against(other) == "not shown"

    @functools.cached_property
    def _gains(self) -> tuple[float, ...]:
        """What is to be large: the score, the metrics, and how short the texts are."""
        return (self.score, -self.tokens, *self.metrics.values())


def _mean(latency: tuple[float | None, ...]) -> float | None:
    known = [each for each in latency if each is not None]
    return math.fsum(known) / len(known) if known else None
