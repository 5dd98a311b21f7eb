"""`Function`: the one door through which values are computed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from textgrad_engine.autograd.bottom import run_at_bottom
from textgrad_engine.autograd.context import Context
from textgrad_engine.autograd.layers import LAYERS
from textgrad_engine.autograd.variable import Variable
from textgrad_engine.callables import misfit, signature_of
from textgrad_engine.checks import whole
from textgrad_engine.errors import AutogradError


@dataclass(frozen=True, slots=True)
class _Style:
    """How a Function is written; found once a class."""

    takes_ctx: bool
    asynchronous: bool
    roles: Callable[..., Any] | None
    context: type[Context]
    """A class of its own, as CPython notes for a class which attributes its objects have. One that only comes up after
    dozens of objects, which are those of other Functions, would cost each object a dict from then on."""


class Function:
    """Base of operations with a feedback rule of their own; static methods only, used through `apply`.

    Write `forward` in either of PyTorch's two styles: ``forward(ctx, *args)``, or ``forward(*args)`` together with
    ``setup_context(ctx, inputs, output)`` (transforms take only the second). ``async def forward`` is dispatched:
    `apply` returns pending Variables at once. A plain ``def forward`` runs at once in the caller's thread.

    Attributes:
        num_outputs: how many Variables a dispatched forward returns; more than one as a tuple.
        deferrable: True for a plain forward that is quick and only reads its inputs' data: if an input is still
            pending, it runs when that is there, instead of blocking the caller.
        starts_backward: True for evaluators: a backward pass may start at its outputs without a gradient.
        collects: True if the output is the inputs together, as a batch or a sum: a pass may start there if it may start
            at each input.

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
    finds_inputs: ClassVar[bool] = False
    """Says that its forward, which is `async`, may come upon further inputs; see NOTE [Late inputs] in ``late.py``."""
    starts_backward: ClassVar[bool] = False
    collects: ClassVar[bool] = False
    of_batch: ClassVar[Literal["", "apart", "together"]] = ""
    """What only a `vmap` level does with its own values: takes them apart, or puts them together."""
    only_saves: ClassVar[bool] = False
    """Says that `setup_context` computes nothing, so that grad mode need not be switched off for it: each switch costs
    a call under way two objects."""
    backward_is_async: ClassVar[bool] = False
    _style: ClassVar[_Style]
    _own_rule: ClassVar[Any]
    """The Function that runs the static method `vmap` of this one; made where it is needed."""

    def __init__(self) -> None:
        raise AutogradError(
            f"{type(self).__name__} is a Function: it is not instantiated. Call {type(self).__name__}.apply(...)."
        )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if inspect.iscoroutinefunction(cls.setup_context):
            raise TypeError(
                f"{cls.__name__}.setup_context is an `async def`, which nobody would wait for. Write a plain def; what "
                "takes time belongs in forward, which may be `async def`."
            )
        if inspect.isgeneratorfunction(cls.forward) or inspect.isasyncgenfunction(cls.forward):
            raise TypeError(
                f"{cls.__name__}.forward has a `yield`, so a call would give a generator, which is no output. Return "
                "the outputs: Variables, one or a tuple."
            )
        whole(f"{cls.__name__}.num_outputs", cls.num_outputs, 1)
        if "setup_context" in cls.__dict__:
            _check_setup(cls)
        if "setup_context" in cls.__dict__ and "only_saves" not in cls.__dict__:
            cls.only_saves = False  # what a parent said of its own
        roles = getattr(cls, "output_role", None)
        cls._style = _Style(
            takes_ctx=cls.setup_context is Function.setup_context,
            asynchronous=inspect.iscoroutinefunction(cls.forward),
            roles=roles,
            context=type("Context", (Context,), {"__module__": Context.__module__, "__doc__": Context.__doc__}),
        )
        cls.backward_is_async = inspect.iscoroutinefunction(cls.backward)

    # NOTE [Signatures of rules]: to type checkers `**_`, and names that are by place alone, say that the rule of a
    # subclass takes whatever its arguments are. No rule is called with keywords.

    @staticmethod
    def forward(*args: Any, **_: Any) -> Any:
        """Compute the outputs: Variables, one or a tuple. To be written by every subclass."""
        raise NotImplementedError(
            "a Function needs a `forward`: a static method, forward(ctx, *args) or forward(*args)"
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save on `ctx` what `backward` needs, when `forward` does not take a ctx; run where something is recorded.

        For a dispatched forward it runs at dispatch, when `output` is still pending: save it, do not read it.
        """
        raise NotImplementedError

    @staticmethod
    def backward(ctx: Any, /, *grad_outputs: Any, **_: Any) -> Any:
        """Turn feedback on the outputs into feedback on the inputs; plain or ``async def``.

        Args:
            ctx: what forward saved, and `needs_input_grad`.
            grad_outputs: for each output one Variable: `data` is its feedback joined in order, `grad` the list of
                items. None for an output that is no Variable.

        Returns:
            For each argument of forward its gradient: a Variable, a list of them, or None (also for what needs none);
            for an argument that is a container, a container of the same shape, or None. More of them at the end must be
            None, so that arguments with a default may have one in every call. Empty text is a real zero: nothing flows
            on. A list holds items; feedback on the entries of a batch is one item, ``Variable([…])``.
        """
        raise NotImplementedError("this Function has no `backward`, so feedback cannot pass through it")

    @staticmethod
    def backward_group(ctx: Any) -> Any:
        """Which other nodes this one may share a backward call with: nodes with an equal key; None for none.

        Nodes of one group must not depend on each other. They are run together by `backward_many`, when all have
        arrived; a node whose key is ``()`` waits for no other, and is run with those that are there.
        """
        return None

    @staticmethod
    def backward_many(ctxs: list[Any], grad_outputs: list[list[Variable | None]]) -> list[Any]:
        """`backward` for several nodes at once: for each node what its `backward` would return.

        Nodes of a group come in graph order; how many of them share a call is the rule's own affair. The Variables that
        it returns are made for this call, each for one place.
        """
        raise NotImplementedError("a Function with a backward_group needs a `backward_many`")

    generate_vmap_rule: ClassVar[bool | None] = None
    """False refuses `func.vmap` unless there is a static method `vmap`; otherwise one is generated where it lacks."""

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], /, *args: Any, **_: Any) -> tuple[Any, Any]:
        """Compute the outputs of a whole batch at once; without it, forward is run once per example.

        What it does is not recorded: feedback and edits go through `backward` and `jvp`, once per example.

        Args:
            info: `batch_size` and `randomness`.
            in_dims: for each argument 0 where it is a batch (a Variable whose data is a list), None where it is not.
            args: the arguments.

        Returns:
            ``(outputs, out_dims)``: out_dims is 0 for an output that is a batch, else None; for a tuple of outputs a
            tuple, or one for all.
        """
        raise NotImplementedError

    @staticmethod
    def jvp(ctx: Any, /, *tangents: Any, **_: Any) -> Any:
        """Turn described edits of the inputs into described changes of the outputs, for `func.jvp`.

        Args:
            ctx: what `setup_context` saved; and `primals`, the arguments.
            tangents: for each argument a Variable that says how it is edited, or None where it stays; for an argument
                that is a container, a container of the same shape, or None.

        Returns:
            For each output a text or Variable that says how it changes, or None (or empty text) where it stays.
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
        if cls is Function:
            raise AutogradError("Function is the base class: subclass it and call apply on the subclass")
        if kwargs:
            args = cls._positional(args, kwargs)
        stack = LAYERS.get()
        if not stack:
            return run_at_bottom(cls, args)
        token = LAYERS.set(stack[:-1])
        try:
            return stack[-1].process(cls, args)
        finally:
            LAYERS.reset(token)

    @classmethod
    def _positional(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        signature = signature_of(cls.forward)
        try:
            bound = signature.bind(*((None,) if cls._style.takes_ctx else ()), *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{cls.__name__}.apply: {error}") from None
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(f"{cls.__name__}.apply: {', '.join(bound.kwargs)} must not be keyword-only in forward")
        return bound.args[1:] if cls._style.takes_ctx else bound.args


def _check_setup(cls: type[Function]) -> None:
    """Refuse a `setup_context` that cannot be called, when its class is made."""
    if takes := misfit(cls.setup_context, "ctx", "inputs", "output"):
        raise TypeError(
            f"{cls.__name__}.setup_context takes {takes}, and is called with (ctx, inputs, output), inputs being the "
            "tuple of what forward is given; write a static method setup_context(ctx, inputs, output)"
        )


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
