"""Keys and passwords have no place in a config file, which is shared and kept in run folders."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from textgrad_engine.cli.toml_lines import Keys, line_of, place
from textgrad_engine.errors import ConfigError
from textgrad_engine.keys import HIDDEN, without_keys
from textgrad_engine.llm.headers import is_secret_header


def is_a_key(text: str) -> bool:
    """Whether a text looks like a key."""
    text = text.strip()
    return re.fullmatch(r"sk-[\w-]{16,}", text) is not None or without_keys(text) == HIDDEN


def names_a_key(name: str) -> bool:
    """Whether a key stands where a model's name or an address is to be, or in it, as in openai/KEY."""
    return is_a_key(name) or HIDDEN in re.split("[/:]", without_keys(name.strip()))


def refuse_secrets(values: Any, path: Path, lines: Mapping[Keys, int], keys: Keys = ()) -> None:
    """Refuse a key, a password or a token among the values of a config, or of a table in it.

    Args:
        values: the values, or a part of them.
        path: the file, for messages.
        lines: the lines of its keys.
        keys: what leads to the part.

    Raises:
        ConfigError: there is one; the message names its place, and not the secret.
    """
    items: Any = (
        values.items() if isinstance(values, Mapping) else enumerate(values) if isinstance(values, list) else ()
    )
    of_models = keys[:1] == ("models",)
    for key, value in items:
        here = (*keys, key)
        looks = isinstance(value, str) and (names_a_key(value) if of_models else is_a_key(value))
        header = keys == ("models", "headers") or (keys[:2] == ("models", "endpoints") and keys[3:] == ("headers",))
        if header:
            named = isinstance(value, str) and is_secret_header(str(key), value)
        elif keys[:2] in _SCHEMAS or (of_models and key == "api_key" and isinstance(value, Mapping)):
            named = False  # names of fields that answers have, and api_key = {env = "NAME"}
        else:
            named = isinstance(key, str) and _is_secret(key)
        if looks or named:
            dotted = ".".join(map(str, here))
            instead = "take it out, and set the environment variable OPENAI_API_KEY"
            if header:
                instead = 'write {env = "NAME"} in its place, and set the environment variable NAME'
            elif of_models and key == "api_key":
                instead += ', or write {env = "NAME"} in its place for the variable NAME'
            raise ConfigError(
                f"{place(path, line_of(lines, here), lines)}{dotted}: a key does not belong in a config file, "
                f"which gets shared; {instead}"
            )
        refuse_secrets(value, path, lines, here)


_SCHEMAS = (("program", "response_format"), ("program", "tools"))


def _is_secret(name: str) -> bool:
    plain = re.sub(r"[^a-z]", "", name.lower())
    return plain.endswith(("apikey", "password", "secret", "accesstoken", "authtoken")) or plain == "authorization"
