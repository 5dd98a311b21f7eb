"""The forward of a call: run at once, or on the event-loop thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textgrad_engine.autograd.context import Context
from textgrad_engine.autograd.grad_mode import GRAD_ENABLED
from textgrad_engine.autograd.late import FOUND
from textgrad_engine.autograd.variable import Variable
from textgrad_engine.callables import signature_of
from textgrad_engine.errors import AutogradError

if TYPE_CHECKING:
    from textgrad_engine.autograd.function import Function


class Forward:
    """A forward for the event-loop thread. One object, of which many lie in a queue."""

    __slots__ = ("_args", "_cls", "_ctx", "_outs")

    def __init__(self, cls: type[Function], ctx: Context, args: tuple[Any, ...], outs: tuple[Variable, ...]) -> None:
        self._cls, self._ctx, self._args, self._outs = cls, ctx, args, outs

    def __call__(self) -> Any:
        """The values and roles of the outputs, or a coroutine for them."""
        GRAD_ENABLED.set(False)  # in this call's own copy of the context
        cls, ctx, args, outs = self._cls, self._ctx, self._args, self._outs
        if cls.finds_inputs:
            FOUND.set([] if ctx.needs_input_grad else None)  # in the same copy
        if cls._style.asynchronous:
            return _run_async(cls, ctx, args, outs)
        return _finish(cls, ctx, args, _outputs(cls, run_forward(cls, ctx, args), len(outs)), outs)


async def _run_async(cls: type[Function], ctx: Context, args: tuple[Any, ...], outs: tuple[Variable, ...]) -> Any:
    raws = _outputs(cls, await run_forward(cls, ctx, args), len(outs))
    for value in raws:
        if value._call is not None:
            await value
    if found := FOUND.get() if cls.finds_inputs else None:
        ctx.late = tuple(found)
    return _finish(cls, ctx, args, raws, outs)


def run_forward(cls: type[Function], ctx: Context, args: tuple[Any, ...]) -> Any:
    """What a forward returns; in an error about its arguments, a note where it is written in the other style."""
    try:
        return cls.forward(ctx, *args) if cls._style.takes_ctx else cls.forward(*args)
    except TypeError as error:
        _note_style(cls, ctx, args, error)
        raise
    except NotImplementedError as error:
        error.add_note(f"{cls.__name__}.apply called its forward.")
        raise


_NAMES_OF_A_CTX = ("ctx", "context", "self", "_", "_ctx")
"""What a forward that takes a ctx calls it; another first parameter is an argument, and one is missing or too much."""


def _note_style(cls: type[Function], ctx: Context, args: tuple[Any, ...], error: TypeError) -> None:
    """Say how forward is called, where its parameters do not fit that but would fit the other style."""

    def fits(*given: Any) -> bool:
        try:
            signature_of(cls.forward).bind(*given)
        except TypeError:
            return False
        return True

    takes_first = next(iter(signature_of(cls.forward).parameters), "") in _NAMES_OF_A_CTX
    if cls._style.takes_ctx and not takes_first and not fits(ctx, *args) and fits(*args):
        error.add_note(
            f"{cls.__name__} has no setup_context, so its forward is called with a ctx first. Either write "
            "forward(ctx, ...), or add a static method setup_context(ctx, inputs, output)."
        )
    elif not cls._style.takes_ctx and takes_first and not fits(*args) and fits(ctx, *args):
        error.add_note(
            f"{cls.__name__} has a setup_context, so its forward is called without a ctx. Either write forward(...) "
            "without it, or take setup_context away."
        )


def _finish(
    cls: type[Function], ctx: Context, args: tuple[Any, ...], raws: tuple[Variable, ...], outs: tuple[Variable, ...]
) -> Any:
    if ctx._constants:
        _refuse_late_constants(cls, ctx, raws)
    if ctx._saved:
        ctx._seal(None, raws, outs)
    named = None
    if cls._style.roles is not None:
        for out in outs:
            if out._role is None:
                named = named_roles(cls, args, len(outs))
                break
    values: tuple[Any, ...] = ()  # the data and the role of the first output, those of the second, and so on
    for number, value in enumerate(raws):
        data = value.data
        values += (data, value.role if named is None else named[number])
        if type(data) is list:
            ctx._note_batch(number, data)
    if ctx._saved:
        ctx._computed(values)
    return values


def _outputs(cls: type[Function], raw: Any, count: int) -> tuple[Variable, ...]:
    values = raw if isinstance(raw, tuple) else (raw,)
    if len(values) != count:
        raise AutogradError(
            f"{cls.__name__}.forward returned {len(values)} values, but the class declares num_outputs = {count}; "
            "a dispatched Function says beforehand how many it returns"
        )
    if count == 1 and isinstance(raw, Variable):
        return (raw,)
    return tuple([value if isinstance(value, Variable) else Variable(value) for value in values])


def _refuse_late_constants(cls: type[Function], ctx: Context, raws: tuple[Variable, ...]) -> None:
    if any(ctx._is_constant(raw, raw) for raw in raws):
        raise AutogradError(
            f"{cls.__name__}.forward called mark_non_differentiable after it was dispatched, when what uses its "
            "outputs was recorded already. Do it in setup_context(ctx, inputs, output), which runs at dispatch."
        )


def named_roles(cls: type[Function], args: tuple[Any, ...], count: int) -> tuple[str, ...]:
    """The roles of the outputs, as the Function says them."""
    assert cls._style.roles is not None
    named = cls._style.roles(*args)
    roles = (named,) if isinstance(named, str) else tuple(named)
    if len(roles) != count:
        raise AutogradError(f"{cls.__name__}.output_role gave {len(roles)} roles for {count} outputs: {named!r:.80}")
    return roles
