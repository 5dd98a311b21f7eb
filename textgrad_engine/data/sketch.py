"""`Sketch`: the few runs of a text that stand for all of them when texts are compared (Broder, "On the resemblance and
containment of documents", 1997).

A run stands for its text where its hash is one of the smallest. So only runs with a small first byte of their hash are
looked at: that byte is found for all runs of a text at once, as the exclusive or of a random byte for each of its
letters and places (tabulation hashing, Carter and Wegman, 1979), and a text costs some twenty nanoseconds a letter.
"""

from __future__ import annotations

import functools
import random
import re
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Sequence

_MARKS = 32  # that a text has, at most
_MARK = 8  # characters; longer runs are rarer, so few texts have one in common by chance
_RUN = 5  # characters; of these the Jaccard index is taken
_KEPT = 512  # runs that stand for a text; texts of up to so many runs are compared exactly
_BITS = 4096  # that a first look at two texts compares; more of them let it rule out more, and take more memory


def _tables() -> list[list[bytes]]:
    """A random byte for each value of each of the three bytes of a letter, for each place in a run."""
    source = random.Random(8)
    tables = [[source.randbytes(256) for _ in range(_MARK)] for _ in range(3)]
    # The upper bytes of most letters are 0 and change nothing, so that they need not be looked at.
    return [tables[0], *([b"\0" + table[1:] for table in upper] for upper in tables[1:])]


_TABLES = _tables()
_BELOW = [b"\1" * limit + bytes(256 - limit) for limit in range(257)]


class Sketch:
    """What a text is compared by.

    Args:
        text: the text; equal ones have equal sketches.

    Example:
        >>> text = "My parcel has not arrived after ten days."
        >>> one, other = Sketch(text), Sketch(text + "!")
        >>> round(one.jaccard(other, one.kept), 2)
        0.97
    """

    def __init__(self, text: str) -> None:
        self._text = text

    @functools.cached_property
    def marks(self) -> tuple[int, ...]:
        """The hashes of a few longer runs, in order: near texts have most of them in common, and others hardly any."""
        edge = "\n" * (_MARK - 1)  # so that short texts have several, too; a line break is in none of them
        return tuple(_smallest(edge + self._text + edge, _MARK, _MARKS)[0])

    @functools.cached_property
    def _runs(self) -> tuple[array[int], bool]:
        """The hashes of its runs, or the smallest of them; and whether these are all."""
        hashes, complete = _smallest(self._text, _RUN, _KEPT)
        return array("Q", hashes), complete

    @property
    def kept(self) -> frozenset[int]:
        """What `jaccard` compares with others, made anew: it takes ten times the memory of what is held."""
        return frozenset(self._runs[0])

    @functools.cached_property
    def _bits(self) -> tuple[int, int]:
        """A bit for each of its runs, by its hash; and how many runs share theirs with another one."""
        digits = bytearray(b"0" * _BITS)
        for run in self._runs[0]:
            digits[run % _BITS] = ord("1")
        bits = int(digits, 2)
        return bits, len(self._runs[0]) - bits.bit_count()

    def may_reach(self, least: float, other: Sketch) -> bool:
        """Whether `jaccard` can be as high as that: a quick look, which a hundredth of the time is enough for.

        Args:
            least: the index.
            other: the other text.
        """
        (own, complete), (others, others_complete) = self._runs, other._runs
        (bits, doubled), (other_bits, _) = self._bits, other._bits
        needed = least * (len(own) + len(others)) / (1 + least)  # where common / (own + others - common) is `least`
        if not (complete and others_complete):
            needed = min(needed, least * _KEPT)
        return (bits & other_bits).bit_count() + doubled >= needed - 1e-6

    def jaccard(self, other: Sketch, kept: frozenset[int]) -> float:
        """The Jaccard index of the runs of two texts; of long ones an estimate, to within 0.03 or so.

        Args:
            other: the other text.
            kept: of this one; made once for many others.
        """
        (own, complete), (others, others_complete) = self._runs, other._runs
        common = [each for each in others if each in kept]
        union = len(own) + len(others) - len(common)
        if (complete and others_complete) or union <= _KEPT:
            return len(common) / union

        def rank(index: int) -> int:
            """How many of the union come before a common one, itself counted."""
            return bisect_right(own, common[index]) + bisect_right(others, common[index]) - index - 1

        return bisect_right(range(len(common)), _KEPT, key=rank) / _KEPT


def _smallest(text: str, length: int, most: int) -> tuple[Sequence[int], bool]:
    """The smallest hashes of a text's runs, so many at most, in order; and whether these are all it has."""
    first = _first_bytes(text, length)
    limit = min(256, 1 + 384 * most // len(first))  # one and a half times as many as are needed
    while True:
        places = [found.start() for found in re.finditer(b"\1", first.translate(_BELOW[limit]))]
        runs = {text[place : place + length]: first[place] for place in places}
        if len(runs) > most or limit == 256:
            break
        limit = min(256, limit * 4)  # of a text that repeats itself
    # Multiplied by an odd number, as the smallest checksums alone are no fair sample of similar runs.
    checksums = [zlib.crc32(run.encode("utf-8", "surrogatepass")) * 0x9E3779B1 & 0xFFFFFFFF for run in runs]
    hashes = sorted({high << 32 | low for high, low in zip(runs.values(), checksums)})
    return hashes[:most], len(hashes) <= most


def _first_bytes(text: str, length: int) -> bytes:
    """The first byte of the hash of each run of a text; a text that is shorter is one run."""
    if text.isascii():
        letters = [text.encode("ascii")]
    else:
        data = text.encode("utf-32-le", "surrogatepass")
        letters = [data[0::4], data[1::4], data[2::4]]
    mixed = 0
    for tables, values in zip(_TABLES, letters):
        for place, table in enumerate(tables[:length]):
            mixed ^= int.from_bytes(values.translate(table), "little") >> 8 * place
    return mixed.to_bytes(max(1, len(text)), "little")[: max(1, len(text) - length + 1)]
