"""Guards: what no new text may break, however much better it is on the whole."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from textgrad_engine.attributes import attributes_told
from textgrad_engine.checks import at_least, check, texts_in_order
from textgrad_engine.data import examples_of, ids_of
from textgrad_engine.data.names import listed, suggest
from textgrad_engine.errors import DataError
from textgrad_engine.nn.scores import scores_between
from textgrad_engine.ops.alike import plain
from textgrad_engine.ops.evaluators import written
from textgrad_engine.plain_values import is_number
from textgrad_engine.train.guarded import RERUNS, Floor, Guarded
from textgrad_engine.train.metric_scores import MetricScores
from textgrad_engine.train.metrics_of import parts_of
from textgrad_engine.train.standing import in_a_sentence

_EXAMPLE = "such as {('queue', 'billing'): 0.5}"


@attributes_told
@dataclass(frozen=True)
class Guards:
    """Validation examples that must never break, and floors under the scores of slices of the set and under metrics.

    A new text that won its race is kept only if no example of `never_break` scores less than with the current texts,
    and the mean score of each slice and of each metric is at least its floor. A mean that is below its floor already
    must not get worse. Examples that could not be run with the new text count against it: those of `never_break` as
    broken; any other that the current texts answered as the worst possible score (if that is unknown, 0, or the lowest
    of the slice). With floors under metrics, each text that won is run on all validation examples.

    An example of `never_break` that did worse is run again, and is broken if no run reaches what the current texts
    reached. For scores vary if a model samples or a judge is in doubt: with fifteen examples, each off one time in ten,
    a single run would break some in four of five changes that are no worse. So this guards less than one run would: an
    example that becomes right in half of its answers passes seven times in eight. With ``reruns=0`` one run decides.
    New texts are held to the best run so far, which may have been luck for an example in the middle of a scale: name
    examples that have the best score, or set `passing` to a score that is good enough. Floors use one run of each
    example, as means are steadier.

    Attributes:
        never_break: ids of validation examples.
        floors: for slices, each a field and its value, the least mean score.
        metrics: for metrics that the score is made of (`nn.Weighted`), or criteria (`nn.Rubric`; "not: " stands before
            one that must not be met), by name, the least mean that they give the whole validation set, each on its own
            scale: a brief answer is no gain where it is less safe.
        reruns: how often an example of `never_break` that did worse is run again at most before it counts as broken, as
            pytest-rerunfailures does with a test. Each rerun is another sample of the same answers, and paid for.
        passing: a score that is good enough: an example of `never_break` that reaches it is not broken, whatever it
            scored before, and one that was below it must not get worse. Use it for judges, similarities and other
            graded metrics, whose marks vary a little. None: the score reached before.

    Raises:
        ValueError: there is nothing to guard, a floor or `passing` is no number, `reruns` is negative, or one of these
            is given without `never_break`.
        TypeError: `never_break` is no sequence of ids, `floors` or `metrics` no mapping, or a slice is no field with a
            value.

    Example:
        >>> guards = Guards(never_break=("a",), floors={("queue", "billing"): 0.5})
        >>> rows = [{"id": "a", "queue": "billing"}, {"id": "b", "queue": "billing"}, {"id": "c", "queue": "sales"}]
        >>> guarded = guards.on(rows)
        >>> guarded.positions
        (0, 1)
        >>> guarded.broken({0: 1.0, 1: 0.0}, {0: 0.0, 1: 1.0})
        'a must never break: 1.000 -> 0.000'
        >>> Guards(never_break=("a",), passing=0.75).on(rows).broken({0: 1.0, 1: 0.0}, {0: 0.8, 1: 1.0})
        ''
        >>> guarded.broken({0: 0.0, 1: 1.0}, {0: 0.0, 1: 0.0})
        "queue = 'billing' (2 examples) has a floor of 0.5: 0.500 -> 0.000"
    """

    never_break: tuple[str, ...] = ()
    floors: Mapping[tuple[str, Any], float] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    reruns: int = RERUNS
    passing: float | None = None

    if TYPE_CHECKING:  # any sequence of ids is one

        def __init__(
            self,
            never_break: Iterable[str] = ...,
            floors: Mapping[tuple[str, Any], float] = ...,
            metrics: Mapping[str, float] = ...,
            reruns: int = ...,
            passing: float | None = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        given: object = self.never_break  # a text is a sequence of texts, too
        if isinstance(given, str):
            raise TypeError(f"never_break is a sequence of ids, got one text; write [{given!r}]")
        if not isinstance(given, Iterable):
            raise TypeError(f"never_break is a sequence of ids, got {type(given).__name__}; write [{given!r:.80}]")
        object.__setattr__(self, "never_break", tuple(map(str, texts_in_order(self.never_break))))
        _check_floors(self.floors)
        _check_metrics(self.metrics)
        if not self.never_break and not self.floors and not self.metrics:
            raise ValueError(
                "guards guard nothing: give never_break=(ids...), floors={(field, value): score} or "
                "metrics={name: score}"
            )
        check(Guards, {"reruns": self.reruns}, at_least(0, "reruns"))
        if self.reruns != RERUNS and not self.never_break:
            raise ValueError(
                f"reruns={self.reruns} is about examples of never_break, and it names none: a floor goes by one run of "
                "each example; give never_break=(ids...) or leave reruns out"
            )
        if self.passing is not None and not _is_finite(self.passing):
            raise ValueError(f"passing must be a score, such as 0.75, or None, got {self.passing!r:.80}")
        if self.passing is not None and not self.never_break:
            raise ValueError(
                f"passing={self.passing:g} is about examples of never_break, and it names none; give "
                "never_break=(ids...) or leave passing out"
            )

    def on(
        self,
        rows: Sequence[Mapping[str, Any]],
        scale: tuple[float, float] | None = None,
        parts: Sequence[MetricScores] = (),
        others: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    ) -> Guarded:
        """The guards by the positions of the examples.

        Args:
            rows: the validation examples.
            scale: the lowest and the highest score that there can be; None where nobody knows.
            parts: the metrics that the score is made of; none where it is that of one.
            others: examples of other sets, by what these are called, such as ``"training"``: of what is missed among
                the validation examples a message says where it is.

        Raises:
            DataError: there is no such example, slice or metric, or a floor is not among the scores that there can be.

        Example:
            >>> Guards(floors={("queue", "billing"): 5}).on([{"id": "a", "queue": "billing"}], scale=(0, 1))
            Traceback (most recent call last):
            textgrad_engine.errors.DataError: the floor of queue = 'billing' is 5, and scores run from 0 to 1; ...
        """
        names = ids_of(rows)
        positions = {name: position for position, name in enumerate(names)}
        for name in self.never_break:
            if name not in positions:
                raise DataError(f"never_break names {name!r}, {_no_such(name, names, others or {})}")
        for (column, value), least in self.floors.items():
            if not _slice(rows, column, value):
                having = [kind for kind, own in (others or {}).items() if _slice(own, column, value)]
                where = f"; guards are about these, and not about {having[0]} examples, which have it" if having else ""
                raise DataError(f"floors names {column} = {value!r}, {_instead(column, rows)}{where}")
            _check_least(f"{column} = {value!r}", least, scale)
        known = [part.name for part in parts]
        for name, least in self.metrics.items():
            if name not in known:
                raise DataError(f"metrics names {name!r}, " + _no_metric(name, known))
            part = parts[known.index(name)]
            _check_least(in_a_sentence(part.called), least, part.scale)
        floors = self.floors_on(rows, scale, parts)
        never_break = tuple(dict.fromkeys(positions[name] for name in self.never_break))
        passing = None if self.passing is None else float(self.passing)
        if passing is not None and scale is not None and not scale[0] < passing <= scale[1]:
            raise DataError(
                f"passing is {passing:g}, and scores run from {scale[0]:g} to {scale[1]:g}; an example of never_break "
                "that reaches it is not broken, so give a score between these, above the lowest"
            )
        return Guarded(names, never_break, floors, self.reruns if never_break else 0, passing)

    def floors_on(
        self,
        rows: Sequence[Mapping[str, Any]],
        scale: tuple[float, float] | None = None,
        parts: Sequence[MetricScores] = (),
    ) -> tuple[Floor, ...]:
        """The floors by the positions of any examples, such as test examples; none under a slice that has none there.

        Args:
            rows: the examples.
            scale: as for `on`.
            parts: likewise.
        """
        worst = None if scale is None else scale[0]
        floors = []
        for (column, value), least in self.floors.items():
            if found := _slice(rows, column, value):
                floors.append(Floor(f"{column} = {value!r}", float(least), found, worst))
        every = tuple(range(len(rows)))
        known = [part.name for part in parts]
        for name, least in self.metrics.items():
            at = known.index(name)
            floors.append(Floor(parts[at].called, float(least), every, parts[at].scale[0], at))
        return tuple(floors)


def guarded_by(
    guards: Guards | None,
    rows: Sequence[Mapping[str, Any]],
    loss: Callable[..., Any],
    train: Sequence[Mapping[str, Any]] = (),
    test: Sequence[Mapping[str, Any]] | None = None,
) -> Guarded | None:
    """The guards on a validation set; None where there are none.

    Args:
        guards: the guards.
        rows: the validation examples.
        loss: what scores them.
        train: the training examples, where somebody may have taken what is guarded from them.
        test: the test examples, likewise.

    Raises:
        DataError: as for `Guards.on`.
    """
    others = {"training": train, "test": test or ()}
    return None if guards is None else guards.on(rows, scores_between(loss), parts_of(loss), others)


def _check_floors(floors: object) -> None:
    if not isinstance(floors, Mapping):
        raise TypeError(f"floors maps slices to floors, {_EXAMPLE}; got {type(floors).__name__} {floors!r:.80}")
    for part, floor in floors.items():
        if not isinstance(part, tuple) or len(part) != 2 or not isinstance(part[0], str):
            raise TypeError(f"floors names a slice by field and value, {_EXAMPLE}; got {part!r:.80}: {floor!r:.80}")
        if not _is_finite(floor):
            raise ValueError(f"the floor of {part[0]} = {part[1]!r} must be a number, got {floor!r}")


def _check_metrics(metrics: object) -> None:
    if not isinstance(metrics, Mapping):
        raise TypeError(f"metrics maps names to floors, such as {{'safe': 0.9}}; got {metrics!r:.80}")
    for name, floor in metrics.items():
        if not isinstance(name, str):
            raise TypeError(f"metrics names a metric by a text, such as {{'safe': 0.9}}; got {name!r:.80}")
        if not _is_finite(floor):
            raise ValueError(f"the floor of the metric {name!r} must be a number, got {floor!r}")


def _is_finite(value: Any) -> bool:
    return is_number(value) and math.isfinite(value)


def _check_least(of: str, least: float, scale: tuple[float, float] | None) -> None:
    if scale is not None and not scale[0] <= least <= scale[1]:
        raise DataError(
            f"the floor of {of} is {least:g}, and scores run from {scale[0]:g} to {scale[1]:g}; a floor is a mean "
            "score, so give one between these"
        )


def _no_such(name: str, names: Sequence[str], others: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """What is said of an id that no validation example has."""
    known = f"they are {names[0]} to {names[-1]}"
    for kind, rows in others.items():
        if name in ids_of(rows):
            return f"which is a {kind} example; guards are about validation examples alone, and {known}"
    return "and no validation example has that id" + (suggest(name, names) or f"; {known}")


def _no_metric(name: str, known: Sequence[str]) -> str:
    if not known:
        return (
            "and the score is made by one metric; floors under several are for an nn.Weighted of them, or for criteria "
            "that all examples share, nn.Rubric([...])"
        )
    return "and the score is made of no such metric" + (suggest(name, known) or f"; they are {listed(known)}")


def _slice(rows: Sequence[Mapping[str, Any]], column: str, value: Any) -> tuple[int, ...]:
    """The positions of the examples that have a value in a column."""
    return tuple(n for n, row in enumerate(examples_of(rows)) if column in row and _is_called(row[column], value))


def _is_called(found: Any, value: Any) -> bool:
    """Whether a field has a value, read as exact match does; a config names it as JSON or as Python writes it."""
    return plain(str(value)) in (plain(str(found)), plain(written(found)))


def _instead(column: str, rows: Sequence[Mapping[str, Any]]) -> str:
    values = list(dict.fromkeys(repr(row[column]) for row in examples_of(rows) if column in row))
    if values:
        shown = ", ".join(values[:8]) + (f" and {len(values) - 8} more" if len(values) > 8 else "")
        return f"and no validation example has that; {column} is {shown}"
    columns = list(dict.fromkeys(name for row in examples_of(rows) for name in row))
    return f"and no validation example has a field {column!r}" + (
        suggest(column, columns) or f"; they have {', '.join(columns)}"
    )
