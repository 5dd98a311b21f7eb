"""The text loss: a criticism of a text, which is the feedback on it."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from textgrad_engine import templates
from textgrad_engine.autograd import Function, Variable
from textgrad_engine.checks import check
from textgrad_engine.errors import MalformedResponse
from textgrad_engine.llm.images import is_image
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.parsing import parsed
from textgrad_engine.ops.entries import each_entry, stacked
from textgrad_engine.ops.evaluators import beside_other, feedback_of, is_leaf, refuse_several_outputs, roles_of
from textgrad_engine.ops.images import (
    MOST_IMAGES,
    ContentPart,
    Gallery,
    checked_images,
    gallery_of,
    in_words,
    not_shown,
)
from textgrad_engine.ops.json_answers import object_schema
from textgrad_engine.ops.material import as_texts, beside, refuse_parts, shown, shown_inputs
from textgrad_engine.ops.messages import answer_form
from textgrad_engine.ops.model_call import ask
from textgrad_engine.ops.pass_on import Compute
from textgrad_engine.ops.sizes import common_size


class _Criticism(Function):
    """The criticism of a text loss; what is said goes to the prediction as it is."""

    deferrable = True
    starts_backward = True

    @staticmethod
    def forward(prediction: Variable, answer: Variable) -> Variable:
        try:
            body = parsed(answer.data)
            text = "" if body.get("nothing_wrong") is True else body["criticism"].strip()
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise MalformedResponse(f"the answer has no criticism: {answer.data!r:.200}") from error
        return Variable(text, role=roles_of(prediction)[1])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        if not ctx.needs_input_grad[0]:
            ctx.mark_non_differentiable(output)
        ctx.of_leaf = is_leaf(inputs[0])
        ctx.save_for_backward(output, inputs[0] if ctx.of_leaf else None)

    @staticmethod
    def output_role(prediction: Variable, answer: Variable) -> str:
        return roles_of(prediction)[1]

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        return feedback_of(None, ctx.saved_variables[0], [grad_out], ctx.of_leaf), None

    @staticmethod
    def jvp(ctx: Any, prediction: Variable | None, answer: Variable | None) -> Any:
        return answer


def text_loss(
    prediction: Variable,
    instructions: Variable | str,
    *,
    target: Variable | str | list[str] | None = None,
    inputs: Mapping[str, Any] | None = None,
    model: str | Model | None = None,
    images: int = MOST_IMAGES,
) -> Variable:
    """A model's criticism of a prediction; "" when it finds nothing to criticize. The prompt is
    ``prompts/text_loss.md``.

    Args:
        prediction: the text to criticize; for a batch of texts the result is a batch, too.
        instructions: what to look at.
        target: a reference answer, if there is one; for a batch one for all, or one for each entry.
        inputs: what the prediction was made from, by name, as for `ops.judge`: the question that it answers, say.
        model: asks this model; None stands for the judge of `use_models`.
        images: how many images among the inputs it is shown at most; 0 for a model that reads none.

    Raises:
        TypeError: the prediction is several outputs; or an entry of a list of instructions is no text.
        ValueError: batches differ in size, or `images` is below 0.

    Example:
        >>> from textgrad_engine.testing import ScriptedModel
        >>> critic = ScriptedModel([{"nothing_wrong": False, "criticism": "It does not say why."}])
        >>> text_loss(Variable("4", role="answer"), "Does it say why?", model=critic).data
        'It does not say why.'
    """
    checked_images(images, "images")
    check(text_loss, {"inputs": inputs, "model": model})
    refuse_several_outputs(prediction)
    refuse_parts(instructions, "text_loss")
    target, inputs = beside((prediction, instructions), target, inputs)
    names = tuple(inputs)

    def one(values: list[Any]) -> Variable:
        given = as_texts(names, values[2:])
        seen = [each.part for each in given if type(each) is ContentPart and is_image(each.part)]
        gallery = gallery_of(seen, images, what="a request for criticism")
        render = functools.partial(_request, names=names, gallery=gallery)
        user = Compute.apply(render, [*values[:2], *given], "request for criticism")
        role = "answer of the judge"
        answer = ask("text_loss", user, _CRITICISM_FORM, purpose="judge", role=role, model=model, gallery=gallery)
        result: Variable = _Criticism.apply(values[0], answer)
        return result

    values = [prediction, instructions, target, *inputs.values()]
    size = common_size(list(zip(["the prediction", "the instructions", "the target", *names], values)), "text_loss")
    return one(values) if size is None else stacked(each_entry(size, values, one, "text_loss"))


_CRITICISM_FORM = answer_form(
    "criticism", object_schema({"nothing_wrong": {"type": "boolean"}, "criticism": {"type": "string"}})
)


def _request(data: list[Any], names: tuple[str, ...], gallery: Gallery | None) -> str:
    if gallery is None:
        return _prompt(in_words(data, not_shown), names)
    return gallery.text(lambda show: _prompt(in_words(data, show), names))


def _prompt(data: Sequence[Any], names: tuple[str, ...]) -> str:
    prediction, instructions, target, *inputs = data
    return templates.load("text_loss").render(
        instructions=instructions,
        prediction=beside_other(prediction),
        target=None if target is None else shown(beside_other(target)),
        inputs=shown_inputs(names, inputs),
    )
