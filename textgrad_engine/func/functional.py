"""`functional_call`: a module run with other values in the place of its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from textgrad_engine.autograd import Variable
from textgrad_engine.errors import AutogradError
from textgrad_engine.func.levels import kind_of

__all__ = ["functional_call"]


class _Replaceable(Protocol):
    """What is wanted of a module; `nn` stands beside this package, so it is not imported."""

    def _with_parameters(self, overrides: Mapping[str, Any]) -> AbstractContextManager[None]: ...

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...


def functional_call(module: _Replaceable, overrides: Mapping[str, Variable | str], /, *args: Any, **kwargs: Any) -> Any:
    """Call a module with other values in the place of some of its parameters and buffers.

    The module itself is not changed, and other threads and tasks that call it at the same time do not notice. So a
    module becomes a function of its prompts, for `grad`, `vmap`, `jvp` and search:
    ``vmap(lambda p: functional_call(program, {"system": p}, ticket=t))(candidates)``.

    Args:
        module: the program.
        overrides: the values by dotted name, as `named_parameters` gives them: Variables, values inside a transform, or
            texts. One without a role gets the role of what it stands for. A parameter that the module has under
            several names is replaced under all of them; it may be given under several, if that is one and the same
            value.
        args: the module's arguments.
        kwargs: the module's keyword arguments.

    Raises:
        KeyError: the module has no parameter or buffer of that name; those it has are named. Or two names of one
            parameter are given different values.
        TypeError: it is no module, or a value is neither a Variable nor a text.
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
    with replaced(overrides):
        result = module(*args, **kwargs)
    if inspect.iscoroutine(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
        raise AutogradError(
            f"functional_call: the result of {type(module).__name__} would be computed after the call, with the "
            f"module's own values: it is {kind_of(result)}"
        )
    return result
