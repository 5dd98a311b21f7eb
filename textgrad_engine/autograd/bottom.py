"""The bottom of the stack of layers: runs a forward or dispatches it, and records the node."""

from __future__ import annotations

import inspect
import weakref
from typing import TYPE_CHECKING, Any

from textgrad_engine import dispatch, pytree
from textgrad_engine.autograd.arguments import hidden_in, layout_of, needs_by_argument, one_of
from textgrad_engine.autograd.context import Context
from textgrad_engine.autograd.examples import EXAMPLE
from textgrad_engine.autograd.forward import Forward, named_roles, run_forward
from textgrad_engine.autograd.grad_mode import GRAD_ENABLED
from textgrad_engine.autograd.graph import FunctionNode, GradientEdge
from textgrad_engine.autograd.late import LateNode
from textgrad_engine.autograd.value import label_of
from textgrad_engine.autograd.variable import Variable
from textgrad_engine.dispatch import Call
from textgrad_engine.errors import AutogradError
from textgrad_engine.wording import a_class, told

if TYPE_CHECKING:
    from textgrad_engine.autograd.function import Function


def run_at_bottom(cls: type[Function], args: tuple[Any, ...]) -> Any:
    """The bottom of the stack: run or dispatch the forward, record the node."""
    style = cls._style
    inputs, layout = layout_of(args)
    recording = leaked = False
    for variable in inputs:
        recording = recording or variable._requires_grad
        leaked = leaked or variable._layer is not None
    if leaked:  # kept by the user beyond the transform that made it: its plain value goes on
        return run_at_bottom(cls, pytree.map_leaves(plain_value, args))
    edges: tuple[GradientEdge | None, ...] = ()
    ctx = _NO_CONTEXT
    if recording := (recording or cls.finds_inputs) and GRAD_ENABLED.get():
        edges = _edges_of(inputs)
        ctx = style.context()
        ctx.example = EXAMPLE.get()
        ctx.needs_input_grad = needs_by_argument(layout, [v._requires_grad for v in inputs])
    elif style.takes_ctx:
        ctx = style.context()
        ctx.needs_input_grad = (False,) * len(args)
    if style.asynchronous or (cls.deferrable and _unsettled(inputs)):
        return _dispatch(cls, ctx, args, inputs, layout, edges, recording)

    token = GRAD_ENABLED.set(False)
    try:
        raw = run_forward(cls, ctx, args)
        single = not isinstance(raw, tuple)
        raws = (raw,) if single else raw
        outs = tuple([value._alias(Variable) if isinstance(value, Variable) else value for value in raws])
        for out in outs:
            if isinstance(out, Variable):
                out._requires_grad, out._grad_fn, out._origin = False, None, None
            elif out is not None:
                _refuse_output(cls, out)
        if recording and not style.takes_ctx:
            cls.setup_context(ctx, args, outs[0] if single else outs)
    finally:
        GRAD_ENABLED.reset(token)
    if recording:
        node = FunctionNode(cls, ctx, edges, layout, len(outs))
        for number, out in enumerate(outs):
            if not isinstance(out, Variable):
                ctx._plain += (number,)
            elif not ctx._is_constant(out, raws[number]):
                out._requires_grad, out._grad_fn, out.output_nr = True, node, number
                if type(out._data) is list:
                    ctx._note_batch(number, out._data)
        if len(ctx._plain) == len(outs) and any(out is not None for out in outs):
            raise TypeError(
                f"{cls.__name__}.forward returned {told(raw)}, and an input of it wants feedback, which reaches "
                "Variables alone: return Variable(text, role=...), or give it what .detach() gives"
            )
        ctx._seal(node, raws, outs)
        _newest[0] = ctx._node
    return outs[0] if single else outs


def _edges_of(inputs: list[Variable]) -> tuple[GradientEdge | None, ...]:
    """Where feedback on the inputs flows; None for those that want none.

    A call in a loop over examples often has the same inputs that want feedback, its prompts, as the one before it, and
    then takes over its tuple: two objects less of the twelve that the collector has to look at for each such call.
    """
    known = None if _newest[0] is None else _newest[0]()
    if known is not None and len(known.edges) == len(inputs):
        for edge, variable in zip(known.edges, inputs):
            if edge is None:
                if variable._requires_grad:
                    break
            elif not variable._requires_grad or not variable._flows_along(edge):
                break
        else:
            return known.edges
    return tuple([v._gradient_edge() if v._requires_grad else None for v in inputs])


_newest: list[weakref.ref[FunctionNode] | None] = [None]
"""The node that was recorded last, on any thread, as long as somebody else keeps it."""


def plain_value(leaf: Any) -> Any:
    """What a value of a transform stands for below all transforms; anything else as it is.

    Raises:
        AutogradError: it is a batch of a `vmap` that is over.
    """
    while isinstance(leaf, Variable) and leaf._layer is not None:
        if isinstance(leaf._inner, list):
            raise AutogradError(
                f"{label_of(leaf)} is a value inside vmap and was kept beyond it; return it from the function instead. "
                "In a tool that a model calls no value of vmap can be used: func.pmap runs the program for each example"
            )
        leaf = leaf._primal()
    return leaf


def _by_value(value: Any) -> Any:
    """An argument as it is now, whatever becomes of it later."""
    if isinstance(value, Variable):
        return value._alias()
    if pytree.is_container(value):
        return pytree.map_leaves(_by_value, value)
    return value


def _dispatch(
    cls: type[Function],
    ctx: Context,
    args: tuple[Any, ...],
    inputs: list[Variable],
    layout: tuple[Any, ...],
    edges: tuple[GradientEdge | None, ...],
    recording: bool,
) -> Any:
    """Hand the forward to the event loop, with its inputs as they are now, and return pending outputs."""
    style, count = cls._style, cls.count_outputs(*args)
    taken = args
    waits_for: list[Call] = []
    label: str | tuple[str, str] = cls.__name__
    roles: tuple[str | None, ...] = (None,) * count
    known = True
    if inputs or any(layout):
        taken = tuple([value if place is None else _by_value(value) for place, value in zip(layout, args)])
        for variable in inputs:
            known = known and variable._role is not None
            if variable._call is not None:
                waits_for.append(variable._call)
    if style.roles is not None and known:  # else only the running inputs can tell
        named = named_roles(cls, args, count)
        roles, label = named, one_of(_LABELS, (named[0], cls.__name__))
    outs = (_pending(roles[0]),) if count == 1 else tuple([_pending(role) for role in roles])
    call = dispatch.submit(
        Forward(cls, ctx, taken, outs),
        waits_for,
        label=label,
        where=dispatch.caller_line(),
    )
    for number, out in enumerate(outs):
        out._call, out._index = call, number
    if recording:
        try:
            if cls.only_saves:
                cls.setup_context(ctx, args, outs[0] if count == 1 else outs)
            elif not style.takes_ctx:
                token = GRAD_ENABLED.set(False)
                try:
                    cls.setup_context(ctx, args, outs[0] if count == 1 else outs)
                finally:
                    GRAD_ENABLED.reset(token)
        except BaseException as error:
            call._finish(None, error)  # if it has not begun, it need not: nobody has its outputs
            raise
        node = (LateNode if cls.finds_inputs else FunctionNode)(cls, ctx, edges, layout, count)
        node.call = call
        for number, out in enumerate(outs):
            if not ctx._is_constant(out, out):
                out._requires_grad, out._grad_fn, out.output_nr = True, node, number
        ctx._seal(node, outs, outs)
        if not cls.finds_inputs:  # its edges are not known yet
            _newest[0] = ctx._node
    return outs[0] if count == 1 else outs


def _pending(role: str | None) -> Variable:
    """A Variable whose value is not there yet; nor its role, where that is None."""
    out = Variable("")
    out._role = role
    return out


def _refuse_output(cls: type[Function], out: Any) -> None:
    """Refuse an output that would lose its history without anybody noticing.

    Raises:
        TypeError: Variables stand inside of it, or may do so, or it is a coroutine.
    """
    if inspect.iscoroutine(out):
        out.close()
        raise TypeError(
            f"{cls.__name__}.forward is a plain def and returned a coroutine, so nothing would run it. Write "
            "`async def forward`, also where it is decorated."
        )
    for leaf in pytree.leaves(out):
        if isinstance(leaf, Variable):
            hidden = f"a Variable inside {a_class(type(out))}, where feedback cannot find it"
        else:
            hidden = hidden_in(leaf)
        if hidden:
            raise TypeError(
                f"{cls.__name__}.forward returned {hidden}. Several outputs are returned as a tuple of Variables."
            )


def _unsettled(inputs: list[Variable]) -> bool:
    """Whether there is one whose value is not there."""
    for variable in inputs:
        call = variable._call
        if call is not None and (not call.done or call.failed):
            return True
    return False


_LABELS: dict[tuple[str, str], tuple[str, str]] = {}

_NO_CONTEXT = Context()
"""For calls that nothing is recorded of; a `setup_context` is not run for them, and nothing is written here."""
