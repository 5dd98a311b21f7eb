"""The verdict on a batch: one score and its explanations, of those that each entry was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from textgrad_engine.autograd import Function, Variable
from textgrad_engine.autograd.gradient import is_start
from textgrad_engine.ops.batching import parts_of_items
from textgrad_engine.ops.entries import stacked
from textgrad_engine.ops.evaluators import roles_of
from textgrad_engine.ops.pass_on import edit_of_parts
from textgrad_engine.ops.scores import Reduction, all_succeed, reduced

Success: TypeAlias = Callable[[float], bool]
"""Says of a score whether nothing needs to change."""


def of_batch(
    verdicts: list[tuple[Variable, Variable]], reduction: Reduction, success: Success | None, eval_mode: bool
) -> tuple[Variable, Variable]:
    """Score and explanation of a batch, from those of its entries.

    Args:
        verdicts: of each entry.
        reduction: makes one score of all; None leaves the list.
        success: says of all scores together whether nothing needs to change; None for each entry's own word.
        eval_mode: whether feedback goes to the prediction.
    """
    scores, explanations = [score for score, _ in verdicts], [explanation for _, explanation in verdicts]
    score, explanation = _Batch.apply(scores, explanations, reduction, success, eval_mode)
    return score, explanation


class _Batch(Function):
    """`_Batch.apply(scores, explanations, reduction, success, eval_mode)`: a batch's outputs, from its entries'."""

    num_outputs = 2
    deferrable = True
    starts_backward = True

    @staticmethod
    def forward(
        scores: list[Variable],
        explanations: list[Variable],
        reduction: Reduction,
        success: Success | None,
        eval_mode: bool,
    ) -> Any:
        numbers, texts = [score.data for score in scores], [text.data for text in explanations]
        if success is not None and any(texts) and all_succeed(numbers, success):
            texts = [""] * len(texts)
        return Variable(reduced(numbers, reduction)), Variable(texts)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.count, ctx.eval_mode = len(inputs[0]), inputs[4]
        ctx.save_for_backward(output[1])

    @staticmethod
    def output_role(scores: list[Variable], explanations: list[Variable], *_: Any) -> Any:
        return (scores[0].role, explanations[0].role) if scores else roles_of(None)

    @staticmethod
    def backward(ctx: Any, *grad_outs: Variable) -> Any:
        said = [grad_out.grad for grad_out in grad_outs]
        if ctx.eval_mode and not any(ctx.saved_variables[0].data):  # a success: no entry begins to speak of itself
            said = [[item for item in items if not is_start(item)] for items in said]
        return (*[parts_of_items(items, ctx.count) for items in said], None, None, None)

    @staticmethod
    def jvp(ctx: Any, scores: list[Any] | None, explanations: list[Any] | None, *_: None) -> Any:
        values, _, reduction, _, _ = ctx.primals
        pairs = enumerate(zip(values, scores or []), 1)
        named = [(f"entry {number} of {ctx.count}", value, edit) for number, (value, edit) in pairs]
        score = _batch_of_edits(scores) if reduction is None else edit_of_parts(named)
        return score, _batch_of_edits(explanations)


def _batch_of_edits(edits: list[Variable | None] | None) -> Variable | None:
    return None if edits is None else stacked([Variable("") if edit is None else edit for edit in edits])
