"""Scores by kind of example: nobody takes one of many that looks good by luck for one that is."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

from textgrad_engine.report.printing import printed
from textgrad_engine.report.slices import SHOWN, Sliced, slices_as_json, slices_in_words, slices_of, slices_table
from textgrad_engine.train import compare
from textgrad_engine.train.evaluation import Evaluation


def scored(*scores: float | None) -> Evaluation:
    return Evaluation(tuple(str(n) for n in range(len(scores))), scores, tuple(map(str, scores)), {})


def shown(*args: object, **kwargs: object) -> str:
    return printed([*slices_table("kind", slices_of(*args, **kwargs))], 80, color=False)  # type: ignore[arg-type]


def test_the_largest_come_first() -> None:
    """Of equal size in the order of their values, however the examples are ordered."""
    found = slices_of(["b", "c", "a", "c", "b", "c"], scored(1, 1, 0, 0, 1, 1))
    assert [(each.value, len(each.after)) for each in found] == [("c", 3), ("b", 2), ("a", 1)]
    assert slices_of(["y", "x"], scored(1, 0))[0].value == "x"


def test_of_many_slices_of_nothing_few_say_better() -> None:
    """All of them together, in one of twenty datasets; by themselves one of 40 would each."""
    draw = random.Random(0)
    wrong = alone = 0
    for _ in range(60):
        values = [str(number % 12) for number in range(480)]
        before = scored(*[float(draw.random() < 0.5) for _ in values])
        after = scored(*[float(draw.random() < 0.5) for _ in values])
        found = [each.comparison for each in slices_of(values, after, before)]
        wrong += any(each is not None and each.verdict != "not shown" for each in found)
        alone += any(each is not None and each.p_value < 0.05 for each in found)
    assert wrong <= 6  # 3 are expected
    assert alone > 15


def test_the_intervals_of_all_slices_hold_together() -> None:
    """That of a slice which is alone is an interval like another, and beside one more it is wider."""
    before, after = scored(*[0.0, 1.0] * 20), scored(*[1.0] * 36, *[0.0] * 4)
    (alone,) = slices_of(["a"] * 40, after, before)
    assert alone.comparison is not None
    assert alone.comparison.interval == compare(before, after).interval
    beside = slices_of(["a"] * 40 + ["b"] * 8, scored(*after.scores, *[1.0] * 8), scored(*before.scores, *[1.0] * 8))[0]
    assert beside.comparison is not None
    assert beside.comparison.interval[0] < alone.comparison.interval[0]
    assert beside.comparison.interval[1] > alone.comparison.interval[1]


def test_a_slice_that_got_worse_is_seen_where_all_together_got_better() -> None:
    """Which is what one looks for."""
    values = ["large"] * 60 + ["small"] * 20
    before = scored(*[0.0] * 40, *[1.0] * 20, *[1.0] * 20)
    after = scored(*[1.0] * 60, *[0.0] * 20)
    large, small = slices_of(values, after, before)
    assert large.comparison is not None
    assert small.comparison is not None
    assert (large.comparison.verdict, small.comparison.verdict) == ("better", "worse")
    said = shown(values, after, before)
    assert "small         20   1.000   0.000   -1.000" in said
    assert said.endswith("  The intervals of the differences hold for all 2 slices together (Bonferroni).\n")


def test_slices_without_answers_say_so() -> None:
    """In one evaluation or in both, for people and for machines."""
    values = ["a", "a", "b", "c"]
    before, after = scored(1, 0, None, 1), scored(1, 1, 1, None)
    found = {each.value: each for each in slices_of(values, after, before)}
    assert found["b"].comparison is found["c"].comparison is None
    said = shown(values, after, before)
    assert [line.split()[:4] for line in said.splitlines() if line.startswith(("  b ", "  c "))] == [
        ["b", "1", "no", "answer"],
        ["c", "0", "1.000", "no"],
    ]
    told = "2 answers that are missing left out, and differences are of examples with both."
    assert told in " ".join(said.split())  # so that a difference need not be that of the two means beside it
    rows = slices_as_json(slices_of(values, after, before))
    json.dumps(rows, allow_nan=False)
    assert rows[1] == {
        "value": "b",
        "before": {"mean": None, "interval": None, "examples": 1, "unanswered": 1},
        "after": rows[1]["after"],
        "comparison": None,
    }
    assert "no answer" in shown(values, after)


def test_one_evaluation_alone_is_compared_with_nothing() -> None:
    """Its intervals are of each slice by itself, and that is said."""
    said = shown(["a", "b", "a"], scored(1, 0, 1))
    assert "kind   examples   score\n" in said
    assert "difference" not in said
    assert "Each interval is a 95% one by itself" in said
    assert slices_as_json(slices_of(["a"], scored(1)))[0].keys() == {
        "value",
        "mean",
        "interval",
        "examples",
        "unanswered",
    }


def test_there_may_be_many_and_long_and_hostile_values() -> None:
    """The table stays one, and machines get all of it."""
    values = [f"v{number:03}" for number in range(60) for _ in range(2)] + ["x" * 500] * 4 + ["[bold]\x1b[2J\nnot"] * 3
    evaluation = scored(*[1.0] * len(values))
    said = shown(values, evaluation)
    assert f"{'x' * 39}…" in said
    assert "x" * 41 not in said
    assert "[bold]\N{REPLACEMENT CHARACTER}[2J not" in said
    assert f"There are {62 - SHOWN} more, no larger ones, which --json prints." in said
    assert max(map(len, said.splitlines())) <= 80
    assert len(slices_as_json(slices_of(values, evaluation))) == 62


@pytest.mark.parametrize("clusters", [1, 2, 4])
def test_clusters_are_what_counts_in_slices_too(clusters: int) -> None:
    """A slice may hold one alone, of which nobody knows how it would vary."""
    names = tuple(str(number * clusters // 8) for number in range(8))
    before, after = (replace(scored(*[value] * 8), clusters=names) for value in (0.0, 1.0))
    (found,) = slices_of(["a"] * 8, after, before)
    assert found.comparison is not None
    assert found.comparison.clusters == clusters
    assert found.comparison.verdict == "not shown"
    json.dumps(slices_as_json([found]), allow_nan=False)
    assert "a" in shown(["a"] * 8, after, before)


def test_what_a_floor_could_keep_is_told() -> None:
    """And by which examples to choose it: whoever chooses by test examples flatters what is tested next."""
    values = ["large"] * 60 + ["small"] * 20
    before, after = scored(*[0.0] * 60, *[1.0] * 20), scored(*[1.0] * 60, *[0.0] * 20)
    slices = slices_of(values, after, before)
    test, val = (" ".join(Sliced("size", split, before, after, slices).remarks()) for split in ("test", "val"))
    assert "choose them by the validation examples (show RUN --by COLUMN --val), not by these." in test
    assert "keep the next run from making a slice worse. These examples chose" in val
    better = slices_of(["all"] * 80, after, before)
    assert "guards" not in " ".join(Sliced("size", "test", before, after, better).remarks())
    assert Sliced("size", "test", None, after, slices_of(values, after)).remarks() == [
        "The run kept the seed prompt, so there is nothing to compare it with."
    ]


def test_values_that_nobody_would_see_are_shown_in_quotes() -> None:
    """Empty ones and white space: else two slices look like one that has no name, or have the same one."""
    _, rows, _ = slices_in_words("kind", slices_of(["", "  ", "x", "x "], scored(1.0, 0.0, 1.0, 1.0)))
    assert [row[0] for row in rows] == ['""', '"  "', "x", '"x "']


def test_slices_that_are_left_out_are_no_larger_ones() -> None:
    """They may be as large as those that are shown."""
    number = 2 * SHOWN + 4
    *_, note = slices_in_words("kind", slices_of([str(n // 2) for n in range(number)], scored(*[1.0] * number)))
    assert note.startswith("There are 2 more, no larger ones, which --json prints.")
