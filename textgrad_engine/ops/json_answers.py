"""Texts that a model answers with, as places in JSON: which are wanted, and how its answer is taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from textgrad_engine.autograd import Function, Variable
from textgrad_engine.errors import MalformedResponse
from textgrad_engine.llm.parsing import parsed
from textgrad_engine.ops.messages import ChatSettings
from textgrad_engine.ops.parts import place_in_words, told_of_place
from textgrad_engine.ops.pass_on import Compute, share_of_edit


def object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    """The JSON schema of an object with exactly these properties."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts that are wanted from a model, as places in a JSON answer; for `model_call.ask_texts`.

    Attributes:
        settings: how the model is asked.
        paths: for each text its keys, from the outside in.
        roles: for each its role.
        label: what is computed, for messages about the call.
        no_variables_inside: says that it need not be searched for Variables.
    """

    settings: ChatSettings
    paths: tuple[tuple[str, ...], ...]
    roles: tuple[str, ...]
    label: tuple[str, str] = field(init=False)

    no_variables_inside: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", (self.roles[0], "ChatCompletion"))


def texts_at(answer: Any, paths: Sequence[Sequence[str]], role: str) -> list[str]:
    """The texts at some places of a JSON answer, stripped.

    Raises:
        MalformedResponse: it has no text there; the message names the answer's role.
    """
    try:
        body = parsed(answer)
        texts = []
        for path in paths:
            value = body
            for key in path:
                value = value[key]
            texts.append(value.strip())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MalformedResponse(
            f"{role or 'the answer'} is no JSON object with the keys that were asked for ({error!r}): {answer!r:.200}"
        ) from error
    return texts


class Extract(Function):
    """`Extract.apply(answer, paths, roles)`: the texts at some places of a JSON answer."""

    deferrable = True

    @staticmethod
    def forward(answer: Variable, paths: tuple[tuple[str, ...], ...], roles: tuple[str, ...]) -> Any:
        """Parse the answer and pick the texts."""
        texts = texts_at(answer.data, paths, answer.role)
        values = tuple([Variable(text, role=role) for text, role in zip(texts, roles)])
        return values if len(values) > 1 else values[0]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Remember the paths."""
        ctx.paths = inputs[1]

    @classmethod
    def count_outputs(cls, answer: Any, paths: Any, roles: Any) -> int:
        """One for each path."""
        return len(paths)

    @staticmethod
    def output_role(answer: Variable, paths: Any, roles: tuple[str, ...]) -> tuple[str, ...]:
        """The roles that were given."""
        return roles

    @staticmethod
    def backward(ctx: Any, *grad_outs: Variable) -> Any:
        """Feedback on the texts, each with the place it speaks of."""
        items = []
        for path, grad_out in zip(ctx.paths, grad_outs):
            for item in grad_out.grad:
                words = told_of_place("on_part", ".".join(path)) + place_in_words(item)
                about = Compute.apply(lambda text, words=words: f"{words}{text}", item, item.role)
                about.source = item.source and replace(item.source, places=())
                items.append(about)
        return items, None, None

    @staticmethod
    def jvp(ctx: Any, edit: Variable, *_: None) -> Any:
        """Of an edit of the answer, each text gets what falls on it."""
        if len(ctx.paths) == 1:
            return edit
        return tuple([share_of_edit(edit, f"`{'.'.join(path)}`") for path in ctx.paths])
