"""What each of several metrics gave, or each criterion, of the seed and the best texts, of two runs, of all folds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textgrad_engine.ops.weights import shares_of
from textgrad_engine.report.printing import fitted, open_table, padded, styled
from textgrad_engine.report.words import score
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.result import TrainResult

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True)
class Parts:
    """The means of several metrics, in words, as a table.

    Attributes:
        heads: what the columns are; the first two are the metric or criterion, and for how much of the score it counts.
        rows: for each metric its cells.
    """

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def parts_within(columns: Sequence[tuple[str, Evaluation | None]]) -> Parts | None:
    """What each metric gave in some evaluations; None where there was one metric, or nobody wrote it down.

    Args:
        columns: what each was an evaluation of, in a word or two, the last of which says whose it was where a metric
            counts for other shares in some; those that are None are left out.

    Example:
        >>> from textgrad_engine.train.metric_scores import MetricScores
        >>> parts = MetricScores("why", (4.0, 3.0), (1, 5), 1.0), MetricScores("label", (1.0, 1.0), (0, 1), 3.0)
        >>> found = parts_within([("val", Evaluation(("a", "b"), (0.9, 0.8), (), {}, parts=parts)), ("test", None)])
        >>> found.heads, found.rows[0]
        (('metric', 'share', 'val'), ('why, 1 to 5', '25%', '3.500'))
    """
    known = [(head, evaluation) for head, evaluation in columns if evaluation is not None]
    known = [(head, each) for head, each in known if any(part.n for part in each.parts)]
    if not known:
        return None
    rows: dict[str, tuple[dict[str, dict[str, None]], list[str]]] = {}
    for at, (head, evaluation) in enumerate(known):
        weights = [part.weight for part in evaluation.parts]
        shares = shares_of([abs(weight) for weight in weights])
        full = math.fsum([share for share, weight in zip(shares, weights) if weight > 0])  # points below 0 are no part
        shares = [math.copysign(share / full, weight) for share, weight in zip(shares, weights)]
        for part, share in zip(evaluation.parts, shares):
            low, high = part.scale
            name = part.name if (low, high) == (0, 1) else f"{part.name}, {low:g} to {high:g}"
            counts, means = rows.setdefault(name, ({}, [""] * len(known)))
            counts.setdefault(f"{100 * share:.3g}%", {})[head.split()[-1]] = None
            means[at] = "" if part.mean is None else score(part.mean)
    cells = [(name, _shares(counts), *means) for name, (counts, means) in rows.items()]
    of_criteria = all(part.is_criterion for _, evaluation in known for part in evaluation.parts)
    return Parts(("criterion" if of_criteria else "metric", "share", *(head for head, _ in known)), tuple(cells))


def _shares(counts: Mapping[str, Iterable[str]]) -> str:
    """For how much a metric counts, and where this differs, in whose score: ``"50% in A, 28.6% in B"``."""
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{share} in {' and '.join(whose)}" for share, whose in counts.items())


def parts_of_result(result: TrainResult) -> Parts | None:
    """What each metric gave in a run, of the seed and the best texts."""
    changed = result.seed != result.best
    return parts_within(
        [
            ("val seed", result.seed_val),
            ("val best", result.best_val if changed else None),
            ("test seed", result.seed_test),
            ("test best", result.best_test if changed else None),
        ]
    )


def parts_title(parts: Parts) -> str:
    """What stands above the table."""
    if parts.heads[0] == "criterion":
        return f"How many of the answers do well by each of the {len(parts.rows)} criteria"
    return f"What each of the {len(parts.rows)} metrics gave, in the mean"


def parts_table(parts: Parts) -> list[RenderableType]:
    """The table, for a terminal."""
    table = open_table()
    first, *others = parts.heads
    table.add_column(first)
    for head in others:
        table.add_column(head, justify="right", no_wrap=True)
    for name, *cells in parts.rows:
        table.add_row(styled(name), *cells)
    return [styled(parts_title(parts), "bold"), "", padded(fitted(table), 2), ""]
