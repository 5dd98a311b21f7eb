"""What can fill a slot, such as a text, a number or an image, and which texts had slots that calls have filled."""

from __future__ import annotations

import datetime
import decimal
import math
import numbers
import pathlib
import uuid
from collections.abc import Mapping
from typing import Any
from weakref import WeakValueDictionary

from textgrad_engine import pytree
from textgrad_engine.autograd import Variable
from textgrad_engine.fences import unfilled
from textgrad_engine.llm.images import is_part, part_problem
from textgrad_engine.ops.images import ContentPart

_templates: WeakValueDictionary[int, Variable] = WeakValueDictionary()  # by id, as a set would compare them


def note_template(text: Any) -> None:
    """Note that the slots of a text are filled, if it is a leaf that may be trained."""
    if isinstance(text, Variable) and text.requires_grad and text.is_leaf and not is_template(text):
        _templates[id(text)] = text


def is_template(leaf: Variable) -> bool:
    """Whether slots of this leaf were filled by some call: its braces are slots, whatever is said of the text itself.

    Example:
        >>> prompt, answer = (Variable("{n}", requires_grad=True) for _ in range(2))
        >>> note_template(prompt)
        >>> is_template(prompt), is_template(answer)
        (True, False)
    """
    return _templates.get(id(leaf)) is leaf


_PLAIN = (Variable, str, int, float, list, type(None), ContentPart)
_WRITTEN = (
    numbers.Number,  # Decimal, Fraction, and those of numpy
    datetime.date,
    datetime.time,
    datetime.timedelta,
    uuid.UUID,
    pathlib.PurePath,
)


def unfit(value: Any) -> str:
    """What a value is that cannot fill a slot, with the repair; "" for one that can, or that is a batch of them.

    Example:
        >>> unfit({"city": "Rome"}), unfit(datetime.date(2024, 2, 29))
        ('an object, which is no text; write it as one', '')
    """
    if isinstance(value, ContentPart):
        return part_problem(value.part)
    if is_nan(value):
        return f"{value}, as tables have it in an empty field; give it a value, '' for none"
    if isinstance(value, _PLAIN) or is_written(value):
        return ""
    if is_part(value):
        if any(isinstance(leaf, Variable) for leaf in pytree.leaves(value)):
            return "a content part with a Variable in it; put it among the content of a message: ops.chat_completion"
        return part_problem(value)
    if why := unfilled(value):
        return f'a template string (t"…"), which is no text: {why}'
    if isinstance(value, bytes):
        return "a value of the type bytes, which is no text; of an image, data.image_part(…) makes a content part"
    if isinstance(value, Mapping) and any(isinstance(leaf, Variable) for leaf in pytree.leaves(value)):
        return "an object with Variables in it, as func.vmap makes of a dict; func.pmap runs a program on images"
    kind = "an object" if isinstance(value, Mapping) else f"a value of the type {type(value).__name__}"
    return f"{kind}, which is no text; write it as one"


def is_nan(value: Any) -> bool:
    """Whether it is what tables have in an empty field instead of a number or a date.

    Example:
        >>> is_nan(float("nan")), is_nan("nan"), is_nan(None)
        (True, False, False)
    """
    if isinstance(value, float):
        return math.isnan(value)
    if isinstance(value, decimal.Decimal):
        return value.is_nan()
    return type(value).__name__ == "NAType" or (is_written(value) and bool(value != value))  # pandas' NA equals nothing


def is_written(value: Any) -> bool:
    """Whether it is written in a single way; numpy's own kinds of truth and of dates are no numbers."""
    kind = type(value)
    return isinstance(value, _WRITTEN) or (kind.__module__ == "numpy" and getattr(value, "shape", None) == ())


def as_plain(value: Any) -> Any:
    """A value as a text, a number, a content part or a Variable; lists of them entry by entry.

    Example:
        >>> as_plain(datetime.date(2024, 2, 29)), as_plain(7)
        ('2024-02-29', 7)
    """
    if isinstance(value, list):
        return [as_plain(entry) for entry in value]
    if is_part(value):
        return ContentPart(value)
    return value if isinstance(value, _PLAIN) else str(value)
