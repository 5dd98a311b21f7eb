"""Bases of the frozen records that requests and completions are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from textgrad_engine.attributes import attributes_told


@attributes_told
class Frozen(BaseModel):
    """Base of what cannot be changed, has no other fields than its own, and whose errors do not show what was given."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)  # a dataset, or a key


class Record(Frozen):
    """Base of records whose fields are given by name, or the first of them in order, and that are made with no others.

    Type checkers go by the `__init__` that each states for them, as what they make of fields takes names alone.

    Example:
        >>> from textgrad_engine.llm import Message
        >>> Message("user", "May I?") == Message(role="user", content="May I?")
        True
    """

    def __init__(self, /, *given: Any, **named: Any) -> None:
        if given:
            named = _by_name(type(self), given, named)
        self.__pydantic_validator__.validate_python(named, self_instance=self)
        if len(named) > len(self.model_fields_set):  # of one whose records may have fields of newer versions
            unknown = [name for name in named if name not in type(self).model_fields]
            raise ValidationError.from_exception_data(
                type(self).__name__,
                [{"type": "extra_forbidden", "loc": (name,), "input": named[name]} for name in unknown],
            )

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # or validation would make each by calling it


def _by_name(record: type[Record], given: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    fields = list(record.model_fields)
    if len(given) > len(fields):
        raise TypeError(f"{record.__name__} has {len(fields)} fields ({', '.join(fields)}), got {len(given)} values")
    in_order = dict(zip(fields, given))
    if twice := sorted(in_order.keys() & named.keys()):
        raise TypeError(f"{record.__name__} got {twice[0]!r} twice, in its place and by name")
    return {**in_order, **named}
