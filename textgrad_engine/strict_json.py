"""JSON as its standard has it (RFC 8259): Python also reads NaN and Infinity, and numbers too large as infinity."""

from __future__ import annotations

import json
import math
from typing import NoReturn


class NoJSONError(ValueError):
    """Valid for Python's JSON reader, but not a value that can be used."""


def finite(number: str) -> float:
    """A number with a point or an exponent, for ``json.JSONDecoder(parse_float=...)``.

    Raises:
        NoJSONError: it is too large for a float.

    Example:
        >>> finite("1e3")
        1000.0
    """
    value = float(number)
    if math.isinf(value):
        raise NoJSONError(f"the number {number:.40} is too large")
    return value


def _no_constant(name: str) -> NoReturn:
    raise NoJSONError(f"{name} is no JSON")


DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=finite)
"""Reads JSON; refuses what Python would take beside it, as `NoJSONError`."""
