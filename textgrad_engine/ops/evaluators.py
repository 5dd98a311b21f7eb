"""Losses: what scores a prediction, and says in words what is wrong with it.

An evaluator has two outputs, the score (higher is better) and the explanation. A backward pass may begin at either,
without a gradient; a score that counts as a success sends a true zero.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from textgrad_engine import templates
from textgrad_engine.autograd import Function, Source, Variable, is_grad_enabled, is_seed
from textgrad_engine.errors import MalformedResponse
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.request import GenerateConfig, ResponseFormat
from textgrad_engine.ops.chat_completion import ChatCompletion, ask
from textgrad_engine.ops.feedback import object_schema
from textgrad_engine.ops.messages import ChatSettings, plan_of
from textgrad_engine.ops.text import Compute, share_of_edit
from textgrad_engine.ops.what_if import described_change, edited_text

__all__ = [
    "deterministic_evaluator",
    "exact_match_evaluator",
    "judge",
    "lm_judge_evaluator",
    "text_loss",
]

Reduction = Callable[[list[Any]], Any]


class _Evaluator(Function):
    """Base: outputs (score, explanation); the explanation is the feedback, empty for a success."""

    num_outputs = 2
    starts_backward = True

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.count = len(inputs)
        ctx.save_for_backward(*output)

    @staticmethod
    def output_role(prediction: Variable, *rest: Any) -> tuple[str, str]:
        return _roles(prediction)

    @staticmethod
    def backward(ctx: Any, *grad_outs: Variable) -> Any:
        score, explanation = ctx.saved_variables
        return (_feedback(score, explanation, grad_outs), *[None] * (ctx.count - 1))


def _evaluated_again(evaluator: type[_Evaluator], ctx: Any, edits: Sequence[Variable | None]) -> tuple[Variable, ...]:
    """What would change in score and explanation: a model makes the described edits, and the evaluator is run again.

    The score of a text that is only described cannot be known; so the change is that of one text which fits the
    description.
    """
    edited = [edited_text(value, edit, ask) for value, edit in zip(ctx.primals, edits)]
    return tuple(
        [described_change(now, then) for now, then in zip(ctx.saved_variables, evaluator.apply(*edited), strict=True)]
    )


def _roles(prediction: Any) -> tuple[str, str]:
    about = prediction.role if isinstance(prediction, Variable) and prediction.role else "prediction"
    return f"score of the {about}", f"feedback on the {about}"


def _feedback(score: Variable | None, explanation: Variable, grad_outs: Sequence[Variable]) -> list[Variable] | None:
    """The explanation, and behind it what was said about the evaluator's own outputs."""
    said = [item for grad in grad_outs if grad.grad and not is_seed(grad) for item in grad.grad]
    if explanation._layer is not None or (is_grad_enabled() and explanation.requires_grad):
        item = Compute.apply(_same, explanation, _FEEDBACK_ROLE)  # keeps its graph, and may be a batch
    elif explanation._says_nothing():
        return said or None
    else:
        item = Variable(explanation.data, role=_FEEDBACK_ROLE)
    if explanation._layer is None:
        number = None if score is None else score.data
        item.source = Source(score=float(number) if isinstance(number, int | float) else None)
    return [item, *said]


_FEEDBACK_ROLE = "feedback of the evaluator"


def _same(text: Any) -> Any:
    return text


def _entries(value: Any, count: int | None) -> list[Any]:
    """A value as the entries of a batch."""
    data = value.data if isinstance(value, Variable) else value
    if count is None:
        return [data]
    if isinstance(data, list):
        if len(data) != count:
            raise ValueError(f"a batch of {count} predictions has {len(data)} targets")
        return data
    return [data] * count


class _ExactMatch(_Evaluator):
    deferrable = True

    @staticmethod
    def forward(prediction: Variable, target: Any, reduction: Reduction) -> Any:
        count = len(prediction.data) if isinstance(prediction.data, list) else None
        pairs = list(zip(_entries(prediction, count), _entries(target, count)))
        scores = [int(str(got).strip() == str(wanted).strip()) for got, wanted in pairs]
        prompt = templates.load("exact_match")
        texts = ["" if s else prompt.render(prediction=p, target=t) for s, (p, t) in zip(scores, pairs)]
        return _scored(prediction, scores, texts, count, reduction)

    @staticmethod
    def jvp(ctx: Any, *edits: Variable | None) -> Any:
        return _evaluated_again(_ExactMatch, ctx, edits)


def _scored(prediction: Any, scores: list[Any], texts: list[str], count: int | None, reduction: Reduction) -> Any:
    roles = _roles(prediction)
    score = scores[0] if count is None else reduction(scores)
    return Variable(score, role=roles[0]), Variable(texts[0] if count is None else texts, role=roles[1])


def exact_match_evaluator(
    prediction: Variable, target: Variable | str | list[str], reduction_fn: Reduction = sum
) -> tuple[Variable, Variable]:
    """Score 1 where prediction and target are the same text (white space at the ends aside), else 0.

    Args:
        prediction: a text, or a batch of texts.
        target: the expected text, or one for each entry of the batch.
        reduction_fn: makes one score of a batch's scores.

    Returns:
        (score, explanation): the explanation is "" (or a list with "") for what is right.

    Raises:
        TypeError: the target is None.

    Example:
        >>> score, explanation = exact_match_evaluator(Variable("billing"), "billing")
        >>> score.data, explanation.data
        (1, '')
    """
    if target is None:
        raise TypeError("exact match needs a target, got None: does the example have a field for it?")
    score, explanation = _ExactMatch.apply(prediction, target, reduction_fn)
    return score, explanation


class _Deterministic(_Evaluator):
    @staticmethod
    async def forward(
        prediction: Variable,
        target: Any,
        eval_fn: Callable[..., Any],
        purpose: str,
        success_fn: Callable[[Any], bool] | None,
        reduction: Reduction,
    ) -> Any:
        count = len(prediction.data) if isinstance(prediction.data, list) else None
        pairs = list(zip(_entries(prediction, count), _entries(target, count)))
        scores, texts = [], []
        for got, wanted in pairs:
            arguments = (got,) if target is None else (got, wanted)
            if inspect.iscoroutinefunction(eval_fn):
                outcome = await eval_fn(*arguments)
            else:  # user code, perhaps slow: off the event loop
                outcome = await asyncio.to_thread(eval_fn, *arguments)
                if inspect.isawaitable(outcome):  # an object whose __call__ is async, a partial of one
                    outcome = await outcome
            score, explanation = outcome if isinstance(outcome, tuple) else (outcome, "")
            if not isinstance(score, int | float) or not math.isfinite(score):
                raise TypeError(f"the metric {purpose!r} must return a number, or (number, text); got {outcome!r:.60}")
            good = success_fn(score) if success_fn is not None else score >= 1
            prompt = templates.load("metric")
            scores.append(score)
            texts.append(
                ""
                if good
                else prompt.render(purpose=purpose, score=score, prediction=got, target=wanted, explanation=explanation)
            )
        return _scored(prediction, scores, texts, count, reduction)

    @staticmethod
    def jvp(ctx: Any, *edits: Variable | None) -> Any:
        return _evaluated_again(_Deterministic, ctx, edits)


def deterministic_evaluator(
    prediction: Variable,
    target: Any,
    eval_fn: Callable[..., Any],
    eval_fn_purpose: str,
    success_fn: Callable[[Any], bool] | None = None,
    reduction_fn: Reduction = sum,
) -> tuple[Variable, Variable]:
    """Score a prediction with a Python function, which runs in a thread (or on the loop when it is ``async def``).

    Args:
        prediction: a text, or a batch of texts.
        target: what it is compared with; None for a function that takes the prediction alone.
        eval_fn: ``eval_fn(prediction, target)`` gives a number (1 is full marks), or a pair of the number and a text
            that says what is wrong. Called once for each entry of a batch.
        eval_fn_purpose: what the function checks, in words; the critic is told.
        success_fn: says of a score whether nothing needs to change; by default ``score >= 1``.
        reduction_fn: makes one score of a batch's scores.

    Returns:
        (score, explanation), both pending.

    Example:
        >>> def short(text):
        ...     return len(text) <= 5
        >>> score, _ = deterministic_evaluator(Variable("four"), None, short, "at most five letters")
        >>> score.data
        True
    """
    score, explanation = _Deterministic.apply(prediction, target, eval_fn, eval_fn_purpose, success_fn, reduction_fn)
    return score, explanation


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float
    success: Callable[[float], bool] | None


class _Verdict(_Evaluator):
    """(score, explanation) out of a judge's JSON; feedback goes to the prediction, not to the judge."""

    deferrable = True

    @staticmethod
    def forward(prediction: Variable, answer: Variable, scale: _Scale) -> Any:
        try:
            body = json.loads(answer.data)
            score, explanation = float(body["score"]), str(body["explanation"]).strip()
        except (ValueError, KeyError, TypeError) as error:
            raise MalformedResponse(f"the judge's answer has no score and explanation: {answer.data!r:.200}") from error
        if not scale.low <= score <= scale.high:
            raise MalformedResponse(f"the judge gave {score:g} on a scale from {scale.low:g} to {scale.high:g}")
        good = score >= scale.high if scale.success is None else scale.success(score)
        if not good and not explanation:
            explanation = f"The judge gave {score:g} on a scale from {scale.low:g} to {scale.high:g}, without a reason."
        roles = _roles(prediction)
        return Variable(score, role=roles[0]), Variable("" if good else explanation, role=roles[1])

    @staticmethod
    def jvp(ctx: Any, prediction: Variable | None, answer: Variable | None, scale: None) -> Any:
        """What would change in the judge's answer is said of both; the prediction by itself decides nothing here."""
        if answer is None:
            return None, None
        return share_of_edit(answer, "the score"), share_of_edit(answer, "the explanation")


_VERDICT_SCHEMA = object_schema({"score": {"type": "number"}, "explanation": {"type": "string"}})


def judge(
    prediction: Variable,
    instructions: Variable | str,
    *,
    target: Variable | str | None = None,
    inputs: Mapping[str, Any] | None = None,
    scale: tuple[float, float] = (0, 1),
    success_fn: Callable[[float], bool] | None = None,
    model: str | Model | None = None,
) -> tuple[Variable, Variable]:
    """Have a model score a prediction by criteria in words; the prompt is ``prompts/judge.md``.

    Args:
        prediction: the text to judge.
        instructions: the criteria.
        target: a reference answer, if there is one.
        inputs: what the prediction was made from, by name, for the judge to see.
        scale: the lowest and the highest score.
        success_fn: says of a score whether nothing needs to change; by default only the highest score does.
        model: asks this model; None stands for the one of `use_models`.

    Returns:
        (score, explanation), both pending.
    """
    shown = {"prediction": prediction, "instructions": instructions, "target": target, "inputs": dict(inputs or {})}

    def render(values: dict[str, Any]) -> str:
        given = [{"name": name, "text": str(text)} for name, text in values["inputs"].items()]
        return templates.load("judge").render(**{**values, "inputs": given}, low=scale[0], high=scale[1])

    user = Compute.apply(render, shown, "request to the judge")
    answer = ask("judge", user, _VERDICT_SCHEMA, purpose="judge", role="answer of the judge", model=model)
    score, explanation = _Verdict.apply(prediction, answer, _Scale(*scale, success_fn))
    return score, explanation


def lm_judge_evaluator(
    model: str | Model | None,
    messages: Sequence[Mapping[str, Any]],
    prediction: Variable,
    target: Variable | str | None = None,
    inputs: Mapping[str, Any] | None = None,
    *,
    scale: tuple[float, float] = (0, 1),
    success_fn: Callable[[float], bool] | None = None,
) -> tuple[Variable, Variable]:
    """Have a model score a prediction by messages of one's own.

    Args:
        model: the judge; None stands for the one of `use_models`.
        messages: what the judge is told; their ``{prediction}``, ``{target}`` and ``{…}`` of `inputs` are filled in.
            They should ask for a JSON object with "score" and "explanation".
        prediction: the text to judge.
        target: a reference answer.
        inputs: further values for slots.
        scale: the lowest and the highest score.
        success_fn: says of a score whether nothing needs to change; by default only the highest score does.

    Returns:
        (score, explanation), both pending.
    """
    values = {"prediction": prediction, **({} if target is None else {"target": target}), **(inputs or {})}
    config = GenerateConfig(response_format=ResponseFormat(name="judge", json_schema=_VERDICT_SCHEMA))
    settings = ChatSettings(model=model, config=config, purpose="judge", role="answer of the judge")
    plan, holes = plan_of(messages, values)
    answer = ChatCompletion.apply(settings, plan, *holes)
    score, explanation = _Verdict.apply(prediction, answer, _Scale(*scale, success_fn))
    return score, explanation


class _Criticism(Function):
    """The criticism of a text loss; what is said goes to the prediction as it is."""

    deferrable = True
    starts_backward = True

    @staticmethod
    def forward(prediction: Variable, answer: Variable) -> Variable:
        try:
            text = json.loads(answer.data)["criticism"].strip()
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise MalformedResponse(f"the answer has no criticism: {answer.data!r:.200}") from error
        return Variable(text, role=_roles(prediction)[1])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(output)

    @staticmethod
    def output_role(prediction: Variable, answer: Variable) -> str:
        return _roles(prediction)[1]

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        return _feedback(None, ctx.saved_variables[0], [grad_out]), None

    @staticmethod
    def jvp(ctx: Any, prediction: Variable | None, answer: Variable | None) -> Any:
        return answer


def text_loss(
    prediction: Variable,
    instructions: Variable | str,
    *,
    target: Variable | str | None = None,
    model: str | Model | None = None,
) -> Variable:
    """A model's criticism of a prediction; "" when it finds nothing to criticize. The prompt is
    ``prompts/text_loss.md``.

    Args:
        prediction: the text to criticize.
        instructions: what to look at.
        target: a reference answer, if there is one.
        model: asks this model; None stands for the judge of `use_models`.
    """
    shown = {"prediction": prediction, "instructions": instructions, "target": target}
    user = Compute.apply(lambda values: templates.load("text_loss").render(**values), shown, "request for criticism")
    schema = object_schema({"criticism": {"type": "string"}})
    answer = ask(
        "text_loss", user, schema, answer="criticism", purpose="judge", role="answer of the judge", model=model
    )
    result: Variable = _Criticism.apply(prediction, answer)
    return result
