"""Which lines, or sentences, of two texts are the same, and which became which: patches and reports go by it."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

from textgrad_engine.optim.words import terms_of

MOST_PAIRS = 50_000
"""So many pairs of equal lines are looked at: those of 220 blank lines in either text.

A model that loses the thread writes thousands of blank lines, and difflib looks at all of their pairs again for each
place where two texts differ."""

MOST_COMPARED = 20_000
"""So many pairs of lines are compared by their words, 141 lines with as many; what differs in more goes by place."""

_Opcode: TypeAlias = tuple[Literal["replace", "delete", "insert", "equal"], int, int, int, int]


def matcher_of(before: Sequence[str], after: Sequence[str]) -> difflib.SequenceMatcher[Hashable]:
    """What difflib says of two lists of lines.

    Where equal lines make more than `MOST_PAIRS` pairs, those that make most of them are the same where they follow the
    same other line, as blank lines do between paragraphs, or stand beside what is the same.

    Args:
        before: the lines of the one.
        after: those of the other.

    Example:
        >>> [code[0] for code in matcher_of(["Sort.", "Answer."], ["Sort.", "Be brief.", "Answer."]).get_opcodes()]
        ['equal', 'insert', 'equal']
    """
    frequent = _frequent(before, after)
    if frequent:
        return _Matcher(before, after, frequent)
    return difflib.SequenceMatcher[Hashable](None, before, after, autojunk=False)


class _Matcher(difflib.SequenceMatcher[Hashable]):
    def __init__(self, before: Sequence[str], after: Sequence[str], frequent: Collection[str]) -> None:
        self._lines = before, after
        old, new = ([*_by_what_they_follow(lines, frequent)] for lines in self._lines)
        super().__init__(None, old, new, autojunk=False)

    def get_opcodes(self) -> list[_Opcode]:
        return list(_joined(_closer(super().get_opcodes(), *self._lines)))


def _frequent(before: Sequence[str], after: Sequence[str]) -> frozenset[str]:
    """Lines that both have so often that there are too many pairs of them."""
    if len(before) * len(after) <= MOST_PAIRS:
        return frozenset()
    counts, others = Counter(before), Counter(after)
    pairs = {line: counts[line] * others[line] for line in counts if line in others}
    found, left = list[str](), sum(pairs.values())
    for line in sorted(pairs, key=lambda line: (-pairs[line], line)):
        if left <= MOST_PAIRS:
            break
        found.append(line)
        left -= pairs[line]
    return frozenset(found)


def _by_what_they_follow(lines: Sequence[str], frequent: Collection[str]) -> Iterator[Hashable]:
    """The lines, each of the frequent ones with the last other line before it, and how far that is away."""
    last, distance = "", 0
    for line in lines:
        if line in frequent:
            distance += 1
            yield line, last, distance
        else:
            last, distance = line, 0
            yield line


def _closer(codes: Iterable[_Opcode], before: Sequence[str], after: Sequence[str]) -> Iterator[_Opcode]:
    """What differs, without the lines at its beginning and its end that are the same all the same."""
    for tag, start, stop, first, last in codes:
        if tag != "replace":
            yield tag, start, stop, first, last
            continue
        most, head, tail = min(stop - start, last - first), 0, 0
        while head < most and before[start + head] == after[first + head]:
            head += 1
        while tail < most - head and before[stop - 1 - tail] == after[last - 1 - tail]:
            tail += 1
        yield "equal", start, start + head, first, first + head
        left = start + head, stop - tail, first + head, last - tail
        yield "insert" if left[0] == left[1] else "delete" if left[2] == left[3] else "replace", *left
        yield "equal", stop - tail, stop, last - tail, last


def _joined(codes: Iterable[_Opcode]) -> Iterator[_Opcode]:
    """The codes without those of no lines; those of equal lines, side by side, are one."""
    held: _Opcode | None = None
    for code in codes:
        tag, start, stop, first, last = code
        if start == stop and first == last:
            continue
        if held is not None and held[0] == tag == "equal":
            held = tag, held[1], stop, held[3], last
            continue
        if held is not None:
            yield held
        held = code
    if held is not None:
        yield held


def pairs_in(before: Sequence[str], after: Sequence[str]) -> Iterator[_Opcode]:
    """What difflib says of two lists of lines, with what became of each line where many in a row were written anew.

    A run of lines that differ is taken apart: a line goes with the one, in the same order, that has most of its words,
    and what stands between such pairs goes by its place. So a list whose lines have all been put in other words is one
    change for each entry, which can be judged by itself, and not one that takes out all and writes all.

    Args:
        before: the lines of the one.
        after: those of the other.

    Example:
        >>> old = ["- bills: money", "- parcels: transport"]
        >>> list(pairs_in(old, ["- bills: money, and fees", "- parcels: transport, late or lost", "Be brief."]))
        [('replace', 0, 1, 0, 1), ('replace', 1, 2, 1, 2), ('insert', 2, 2, 2, 3)]
    """
    for code in matcher_of(before, after).get_opcodes():
        tag, start, stop, first, last = code
        if tag != "replace" or stop - start == 1:
            yield code
            continue
        pairs = _by_words(before[start:stop], after[first:last])
        for old, new in [*((start + i, first + j) for i, j in pairs), (stop, last)]:
            yield from _by_place(start, old, first, new)
            if old < stop:
                yield "replace", old, old + 1, new, new + 1
            start, first = old + 1, new + 1


def _by_place(start: int, stop: int, first: int, last: int) -> Iterator[_Opcode]:
    """Lines without words in common: the first goes with the first; what is left over came in, or is gone."""
    while start < stop and first < last:
        own = last if start == stop - 1 else first + 1
        yield "replace", start, start + 1, first, own
        start, first = start + 1, own
    if start < stop:
        yield "delete", start, stop, first, first
    if first < last:
        yield "insert", start, start, first, last


def _by_words(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of lines, in order, that have as many words in common as can be: half of the shorter one's at least."""
    if len(before) * len(after) > MOST_COMPARED:
        return []
    old, new = ([Counter(terms_of(line)) for line in lines] for lines in (before, after))
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    alike = [[_alike(one, other) for other in new] for one in old]
    for i in range(len(old) - 1, -1, -1):
        for j in range(len(new) - 1, -1, -1):
            best[i][j] = max(best[i + 1][j], best[i][j + 1], alike[i][j] + best[i + 1][j + 1])
    i = j = 0
    found = []
    while i < len(old) and j < len(new):
        if alike[i][j] and best[i][j] == alike[i][j] + best[i + 1][j + 1]:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return found


def _alike(one: Counter[str], other: Counter[str]) -> float:
    """The share of the shorter line's words that the other has, and a little for the longer one's; 0 for few."""
    fewest, most = sorted((one.total(), other.total()))
    if not fewest:
        return 0.0
    common = (one & other).total()
    return common / fewest + common / most / 100 if 2 * common >= fewest else 0.0
