"""`Function`: the one door through which values are computed, and the bottom layer that records the graph."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, ClassVar

from textgrad_engine import dispatch, pytree
from textgrad_engine.autograd.context import Context
from textgrad_engine.autograd.grad_mode import GRAD_ENABLED
from textgrad_engine.autograd.graph import FunctionNode, GradientEdge
from textgrad_engine.autograd.layers import LAYERS
from textgrad_engine.autograd.variable import Variable
from textgrad_engine.errors import AutogradError

__all__ = ["Function"]


@dataclass(frozen=True, slots=True)
class _Style:
    """How a Function is written; found once a class."""

    takes_ctx: bool
    asynchronous: bool
    roles: Callable[..., Any] | None


class Function:
    """Base of operations with a feedback rule of their own; static methods only, used through `apply`.

    Write `forward` in either of PyTorch's two styles: ``forward(ctx, *args)``, or ``forward(*args)`` together with
    ``setup_context(ctx, inputs, output)`` (transforms take only the second). ``async def forward`` is dispatched:
    `apply` returns pending Variables at once. A plain ``def forward`` runs at once in the caller's thread.

    Attributes:
        num_outputs: how many Variables a dispatched forward returns; more than one as a tuple.
        deferrable: a plain forward that only looks at its inputs' data and is quick may say True: with an input that is
            still pending it is run when that is there, instead of blocking the caller.
        starts_backward: an evaluator says True: a backward pass from its outputs needs no gradient to begin with.

    Example:
        >>> class Shout(Function):
        ...     @staticmethod
        ...     def forward(ctx, text):
        ...         return Variable(text.data.upper(), role=text.role)
        ...     @staticmethod
        ...     def backward(ctx, grad_out):
        ...         return Variable(f"(before shouting) {grad_out.data}", role="feedback")
        >>> word = Variable("hello", role="greeting", requires_grad=True)
        >>> Shout.apply(word).backward("too loud")
        >>> word.grad[0].data
        '(before shouting) too loud'
    """

    num_outputs: ClassVar[int] = 1
    deferrable: ClassVar[bool] = False
    starts_backward: ClassVar[bool] = False
    backward_is_async: ClassVar[bool] = False
    _style: ClassVar[_Style]

    def __init__(self) -> None:
        raise AutogradError(
            f"{type(self).__name__} is a Function: it is not instantiated. Call {type(self).__name__}.apply(...)."
        )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        roles = getattr(cls, "output_role", None)
        cls._style = _Style(
            takes_ctx=cls.setup_context is Function.setup_context,
            asynchronous=inspect.iscoroutinefunction(cls.forward),
            roles=roles,
        )
        cls.backward_is_async = inspect.iscoroutinefunction(cls.backward)

    @staticmethod
    def forward(*args: Any) -> Any:
        """Compute the outputs: Variables, one or a tuple. To be written by every subclass."""
        raise NotImplementedError(
            "a Function needs a `forward`: a static method, forward(ctx, *args) or forward(*args)"
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save on `ctx` what `backward` needs, when `forward` does not take a ctx.

        For a dispatched forward it runs at dispatch, when `output` is still pending: save it, do not read it.
        """
        raise NotImplementedError

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Turn feedback on the outputs into feedback on the inputs; plain or ``async def``.

        Args:
            ctx: what forward saved, and `needs_input_grad`.
            grad_outputs: for each output one Variable: `data` is its feedback joined in order, `grad` the list of
                items.

        Returns:
            For each argument of forward its gradient: a Variable, a list of them, or None (also for what needs none);
            for an argument that is a container, a container of the same shape, or None. Empty text is a real zero:
            nothing flows on.
        """
        raise NotImplementedError("this Function has no `backward`, so feedback cannot pass through it")

    @staticmethod
    def backward_group(ctx: Any) -> Any:
        """Which other nodes this one may share a backward call with: nodes with an equal key; None for none.

        Nodes of one group must not depend on each other. They are run together by `backward_many`.
        """
        return None

    @staticmethod
    def backward_group_size(ctx: Any) -> int:
        """How many nodes of a group may share one call."""
        return 1

    @staticmethod
    def backward_many(ctxs: list[Any], grad_outputs: list[list[Variable | None]]) -> list[Any]:
        """`backward` for several nodes at once, in graph order: for each node what its `backward` would return."""
        raise NotImplementedError("a Function with a backward_group needs a `backward_many`")

    generate_vmap_rule: ClassVar[bool | None] = None
    """False refuses `func.vmap` unless there is a static method `vmap`; otherwise one is generated where it lacks."""

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[Any, Any]:
        """Handle a whole batch at once; without it, forward is run once per example.

        Args:
            info: `batch_size` and `randomness`.
            in_dims: for each argument 0 where it is a batch (a Variable whose data is a list), None where it is not.
            args: the arguments.

        Returns:
            ``(outputs, out_dims)``: out_dims is 0 for an output that is a batch, else None; a tuple for a tuple.
        """
        raise NotImplementedError

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Turn described edits of the inputs into described changes of the outputs, for `func.jvp`.

        Args:
            ctx: what `setup_context` saved.
            tangents: for each argument a Variable that says how it is edited, or None where it stays.

        Returns:
            For each output a Variable that says how it changes, or None where it stays.
        """
        raise NotImplementedError

    @classmethod
    def is_random(cls, *args: Any) -> bool:
        """Whether two calls with these arguments may give different results."""
        return False

    @classmethod
    def resample(cls, args: tuple[Any, ...], number: int) -> tuple[Any, ...]:
        """The arguments for another sample; only asked when `is_random`."""
        return args

    @classmethod
    def count_outputs(cls, *args: Any) -> int:
        """How many Variables a dispatched forward of these arguments returns; `num_outputs` unless overridden."""
        return cls.num_outputs

    @staticmethod
    def describe_output(ctx: Any) -> str:
        """The output in words, for the record of where feedback came from; "" when there is nothing to show."""
        return ""

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run the operation through the layers of transforms, and record it."""
        if kwargs:
            args = cls._positional(args, kwargs)
        stack = LAYERS.get()
        if not stack:
            return _bottom(cls, args)
        token = LAYERS.set(stack[:-1])
        try:
            return stack[-1].process(cls, args)
        finally:
            LAYERS.reset(token)

    @classmethod
    def _positional(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        signature = inspect.signature(cls.forward)
        bound = signature.bind(*((None,) if cls._style.takes_ctx else ()), *args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(f"{cls.__name__}.apply: {', '.join(bound.kwargs)} must not be keyword-only in forward")
        return bound.args[1:] if cls._style.takes_ctx else bound.args


def _bottom(cls: type[Function], args: tuple[Any, ...]) -> Any:
    """The bottom of the stack: run or dispatch the forward, record the node."""
    style = cls._style
    inputs, layout = layout_of(args)
    recording = leaked = False
    for variable in inputs:
        recording = recording or variable._requires_grad
        leaked = leaked or variable._layer is not None
    if leaked:  # kept by the user beyond the transform that made it: its plain value goes on
        return _bottom(cls, pytree.map_leaves(plain_value, args))
    recording = recording and GRAD_ENABLED.get()
    ctx = Context()
    ctx.needs_input_grad = _needs(layout, inputs) if recording else (False,) * len(args)
    edges = tuple([v._gradient_edge() if v._requires_grad else None for v in inputs]) if recording else ()
    if style.asynchronous or (cls.deferrable and any(_unsettled(v) for v in inputs)):
        return _dispatch(cls, ctx, args, inputs, layout, edges)

    token = GRAD_ENABLED.set(False)
    try:
        raw = cls.forward(ctx, *args) if style.takes_ctx else cls.forward(*args)
        single = not isinstance(raw, tuple)
        raws = (raw,) if single else raw
        outs = tuple([value._alias() if isinstance(value, Variable) else value for value in raws])
        for out in outs:
            if isinstance(out, Variable):
                out._requires_grad, out._grad_fn, out._edge, out._origin = False, None, None, None
        if not style.takes_ctx:
            cls.setup_context(ctx, args, outs[0] if single else outs)
    finally:
        GRAD_ENABLED.reset(token)
    if recording:
        node = FunctionNode(cls, ctx, edges, layout, len(outs))
        for number, out in enumerate(outs):
            if isinstance(out, Variable) and not ctx._is_constant(out, raws[number]):
                out._requires_grad, out._grad_fn, out.output_nr = True, node, number
        ctx._seal(node, raws, outs)
    return outs[0] if single else outs


def plain_value(leaf: Any) -> Any:
    """What a value of a transform stands for below all transforms; anything else as it is.

    Raises:
        AutogradError: it is a batch of a `vmap` that is over.
    """
    while isinstance(leaf, Variable) and leaf._layer is not None:
        if isinstance(leaf._inner, list):
            raise AutogradError(
                f"{leaf._name()} is a value inside vmap and was kept beyond it; return it from the function instead"
            )
        leaf = leaf._primal()
    return leaf


def _dispatch(
    cls: type[Function],
    ctx: Context,
    args: tuple[Any, ...],
    inputs: list[Variable],
    layout: tuple[Any, ...],
    edges: tuple[GradientEdge | None, ...],
) -> Any:
    """Hand the forward to the event loop, with its inputs as they are now, and return pending outputs."""
    style, count = cls._style, cls.count_outputs(*args)
    taken = pytree.map_leaves(lambda leaf: leaf._alias() if isinstance(leaf, Variable) else leaf, args)
    outs = tuple([Variable("") for _ in range(count)])
    label = cls.__name__
    roles: tuple[str | None, ...] = (None,) * count
    if style.roles is not None and all(v._role is not None for v in inputs):  # else only the running inputs can tell
        named = style.roles(*args)
        roles = (named,) if isinstance(named, str) else tuple(named)
        if len(roles) != count:
            raise AutogradError(
                f"{cls.__name__}.output_role gave {len(roles)} roles for {count} outputs: {named!r:.80}"
            )
        label = f"{roles[0]!r} ({cls.__name__})"
    call = dispatch.submit(
        lambda: _run(cls, ctx, taken, outs),
        [v._call for v in inputs if v._call is not None],
        label=label,
        where=dispatch.caller_line(),
    )
    for number, (out, role) in enumerate(zip(outs, roles)):
        out._call, out._index, out._role = call, number, role
    if not style.takes_ctx:
        token = GRAD_ENABLED.set(False)
        try:
            cls.setup_context(ctx, args, outs[0] if count == 1 else outs)
        finally:
            GRAD_ENABLED.reset(token)
    if edges:
        node = FunctionNode(cls, ctx, edges, layout, count)
        node.call = call
        for number, out in enumerate(outs):
            if not ctx._is_constant(out, out):
                out._requires_grad, out._grad_fn, out.output_nr = True, node, number
        ctx._seal(node, outs, outs)
    return outs[0] if count == 1 else outs


def _run(cls: type[Function], ctx: Context, args: tuple[Any, ...], outs: tuple[Variable, ...]) -> Any:
    """On the event-loop thread: the values and roles of the outputs, or a coroutine for them."""
    GRAD_ENABLED.set(False)  # in this call's own copy of the context
    raw = cls.forward(ctx, *args) if cls._style.takes_ctx else cls.forward(*args)
    if inspect.iscoroutine(raw):
        return _finish_async(cls, ctx, raw, outs)
    raws = _outputs(cls, raw, len(outs))
    _refuse_late_constants(cls, ctx, raws)
    ctx._seal(None, raws, outs)
    return tuple([(value.data, value.role) for value in raws])


async def _finish_async(
    cls: type[Function], ctx: Context, work: Coroutine[Any, Any, Any], outs: tuple[Variable, ...]
) -> tuple[tuple[Any, str], ...]:
    raws = _outputs(cls, await work, len(outs))
    for value in raws:
        if value._call is not None:
            await value
    _refuse_late_constants(cls, ctx, raws)
    ctx._seal(None, raws, outs)
    return tuple([(value.data, value.role) for value in raws])


def _outputs(cls: type[Function], raw: Any, count: int) -> tuple[Variable, ...]:
    values = raw if isinstance(raw, tuple) else (raw,)
    if len(values) != count:
        raise AutogradError(
            f"{cls.__name__}.forward returned {len(values)} values, but the class declares num_outputs = {count}; "
            "a dispatched Function says beforehand how many it returns"
        )
    return tuple([value if isinstance(value, Variable) else Variable(value) for value in values])


def _refuse_late_constants(cls: type[Function], ctx: Context, raws: tuple[Variable, ...]) -> None:
    if any(ctx._is_constant(raw, raw) for raw in raws):
        raise AutogradError(
            f"{cls.__name__}.forward called mark_non_differentiable after it was dispatched, when what uses its "
            "outputs was recorded already. Do it in setup_context(ctx, inputs, output), which runs at dispatch."
        )


def _unsettled(variable: Variable) -> bool:
    call = variable._call
    return call is not None and (not call.done or call.failed)


def generates_vmap_rule(function: type[Function], call: str) -> bool:
    """Whether a Function's vmap rule is generated, rather than its own.

    Raises:
        AutogradError: it has none and refuses, or has one and says that it should be generated.
    """
    own = function.vmap is not Function.vmap
    if own and function.generate_vmap_rule:
        raise AutogradError(
            f"{call}: {function.__name__} has both a static method `vmap` and generate_vmap_rule = True. "
            "Remove one of them."
        )
    if not own and function.generate_vmap_rule is False:
        raise AutogradError(
            f"{call}: {function.__name__} has no vmap rule and says generate_vmap_rule = False. Either write a static "
            "method vmap(info, in_dims, *args) -> (outputs, out_dims), or set generate_vmap_rule = True to run forward "
            "once per example."
        )
    return not own


def layout_of(args: tuple[Any, ...]) -> tuple[list[Variable], tuple[Any, ...]]:
    """The variables among the arguments, and for each argument where they stand.

    An entry of the layout is None (no variable), an index (the argument is one), or a pair of a tree's shape and the
    index or None of each of its leaves.
    """
    inputs: list[Variable] = []
    layout: list[Any] = []
    for value in args:
        if isinstance(value, Variable):
            layout.append(len(inputs))
            inputs.append(value)
        elif pytree.is_container(value):
            leaves, spec = pytree.flatten(value)
            where: list[int | None] = []
            for leaf in leaves:
                where.append(len(inputs) if isinstance(leaf, Variable) else None)
                if isinstance(leaf, Variable):
                    inputs.append(leaf)
            layout.append((spec, where))
        else:
            layout.append(None)
    return inputs, tuple(layout)


def _needs(layout: tuple[Any, ...], inputs: list[Variable]) -> tuple[bool, ...]:
    return needs_by_argument(layout, [v._requires_grad for v in inputs])


def needs_by_argument(layout: tuple[Any, ...], wanted: list[bool]) -> tuple[bool, ...]:
    """For each argument, whether a variable in it wants a gradient, from the same for each variable."""
    return tuple(
        [
            wanted[entry]
            if type(entry) is int
            else entry is not None and any(wanted[i] for i in entry[1] if i is not None)
            for entry in layout
        ]
    )


def gradients_by_variable(node: FunctionNode, returned: Any) -> list[Any]:
    """What a backward rule returned, sorted to the variables among the forward's arguments.

    Raises:
        AutogradError: the number of gradients, or the shape of one, does not fit the arguments.
    """
    layout = node.layout
    grads = returned if type(returned) is tuple else (returned,)
    if len(grads) != len(layout):
        raise AutogradError(
            f"{node.function.__name__}.backward returned {len(grads)} gradients, expected {len(layout)}: one for each "
            "argument of forward, None for those that need none"
        )
    result: list[Any] = [None] * len(node.edges)
    for position, (entry, grad) in enumerate(zip(layout, grads)):
        if grad is None or entry is None:
            continue
        if type(entry) is int:
            result[entry] = grad
            continue
        spec, where = entry
        leaves, shape = _flatten_like(spec, grad)
        if not shape:
            raise AutogradError(
                f"{node.function.__name__}.backward: the gradient for argument {position} must have that argument's "
                f"shape (or be None), got {grad!r:.80}"
            )
        for index, leaf in zip(where, leaves):
            if index is not None:
                result[index] = leaf
    return result


def _flatten_like(spec: pytree.TreeSpec, tree: Any) -> tuple[list[Any], bool]:
    """The parts of `tree` at the leaves of `spec`; a leaf's gradient may itself be a list of items."""
    if spec.kind is None:
        return [tree], True
    if tree is None:
        return [None] * _size(spec), True
    if spec.kind is dict:
        if not isinstance(tree, dict) or set(tree) != set(spec.keys):
            return [], False
        parts: list[Any] = [tree[key] for key in spec.keys]
    else:
        if not isinstance(tree, list | tuple) or len(tree) != len(spec.children):
            return [], False
        parts = list(tree)
    found: list[Any] = []
    for child, part in zip(spec.children, parts):
        leaves, fits = _flatten_like(child, part)
        if not fits:
            return [], False
        found.extend(leaves)
    return found, True


def _size(spec: pytree.TreeSpec) -> int:
    return 1 if spec.kind is None else sum(_size(child) for child in spec.children)
