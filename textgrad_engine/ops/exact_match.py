"""Exact match: whether a prediction is its target, and what the model is told where it is not."""

from __future__ import annotations

import functools
import json
import logging
import re
import unicodedata
from decimal import Decimal, InvalidOperation
from typing import Any

from textgrad_engine import templates
from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.examples import EXAMPLE
from textgrad_engine.fences import is_quotable
from textgrad_engine.kinds import a_class, as_own, told
from textgrad_engine.ops.evaluators import (
    Evaluator,
    count_of,
    entries_of,
    evaluated_again,
    one_batch,
    scored,
    written,
)
from textgrad_engine.ops.parts import got_in_line
from textgrad_engine.ops.scores import Reduction

_log = logging.getLogger("textgrad_engine.ops.exact_match")


class _ExactMatch(Evaluator):
    deferrable = True

    @staticmethod
    def forward(prediction: Variable, target: Any, reduction: Reduction) -> Any:
        count = count_of(prediction)
        values = list(zip(entries_of(prediction, count), map(as_own, entries_of(target, count))))
        for got, wanted in values:
            if not isinstance(got, list):  # of an entry that is itself a batch
                _refuse_no_text(wanted)
        pairs = [(written(got), written(wanted)) for got, wanted in values]
        scores = [int(alike(*each)) for each in values]
        for score, (got, wanted) in zip(scores, pairs):
            if not score and got.startswith("{"):
                _tell_of_field(_field_with(got, wanted))
        prompt = templates.load("exact_match")
        texts = [
            "" if s else prompt.render(prediction=p, target=t, got=_in_line(p, t), unseen=unseen(p, t))
            for s, (p, t) in zip(scores, pairs)
        ]
        return scored(prediction, scores, texts, count, reduction)

    @staticmethod
    def jvp(ctx: Any, *edits: Variable | None) -> Any:
        return evaluated_again(_ExactMatch, ctx, edits)


def _in_line(got: str, wanted: str) -> str:
    """What ends a sentence that says what came instead, "" where both are not short enough for one."""
    short = is_quotable(got, inside=True) and is_quotable(wanted, inside=True)
    return got_in_line(got) if short else ""


def _field_with(got: str, wanted: str) -> str:
    """The field of a JSON object that holds what is wanted of the whole; "" where none does."""
    try:
        value = json.loads(got)
        fields = value.items() if isinstance(value, dict) else ()
        return next((name for name, part in fields if written(part).strip() == wanted.strip()), "")
    except (ValueError, RecursionError):  # what can be read may be nested too deeply to be written
        return ""


@functools.lru_cache(maxsize=64)  # once, as it is so for all answers of a program
def _tell_of_field(name: str) -> None:
    if name:
        _log.warning(
            "exact match compares whole answers, and the target of a JSON answer was in its field %r: have the program "
            "return that field, answer[%r]",
            name,
            name,
        )


def alike(got: Any, wanted: Any) -> bool:
    """Whether two values are the same to exact match; see `exact_match_evaluator`.

    Example:
        >>> alike(" Rome", "Rome"), alike(12.0, "12"), alike("12.0", "12"), alike(True, "true")
        (True, True, False, True)
    """
    one, other = written(got), written(wanted)
    return one.strip() == other.strip() or _reads_alike(one, other) or _are_one_number(got, wanted)


_SPACES = "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B)))
_TURNING = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_UNSEEN = _SPACES + "\u2028\u2029\u202f\u205f\u3000" + "\u200b\u2060\ufeff" + _TURNING
"""What `str.isspace` knows, and marks without a width, such as those around words that are written from the right."""


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
    return (text if text.isascii() else unicodedata.normalize("NFC", text)).strip(_UNSEEN)


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


_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def _number(value: Any) -> Decimal | None:
    """The number that a value is, or that a text is as JSON writes one; None for others, and for truth values."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = value.strip() if isinstance(value, str) else json.dumps(value)
    if not _NUMBER.fullmatch(text):
        return None
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent beyond all that can be computed with
        return None


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


_CHOOSES_A_FORM = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Marks that say in which of its forms the sign before them is drawn, such as an emoji in color."""


def _refuse_no_text(target: Any) -> None:
    """Refuse a target that is no text: there are many ways to write it, all as right.

    Raises:
        TypeError: it is one; the example is named, where that is known.
    """
    if isinstance(target, dict | list | tuple | set | frozenset | bytes | None):
        name = EXAMPLE.get()
        raise TypeError(
            f"exact match compares texts, and the target{f' of example {name!r}' if name else ''} is "
            f"{'None' if target is None else a_class(type(target))}: {target!r:.80}. Write it as text, or "
            'use nn.JSONMatch, in a config file [metric] name = "json_match", which compares such values with JSON'
        )


def exact_match_evaluator(
    prediction: Variable, target: Any, reduction_fn: Reduction = sum
) -> tuple[Variable, Variable]:
    """Score 1 where prediction and target are the same text (white space at the ends aside), else 0.

    Letters with signs are the same however they are encoded, and so are line ends; marks without width at the ends do
    not count.

    Where either is a number by its type, as a field of a JSON answer and a target in a ``.jsonl`` file may be, both are
    compared as numbers, if the other is one, too, or a text that JSON would read as one: 12, 12.0 and 1.2e1 are the
    same, and so are 12 in an answer and "12" in a ``.csv`` file, whose columns are texts. Two texts are compared as
    they are written: "12.0" is not "12", and "007" not 7, as JSON has no such number. A float stands for all numbers
    that are read as it. A truth value is compared as JSON writes it ("true", "false"): true is neither 1 nor "True".

    Args:
        prediction: a text, or a batch of texts: a Variable whose data is a list, or a list of Variables.
        target: the expected text, number or truth value, or one for each entry of the batch; in a list, or in an array
            or a column of another library.
        reduction_fn: makes one score of a batch's scores; None gives the list of them.

    Returns:
        (score, explanation): the explanation is "" (or a list with "") for what is right.

    Raises:
        TypeError: the prediction is several outputs; or the target is None; or it is a dict, or for one prediction a
            list, which can be written in many ways. Where these are known, at once, else where the score is read.

    Example:
        >>> score, explanation = exact_match_evaluator(Variable("billing"), "billing")
        >>> score.data, explanation.data
        (1, '')
    """
    if target is None:
        raise TypeError("exact match needs a target, got None: does the example have a field for it?")
    if isinstance(target, dict):
        _refuse_no_text(target)
    if reduction_fn is not None and not callable(reduction_fn):
        raise TypeError(f"exact_match_evaluator: reduction_fn must be a function, got {told(reduction_fn)}")
    score, explanation = _ExactMatch.apply(one_batch(prediction), target, reduction_fn)
    return score, explanation
