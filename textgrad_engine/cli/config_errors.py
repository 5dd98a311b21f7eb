"""What is said of a config whose keys, types or values are wrong: pydantic's errors in the words of the file."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from typing import Any, get_args

from pydantic import BaseModel, Tag, ValidationError

from textgrad_engine.cli.optimizer_names import NAMES
from textgrad_engine.cli.settings import Section
from textgrad_engine.data.names import suggest
from textgrad_engine.keywords import called_here, not_needed
from textgrad_engine.missing import ELSEWHERE
from textgrad_engine.report.toml import toml_key

_QUOTED = r"'(\w+)'"
"""The words that a message of pydantic's names as possible values."""

_EXAMPLES = {
    "program": '[program] with system = "..." and user = "{...}"',
    "data": '[data] with train = "train.jsonl" and test = "test.jsonl"',
    "data.train": 'train = "train.jsonl"',
    "models": '[models] with forward = "openai/gpt-5-mini"',
    "models.forward": 'forward = "openai/gpt-5-mini"',
    "models.prices.input": "input = 0.4, dollars per million tokens",
    "models.prices.output": "output = 1.6, dollars per million tokens",
}


_LIMIT = "[budget] calls = N bounds the calls of models, and dollars = N what they cost"
_WRITER = '[models] optimizer = "..." names the model that writes new texts, and backward = "..." the critic'

_SET_OTHERWISE: dict[tuple[str, ...], str] = {
    ("optimizer", "auto"): _LIMIT,
    ("optimizer", "max_metric_calls"): _LIMIT,
    ("train", "max_metric_calls"): _LIMIT,
    ("optimizer", "reflection_lm"): _WRITER,
    ("models", "reflection_lm"): _WRITER,
    ("train", "num_threads"): "[models] max_in_flight bounds calls at once; else the endpoint does",
    ("program", "prompt"): "system is the prompt, which is trained, and user what it is asked about, with {slots}",
    ("optimizer", "proposer"): (
        "mode says how new texts are written; another proposer, such as proposers.Human, is set in Python: "
        'name = "module:function" names a function that takes the prompts and gives an optimizer'
    ),
}
"""Keys that there are not, and what to write for what they would mean."""


def _tables(root: type[BaseModel], tag: str) -> Iterator[tuple[str, type[BaseModel]]]:
    """The tables by name; of a table of several kinds the kind that is named, else all one after the other.

    Tables in tables come last.
    """
    yield "", root
    found: list[tuple[str, type[BaseModel]]] = []
    for name, field in root.model_fields.items():
        kinds = _kinds(field.annotation)
        found += [(name, kind) for kind in ([kinds[tag]] if tag in kinds else kinds.values())]
    yield from found
    for name, kind in found:
        for key, field in kind.model_fields.items():
            for part in (field.annotation, *get_args(field.annotation)):  # of one that may be None the arguments
                yield from ((f"{name}.{key}", inner) for inner in _kinds(part).values())


def _kinds(annotation: Any) -> dict[str, type[BaseModel]]:
    """The kinds of a table by the tags that tell them apart; a table of one kind has the tag ""."""
    if inspect.isclass(annotation) and issubclass(annotation, Section):
        return {"": annotation}
    found: dict[str, type[BaseModel]] = {}
    for part in get_args(annotation):
        kind, tags = (get_args(part) or (None,))[0], [each.tag for each in get_args(part) if isinstance(each, Tag)]
        found |= dict.fromkeys(tags, (get_args(kind) or (kind,))[0])  # of a list of tables what each of them is
    return found


_NAMED = (["optimizer", "prompts"], ["models", "prices"], ["models", "endpoints"])
"""The tables that hold tables by the names of prompts, and of models."""


def table_of(keys: Sequence[str | int]) -> str:
    """How the head of a table stands in a file, by the keys that lead to it; one of several tables has its number.

    Example:
        >>> table_of(("models", "prices", "gpt-4.1")), table_of(("metric", 1))
        ('[models.prices."gpt-4.1"]', '[[metric]]')
    """
    names = ".".join([toml_key(key) for key in keys if isinstance(key, str)])
    return f"[[{names}]]" if isinstance(keys[-1], int) else f"[{names}]"


def _keys_of(error: Any, root: type[BaseModel]) -> tuple[str | int, ...]:
    """The keys that lead to the place of one of pydantic's errors in the file."""
    loc: tuple[str | int, ...] = error["loc"]
    if error["type"] == "union_tag_invalid":
        return (*loc, "name")
    return (loc[0], *loc[2:]) if _tag_in(loc, root) else loc


def _tag_in(loc: Sequence[str | int], root: type[BaseModel]) -> str:
    """Which kind of a table a place is in; "" where a table has one kind only."""
    field = root.model_fields.get(str(loc[0]))
    return str(loc[1]) if field is not None and len(loc) > 1 and loc[1] in _kinds(field.annotation) else ""


def optimizer_meant(name: str) -> str:
    """The end of an error about a name that no optimizer has: which is meant, also by another library's; "" for none.

    Example:
        >>> optimizer_meant("GEPA"), optimizer_meant("PatchSerch")
        ("; here it is 'ParetoSearch'", "; did you mean 'PatchSearch'?")
    """
    part, _, here = ELSEWHERE.get(name, "").partition(".")
    return f"; here it is {here!r}" if part == "optim" and here in NAMES else suggest(name, NAMES)


def problems_of(error: ValidationError, root: type[BaseModel]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """What is wrong with a config, each with the keys that lead to its place.

    A key that is missing may be there under another name: that is said of this name, and no more of the missing one.

    Args:
        error: pydantic's.
        root: the whole config.
    """
    items = [(_keys_of(item, root), item) for item in error.errors()]
    extra = [keys for keys, item in items if item["type"] == "extra_forbidden"]
    for keys, item in items:
        beside = [str(other[-1]) for other in extra if other[:-1] == keys[:-1]]
        lacks = [str(keys[-1])]
        if item["type"] != "missing" or not any(suggest(name, lacks) or called_here(name, lacks) for name in beside):
            yield keys, _explain(item, root)


def _explain(error: Any, root: type[BaseModel]) -> str:
    """One of pydantic's errors in the words of the file."""
    tag = _tag_in(error["loc"], root)
    keys, entry = _keys_of(error, root), ""
    while len(keys) > 2 and isinstance(keys[-1], int):  # an entry of a list; a table of its own is ("metric", number)
        keys, entry = keys[:-1], f"[{keys[-1]}]{entry}"
    loc = [str(part) for place, part in enumerate(keys) if (keys[0], place) != ("metric", 1) or isinstance(part, str)]
    names: dict[str, list[str]] = {}
    for name, model in _tables(root, tag):
        own = [field.alias or key for key, field in model.model_fields.items()]
        names[name] = list(dict.fromkeys([*names.get(name, ()), *own]))
    section, key = ("" if len(loc) == 1 else table_of(keys[:-1])), loc[-1]
    where = f"{section} {key}{entry}" if section else f"{key}{entry}"
    if error["type"] == "missing":
        what = f"the table [{key}]" if key in names and not section else f"the key {where}"
        example = _EXAMPLES[".".join([*loc[:2], key] if loc[:2] in _NAMED else loc)]
        return f"{what} is missing; add {example}"
    if error["type"] == "extra_forbidden":
        head = loc[:-1] if loc[:2] not in _NAMED else loc[:2] if len(loc) < 5 else [loc[0], *loc[3:-1]]
        known = names.get(".".join(head), [])  # a table in one of an endpoint is as that of all models
        what = f"{section} has no key {key!r}" if section else f"there is no key or table {key!r}"
        if loc[:2] in _NAMED and isinstance(error["input"], dict):
            return f'{what}; a name with dots stands in quotes: [{".".join(loc[:2])}."{".".join(loc[2:])}"]'
        kinds = _kinds(root.model_fields[loc[0]].annotation) if tag else {}
        idle = getattr(kinds.get(tag), "idle_in_train", ())
        homes = [home for home, keys in names.items() if key in keys and not (home == "train" and key in idle)]
        if otherwise := _SET_OTHERWISE.get(tuple(loc)):
            return f"{what}; {otherwise}"
        if here := called_here(key, known):
            return f"{what}; here it is {here!r}"
        if why := not_needed(key):
            return f"{what}; {why}"
        of_others = key in idle or (len(loc) == 2 and any(key in kind.model_fields for kind in kinds.values()))
        if near := "" if of_others else suggest(key, known):  # what it resembles is something else
            return what + near
        if homes:
            return f"{what}; it belongs {f'in [{homes[0]}]' if homes[0] else 'above the first table'}"
        if len(set(kinds.values())) > 1:
            return f"{what} for {tag}, which has {', '.join(known)}"
        return f"{what}; it knows {', '.join(known)}"
    value = error["input"]
    if error["type"] == "union_tag_invalid":
        named, known = error["ctx"]["tag"], error["ctx"]["expected_tags"]
        return f"{where} = {named!r}: should be one of {known}{optimizer_meant(named)}"
    if error["type"] == "model_type":
        table = ".".join(map(toml_key, loc))
        return f"{where} is a table; write [{table}] and its keys on lines of their own, got {value!r}"
    said = (
        error["msg"]
        .removeprefix("Value error, ")
        .replace("Input should", "should")
        .replace("String should have at least 1 character", "should not be empty")
        .replace("valid integer", "whole number")
        .replace("valid dictionary", "table, such as {name = ...}")
        .replace("valid list", "list in brackets, [...]")
    )
    if error["type"] in ("too_short", "too_long"):
        least, most = (error["ctx"].get(name) for name in ("min_length", "max_length"))
        few = most is None or len(value) <= most
        said = f"should have {f'at least {least}' if few else f'at most {most}'}, and has {len(value)}"
    near = suggest(value, re.findall(_QUOTED, said)) if isinstance(value, str) else ""
    return f"{where} = {value!r:.100}: {said}{near}"
