"""What an annotation takes, and how an error names it.

NOTE [Kinds]
    A kind refuses what cannot be meant and takes everything that could be right: what counts as a number or a path,
    what has the methods of a class (a `Mock` has), what can be gone over. Nothing is called and no iterator is used up:
    the parts are looked at of lists and tuples alone.
"""

from __future__ import annotations

import collections.abc as abc
import functools
import inspect
import math
import os
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from textgrad_engine.plain_values import is_flag, is_number, is_whole
from textgrad_engine.wording import a_class, name_of, nearest, told


@dataclass(frozen=True)
class Kind:
    """The values that an annotation takes.

    Attributes:
        words: for them, one and several.
        takes: whether a value is one of them.
        repair: what to write instead of one that is not; "" where nobody knows.
        known: the values that it names one by one.
        classes: those of which all values are taken, so that these need no look.
    """

    words: tuple[str, str]
    takes: Callable[[Any], bool]
    repair: Callable[[Any], str] = lambda value: ""
    known: tuple[Any, ...] = ()
    classes: frozenset[type] = frozenset()


def kind_of(annotation: Any) -> Kind | None:
    """What an annotation takes; None for one that takes anything.

    Example:
        >>> kind = kind_of(abc.Sequence[int] | None)
        >>> kind.words[0], kind.takes((1, 2)), kind.takes([1, "2"]), kind.repair(3)
        ('a sequence of whole numbers, or None', True, False, '; write [3]')
    """
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return _any_of([kind_of(each) for each in args])
    if origin is typing.Literal:
        return _literals(args)
    plain: Any = origin or annotation
    if plain is abc.Callable:
        return _callables(args[-1] if args else Any)
    if not isinstance(plain, type):
        return None
    if plain is type:
        return Kind(("a class", "classes"), lambda value: isinstance(value, type))
    if plain is tuple and args and args[-1] is not Ellipsis:
        return _row([kind_of(each) for each in args])
    if issubclass(plain, abc.Mapping):
        return Kind(
            ("a dict", "dicts"), lambda value: isinstance(value, abc.Mapping) or _has(value, "keys", "__getitem__")
        )
    if plain in _SEQUENCES:
        return _sequence(kind_of(args[0]) if args else None)
    return _instances(plain)


def _has(value: Any, *names: str) -> bool:
    return not isinstance(value, type) and all(hasattr(value, name) for name in names)


def _read(value: Any, kind: Callable[[Any], Any]) -> str:
    """The repair of a number that was given as something that says one: a text, a float without a fraction, a time."""
    given = str(value) if isinstance(value, Decimal) else value
    if isinstance(given, timedelta):
        given = given.total_seconds()
    if isinstance(given, bool) or not (isinstance(given, str | float) or hasattr(given, "__index__")):
        return ""
    try:
        number = kind(given)
    except (TypeError, ValueError, OverflowError):
        return ""
    if isinstance(given, float) and not (number == given and math.isfinite(number)):
        return ""
    return f"; write {int(number) if number % 1 == 0 else number!r}"


_SEQUENCES = (list, set, frozenset, tuple, abc.Iterable, abc.Iterator, abc.Collection, abc.Sequence, abc.Set)
_TEXTS = Kind(("a text", "texts"), lambda value: isinstance(value, str), classes=frozenset({str}))

_NONE = Kind(("None", "None"), lambda value: value is None, classes=frozenset({type(None)}))

_PLAIN: dict[Any, Kind | None] = {
    Any: None,
    object: None,
    None: _NONE,
    type(None): _NONE,
    str: _TEXTS,
    bytes: Kind(("bytes", "bytes"), lambda value: isinstance(value, bytes)),
    bool: Kind(
        ("True or False", "True or False"),
        is_flag,
        lambda value: {"true": "; write True", "1": "; write True", "false": "; write False", "0": "; write False"}.get(
            str(value).lower() if isinstance(value, str | int) else "", ""
        ),
        classes=frozenset({bool}),
    ),
    int: Kind(("a whole number", "whole numbers"), is_whole, lambda value: _read(value, int), classes=frozenset({int})),
    float: Kind(("a number", "numbers"), is_number, lambda value: _read(value, float), classes=frozenset({int})),
    Decimal: Kind(("a number", "numbers"), lambda value: isinstance(value, Decimal) and value.is_finite()),
    abc.Sized: Kind(("something with a length", "things with a length"), lambda value: _has(value, "__len__")),
}


def _any_of(kinds: list[Kind | None]) -> Kind | None:
    known = [kind for kind in kinds if kind is not None]
    if len(known) < len(kinds):
        return None
    named = tuple(each for kind in known for each in kind.known)
    one, many = ([word for kind in known for word in ([*map(repr, kind.known)] or [kind.words[n]])] for n in (0, 1))
    return Kind(
        (_either(one), _either(many)),
        lambda value: any(kind.takes(value) for kind in known),
        lambda value: (
            "; write None"
            if _NONE in known and isinstance(value, float) and math.isinf(value)
            else next(filter(None, (kind.repair(value) for kind in known)), "")
        ),
        named,
        frozenset().union(*(kind.classes for kind in known)),
    )


def _either(words: list[str]) -> str:
    *first, last = dict.fromkeys(words)
    comma = "," if any(" of " in word or " or " in word for word in first) else ""
    return f"{', '.join(first)}{comma} or {last}" if first else last


def _literals(values: tuple[Any, ...]) -> Kind:
    words = _either([repr(value) for value in values])

    def takes(given: Any) -> bool:
        alike = [each for each in values if isinstance(given, bool) == isinstance(each, bool)]
        return any((isinstance(given, type(each)) or is_whole(given)) and given == each for each in alike)

    return Kind((words, words), takes, lambda given: nearest(given, values), values)


def _sequence(item: Kind | None) -> Kind:
    def takes(value: Any) -> bool:
        if isinstance(value, type) or not (hasattr(value, "__iter__") or hasattr(value, "__getitem__")):
            return False
        if item is None:
            return True
        if isinstance(value, str | bytes | abc.Mapping):
            return False
        return not isinstance(value, list | tuple) or all(map(item.takes, value))

    def repair(value: Any) -> str:
        if item is not None and isinstance(value, list | tuple):
            place = next((number for number, each in enumerate(value) if not item.takes(each)), None)
            return "" if place is None else f"; [{place}] of it is {told(value[place])}"
        shown = repr(value)
        if len(shown) > 60 or "\n" in shown or shown.startswith("<"):  # what nobody can copy
            shown = "..."
        return f"; write [{shown}]" if item is not None and item.takes(value) else ""

    many = item.words[1] if item else ""
    return Kind((f"a sequence{many and ' of ' + many}", f"sequences{many and ' of ' + many}"), takes, repair)


def _row(items: list[Kind | None]) -> Kind:
    words = " and ".join(kind.words[0] if kind else "any value" for kind in items)

    def takes(value: Any) -> bool:
        if not isinstance(value, list | tuple):
            return not isinstance(value, str | bytes | abc.Mapping) and _has(value, "__len__", "__getitem__")
        return len(value) == len(items) and all(kind is None or kind.takes(each) for kind, each in zip(items, value))

    return Kind((f"a pair of {words}" if len(items) == 2 else f"a tuple of {words}", f"tuples of {words}"), takes)


def _callables(returned: Any) -> Kind:
    waits = isinstance(returned, typing.TypeVar) or any(
        name in str(returned) for name in ("Any", "Awaitable", "Coroutine")
    )
    made = returned if isinstance(returned, type) and returned.__module__ != "builtins" else object

    def takes(value: Any) -> bool:
        if not callable(value) or (isinstance(value, type) and not issubclass(value, made)):
            return False
        return waits or not is_coroutine_function(value)

    def repair(value: Any) -> str:
        if isinstance(value, type):
            return f"; give an instance of it: {value.__name__}(...)"
        return "; nobody awaits it: write `def`" if callable(value) else ""

    return Kind(("a function", "functions"), takes, repair)


def is_coroutine_function(value: Any) -> bool:
    """Whether a call of something gives what has to be awaited, also behind `functools.partial` and ``__call__``."""
    while isinstance(value, functools.partial):
        value = value.func
    if type(getattr(getattr(value, "__code__", None), "co_flags", 0)) is not int:
        return False  # a Mock in the place of a function, of which `inspect` takes any flag for set
    return inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(getattr(value, "__call__", None))  # noqa: B004


def _instances(cls: type) -> Kind | None:
    if cls.__name__ in ("Path", "PathLike"):
        return Kind(("a path", "paths"), lambda value: isinstance(value, os.PathLike))
    protocol = getattr(cls, "_is_protocol", False)
    public = [name for name in dir(cls) if not name.startswith("_") and callable(getattr(cls, name, None))]
    methods = [*public, *(["__call__"] if protocol and "__call__" in vars(cls) else [])]
    if protocol and not methods:  # of methods of Python's own: who uses it says what it lacks
        return None
    words = a_class(cls)
    if protocol and public:
        words = f"an object with {' and '.join(f'{name}()' for name in public)} ({words})"

    def takes(value: Any) -> bool:
        if not protocol and isinstance(value, cls):
            return True
        return bool(methods) and _has(value, *methods)

    def repair(value: Any) -> str:
        if cls.__name__ == "Model" and (made := _made_a_model(value)):
            return made
        if isinstance(value, dict) and value and value.keys() <= getattr(cls, "__annotations__", {}).keys():
            return f"; write {cls.__name__}({', '.join([f'{name}=…' for name in value])})"  # it is a record
        if not isinstance(value, type):
            return ""
        makes_one = all(hasattr(value, n) for n in methods) if protocol else issubclass(value, cls)
        return f"; give an instance of it: {value.__name__}(...)" if makes_one else ""

    return Kind((words, f"{cls.__name__} objects"), takes, repair)


def _made_a_model(value: Any) -> str:
    """How a model is made of what was given in the place of one; "" where it cannot be."""
    if isinstance(value, str):
        return f"; llm.resolve({value!r:.60}) makes one of a name"
    if type(value).__module__.partition(".")[0] == "openai":
        return "; llm.resolve('openai/NAME', base_url=..., api_key=...) makes one, with a client of its own"
    if inspect.isroutine(value):
        return f"; llm.CallableModel({name_of(value)}) makes one of a function of messages"
    return ""
