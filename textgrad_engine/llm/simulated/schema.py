"""Fitting an answer to a JSON schema: the keys and types come from the schema, the values from the simulation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def fit(schema: Mapping[str, Any], wanted: Any, word: str = "", root: Mapping[str, Any] | None = None) -> Any:
    """A value that the schema accepts, as close to `wanted` as it allows.

    Args:
        schema: a JSON schema (objects, arrays, enums, scalars, ``anyOf``, local ``$ref``).
        wanted: what the simulation would say; parts that the schema has no place for are left out.
        word: the answer in one word, for the first place where a text without a wanted value could stand.
        root: the schema that ``$ref`` points into; `schema` itself by default.

    Example:
        >>> schema = {"properties": {"queue": {"type": "string"}, "sure": {"type": "boolean"}}}
        >>> fit(schema, {}, "billing")
        {'queue': 'billing', 'sure': False}
    """
    root = schema if root is None else root
    if "$ref" in schema:
        target: Any = root
        for step in str(schema["$ref"]).removeprefix("#/").split("/"):
            target = target[step]
        return fit(target, wanted, word, root)
    for union in ("anyOf", "oneOf", "allOf"):
        if schema.get(union):
            return fit(schema[union][0], wanted, word, root)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        options = list(schema["enum"])
        return next((choice for choice in (wanted, word) if choice in options), options[0])
    kinds = schema.get("type", "object" if "properties" in schema else "string")
    kind = kinds[0] if isinstance(kinds, list) else kinds
    if kind == "object":
        return _object(schema, wanted if isinstance(wanted, Mapping) else {}, word, root)
    if kind == "array":
        items = schema.get("items", {})
        return [fit(items, item, "", root) for item in wanted] if isinstance(wanted, list | tuple) else []
    return _scalar(kind, schema, wanted, word)


def _object(schema: Mapping[str, Any], wanted: Mapping[str, Any], word: str, root: Mapping[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    for key, part in schema.get("properties", {}).items():
        answer[key] = fit(part, wanted.get(key), word, root)
        if word and answer[key] == word:
            word = ""
    return answer


def _scalar(kind: str, schema: Mapping[str, Any], wanted: Any, word: str) -> Any:
    if kind == "string":
        return word if wanted is None else str(wanted)
    if kind == "boolean":
        return bool(wanted)
    if kind in ("integer", "number"):
        number = wanted if isinstance(wanted, int | float) else schema.get("minimum", 0)
        return round(number) if kind == "integer" else number
    return None
