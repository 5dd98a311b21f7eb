"""Characters that nobody sees: told where texts differ in them alone, and left out where they would hide something."""

from __future__ import annotations

import json
import re
import unicodedata

_CHOOSES_A_FORM = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Marks that say in which of its forms the sign before them is drawn, such as an emoji in color."""


def unseen(got: str, wanted: str) -> str:
    """In which characters texts differ that look the same, in words; "" for those that do not."""

    def visible(text: str) -> str:
        text = " ".join(text.split())
        for mark in _hidden(text):  # by kind: a text may be megabytes
            text = text.replace(mark, "")
        return text

    plainly = all(text.isascii() and text.isprintable() for text in (got, wanted))  # as most are
    if plainly or visible(got) != visible(wanted):
        return ""
    odd = [sorted(({c for c in text if not c.isprintable()} | _hidden(text)) - {"\n"}) for text in (wanted, got)]
    names = [", ".join(f"U+{ord(c):04X}" for c in each) or "none" for each in odd]
    return f"{names[0]} in what is expected, {names[1]} in the answer" if names[0] != names[1] else ""


def seen(text: str) -> str:
    r"""A text with characters that cannot be seen as JSON escapes them.

    Example:
        >>> seen("a\u00a0b")
        'a\\u00a0b'
    """
    for mark in {c for c in set(text) if not c.isprintable()} | _hidden(text):
        text = text.replace(mark, json.dumps(mark)[1:-1])
    return text


def _hidden(text: str) -> set[str]:
    return {c for c in set(text) if unicodedata.category(c) in ("Cf", "Cc") or _CHOOSES_A_FORM.match(c)}


_MAY_HIDE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
"""Controls, which a terminal obeys, and what Unicode says is not drawn (Default_Ignorable_Code_Point), with marks of
annotations. Of some it depends on what stands around them."""

_JOINERS = "\u200c\u200d"
_MARKS_OF_DIRECTION = "\u061c\u200e\u200f"
_FORMS = re.compile("[\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_FROM_THE_RIGHT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001eeff]")
_BY_JOINING = re.compile(
    "[\u0590-\u109f\u1700-\u1cff\ua840-\uabff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00011fff\U0001e800-\U0001e95f]"
)
"""Scripts from Hebrew to Burmese, and from Khmer on, in which letters are drawn by what is beside them."""
_WITHOUT_SPACES = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
_REGION = re.compile("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f")
"""The flag of a region, such as Scotland's: a black one, and the code of the region in letters that are not drawn."""


def without_unseen(text: str, known: str = "") -> str:
    r"""A text without characters that nobody sees, or that a terminal obeys, and that could hide what it says.

    These are controls but tabs and line ends, what turns the direction of writing, letters of tags outside of the flag
    of a region, marks without a width, and joiners and forms of signs where they join and form nothing. A control that
    is white space becomes a space. What is not drawn and yet needed stays: between the letters of Persian, Hindi and
    Khmer, in emoji, beside what is written from the right.

    Args:
        text: the text.
        known: what it was made of; characters that could hide something there may do so in the text.

    Example:
        >>> without_unseen("Be\u200b kind.\U000e0041")
        'Be kind.'
    """
    if _MAY_HIDE.search(text) is None:
        return text
    spared = {known[at] for at in _hiding(known)}
    hiding = [at for at in _hiding(text) if text[at] not in spared]
    ends = [*hiding, len(text)]
    parts = [text[: ends[0]]]
    for at, end in zip(hiding, ends[1:]):
        parts.append((" " if text[at].isspace() else "") + text[at + 1 : end])
    return "".join(parts)


def _hiding(text: str) -> list[int]:
    """Where a text has characters that are not drawn and not needed. A line decides for itself, whatever is around."""
    if _MAY_HIDE.search(text) is None:
        return []
    found: list[int] = []
    begin = 0
    for line in text.split("\n"):
        if marks := [match.start() for match in _MAY_HIDE.finditer(line)]:
            regions = {at for flag in _REGION.finditer(line) for at in range(*flag.span())}
            turns = _FROM_THE_RIGHT.search(line) is not None
            found += [begin + at for at in marks if at not in regions and not _is_needed(line, at, turns=turns)]
        begin += len(line) + 1
    return found


def _is_needed(line: str, at: int, *, turns: bool) -> bool:
    """Whether a mark is.

    Args:
        line: the line.
        at: where in it the mark stands.
        turns: whether some of it is written from the right.
    """
    here, before, behind = line[at], line[max(0, at - 1) : at], line[at + 1 : at + 2]
    if here == "\r":
        return not behind
    if before and _MAY_HIDE.match(before) and not _is_form_of_picture(line, at - 1):
        return False  # several in a row are an alphabet
    if here in _MARKS_OF_DIRECTION:
        return turns
    if not before:
        return False
    if here in _JOINERS and (_BY_JOINING.match(before) or _BY_JOINING.match(behind)):
        return True
    if here == "\u200d":
        return (_is_picture(before) or _is_form_of_picture(line, at - 1)) and _is_picture(behind)
    if here == "\u200b":
        return bool(_WITHOUT_SPACES.match(before) and _WITHOUT_SPACES.match(behind))
    return _FORMS.match(here) is not None and _has_forms(before, here)


def _is_picture(character: str) -> bool:
    if not character:
        return False
    return "\U0001f000" <= character <= "\U0001faff" or character in "↔↕" or unicodedata.category(character) == "So"


def _is_form_of_picture(line: str, at: int) -> bool:
    return at > 0 and line[at] == "\ufe0f" and _is_picture(line[at - 1])


def _has_forms(sign: str, form: str) -> bool:
    """Whether a sign may have the form: in color or not as pictures have it, or another one of a letter or operator."""
    kind = unicodedata.category(sign)
    if form in "\ufe0e\ufe0f":
        return kind[0] in "SPN" or sign == "\N{INFORMATION SOURCE}" or _is_picture(sign)
    return kind in ("Lo", "Sm")
