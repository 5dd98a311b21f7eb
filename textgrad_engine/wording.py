"""The words of errors: what somebody gave, with which article, and which name was likely meant."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from textgrad_engine.keys import without_keys


def told(value: Any) -> str:
    """What somebody gave, in a few words for an error.

    Example:
        >>> told("3"), told(int), told(True), told([1]), told(len)
        ("'3'", 'the class int', 'True', 'the list [1]', 'the function len()')
    """
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if value is None or isinstance(value, bool | int | float | Decimal):
        return f"{value!r}"
    if inspect.isroutine(value):
        return f"the {'coroutine ' if inspect.iscoroutinefunction(value) else ''}function {name_of(value)}()"
    if isinstance(value, dict):  # a model's settings, given as its name, have its key among them
        return f"the dict with {', '.join(f'{name!r:.40}' for name in value) or 'nothing':.60}"
    if isinstance(value, str | list | tuple | set | bytes):
        shown = f"{without_keys(repr(value)):.61}"
        kind = "" if isinstance(value, str) else f"the {type(value).__name__} "
        return f"{kind}{shown if len(shown) <= 60 else shown[:57] + '...'}"
    return f"a value of type {type(value).__name__}"


def a_class(cls: type) -> str:
    """A value of a class, with its article.

    Example:
        >>> a_class(list), a_class(int)
        ('a list', 'an int')
    """
    return with_article(cls.__name__)


def with_article(word: str) -> str:
    """A word behind its article.

    Example:
        >>> with_article("optimizer"), with_article("judge"), with_article("UserList")
        ('an optimizer', 'a judge', 'a UserList')
    """
    return f"{'an' if _VOWEL.match(word) else 'a'} {word}"


_VOWEL = re.compile("[aeio]|u(?!s|ni)", re.IGNORECASE)
"""How a word begins that begins with the sound of a vowel, but for "one" and "hour"."""


def nearest(word: Any, known: Iterable[Any], cutoff: float = 0.6) -> str:
    """The end of an error about a word that nobody knows: which was meant; "" where none is near.

    Args:
        word: the word; in capitals or not.
        known: those that there are.
        cutoff: how near one must be, from 0 to 1.

    Example:
        >>> nearest("max_epoch", ["max_epochs", "seed"]), nearest("x", ["seed"]), nearest("Tdg", ["TGD"])
        ("; did you mean 'max_epochs'?", '', "; did you mean 'TGD'?")
    """
    words = {each.lower(): each for each in known if isinstance(each, str)}
    found = difflib.get_close_matches(word.lower(), words, 1, cutoff) if isinstance(word, str) else []
    return f"; did you mean {words[found[0]]!r}?" if found else ""


def name_of(value: Any) -> str:
    """What a function is called, or the class of what has no name."""
    return getattr(value, "__name__", type(value).__name__)
