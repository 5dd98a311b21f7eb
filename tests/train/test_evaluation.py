"""An evaluation: its mean, how sure it is, and what it lacks."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.store.records import dumps, evaluation_from_json, evaluation_to_json
from textgrad_engine.train import Evaluation, compare
from textgrad_engine.train.metric_scores import MetricScores
from textgrad_engine.train.statistics import clustered_interval, mean_interval, wilson_interval


def scored(*values: float | None, **fields: object) -> Evaluation:
    return Evaluation(tuple(str(n) for n in range(len(values))), values, values, {}, **fields)  # type: ignore[arg-type]


def test_what_is_missing_bounds_the_mean() -> None:
    """Left out of the mean, and told what it could change."""
    found = scored(1.0, None, 1.0, 0.0)
    assert found.unanswered == 1
    assert found.mean == pytest.approx(2 / 3)
    assert found.bounds == (0.5, 0.75)
    assert str(found).endswith("on 3 examples, 1 unanswered (at worst 0.500, at best 0.750)")
    assert scored(1.0, 0.0).bounds == (0.5, 0.5)


def test_bounds_need_a_scale() -> None:
    """That of the loss; without one, 0 to 1 if the scores keep to it; else nobody knows."""
    assert scored(5.0, None, 3.0, scale=(1.0, 5.0)).bounds == pytest.approx((3.0, 13 / 3))
    assert scored(5.0, None, 3.0).bounds is None
    assert scored(7.0, None, scale=(1.0, 5.0)).bounds is None
    assert str(scored(5.0, None, 3.0)).endswith("on 2 examples, 1 unanswered, by a loss that names no scale")


def test_on_a_scale_without_an_end_the_other_one_bounds() -> None:
    """Nothing unanswered means nothing unknown, and where there is neither end, nobody knows anything."""
    found = scored(3.0, None, 1.0, 2.0, scale=(0.0, math.inf))
    assert found.bounds == (1.5, math.inf)
    assert str(found).endswith("on 3 examples, 1 unanswered (at worst 1.500)")
    assert str(scored(-3.0, None, scale=(-math.inf, 0.0))).endswith("1 unanswered (at best -1.500)")
    endless = (-math.inf, math.inf)
    assert scored(3.0, None, scale=endless).bounds is None
    assert str(scored(3.0, None, scale=endless)).endswith("on 1 example, 1 unanswered")
    assert scored(3.0, 1.0, scale=endless).bounds == (2.0, 2.0)


def test_a_lost_sample_bounds_the_mean_too() -> None:
    """The example keeps its score; the missing sample is not forgotten."""
    found = scored(1.0, 0.5, samples=((1.0, None), (0.0, 1.0)))
    assert found.unanswered == 1
    assert found.mean == 0.75
    assert found.bounds == (0.5, 0.75)


def test_the_interval_goes_by_clusters() -> None:
    """Of the examples that have a score; and by examples without clusters."""
    values = (1.0, 0.0, None, 1.0, 1.0, 0.0)
    found = scored(*values, clusters=("a", "a", "b", "b", "c", "c"))
    low, high = clustered_interval([1, 0, 1, 1, 0], ["a", "a", "b", "c", "c"])
    assert found.interval == (max(low, 0.0), min(high, 1.0))
    assert found.interval != scored(*values).interval
    assert scored(*values).interval == wilson_interval(3, 5)


def test_the_interval_ends_at_the_scale() -> None:
    """No mean of scores between 0 and 1 is above 1, nor one of a judge below its worst; else nobody knows an end."""
    high = (1.0, 1.0, 1.0, 1.0, 0.5, 1.0, 1.0, 0.5)
    assert scored(*high).interval == mean_interval(high, bounds=(0, 1))
    assert str(scored(*high)) == "0.875 [0.497, 1.000] on 8 examples"
    assert scored(*high, scale=(0.5, 2.0)).interval == mean_interval(high, bounds=(0.5, 2.0))
    assert scored(*high, 1.5).interval == mean_interval((*high, 1.5))
    assert mean_interval((*high, 1.5))[1] > 1
    assert scored(1.0, 1.0, 1.0, 1.0, 3.0, scale=(1.0, 5.0)).interval[0] == 1.0
    assert scored(0.5, 0.7, 0.9, clusters=("a", "a", "b")).interval[1] == 1.0
    assert scored(0.5, 0.5, 1.5, 1.5, clusters=("a", "b", "a", "b")).interval == (-math.inf, math.inf)


def test_repeats_are_no_further_examples() -> None:
    """The interval is that of the examples' means, and the spread tells the model's noise apart."""
    samples = ((1.0, 0.0), (1.0, 1.0), (0.0, 0.0), (0.0, 1.0), (1.0, 1.0))
    means = (0.5, 1.0, 0.0, 0.5, 1.0)
    found = scored(*means, samples=samples)
    assert found.interval == mean_interval(means, bounds=(0, 1))
    assert found.spread is not None
    assert found.spread.within == pytest.approx(0.2)
    assert found.spread.between == pytest.approx(0.175 - 0.1)
    assert scored(*means).spread is None
    assert scored(1.0, 0.5, samples=((1.0, None), (None, 0.5))).spread is None


def test_it_survives_the_disk() -> None:
    """Samples, clusters and scale, too; and a folder that was written before there were any can be read."""
    found = scored(0.5, None, samples=((1.0, 0.0), (None, None)), clusters=("a", "b"), scale=(0.0, 1.0))
    assert evaluation_from_json(json.loads(dumps(evaluation_to_json(found)))) == found
    body = evaluation_to_json(scored(1.0, 0.0))
    for name in ("samples", "clusters", "scale"):
        del body[name]
    assert evaluation_from_json(body) == scored(1.0, 0.0)
    assert not math.isnan(evaluation_from_json(body).mean)


def test_a_notebook_shows_it_in_a_line() -> None:
    """Not every id, score and prediction; also where there is no score to take the mean of."""
    found = scored(*[1.0, 0.0] * 200)
    assert repr(found).startswith(f"Evaluation({found};")
    assert len(repr(found)) < 90
    assert repr(scored(None, None)) == "Evaluation(no score, 2 unanswered)"
    assert found != scored(*[0.0, 1.0] * 200)


@pytest.mark.parametrize(
    "use",
    [
        lambda found: found > 0.9,
        lambda found: found >= 0.9,
        lambda found: max(found, found),
        lambda found: float(found),
        lambda found: f"{found:.2f}",
    ],
)
def test_who_takes_it_for_a_number_is_told_where_that_is(use: Callable[[Any], Any]) -> None:
    """As DSPy's results of an evaluation can be."""
    with pytest.raises(TypeError, match=r"is no number; its mean is its \.mean, .* compare\(first, second"):
        use(Evaluation(("a", "b"), (1.0, 0.0), (None, None), {}))


def test_it_is_written_into_a_text_as_it_is_printed() -> None:
    """Where no number is asked for."""
    found = Evaluation(("a", "b"), (1.0, 0.0), (None, None), {})
    assert f"{found}" == str(found)


def test_the_examples_with_the_lowest_scores_are_named() -> None:
    """As `assert tg.evaluate(...).mean > 0.9` fails with it; where all are equal none is lower."""
    assert repr(scored(1.0, 0.0, None, 0.25, 0.75, 0.5)).endswith("; lowest: '1' 0, '3' 0.25, '5' 0.5)")
    assert repr(scored(1.0, 0.0, 0.0)).endswith("; lowest: '1' 0, '2' 0)")
    assert "lowest" not in repr(scored(0.0, 0.0, None))


def test_slices_are_evaluations_of_their_examples() -> None:
    """With all that there is of each; what stands for the whole dataset stays."""
    whole = Evaluation(
        ids=("a", "b", "c", "d"),
        scores=(1.0, None, 0.5, None),
        predictions=("A", None, "C", None),
        failures={"b": "it was cut off"},
        samples=((1.0, 1.0), (None, None), (0.5, 0.5), (None, None)),
        clusters=("1", "1", "2", "2"),
        scale=(0.0, 2.0),
        latency=(0.1, None, 0.3, None),
        not_run=("d",),
        parts=(MetricScores("right", (1.0, None, 0.0, None), (0, 1), 2.0),),
        contents={"text": "12ab"},
    )
    parts = whole.by(["odd", "even", "odd", "even"])
    assert list(parts) == ["odd", "even"]
    assert parts["odd"] == replace(
        whole,
        ids=("a", "c"),
        scores=(1.0, 0.5),
        predictions=("A", "C"),
        failures={},
        samples=((1.0, 1.0), (0.5, 0.5)),
        clusters=("1", "2"),
        latency=(0.1, 0.3),
        not_run=(),
        parts=(MetricScores("right", (1.0, 0.0), (0, 1), 2.0),),
    )
    even = parts["even"]
    assert (even.ids, even.failures, even.not_run, even.unanswered) == (("b", "d"), whole.failures, ("d",), 4)
    assert repr(even) == "Evaluation(no score, 4 unanswered)"
    assert even.latency == (None, None)
    assert even.contents == whole.contents


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0, None]), st.integers(0, 3)), min_size=1))
def test_slices_take_an_evaluation_apart_and_nothing_is_lost(rows: list[tuple[float | None, int]]) -> None:
    """Each example is in one slice, in the order that it had, and its score with it."""
    whole = scored(*[value for value, _ in rows])
    parts = whole.by([value for _, value in rows])
    assert set(parts) == {value for _, value in rows}
    again = sorted((int(name), part) for value, part in parts.items() for name in part.ids)
    assert [number for number, _ in again] == sorted(map(int, whole.ids))
    scores = {name: value for part in parts.values() for name, value in zip(part.ids, part.scores)}
    assert [scores[name] for name in whole.ids] == list(whole.scores)
    assert all(list(part.ids) == sorted(part.ids, key=int) for part in parts.values())
    assert sum(part.unanswered for part in parts.values()) == whole.unanswered


def test_examples_with_an_empty_field_are_one_slice() -> None:
    """In a column of pandas each NaN is an object of its own, and equals nothing, so each made a slice of one."""
    parts = scored(1.0, 0.0, 1.0).by([float("nan"), "late", float("nan")])
    assert [(str(value), len(part)) for value, part in parts.items()] == [("nan", 2), ("late", 1)]


def test_values_that_make_no_slices_are_refused() -> None:
    """One for each example, and each may be a key."""
    with pytest.raises(ValueError, match=r"by: one value for each of the 2 examples, in their order; got 1"):
        scored(1.0, 0.0).by(["a"])
    with pytest.raises(TypeError, match="unhashable"):
        scored(1.0, 0.0).by([["a"], ["b"]])  # type: ignore[list-item]


def test_a_whole_evaluation_and_its_slices_are_compared_alike() -> None:
    """Slice by slice, also where positions alone name the examples."""
    before, after = scored(*[0.0] * 10, contents={"text": "1"}), scored(*[1.0] * 10, contents={"text": "1"})
    values = ["x"] * 9 + ["y"]
    first, second = before.by(values), after.by(values)
    assert compare(first["x"], second["x"], confidence=1 - 0.05 / 2).verdict == "better"
    assert compare(first["y"], second["y"]).verdict == "not shown"
    with pytest.raises(ValueError, match="differ in their ids"):
        compare(first["x"], second["y"])


def test_the_name_of_a_column_is_no_list_of_values() -> None:
    """An evaluation knows no rows; the letters of the name were counted."""
    with pytest.raises(TypeError, match=r"got a text; write \[row\['queue'\] for row in rows\]"):
        Evaluation(("a", "b"), (1.0, 0.0), (1.0, 0.0), {}).by("queue")
