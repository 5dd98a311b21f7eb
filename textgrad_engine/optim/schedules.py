"""Schedules: how many edits a step may make, as time goes on, in the shape of `torch.optim.lr_scheduler`.

The number of edits is the step size of a patch: many at first, when much is wrong, and few at the end, when each should
be judged by itself.
"""

from __future__ import annotations

import math
import sys
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from textgrad_engine.autograd.graph import Handle
from textgrad_engine.callables import check_method
from textgrad_engine.checks import SetBySuper, above, at_least, check, finite, whole
from textgrad_engine.keywords import names_told
from textgrad_engine.lazily import telling
from textgrad_engine.optim.optimizer import Optimizer

__all__ = ["ConstantEdits", "CosineEdits", "EditSchedule", "LinearEdits", "StepEdits"]

telling(__name__)

_UNSTEPPED: weakref.WeakKeyDictionary[Optimizer, dict[object, str]] = weakref.WeakKeyDictionary()
"""The schedules of an optimizer that were made, and neither stepped nor attached, by name."""


def unstepped(optimizer: Optimizer) -> list[str]:
    """The names of schedules that set an optimizer's ``max_edits`` once, as nobody has called their `step` or `attach`.

    None where hooks are called around the optimizer's steps, as these may step a schedule.

    Example:
        >>> from textgrad_engine import Variable, optim
        >>> optimizer = optim.TGD([Variable("Sort.", requires_grad=True)])
        >>> schedule = LinearEdits(optimizer, 6, 1, steps=5)
        >>> before = unstepped(optimizer)
        >>> handle = schedule.attach()
        >>> before, unstepped(optimizer)
        (['LinearEdits'], [])
    """
    hooked = optimizer._pre_hooks or optimizer._post_hooks  # which may step them
    return [] if hooked else [*dict.fromkeys(_UNSTEPPED.get(optimizer, {}).values())]


class EditSchedule:
    """Base of schedules: sets ``max_edits`` of all groups of an optimizer.

    One of your own has `edits`, and sets what that reads before it calls ``super().__init__(optimizer)``, which asks
    for the first number. Either call `step` after each step of the optimizer, as in torch, or `attach` it once, where
    somebody else calls the optimizer (`Trainer.fit`).

    Args:
        optimizer: one whose groups have ``max_edits``, such as `TGD`.

    Attributes:
        count: how many steps were counted.

    Raises:
        TypeError: a group of the optimizer has no ``max_edits``, or `edits` gives no whole number.
        ValueError: `edits` gives less than 1.

    Example:
        >>> from textgrad_engine import Variable, optim
        >>> class Warmup(EditSchedule):
        ...     def edits(self, step):
        ...         return min(4, 1 + step)
        >>> schedule = Warmup(optim.TGD([Variable("Sort.", requires_grad=True)]))
        >>> schedule.get_last_edits(), [schedule.edits(step) for step in range(5)]
        ([1], [1, 2, 3, 4, 4])
    """

    if not TYPE_CHECKING:  # for type checkers it is what __init__ sets
        optimizer = SetBySuper("super().__init__(optimizer)")

    def __init__(self, optimizer: Optimizer) -> None:
        check(EditSchedule.__init__, locals())
        if any("max_edits" not in group for group in optimizer.param_groups):
            raise TypeError(
                f"{type(self).__name__} sets max_edits of an optimizer's groups, and {type(optimizer).__name__} has no "
                "such setting; TGD has"
            )
        check_method(self, "edits", "step")
        self.optimizer = optimizer
        self.count = 0
        self._made = object()
        try:
            self._set()
        except AttributeError as error:
            if error.obj is not self:
                raise
            raise AttributeError(
                f"{type(self).__name__}.edits reads self.{error.name}, which is not there yet, as the number of the "
                "first step is asked for when the base class is made; set it before `super().__init__(optimizer)`"
            ) from error
        _UNSTEPPED.setdefault(optimizer, {})[self._made] = type(self).__name__

    def edits(self, step: int) -> int:
        """The number of edits for the step after so many others, at least 1."""
        raise NotImplementedError(f"{type(self).__name__} needs `edits`")

    def step(self) -> None:
        """Count a step that the optimizer has made, and set the number for the next one."""
        self.count += 1
        self._set()
        self._is_stepped()

    def attach(self) -> Handle:
        """Have the number set before each step of the optimizer, by the optimizer's own count; see `Handle.remove`."""

        def before(optimizer: Optimizer, *_: Any) -> None:
            self.count = optimizer.steps
            self._set()

        self._is_stepped()
        return self.optimizer.register_step_pre_hook(before)

    def get_last_edits(self) -> list[int]:
        """The number that each group has now."""
        return [int(group["max_edits"]) for group in self.optimizer.param_groups]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(count={self.count}, max_edits={self.get_last_edits()})"

    def state_dict(self) -> dict[str, Any]:
        """How far it has come, as plain data; its settings are those it was made with."""
        return {"count": self.count}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where another one was that `state_dict` was asked of."""
        self.count = int(state["count"])
        self._set()

    def _is_stepped(self) -> None:
        _UNSTEPPED.get(self.optimizer, {}).pop(getattr(self, "_made", None), None)

    def _set(self) -> None:
        number = whole(f"{type(self).__name__}.edits({self.count})", self.edits(self.count), 1)
        for group in self.optimizer.param_groups:
            group["max_edits"] = number


class ConstantEdits(EditSchedule):
    """The same number at every step.

    Args:
        optimizer: whose groups are set.
        edits: the number, at least 1.
    """

    @names_told
    def __init__(self, optimizer: Optimizer, edits: int) -> None:
        check(ConstantEdits.__init__, locals(), at_least(1, "edits"))
        self.number = edits
        super().__init__(optimizer)
        self._is_stepped()  # there is nothing to step

    def edits(self, step: int) -> int:
        """The number."""
        return self.number


class LinearEdits(EditSchedule):
    """From one number to another in equal steps, then that one.

    Args:
        optimizer: whose groups are set.
        start: the number at the first step, at least 1.
        end: the number in the end, at least 1.
        steps: after so many steps it is there.

    Example:
        >>> from textgrad_engine import Variable, optim
        >>> optimizer = optim.TGD([Variable("Sort.", requires_grad=True)])
        >>> schedule = LinearEdits(optimizer, 6, 1, steps=5)
        >>> [schedule.edits(step) for step in range(7)]
        [6, 5, 4, 3, 2, 1, 1]
    """

    @names_told
    def __init__(self, optimizer: Optimizer, start: int, end: int, steps: int) -> None:
        check(LinearEdits.__init__, locals(), at_least(1, "start", "end", "steps"))
        self.start, self.end, self.steps = start, end, steps
        super().__init__(optimizer)

    def edits(self, step: int) -> int:
        """On the line from `start` to `end`, to the nearest whole number."""
        return _rounded(self.start + (self.end - self.start) * min(step, self.steps) / self.steps)


class CosineEdits(EditSchedule):
    """From one number to another along half a cosine: slow, fast, slow; then that one.

    Source: cosine annealing without restarts, SGDR (arXiv 1608.03983).

    Args:
        optimizer: whose groups are set.
        start: the number at the first step, at least 1.
        end: the number in the end, at least 1.
        steps: after so many steps it is there.

    Example:
        >>> from textgrad_engine import Variable, optim
        >>> optimizer = optim.TGD([Variable("Sort.", requires_grad=True)])
        >>> schedule = CosineEdits(optimizer, 8, 1, steps=8)
        >>> [schedule.edits(step) for step in range(10)]
        [8, 8, 7, 6, 5, 3, 2, 1, 1, 1]
    """

    @names_told
    def __init__(self, optimizer: Optimizer, start: int, end: int, steps: int) -> None:
        check(CosineEdits.__init__, locals(), at_least(1, "start", "end", "steps"))
        self.start, self.end, self.steps = start, end, steps
        super().__init__(optimizer)

    def edits(self, step: int) -> int:
        """On the cosine from `start` to `end`, to the nearest whole number."""
        share = (1 + math.cos(math.pi * min(step, self.steps) / self.steps)) / 2
        return _rounded(self.end + (self.start - self.end) * share)


class StepEdits(EditSchedule):
    """A number that is multiplied by a factor every so many steps.

    Args:
        optimizer: whose groups are set.
        start: the number at the first step, at least 1.
        every: after so many steps it is multiplied, again and again.
        factor: above 0; below 1 the number falls, though never below 1.

    Example:
        >>> from textgrad_engine import Variable, optim
        >>> optimizer = optim.TGD([Variable("Sort.", requires_grad=True)])
        >>> schedule = StepEdits(optimizer, 8, every=2)
        >>> [schedule.edits(step) for step in range(9)]
        [8, 8, 4, 4, 2, 2, 1, 1, 1]
    """

    @names_told
    def __init__(self, optimizer: Optimizer, start: int, every: int, factor: float = 0.5) -> None:
        check(StepEdits.__init__, locals(), at_least(1, "start", "every"), above(0, "factor"), finite("factor"))
        self.start, self.every, self.factor = start, every, factor
        super().__init__(optimizer)

    def edits(self, step: int) -> int:
        """The number after the multiplications so far, to the nearest whole number."""
        try:
            return max(1, _rounded(self.start * self.factor ** (step // self.every)))
        except OverflowError:
            return sys.maxsize


def _rounded(value: float) -> int:
    return math.floor(value + 0.5 + 1e-9)  # halves go up, also where the cosine misses them by a hair
