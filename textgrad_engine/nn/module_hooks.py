"""The hooks of a module: how they are kept, and those that see the keyword arguments too."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from textgrad_engine.autograd.graph import Handle, add_hook

if TYPE_CHECKING:
    from textgrad_engine.nn.module import Module


class WithKwargs:
    """A hook that wants the keyword arguments too."""

    def __init__(self, hook: Callable[..., Any]) -> None:
        self.hook = hook

    def __call__(self, *args: Any) -> Any:
        """Call it."""
        return self.hook(*args)

    def before(self, module: Module, args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, both kinds, as the hook leaves them.

        Raises:
            TypeError: it returned neither None nor a pair of them.
        """
        changed = self.hook(module, args, kwargs)
        if changed is None:
            return args, kwargs
        if isinstance(changed, tuple) and len(changed) == 2 and isinstance(changed[1], dict):
            given, keywords = changed
            return (given if isinstance(given, tuple) else (given,)), keywords
        raise TypeError(
            f"a forward pre-hook of {type(module).__name__} that was registered with_kwargs=True returns None or a "
            f"pair (args, kwargs) of a tuple and a dict, got {changed!r:.60}"
        )


def register(hooks: dict[int, Any], hook: Callable[..., Any], prepend: bool, with_kwargs: bool) -> Handle:
    """Keep a hook; see `Module.register_forward_pre_hook`."""
    before = list(hooks.items())
    handle = add_hook(hooks, hook, WithKwargs(hook) if with_kwargs else None)
    if prepend:
        for key, earlier in before:  # to the end, in their order
            del hooks[key]
            hooks[key] = earlier
    return handle
