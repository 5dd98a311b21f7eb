"""Does a JSON value fit a JSON schema? The keywords that structured output uses; no package needed."""

from __future__ import annotations

import functools
import graphlib
import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = ["check_schema", "follow", "integer", "is_strict", "plainly_fits", "schema_problem", "strictly"]


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
    for kind in _as_list(schema.get("type") or []):
        _is(None, kind)
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


_LOOSE = (
    "allOf",
    "contains",
    "default",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "maxLength",
    "minLength",
    "not",
    "oneOf",
    "patternProperties",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
)


def is_strict(schema: Any) -> bool:
    """Whether endpoints can hold a model to a schema while it writes: OpenAI refuses others as strict ones.

    Objects must be closed and require all their properties, every value must have a type, a reference stands alone, and
    some keywords are not allowed (OpenAI's guide "Structured Outputs", "Supported schemas").

    Example:
        >>> is_strict({"type": "object", "properties": {"a": {"type": "string"}}})
        False
    """
    if not isinstance(schema, Mapping) or not _TYPED & schema.keys() or any(key in schema for key in _LOOSE):
        return False
    if "$ref" in schema and schema.keys() > {"$ref"} and not schema.keys() & {"$defs", "definitions"}:
        return False
    kinds = _as_list(schema.get("type") or [])
    if "object" in kinds or "properties" in schema:
        named = schema.get("properties", {})
        if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(named):
            return False
    if "array" in kinds and "items" not in schema:
        return False
    inside = [each for key in _OF_NAMES for each in schema.get(key, {}).values()]
    inside += [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())]
    return all(map(is_strict, inside))


_TYPED = {"type", "$ref", "anyOf", "enum", "const"}
_OF_NAMES = ("properties", "$defs", "definitions")
"""Keywords whose values have names of the user's as keys."""

_AS_THEY_ARE = {"type", "required", "additionalProperties", "enum", "const", "title", "$ref"}
_AS_THEY_ARE |= {"description", "multipleOf", "minItems", "maxItems"}
_LEFT_OUT = {"default", "discriminator", "deprecated", "readOnly", "writeOnly", "$schema", "$id", "$comment"}
_LEFT = set(_LOOSE) - {"default", "minLength", "maxLength", "uniqueItems"}
"""What no words could stand for: a schema with one of these is sent as a loose one."""

_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
_LOOKS_AROUND = re.compile(r"(?<!\\)(?:\\\\)*\(\?<?[=!]")


def strictly(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """A schema as strict structured output takes it, which may allow more; None where that cannot be.

    Limits of numbers and lengths, formats and patterns that not all endpoints know, and the order of a tuple are said
    in descriptions instead of keywords: Azure's and Anthropic's endpoints, and OpenAI's for models that were tuned,
    refuse even limits of numbers in a strict schema. What is left out so is checked here in any case
    (`schema_problem`).

    Args:
        schema: that of an object.

    Example:
        >>> score = {"type": "number", "minimum": 0, "maximum": 1}
        >>> strictly({"type": "object", "properties": {"score": score}, "required": ["score"],
        ...           "additionalProperties": False})["properties"]
        {'score': {'type': 'number', 'description': 'minimum: 0, maximum: 1'}}
        >>> strictly({"type": "object"})
    """
    try:
        eased: dict[str, Any] = _eased(schema)
        return eased if eased.get("type") == "object" and is_strict(eased) else None
    except (AttributeError, TypeError):  # `check_schema` passes over what no answer is held against
        return None


def _eased(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    eased: dict[str, Any] = {}
    told: list[str] = []
    for key, value in schema.items():
        if key in _OF_NAMES:
            eased[key] = {name: _eased(each) for name, each in value.items()}
        elif key == "items" and "prefixItems" not in schema:
            eased[key] = _eased(value)
        elif key == "anyOf" or (key in ("oneOf", "allOf") and _is_anyOf(key, schema)):
            eased["anyOf"] = [_eased(each) for each in value]
        elif key == "prefixItems" and (each := _items_of(schema)) is not None:
            eased["items"] = each
            told.append(f"prefixItems: {_as_json(value)}")
        elif key in _AS_THEY_ARE or key in _LEFT or _is_known(key, value):
            eased[key] = value
        elif key not in _LEFT_OUT:
            told.append(f"{key}: {_as_json(value)}")
    if told:
        eased["description"] = "; ".join([*map(str, filter(None, [eased.get("description")])), ", ".join(told)])
    if "type" not in eased and (values := schema.get("enum", [schema["const"]] if "const" in schema else ())):
        kinds = list(dict.fromkeys(map(_kind_of, values)))
        eased["type"] = kinds[0] if len(kinds) == 1 else kinds
    if "$ref" in eased and len(eased) > 1 and not eased.keys() & {"anyOf", "$defs", "definitions"}:
        eased["anyOf"] = [{"$ref": eased.pop("$ref")}]
    return eased


def _is_anyOf(key: str, schema: Mapping[str, Any]) -> bool:  # noqa: N802  it is the keyword's name
    """Whether the alternatives of oneOf, or the one part of allOf, say what anyOf would."""
    return not schema.keys() & {"anyOf", "oneOf", "allOf"} - {key} and (key == "oneOf" or len(schema[key]) == 1)


def _items_of(schema: Mapping[str, Any]) -> Any:
    """A schema for all items of a tuple; None where any may follow, or there are none."""
    parts, rest = list(schema["prefixItems"]), schema.get("items", True)
    if rest is not False and schema.get("maxItems", len(parts) + 1) > len(parts):
        if rest is True:
            return None
        parts.append(rest)
    different = [_eased(part) for number, part in enumerate(parts) if part not in parts[:number]]
    if len(different) < 2:
        return different[0] if different else None
    return {"anyOf": different}


def _is_known(key: str, value: Any) -> bool:
    if key == "format":
        return value in _FORMATS
    return key == "pattern" and not _LOOKS_AROUND.search(value)


def _kind_of(value: Any) -> str:
    kinds = ("null", "boolean", "integer", "number", "string", "array", "object")
    return next((kind for kind in kinds if _is(value, kind)), "string")


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _problems(value: Any, schema: Any, where: str, root: Mapping[str, Any]) -> Iterator[str]:
    if schema is True or schema is False:
        if schema is False:
            yield f"{where}: nothing is allowed here"
        return
    if "$ref" in schema:
        yield from _problems(value, follow(schema["$ref"], root), where, root)
    kinds = schema.get("type")
    if kinds is not None and not (
        _is(value, kinds) if isinstance(kinds, str) else any(_is(value, kind) for kind in _as_list(kinds))
    ):
        yield f"{where}: expected {' or '.join(_as_list(schema['type']))}, got {_describe(value)}"
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
    if not _is(value, "integer"):
        raise TypeError(f"expected an integer, got {_describe(value)}")
    return int(value)


def _number(value: Any) -> float | None:
    return value if _is(value, "number") else None


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
    (_LIMITED - {"pattern"}, lambda value: _is(value, "number"), "a number"),
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


def _is(value: Any, kind: str) -> bool:
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
            return _is(value, "number") and (isinstance(value, int) or value.is_integer())
    raise ValueError(
        f"the schema names the type {kind!r}, and JSON has object, array, string, boolean, null, number, integer"
    )


def _same(value: Any, other: Any) -> bool:
    return bool(value == other) and isinstance(value, bool) == isinstance(other, bool)  # JSON's true is not its 1


def _as_list(value: Any) -> list[Any]:
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
