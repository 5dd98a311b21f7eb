"""Which lines, or sentences, of two texts are the same: what patches, origins and reports are worked out from."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence

MOST_PAIRS = 50_000
"""So many pairs of equal lines are looked at: those of 220 blank lines in either text.

A model that loses the thread writes thousands of blank lines, and difflib looks at all of their pairs again for each
place where two texts differ."""


def matcher_of(before: Sequence[str], after: Sequence[str]) -> difflib.SequenceMatcher[str]:
    """What difflib says of two lists of lines.

    Where equal lines make more than `MOST_PAIRS` pairs, those that make most of them are matched only beside others
    that are the same, as blank lines between paragraphs are.

    Args:
        before: the lines of the one.
        after: those of the other.

    Example:
        >>> [code[0] for code in matcher_of(["Sort.", "Answer."], ["Sort.", "Be brief.", "Answer."]).get_opcodes()]
        ['equal', 'insert', 'equal']
    """
    return difflib.SequenceMatcher(_frequent(before, after).__contains__, before, after, autojunk=False)


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
