"""Twins of the transforms whose functions wait, for code that has an event loop of its own.

Each gives the function that the transform gives, to be awaited: it runs in a thread, so the loop is not blocked, with
the context variables (models, budgets, grad mode) of now. When the wait for it is cancelled, so are its calls. `jvp`,
`jacfwd`, `functional_call` and `vmap` without a `chunk_size` need none: they wait only where the function itself does,
and their results are pending.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar

from textgrad_engine.dispatch import aside
from textgrad_engine.func.columns import Dims
from textgrad_engine.func.grad import grad, grad_and_value, vjp
from textgrad_engine.func.jacobian import hessian, jacrev
from textgrad_engine.func.own_rule import Randomness
from textgrad_engine.func.pmap import pmap
from textgrad_engine.func.vmap import vmap
from textgrad_engine.keywords import names_told

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def _awaited(blocking: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    @functools.wraps(blocking)
    async def awaited(*args: P.args, **kwargs: P.kwargs) -> R:
        return await aside(functools.partial(blocking, *args, **kwargs))

    return awaited


@names_told
def apmap(
    function: Callable[[T], R], concurrency: int | None = None
) -> Callable[[Iterable[T]], Coroutine[Any, Any, list[R]]]:
    """Like `pmap`, but the function that it returns is awaited.

    Example:
        >>> import asyncio
        >>> asyncio.run(apmap(str.upper)(["a", "b"]))
        ['A', 'B']
    """
    return _awaited(pmap(function, concurrency))


@names_told
def agrad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Like `grad`, but the function that it returns is awaited.

    Example:
        >>> import asyncio
        >>> from textgrad_engine import ops
        >>> asyncio.run(agrad(lambda draft: ops.exact_match_evaluator(draft, "hello")[0])("hello")).data
        ''
    """
    return _awaited(grad(function, argnums, has_aux))


@names_told
def agrad_and_value(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Coroutine[Any, Any, tuple[Any, Any]]]:
    """Like `grad_and_value`, but the function that it returns is awaited.

    Example:
        >>> import asyncio
        >>> from textgrad_engine import ops
        >>> loss = lambda draft: ops.exact_match_evaluator(draft, "hello")[0]
        >>> gradient, value = asyncio.run(agrad_and_value(loss)("hello"))
        >>> gradient.data, value.data
        ('', 1)
    """
    return _awaited(grad_and_value(function, argnums, has_aux))


async def avjp(function: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Like `vjp`, but it is awaited, and so is the function that it returns.

    Example:
        >>> import asyncio
        >>> async def main():
        ...     out, feedback = await avjp(lambda draft: draft + "!", "hello")
        ...     return out.data, [gradient.data for gradient in await feedback("too loud")]
        >>> asyncio.run(main())
        ('hello!', ['too loud'])
    """
    outputs, vjp_fn, *aux = await aside(lambda: vjp(function, *primals, has_aux=has_aux))
    return outputs, _awaited(vjp_fn), *aux


@names_told
def ajacrev(
    function: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    feedback: str | None = None,
) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Like `jacrev`, but the function that it returns is awaited.

    Example:
        >>> import asyncio
        >>> both = ajacrev(lambda draft: [draft + "!", draft + "?"], feedback="shorter")
        >>> [gradient.data for gradient in asyncio.run(both("hello"))]
        ['shorter', 'shorter']
    """
    return _awaited(jacrev(function, argnums, has_aux, feedback))


@names_told
def ahessian(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, edit: Any = None, feedback: str | None = None
) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Like `hessian`, but the function that it returns is awaited.

    Example:
        >>> import asyncio
        >>> from textgrad_engine import ops
        >>> asyncio.run(ahessian(lambda draft: ops.exact_match_evaluator(draft, "hi")[0])("hi")).data
        ''
    """
    return _awaited(hessian(function, argnums, edit, feedback))


@names_told
def avmap(
    function: Callable[..., Any],
    in_dims: Dims = 0,
    out_dims: Dims = 0,
    randomness: Randomness | None = "error",
    chunk_size: int | None = None,
    names: Sequence[str] | None = None,
) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Like `vmap`, but the function that it returns is awaited: with a `chunk_size` it waits for each chunk.

    Example:
        >>> import asyncio
        >>> asyncio.run(avmap(lambda a: a + "!", chunk_size=1)(["x", "y"])).data
        ['x!', 'y!']
    """
    return _awaited(vmap(function, in_dims, out_dims, randomness, chunk_size, names))
