"""Chance without state: every draw is a hash of what it is drawn for, so order and concurrency change nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def chance(*parts: object) -> float:
    """A number in [0, 1) that depends on `parts` alone, evenly spread over different parts.

    Example:
        >>> chance("noise", 0) == chance("noise", 0) != chance("noise", 1)
        True
    """
    content = "\0".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big") / 2**64


def pick(options: Sequence[T], *parts: object) -> T:
    """One of `options`, by the hash of `parts`.

    Raises:
        ValueError: there are no options.
    """
    if not options:
        raise ValueError("there is nothing to pick from: options is empty")
    return options[int(chance(*parts) * len(options))]
