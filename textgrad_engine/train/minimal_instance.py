"""The least JSON value that fits a schema; for answers that nobody gave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from textgrad_engine.llm.schema import follow

_DEEPEST = 20
"""Levels down to which a schema that refers to itself is followed; below them, nothing is said."""


def least(
    schema: Any,
    text: str = "",
    number: float = 0,
    *,
    entries: int = 0,
    root: Mapping[str, Any] | None = None,
    depth: int = 0,
) -> Any:
    """A value of the form that a schema describes, with as little in it as that allows.

    Patterns and what is said of a value by other means (formats, rules of a pydantic model) are not looked at.

    Args:
        schema: the schema, or a part of it.
        text: stands where a text is wanted, made longer where it is too short.
        number: stands where a number is wanted, within its limits.
        entries: so many has a list, where its limits allow that; a list in an entry has as few as it may.
        root: the whole schema, of a part of it.
        depth: how deep in it the part stands.

    Example:
        >>> least({"type": "object", "properties": {"score": {"type": "integer", "minimum": 1}, "why": {}}})
        {'score': 1, 'why': ''}
    """
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return text
    root = schema if root is None else root

    def inside(part: Any, entries: int = entries) -> Any:
        return least(part, text, number, entries=entries, root=root, depth=depth + 1)

    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "$ref" in schema:
        return inside(follow(schema["$ref"], root))
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return None if {"type": "null"} in schema[key] else inside(schema[key][0])
    kinds = schema.get("type", "object" if "properties" in schema else "string")
    kind = kinds if isinstance(kinds, str) else kinds[0]
    if kind == "object":
        return {name: inside(part) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        first = list(schema.get("prefixItems", ()))
        of = schema.get("items", {})
        wished = min(entries, int(schema.get("maxItems", entries))) if of else 0
        more = max(0, int(schema.get("minItems", 0)) - len(first), wished - len(first))
        return [inside(part, 0) for part in (*first, *[of] * more)]
    if kind in ("number", "integer"):
        return _within(number, schema, whole=kind == "integer")
    return {"boolean": False, "null": None}.get(kind, text.ljust(int(schema.get("minLength", 0)), "?"))


def _within(number: float, schema: Mapping[str, Any], *, whole: bool) -> float:
    step = schema.get("multipleOf") or (1 if whole else 0.001)
    for key, beyond in (("minimum", 0), ("exclusiveMinimum", step)):
        if key in schema:
            number = max(number, schema[key] + beyond)
    for key, beyond in (("maximum", 0), ("exclusiveMaximum", step)):
        if key in schema:
            number = min(number, schema[key] - beyond)
    return int(number) if whole else number
