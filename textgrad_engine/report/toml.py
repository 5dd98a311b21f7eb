"""The settings of a run as the ``config.toml`` that they could have come from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from textgrad_engine.report.printing import is_harmless


def as_toml(values: Mapping[str, Any]) -> str:
    r"""TOML of plain JSON values; what is null is left out, as TOML has no such value, and so are empty tables.

    Those further in stay: what holds one is written within a line.

    Example:
        >>> print(as_toml({"seed": 0, "program": {"system": "Sort.\nBe brief.", "user": None}}))
        seed = 0
        <BLANKLINE>
        [program]
        system = '''
        Sort.
        Be brief.'''
        >>> as_toml({"a": {"b": {"c d": [1, "x"]}}})
        '[a.b]\n"c d" = [1, "x"]'
        >>> as_toml({"a": {"b": {"c": {}}}})
        '[a]\nb = { c = {} }'
    """
    return "\n".join(_table(values, ())).strip("\n")


def _table(values: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    tables = [key for key, value in values.items() if isinstance(value, Mapping) and not (path and _holds_empty(value))]
    own = {key: value for key, value in values.items() if value is not None and key not in tables}
    if path and own:
        yield f"\n[{'.'.join(map(toml_key, path))}]"
    yield from (f"{toml_key(key)} = {toml_value(value)}" for key, value in own.items())
    for key in tables:
        yield from _table(values[key], (*path, key))


def _holds_empty(value: Mapping[str, Any]) -> bool:
    """Whether an empty table is somewhere in a table, as the schema of what may be anything: a line shows that, too."""
    inside = [each for each in value.values() if isinstance(each, Mapping)]
    return any(not each or _holds_empty(each) for each in inside)


def toml_key(key: str) -> str:
    """A key as TOML has it."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _text(key)


def toml_value(value: Any) -> str:
    """A value as TOML has it, a table within a line."""
    if isinstance(value, str):
        plain = "'''" not in value and not value.endswith("'") and all(c == "\n" or is_harmless(c) for c in value)
        return f"'''\n{value}'''" if "\n" in value and plain else _text(value)
    if isinstance(value, Mapping):
        inside = ", ".join(f"{toml_key(key)} = {toml_value(each)}" for key, each in value.items() if each is not None)
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    return json.dumps(value)


def _text(text: str) -> str:
    """A text in one line; what cannot be seen is escaped, so that it is still there when the line is copied."""
    plain = json.dumps(text.encode("utf-8", "replace").decode(), ensure_ascii=False)
    return "".join(c if is_harmless(c) else f"\\U{ord(c):08X}" for c in plain)
