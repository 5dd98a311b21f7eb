"""What a program is called with: fields of an example."""

from __future__ import annotations

import functools
import inspect
import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from textgrad_engine.callables import signature_of
from textgrad_engine.data.dataset import as_example, as_no_rows, by_position, examples_of
from textgrad_engine.data.names import listed, suggest
from textgrad_engine.errors import DataError
from textgrad_engine.kinds import is_coroutine_function
from textgrad_engine.llm.check import MAX_TEXT
from textgrad_engine.llm.conversation import is_conversation, near_miss, problem_of, turns_of
from textgrad_engine.nn import ChatCompletion, Module, Sequential
from textgrad_engine.ops.fillers import is_nan, unfit
from textgrad_engine.slots import SLOT_NAMES, by_composed_name
from textgrad_engine.train.prediction import A_COROUTINE
from textgrad_engine.wording import told

_log = logging.getLogger("textgrad_engine.train.fields")


def fields_named_by(program: Callable[..., Any]) -> Callable[[dict[str, Any], str], dict[str, Any]]:
    """How an example becomes a program's arguments: those of its fields that `forward` names.

    Args:
        program: a Module or any callable. One that takes ``**kwargs`` and has `slots` (nn.ChatCompletion) gets these,
            and those of its `optional_slots` that the example has. An nn.Sequential gets what its first module takes.

    Returns:
        A function of an example and its id. A field that is null is left out where forward has a default for it.

    Raises:
        TypeError: it names no field and would be called with nothing, or wants one by place.
        DataError: (from the function) the example lacks a field that forward has no default for, has for a slot what is
            no text, or null for one of a ChatCompletion's system message, which would be sent as it stands.
    """
    refuse_unnamed(program)
    required, optional = inputs_of(program)
    slots = _slots_of(program)
    called, _ = _called_first(program)
    own = signature_of(called.forward).parameters if isinstance(called, ChatCompletion) else slots
    in_system = [field for field in optional if field in slots and field not in own]  # sent as they stand if left out

    seen = set[tuple[str, ...]]()

    def problem_with(field: str, value: Any) -> str:
        if not is_conversation(value):
            return ""
        if not isinstance(called, ChatCompletion):
            return "a conversation, and it is no ChatCompletion that takes it"
        return called.problem_with(field, value)

    def pick(example: dict[str, Any], name: str) -> dict[str, Any]:
        example = composed_fields(example, name)
        if isinstance(called, ChatCompletion) and (names := tuple(example)) not in seen:
            seen.add(names)
            for field in called.no_slots_of([each for each in names if isinstance(each, str)]):
                _tell_of_braces(field)
        for field in required:
            if example.get(field) is None:
                whole = len(required) == 1 and field not in example and not suggest(field, example)
                hint = "; a program is called with the fields that it names, not with the example" if whole else ""
                raise DataError(lacking(example, name, field, ", which the program's forward names") + hint)
        for field in in_system:
            if field in example and example[field] is None:
                raise DataError(
                    f"example {name!r} has null in the field {field!r}, so the system prompt would be sent with "
                    f'{{{field}}} as it stands; give it a value ("" for none), or leave the example out'
                )
        given = [*required, *(field for field in optional if example.get(field) is not None)]
        for field in given:
            if field in slots and (why := no_text(example[field]) or problem_with(field, example[field])):
                raise DataError(f"example {name!r}: the field {field!r} holds {why}")
        return {field: example[field] for field in given}

    return pick


@functools.lru_cache(maxsize=64)  # once, as it is so for all examples and candidates of a run
def _tell_of_braces(field: str) -> None:
    _log.warning(
        "{%s} goes to the model as text, though the examples have such a field: %s; rename the field, there and in the "
        "prompt",
        field,
        SLOT_NAMES,
    )


def refuse_unnamed(program: Callable[..., Any]) -> None:
    """Refuse a program that names no field and would be called with nothing, or that wants one by place.

    Raises:
        TypeError: it is one, its slots are one text instead of names, or its forward is an `async def` or missing.
    """
    _slots_of(program)
    called, held = _called_first(program)
    if getattr(type(called), "forward", None) is Module.forward:
        raise TypeError(
            f"{told(program)} has no `forward`; write def forward(self, ticket), which is called with the fields of an "
            "example that it names"
        )
    if is_coroutine_function(getattr(called, "forward", called)):
        raise TypeError(A_COROUTINE)
    named = signature_of(getattr(called, "forward", called)).parameters
    parameters = [named[name] for name in named if name not in held]
    by_place = [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY and p.default is p.empty]
    variadic = [p for p in parameters if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    several = [str(p.replace(annotation=p.empty)) for p in variadic if not p.name.startswith("_")]  # `_` is not read
    by_name = any(p.kind is p.VAR_KEYWORD for p in variadic)
    names_slots = by_name and isinstance(getattr(called, "slots", None), Sequence | AbstractSet | Mapping)  # no Mock's
    if by_place or (several and len(variadic) == len(parameters) and not names_slots):
        raise TypeError(
            f"{told(program)} takes {', '.join([*by_place, *several])}, and a program is called by name with the "
            "fields of an example that it names: write them out, def forward(self, ticket)"
            + (', or name them in an attribute slots = ("ticket",)' if by_name else "")
        )


def composed_fields(example: dict[str, Any], name: str) -> dict[str, Any]:
    """An example with the names of its fields as slots have them, whichever way an accent is written.

    Raises:
        DataError: two fields are one then.
    """
    try:
        return by_composed_name(example)
    except ValueError as error:
        raise DataError(f"example {name!r}: {error}; take one out") from None


def no_text(value: Any) -> str:
    """What a value is that cannot fill a slot, with the repair; "" for one that can.

    Example:
        >>> no_text(["new", "vip"]), no_text("new, vip")
        ('a list, which would be a batch of calls; join it to one text', '')
    """
    if is_conversation(value):
        return problem_of(value) or next(filter(None, [no_text(turn.said) for turn in turns_of(value)]), "")
    if isinstance(value, list):
        if not value:
            return "a list, which has nothing in it; write a text, or, of a chat, at least one message"
        return near_miss(value) or "a list, which would be a batch of calls; join it to one text"
    if isinstance(value, str) and len(value) > MAX_TEXT:
        return (
            f"{len(value):,} characters, and a request has {MAX_TEXT:,} at most; shorten it, or leave the example out"
        )
    if isinstance(value, str) and not value.isascii() and (found := _SURROGATE.search(value)):
        return (
            f"half of a surrogate pair at character {found.start() + 1}, which is no text and cannot be sent; repair "
            "the text where it was cut, or leave the example out"
        )
    return unfit(value)


def inputs_of(program: Callable[..., Any]) -> tuple[list[str], list[str]]:
    """The fields of an example that a program is called with: those it needs, and those it can do without.

    Args:
        program: as for `fields_named_by`.

    Example:
        >>> inputs_of(lambda ticket, customer=None: ticket)
        (['ticket'], ['customer'])
    """
    slots = _slots_of(program)
    program, held = _called_first(program)
    parameters = signature_of(getattr(program, "forward", program)).parameters.values()
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    named = [p for p in parameters if p.kind in kinds and p.name not in held]
    required = [p.name for p in named if p.default is p.empty]
    optional = [p.name for p in named if p.default is not p.empty]
    required.extend([name for name, needed in slots.items() if needed])
    optional.extend([name for name, needed in slots.items() if not needed])
    return required, optional


def _slots_of(program: Callable[..., Any]) -> dict[str, bool]:
    """The slots that a program takes as keywords of any name, and whether it needs each."""
    program, held = _called_first(program)
    parameters = signature_of(getattr(program, "forward", program)).parameters.values()
    held_names = getattr(program, "slots", ()), getattr(program, "optional_slots", ())
    named = [each if isinstance(each, Iterable) else () for each in held_names]  # a Mock has any attribute
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        return {}
    if one := next((each for each in named if isinstance(each, str)), ""):
        name = type(program).__name__
        raise TypeError(f"the slots of {name} are the text {one!r}, and should be names: write ({one!r},)")
    found = {**dict.fromkeys(named[0], True), **dict.fromkeys(named[1], False)}
    return {slot: needed for slot, needed in found.items() if slot not in held}


def _called_first(program: Callable[..., Any]) -> tuple[Callable[..., Any], set[str]]:
    """What a program is called as, of several modules the first one, and what a partial gives it already."""
    held: set[str] = set()
    while True:
        if isinstance(program, Sequential) and type(program).forward is Sequential.forward and len(program):
            program = program[0]
            continue
        if isinstance(program, functools.partial):
            held |= program.keywords.keys()
            if not program.args:
                program = program.func
                continue
        return program, held


_SURROGATE = re.compile("[\ud800-\udfff]")


def lacking(example: Mapping[str, Any], name: str, field: str, use: str) -> str:
    """What to say where an example has nothing in a field: the field is not there, or it is null or NaN.

    Args:
        example: the example.
        name: its id.
        field: the field.
        use: what it is for, as it stands behind the field's name.

    Example:
        >>> print(lacking({"text": "x", "size": None}, "train:4", "size", " for the target"))
        example 'train:4' has null in the field 'size' for the target; give it a value, or leave the example out
    """
    if field in example:
        found = example[field]
        what, why = (f"{found}", ", as tables have it in an empty field") if is_nan(found) else ("null", "")
        return (
            f"example {name!r} has {what} in the field {field!r}{use}{why}; give it a value, or leave the example out"
        )
    return f"example {name!r} has no field {field!r}{use}; it has {listed(example)}"


def check_examples(rows: Any, argument: str, call: str) -> Sequence[dict[str, Any]]:
    """A set of examples by position; what is none is refused, before anything is looked up in it.

    Args:
        rows: what was given.
        argument: the name of the argument.
        call: the call that it was given to, such as ``"fit"``.

    Raises:
        TypeError: it is a path, a DataLoader, no sequence, or one of something other than dicts.

    Example:
        >>> check_examples("a.csv", "train", "fit")
        Traceback (most recent call last):
        TypeError: fit: train should be a sequence of dicts, and is the path 'a.csv'; data.load('a.csv') reads them
    """
    if why := as_no_rows(rows):
        raise TypeError(f"{call}: {argument} should be a sequence of dicts, and is {why}")
    if not isinstance(rows, Collection) and not (hasattr(rows, "__len__") and hasattr(rows, "__getitem__")):
        more = "; data.random_split cuts some off those that there are" if rows is None else ""
        part = "; of a stream take a part: list(itertools.islice(stream, 500))" if isinstance(rows, Iterable) else more
        raise TypeError(
            f"{call}: {argument} should be a sequence of examples, such as a list of dicts or what data.load(path) "
            f"gives; got {type(rows).__name__}{part}"
        )
    for position, row in enumerate(examples_of(rows)):
        if not isinstance(row, Mapping):
            raise TypeError(f"{call}: example {position} of {argument} is {as_example(row)}")
    return by_position(rows)
