"""Cut a dataset into parts at random, the same way for the same seed."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, TypeVar

from textgrad_engine.checks import check, in_order
from textgrad_engine.data.dataset import Dataset, Examples, Subset, by_position
from textgrad_engine.data.overlap import compared
from textgrad_engine.data.sampler import RandomSampler
from textgrad_engine.errors import DataError
from textgrad_engine.keywords import names_told
from textgrad_engine.ops.fillers import is_nan
from textgrad_engine.plain_values import is_whole

T = TypeVar("T")


@names_told
def random_split(
    dataset: Examples[T],
    fractions: Sequence[float],
    seed: int,
    *,
    clusters: str | None = None,
    together: Sequence[str] = (),
) -> list[Subset[T]]:
    """Split a dataset at random into parts that do not overlap and together are the whole.

    Args:
        dataset: any sequence, or what has a length and an example at each position.
        fractions: the share of each part, summing to 1, or the number of examples in each, summing to ``len(dataset)``.
            With fractions, sizes are rounded down and the examples left over go one each to the first parts.
        seed: equal seeds give equal parts.
        clusters: the field of the examples that says which belong together, such as the document that several questions
            are about. These stay in one part; fractions and lengths are then of clusters, not of examples.
        together: fields, such as the inputs of a program: examples that are equal in all of them, but for case and
            white space, are a cluster, too, so that no test example was trained on.

    Raises:
        ValueError: the fractions sum to something else, or one is negative or so small that its part would be empty.
        DataError: an example does not say what cluster it belongs to, or lacks one of the fields of `together`.

    Example:
        >>> train, val = random_split(range(10), [0.8, 0.2], seed=0)
        >>> len(train), len(val), sorted([*train, *val]) == list(range(10))
        (8, 2, True)
        >>> rows = [{"page": number // 5} for number in range(20)]
        >>> [sorted({row["page"] for row in part}) for part in random_split(rows, [0.5, 0.5], seed=0, clusters="page")]
        [[1, 3], [0, 2]]
    """
    check(random_split, locals())
    every, fractions, together = (
        by_position(dataset),
        list(in_order(fractions, "random_split: fractions: ")),
        list(together),
    )
    if clusters is None and not together:
        return _drawn(every, fractions, seed, "examples")
    rows: Sequence[Any] = every
    drawn = _drawn(members_of(Subset(rows, range(len(rows))), clusters, together), fractions, seed, "clusters")
    return [Subset(every, sorted(index for own in part for index in own)) for part in drawn]


def members_of(rows: Subset[Any], clusters: str | None, together: Sequence[str]) -> list[list[int]]:
    """The positions of what belongs together, also through others: one cluster each, by the first of them."""
    wanted = ([] if clusters is None else [clusters]) + list(together)
    rows.require(*wanted)
    for index, row in enumerate(rows if clusters is not None else ()):
        if is_nan(row[clusters]):
            raise DataError(
                f"{rows.where(index)}: column {clusters!r} is {row[clusters]} in this row, as tables have it in an "
                "empty field, so it names no cluster; give it a value, or take the row out"
            )
    first = list(range(len(rows)))

    def root(index: int) -> int:
        while first[index] != index:
            first[index] = index = first[first[index]]
        return index

    seen: dict[str, int] = {}
    texts = compared(rows, together) if together else [""] * len(rows)
    for index, (row, text) in enumerate(zip(rows, texts)):
        keys = [] if clusters is None else [f"cluster {row[clusters]}"]
        for key in [*keys, *([f"equal {text or key_of(row, together)}"] if together else [])]:
            one, other = sorted((root(seen.setdefault(key, index)), root(index)))
            first[other] = one
    members: dict[int, list[int]] = {}
    for index in range(len(rows)):
        members.setdefault(root(index), []).append(index)
    return list(members.values())


def _drawn(dataset: Sequence[T], fractions: Sequence[float], seed: int, of: str) -> list[Subset[T]]:
    sizes = sizes_of(len(dataset), fractions, of)
    order = list(RandomSampler(dataset, seed=seed))
    parts = []
    start = 0
    for size in sizes:
        parts.append(Subset(dataset, order[start : start + size]))
        start += size
    return parts


def examples_in_both(first: Dataset, second: Dataset, columns: Sequence[str]) -> list[str]:
    """Say which examples of one dataset are in another, too: by an id of their own, or by equal inputs.

    Args:
        first: one dataset, such as the training examples.
        second: the other one.
        columns: the inputs of the program. When there are none, nothing is compared but ids.

    Returns:
        One sentence per example of `second` that is in `first`, with both places.

    Example:
        >>> examples_in_both(Dataset([{"q": "1 + 1?"}]), Dataset([{"q": "2 + 2?"}, {"q": "1 + 1?"}]), ["q"])
        ["example 1 has the same 'q' as example 0"]
    """
    ids: dict[str, int] = {}
    inputs: dict[str, int] = {}
    for index, row in enumerate(first):
        if row.get("id") not in (None, ""):  # ids made up from lines may meet by chance
            ids[first.ids[index]] = index
        inputs.setdefault(key_of(row, columns), index)
    found = []
    names = " and ".join(repr(column) for column in columns)
    for index, row in enumerate(second):
        if columns and (other := inputs.get(key_of(row, columns))) is not None:
            found.append(f"{second.where(index)} has the same {names} as {first.where(other)}")
        elif row.get("id") not in (None, "") and (other := ids.get(second.ids[index])) is not None:
            found.append(f"{second.where(index)} has the same id {second.ids[index]!r} as {first.where(other)}")
    return found


def key_of(row: dict[str, object], columns: Sequence[str]) -> str:
    """A text that is the same for examples which are equal in these fields."""
    return json.dumps([row.get(column) for column in columns], sort_keys=True, default=repr)


def sizes_of(n: int, fractions: Sequence[float], of: str) -> list[int]:
    """How many of `n` each part has.

    Raises:
        ValueError: the fractions sum to something else, or one is negative or so small that its part would be empty.
    """
    if not fractions:
        raise ValueError("fractions is empty: give the share of each part, such as [0.8, 0.2]")
    for index, fraction in enumerate(fractions):
        if isinstance(fraction, bool) or not math.isfinite(fraction) or fraction < 0:
            raise ValueError(f"fractions must be at least 0, got fractions[{index}]={fraction!r}")
    if all(is_whole(fraction) for fraction in fractions) and sum(fractions) == n:
        return [int(fraction) for fraction in fractions]
    if not math.isclose(math.fsum(fractions), 1.0, abs_tol=1e-6):
        raise ValueError(
            f"fractions must sum to 1, or lengths to the {n} {of} there are, got {list(fractions)}, "
            f"which sums to {math.fsum(fractions):g}"
        )
    # The small addend keeps 0.29 * 100 = 28.999999999999996 from losing an example.
    sizes = [math.floor(fraction * n + 1e-9) for fraction in fractions]
    wanted = [index for index, fraction in enumerate(fractions) if fraction > 0]
    for index in range(n - sum(sizes)):
        sizes[wanted[index % len(wanted)]] += 1
    for index in wanted:
        if not sizes[index]:
            raise ValueError(
                f"fractions[{index}]={fractions[index]} of {n} {of} is less than one; "
                f"give a larger fraction, lengths, or more {of}"
            )
    return sizes
