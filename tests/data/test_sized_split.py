"""split_evenly: parts of the sizes that are asked for, as far as what belongs together allows."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.data import Subset, random_split
from textgrad_engine.data.sized_split import LARGE, split_evenly

SHARES = [0.3, 0.3, 0.4]


def rows_of(sizes: list[int]) -> Subset[dict[str, int]]:
    """So many rows of each page."""
    rows = [{"page": page, "n": n} for page, size in enumerate(sizes) for n in range(size)]
    return Subset(rows, range(len(rows)))


def cut(sizes: list[int], seed: int = 0) -> list[Subset[dict[str, int]]]:
    return split_evenly(rows_of(sizes), SHARES, seed, clusters="page", together=[])


@pytest.mark.parametrize("seed", range(10))
def test_one_question_that_is_there_often_does_not_shift_the_others(seed: int) -> None:
    """By clusters, 60 of 200 rows made parts of 102, 42 and 56, or of 42, 42 and 116; alone they teach nothing."""
    parts = cut([60] + [1] * 140, seed)
    assert [len(part) for part in parts] == [60 + 42, 42, 56]
    assert [sum(row["page"] == 0 for row in part) for part in parts] == [60, 0, 0]


@pytest.mark.parametrize("seed", range(10))
def test_what_is_there_a_few_times_is_in_any_part(seed: int) -> None:
    """Each part is a sample of them, and has its size to an example."""
    parts = cut([3] * 50 + [2] * 30 + [1] * 90, seed)
    assert [len(part) for part in parts] == [90, 90, 120]
    for part in parts:
        assert {Counter(row["page"] for row in part)[page] for page in {row["page"] for row in part}} == {1, 2, 3}


def test_what_is_more_than_half_of_all_leaves_the_rest_in_proportion() -> None:
    """There is no way to come near the sizes then, and nothing is empty."""
    assert [len(part) for part in cut([120] + [1] * 80)] == [120 + 24, 24, 32]
    assert [len(part) for part in cut([150] + [1] * 50)] == [150 + 15, 15, 20]
    assert [len(part) for part in cut([98, 1, 1])] == [98, 1, 1]
    assert sorted(len(part) for part in cut([50, 49, 1])) == [1, 49, 50]
    assert sorted(len(part) for part in cut([34, 33, 33])) == [33, 33, 34]
    with pytest.raises(ValueError, match="2 clusters make no 3 parts"):
        cut([60, 60])


@given(sizes=st.lists(st.integers(1, 40), min_size=3, max_size=60), seed=st.integers(0, 9))
def test_nothing_is_torn_apart_lost_or_empty(sizes: list[int], seed: int) -> None:
    """And no later part is over its size by more than the largest that belongs together."""
    rows, parts = rows_of(sizes), cut(sizes, seed)
    assert sorted((row["page"], row["n"]) for part in parts for row in part) == sorted(
        (row["page"], row["n"]) for row in rows
    )
    pages = [{row["page"] for row in part} for part in parts]
    assert all(pages)
    assert sum(map(len, pages)) == len(sizes)
    if len(sizes) > 20:
        assert all(len(part) <= share * len(rows) + max(sizes) + 1 for part, share in [*zip(parts, SHARES)][1:])


@given(n=st.integers(10, 99), seed=st.integers(0, 9))
def test_where_nothing_belongs_together_it_is_the_random_split(n: int, seed: int) -> None:
    """Folders of before are drawn again alike."""
    rows = rows_of([1] * n)
    before = random_split(rows.dataset, SHARES, seed, clusters="page")
    assert [part.indices for part in cut([1] * n, seed)] == [part.indices for part in before]


@pytest.mark.parametrize(("second", "sizes"), [(29, [50 + 45, 45, 60]), (40, [40 + 50 + 33, 33, 44])])
def test_a_second_one_comes_to_the_first_part_within_its_size_unless_it_would_fill_another(
    second: int, sizes: list[int]
) -> None:
    """There it tells least about sizes and most about the others."""
    assert [len(part) for part in cut([50, second] + [1] * (150 - second))] == sizes


def test_clusters_that_are_most_of_the_examples_are_no_question_that_is_there_often() -> None:
    """As those that `--clusters` names: four of forty pages would leave twenty examples to validate and test by."""
    assert [len(part) for part in cut([40] * 4 + [1] * 40)] == [80, 40, 80]


def test_a_large_one_goes_elsewhere_once_the_first_part_is_full() -> None:
    """Of ten that are all large, three are trained on."""
    assert LARGE * 30 < 10
    assert [len(part) for part in cut([10] * 10)] == [30, 30, 40]


def test_what_has_room_nowhere_goes_where_most_is_left() -> None:
    """Of four groups of 30 to 50 in parts of 42, 42 and 56, the last is tested, and not trained on with the largest."""
    for seed in range(10):
        assert [len(part) for part in cut([50, 30, 30, 30], seed)] == [50, 30, 60]


def test_a_small_part_has_an_example_where_a_large_one_took_the_room_of_others() -> None:
    """A tenth of nine is less than one, and no part is empty."""
    for seed in range(10):
        parts = split_evenly(rows_of([7, 1, 1]), [0.4, 0.1, 0.5], seed, clusters="page", together=[])
        assert [len(part) for part in parts] == [7, 1, 1]
