"""The places of a text that an edit can speak of: its lines, and the sentences of long ones.

A prompt may be one paragraph of a thousand words. To have it written anew for the sake of one sentence costs as much
each time, and loses what the writer passes over.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from textgrad_engine.llm import tokens
from textgrad_engine.optim.cells import lines_of
from textgrad_engine.optim.matching import matcher_of

LONG = 120
"""Tokens above which the sentences of a line are places of their own."""

_LEAST = 40
"""Characters of a part that ends at a mere space, in scripts that end sentences so."""

_STOPS = ".!?\u2026\u061f\u06d4\u0964\u0965\u104b\u1362\u17d4"

# A sentence ends behind its full stop and what closes a quotation, where something else than a small letter follows;
# Chinese and its like have no space there. Thai ends clauses by a space. A run is begun once and never given back, so
# that a line of nothing but dots takes no longer than its length.
_END = re.compile(
    rf"(?<![.!?\u2026])(?<!\b[^\W\d_]\.[^\W\d_])(?<!\b[^\W\d_])[{_STOPS}]++"
    r"[\"'\u201d\u2019\u00bb)\]*_]*+\s++(?=[^\sa-z])"
    r"|(?<![\u3002\uff01\uff1f\uff0e])[\u3002\uff01\uff1f\uff0e]++[\u300d\u300f\u201d\u2019\uff09\u3011)]*+\s*+(?!\Z)"
    r"|(?<=[\u0e00-\u0eff])[ \u00a0]++(?=[\u0e00-\u0eff])"
)

_NUMBER = re.compile(r"\W*\d+\.\s+")
_LEAD = re.compile(r"\s*(?:(?:[-*+\u2022>]|\d+[.)]|#+)\s+)?")


@dataclass(frozen=True)
class Place:
    """A line, or a sentence of a long one.

    Attributes:
        line: the number of the line, from 1.
        text: how it reads, with the spaces behind a sentence.
        goes_on: whether it stands in one line with the place before it.
    """

    line: int
    text: str
    goes_on: bool = False


def places_of(text: str) -> list[Place]:
    r"""The places of a text, in order.

    Example:
        >>> [place.text for place in places_of("Sort it.\nBe brief. Be kind.")]
        ['Sort it.', 'Be brief. Be kind.']
        >>> [place.text[:13] for place in places_of("Be brief. " * 50 + "\nEnd.")][49:]
        ['Be brief. ', 'End.']
    """
    found: list[Place] = []
    for number, line in enumerate(lines_of(text), 1):
        parts = _sentences(line) if tokens.count(line) > LONG else [line]
        found += [Place(number, part, goes_on=at > 0) for at, part in enumerate(parts)]
    return found


def by_sentences(text: str) -> bool:
    """Whether some place of a text is a sentence."""
    return any(place.goes_on for place in places_of(text))


def sentences_of(text: str) -> frozenset[str]:
    """The sentences of a text, without the spaces behind them: those that two have in common, `excerpts` leaves out.

    Example:
        >>> sorted(sentences_of("Be kind. Be brief."))
        ['Be brief.', 'Be kind.']
    """
    return frozenset(_bare(_all_sentences(text)))


def led_as(line: str, rest: str) -> str:
    """What is left of a line that has lost its first sentence, behind what stands before that line's first word.

    Example:
        >>> led_as("   - Be brief. Be kind.", "Be kind."), led_as("- Be brief.", "- Be kind.")
        ('   - Be kind.', '- Be kind.')
    """
    lead = _lead_of(line)
    mark, own = (re.sub(r"\d", "", each.strip()) for each in (lead, _lead_of(rest)))
    return rest if mark and mark == own else lead + rest


def changed_sentences(old: str, new: str) -> list[tuple[str, str]]:
    """What differs between two wordings of a line, sentence by sentence: how each was and how it is, "" for none.

    Of a line that is shown as a whole, that is the line.

    Example:
        >>> long = " ".join(f"Rule {n} is good." for n in range(60))
        >>> changed_sentences(long, long.replace("8 is good", "8 is bad", 1))
        [('Rule 8 is good.', 'Rule 8 is bad.')]
        >>> changed_sentences("Be kind.", "Be kind. Be brief.")
        [('Be kind.', 'Be kind. Be brief.')]
    """
    if not by_sentences(old):
        return [(old, new)]
    found: list[tuple[str, str]] = []
    for same, was, now in _compared(old, new):
        if not same:
            found += itertools.zip_longest(was, now, fillvalue="")
    return found


def excerpts(old: str, new: str) -> tuple[str, str]:
    """Two wordings of a line with an ellipsis for the sentences that are in both; as they are where none is.

    Example:
        >>> long = " ".join(f"Rule {n} is good." for n in range(60))
        >>> excerpts(long, long.replace("8 is good", "8 is bad", 1))
        ('… Rule 8 is good. …', '… Rule 8 is bad. …')
    """
    if not by_sentences(old) and not by_sentences(new):
        return old, new
    compared = _compared(old, new)
    if len({same for same, *_ in compared}) < 2:
        return old, new
    was, now = ([(same, sides[at]) for same, *sides in compared if same or sides[at]] for at in (0, 1))
    return _excerpt(was), _excerpt(now)


def merged_line(base: str, one: str, other: str) -> str | None:
    """A long line with what two others changed in it; None where both changed the same sentence, or it is none.

    Example:
        >>> long = " ".join(f"Rule {n} is good." for n in range(60))
        >>> one, other = (long.replace(f" {n} is good", f" {n} is bad") for n in (7, 8))
        >>> merged = merged_line(long, one, other)
        >>> changed_sentences(long, merged)
        [('Rule 7 is good.', 'Rule 7 is bad.'), ('Rule 8 is good.', 'Rule 8 is bad.')]
    """
    if not by_sentences(base) or "\n" in base + one + other:
        return None
    before = _sentences(base)
    changes: dict[tuple[int, int, tuple[str, ...]], list[str]] = {}
    for text in (one, other):
        at = 0
        for same, was, now in _runs(base, text):
            if not same:
                changes.setdefault((at, at + len(was), _bare(now)), now)
            at += len(was)
    changed = sorted(changes, key=lambda change: change[:2])
    for (first, end, _), (start, stop, _) in itertools.pairwise(changed):
        if start < end or (start == end and (first == end or start == stop)):
            return None
    parts: list[str] = []
    at = 0
    for start, stop, said in changed:
        parts += [*before[at:start], *changes[start, stop, said]]
        at = stop
    parts += before[at:]
    # What was the last sentence of its line has no space behind it yet.
    last = {_sentences(text)[-1] for text in (base, one, other)}
    gap = before[0][len(before[0].rstrip()) :]
    text = "".join(part if part[-1:].isspace() or part not in last else f"{part}{gap}" for part in parts)
    return text.rstrip() + base[len(base.rstrip()) :]


def _excerpt(runs: Iterable[tuple[bool, Sequence[str]]]) -> str:
    """Sentences with one ellipsis for those, side by side, that are left out."""
    parts: list[str] = []
    for left_out, sentences in runs:
        parts += ["…"] if left_out and parts[-1:] != ["…"] else [] if left_out else sentences
    return " ".join(" ".join(parts).split())


def _lead_of(line: str) -> str:
    """What stands before the first word of a line and belongs to all of it: its indentation and the mark of an item."""
    found = _LEAD.match(line)
    return found[0] if found is not None else ""


def _compared(old: str, new: str) -> list[tuple[bool, tuple[str, ...], tuple[str, ...]]]:
    """The sentences of two texts in runs: whether they are the same, those of the one, and those of the other."""
    return [(same, _bare(was), _bare(now)) for same, was, now in _runs(old, new)]


def _runs(old: str, new: str) -> list[tuple[bool, list[str], list[str]]]:
    """The same, with the spaces behind sentences, which make no difference."""
    before, after = _all_sentences(old), _all_sentences(new)
    matcher = matcher_of(_bare(before), _bare(after))
    return [
        (tag == "equal", before[start:stop], after[first:last])
        for tag, start, stop, first, last in matcher.get_opcodes()
    ]


def _bare(parts: Iterable[str]) -> tuple[str, ...]:
    return tuple(part.rstrip() for part in parts)


def _all_sentences(text: str) -> list[str]:
    return [part for line in text.split("\n") for part in _sentences(line)]


def _sentences(line: str) -> list[str]:
    parts: list[str] = []
    start = 0
    for match in _END.finditer(line):
        part = line[start : match.end()]
        if (not match[0].strip() and len(part) < _LEAST) or _NUMBER.fullmatch(part):
            continue
        if match[0][0] in _STOPS and line[match.end()].islower():  # an abbreviation, and no letter from a to z
            continue
        parts.append(part)
        start = match.end()
    return [*parts, line[start:]] if line[start:].strip() or not parts else [*parts[:-1], parts[-1] + line[start:]]
