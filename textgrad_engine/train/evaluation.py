"""The scores of one program on one dataset, and how sure they are."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from textgrad_engine.attributes import attributes_told
from textgrad_engine.train.bounds import item_bounds, worst_case_mean
from textgrad_engine.train.clusters import clustered_interval
from textgrad_engine.train.intervals import mean_interval
from textgrad_engine.train.metric_scores import MetricScores
from textgrad_engine.train.repeats import Spread, variance_split

_SHOWN = 3
"""So many examples with the lowest scores are shown in a notebook, and where an assertion about the mean fails."""


@attributes_told
@dataclass(frozen=True)
class Evaluation:
    """The scores of one program on one dataset.

    Attributes:
        ids: the examples, in dataset order.
        scores: their scores, in the same order (higher is better); with repeats, the means of their samples. None if
            there was no answer.
        predictions: the program's answers, in the same order; with repeats, a list for each example. None if there was
            no answer. For several outputs, a dict, tuple or list of the answers; for a dataclass, a dict.
        failures: for each example without any answer, the error in words.
        samples: with repeats, the score of each sample of each example, None where it had no answer; else empty.
        clusters: for each example the cluster it belongs to; empty if each is independent.
        scale: the lowest and the highest possible score, if the loss names them.
        latency: where it was asked for, the seconds that the forward calls of each example took, with repeats the means
            of its samples; None where nobody knows (`train.latency` says what counts). Else empty, and where no answer
            tells how long it took.
        not_run: the examples that were not run because the budget was spent; they have neither a score nor a failure.
        parts: the value of each metric, if the score is made of several; else empty.
        contents: for each column a digest of the evaluated examples (`data.contents`), if only positions name them: so
            `compare` can recognize other examples. Else empty.

    Example:
        >>> found = Evaluation(("a", "b", "c"), (1.0, 0.0, None), ("yes", "no", None), {"c": "it was cut off"})
        >>> found.mean, found.unanswered
        (0.5, 1)
        >>> found
        Evaluation(0.500 [0.095, 0.905] on 2 examples, 1 unanswered (at worst 0.333, at best 0.667); lowest: 'b' 0)
    """

    ids: tuple[str, ...]
    scores: tuple[float | None, ...]
    predictions: tuple[Any, ...]
    failures: dict[str, str]
    samples: tuple[tuple[float | None, ...], ...] = ()
    clusters: tuple[str, ...] = ()
    scale: tuple[float, float] | None = None
    latency: tuple[float | None, ...] = field(default=(), compare=False)
    not_run: tuple[str, ...] = ()
    parts: tuple[MetricScores, ...] = ()
    contents: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def answered(self) -> tuple[float, ...]:
        """The scores that there are."""
        return tuple(score for score in self.scores if score is not None)

    @property
    def unanswered(self) -> int:
        """How many answers were not to be had: of examples, with repeats of samples."""
        return sum(score is None for row in self._samples for score in row)

    @property
    def mean(self) -> float:
        """The mean of the scores that there are."""
        return sum(self.answered) / len(self.answered)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of the mean: Wilson's for scores of 0 and 1, else Student's, by clusters where there are.

        Where the worst and the best score are known, it ends there, and counts two more scores at each of them
        (`train.pseudo`). Elsewhere it is infinite where too few scores show how they spread.
        """
        if not self.clusters:
            return mean_interval(self.answered, bounds=self.limits)
        clusters = [cluster for cluster, score in zip(self.clusters, self.scores) if score is not None]
        return clustered_interval(self.answered, clusters, bounds=self.limits)

    @property
    def part_run(self) -> str:
        """Which part of the examples was run, to be said behind the mean; "" where that is all of them."""
        if not self.not_run:
            return ""
        return f" (of {len(self) - len(self.not_run)} of {len(self)} examples)"

    @property
    def limits(self) -> tuple[float, float] | None:
        """The worst and the best score that there can be: those of the scale, or 0 and 1 where all are between these.

        None when nobody knows them.
        """
        lowest, highest = self.scale or (0.0, 1.0)
        known = (score for row in (self.scores, *self._samples) for score in row if score is not None)
        return (lowest, highest) if all(lowest <= score <= highest for score in known) else None

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The mean if everything unanswered had scored lowest, and if it had scored highest.

        One of them is infinite on a scale without that end. None when nobody knows either: the loss names no scale, and
        not all scores are between 0 and 1; or the scale has no ends, and something is unanswered.
        """
        items = self.item_bounds()
        found = None if items is None else worst_case_mean(items)
        return found if found is not None and any(map(math.isfinite, found)) else None

    @property
    def spread(self) -> Spread | None:
        """With repeats, the variance between examples and within them; None when no example has two samples."""
        rows = [[score for score in row if score is not None] for row in self.samples]
        rows = [row for row in rows if row]
        if len(rows) < 2 or all(len(row) < 2 for row in rows):
            return None
        return variance_split(rows)

    def item_bounds(self) -> list[tuple[float, float]] | None:
        """For each example the least and the greatest score that it could have; None where `limits` is."""
        return None if self.limits is None else item_bounds(self._samples, self.limits)

    @property
    def repeats(self) -> int:
        """How many samples of each example there are."""
        return len(self._samples[0]) if self.ids else 1

    def missing_shares(self, repeats: int) -> list[float]:
        """For each example the share of its answers that were not to be had: 0 or 1, with repeats also between.

        Args:
            repeats: so many samples of each count, its first.
        """
        left_out = set(self.not_run)
        rows = [(name, row[:repeats]) for name, row in zip(self.ids, self._samples)]
        return [0.0 if name in left_out else row.count(None) / len(row) for name, row in rows]

    def by(self, values: Iterable[Hashable]) -> dict[Any, Evaluation]:
        """The evaluation of each slice: of those examples that share a value, such as their label.

        Two evaluations of the same examples can be compared slice by slice (`compare`); of m slices, with a confidence
        of ``1 - 0.05 / m`` (Bonferroni), as one of many looks better or worse by luck.

        Args:
            values: one for each example, in their order; any that can be the keys of a dict. All that are NaN are one.

        Returns:
            By value, in the order in which they first occur.

        Raises:
            ValueError: there are more or fewer than examples.
            TypeError: one cannot be the key of a dict, or they are one text.

        Example:
            >>> found = Evaluation(("a", "b", "c"), (1.0, 0.0, 0.0), ("cat", "cat", "dog"), {})
            >>> {label: part.mean for label, part in found.by(["cat", "dog", "cat"]).items()}
            {'cat': 0.5, 'dog': 0.0}
        """
        if isinstance(values, str):
            raise TypeError(
                f"by: a list with one value for each example, got a text; write [row[{values!r}] for row in rows]"
            )
        where: dict[Hashable, list[int]] = {}
        given = list(values)
        if len(given) != len(self):
            raise ValueError(f"by: one value for each of the {len(self)} examples, in their order; got {len(given)}")
        for position, value in enumerate(given):
            empty = isinstance(value, float) and math.isnan(value)  # as tables have it, an object for each
            where.setdefault(math.nan if empty else value, []).append(position)
        return {value: self._only(positions) for value, positions in where.items()}

    def _only(self, positions: Sequence[int]) -> Evaluation:
        """The evaluation of some examples."""

        def some(each: Sequence[Any]) -> tuple[Any, ...]:
            return tuple([each[position] for position in positions]) if each else ()

        ids = some(self.ids)
        names = set(ids)
        return replace(
            self,
            ids=ids,
            scores=some(self.scores),
            predictions=some(self.predictions),
            failures={name: said for name, said in self.failures.items() if name in names},
            samples=some(self.samples),
            clusters=some(self.clusters),
            latency=some(self.latency),
            not_run=tuple(name for name in self.not_run if name in names),
            parts=tuple(replace(part, scores=some(part.scores)) for part in self.parts),
        )

    @property
    def _samples(self) -> tuple[tuple[float | None, ...], ...]:
        return self.samples or tuple((score,) for score in self.scores)

    def __len__(self) -> int:
        return len(self.ids)

    def __str__(self) -> str:
        low, high = self.interval
        lost = ""
        if self.unanswered:
            lost = f", {self.unanswered} unanswered"
            if self.bounds is not None:
                ends = zip(("at worst", "at best"), self.bounds)
                lost += f" ({', '.join([f'{word} {end:.3f}' for word, end in ends if math.isfinite(end)])})"
        examples = "example" if len(self.answered) == 1 else "examples"
        unbounded = ", by a loss that names no scale" if self.scale is None and self.limits is None else ""
        return f"{self.mean:.3f} [{low:.3f}, {high:.3f}] on {len(self.answered)} {examples}{lost}{unbounded}"

    def __repr__(self) -> str:  # short, as it is what a notebook shows of a cell's last line
        if not self.answered:
            return f"Evaluation(no score, {self.unanswered} unanswered)"
        best = max(self.answered)
        lower = [(score, name) for score, name in zip(self.scores, self.ids) if score is not None and score < best]
        lowest = [f"{name!r} {score:.4g}" for score, name in sorted(lower, key=lambda each: each[0])[:_SHOWN]]
        return f"Evaluation({self}{'; lowest: ' if lowest else ''}{', '.join(lowest)})"

    if not TYPE_CHECKING:  # type checkers tell of it themselves

        def _no_number(self, *_: object) -> None:
            raise TypeError(
                "an Evaluation is no number; its mean is its .mean, and two of them are compared pair by pair: "
                "compare(first, second)"
            )

        __lt__ = __le__ = __gt__ = __ge__ = __float__ = _no_number

        def __format__(self, form: str) -> str:
            return self._no_number() if form else str(self)


def limits_of_both(before: Evaluation, after: Evaluation) -> tuple[float, float] | None:
    """The worst and the best score of either; None where nobody knows."""
    if before.limits is None or after.limits is None:
        return None
    return min(before.limits[0], after.limits[0]), max(before.limits[1], after.limits[1])
