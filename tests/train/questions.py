"""Examples of which each is a question, and a program that answers them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textgrad_engine import nn


def rows(count: int, **fields: Callable[[int], Any]) -> list[dict[str, Any]]:
    return [
        {"id": f"r{n}", "q": f"question {n}?", "target": "yes", **{name: value(n) for name, value in fields.items()}}
        for n in range(count)
    ]


def program() -> nn.Module:
    return nn.ChatCompletion("{q}", system=nn.Parameter("Answer.", role="system prompt"))
