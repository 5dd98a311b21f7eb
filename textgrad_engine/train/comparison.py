"""What two evaluations of the same examples say about each other."""

from __future__ import annotations

import math
import operator
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from textgrad_engine.attributes import attributes_told
from textgrad_engine.checks import check
from textgrad_engine.data.names import listed
from textgrad_engine.keywords import names_told
from textgrad_engine.optim.search.lost import lost_more
from textgrad_engine.train.bounds import worst_case_difference
from textgrad_engine.train.clusters import clustered_difference
from textgrad_engine.train.detectable import detectable
from textgrad_engine.train.evaluation import Evaluation, limits_of_both
from textgrad_engine.train.intervals import PairedDifference, Verdict, paired_difference, verdict
from textgrad_engine.train.permutation import max_t, sign_flip
from textgrad_engine.train.pseudo import known_limits, only_at, pseudo_differences
from textgrad_engine.train.scores import LEVEL, apart, cluster_means, cluster_sums, unless_alike
from textgrad_engine.wording import told

_UNSEEN = object(), object()
"""The clusters of a fall and of a rise that nobody has seen."""

_FEW = 30
"""Up to so many examples a t-test of scores that are not 0 or 1 may find too much, and the sign flips must agree."""


@attributes_told
@dataclass(frozen=True)
class Comparison:
    """What two evaluations on the same examples say about each other.

    Attributes:
        difference: the mean difference, after minus before.
        interval: its confidence interval, 95% unless `compare` was given another `confidence`. If the worst and the
            best score are known, it keeps to these limits (see `paired_difference`). If they are not, and all
            differences are equal, it is infinite.
        p_value: two-sided: how probable a difference at least as large is if there is none in truth.
        verdict: ``"better"``, ``"worse"`` or ``"not shown"``.
        n: how many examples both have a score for.
        adjusted: the p-value corrected for the candidates tried (max-T), on which the verdict is then based; None if no
            other candidates were named.
        candidates: how many candidates were tried on these examples, the compared one included.
        detectable: the smallest true difference that would have been found 4 times in 5; infinite when none would, None
            when the scores show no spread to work it out from, and nobody knows their limits.
        clusters: how many clusters the examples form; None if each is independent.
        bounds: the difference if every missing score were against `after`, and if every one were for it; None when
            nothing is missing, or the scale of the scores is not known. One of them may be infinite, on a scale without
            that end.
        lost: on how many examples `after` lacks answers (with repeats, samples) that `before` has, if these are more
            than by chance; else 0. The verdict is then not ``"better"``, whatever the remaining examples say.
        lost_before: the same the other way round, if the examples that are left say ``"worse"``; else 0. The verdict is
            not ``"worse"`` then, as the missing answers may be the ones that would have been wrong.
        bounded: whether the limits of the scores are known: the loss names its scale, or they are from 0 to 1.
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
    bounded: bool = True
    lost_before: int = 0

    @property
    def caveat(self) -> str:
        """What a verdict of "better" or "worse" cannot know where the scores have no known ends; "" elsewhere.

        Example:
            >>> Comparison(9.0, (1.0, 17.0), 0.03, "better", 60, bounded=False).caveat[:50]
            'the scale of the scores is not known, so rare larg'
        """
        if self.bounded or self.verdict == "not shown":
            return ""
        return (
            "the scale of the scores is not known, so rare large changes that these examples do not show are not "
            "allowed for, and the verdict may be luck more often than p says; give the loss a scale"
        )

    @property
    def held_back(self) -> bool:
        """Whether it is "not shown" as more answers were lost with one of the two, whatever those say that are left."""
        return self.verdict == "not shown" and bool(self.lost or self.lost_before)

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
            return f"{self.lost} examples lost the answer that they had before, more than chance explains"
        if self.lost_before:
            return f"{self.lost_before} examples lacked the answer before that they have now, more than chance explains"
        size = f"n = {self.n}"
        if self.clusters is not None:
            size += f" in {self.clusters} cluster{'' if self.clusters == 1 else 's'}"
        if self.candidates > 1:
            size += f" and {self.candidates} candidates tried"
        if self.detectable is None:
            if not math.isinf(self.interval[0]):
                return ""
            return f"with {size} all alike and no scale of the scores, nobody knows what would be seen"
        if math.isinf(self.detectable):
            return f"with {size} no difference would be seen reliably, however large"
        least = f"{self.detectable:.2f}" if self.detectable >= 0.1 else f"{self.detectable:.2g}"
        return f"with {size} a difference under {least} would not be seen reliably"

    def __str__(self) -> str:
        low, high = self.interval
        chance = f"p = {_rounded(self.p_value)}" if self.p_value else "p < 1e-300"
        if self.adjusted is not None:
            chance += f" (of {self.candidates} candidates: {_rounded(self.adjusted)})"
        said = f"{self.verdict}: {unless_alike(self.difference):+.3f} [{low:+.3f}, {high:+.3f}], {chance}, n = {self.n}"
        return "; ".join(filter(None, (said, self.remark or self.caveat)))

    def __repr__(self) -> str:  # short, as it is what a notebook shows of a cell's last line
        return f"Comparison({self})"


def _rounded(p_value: float) -> str:
    """Two digits, or as many as tell on which side of the level it is."""
    told = f"{p_value:.2g}"
    return apart(p_value, LEVEL)[0] if told == f"{LEVEL:.2g}" != f"{p_value:g}" else told


@names_told
def compare(
    before: Evaluation,
    after: Evaluation,
    *,
    candidates: Iterable[Evaluation] = (),
    confidence: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """Compare two evaluations of the same examples: their paired difference, its interval, and a verdict.

    An example without a score in one of them is left out of both. If the examples form clusters, whole clusters are
    compared.

    Args:
        before: the scores of the first program.
        after: those of the second one.
        candidates: all that were tried on these examples before `after` was chosen for its scores here, with or without
            `after` itself. The best of many looks good by luck; the verdict then goes by a p-value corrected for their
            number. On examples that chose nothing, such as a test set, there are none.
        confidence: of the interval and the verdict.
        seed: of the resampling tests.

    Raises:
        TypeError: one is no evaluation, such as the result of a run, which has several.
        ValueError: they are of different examples (by their ids, or where these are positions by what stands there) or
            clusters, or share no scored one.

    Example:
        >>> def scored(*scores):
        ...     return Evaluation(tuple(str(n) for n in range(len(scores))), scores, scores, {})
        >>> compare(scored(*[0.0] * 9, 1.0), scored(*[1.0] * 10)).verdict
        'better'
        >>> compare(scored(0.0, 1.0, 0.0), scored(1.0, 1.0, 0.0)).verdict
        'not shown'
    """
    for name, given in (("before", before), ("after", after)):
        _refuse_run(name, given)
    check(compare, locals())
    tried = list(candidates)
    for other in (after, *tried):
        _check_same_examples(before, other)
    kept = [position for position, pair in enumerate(zip(before.scores, after.scores)) if None not in pair]
    if not kept:
        raise ValueError("no example has a score in both evaluations, so nothing can be compared")
    old, new = _at(before.scores, kept), _at(after.scores, kept)
    names = before.clusters or after.clusters
    clusters = [names[position] for position in kept] if names else None
    bounds = limits_of_both(before, after)
    seed = operator.index(seed)  # `random` takes no other
    found = _difference(old, new, clusters, confidence, bounds, seed)
    limits = known_limits(bounds, old, new)
    count = len(tried) + all(each.scores != after.scores for each in tried)
    adjusted = None
    if count > 1:
        adjusted = max(found.p_value, _adjusted(before, after, tried, names, seed))
    said = verdict(found.low, found.high, found.p_value if adjusted is None else adjusted, confidence)
    lost = _lost(before, after, names)
    lost_before = _lost(after, before, names) if said == "worse" else 0
    if (lost and said == "better") or lost_before:
        said = "not shown"
    return Comparison(
        difference=found.difference,
        interval=(found.low, found.high),
        p_value=found.p_value,
        verdict=said,
        n=len(kept),
        adjusted=adjusted,
        candidates=count,
        detectable=detectable(old, new, clusters, limits, (1 - confidence) / count),
        clusters=None if clusters is None else len(set(clusters)),
        bounds=_bounds(before, after),
        lost=lost,
        bounded=limits is not None,
        lost_before=lost_before,
    )


def compared(
    before: Evaluation, after: Evaluation, *, candidates: Iterable[Evaluation] = (), confidence: float = 0.95
) -> Comparison | None:
    """`compare`, or None where no example has a score in both, as each lost the answers that the other one has.

    Its arguments are those of `compare`.
    """
    if not score_changes(before, after):
        return None
    return compare(before, after, candidates=candidates, confidence=confidence)


def score_changes(before: Evaluation, after: Evaluation) -> list[float]:
    """By how much each example that has a score in both scores more with the second one."""
    pairs = zip(before.scores, after.scores)
    return [new - old for old, new in pairs if old is not None and new is not None]


def _refuse_run(name: str, given: Any) -> None:
    """Refuse the result of a run, or what a run folder holds of it, in the place of one of its evaluations.

    Raises:
        TypeError: it is one.
    """
    if not isinstance(given, Evaluation) and hasattr(getattr(given, "result", given), "best_test"):
        raise TypeError(
            f"compare: {name} must be an Evaluation, got {told(given)}; of a run give its best_test, or what it has of "
            f"other examples and texts{'; these are in its result' if hasattr(given, 'result') else ''}"
        )


def _check_same_examples(before: Evaluation, other: Evaluation) -> None:
    """Refuse two evaluations that cannot be compared example by example.

    Raises:
        ValueError: they are of different examples or clusters.
    """
    if before.ids != other.ids:
        raise ValueError(
            "two evaluations are compared on the same examples in the same order; these differ in their ids"
        )
    contents = before.contents
    differing = sorted(name for name, digest in other.contents.items() if contents.get(name, digest) != digest)
    if differing:
        raise ValueError(
            "two evaluations are compared on the same examples; these are named by their positions alone, and differ "
            f"in {listed(differing)}. Evaluate both on one dataset, or, where they are the same examples with other "
            'texts, give each an "id"'
        )
    if before.clusters and other.clusters and before.clusters != other.clusters:
        raise ValueError("two evaluations are compared in the same clusters; these differ in them")


def _at(scores: Sequence[float | None], positions: Sequence[int]) -> list[float]:
    return [score for position in positions if (score := scores[position]) is not None]


def _difference(
    old: Sequence[float],
    new: Sequence[float],
    clusters: Sequence[str] | None,
    confidence: float,
    bounds: tuple[float, float] | None,
    seed: int,
) -> PairedDifference:
    if clusters is not None:
        return clustered_difference(old, new, clusters, confidence, bounds, seed=seed)
    found = paired_difference(old, new, confidence, bounds)
    limits = known_limits(bounds, old, new)
    if len(old) > _FEW or (limits is not None and only_at(limits, old, new)):
        return found
    flipped = sign_flip([b - a for a, b in zip(old, new)], seed=seed)
    return found._replace(p_value=max(found.p_value, flipped))


def _adjusted(
    before: Evaluation, after: Evaluation, tried: Sequence[Evaluation], names: Sequence[str], seed: int
) -> float:
    """The max-T p-value of `after`; where a candidate has no score, it counts as being like `before`.

    Signs alone know nothing of rare large falls that were not seen, and an interval of 95% allows for them once, not
    for each of many candidates. So a fall and a rise go in, as in the interval (`train.pseudo`), in a cluster each.
    """
    kept = [position for position, score in enumerate(before.scores) if score is not None]
    baseline = _at(before.scores, kept)
    clusters: list[Hashable] = [names[position] for position in kept] if names else list(range(len(kept)))
    rows = []
    every = list(tried) if any(each.scores == after.scores for each in tried) else [after, *tried]
    for each in every:
        row = [old if (score := each.scores[position]) is None else score for position, old in zip(kept, baseline)]
        rows.append(row + _unseen(baseline, row, clusters, limits_of_both(before, each), clustered=bool(names)))
    found = max_t([*baseline, 0.0, 0.0], rows, clusters=[*clusters, *_UNSEEN], seed=seed)
    return found[[each.scores for each in every].index(after.scores)]


def _unseen(
    old: Sequence[float],
    new: Sequence[float],
    clusters: Sequence[Hashable],
    bounds: tuple[float, float] | None,
    *,
    clustered: bool,
) -> list[float]:
    """A fall and a rise that a candidate has not shown, as sums of a cluster; 0 each where none is added.

    Examples that turn from the worst to the best score, or back, have nothing else to show: signs say it all.
    """
    differences = [b - a for a, b in zip(old, new)]
    limits = known_limits(bounds, old, new)
    if limits is None or not any(differences) or (not clustered and only_at(limits, old, new)):
        return [0.0, 0.0]
    means, sizes = cluster_means(differences, clusters)
    return [each * len(old) / len(sizes) for each in pseudo_differences(means, limits[1] - limits[0])]


def _lost(before: Evaluation, after: Evaluation, names: Sequence[str]) -> int:
    """On how many examples `after` loses answers, where that is more than chance; by clusters, where there are.

    As many samples count on both sides: of five answers to an example one is lost sooner than of one.
    """
    repeats = min(before.repeats, after.repeats)
    shares = before.missing_shares(repeats), after.missing_shares(repeats)
    units = [cluster_sums(each, names)[0] for each in shares] if names else shares
    return sum(new > old for old, new in zip(*shares)) if lost_more(*units) else 0


def _bounds(before: Evaluation, after: Evaluation) -> tuple[float, float] | None:
    if not before.unanswered and not after.unanswered:
        return None
    first, second = before.item_bounds(), after.item_bounds()
    found = None if first is None or second is None else worst_case_difference(first, second)
    return found if found is not None and any(map(math.isfinite, found)) else None
