"""A field of a JSON answer, joined to the answer in the graph; ``prompts/field_of.md`` has the words."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any, TypeAlias

from textgrad_engine import fences, templates
from textgrad_engine.autograd import Function, Variable
from textgrad_engine.autograd.gradient import is_start
from textgrad_engine.autograd.operators import Operators
from textgrad_engine.errors import MalformedResponse
from textgrad_engine.llm.parsing import json_in
from textgrad_engine.ops.evaluators import written
from textgrad_engine.ops.parts import place_in_words
from textgrad_engine.ops.pass_on import Compute, data_of, share_of_edit

_Path: TypeAlias = tuple[str | int, ...]

_FORM = "Ask with response_format=…, which holds the model to a form, and name a field of that"
_TURNS = (
    "These are calls of tools: with functions as tools, the last of max_turns turns was calls again, so raise max_turns"
)


class _Field(Function):
    """`_Field.apply(answer, path, default)`; see `field`."""

    deferrable = True

    @staticmethod
    def forward(answer: Variable, path: _Path, default: str | float | None) -> Variable:
        data = data_of(answer)
        if isinstance(data, list):
            raise TypeError(
                f"field: got a batch of {len(data)} answers, and a field is read of one; read it of each in "
                "ops.unbind(answers), or inside func.vmap"
            )
        value, problem = _read(str(data), path)
        if problem and default is None:
            raise MalformedResponse(
                f"the {answer.role or 'answer'} {problem}: {str(data)!r:.100}. "
                f"{_TURNS if _are_calls(str(data)) else _FORM}; or let something stand for it, which is then scored, "
                f'and told to the prompt: ops.field(answer, {", ".join(map(repr, path))}, default="")'
            )
        return Variable(default if problem else value, role=_role_of(answer, path))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        answer, ctx.path, ctx.default = inputs
        ctx.save_for_backward(answer)

    @staticmethod
    def output_role(answer: Variable, path: _Path, default: Any) -> str:
        return _role_of(answer, path)

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        (answer,) = ctx.saved_variables
        said = [item if is_start(item) else _about(item, answer, ctx.path, ctx.default) for item in grad_out.grad]
        return said, None, None

    @staticmethod
    def jvp(ctx: Any, edit: Variable, *_: None) -> Variable:
        return share_of_edit(edit, f"the field {_name_of(ctx.primals[1])}")


def _role_of(answer: Variable, path: _Path) -> str:
    return f"{_name_of(path)} of the {answer.role or 'answer'}"


def _name_of(path: _Path) -> str:
    """How a path is written.

    Example:
        >>> _name_of(("people", 0, "name"))
        'people[0].name'
    """
    return "".join([f"[{key}]" if isinstance(key, int) else f".{key}" for key in path]).removeprefix(".")


def _about(item: Variable, answer: Variable, path: _Path, default: str | float | None) -> Variable:
    place = place_in_words(item)
    about: Variable = Compute.apply(
        lambda data: _in_words(place, data[0], str(data[1]), path, default), [item, answer.detach()], item.role
    )
    about.source = item.source and replace(item.source, places=(), direct=False)
    return about


def _in_words(place: str, said: Any, answer: str, path: _Path, default: str | float | None) -> str:
    if not said:
        return ""
    return templates.load("field_of").render(
        name=_name_of(path),
        problem=_read(answer, path)[1],
        default=None if default is None else fences.as_text(default),
        feedback=f"{place}{said}",
    )


def _read(text: str, path: _Path) -> tuple[str | int | float, str]:
    """The value at a path; or "" and what is wrong with the answer, in words that go on from "the answer"."""
    name = _name_of(path)
    try:
        _, value = json_in(text)
    except (ValueError, RecursionError) as error:  # brackets without end are nested too deep
        return "", f"is no JSON, so it has no field {name} ({error})"
    for number, key in enumerate(path):
        held: Any = value if isinstance(value, dict | list) else {}
        try:
            value = held[key]
        except (KeyError, IndexError, TypeError):
            where = f"at {_name_of(path[:number])} " if number else ""
            return "", f"has no field {name}; it has {where}{_what_is_there(value)}"
    plain = type(value) in (str, int) or (type(value) is float and math.isfinite(value))
    try:
        value = value if plain else written(value)
    except RecursionError:
        return "", f"has something in the field {name} that is nested too deeply to be written"
    if isinstance(value, str) and _no_text(value):
        return "", f"has half of a surrogate pair in the field {name}, which is no text"
    return value, ""


def _are_calls(text: str) -> bool:
    """Whether an answer is calls of tools, as `Completion.calls_as_text` writes them."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(each, dict) and each.keys() == {"name", "arguments"} for each in value)


def _no_text(text: str) -> bool:
    """Whether a text cannot be sent."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _what_is_there(value: Any) -> str:
    if isinstance(value, dict):
        return f"the fields {', '.join(value):.200}" if value else "no field"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return f"{json.dumps(value, ensure_ascii=False):.60}"


def check_path(call: str, path: tuple[object, ...], default: object) -> None:
    """Refuse what leads to no field, or what cannot stand for one.

    Args:
        call: that was made, for the error.
        path: the name of the field; of one that is further in, the names and places on the way.
        default: stands for the field where it is not there; None for nothing.

    Raises:
        TypeError: no field is named, or the default is neither a text nor a number.
    """
    if not path:
        raise TypeError(f"{call}: names no field; put its name, such as 'label', behind the first argument")
    if wrong := [key for key in path if not isinstance(key, str | int) or isinstance(key, bool)]:
        spread = "; write the names one by one" if isinstance(wrong[0], list | tuple) else ""
        raise TypeError(
            f"{call}: a field has a name, an entry of a list a number; got {type(wrong[0]).__name__} "
            f"{wrong[0]!r:.60}{spread}"
        )
    if default is not None and (isinstance(default, bool) or not isinstance(default, str | int | float)):
        raise TypeError(f"{call}: default is a text or a number, got {type(default).__name__} {default!r:.60}")


def field(answer: Variable, *path: str | int, default: str | float | None = None) -> Variable:
    """A field of an answer that is JSON, as ``response_format`` has it; ``answer["label"]`` is the same.

    Feedback on the field goes to the answer, and so to the prompt that asked for it, with the field's name. Nothing
    waits: the field of a pending answer is pending.

    Args:
        answer: the answer; inside `func.vmap` of each example its own.
        path: the name of the field; of one that is further in, the names and places on the way.
        default: replaces the field if the answer is no JSON or lacks it; feedback on the default then says so. It is
            for prompts that must say themselves how to answer. None raises.

    Returns:
        A text or a number as it is; anything else (a list, an object, true, null) written as JSON.

    Raises:
        TypeError: a part of the path is neither a name nor a place, there is none, or `answer` is no Variable; where it
            is read: the answer is a batch.
        MalformedResponse: where it is read: the answer is no JSON, or lacks the field, and there is no default. In an
            evaluation and in a run that example counts as unanswered, not as wrong.

    Example:
        >>> answer = Variable('{"reason": "It is late.", "label": "late"}', role="answer", requires_grad=True)
        >>> label = answer["label"]
        >>> label.data, label.role
        ('late', 'label of the answer')
        >>> label.backward("Say broken.")
        >>> print(answer.grad[0].data)
        On the field label of this answer: Say broken.
    """
    if not isinstance(answer, Variable):
        raise TypeError(
            f"field: reads a field of a Variable, got {type(answer).__name__} {answer!r:.60}; of plain data take it "
            "with json.loads"
        )
    check_path("field", path, default)
    result: Variable = _Field.apply(answer, path, default)
    return result


Operators.field_rule = staticmethod(field)
