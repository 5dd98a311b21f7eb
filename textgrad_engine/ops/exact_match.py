"""Exact match: whether a prediction is its target, and what the model is told where it is not."""

from __future__ import annotations

import functools
import json
import logging
import re
import unicodedata
from typing import Any

from textgrad_engine import templates
from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.examples import EXAMPLE
from textgrad_engine.ops.evaluators import (
    Evaluator,
    Reduction,
    count_of,
    entries_of,
    evaluated_again,
    one_batch,
    scored,
    written,
)

__all__ = ["exact_match_evaluator"]

_log = logging.getLogger("textgrad_engine.ops.exact_match")


class _ExactMatch(Evaluator):
    deferrable = True

    @staticmethod
    def forward(prediction: Variable, target: Any, reduction: Reduction) -> Any:
        count = count_of(prediction)
        values = list(zip(entries_of(prediction, count), entries_of(target, count)))
        for got, wanted in values:
            if not isinstance(got, list):  # of an entry that is itself a batch
                _refuse_no_text(wanted)
        pairs = [(written(got), written(wanted)) for got, wanted in values]
        scores = [int(got.strip() == wanted.strip() or _reads_alike(got, wanted)) for got, wanted in pairs]
        for score, (got, wanted) in zip(scores, pairs):
            if not score and got.startswith("{"):
                _tell_of_field(_field_with(got, wanted))
        prompt = templates.load("exact_match")
        texts = [
            "" if s else prompt.render(prediction=p, target=t, unseen=_unseen(p, t)) for s, (p, t) in zip(scores, pairs)
        ]
        return scored(prediction, scores, texts, count, reduction)

    @staticmethod
    def jvp(ctx: Any, *edits: Variable | None) -> Any:
        return evaluated_again(_ExactMatch, ctx, edits)


def _field_with(got: str, wanted: str) -> str:
    """The field of a JSON object that holds what is wanted of the whole; "" where none does."""
    try:
        value = json.loads(got)
    except (ValueError, RecursionError):
        return ""
    fields = value.items() if isinstance(value, dict) else ()
    return next((name for name, part in fields if written(part).strip() == wanted.strip()), "")


@functools.lru_cache(maxsize=64)  # once, as it is so for all answers of a program
def _tell_of_field(name: str) -> None:
    if name:
        _log.warning(
            "exact match compares whole answers, and the target of a JSON answer was in its field %r: have the program "
            "return that field, answer[%r]",
            name,
            name,
        )


_UNSEEN = r"[\s\u061c\u200b\u200e\u200f\u2060\ufeff]"


# A run within a text is begun once and never given back: an answer may be spaces without end.
_AT_ENDS = re.compile(rf"\A{_UNSEEN}++|(?<!{_UNSEEN}){_UNSEEN}++\Z")


def _reads_alike(got: str, wanted: str) -> bool:
    """Whether two texts are one to Unicode, in which a letter with a sign may be written as one character or as two.

    Marks at the ends that have no width, and that copying brings along, are put aside as white space is.
    """
    if got.isascii() and wanted.isascii():
        return False
    one, other = (_AT_ENDS.sub("", unicodedata.normalize("NFC", text)) for text in (got, wanted))
    return one == other


def _unseen(got: str, wanted: str) -> str:
    """In which characters texts differ that look the same, in words; "" for those that do not."""

    def visible(text: str) -> str:
        return "".join(c for c in " ".join(text.split()) if unicodedata.category(c) != "Cf")

    if (got.isascii() and wanted.isascii()) or visible(got) != visible(wanted):
        return ""
    odd = [sorted({c for c in text if not c.isprintable()} - {"\n"}) for text in (wanted, got)]
    names = [", ".join(f"U+{ord(c):04X}" for c in each) or "none" for each in odd]
    return f"{names[0]} in what is expected, {names[1]} in the answer" if names[0] != names[1] else ""


def _refuse_no_text(target: Any) -> None:
    """Refuse a target that is no text: there are many ways to write it, all as right.

    Raises:
        TypeError: it is one; the example is named, where that is known.
    """
    if isinstance(target, dict | list | tuple | set | frozenset | bytes | None):
        name = EXAMPLE.get()
        raise TypeError(
            f"exact match compares texts, and the target{f' of example {name!r}' if name else ''} is "
            f"{'None' if target is None else f'a {type(target).__name__}'}: {target!r:.80}. Write it as text, or "
            "use a metric of your own that compares such values (nn.Metric; in a config file [metric] function)"
        )


def exact_match_evaluator(
    prediction: Variable, target: Any, reduction_fn: Reduction = sum
) -> tuple[Variable, Variable]:
    """Score 1 where prediction and target are the same text (white space at the ends aside), else 0.

    Letters with signs are the same however they are encoded, and marks without width at the ends do not count.

    A number is compared as Python writes it (3 as "3", 3.0 as "3.0" and so not as "3"), a truth value as JSON does
    ("true", "false"), and that is what the explanation expects.

    Args:
        prediction: a text, or a batch of texts: a Variable whose data is a list, or a list of Variables.
        target: the expected text, number or truth value, or one for each entry of the batch.
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
    score, explanation = _ExactMatch.apply(one_batch(prediction), target, reduction_fn)
    return score, explanation
