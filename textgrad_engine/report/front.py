"""The front of a run in words: the texts that no others beat, numbered as `show --front N` counts them."""

from __future__ import annotations

from dataclasses import dataclass

from textgrad_engine.report.words import count, decimals, plural, score
from textgrad_engine.train.front import FrontPoint
from textgrad_engine.train.result import TrainResult


@dataclass(frozen=True)
class Front:
    """The front as a table.

    Attributes:
        title: what is beside what, and `where`.
        where: which texts have a score here, and on what (`train.front.front_of`).
        heads: what the columns are, behind that of the numbers.
        rows: for each text its cells, the longest text first.
        names: for each text ``"best prompt"``, ``"seed prompt"`` or "".
    """

    title: str
    where: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: tuple[str, ...]


def front_within(result: TrainResult) -> Front | None:
    """The front as a table; None where it has fewer than two texts, as there is nothing to choose then."""
    points = result.front
    if len(points) < 2:
        return None
    metrics = list(dict.fromkeys(name for point in points for name in point.metrics))
    times = [point.latency for point in points if point.latency is not None]
    timed, digits = bool(times), decimals(times or [0.0])
    scores, where = "Score and metrics" if metrics else "Score", _where(result)
    rows = []
    for point in points:
        means = [score(point.metrics[name]) if name in point.metrics else "" for name in metrics]
        took = ["" if point.latency is None else f"{point.latency:.{digits}f} s"] if timed else []
        rows.append((count(point.tokens), score(point.score), *means, *took))
    return Front(
        f"{scores} against {'length and time' if timed else 'length'}, {where}",
        where,
        ("tokens", "validation", *metrics, *(["time"] if timed else [])),
        tuple(rows),
        tuple(name_of_point(result, point) for point in points),
    )


def _where(result: TrainResult) -> str:
    if (seed := result.seed_val) is None or not seed.unanswered:
        return "of prompts run on the whole validation set"
    answered = plural(len(seed.scores) - seed.unanswered, "validation example")
    return f"on the {answered} that the seed prompt answered"


def name_of_point(result: TrainResult, point: FrontPoint) -> str:
    """Which of the run's prompts a text of the front is: ``"best prompt"``, ``"seed prompt"``, or "" for another."""
    known = {"best prompt": result.best, "seed prompt": result.seed}
    return next((name for name, texts in known.items() if texts.items() >= point.texts.items()), "")
