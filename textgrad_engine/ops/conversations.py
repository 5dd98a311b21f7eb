"""The plan of a call that answers a conversation, which stands in the place of a user message."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from textgrad_engine.llm.conversation import Turn
from textgrad_engine.ops.messages import Hole, Plan, Rendered


def plan_with(has_system: bool, names: tuple[str, ...], turns: Sequence[Turn]) -> Plan:
    """The plan of a call that answers a conversation: its values are the system prompt, those of slots, and the turns.

    Args:
        has_system: whether there is a system prompt.
        names: of the slots in it that have a value.
        turns: what was said so far.
    """
    plan = _plan(has_system, names, tuple([turn.role for turn in turns]))
    tools: dict[int, dict[str, Any]] = {}
    for number, turn in enumerate(turns, int(has_system)):
        if turn.calls:
            tools[number] = {"tool_calls": turn.calls}
        elif turn.answers is not None and turn.role == "tool":
            tools[number] = {"tool_call_id": turn.answers}
    return replace(plan, tools=tools) if tools else plan


@functools.lru_cache(maxsize=256)
def _plan(has_system: bool, names: tuple[str, ...], roles: tuple[str, ...]) -> Plan:
    first = has_system + len(names)
    # Not holes: what people said may have slots in it, and is not scanned for them.
    turns = [(role, (Rendered(_as_said, ((role, first + number),), whole=True),)) for number, role in enumerate(roles)]
    system = [("system", (Hole(0),))] if has_system else []
    return Plan((*system, *turns), tuple([(name, has_system + number) for number, name in enumerate(names)]))


def _as_said(texts: list[Any]) -> str:
    return str(texts[0])
