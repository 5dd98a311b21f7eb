"""Which examples score otherwise than before: noise is no change, and what others wrote as an id stays in its line."""

from __future__ import annotations

import json

import pytest

from textgrad_engine.report.changed import changed, changed_as_json, changed_in_lines, how_changed
from textgrad_engine.train.evaluation import Evaluation


def scored(*scores: float | None, ids: tuple[str, ...] = (), **fields: object) -> Evaluation:
    names = ids or tuple(f"t{number}" for number in range(len(scores)))
    return Evaluation(names, scores, ("x",) * len(scores), {}, **fields)  # type: ignore[arg-type]


def repeated(*rows: tuple[float | None, ...]) -> Evaluation:
    there = [[score for score in row if score is not None] for row in rows]
    means = [sum(row) / len(row) if row else None for row in there]
    return scored(*means, samples=rows)


def lines(before: Evaluation, after: Evaluation, columns: int = 80) -> list[str]:
    return list(changed_in_lines(changed(before, after), "  2  ", columns))


def test_what_changed_the_most_comes_first() -> None:
    """Equal changes in the order of the data."""
    found = changed(scored(0.5, 1.0, 0.2, 0.4, 0.0), scored(0.25, 0.0, 0.9, 0.4, 0.7))
    assert [(each.id, each.before, each.after) for each in found.worse] == [("t1", 1.0, 0.0), ("t0", 0.5, 0.25)]
    assert [each.id for each in found.better] == ["t2", "t4"]
    assert not found.lost
    assert not found.lost_before


def test_scores_that_differ_by_rounding_alone_are_the_same() -> None:
    """A sum of three tenths is none of 0.3."""
    found = changed(scored(0.1 + 0.2), scored(0.3))
    assert not found.worse
    assert not found.better


def test_a_lost_answer_is_told_apart_from_a_worse_one() -> None:
    """It has no score; what was not come to, as the budget was spent, is neither."""
    before = scored(1.0, None, 0.0, 1.0, not_run=())
    after = scored(None, 1.0, None, None, not_run=("t3",))
    found = changed(before, after)
    assert ([each.id for each in found.lost], [each.id for each in found.lost_before]) == (["t0", "t2"], ["t1"])
    assert not found.worse
    assert not found.better
    assert lines(before, after)[2:] == ["  2  no answer (2): t0, t2", "  2  no answer from the first (1): t1"]


@pytest.mark.parametrize(
    ("before", "after", "worse", "within"),
    [
        ((1, 1, 1), (0, 0, 0), 1, 0),
        ((1, 1, 0), (0, 0, 1), 0, 1),
        ((1, 1), (0, 1), 0, 1),
        ((1, 1, 1, 1, 1), (0, 0, 0, 0, 1), 1, 0),
        ((1, 1, None), (0, None, 0), 1, 0),
        ((0.8, 0.9, 0.85), (0.7, 0.6, 0.75), 1, 0),
        ((0.8, 0.9, 0.7), (0.75, 0.6, 0.85), 0, 1),
        ((5, 5, 5, 5, 0), (4, 4, 4, 4, 100), 0, 1),
    ],
)
def test_with_repeats_what_runs_of_one_prompt_differ_by_is_no_change(
    before: tuple[float | None, ...], after: tuple[float | None, ...], worse: int, within: int
) -> None:
    """In both directions."""
    found = changed(repeated(before), repeated(after))
    assert (len(found.worse), len(found.better), found.within) == (worse, 0, within)
    back = changed(repeated(after), repeated(before))
    assert (len(back.worse), len(back.better), back.within) == (0, worse, within)
    assert found.runs == len(before)


def test_repeats_beside_a_single_run_count_pair_by_pair() -> None:
    """As a run measures each example once, and `eval --repeats` several times."""
    found = changed(scored(1.0, 1.0), repeated((0, 0, 0), (0, 1, 0)))
    assert ([each.id for each in found.worse], found.within, found.runs) == (["t0"], 1, 1)


def test_how_often_each_prompt_was_run_is_said_of_either() -> None:
    """Whoever asked for repeats is not told to ask for them."""
    once, thrice = scored(1.0, 1.0), repeated((0, 0, 0), (0, 1, 0))
    assert "one run each" in how_changed([changed(once, scored(0.0, 1.0))])
    told = how_changed([changed(once, thrice)])
    assert told.startswith("Each example was run once with one prompt and 3 times with the other, and counts as worse")
    assert told.endswith(" 1 more differs by less, as runs of one prompt do.")
    other = changed(thrice, repeated((1, 1, 1), (0, 1, 0)))
    assert "run 3 times with each prompt" in how_changed([changed(thrice, thrice), other])


def test_a_flaky_example_is_rarely_called_changed() -> None:
    """Of one that is right half of the time, by what all outcomes of five runs with each prompt say."""
    called = 0
    for outcome in range(2**10):
        runs = [float(outcome >> bit & 1) for bit in range(10)]
        found = changed(repeated(tuple(runs[:5])), repeated(tuple(runs[5:])))
        called += len(found.worse) + len(found.better)
    assert 0 < called / 2**10 < 0.025


def test_each_fact_is_one_line_that_fits() -> None:
    """With the number of all, whatever there is room for."""
    count = 60
    before, after = scored(*[1.0] * count), scored(*[0.0] * (count - 1), 1.0)
    for columns in (40, 80, 100):
        worse, better = lines(before, after, columns)
        assert worse.startswith("  2  got worse (59): t0, t1, ")
        assert worse.endswith(" more")
        assert columns - 8 < len(worse) <= columns
        assert int(worse.split()[-2]) + worse.count(", t") + 1 == 59
        assert better == "  2  got better (0)"
    assert lines(scored(1.0, 1.0), scored(0.0, 1.0))[0] == "  2  got worse (1): t0"


def test_all_are_named_where_they_just_fit() -> None:
    """Then nothing more is to be told."""
    before, after = scored(*[1.0] * 10), scored(*[0.0] * 10)
    whole = "  2  got worse (10): " + ", ".join(f"t{number}" for number in range(10))
    assert lines(before, after, len(whole))[0] == whole
    assert lines(before, after, len(whole) - 1)[0].endswith(", and 4 more")


def test_changes_of_marks_in_between_say_by_how_much() -> None:
    """Right and wrong need none."""
    worse, better = lines(scored(0.9, 0.5, 0.0), scored(0.1, 0.45, 1.0))
    assert worse == "  2  got worse (2): t0 -0.800, t1 -0.050"
    assert better == "  2  got better (1): t2"


def test_long_ids_are_told_apart_by_both_ends() -> None:
    """Paths and the like begin alike, and a line of equal words names nothing."""
    names = tuple(f"corpus/tickets/shard-0001/document-{number:06}" for number in range(2))
    line = lines(scored(1.0, 1.0, ids=names), scored(0.0, 0.0, ids=names))[0]
    assert line == "  2  got worse (2): corpus/ticke…ment-000000, corpus/ticke…ment-000001"


@pytest.mark.parametrize(
    "name",
    [
        "a\nb\r\n```\n# c",
        "\x1b[2J\x1b[31mred",
        "[bold]x[/bold] <script>",
        "x" * 10_000,
        "\u202egnp.exe",
        "票" * 5_000,
        "a\u2028b",
    ],
)
def test_ids_that_others_wrote_stay_in_their_line(name: str) -> None:
    """With nothing that a terminal obeys; the document has them as they are."""
    from rich.cells import cell_len

    found = changed(scored(1.0, 1.0, ids=(name, "t1")), scored(0.0, 0.0, ids=(name, "t1")))
    for columns in (40, 80):
        told = list(changed_in_lines(found, "  2  ", columns))
        assert len(told) == 2
        assert all(line.isprintable() and cell_len(line) <= columns for line in told)
        assert told[0].endswith((", t1", " more"))
    assert changed_as_json(found)["worse"][0] == {"id": name, "before": 1.0, "after": 0.0}  # type: ignore[index]
    json.dumps(changed_as_json(found))


def test_machines_get_all_of_it() -> None:
    """Each list, with both scores; null where nothing could be compared."""
    found = changed(repeated((1, 1), (0, 1), (None, None)), repeated((0, 0), (1, 1), (1, 1)))
    assert changed_as_json(found) == {
        "worse": [{"id": "t0", "before": 1.0, "after": 0.0}],
        "better": [],
        "lost": [],
        "lost_before": [{"id": "t2", "before": None, "after": 1.0}],
        "within": 1,
        "runs": 2,
        "runs_most": 2,
    }
    assert changed_as_json(None) is None
