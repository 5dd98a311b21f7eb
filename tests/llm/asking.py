"""Models that are asked by code of a test's own, without an operation."""

from __future__ import annotations

from typing import Any

from textgrad_engine.llm import Completion, Message, Request


async def asked(model: Any, word: str) -> str:
    """What a model says, or something in any case."""
    try:
        completion: Completion = await model.complete(Request(messages=(Message(role="user", content=word),)))
    except Exception:
        return "sorry"
    return completion.text
