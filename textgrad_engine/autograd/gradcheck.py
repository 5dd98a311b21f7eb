"""`gradcheck`: tells the author of a Function whether its backward rule is sound.

The shape is that of `torch.autograd.gradcheck`, and of `check_grads` in HIPS autograd: the library ships its own proof,
and a failure shows what was expected and what came. Words have no numerical derivative to compare with; what can be
checked is where they go. So marks are put into feedback and inputs, and must turn up where a sound rule brings them.
"""

from __future__ import annotations

import functools
import importlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from textgrad_engine.autograd.gradcheck_checks import Checks
from textgrad_engine.autograd.rehearsal import OBSERVE, Observe, Rehearsal
from textgrad_engine.checks import check
from textgrad_engine.dispatch import aside, waits
from textgrad_engine.errors import AutogradError
from textgrad_engine.keywords import names_told


@waits("await autograd.agradcheck(...)")
@names_told
def gradcheck(
    fn: Callable[..., Any],
    inputs: Any,
    *,
    raise_exception: bool = True,
    symmetric: bool | Sequence[tuple[int, int]] = False,
    vary_inputs: bool = True,
    check_values: bool = True,
    observe: Observe | None = None,
) -> bool:
    """Check the backward rule of a Function, or of a program made of several.

    It runs the function some twenty times on copies of the inputs; no `.grad` is touched. Calls of models that are
    chosen by `use_models` are answered by a stand-in that costs nothing. It checks that

    - every input that wants feedback gets some, together with the others and alone;
    - the rule listens to each of several outputs, to one that has feedback alone and to all together;
    - what is said about the output, every item of it, reaches every gradient, in order: through the critic's prompt
      where a critic is asked; of a batch, what is said about each entry reaches a gradient;
    - the critic is shown the value of the input that it is asked about; without a critic, two gradients that differ
      only in the other input's value, which each of them shows instead of its own, are taken for crossed;
    - a result used twice accumulates in the order of its uses; interchangeable inputs get interchangeable feedback;
    - empty feedback is a true zero, and asks nobody; the start of a pass at a number, which has no words either, is
      none;
    - requests and gradients are the same, byte by byte, when it is repeated and in whatever order models answer;
    - closing tags, template braces and control characters, in feedback and in inputs, come through as they are: into
      each gradient, or into the request whose answer it is.

    Of a loss (what begins a backward pass by itself) the feedback is its own, and no marks are looked for in it; check
    it on inputs that it criticizes.

    Args:
        fn: takes Variables, returns Variables: ``Shout.apply``, a function, a module.
        inputs: its arguments: one Variable, or a tuple or list of arguments, in which Variables may stand inside
            lists and dicts. The Variables with requires_grad=True are checked.
        raise_exception: False returns False instead of raising.
        symmetric: True when the inputs that are checked are interchangeable, or the pairs of their numbers that are.
        vary_inputs: False leaves the inputs as they are, for a function that accepts only certain texts; then hostile
            text is not tried in them.
        check_values: False where the critic cannot be shown the inputs themselves, e.g. because they were
            rewritten on the way to the model, and where gradients tell each input the value of the other.
        observe: makes the stand-in for models; see `rehearsal.Observed`.

    Returns:
        Whether all is well.

    Raises:
        AutogradError: something is not; every finding is named, with what was expected and what came.
        ValueError: no input wants feedback, or `symmetric` names inputs that there are not.

    Example:
        >>> from textgrad_engine import Function, Variable
        >>> class Shout(Function):
        ...     @staticmethod
        ...     def forward(ctx, text):
        ...         return Variable(text.data.upper(), role=text.role)
        ...     @staticmethod
        ...     def backward(ctx, grad_out):
        ...         return f"(before shouting) {grad_out.data}"
        >>> gradcheck(Shout.apply, Variable("hello", role="greeting", requires_grad=True))
        True
    """
    check(gradcheck, locals() | {"symmetric": False, "observe": None})
    if observe is None:
        if not OBSERVE:
            importlib.import_module("textgrad_engine.ops.echo")  # by name: the import statement would point upwards
        observe = OBSERVE[0]
    rehearsal = Rehearsal(fn, tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,), observe)
    if not rehearsal.leaves:
        raise ValueError("gradcheck: no input wants feedback; give at least one Variable with requires_grad=True")
    checks = Checks(rehearsal, vary_inputs, check_values, _pairs(symmetric, len(rehearsal.leaves)))
    checks.all()
    if checks.findings and raise_exception:
        found = "\n".join(f"- {finding}" for finding in checks.findings)
        raise AutogradError(f"gradcheck of {_name(fn)} found:\n{found}") from checks.cause
    return not checks.findings


async def agradcheck(*args: Any, **kwargs: Any) -> bool:
    """`gradcheck` for code that has an event loop of its own; the loop is not blocked.

    Example:
        >>> import asyncio
        >>> from textgrad_engine import Variable
        >>> asyncio.run(agradcheck(Variable.clone, Variable("hello", requires_grad=True)))
        True
    """
    return await aside(functools.partial(gradcheck, *args, **kwargs))


def _name(fn: Callable[..., Any]) -> str:
    owner = getattr(fn, "__self__", None)
    if isinstance(owner, type):  # Shout.apply
        return f"{owner.__name__}.{fn.__name__}"
    return getattr(fn, "__qualname__", None) or type(fn).__name__


def _pairs(symmetric: bool | Sequence[tuple[int, int]], count: int) -> list[tuple[int, int]]:
    """The pairs of inputs that are interchangeable."""
    if isinstance(symmetric, bool):
        return list(itertools.pairwise(range(count))) if symmetric else []
    for number in itertools.chain.from_iterable(symmetric):
        if not 0 <= number < count:
            raise ValueError(
                f"gradcheck: symmetric names input {number}; {count} want feedback, numbered from 0 in their order"
            )
    return list(symmetric)
