"""Rubrics: a judge that says of each of several criteria whether an answer meets it."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from textgrad_engine import templates
from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.examples import EXAMPLE
from textgrad_engine.checks import check
from textgrad_engine.errors import MalformedResponse, ScoreError
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.parsing import parsed
from textgrad_engine.llm.response_format import ResponseFormat
from textgrad_engine.ops.asking import completion_of
from textgrad_engine.ops.criteria import Criterion, criteria_of, full_marks, numbered, score_of, written
from textgrad_engine.ops.entries import each_entry
from textgrad_engine.ops.evaluators import Evaluator, beside_other, in_digits, refuse_several_outputs, roles_of
from textgrad_engine.ops.images import MOST_IMAGES, checked_images
from textgrad_engine.ops.json_answers import object_schema
from textgrad_engine.ops.material import as_texts, beside, shown, shown_inputs
from textgrad_engine.ops.messages import ChatSettings, Hole, Plan, Rendered
from textgrad_engine.ops.model_call import ChatCompletion
from textgrad_engine.ops.pass_on import Compute, share_of_edit
from textgrad_engine.ops.score_parts import HEARD
from textgrad_engine.ops.scores import Reduction, reduced
from textgrad_engine.ops.sizes import common_size, size_of
from textgrad_engine.ops.verdicts import of_batch

_CRITERIA = 2
"""The position of the criteria among the values of a call, behind the system message and the prediction."""


class RubricCall(ChatCompletion):
    """The call of the judge; what its answer has to be depends on how many criteria there are, which are a value."""

    only_saves = True

    @staticmethod
    async def forward(settings: ChatSettings, plan: Plan, *values: Any) -> Variable:
        """Ask of as many criteria as there are."""
        data = [value.data if isinstance(value, Variable) else value for value in values]
        form = _form(len(_known(data[_CRITERIA])))
        config = settings.config.model_copy(update={"response_format": form})
        completion = await completion_of(replace(settings, config=config), plan, data)
        return Variable(completion.text, role=settings.role)


class _Checked(Evaluator):
    """(score, explanation) out of the judge's JSON; feedback goes to the prediction."""

    deferrable = True

    @staticmethod
    def forward(prediction: Variable, answer: Variable, criteria: Any) -> Any:
        found = _known(criteria.data if isinstance(criteria, Variable) else criteria)
        marks = _marks(answer.data, len(found))
        met = [is_met for is_met, _ in marks]
        roles = roles_of(prediction)
        said = _lacks(found, met, [reason for _, reason in marks])
        return Variable(score_of(found, met), role=roles[0]), Variable(said, role=roles[1])

    @staticmethod
    def jvp(ctx: Any, prediction: Variable | None, answer: Variable | None, criteria: None) -> Any:
        """What would change in the judge's answer is said of both."""
        if answer is None:
            return None, None
        return share_of_edit(answer, "the score"), share_of_edit(answer, "the explanation")


def _marks(answer: str, count: int) -> list[tuple[bool, str]]:
    """Of each criterion whether it is met, and why, as the judge says it.

    Args:
        answer: the judge's.
        count: how many criteria there are.

    Raises:
        MalformedResponse: one is left out.
    """
    try:
        body = parsed(answer)
        marks = [body[str(number)] for number in range(1, count + 1)]
        return [(_truth(mark["met"]), str(mark["explanation"]).strip()) for mark in marks]
    except (ValueError, KeyError, TypeError) as error:
        raise MalformedResponse(
            f"the judge's answer does not say of each criterion whether it is met: {answer!r:.200}"
        ) from error


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(value)
    return value


def _met(answers: list[Variable], number: int, criterion: Criterion, reduction: Reduction) -> Variable:
    """Whether the prediction does well by one criterion, 1 or 0, by the judge's answers.

    Args:
        answers: of each entry of a batch, else one.
        number: the criterion's.
        criterion: the criterion.
        reduction: makes one of the numbers of a batch, as of its scores.
    """

    def read(answers: list[str]) -> Any:
        met = [_marks(answer, number)[number - 1][0] == (criterion.points > 0) for answer in answers]
        return int(met[0]) if reduction is None else reduced(list(map(int, met)), reduction)

    found: Variable = Compute.apply(read, answers, "score by a criterion")
    return found


def _lacks(criteria: Sequence[Criterion], met: Sequence[bool], reasons: Sequence[str]) -> str:
    """What an answer is told that does not get full marks, by what it lost most by; "" for one that does."""
    lost = [each for each in zip(criteria, met, reasons) if each[1] == (each[0].points < 0)]
    if not lost:
        return ""
    full, uneven = full_marks(criteria), len({abs(each.points) for each in criteria}) > 1
    missed = [
        {
            "text": each.text,
            "met": is_met,
            "reason": reason,
            "share": f"{abs(each.points) / full:.0%}" if uneven else "",
        }
        for each, is_met, reason in sorted(lost, key=lambda each: -abs(each[0].points))
    ]
    score = in_digits(score_of(criteria, met), 1)
    return templates.load("rubric_missed").render(score=score, count=len(criteria), missed=missed)


def _known(criteria: Any) -> tuple[Criterion, ...]:
    """The criteria that a call is given.

    Raises:
        ScoreError: they are none; the example is named, where that is known.
    """
    try:
        return criteria_of(criteria)
    except (TypeError, ValueError) as error:
        name = EXAMPLE.get()
        raise ScoreError(f"the criteria{f' of example {name!r}' if name else ''}: {error}") from None


@functools.lru_cache(maxsize=64)
def _form(count: int) -> ResponseFormat:
    """What a judge's answer has to be, so that one that leaves a criterion out is sent back, and not remembered.

    Of each the reason comes before the verdict, also at endpoints that write fields in the order of their names.
    """
    one = object_schema({"explanation": {"type": "string"}, "met": {"type": "boolean"}})
    schema = object_schema({str(number): one for number in range(1, count + 1)})
    return ResponseFormat(name="rubric", json_schema=schema)


def rubric(
    prediction: Variable,
    criteria: Sequence[Any] | str | Variable,
    *,
    target: Variable | str | list[str] | None = None,
    inputs: Mapping[str, Any] | None = None,
    reduction_fn: Reduction = sum,
    model: str | Model | None = None,
    images: int = MOST_IMAGES,
) -> tuple[Variable, Variable]:
    """Have a model say of each criterion whether a prediction meets it; the prompt is ``prompts/rubric.md``.

    The score is the share of points that the prediction gets, as in HealthBench (arXiv 2505.08775): those of the
    criteria that it meets, divided by all points above 0. Unlike there, one request asks about all criteria, the judge
    is not told the points, and no score is below 0.

    Args:
        prediction: the text to look at, or a batch of texts: the judge is asked once for each, all at the same time.
        criteria: texts, or dicts with ``"criterion"`` and ``"points"``: 1 where they are left out, below 0 for what a
            prediction must not do. Or one text, with a criterion in each line or such a list as JSON. For a batch the
            same for all, or a list of lists, one for each entry.
        target: a reference answer, if there is one; for a batch one for all, or one for each entry.
        inputs: what the prediction was made from, as for `judge`.
        reduction_fn: makes one score of a batch's scores; None gives the list of them.
        model: asks this model; None stands for the judge of `use_models`.
        images: how many images it is shown at most; 0 for a judge that reads none, who is told where they are.

    Returns:
        (score, explanation), both pending. The score is from 0 to 1.

    Raises:
        ScoreError: the prediction is several outputs; or the criteria are neither texts nor dicts, there are none, or
            none with points above 0.
        ValueError: batches differ in size, or `images` is below 0.

    Example:
        >>> from textgrad_engine.testing import ScriptedModel
        >>> marks = {"1": {"explanation": "It is.", "met": True}, "2": {"explanation": "No date.", "met": False}}
        >>> reply = Variable("We will see to it.", role="reply")
        >>> score, why = rubric(reply, ["It is polite.", "It says when."], model=ScriptedModel([marks]))
        >>> score.data, "It says when." in why.data, "No date." in why.data
        (0.5, True, True)
    """
    check(rubric, {"inputs": inputs, "model": model, "reduction_fn": reduction_fn})
    return checked_by(rubric_settings(model), prediction, criteria, target, inputs, images, reduction_fn)


def rubric_settings(model: str | Model | None, known: ChatSettings | None = None) -> ChatSettings:
    """How the judge is asked; those of earlier calls are given back where they are the same.

    Args:
        model: asks this model.
        known: those of earlier calls.
    """
    if known is not None and known.model is model:
        return known
    return ChatSettings(model=model, purpose="judge", role="answer of the judge")


def checked_by(
    settings: ChatSettings,
    prediction: Variable,
    criteria: Any,
    target: Variable | str | list[str] | None,
    inputs: Mapping[str, Any] | None,
    images: int,
    reduction_fn: Reduction,
    of_all: Sequence[Criterion] = (),
) -> tuple[Variable, Variable]:
    """As `rubric`, with settings of `rubric_settings`; `of_all` are the criteria where all examples have the same.

    Each of these is then a part of the score, for who wants to know (`ops.score_parts`).
    """
    refuse_several_outputs(prediction)
    target, inputs = beside((prediction,), target, inputs)
    names = tuple(inputs)
    prompt = templates.load("rubric")
    plan = _plan(prompt, names, checked_images(images, "images"))

    answers: list[Variable] = []

    def one(values: list[Any]) -> tuple[Variable, Variable]:
        given = as_texts(names, values[2:])
        answer = RubricCall.apply(settings, plan, prompt.system, *values[:2], *given)
        answers.append(answer)
        score, explanation = _Checked.apply(values[0], answer, values[1])
        return score, explanation

    values = [prediction, _as_value(criteria, several=size_of(prediction) is not None), target, *inputs.values()]
    size = common_size(list(zip(["the prediction", "the criteria", "the target", *names], values)), "rubric")
    if size is None:
        found = one(values)
    else:
        found = of_batch(each_entry(size, values, one, "rubric"), reduction_fn, None, eval_mode=True)
    if of_all and (heard := HEARD.get()) is not None:
        reduction = None if size is None else reduction_fn
        heard.append({each.name: _met(answers, number, each, reduction) for number, each in enumerate(of_all, 1)})
    return found


def _as_value(criteria: Any, *, several: bool) -> Any:
    """Criteria as one value of a call, or as a batch of such values where each entry has its own.

    Args:
        criteria: the criteria.
        several: whether there are several entries; a list of lists is no criteria of one.

    Raises:
        ScoreError: they are none.
    """
    if isinstance(criteria, Variable):  # looked at once its text is there
        return criteria
    each_has_own = isinstance(criteria, list | tuple) and all(isinstance(each, list | tuple) for each in criteria)
    if several and criteria and each_has_own:
        return [written(_known(each)) for each in criteria]
    return written(_known(criteria))


@functools.lru_cache(maxsize=64)
def _plan(prompt: templates.Prompt, names: tuple[str, ...], images: int) -> Plan:
    """The messages to the judge; their values are the system message, prediction, criteria, target, and the inputs.

    Args:
        prompt: what it is told.
        names: the names of the inputs.
        images: how many images are shown at most.
    """

    def render(data: list[Any]) -> str:
        found = _known(data[1])
        return prompt.render(
            criteria=numbered(found),
            count=len(found),
            prediction=beside_other(data[0]),
            target=None if data[2] is None else shown(beside_other(data[2])),
            inputs=shown_inputs(names, data[3:]),
        )

    values = enumerate(("prediction", "criteria", "target", *names), 1)
    user = Rendered(render, tuple([(name, at) for at, name in values]), images=images)
    return Plan((("system", (Hole(0),)), ("user", (user,))), ())
