"""Calling a program with the fields of an example, for many examples at once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from textgrad_engine import dispatch
from textgrad_engine.errors import DataError
from textgrad_engine.func.pmap import pmap

__all__ = ["fields_named_by", "run_together"]

T = TypeVar("T")
R = TypeVar("R")


def fields_named_by(program: Callable[..., Any]) -> Callable[[dict[str, Any], str], dict[str, Any]]:
    """How an example becomes a program's arguments: those of its fields that `forward` names.

    Args:
        program: a Module or any callable. One that takes ``**kwargs`` and has `slots` (nn.ChatCompletion) gets these.

    Returns:
        A function of an example and its id.

    Raises:
        DataError: (from the function) the example lacks a field that forward has no default for.
    """
    forward = getattr(program, "forward", program)
    parameters = inspect.signature(forward).parameters.values()
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    required = [p.name for p in named if p.default is p.empty]
    optional = [p.name for p in named if p.default is not p.empty]
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        required.extend(getattr(program, "slots", ()))

    def pick(example: dict[str, Any], name: str) -> dict[str, Any]:
        for field in required:
            if example.get(field) is None:
                raise DataError(
                    f"example {name!r} has no field {field!r}, which the program's forward names; "
                    f"it has {', '.join(example)}"
                )
        return {field: example[field] for field in (*required, *optional) if field in example}

    return pick


def run_together(function: Callable[[T], R], items: Sequence[T], concurrency: int | None = None) -> list[R]:
    """Call a function on each item so that the model calls inside overlap, with results in order.

    A program that only dispatches calls is run in this thread, item after item. One that waits for an answer to decide
    what to do next is noticed at the first item, and the others are run in threads.
    """
    results: list[R] = []
    for position, item in enumerate(items):
        waited = dispatch.times_waited()
        results.append(function(item))
        if dispatch.times_waited() > waited and len(items) > position + 1:
            results.extend(pmap(function, concurrency)(items[position + 1 :]))
            break
    return results
