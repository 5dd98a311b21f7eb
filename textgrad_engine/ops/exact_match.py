"""Exact match: whether a prediction is its target, and what the model is told where it is not."""

from __future__ import annotations

import functools
import json
import logging
from typing import Any

from textgrad_engine import templates
from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.examples import EXAMPLE
from textgrad_engine.fences import is_quotable
from textgrad_engine.ops.alike import alike
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
from textgrad_engine.ops.unseen import unseen
from textgrad_engine.plain_values import as_own
from textgrad_engine.wording import a_class, told

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
        raise TypeError(
            "exact match needs a target, got None: does the example have a field for it? Under nn.OnField, does the "
            "target have that field? Where null is right, write it: {'due': None}"
        )
    if isinstance(target, dict):
        _refuse_no_text(target)
    if reduction_fn is not None and not callable(reduction_fn):
        raise TypeError(f"exact_match_evaluator: reduction_fn must be a function, got {told(reduction_fn)}")
    score, explanation = _ExactMatch.apply(one_batch(prediction), target, reduction_fn)
    return score, explanation
