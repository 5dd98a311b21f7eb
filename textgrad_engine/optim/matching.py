"""Which lines, or sentences, of two texts are the same: what patches, origins and reports are worked out from."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

MOST_PAIRS = 50_000
"""So many pairs of equal lines are looked at: those of 220 blank lines in either text.

A model that loses the thread writes thousands of blank lines, and difflib looks at all of their pairs again for each
place where two texts differ."""

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
