"""Parts of optimizers as a config file names them: feedback transforms, schedules of the edits, demonstrations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from textgrad_engine.cli.settings import Section
from textgrad_engine.optim.optimizer import Optimizer
from textgrad_engine.optim.schedules import CosineEdits, EditSchedule, LinearEdits, StepEdits
from textgrad_engine.optim.transforms import (
    FeedbackTransform,
    cap,
    cluster,
    dedupe,
    newest_first,
    summarise,
    worst_first,
)

_PLAIN: dict[str, Callable[[], FeedbackTransform]] = {
    "dedupe": dedupe,
    "cluster": cluster,
    "worst_first": worst_first,
    "newest_first": newest_first,
}
"""Transforms that a name alone stands for."""

_WITH_NUMBER: dict[str, tuple[Any, Callable[[Any], FeedbackTransform]]] = {
    "cluster": (int | float, cluster),
    "summarise": (int, summarise),
    "cap": (int, cap),
}
"""Transforms that take a number, with its kind."""


def transforms_of(given: Sequence[Any]) -> list[FeedbackTransform]:
    """The transforms that a list in a config file names, in its order.

    Args:
        given: names, and tables of a name and its number.

    Raises:
        ValueError: there is no such transform, or its number is missing, one too many, or out of range.

    Example:
        >>> transforms_of(["dedupe", {"summarise": 8}])
        [Dedupe(), Summarise(max_items=8)]
    """
    return [_transform(each) for each in given]


def _transform(given: Any) -> FeedbackTransform:
    if isinstance(given, str) and given in _PLAIN:
        return _PLAIN[given]()
    if isinstance(given, dict) and len(given) == 1:
        ((name, number),) = given.items()
        if name in _WITH_NUMBER:
            kinds, make = _WITH_NUMBER[name]
            if isinstance(number, bool) or not isinstance(number, kinds):
                raise ValueError(f"{name} takes a {'whole ' if kinds is int else ''}number, got {number!r}")
            return make(number)
    plain, numbered = ", ".join(map(repr, _PLAIN)), ", ".join(f"{{{name} = ...}}" for name in _WITH_NUMBER)
    raise ValueError(f"{given!r} is none of {plain}, {numbered}")


def _can_be_made(given: list[Any]) -> list[Any]:
    transforms_of(given)
    return given


Transforms: TypeAlias = Annotated[list[Any], AfterValidator(_can_be_made)]
"""The key ``transforms``: what happens to feedback before it is shown, in this order."""


class Schedule(Section):
    """How `max_edits`, which is what the first step has, changes with the steps.

    ``linear`` and ``cosine`` come to `end` after so many `steps`; ``step`` multiplies by `factor` every so many steps.
    """

    shape: Literal["linear", "cosine", "step"] = "linear"
    end: Annotated[int, Field(gt=0)] | None = None
    steps: Annotated[int, Field(gt=0)] | None = None
    every: Annotated[int, Field(gt=0)] | None = None
    factor: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _fits_its_shape(self) -> Self:
        wants, takes = ("every", ("every", "factor")) if self.shape == "step" else ("steps", ("steps", "end"))
        for key in ("end", "steps", "every", "factor"):
            if getattr(self, key) is not None and key not in takes:
                raise ValueError(f"{key} means nothing to a schedule of the shape {self.shape!r}; take it out")
        if getattr(self, wants) is None:
            raise ValueError(f"a schedule of the shape {self.shape!r} wants {wants} = 10, or another number")
        return self

    def on(self, optimizer: Optimizer, start: int) -> EditSchedule:
        """The schedule, attached to an optimizer.

        Args:
            optimizer: whose edits it sets.
            start: the number for the first step.
        """
        made: EditSchedule
        if self.shape == "step":
            assert self.every is not None
            made = StepEdits(optimizer, start, self.every, 0.5 if self.factor is None else self.factor)
        else:
            assert self.steps is not None
            kind = LinearEdits if self.shape == "linear" else CosineEdits
            made = kind(optimizer, start, 1 if self.end is None else self.end, self.steps)
        made.attach()
        return made
