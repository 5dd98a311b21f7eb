"""What two evaluations of the same examples say about each other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from textgrad_engine.optim.search.lost import lost_more
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.scores import cluster_sums
from textgrad_engine.train.statistics import (
    PairedDifference,
    Verdict,
    clustered_difference,
    clustered_error,
    max_t,
    minimum_detectable_effect,
    paired_difference,
    sign_flip,
    verdict,
    worst_case_difference,
)

__all__ = ["Comparison", "compare"]

_FEW = 30
"""Up to so many examples a t-test of scores that are not 0 or 1 may find too much, and the sign flips must agree."""


@dataclass(frozen=True)
class Comparison:
    """What two evaluations on the same examples say about each other.

    Attributes:
        difference: the mean difference, after minus before.
        interval: its 95% interval; where the worst and the best score are known, cut off at the largest difference that
            there can be.
        p_value: how probable a difference at least as large is when there is none (two-sided).
        verdict: ``"better"``, ``"worse"`` or ``"not shown"``.
        n: how many examples both have a score for.
        adjusted: the p-value corrected for the candidates tried (max-T), which the verdict then goes by; None when no
            other candidates were named.
        candidates: how many candidates were tried on these examples, the compared one included.
        detectable: the smallest true difference that would have been found 4 times in 5; infinite when none would, None
            when the scores show no spread to work it out from.
        clusters: how many clusters the examples come in; None when each stands for itself.
        bounds: the difference if every missing score were against `after`, and if every one were for it; None when
            nothing is missing, or the scale of the scores is not known.
        lost: on how many examples answers, with repeats samples, are lost that were there before, where these are more
            than chance loses; the verdict is not ``"better"`` then, whatever those say that are left. 0 elsewhere.
    """

    difference: float
    interval: tuple[float, float]
    p_value: float
    verdict: Verdict
    n: int
    adjusted: float | None = None
    candidates: int = 1
    detectable: float | None = None
    clusters: int | None = None
    bounds: tuple[float, float] | None = None
    lost: int = 0

    @property
    def remark(self) -> str:
        """What "not shown" is worth: what was lost, or what would not have been seen; "" for other verdicts.

        Example:
            >>> Comparison(0.02, (-0.05, 0.09), 0.6, "not shown", 60, detectable=0.1204).remark
            'with n = 60 a difference under 0.12 would not be seen reliably'
        """
        if self.verdict != "not shown":
            return ""
        if self.lost:
            return f"on {self.lost} examples answers were lost that were there before, more than chance loses"
        if self.detectable is None:
            return ""
        size = f"n = {self.n}"
        if self.clusters is not None:
            size += f" in {self.clusters} clusters"
        if self.candidates > 1:
            size += f" and {self.candidates} candidates tried"
        if math.isinf(self.detectable):
            return f"with {size} no difference would be seen reliably, however large"
        least = f"{self.detectable:.2f}" if self.detectable >= 0.1 else f"{self.detectable:.2g}"
        return f"with {size} a difference under {least} would not be seen reliably"

    def __str__(self) -> str:
        low, high = self.interval
        chance = f"p = {self.p_value:.2g}"
        if self.adjusted is not None:
            chance += f" (of {self.candidates} candidates: {self.adjusted:.2g})"
        said = f"{self.verdict}: {self.difference:+.3f} [{low:+.3f}, {high:+.3f}], {chance}, n = {self.n}"
        return f"{said}; {self.remark}" if self.remark else said


def compare(
    before: Evaluation,
    after: Evaluation,
    *,
    candidates: Iterable[Evaluation] = (),
    confidence: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """What may be said about two evaluations of the same examples: a paired difference, its interval, a verdict.

    Examples that either has no score for are left out of both. Where the examples come in clusters, whole clusters are
    what counts.

    Args:
        before: the scores of the first program.
        after: those of the second one.
        candidates: all that were tried on these examples before `after` was chosen for its scores here, with or without
            `after` itself. The best of many looks good by luck; the verdict then goes by a p-value corrected for their
            number. On examples that chose nothing, such as a test set, there are none.
        confidence: of the interval and the verdict.
        seed: of the resampling tests.

    Raises:
        ValueError: they are of different examples or clusters, or share no scored one.

    Example:
        >>> def scored(*scores):
        ...     return Evaluation(tuple(str(n) for n in range(len(scores))), scores, scores, {})
        >>> compare(scored(*[0.0] * 9, 1.0), scored(*[1.0] * 10)).verdict
        'better'
        >>> compare(scored(0.0, 1.0, 0.0), scored(1.0, 1.0, 0.0)).verdict
        'not shown'
    """
    tried = list(candidates)
    for other in (after, *tried):
        if before.ids != other.ids:
            raise ValueError(
                "two evaluations are compared on the same examples in the same order; these differ in their ids"
            )
        if before.clusters and other.clusters and before.clusters != other.clusters:
            raise ValueError("two evaluations are compared in the same clusters; these differ in them")
    kept = [position for position, pair in enumerate(zip(before.scores, after.scores)) if None not in pair]
    if not kept:
        raise ValueError("no example has a score in both evaluations, so nothing can be compared")
    old, new = _at(before.scores, kept), _at(after.scores, kept)
    names = before.clusters or after.clusters
    clusters = [names[position] for position in kept] if names else None
    found = _difference(old, new, clusters, confidence, seed)
    count = len(tried) + all(each.scores != after.scores for each in tried)
    adjusted = None
    if count > 1:
        adjusted = max(found.p_value, _adjusted(before, after, tried, names, seed))
    said = verdict(found.low, found.high, found.p_value if adjusted is None else adjusted, confidence)
    lost = _lost(before, after, names)
    if lost and said == "better":
        said = "not shown"
    return Comparison(
        difference=found.difference,
        interval=_cut(found, before, after),
        p_value=found.p_value,
        verdict=said,
        n=len(kept),
        adjusted=adjusted,
        candidates=count,
        detectable=_detectable(old, new, clusters, (1 - confidence) / count),
        clusters=None if clusters is None else len(set(clusters)),
        bounds=_bounds(before, after),
        lost=lost,
    )


def _at(scores: Sequence[float | None], positions: Sequence[int]) -> list[float]:
    return [score for position in positions if (score := scores[position]) is not None]


def _binary(*rows: Sequence[float]) -> bool:
    return all(score in (0.0, 1.0) for row in rows for score in row)


def _difference(
    old: Sequence[float], new: Sequence[float], clusters: Sequence[str] | None, confidence: float, seed: int
) -> PairedDifference:
    if clusters is not None:
        return clustered_difference(old, new, clusters, confidence, seed=seed)
    found = paired_difference(old, new, confidence)
    if len(old) > _FEW or _binary(old, new):
        return found
    flipped = sign_flip([b - a for a, b in zip(old, new)], seed=seed)
    return found._replace(p_value=max(found.p_value, flipped))


def _adjusted(
    before: Evaluation, after: Evaluation, tried: Sequence[Evaluation], names: Sequence[str], seed: int
) -> float:
    """The max-T p-value of `after`; where a candidate has no score, it counts as being like `before`."""
    kept = [position for position, score in enumerate(before.scores) if score is not None]
    baseline = _at(before.scores, kept)
    rows = [
        [old if (score := each.scores[position]) is None else score for position, old in zip(kept, baseline)]
        for each in (after, *tried)
    ]
    clusters = [names[position] for position in kept] if names else None
    return max_t(baseline, rows, clusters=clusters, seed=seed)[0]


def _detectable(
    old: Sequence[float], new: Sequence[float], clusters: Sequence[str] | None, alpha: float
) -> float | None:
    """The minimum detectable effect at 80% power."""
    n = len(old)
    differences = [b - a for a, b in zip(old, new)]
    if clusters is None and _binary(old, new):
        changed = sum(map(bool, differences))
        # Two more changed ones, as in the interval: none of 20 does not mean that none ever changes.
        return minimum_detectable_effect(n, discordance=(changed + 2) / (n + 2), alpha=alpha)
    units = n if clusters is None else len(set(clusters))
    if 2.0 ** (1 - units) > alpha + 1e-12:  # so few signs never come out alike rarely enough
        return math.inf
    error = clustered_error(differences, range(n) if clusters is None else clusters)
    if error <= 1e-12:
        return None
    return minimum_detectable_effect(units, sd=error * math.sqrt(units), alpha=alpha)


def _cut(found: PairedDifference, before: Evaluation, after: Evaluation) -> tuple[float, float]:
    """The interval of a difference, without what no two scores can differ by."""
    if before.limits is None or after.limits is None or math.isinf(found.low):
        return found.low, found.high
    width = max(before.limits[1], after.limits[1]) - min(before.limits[0], after.limits[0])
    return max(found.low, -width), min(found.high, width)


def _lost(before: Evaluation, after: Evaluation, names: Sequence[str]) -> int:
    """On how many examples `after` loses answers, where that is more than chance; by clusters, where there are."""
    shares = before.missing_shares(), after.missing_shares()
    units = [cluster_sums(each, names)[0] for each in shares] if names else shares
    return sum(new > old for old, new in zip(*shares)) if lost_more(*units) else 0


def _bounds(before: Evaluation, after: Evaluation) -> tuple[float, float] | None:
    if not before.unanswered and not after.unanswered:
        return None
    first, second = before.item_bounds(), after.item_bounds()
    return None if first is None or second is None else worst_case_difference(first, second)
