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


def run_of(results, optimizer, seed, *points):
    """A run with points of tokens, seconds and expected score; what it spent in all is ten times the last point."""
    made = [results.Point(0, 0.0, 0.4, 0.0)]
    made += [results.Point(tokens, seconds, score, (score - 0.4) / 0.5) for tokens, seconds, score in points]
    last = made[-1]
    return results.Run(
        "task", seed, optimizer, "text", last.expected, last.expected, last.way, 0.9, {"forward": 7},
        10 * last.tokens, 10 * last.seconds, tuple(made),
    )  # fmt: skip


def test_what_was_spent_at_the_final_score_of_another(results):
    """Beside what the other had spent when it was there, and all that it spent."""
    runs = [
        run_of(results, "ours", 1, (100, 1.0, 0.6), (300, 3.0, 0.8)),
        run_of(results, "theirs", 1, (400, 10.0, 0.8), (500, 20.0, 0.7), (600, 30.0, 0.8)),
    ]
    row = results.against(runs, "task", "ours", ["theirs"]).splitlines()[-1]
    assert row == "| theirs | 80 | 1 of 1 | 75% | 30% | 5% | 1% |"


def test_a_score_that_was_never_reached_counts(results):
    """A median over seeds that leaves out those that failed would flatter."""
    runs = [run_of(results, "theirs", seed, (100, 1.0, 0.8)) for seed in (1, 2, 3)]
    runs += [run_of(results, "ours", seed, (50, 1.0, 0.8 if seed == 1 else 0.7)) for seed in (1, 2, 3)]
    assert (
        results.against(runs, "task", "ours", ["theirs"]).splitlines()[-1] == "| theirs | 80 | 1 of 3 | - | - | - | - |"
    )


def test_the_table_has_a_row_for_each_optimizer(results):
    """Medians over the seeds, in Markdown."""
    runs = [run_of(results, "ours", seed, (100 * seed, 1.0, 0.8)) for seed in (1, 2, 3)]
    rows = results.table(runs, "task").splitlines()
    assert rows[0].startswith("task: 3 seeds, median optimum 0.900.")
    assert rows[-1].startswith(
        "| ours | 0.800 [0.800, 0.800] | 0.800 | 80 [80, 80] | 7 / 0 / 0 | 2,000 [1,000, 3,000] |"
    )


def test_the_interval_of_a_median(results):
    """Ten values: the second and the ninth hold the median with 97.9%, the third and the eighth with 89.1% only."""
    assert results.median_interval(list(range(1, 11))) == (5.5, 2, 9)


def test_what_it_is_ahead_with_a_part_of_what_another_spent(results):
    """Both parts count: a better prompt that came too late, or cost too much, is not looked at; seed by seed."""
    runs = [run_of(results, "theirs", seed, (100, 10.0, 0.8)) for seed in (1, 2, 3)]
    runs += [
        run_of(results, "ours", 1, (400, 20.0, 0.9), (900, 90.0, 1.0)),
        run_of(results, "ours", 2, (300, 10.0, 0.7), (401, 15.0, 1.0)),
        run_of(results, "ours", 3, (300, 10.0, 0.85), (350, 20.1, 1.0)),
    ]
    row = results.ahead(runs, "task", "ours", ["theirs"], 0.4, 0.2).splitlines()[-1]
    assert row == "| theirs | 80 | 83 | +3 [-48, +55] |"


def test_what_was_spent_at_a_part_of_the_way(results):
    """Beside all that the other spent, whatever that one came to; a seed that never came so far is not left out."""
    runs = [run_of(results, "theirs", seed, (100 * seed, 10.0, 0.7)) for seed in (1, 2, 3)]
    runs += [
        run_of(results, "ours", 1, (50, 1.0, 0.79), (100, 2.0, 0.8), (400, 20.0, 0.9)),
        run_of(results, "ours", 2, (1000, 10.0, 0.85)),
        run_of(results, "ours", 3, (50, 1.0, 0.79)),
    ]
    row = results.underway(runs, "task", "ours", ["theirs"], 0.8).splitlines()[-1]
    assert row == "| theirs | 60 | 2 of 3 | 50% [10%, -] | 10% [2%, -] |"


def test_what_was_spent_where_another_ends_in_the_mean(results):
    """The same score on all seeds: where the other was lucky, or stuck, says nothing about how hard the seed is."""
    runs = [run_of(results, "theirs", seed, (100, 10.0, score)) for seed, score in ((1, 0.5), (2, 0.7), (3, 0.9))]
    runs += [run_of(results, "ours", seed, (50, 1.0, 0.6), (200, 2.0, 0.7), (300, 5.0, 0.9)) for seed in (1, 2, 3)]
    rows = results.underway(runs, "task", "ours", ["theirs"], None).splitlines()
    assert rows[0].startswith("| ours at that mean end, beside | which ends at, % |")
    assert rows[-1] == "| theirs | 60 | 3 of 3 | 20% [20%, 20%] | 2% [2%, 2%] |"
