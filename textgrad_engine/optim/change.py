"""What a step did to one parameter."""

from __future__ import annotations

from dataclasses import dataclass, field

from textgrad_engine.attributes import attributes_told
from textgrad_engine.autograd import Variable
from textgrad_engine.checks import check
from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.optim.patch import Edit


@attributes_told
@dataclass(frozen=True)
class Change:
    """What a step did to one parameter.

    Attributes:
        variable: the parameter.
        before: its text before the step.
        after: its text after the step; the same as `before` if nothing was changed.
        edits: the edits, in patch mode.
        items: the feedback that the optimizer was shown.
        left_out: how many items of feedback did not fit into `max_feedback_tokens`.
        problem: why the proposal was dropped; "" if it was used.
        refused: the text that was dropped, if any.

    Raises:
        TypeError: one of these is of another kind.
    """

    variable: Variable
    before: str = field(repr=False)
    after: str = field(repr=False)
    edits: tuple[Edit, ...] = ()
    items: tuple[FeedbackItem, ...] = field(default=(), repr=False)
    left_out: int = 0
    problem: str = ""
    refused: str = ""

    def __post_init__(self) -> None:
        check(Change, vars(self))
