"""What a program and its loss are called with: fields of an example."""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from textgrad_engine.callables import signature_of
from textgrad_engine.data.dataloader import DataLoader
from textgrad_engine.data.dataset import as_columns, as_example, by_position, examples_of, listed
from textgrad_engine.errors import DataError
from textgrad_engine.kinds import told
from textgrad_engine.llm.check import MAX_TEXT
from textgrad_engine.llm.conversation import is_conversation, near_miss, problem_of, turns_of
from textgrad_engine.nn import ChatCompletion, ExactMatch, Judge, Metric, Rubric, Sequential
from textgrad_engine.nn.loss import needs_target, takes_criteria
from textgrad_engine.nn.scores import OnField, OnMatch, Weighted, losses_in, takes_null
from textgrad_engine.ops.extract import last_match
from textgrad_engine.ops.fillers import is_nan, unfit
from textgrad_engine.slots import by_composed_name, composed
from textgrad_engine.train.metrics_of import criteria_checked
from textgrad_engine.train.prediction import said_in


def inputs_and_target(
    program: Callable[..., Any], loss: Callable[..., Any], target: str
) -> Callable[[dict[str, Any], str], tuple[dict[str, Any], Any]]:
    """How an example becomes what a program is called with, and the target that its loss is called with.

    Args:
        program: as for `fields_named_by`.
        loss: as for `target_for`.
        target: the name of the target's field.

    Returns:
        A function of an example and its id.

    Raises:
        DataError: (from the function) as for `fields_named_by` and `target_for`; or the program would be shown the
            target.

    Example:
        >>> from textgrad_engine import nn
        >>> read = inputs_and_target(nn.ChatCompletion("{ticket}"), nn.ExactMatch(), "queue")
        >>> read({"ticket": "no signal", "queue": "technical"}, "train:1")
        ({'ticket': 'no signal'}, 'technical')
    """
    pick, target_of = fields_named_by(program), target_for(loss, target)
    held = [composed(field) for field in target_fields(loss, target)]

    def read(example: dict[str, Any], name: str) -> tuple[dict[str, Any], Any]:
        fields, wanted = pick(example, name), target_of(example, name)
        shown = None if wanted is None else next((field for field in held if field in fields), None)
        if shown is not None:
            raise DataError(
                f"example {name!r}: the program is shown {shown!r}, and that field holds the target, so it would be "
                f"given the answer; take {shown!r} out of the program's forward or template, or name another target "
                "(a source that a metric compares with may stand in the data twice, under two names)"
            )
        return fields, wanted

    return read


def fields_named_by(program: Callable[..., Any]) -> Callable[[dict[str, Any], str], dict[str, Any]]:
    """How an example becomes a program's arguments: those of its fields that `forward` names.

    Args:
        program: a Module or any callable. One that takes ``**kwargs`` and has `slots` (nn.ChatCompletion) gets these,
            and those of its `optional_slots` that the example has. An nn.Sequential gets what its first module takes.

    Returns:
        A function of an example and its id. A field that is null and that forward has a default for is left out.

    Raises:
        TypeError: it names no field and would be called with nothing, or wants one by place.
        DataError: (from the function) the example lacks a field that forward has no default for, or has for a slot
            what is no text.
    """
    refuse_unnamed(program)
    required, optional = inputs_of(program)
    slots = _slots_of(program)
    called, _ = _called_first(program)

    def problem_with(field: str, value: Any) -> str:
        if not is_conversation(value):
            return ""
        if not isinstance(called, ChatCompletion):
            return "a conversation, and it is no ChatCompletion that takes it"
        return called.problem_with(field, value)

    def pick(example: dict[str, Any], name: str) -> dict[str, Any]:
        example = _composed(example, name)
        for field in required:
            if example.get(field) is None:
                raise DataError(lacking(example, name, field, ", which the program's forward names"))
        given = [*required, *(field for field in optional if example.get(field) is not None)]
        for field in given:
            if field in slots and (why := no_text(example[field]) or problem_with(field, example[field])):
                raise DataError(f"example {name!r}: the field {field!r} holds {why}")
        return {field: example[field] for field in given}

    return pick


def refuse_unnamed(program: Callable[..., Any]) -> None:
    """Refuse a program that names no field and would be called with nothing, or that wants one by place.

    Raises:
        TypeError: it is one, or its slots are one text instead of names.
    """
    _slots_of(program)
    called, held = _called_first(program)
    named = signature_of(getattr(called, "forward", called)).parameters
    parameters = [named[name] for name in named if name not in held]
    by_place = [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY and p.default is p.empty]
    variadic = [p for p in parameters if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    several = [str(p.replace(annotation=p.empty)) for p in variadic if not p.name.startswith("_")]  # `_` is not read
    if by_place or (several and len(variadic) == len(parameters) and not hasattr(called, "slots")):
        raise TypeError(
            f"{told(program)} takes {', '.join([*by_place, *several])}, and a program is called by name with those "
            "fields of an example that it names: write them out, def forward(self, ticket), or name them in an "
            'attribute slots = ("ticket",)'
        )


def _composed(example: dict[str, Any], name: str) -> dict[str, Any]:
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
    named = getattr(program, "slots", ()), getattr(program, "optional_slots", ())
    if not any(p.kind is p.VAR_KEYWORD for p in parameters) or not all(isinstance(each, Iterable) for each in named):
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
    """What to say where an example has nothing in a field: the field is not there, or it is null.

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
        return f"example {name!r} has null in the field {field!r}{use}; give it a value, or leave the example out"
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
        >>> check_examples("train.jsonl", "train", "fit")
        Traceback (most recent call last):
        TypeError: fit: train is the path 'train.jsonl', and should be the examples; data.load('train.jsonl') reads them
    """
    if isinstance(rows, str | os.PathLike):
        path = os.fspath(rows)
        raise TypeError(
            f"{call}: {argument} is the path {path!r}, and should be the examples; data.load({path!r}) reads them"
        )
    if isinstance(rows, DataLoader):
        raise TypeError(
            f"{call}: {argument} is a DataLoader, which gives minibatches, and should be the examples; give the "
            "dataset that it was made with, its .dataset"
        )
    if why := as_columns(rows):
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


def target_fields(loss: Callable[..., Any], target: str) -> tuple[str, ...]:
    """The fields of an example that hold targets: the one, or those of the parts of an `nn.Weighted` with ``targets``.

    Args:
        loss: a Module or any callable.
        target: the name of the target's field, where the loss has one target.

    Raises:
        DataError: no part of the loss has its target in the field that `target` names.
    """
    if not isinstance(loss, Weighted) or loss.targets is None:
        return (target,)
    fields = tuple(dict.fromkeys(loss.targets.values()))
    if target != "target" and target not in fields:
        raise DataError(
            f"target={target!r} says nothing, as nn.Weighted(targets=...) says where each target is: in "
            f"{', '.join(map(repr, fields))}; take one of the two out"
        )
    return fields


def answer_in(program: Callable[..., Any], loss: Callable[..., Any], wanted: Any) -> Any:
    """What an answer should be by the target of an example, as it may be shown to a model; None where nobody knows.

    Several targets by column are no answer: it may have other names for them, and numbers where a table has texts. Nor
    are the criteria of an `nn.Rubric`, the field of an answer that is JSON, or a part of it without what is around it.

    Args:
        program: what answers; one of one's own may give several outputs by name, of which the field is a whole one.
        loss: a Module or any callable.
        wanted: the target.

    Example:
        >>> from textgrad_engine import nn
        >>> chat, loss = nn.ChatCompletion("{q}"), nn.OnMatch(nn.ExactMatch(), "Answer: (.*)")
        >>> answer_in(chat, nn.ExactMatch(), "4"), answer_in(chat, nn.Rubric(), "It greets.")
        ('4', None)
        >>> answer_in(chat, loss, "4"), answer_in(chat, loss, "It is even. Answer: 4")
        (None, 'It is even. Answer: 4')
    """
    if any(map(takes_criteria, losses_in(loss))):
        known = False
    elif isinstance(loss, Weighted):
        known = loss.targets is None and all(answer_in(program, each, wanted) is not None for each in loss.losses)
    elif isinstance(loss, OnMatch):
        known = isinstance(wanted, str) and last_match(loss.pattern, wanted) is not None
    elif isinstance(loss, OnField) and isinstance(program, ChatCompletion):
        known = isinstance(wanted, Mapping if isinstance(loss.path[0], str) else list)
    else:
        known = True
    return wanted if known else None


def target_for(loss: Callable[..., Any], target: str) -> Callable[[dict[str, Any], str], Any]:
    """How an example gives the target that a loss is called with.

    Args:
        loss: a Module or any callable. A Module whose forward has no default for the target needs one, and so does a
            Metric whose function has none for its second argument. An `nn.Weighted` with ``targets`` is called with
            a dict of the fields that these name.
        target: the name of the target's field.

    Returns:
        A function of an example and its id; it gives None for an example without a target.

    Raises:
        DataError: as `target_fields`; (from the function) the example has no such field, and the name is not the
            default one or the loss needs a target; or what a rubric takes for criteria is none.
    """
    fields = target_fields(loss, target)
    if isinstance(loss, Weighted) and loss.targets is not None:
        nullable: dict[str, list[bool]] = {field: [] for field in fields}
        for name, field in loss.targets.items():
            nullable[field].append(takes_null(loss.by_name[name]))
        picks = {field: _picked(field, needed=True, nullable=all(nullable[field])) for field in fields}
        several = lambda example, name: {field: pick(example, name) for field, pick in picks.items()}  # noqa: E731
        return criteria_checked(loss, several, target)
    return criteria_checked(
        loss, _picked(target, needed=target != "target" or any(map(needs_target, losses_in(loss)))), target
    )


def _picked(target: str, *, needed: bool, nullable: bool = False) -> Callable[[dict[str, Any], str], Any]:
    """How an example gives what one field holds.

    Args:
        target: the name of the field.
        needed: whether there must be something in it.
        nullable: whether that may be null.
    """
    target = composed(target)

    def pick(example: dict[str, Any], name: str) -> Any:
        example = _composed(example, name)
        found = example.get(target)
        if needed and is_nan(found):
            raise DataError(
                f"example {name!r} has {found} in the field {target!r} for the target, as tables have it in an empty "
                "field; give it a value, or leave the example out"
            )
        if needed and found is None and not (nullable and target in example):
            hint = "; target= says which field holds it" if target == "target" and target not in example else ""
            raise DataError(lacking(example, name, target, " for the target") + hint)
        return found

    return pick


def refusing_batches(loss: Callable[..., Any]) -> Callable[[str, Any, Any], None]:
    """What refuses a prediction that is a batch: the scores of its entries would be added up to the example's score.

    Each entry may have a target of its own. A loss other than those of `nn` makes one score of a batch as it likes.

    Args:
        loss: a Module or any callable.

    Returns:
        A function of an example's id, its prediction, which is waited for, and its target.

    Raises:
        DataError: (from the function) it is a batch of several, and the target is none of as many entries.

    Example:
        >>> from textgrad_engine import Variable, nn
        >>> refusing_batches(nn.ExactMatch())("train:1", Variable(["new", "old"]), ["new", "vip"])
    """
    adds = any(isinstance(each, ExactMatch | Metric | Judge | Rubric) for each in losses_in(loss))

    def refuse(name: str, prediction: Any, wanted: Any) -> None:
        said = said_in(prediction)
        if not adds or not isinstance(said, list) or len(said) == 1:  # nothing is added to the score of one
            return
        if isinstance(wanted, list) and len(wanted) == len(said):
            return
        raise DataError(
            f"example {name!r}: the program gave a batch of {len(said)} predictions for one target, and their scores "
            "would be added up; have it give one text (a list that a ChatCompletion is called with is a batch: join "
            "it), or give the example a list of as many targets"
        )

    return refuse
