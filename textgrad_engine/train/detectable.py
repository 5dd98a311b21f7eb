"""Which true difference two evaluations would have shown, and with how many examples."""

from __future__ import annotations

import math
from collections.abc import Sequence

from textgrad_engine.train.clusters import clustered_error, interval_width
from textgrad_engine.train.evaluation import Evaluation, limits_of_both
from textgrad_engine.train.power import minimum_detectable_effect, needed_alike
from textgrad_engine.train.pseudo import known_limits, only_at
from textgrad_engine.train.scores import cluster_means


def detectable(
    old: Sequence[float],
    new: Sequence[float],
    clusters: Sequence[str] | None,
    limits: tuple[float, float] | None,
    alpha: float,
) -> float | None:
    """The minimum detectable effect at 80% power; None where nobody knows it.

    Args:
        old: the scores before.
        new: those after, of the same examples.
        clusters: the cluster of each; None where each stands for itself.
        limits: the worst and the best score there is; None where nobody knows.
        alpha: the level of the test.
    """
    differences = [b - a for a, b in zip(old, new)]
    names = range(len(old)) if clusters is None else clusters
    (first, sizes), (second, _) = cluster_means(old, names), cluster_means(new, names)
    units, of_one_size = len(sizes), len(set(sizes)) == 1
    # What was seen with one more of each kind, as in the interval: none of 20 does not mean that none ever changes.
    if limits is not None and of_one_size and only_at(limits, first, second):
        share = (sum(a != b for a, b in zip(first, second)) + 2) / (units + 2)
        return (limits[1] - limits[0]) * minimum_detectable_effect(units, discordance=share, alpha=alpha)
    wider = 1.0 if of_one_size else interval_width(sizes, alpha) / interval_width([1] * units, alpha)
    if math.isinf(wider):
        return wider
    if limits is not None:
        largest = limits[1] - limits[0]
        sd = wider * clustered_error(differences, names, largest) * math.sqrt(units + 2)
        return minimum_detectable_effect(units, sd=sd, largest=largest, alpha=alpha)
    each = minimum_detectable_effect(units, sd=1.0, alpha=alpha)
    if math.isinf(each):
        return each
    error = clustered_error(differences, names)
    return each * wider * error * math.sqrt(units) if error > 1e-12 else None


def enough_examples(before: Evaluation, after: Evaluation) -> int | None:
    """With how many examples like these a comparison would find the gain that was seen, 4 times in 5.

    None where there is no gain or no more examples than these are told, nobody knows how the examples differ, or they
    come in clusters, of which it would take more.

    Args:
        before: the scores of the first program.
        after: those of the second one on the same examples.
    """
    pairs = [pair for pair in zip(before.scores, after.scores) if None not in pair]
    if not pairs or before.clusters or after.clusters:
        return None
    old, new = ([pair[side] or 0.0 for pair in pairs] for side in (0, 1))
    limits = known_limits(limits_of_both(before, after), old, new)
    differences = [b - a for a, b in zip(old, new)]
    try:
        needed = needed_alike(differences, None if limits is None else limits[1] - limits[0])
    except ValueError:
        return None
    return needed if needed > len(pairs) else None
