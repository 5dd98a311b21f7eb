"""Does a JSON value fit a JSON schema? The keywords that structured output uses; no package needed."""

from __future__ import annotations

import functools
import graphlib
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any


def check_schema(schema: Any) -> None:
    """Whether `schema_problem` can use a schema: to be asked before an answer is paid for that nobody can check.

    Looked at is all that an answer can be held against, so a definition that nothing refers to is not.

    Raises:
        ValueError: a keyword has a value that means nothing, a reference leads nowhere, or the schema refers to itself
            without end; the message says where.

    Example:
        >>> check_schema({"type": "object", "properties": {"score": {"minimum": "1"}}})
        Traceback (most recent call last):
        ValueError: $.properties.score: minimum must be a number, got '1'
    """
    places: dict[int, str] = {}
    of_one_value: dict[int, list[int]] = {}
    waiting = [("$", schema)]
    while waiting:
        where, each = waiting.pop()
        if id(each) in places:
            continue
        places[id(each)] = where
        try:
            same, below = _parts(each, schema)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
        of_one_value[id(each)] = [id(part) for _, part in same]
        waiting += [(f"{where}.{name}", part) for name, part in (*same, *below)]
    try:
        graphlib.TopologicalSorter(of_one_value).prepare()
    except graphlib.CycleError as error:
        raise ValueError(
            f"{places[error.args[1][0]]}: the schema refers to itself here with no property or item between, so no "
            "answer could ever be checked; leave the reference out"
        ) from None


def _parts(schema: Any, root: Mapping[str, Any]) -> tuple[list[tuple[str, Any]], list[tuple[str, Any]]]:
    """The schemas that hold for the same value as this one, and those that hold for what is in it, by name."""
    if isinstance(schema, bool):
        return [], []
    if not isinstance(schema, Mapping):
        raise ValueError(f"expected a schema, which is an object, true or false, got {schema!r:.80}")
    for keys, fits, words in _FORMS:
        for key in keys & schema.keys():
            if not fits(schema[key]):
                raise ValueError(f"{key} must be {words}, got {schema[key]!r:.80}")
    for kind in as_list(schema.get("type") or []):
        is_of(None, kind)
    same = [(f"{key}[{n}]", part) for key in ("anyOf", "oneOf", "allOf") for n, part in enumerate(schema.get(key, ()))]
    if "$ref" in schema:
        same.append(("$ref", follow(schema["$ref"], root)))
    below = [(f"properties.{name}", part) for name, part in schema.get("properties", {}).items()]
    below += [(f"prefixItems[{number}]", part) for number, part in enumerate(schema.get("prefixItems", ()))]
    below += [(key, schema[key]) for key in ("items", "additionalProperties") if key in schema]
    return same, below


def schema_problem(value: Any, schema: Mapping[str, Any]) -> str | None:
    """The first thing about `value` that does not fit, with its place, or None when all does.

    Known keywords: type, properties, required, additionalProperties, items, prefixItems, enum, const, anyOf, oneOf,
    allOf, $ref (into the schema itself), and the limits of numbers, lengths and patterns. Others say nothing about the
    shape (title, description, format) and are passed over; so are patterns in another dialect than Python's, such as
    those that pydantic takes. The schema is one that `check_schema` lets through.

    Example:
        >>> schema_problem({"score": "high"}, {"type": "object", "properties": {"score": {"type": "integer"}}})
        '$.score: expected integer, got the string "high"'
    """
    return None if plainly_fits(value, schema) else next(_problems(value, schema, "$", schema), None)


def plainly_fits(value: Any, schema: Any) -> bool:
    """Whether it is text, or an object of such things, where nothing else is said about them.

    Most answers are, and this takes a sixth of the time of `_problems`, which has the say about all others.
    """
    if type(value) is str:
        return bool(schema == _TEXT)
    if type(value) is not dict or type(schema) is not dict or schema.keys() != _CLOSED or schema["type"] != "object":
        return False
    properties = schema["properties"]
    for key, below in value.items():
        wanted = properties.get(key)
        if type(below) is str:
            if wanted != _TEXT:
                return False
        elif not plainly_fits(below, wanted):
            return False
    for key in schema["required"]:  # noqa: SIM110  all() would cost a frame
        if key not in value:
            return False
    return True


_TEXT = {"type": "string"}
_CLOSED = {"type", "properties", "required", "additionalProperties"}


def _problems(value: Any, schema: Any, where: str, root: Mapping[str, Any]) -> Iterator[str]:
    if schema is True or schema is False:
        if schema is False:
            yield f"{where}: nothing is allowed here"
        return
    if "$ref" in schema:
        yield from _problems(value, follow(schema["$ref"], root), where, root)
    kinds = schema.get("type")
    if kinds is not None and not (
        is_of(value, kinds) if isinstance(kinds, str) else any(is_of(value, kind) for kind in as_list(kinds))
    ):
        yield f"{where}: expected {' or '.join(as_list(schema['type']))}, got {_describe(value)}"
        return
    if "enum" in schema and not any(_same(value, one) for one in schema["enum"]):
        yield f"{where}: expected one of {_listed(schema['enum'])}, got {_describe(value)}"
    if "const" in schema and not _same(value, schema["const"]):
        yield f"{where}: expected {schema['const']!r}, got {_describe(value)}"
    for key in ("anyOf", "oneOf"):
        if key in schema:
            found = [next(_problems(value, option, where, root), None) for option in schema[key]]
            if None not in found:
                yield f"{where}: fits none of the {len(found)} alternatives; {'; '.join(str(each) for each in found)}"
    for part in schema.get("allOf", ()):
        yield from _problems(value, part, where, root)
    if not _LIMITED.isdisjoint(schema):
        yield from _limits(value, schema, where)
    if isinstance(value, dict):
        yield from _object_problems(value, schema, where, root)
    elif isinstance(value, list):
        first = schema.get("prefixItems", ())
        for index, item in enumerate(value):
            below = first[index] if index < len(first) else schema.get("items", True)
            yield from _problems(item, below, f"{where}[{index}]", root)


def _object_problems(
    value: dict[str, Any], schema: Mapping[str, Any], where: str, root: Mapping[str, Any]
) -> Iterator[str]:
    properties = schema.get("properties", {})
    for key in schema.get("required", ()):
        if key not in value:
            yield f"{where}: the required key {key!r} is missing; there are {_listed(value) or 'none'}"
    rest = schema.get("additionalProperties", True)
    for key, below in value.items():
        if key in properties:
            yield from _problems(below, properties[key], f"{where}.{key}", root)
        elif rest is False:
            yield f"{where}: the key {key!r} is not allowed; allowed are {_listed(properties) or 'none'}"
        else:
            yield from _problems(below, rest, f"{where}.{key}", root)


def integer(value: Any) -> int:
    """A number that a schema has as an integer: 2.0 is one, too, as JSON knows no difference.

    Raises:
        TypeError: it is none.

    Example:
        >>> integer(2.0)
        2
    """
    if not is_of(value, "integer"):
        raise TypeError(f"expected an integer, got {_describe(value)}")
    return int(value)


def _number(value: Any) -> float | None:
    return value if is_of(value, "number") else None


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """A pattern that Python can read; None for another, which is left to the endpoint."""
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return None


_LIMITS: tuple[tuple[str, Callable[[Any], Any], Callable[[Any, Any], bool], str], ...] = (
    ("minimum", _number, operator.ge, "at least"),
    ("maximum", _number, operator.le, "at most"),
    ("exclusiveMinimum", _number, operator.gt, "more than"),
    ("exclusiveMaximum", _number, operator.lt, "less than"),
    ("minLength", lambda value: len(value) if isinstance(value, str) else None, operator.ge, "a length of at least"),
    ("maxLength", lambda value: len(value) if isinstance(value, str) else None, operator.le, "a length of at most"),
    ("minItems", lambda value: len(value) if isinstance(value, list) else None, operator.ge, "a length of at least"),
    ("maxItems", lambda value: len(value) if isinstance(value, list) else None, operator.le, "a length of at most"),
    (
        "pattern",
        lambda value: value if isinstance(value, str) else None,
        lambda value, pattern: (known := _compiled(pattern)) is None or known.search(value) is not None,
        "text matching",
    ),
)


_LIMITED = frozenset([key for key, *_ in _LIMITS])


_FORMS: tuple[tuple[frozenset[str], Callable[[Any], bool], str], ...] = (
    (frozenset({"properties"}), lambda value: isinstance(value, Mapping), "an object"),
    (
        frozenset({"required", "enum", "prefixItems", "anyOf", "oneOf", "allOf"}),
        lambda value: isinstance(value, list | tuple),
        "a list",
    ),
    (frozenset({"$ref", "pattern"}), lambda value: isinstance(value, str), "text"),
    (_LIMITED - {"pattern"}, lambda value: is_of(value, "number"), "a number"),
)


def _limits(value: Any, schema: Mapping[str, Any], where: str) -> Iterator[str]:
    for key, measure, holds, words in _LIMITS:
        if key in schema and (size := measure(value)) is not None and not holds(size, schema[key]):
            yield f"{where}: expected {words} {schema[key]}, got {_describe(value)}"


def follow(reference: str, root: Mapping[str, Any]) -> Any:
    """What a reference of a schema means.

    Args:
        reference: as it stands under ``$ref``.
        root: the whole schema.

    Raises:
        ValueError: it leads out of the schema, or nowhere.
    """
    found: Any = root
    if reference != "#" and not reference.startswith("#/"):
        raise ValueError(
            f"the schema refers to {reference!r}; only references into itself (#/...) are understood, so put what is "
            "meant under $defs"
        )
    for part in reference[1:].split("/")[1:]:
        try:
            found = found[part.replace("~1", "/").replace("~0", "~")]
        except (KeyError, TypeError):
            raise ValueError(f"the schema refers to {reference!r}, which it does not hold") from None
    return found


def is_of(value: Any, kind: str) -> bool:
    """Whether a JSON value is of one of JSON Schema's types.

    Raises:
        ValueError: there is no such type.
    """
    match kind:
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "integer":
            return is_of(value, "number") and (isinstance(value, int) or value.is_integer())
    raise ValueError(
        f"the schema names the type {kind!r}, and JSON has object, array, string, boolean, null, number, integer"
    )


def _same(value: Any, other: Any) -> bool:
    return bool(value == other) and isinstance(value, bool) == isinstance(other, bool)  # JSON's true is not its 1


def as_list(value: Any) -> list[Any]:
    """What may stand alone or in a list."""
    return list(value) if isinstance(value, list | tuple) else [value]


def _listed(values: Any) -> str:
    return ", ".join(repr(value) for value in values)


def _describe(value: Any) -> str:
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case str():
            return f'the string "{value if len(value) <= 40 else value[:40] + "..."}"'
        case int() | float():
            return f"the number {value}"
        case list():
            return f"a list of {len(value)}"
        case _:
            return f"an object with the keys {_listed(value) or 'none'}"
