"""random_split: parts that do not overlap and lose nothing."""

from __future__ import annotations

import decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.data import Dataset, random_split
from textgrad_engine.data.overlap import overlap
from textgrad_engine.errors import DataError


@pytest.mark.parametrize(
    ("n", "fractions", "message"),
    [
        (10, [], "is empty"),
        (10, [0.5, 0.4], "sum to 1, or lengths to the 10 examples"),
        (10, [5, 4], "sums to 9"),
        (10, [1.5, -0.5], r"fractions\[1\]=-0.5"),
        (10, [float("nan"), 1], r"\[0\] of it is nan"),
        (3, [0.98, 0.01, 0.01], r"fractions\[1\]=0.01 of 3 examples is less than one"),
    ],
)
def test_fractions_that_make_no_split_are_refused(n: int, fractions: list[float], message: str) -> None:
    """A validation split is never silently empty or short."""
    with pytest.raises(ValueError, match=message):
        random_split(range(n), fractions, seed=0)


def test_true_is_no_fraction() -> None:
    """It would be the whole dataset."""
    with pytest.raises(TypeError, match=r"fractions must be a sequence of numbers, .*; \[0\] of it is True"):
        random_split(range(10), [True], seed=0)


def test_an_example_of_no_cluster_is_named() -> None:
    """Before anything is drawn; so is a field that no example has."""
    rows = [{"page": 1}, {"page": None}]
    with pytest.raises(DataError, match="no value in column 'page'"):
        random_split(rows, [0.5, 0.5], seed=0, clusters="page")
    with pytest.raises(DataError, match=r"no value in column 'pag'.*page"):
        random_split(rows, [0.5, 0.5], seed=0, clusters="pag")


@pytest.mark.parametrize("nothing", [float("nan"), decimal.Decimal("nan")])
def test_an_empty_field_of_a_table_is_no_cluster(nothing: object) -> None:
    """All rows without one were a single cluster, and in one part; `evaluate` refuses them, too."""
    rows = [{"page": 1.0}, {"page": nothing}, {"page": nothing}]
    with pytest.raises(DataError, match=r"(?i)example 1: column 'page' is nan in this row, as .* names no cluster;"):
        random_split(rows, [0.5, 0.5], seed=0, clusters="page")


def test_more_parts_than_clusters_are_refused() -> None:
    """A part without a cluster would be empty."""
    with pytest.raises(ValueError, match=r"of 1 clusters is less than one; .* or more clusters"):
        random_split([{"page": 1}] * 10, [0.5, 0.5], seed=0, clusters="page")


@given(pages=st.lists(st.integers(0, 9), min_size=20, max_size=60), seed=st.integers())
def test_clusters_stay_together_and_nothing_is_lost(pages: list[int], seed: int) -> None:
    """Questions about one document are on one side, or the test set is no news."""
    rows = [{"page": page if page % 2 else str(page), "n": n} for n, page in enumerate([*pages, 0, 1, 2, 3])]
    first, second = random_split(rows, [0.5, 0.5], seed, clusters="page")
    assert sorted(row["n"] for part in (first, second) for row in part) == list(range(len(rows)))
    sides = [{str(row["page"]) for row in part} for part in (first, second)]
    assert not sides[0] & sides[1]
    assert 0 <= len(sides[0]) - len(sides[1]) <= 1


@given(sizes=st.lists(st.integers(0, 9), min_size=1, max_size=4), seed=st.integers())
def test_lengths_are_kept_and_every_example_is_in_one_part(sizes: list[int], seed: int) -> None:
    """The parts together are the dataset."""
    parts = random_split(range(sum(sizes)), sizes, seed=seed)
    assert [len(part) for part in parts] == sizes
    assert sorted(x for part in parts for x in part) == list(range(sum(sizes)))


@given(n=st.integers(10, 200), cut=st.integers(1, 9))
def test_fractions_are_kept_to_within_one_example(n: int, cut: int) -> None:
    """Rounding does not move more than one example."""
    first, second = random_split(range(n), [cut / 10, 1 - cut / 10], seed=1)
    assert abs(len(first) - n * cut / 10) <= 1
    assert len(first) + len(second) == n


def test_the_same_seed_gives_the_same_parts() -> None:
    """A split can be made again, and another seed makes another."""
    dataset = Dataset([{"n": n} for n in range(40)], path="all.jsonl")
    ids = [part.ids for part in random_split(dataset, [0.5, 0.5], seed=0)]
    assert ids == [part.ids for part in random_split(dataset, [0.5, 0.5], seed=0)]
    assert ids != [part.ids for part in random_split(dataset, [0.5, 0.5], seed=1)]
    assert all(name.startswith("all:") for name in ids[0])


def test_inputs_that_differ_in_case_and_white_space_alone_stay_together() -> None:
    """As `check_splits` would find them in both parts otherwise."""
    rows = [{"q": f"{'Is' if number % 2 else ' is'} lamp {number // 2}\n dark?"} for number in range(40)]
    train, test = random_split(rows, [0.5, 0.5], seed=0, together=["q"])
    assert [len(train), len(test)] == [20, 20]
    assert not [each for each in overlap(train, test) if each.kind == "exact"]


@given(rows=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=40, max_size=80), seed=st.integers())
def test_what_is_equal_stays_together_also_through_others(rows: list[tuple[int, int]], seed: int) -> None:
    """Two pages with one question in common are one cluster; no row is lost."""
    table = [{"page": page, "q": q, "n": n} for n, (page, q) in enumerate([*rows, (10, 10), (11, 11), (12, 12)])]
    first, second = random_split(table, [0.5, 0.5], seed, clusters="page", together=["q"])
    assert sorted(row["n"] for part in (first, second) for row in part) == list(range(len(table)))
    for name in ("page", "q"):
        assert not {row[name] for row in first} & {row[name] for row in second}


def test_a_field_that_is_not_there_is_named() -> None:
    """A slip would make all examples equal."""
    with pytest.raises(DataError, match=r"no value in column 'quest'.*q"):
        random_split([{"q": "a"}, {"q": "b"}], [0.5, 0.5], seed=0, together=["quest"])
