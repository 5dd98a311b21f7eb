"""Cut a dataset of which some examples belong together into parts of about the sizes that are asked for."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from textgrad_engine.data.dataset import Subset
from textgrad_engine.data.sampler import RandomSampler
from textgrad_engine.data.split import members_of, sizes_of

LARGE = 0.25
"""What belongs together and is more than this of a later part goes to the first, where half of it has room there.

A test set of which a third is one question says little of others, where one that is trained on three times costs calls.
"""

HUGE = 0.5
"""What is more than this of a later part comes to the first beside its share of the others: it would be most of one."""


def split_evenly(
    rows: Subset[Any], fractions: Sequence[float], seed: int, *, clusters: str | None, together: Sequence[str]
) -> list[Subset[Any]]:
    """Cut a dataset at random into parts of about these shares of its examples, the first being the one to train on.

    `random_split` draws as many clusters for a part, whatever their sizes. Here larger ones are dealt first, each to a
    part that has room for it, and the examples that stand for themselves fill what is left. Where all do, both cut
    alike. A question that is there so often that it would fill a part is trained on, beside as many others as without
    it; so are several, where they are not most of the examples.

    Args:
        rows: the examples.
        fractions: the share of each part; they sum to 1.
        seed: equal seeds give equal parts.
        clusters: the field that says which examples belong together; None for none.
        together: examples that are equal in all of these fields, but for case and white space, belong together, too.

    Raises:
        ValueError: there are fewer clusters than parts.
        DataError: an example does not say what cluster it belongs to, or lacks one of the fields of `together`.

    Example:
        >>> from textgrad_engine.data import Dataset
        >>> texts = ["Where is it?"] * 30 + [f"Question {n}" for n in range(70)]
        >>> whole = Dataset([{"q": text} for text in texts])
        >>> parts = split_evenly(Subset(whole, range(100)), [0.3, 0.3, 0.4], 0, clusters=None, together=["q"])
        >>> [len(part) for part in parts], sum(row["q"] == "Where is it?" for row in parts[0])
        ([51, 21, 28], 30)
    """
    members = members_of(rows, clusters, together)
    if len(members) < len(fractions):
        raise ValueError(f"{len(members)} clusters make no {len(fractions)} parts")
    most = HUGE * min(sizes_of(len(rows), fractions, "examples")[1:])
    huge = [each for each in members if len(each) > most]
    others = [each for each in members if len(each) <= most]
    if len(others) < len(fractions) or (len(huge) > 1 and 2 * sum(map(len, huge)) > len(rows)):
        huge, others = [], members
    first, *later = _dealt(others, fractions, seed)
    first += [index for each in huge for index in each]
    return [Subset(rows.dataset, sorted(rows.indices[index] for index in own)) for own in (first, *later)]


def _dealt(members: Sequence[Sequence[int]], fractions: Sequence[float], seed: int) -> list[list[int]]:
    """The positions of each part, of what belongs together all in one."""
    room = sizes_of(sum(map(len, members)), fractions, "examples")
    large = LARGE * min(room[1:])
    order = list(RandomSampler(members, seed=seed))
    several = sorted((n for n in order if len(members[n]) > 1), key=lambda n: -len(members[n]))
    alone = [n for n in order if len(members[n]) == 1]
    drawn = random.Random(seed)
    parts: list[list[int]] = [[] for _ in fractions]
    for number, cluster in enumerate(several):
        size, left = len(members[cluster]), len(several) - number + len(alone)
        empty = [part for part in range(len(parts)) if not parts[part]]
        may = empty if left <= len(empty) else range(len(parts))  # none stays empty
        fits = [part for part in may if room[part] >= size]
        if size > large and 0 in may and (2 * room[0] >= size or (room[0] > 0 and not fits)):
            part = 0
        elif fits:
            (part,) = drawn.choices(fits, [room[part] for part in fits])
        else:
            part = max(may, key=lambda part: room[part])
        parts[part] += members[cluster]
        room[part] -= size
    start = 0
    for own, size in zip(parts, _filled(room, len(alone), [not own for own in parts])):
        own += [index for n in alone[start : start + size] for index in members[n]]
        start += size
    return parts


def _filled(room: Sequence[int], count: int, empty: Sequence[bool]) -> list[int]:
    """How many of so many examples each part takes: what it has room for, less where others have taken too much."""
    left = [max(each, 0) for each in room]
    if not count:
        return [0] * len(left)
    wanted = [each * count / sum(left) for each in left]
    sizes = [math.floor(each + 1e-9) for each in wanted]
    for part in sorted(range(len(left)), key=lambda part: sizes[part] - wanted[part])[: count - sum(sizes)]:
        sizes[part] += 1
    for part in range(len(sizes)):
        if empty[part] and not sizes[part]:
            sizes[sizes.index(max(sizes))] -= 1
            sizes[part] += 1
    return sizes
