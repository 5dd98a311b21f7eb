"""Whether two answers are the same to exact match, and to JSON match at each place."""

from __future__ import annotations

import json
import re
import unicodedata
from decimal import Decimal, InvalidOperation
from typing import Any

from textgrad_engine.ops.evaluators import written

_SPACES = "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B)))
_TURNING = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_AT_ENDS = _SPACES + "\u2028\u2029\u202f\u205f\u3000" + "\u200b\u2060\ufeff" + _TURNING
"""What `str.isspace` knows, and marks without a width, such as those around words that are written from the right."""
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def alike(got: Any, wanted: Any) -> bool:
    """Whether two values are the same to exact match; see `exact_match_evaluator`.

    Example:
        >>> alike(" Rome", "Rome"), alike(12.0, "12"), alike("12.0", "12"), alike(True, "true")
        (True, True, False, True)
        >>> alike("12", Decimal("12.00"))
        True
    """
    one, other = written(got), written(wanted)
    return one.strip() == other.strip() or _reads_alike(one, other) or _are_one_number(got, wanted)


def _reads_alike(got: str, wanted: str) -> bool:
    """Whether two texts are one to Unicode, in which a letter with a sign may be written as one character or as two.

    Marks at the ends that have no width, and that copying brings along, are put aside as white space is.
    """
    if got.isascii() and wanted.isascii() and "\r" not in got and "\r" not in wanted:
        return False
    return plain(got) == plain(wanted)


def plain(text: str) -> str:
    """A text as exact match compares it with others: equal for those that read alike."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # models write the one, tables of spreadsheets hold the other
    return (text if text.isascii() else unicodedata.normalize("NFC", text)).strip(_AT_ENDS)


def _are_one_number(got: Any, wanted: Any) -> bool:
    """Whether two values are one number, of which one at least is a number by its type; see `exact_match_evaluator`.

    Example:
        >>> _are_one_number(12.0, "12"), _are_one_number("12.0", "12"), _are_one_number(1, True)
        (True, False, False)
        >>> _are_one_number(3.141592653589793, "3.14159265358979323846")
        True
    """
    if isinstance(got, str) and isinstance(wanted, str):
        return False
    one, other = _number(got), _number(wanted)
    if one is None or other is None:
        return False
    if isinstance(got, float) or isinstance(wanted, float):
        return float(one) == float(other)  # what reads JSON has rounded the one, so the other is rounded, too
    return one == other


def number_of(value: Any) -> float | None:
    """The number that a value is to exact match, or that it may be beside one, as a float; None for others."""
    found = _number(value)
    return None if found is None else float(found)


def _number(value: Any) -> Decimal | None:
    """The number that a value is, or that a text is as JSON writes one; None for others, and for truth values."""
    if isinstance(value, Decimal):
        return value if value.is_finite() else None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = value.strip() if isinstance(value, str) else json.dumps(value)
    if not _NUMBER.fullmatch(text):
        return None
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent beyond all that can be computed with
        return None
