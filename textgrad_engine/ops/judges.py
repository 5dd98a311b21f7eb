"""Judges: losses that ask a model for a score. The one that asks it for a criticism is in `text_loss`."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from textgrad_engine import templates
from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.gradient import is_start
from textgrad_engine.checks import check
from textgrad_engine.errors import AutogradError, MalformedResponse
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.parsing import parsed
from textgrad_engine.llm.request import GenerateConfig, Message
from textgrad_engine.ops.entries import each_entry
from textgrad_engine.ops.evaluators import Evaluator, beside_other, refuse_several_outputs, roles_of
from textgrad_engine.ops.images import MOST_IMAGES, checked_images
from textgrad_engine.ops.json_answers import object_schema
from textgrad_engine.ops.material import (
    as_texts,
    beside,
    chat_in_words,
    inputs_in_words,
    refuse_parts,
    shown,
    shown_inputs,
)
from textgrad_engine.ops.messages import ChatSettings, Hole, Plan, Rendered, answer_form
from textgrad_engine.ops.model_call import ChatCompletion
from textgrad_engine.ops.parts import told_of_place
from textgrad_engine.ops.pass_on import Compute, detached, share_of_edit
from textgrad_engine.ops.planning import plan_of
from textgrad_engine.ops.scores import Reduction, as_scale, is_success
from textgrad_engine.ops.sizes import common_size
from textgrad_engine.ops.verdicts import Success, of_batch


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float
    success: Success | None


class _Verdict(Evaluator):
    """(score, explanation) out of a judge's JSON; feedback goes to the prediction, not to the judge."""

    deferrable = True

    @staticmethod
    def forward(prediction: Variable, answer: Variable, scale: _Scale) -> Any:
        try:
            body = parsed(answer.data)
            score, explanation = float(body["score"]), str(body["explanation"]).strip()
        except (ValueError, KeyError, TypeError, OverflowError) as error:  # a whole number may be larger than any float
            raise MalformedResponse(f"the judge's answer has no score and explanation: {answer.data!r:.200}") from error
        if not scale.low <= score <= scale.high:
            raise MalformedResponse(f"the judge gave {score:g} on a scale from {scale.low:g} to {scale.high:g}")
        good = score >= scale.high if scale.success is None else is_success(score, scale.success)
        if not good and not explanation:
            limits = {"low": f"{scale.low:g}", "high": f"{scale.high:g}"}
            explanation = templates.load("judge_without_reason").render(score=f"{score:g}", **limits)
        roles = roles_of(prediction)
        return Variable(score, role=roles[0]), Variable("" if good else explanation, role=roles[1])

    @staticmethod
    def jvp(ctx: Any, prediction: Variable | None, answer: Variable | None, scale: None) -> Any:
        """What would change in the judge's answer is said of both; the prediction by itself decides nothing here."""
        if answer is None:
            return None, None
        return share_of_edit(answer, "the score"), share_of_edit(answer, "the explanation")


class _JudgedJudge(_Verdict):
    """The same outputs; feedback on them goes to the judge's answer, and so to its messages and inputs."""

    starts_backward = False

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Nothing is needed: what is said about the outputs is said about the answer."""

    @staticmethod
    def backward(ctx: Any, *grad_outs: Variable) -> Any:
        """Say which of the two outputs the feedback is on."""
        items = []
        for name, grad_out in zip(("score", "explanation"), grad_outs):
            for item in grad_out.grad:
                if is_start(item):
                    raise AutogradError(
                        "with eval_mode=False feedback goes to the judge's instructions, and a judge does not say what "
                        'is wrong with itself. Begin with words, score.backward("too strict"), or with a loss on the '
                        "score: ops.deterministic_evaluator(score, human_score, ...)."
                    )
                words = told_of_place("on_part", f"the {name}")
                about = Compute.apply(lambda text, words=words: f"{words}{text}", item, item.role)
                about.source = item.source
                items.append(about)
        return None, items, None


@functools.lru_cache(maxsize=64, typed=True)  # a scale to 1.0 is written otherwise than one to 1
def _verdict_form(low: float, high: float) -> GenerateConfig:
    """What a judge's answer has to be, so that a score outside of the scale is sent back, and not remembered.

    The reason comes first, as a model that has said it scores by it (G-Eval, arXiv 2303.16634); also at endpoints that
    write fields in the order of their names.

    Raises:
        ValueError: the scale does not run from a lower to a higher score.
    """
    low, high = as_scale((low, high))
    limits = {name: end for name, end in (("minimum", low), ("maximum", high)) if math.isfinite(end)}
    score = {"type": "number", **limits}
    return answer_form("judge", object_schema({"explanation": {"type": "string"}, "score": score}))


def judge(
    prediction: Variable,
    instructions: Variable | str,
    *,
    target: Variable | str | list[str] | None = None,
    inputs: Mapping[str, Any] | None = None,
    scale: tuple[float, float] = (0, 1),
    success_fn: Success | None = None,
    reduction_fn: Reduction = sum,
    eval_mode: bool = True,
    model: str | Model | None = None,
    images: int = MOST_IMAGES,
) -> tuple[Variable, Variable]:
    """Have a model score a prediction by criteria in words; the prompt is ``prompts/judge.md``.

    Args:
        prediction: the text to judge, or a batch of texts: the judge is asked once for each, all at the same time.
        instructions: the criteria.
        target: a reference answer, if there is one; for a batch one for all, or one for each entry.
        inputs: what the prediction was made from, by name, for the judge to see; for a batch as `target`. What is no
            text, such as a list beside one prediction, is written as JSON, a data URL in a text is named ("[image, 220
            kB]"), and None is left out. An image that is a content part (`data.image_part`) is shown beside the text;
            recordings and files are named.
        scale: the lowest and the highest score.
        success_fn: says of a score whether nothing needs to change; by default only the highest score does. Each
            entry of a batch is asked about by itself. One that takes a list of scores (and raises TypeError for a
            number) is first asked about all scores of a batch: if it says True, nothing needs to change for any entry.
        reduction_fn: makes one score of a batch's scores; None gives the list of them.
        eval_mode: True sends feedback only to the prediction. False is for improving the judge: feedback on its score
            and explanation goes to the instructions and inputs, not to prediction and target; a pass then starts from
            words, or from a loss on the score.
        model: asks this model; None stands for the one of `use_models`.
        images: how many images it is shown at most; 0 for a judge that reads none, who is told where they are.

    Returns:
        (score, explanation), both pending.

    Raises:
        TypeError: the prediction is several outputs.
        ValueError: batches differ in size, the scale does not run from a lower to a higher score, or `images` is
            below 0.

    Example:
        >>> from textgrad_engine.testing import ScriptedModel
        >>> model = ScriptedModel([{"score": 0.5, "explanation": "No greeting."}])
        >>> score, why = judge(Variable("Pay at once.", role="reply"), "Is it polite?", model=model)
        >>> score.data, why.data
        (0.5, 'No greeting.')
    """
    functions = {"success_fn": success_fn, "reduction_fn": reduction_fn}
    check(judge, {"inputs": inputs, "eval_mode": eval_mode, "model": model, **functions})
    scale = as_scale(scale)
    how = Judging(judge_settings(model, scale), scale, images, success_fn, reduction_fn, eval_mode)
    return judged_by(how, prediction, instructions, target, inputs)


class Judging(NamedTuple):
    """How predictions are judged; all but `settings` as for `judge`.

    Attributes:
        settings: of `judge_settings`.
    """

    settings: ChatSettings
    scale: tuple[float, float]
    images: int
    success_fn: Success | None
    reduction_fn: Reduction
    eval_mode: bool


def judge_settings(
    model: str | Model | None, scale: tuple[float, float], known: ChatSettings | None = None
) -> ChatSettings:
    """How a judge is asked; calls with the same settings may share a feedback call.

    Args:
        model: asks this model.
        scale: the lowest and the highest score.
        known: those of earlier calls, which are given back where they are the same.
    """
    form = _verdict_form(*scale)
    if known is not None and known.model is model and known.config is form:
        return known
    return ChatSettings(model=model, config=form, purpose="judge", role="answer of the judge")


def judged_by(
    how: Judging,
    prediction: Variable,
    instructions: Variable | str,
    target: Variable | str | list[str] | None,
    inputs: Mapping[str, Any] | None,
) -> tuple[Variable, Variable]:
    """As `judge`; `how` holds what is the same for many predictions."""
    refuse_several_outputs(prediction)
    refuse_parts(instructions, "judge")
    target, inputs = beside((prediction, instructions), target, inputs)
    names = list(inputs)
    prompt = templates.load("judge")
    plan = _judge_plan(prompt, tuple(names), *how.scale, checked_images(how.images, "images"))

    def one(values: list[Any]) -> tuple[Variable, Variable]:
        given = as_texts(names, values[2:])
        answer = ChatCompletion.apply(how.settings, plan, prompt.system, *values[:2], *given)
        return _verdict(values[0], answer, _Scale(*how.scale, how.success_fn), how.eval_mode)

    if not how.eval_mode:
        prediction, target = detached(prediction), detached(target)
    values = [prediction, instructions, target, *inputs.values()]
    size = common_size(list(zip(["the prediction", "the instructions", "the target", *names], values)), "judge")
    if size is None:
        return one(values)
    return of_batch(each_entry(size, values, one, "judge"), how.reduction_fn, how.success_fn, how.eval_mode)


@functools.lru_cache(maxsize=64, typed=True)  # a scale to 1.0 is written otherwise than one to 1
def _judge_plan(prompt: templates.Prompt, names: tuple[str, ...], low: float, high: float, images: int) -> Plan:
    """The messages to a judge; their values are the system message, prediction, instructions, target, and the inputs.

    Args:
        prompt: what it is told.
        names: the names of the inputs.
        low: the lowest score.
        high: the highest.
        images: how many images are shown at most.
    """

    def render(data: list[Any]) -> str:
        prediction, target = beside_other(data[0]), None if data[2] is None else shown(beside_other(data[2]))
        return prompt.render(
            instructions=data[1],
            low=low,
            high=high,
            prediction=prediction,
            target=target,
            inputs=shown_inputs(names, data[3:]),
        )

    values = enumerate(("prediction", "instructions", "target", *names), 1)
    user = Rendered(render, tuple([(name, at) for at, name in values]), images=images)
    return Plan((("system", (Hole(0),)), ("user", (user,))), ())


def lm_judge_evaluator(
    model: str | Model | None,
    messages: Sequence[Mapping[str, Any] | Message],
    prediction: Variable,
    target: Variable | str | list[str] | None = None,
    inputs: Mapping[str, Any] | None = None,
    *,
    scale: tuple[float, float] = (0, 1),
    success_fn: Success | None = None,
    reduction_fn: Reduction = sum,
    eval_mode: bool = True,
) -> tuple[Variable, Variable]:
    """Have a model score a prediction with your own messages.

    Args:
        model: the judge; None stands for the one of `use_models`.
        messages: what the judge is told; their ``{prediction}``, ``{target}`` and ``{…}`` of `inputs` are filled in.
            The target may be left out; the prediction is either filled in, or stands in a message as it is. They
            should ask for a JSON object with "score" and "explanation".
        prediction: the text to judge, or a batch of texts.
        target: a reference answer; for a batch one for all, or one for each entry.
        inputs: further values for slots; for a batch as `target`.
        scale: the lowest and the highest score.
        success_fn: as in `judge`.
        reduction_fn: as in `judge`.
        eval_mode: as in `judge`; False sends feedback to the Variables in the messages and inputs.

    Returns:
        (score, explanation), both pending.

    Raises:
        TypeError: the prediction is several outputs.
        ValueError: batches differ in size, the scale does not run from a lower to a higher score, or a message is
            malformed; raised where the score is read, and before the judge is asked: no message shows the prediction,
            or has a slot for an input.

    Example:
        >>> from textgrad_engine.testing import ScriptedModel
        >>> model = ScriptedModel([{"score": 1, "explanation": "The same city."}])
        >>> messages = [{"role": "user", "content": "Same? {prediction} / {target}. JSON with score and explanation."}]
        >>> lm_judge_evaluator(model, messages, Variable("Roma", role="answer"), "Rome")[0].data
        1.0
    """
    refuse_several_outputs(prediction)
    functions = {"success_fn": success_fn, "reduction_fn": reduction_fn}
    check(lm_judge_evaluator, {"inputs": inputs, "eval_mode": eval_mode, "model": model, **functions})
    scale, target = as_scale(scale), chat_in_words(target)
    if not eval_mode:
        prediction, target = detached(prediction), detached(target)
    slots = {"prediction": prediction, **({} if target is None else {"target": target}), **inputs_in_words(inputs)}
    settings = ChatSettings(
        model=model,
        config=_verdict_form(*scale),
        purpose="judge",
        role="answer of the judge",
        strict=True,
        optional=("target",),
        spelled_out=("prediction",),
    )
    plan, holes = plan_of(messages, slots)

    def one(values: list[Any]) -> tuple[Variable, Variable]:
        answer = ChatCompletion.apply(settings, plan, *values[1:])
        return _verdict(values[0], answer, _Scale(*scale, success_fn), eval_mode)

    named = [(name, holes[index]) for name, index in plan.named_values()]
    size = common_size(named, "lm_judge_evaluator")
    if size is None:
        return one([prediction, *holes])
    verdicts = each_entry(size, [prediction, *holes], one, "lm_judge_evaluator")
    return of_batch(verdicts, reduction_fn, success_fn, eval_mode)


def _verdict(prediction: Any, answer: Variable, scale: _Scale, eval_mode: bool) -> tuple[Variable, Variable]:
    function = _Verdict if eval_mode else _JudgedJudge
    score, explanation = function.apply(prediction, answer, scale)
    return score, explanation
