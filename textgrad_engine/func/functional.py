"""`functional_call`: a module run with other values in the place of its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias

from textgrad_engine.autograd import Variable
from textgrad_engine.callables import signature_of
from textgrad_engine.errors import AutogradError
from textgrad_engine.func.levels import kind_of


class _Replaceable(Protocol):
    """What is wanted of a module; `nn` stands beside this package, so it is not imported."""

    def _with_parameters(self, overrides: Mapping[str, Any]) -> AbstractContextManager[None]: ...

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...


_Values: TypeAlias = Mapping[str, Variable | str]


def functional_call(module: _Replaceable, overrides: _Values | Sequence[_Values], /, *args: Any, **kwargs: Any) -> Any:
    """Call a module with other values in the place of some of its parameters and buffers.

    The module itself is not changed, and other threads and tasks that call it at the same time do not notice. So a
    module becomes a function of its prompts, for `grad`, `vmap`, `jvp` and search:
    ``vmap(lambda p: functional_call(program, {"system": p}, ticket=t))(candidates)``.

    Args:
        module: the program.
        overrides: the values by dotted name, as `named_parameters` gives them: Variables, values inside a transform, or
            texts. A value without a role gets the role of what it replaces. A parameter that the module has under
            several names is replaced under all of them; it may be given under several, if the value is the same.
            Several mappings, such as parameters and buffers, are combined.
        args: the module's arguments. A single tuple is all of them, and a dict after it the keyword arguments, as in
            `torch.func.functional_call`; so are ``args=`` and ``kwargs=``, if the module's forward has no such
            arguments. Pass a tuple that is itself the argument by name.
        kwargs: the module's keyword arguments.

    Raises:
        KeyError: the module has no parameter or buffer of that name; those it has are named. Or two names of one
            parameter are given different values.
        TypeError: it is no module, or a value is neither a Variable nor a text; or keyword arguments come both ways.
        AutogradError: the module's forward is an ``async def`` or a generator, which would run after the call.

    Example:
        >>> from textgrad_engine import nn
        >>> class Greeter(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.greeting = nn.Parameter("Hello", role="greeting")
        ...     def forward(self, name):
        ...         return self.greeting + ", " + name
        >>> greeter = Greeter()
        >>> functional_call(greeter, {"greeting": "Good morning"}, "Ann").data
        'Good morning, Ann'
        >>> greeter("Ann").data
        'Hello, Ann'
    """
    replaced = getattr(module, "_with_parameters", None)
    if replaced is None:
        raise TypeError(f"functional_call takes an nn.Module, got {type(module).__name__}")
    given = args
    if ("args" in kwargs or "kwargs" in kwargs) and not _takes(module, args, kwargs):
        args, kwargs = _named_as_in_torch(args, kwargs)
    if args and isinstance(args[0], tuple):
        args, kwargs = _as_torch(args, kwargs)
    with replaced(overrides if isinstance(overrides, Mapping) else _together(overrides)):
        try:
            result = module(*args, **kwargs)
        except TypeError as error:
            if args is not given and not _takes(module, args, kwargs):
                error.add_note(
                    "functional_call took the tuple for all arguments, as torch does; if it is itself the argument, "
                    "give it by name"
                )
            raise
    if inspect.iscoroutine(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
        raise AutogradError(
            f"functional_call: the result of {type(module).__name__} would be computed after the call, with the "
            f"module's own values: it is {kind_of(result)}"
        )
    return result


def _as_torch(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a module that come as torch's tuple and dict; any others as they are."""
    if len(args) == 1:
        return args[0], kwargs
    if len(args) == 2 and isinstance(args[1], dict):
        if kwargs:
            raise TypeError(
                f"functional_call: keyword arguments came in a dict and by name ({', '.join(kwargs)}); put all of them "
                "in the dict, or give all of them by name"
            )
        return args[0], args[1]
    return args, kwargs


def _named_as_in_torch(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a module of which some came by the names that they have in torch; any others as they are."""
    given = (*args, kwargs["args"]) if "args" in kwargs else args
    named = kwargs.get("kwargs", {})
    if len(given) > 1 or not isinstance(named, dict) or not kwargs.keys() <= {"args", "kwargs"}:
        return args, kwargs
    return tuple(each if isinstance(each, tuple) else (each,) for each in given or ((),)), named


def _takes(module: _Replaceable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a module's forward takes arguments of this number and these names."""
    try:
        signature_of(getattr(module, "forward", module)).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _together(overrides: Sequence[_Values]) -> _Values:
    """Several mappings of values as one."""
    what = "functional_call replaces what a mapping of names says, or several of them do, got"
    if not isinstance(overrides, tuple | list):
        raise TypeError(f"{what} {type(overrides).__name__} {overrides!r:.40}")
    found: dict[str, Variable | str] = {}
    for number, values in enumerate(overrides):
        if not isinstance(values, Mapping):
            raise TypeError(f"{what} {type(values).__name__} {values!r:.40} at position {number}")
        if twice := [name for name in values if name in found]:
            raise KeyError(f"functional_call: {twice[0]!r} is given in two of the mappings")
        found.update(values)
    return found
