"""What the benchmark of the optimizers says of its runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    from proving import results

    yield results
    for name in [name for name in sys.modules if name.split(".")[0] == "proving"]:
        del sys.modules[name]


def run_of(results, optimizer, seed, *points, **more):
    """A run with points of tokens, seconds and expected score; what it spent in all is ten times the last point."""
    made = [results.Point(0, 0.0, 0.4, 0.0)]
    made += [results.Point(tokens, seconds, score, (score - 0.4) / 0.5) for tokens, seconds, score in points]
    last = made[-1]
    return results.Run(
        "task", seed, optimizer, "text", last.expected, last.expected, last.way, 0.9, {"forward": 7},
        10 * last.tokens, 10 * last.seconds, tuple(made), **more,
    )  # fmt: skip


def cells(row):
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_each_reading_of_what_was_spent_is_a_row(results):
    """At a part of the way or at the other's score; beside all that it spent, or until it was first that good."""
    runs = [
        run_of(results, "ours", 1, (100, 1.0, 0.6), (300, 3.0, 0.8), (500, 5.0, 0.85)),
        run_of(results, "theirs", 1, (400, 10.0, 0.85), (500, 20.0, 0.7), (600, 30.0, 0.85)),
    ]
    rows = [cells(row) for row in results.line(runs, "task", "ours", "theirs").splitlines()[2:]]
    assert rows == [
        ["80% of the way", "at its end", "medians", "5%", "1%", "yes"],
        ["80% of the way", "first at its final score", "medians", "75%", "30%", "no"],
        ["80% of the way", "at its end", "seed by seed", "5%", "1%", "1 of 1"],
        ["80% of the way", "first at its final score", "seed by seed", "75%", "30%", "0 of 1"],
        ["the same score", "at its end", "seed by seed", "8%", "2%", "1 of 1"],
        ["the same score", "first at its final score", "seed by seed", "125%", "50%", "0 of 1"],
    ]


def test_what_was_never_reached_counts(results):
    """A median over seeds that leaves out those that failed would flatter."""
    runs = [run_of(results, "theirs", seed, (100, 1.0, 0.8)) for seed in (1, 2, 3)]
    runs += [run_of(results, "ours", seed, (50, 1.0, 0.8 if seed == 1 else 0.7)) for seed in (1, 2, 3)]
    rows = [cells(row) for row in results.line(runs, "task", "ours", "theirs").splitlines()[2:]]
    assert {tuple(row[3:5]) for row in rows} == {("-", "-")}
    assert [row[5] for row in rows] == ["no", "no", "1 of 3", "0 of 3", "1 of 3", "0 of 3"]


def test_time_is_compared_where_both_were_run_on_a_clock_on_the_wall(results):
    """The wait alone would be beside wall time, and answers at once beside those that took a while."""
    runs = [run_of(results, "theirs", seed, (100, 10.0, 0.8)) for seed in (1, 2)]
    runs.append(run_of(results, "theirs", 3, (100, 0.001, 0.8), latency=0.0))
    runs.append(run_of(results, "ours", 1, (100, 10.0, 0.8)))
    runs += [run_of(results, "ours", seed, (100, 0.1, 0.8), virtual=True) for seed in (2, 3)]
    rows = [cells(row) for row in results.line(runs, "task", "ours", "theirs").splitlines()[2:]]
    assert [row[3:] for row in rows] == [["10%", "10%", "yes"], ["100%", "100%", "no"]] + 2 * [
        ["10%", "10%", "1 of 1"],
        ["100%", "100%", "0 of 1"],
    ]
    none = [run for run in runs if run.seed != 1]
    assert {cells(row)[4] for row in results.line(none, "task", "ours", "theirs").splitlines()[2:]} == {"-"}


def test_everybody_is_given_the_same(results):
    """A prompt that was found after the tokens or the time were spent is not looked at."""
    runs = [
        run_of(results, "ours", 1, (50_000, 4.9, 0.6), (50_001, 5.1, 0.65), (100_000, 20.0, 0.7), (200_001, 21.0, 0.9)),
        run_of(results, "waits", 1, (60_000, 5.0, 0.65), virtual=True),
        run_of(results, "at once", 1, (60_000, 0.0, 0.65), latency=0.0),
    ]
    rows = [cells(row) for row in results.equal_spend(runs, "task").splitlines()]
    assert rows[0] == [
        "task: way, % with",
        "50k tokens",
        "100k tokens",
        "200k tokens",
        "time 25",
        "time 50",
        "time 100",
    ]
    assert rows[2:] == [
        ["ours", "40", "60", "60", "40", "50", "60"],
        ["waits", "0", "50", "50", "50*", "50*", "50*"],
        ["at once", "0", "50", "50", "-", "-", "-"],
    ]


def test_tables_are_over_the_seeds_that_all_have(results):
    """Medians over other seeds would compare tasks."""
    runs = [run_of(results, name, seed, (1, 1.0, 0.5)) for name, seed in (("a", 1), ("a", 2), ("b", 2), ("b", 3))]
    assert [(run.optimizer, run.seed) for run in results.common(runs, "task")] == [("a", 2), ("b", 2)]


def test_runs_come_back_from_a_file(results, tmp_path):
    """All of them with what tables need; the prompts, which make it large, may stay out."""
    runs = [
        run_of(results, "ours", 1, (100, 1.0, 0.9), load=3.25),
        run_of(results, "theirs", 1, virtual=True, load=1.0),
    ]
    path = tmp_path / "runs.json"
    path.write_text(results.dumped(runs), encoding="utf-8")
    assert results.loaded(path) == runs
    path.write_text(results.dumped(runs, prompts=False), encoding="utf-8")
    assert [run.prompt for run in results.loaded(path)] == ["", ""]
    assert results.table(results.loaded(path), "task") == results.table(runs, "task")


def test_the_table_has_a_row_for_each_optimizer(results):
    """Medians over the seeds, in Markdown."""
    runs = [run_of(results, "ours", seed, (100 * seed, 1.0, 0.8)) for seed in (1, 2, 3)]
    rows = results.table(runs, "task").splitlines()
    assert rows[0].startswith("task: 3 seeds, median optimum 0.900.")
    assert rows[-1].startswith("| ours | 80 [80, 80] | 0.800 | 7 / 0 / 0 | 2,000 [1,000, 3,000] | 50 [50, 50] |")


def test_the_interval_of_a_median(results):
    """Ten values: the second and the ninth hold the median with 97.9%, the third and the eighth with 89.1% only."""
    assert results.median_interval(list(range(1, 11))) == (5.5, 2, 9)
