"""The checks of what users give: of its kind, as the annotations say (`kinds`), and of the range of numbers.

`check` stands first in a constructor or a function. What is called for each call of a model (`ops`, a program) has no
time for it: that is checked where it is used.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from textgrad_engine.kinds import Kind, kind_of
from textgrad_engine.plain_values import is_whole
from textgrad_engine.wording import told

T = TypeVar("T")


@dataclass(frozen=True)
class Range:
    """Which numbers the arguments of these names may be; None is not looked at, for the annotation may take it."""

    words: str
    holds: Callable[[Any], bool]
    names: tuple[str, ...]


@functools.cache
def at_least(least: float, *names: str) -> Range:
    """Numbers from `least` on."""
    return Range(f"at least {least:g}", lambda value: value >= least, names)


@functools.cache
def above(limit: float, *names: str) -> Range:
    """Numbers above `limit`."""
    return Range(f"above {limit:g}", lambda value: value > limit, names)


@functools.cache
def between(lowest: float, highest: float, *names: str) -> Range:
    """Numbers from `lowest` to `highest`, both included."""
    return Range(f"between {lowest:g} and {highest:g}", lambda value: lowest <= value <= highest, names)


@functools.cache
def finite(*names: str) -> Range:
    """All numbers but infinite ones."""
    return Range("finite", math.isfinite, names)


def check(function: Callable[..., Any], given: Mapping[str, Any], *ranges: Range) -> None:
    """Refuse arguments that are of another kind than the function's annotations say, or out of range.

    Args:
        function: that was called; for the fields of a dataclass, the class.
        given: the arguments by name, as ``locals()`` has them at the function's beginning; those that are left out are
            not looked at, nor is what else is in there.
        ranges: of those that are numbers.

    Raises:
        TypeError: one is of another kind.
        ValueError: a number is out of its range or NaN, or a text is none of those that may be.

    Example:
        >>> from typing import Literal
        >>> def draw(examples: int, order: Literal["random", "given"] = "given") -> None:
        ...     check(draw, locals(), at_least(1, "examples"))
        >>> draw(3)
        >>> draw("3")
        Traceback (most recent call last):
        TypeError: draw: examples must be a whole number, got '3'; write 3
        >>> draw(0)
        Traceback (most recent call last):
        ValueError: draw: examples must be at least 1, got 0
        >>> draw(3, "randon")
        Traceback (most recent call last):
        ValueError: draw: order must be 'random' or 'given', got 'randon'; did you mean 'random'?
    """
    kinds = _KINDS.get(function)
    if kinds is None:
        kinds = _KINDS[function] = _kinds_of(function)
    for name, kind in kinds:
        if name in given and type(value := given[name]) not in kind.classes and not kind.takes(value):
            text = f"{_owner(function)}: {name} must be {kind.words[0]}, got {told(value)}{kind.repair(value)}"
            unknown = any(type(value) is type(each) for each in kind.known)
            raise (ValueError if unknown or _holds_nan(value) else TypeError)(text)
    for each in ranges:
        for name in each.names:
            if (value := given[name]) is not None and not each.holds(value):
                text = f"{_owner(function)}: {name} must be {each.words}, got {value}"
                raise ValueError(text + (dict(kinds)[name].repair(value) if _is_endless(value) else ""))


def _is_endless(value: Any) -> bool:
    return isinstance(value, float) and math.isinf(value)


def _holds_nan(value: Any) -> bool:
    parts = value if isinstance(value, list | tuple) else [value]
    return any(isinstance(each, float) and math.isnan(each) for each in parts)


_KINDS: dict[Callable[..., Any], list[tuple[str, Kind]]] = {}


def _kinds_of(function: Any) -> list[tuple[str, Kind]]:
    several = set()
    if not isinstance(function, type):
        function = inspect.unwrap(function)
        parameters = inspect.signature(function).parameters.values()
        several = {each.name for each in parameters if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD)}
    found = []
    for name, annotation in typing.get_type_hints(function).items():
        if name not in {"return", *several} and (kind := kind_of(annotation)) is not None:
            found.append((name, kind))
    return found


def _owner(function: Callable[..., Any]) -> str:
    return function.__qualname__.removesuffix(".__init__")


class SetBySuper:
    """An attribute that the ``__init__`` of a base class sets; of a subclass that does not call it, reading it says so.

    Args:
        call: how that is called.

    Example:
        >>> class Base:
        ...     text = SetBySuper("super().__init__(text)")
        ...     def __init__(self, text):
        ...         self.text = text
        >>> class Own(Base):
        ...     def __init__(self): ...
        >>> Base("Sort.").text
        'Sort.'
        >>> Own().text
        Traceback (most recent call last):
        AttributeError: Own.__init__ did not call super().__init__(text)
    """

    def __init__(self, call: str) -> None:
        self.call = call

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, value: Any, owner: type) -> Any:
        if value is None:  # the class has none; a dataclass would take this for a default
            raise AttributeError(f"type object {owner.__name__!r} has no attribute {self.name!r}")
        raise AttributeError(f"{owner.__name__}.__init__ did not call {self.call}")


def whole(name: str, value: Any, least: int) -> int:
    """A setting that is a whole number.

    Args:
        name: of the setting, for the error.
        value: what was given.
        least: the least that it may be.

    Raises:
        TypeError: it is no whole number.
        ValueError: it is less than `least`.
    """
    if not is_whole(value):
        raise TypeError(f"{name} must be a whole number, got {value!r:.80}")
    number = operator.index(value)
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {number}")
    return number


def listed(name: str, given: Any, kinds: str) -> tuple[Any, ...]:
    """A setting that is a sequence; one text is none, as its letters would be taken for the parts.

    Args:
        name: of the setting, for the error.
        given: what was given.
        kinds: what it is a sequence of, in words.

    Raises:
        TypeError: it is no sequence.
    """
    if isinstance(given, str):
        raise TypeError(f"{name} is a sequence of {kinds}, got one text; write [{given!r}]")
    if not isinstance(given, Iterable):
        repair = "()" if given is None else f"[{given!r:.80}]"
        raise TypeError(f"{name} is a sequence of {kinds}, got {type(given).__name__}; write {repair}")
    return tuple(given)


def in_order(given: Iterable[T], named: str = "", such_as: str = "") -> Iterable[T]:
    """What was given, where its order reaches a request or a result: a set has another one in each process.

    Args:
        given: a set is refused, anything else given back as it is.
        named: how the error begins.
        such_as: a list of what is in it, as one writes that.

    Raises:
        TypeError: it is a set.

    Example:
        >>> in_order({"a", "b"}, "join: ")
        Traceback (most recent call last):
        TypeError: join: a set has no order that two runs share; give a list
    """
    if isinstance(given, set | frozenset):
        raise TypeError(f"{named}a set has no order that two runs share; give a list{such_as and ': '}{such_as}")
    return given


def texts_in_order(given: Iterable[T]) -> Iterable[T]:
    """What was given, where no order is meant: the texts of a set in that of the alphabet, anything else as it is.

    Example:
        >>> texts_in_order({"b", "a", "c"}), texts_in_order(["b", "a"])
        (['a', 'b', 'c'], ['b', 'a'])
    """
    if isinstance(given, set | frozenset) and all(isinstance(each, str) for each in given):
        texts: Any = given
        return sorted(texts)
    return given
