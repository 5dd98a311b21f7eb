"""Schemas as endpoints take them that hold a model to one while it writes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from textgrad_engine.llm.schema import as_list, is_of

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
    kinds = as_list(schema.get("type") or [])
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
    return next((kind for kind in kinds if is_of(value, kind)), "string")


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


WRAPPED = "alternative"
"""The one property of an object that stands around a schema with alternatives at its root."""

_AT_NO_ROOT = {"anyOf", "oneOf", "allOf", "$ref"}


def wrapped(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """A schema as the one property of an object, where it has alternatives at its root; None where it has none.

    OpenAI's endpoint refuses alternatives there ("Structured Outputs": "Root objects must not be `anyOf`").

    Args:
        schema: that of an object.

    Example:
        >>> wrapped({"anyOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": {"type": "object"}}})["properties"]
        {'alternative': {'anyOf': [{'$ref': '#/$defs/A'}]}}
        >>> wrapped({"type": "object"})
    """
    if not _AT_NO_ROOT & schema.keys():
        return None
    inside = {key: _moved(value) for key, value in schema.items() if key not in _DEFINITIONS}
    definitions = {key: _moved(schema[key]) for key in _DEFINITIONS if key in schema}
    around = {"type": "object", "properties": {WRAPPED: inside}, "required": [WRAPPED], "additionalProperties": False}
    return {**around, **definitions}


_DEFINITIONS = ("$defs", "definitions")
_TO_DEFINITIONS = tuple(f"#/{key}/" for key in _DEFINITIONS)


def _moved(schema: Any) -> Any:
    """A part of a schema whose references to the root lead to where that has gone."""
    if isinstance(schema, list | tuple):
        return [_moved(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _OF_NAMES and isinstance(value, Mapping):
            made[key] = {name: _moved(each) for name, each in value.items()}
        elif key == "$ref" and isinstance(value, str) and not value.startswith(_TO_DEFINITIONS):
            made[key] = f"#/properties/{WRAPPED}{value.removeprefix('#')}"
        else:
            made[key] = value if key in ("enum", "const") else _moved(value)
    return made
