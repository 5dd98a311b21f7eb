"""Attributes that a result, a record or an account does not have: which is meant, also for who comes from elsewhere.

For what is read now and then: with a `__getattr__` in its class each attribute takes a little longer to read.
"""

from __future__ import annotations

from typing import Any, TypeVar

from textgrad_engine.wording import nearest

C = TypeVar("C", bound=type)

_OURS = {
    "spent": ("used", "usage", "cost", "total_cost"),
    "total_tokens": ("tokens",),
    "input_tokens": ("prompt_tokens",),
    "output_tokens": ("completion_tokens",),
    "cached_tokens": ("cache_read_tokens",),
    "dollars": ("cost", "usd", "total_cost"),
    "mean": ("score", "accuracy", "average"),
    "predictions": ("outputs", "answers", "results"),
    "text": ("content", "output_text", "answer"),
    "p_value": ("p", "pvalue"),
    "best": ("best_candidate", "best_prompt"),
    "best_val": ("best_score", "val_aggregate_scores"),
    "total": ("total_usage",),
}
"""What our names are in other libraries and in other places of this one; the first that an object has is meant."""

_NOT_OURS = frozenset({"builtins", "pydantic", "typing"})
"""Where bases come from whose names nobody means."""

_MOST = 12
"""Names that a message lists at most."""


def attributes_told(cls: C) -> C:
    """A class whose objects say, of an attribute that they do not have, which is meant, or which there are.

    Type checkers see no change, so that they still tell of such a name themselves.

    Example:
        >>> import dataclasses
        >>> @attributes_told
        ... @dataclasses.dataclass(frozen=True)
        ... class Used:
        ...     calls: int
        ...     total_tokens: int
        >>> Used(1, 20).tokens
        Traceback (most recent call last):
        AttributeError: 'Used' object has no attribute 'tokens'; here it is 'total_tokens'
        >>> Used(1, 20).call
        Traceback (most recent call last):
        AttributeError: 'Used' object has no attribute 'call'; did you mean 'calls'?
        >>> Used(1, 20).price
        Traceback (most recent call last):
        AttributeError: 'Used' object has no attribute 'price'; it has calls, total_tokens
    """
    inherited = getattr(cls, "__getattr__", None)

    def told(self: Any, name: str) -> Any:
        if hasattr(type(self), name):  # a property of its own, whose error says what was wrong
            return object.__getattribute__(self, name)
        try:
            return object.__getattribute__(self, name) if inherited is None else inherited(self, name)
        except AttributeError:
            if name.startswith("_"):  # tools look for these in all there is
                raise
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{_meant(self, name)}", name=name)

    told.__name__ = "__getattr__"
    cls.__getattr__ = told  # type: ignore[attr-defined]
    return cls


def _meant(value: Any, name: str) -> str:
    known = list(getattr(value, "__dict__", ()))
    for base in type(value).__mro__:
        if base.__module__.partition(".")[0] not in _NOT_OURS:
            known += [*getattr(base, "__annotations__", ()), *vars(base)]
    known = [each for each in dict.fromkeys(known) if not each.startswith(("_", "model_"))]
    found = next((ours for ours, others in _OURS.items() if name in others and ours in known), "")
    if found:
        return f"; here it is {found!r}"
    return nearest(name, known) or f"; it has {', '.join(known[:_MOST])}{', ...' if len(known) > _MOST else ''}"
