"""What functions say about their arguments: how they are called, and of what types these are.

NOTE [Annotations]
    An annotation need not be anything that can be evaluated: its name may be imported for type checkers alone. Until
    Python 3.13 such a one stands there as a text; from 3.14 on any is evaluated when somebody asks for it, and
    `inspect.signature` asks. So how a function of a user's is called is read here, without evaluating anything. Types
    are evaluated of the arguments of tools alone, as a model is told of these, and not of what a tool returns.
"""

from __future__ import annotations

import functools
import inspect
import sys
import typing
from collections.abc import Callable
from types import CodeType, FunctionType, MethodType, SimpleNamespace
from typing import Any, TypeAlias, cast
from weakref import WeakKeyDictionary

from textgrad_engine.kinds import is_coroutine_function

_signature: Callable[..., inspect.Signature] = inspect.signature
_annotations: Callable[..., dict[str, Any]] = inspect.get_annotations

if sys.version_info >= (3, 14):
    from annotationlib import Format, get_annotations

    _signature = functools.partial(inspect.signature, annotation_format=Format.STRING)
    _annotations = functools.partial(get_annotations, format=Format.FORWARDREF)


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """How a function is called; what its annotations name need not be there.

    Raises:
        TypeError: it cannot be called.
        ValueError: it does not say how it is called, as some that are written in C.

    Example:
        >>> list(signature_of(lambda prediction, target: 1).parameters)
        ['prediction', 'target']
    """
    bound = isinstance(function, MethodType)
    plain = function.__func__ if isinstance(function, MethodType) else function
    if not isinstance(plain, FunctionType) or plain.__dict__ or plain.__kwdefaults__:  # what these say may change
        return _signature(function)
    held = _read[bound].get(plain)
    if held is None or held[0] is not plain.__code__ or held[1] is not plain.__defaults__:
        held = _read[bound][plain] = plain.__code__, plain.__defaults__, _signature(function)
    return held[2]


_Read: TypeAlias = WeakKeyDictionary[FunctionType, tuple[CodeType, tuple[Any, ...] | None, inspect.Signature]]

_read: dict[bool, _Read] = {False: WeakKeyDictionary(), True: WeakKeyDictionary()}
"""What `inspect.signature` made of functions and of methods, 36 µs each, and a run asks some thirty times."""


def in_words(signature: inspect.Signature) -> str:
    """What a function takes, without types.

    Example:
        >>> in_words(signature_of(lambda prediction, target=None: 1))
        '(prediction, target=None)'
    """
    bare = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=signature.empty))


def misfit(function: Callable[..., Any], *given: Any) -> str:
    """What a function takes, in words, where it cannot be called with these; "" where it can, or does not say.

    Example:
        >>> misfit(lambda prediction: 1, "a", "b"), misfit(print, "a")
        ('(prediction)', '')
    """
    try:
        signature = signature_of(function)
    except (TypeError, ValueError):
        return ""
    try:
        signature.bind(*given)
    except TypeError:
        return in_words(signature)
    return ""


def check_method(given: Any, method: str, *names: str, waits: bool = False, written: str = "") -> None:
    """Refuse an object of the user's whose method cannot be called with what it will be given, before a run begins.

    Args:
        given: the object.
        method: the name of its method.
        names: what the method is given, by place.
        waits: whether it may be an ``async def``, as somebody awaits what it gives.
        written: how it is to be written, where that is not by these names.

    Raises:
        TypeError: it takes something else; or it is an ``async def`` that nobody awaits, or has a ``yield``.

    Example:
        >>> class Silent:
        ...     def on_event(self): ...
        >>> check_method(Silent(), "on_event", "event")
        Traceback (most recent call last):
        TypeError: Silent.on_event takes (), and is called with (event); write `def on_event(self, event)`
    """
    own = getattr(given, method)
    kind, repair = type(given).__name__, f"write `def {method}({written or ', '.join(['self', *names])})`"
    if inspect.isgeneratorfunction(own) or inspect.isasyncgenfunction(own):
        raise TypeError(
            f"{kind}.{method} has a `yield`, so a call of it gives a generator, and does nothing; `return` what it is "
            "to give"
        )
    if not waits and is_coroutine_function(own):
        raise TypeError(f"{kind}.{method} is an `async def`, and nobody awaits it: {repair}")
    if takes := misfit(own, *names):
        raise TypeError(f"{kind}.{method} takes {takes}, and is called with ({', '.join(names)}); {repair}")


def check_told(caller: str, name: str, function: Callable[..., Any], *names: str) -> None:
    """Refuse a function of the user's that cannot be called with what it will be told, before anything is asked.

    Args:
        caller: the function that was given it.
        name: the name of the argument.
        function: what was given.
        names: what it is called with, by place.

    Raises:
        TypeError: it takes something else.

    Example:
        >>> check_told("on_token", "callback", print, "request", "piece")
    """
    if takes := misfit(function, *names):
        given = ", ".join(names)
        raise TypeError(f"{caller}: {name} takes {takes}, and is called with ({given}); write `def {name}({given})`")


def name_of(function: Callable[..., Any]) -> str:
    """What a function is called; of a partial its function, of an object that can be called its class.

    Either may be given a name of its own: ``search.__name__ = "search_mails"``.

    Example:
        >>> name_of(len), name_of(functools.partial(pow, exp=2)), name_of(functools.partial(functools.partial(pow)))
        ('len', 'pow', 'pow')
    """
    while not isinstance(name := getattr(function, "__name__", None), str) and isinstance(function, functools.partial):
        function = function.func
    return name if isinstance(name, str) else type(function).__name__


def called_by(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function whose body runs: that of partials, the ``__call__`` of an object."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function) or isinstance(function, type):
        return function
    return cast("Callable[..., Any]", getattr(function, "__call__", function))  # noqa: B004


def types_of_arguments(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of a function's arguments by their names, of those that have one.

    Raises:
        NameError: what an annotation names is not there.
        SyntaxError: an annotation is a text that is no type.
        TypeError: it cannot be called, or an annotation is no type.

    Example:
        >>> def find(text: str, most: "int" = 3) -> "Unknown": ...
        >>> types_of_arguments(find)
        {'text': <class 'str'>, 'most': <class 'int'>}
    """
    function = called_by(function)
    told = {name: kind for name, kind in _annotations(function).items() if name != "return"}
    parts = {"__annotations__": told, "__type_params__": getattr(function, "__type_params__", ())}
    return typing.get_type_hints(SimpleNamespace(**parts, __wrapped__=function), include_extras=True)
