"""Whether an optimizer of a user's own can do what a run asks of it; looked at before anybody is asked."""

from __future__ import annotations

from collections.abc import Mapping

from textgrad_engine.callables import check_method
from textgrad_engine.checks import whole
from textgrad_engine.errors import ReturnError
from textgrad_engine.optim.optimizer import Optimizer
from textgrad_engine.optim.search.searcher import Searcher

_NEEDED = ("steps", "param_groups")
"""What a run reads of a state when it takes a step back."""


def check_shape(optimizer: Optimizer) -> None:
    """Refuse an optimizer that would end a run at its first step, or at the first one that is taken back.

    Raises:
        TypeError: it has no `step`, a method takes something else than it is given, or `candidates` is no whole number.
        ValueError: `candidates` is less than 1.
        ReturnError: what `state_dict` gives is no state.

    Example:
        >>> from textgrad_engine import nn
        >>> class Still(Optimizer):
        ...     def step(self): ...
        >>> check_shape(Still([nn.Parameter("Sort.")], {}))
        >>> Still.candidates = 2
        >>> check_shape(Still([nn.Parameter("Sort.")], {}))
        Traceback (most recent call last):
        TypeError: Still.step takes (), and is called with (objective); write `def step(self, closure=None)`
    """
    kind = type(optimizer)
    if kind.step is Optimizer.step and kind._step is Optimizer._step:
        raise TypeError(
            f"{kind.__name__} needs a `step` that changes its parameters; write `def step(self, closure=None)`"
        )
    searches = isinstance(optimizer, Searcher)
    given = ["objective"] if whole(f"{kind.__name__}.candidates", optimizer.candidates, 1) > 1 or searches else []
    check_method(optimizer, "step", *given, written="self, closure=None")
    check_method(optimizer, "state_dict")
    check_method(optimizer, "load_state_dict", "state")
    if searches:  # a run takes nothing back of one
        return
    state: object = optimizer.state_dict()
    missing = [name for name in _NEEDED if name not in state] if isinstance(state, Mapping) else []
    if missing or not isinstance(state, Mapping):
        what = f"a state without {' and '.join(map(repr, missing))}" if missing else f"{state!r:.60}"
        raise ReturnError(
            f"{kind.__name__}.state_dict() gave {what}, by which a step that is not kept could not be taken back; "
            "return {**super().state_dict(), ...}, and call super().load_state_dict(state) in load_state_dict"
        )
