"""`Written`: what was proposed for one parameter, as plain data, so that a search can be saved with it."""

from __future__ import annotations

from dataclasses import dataclass

from textgrad_engine.autograd import Variable
from textgrad_engine.optim.change import Change
from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.optim.patch import Edit


@dataclass(frozen=True)
class Written:
    """What was written for one parameter: a `Change` as plain data.

    Attributes:
        parameter: which one, by position.
        before: the text that it was made of.
        after: the text that was proposed.
        edits: the edits of `before`, where it was made by edits.
        items: the feedback that the proposer was shown.
        left_out: how many items there was no room for.
        problem: why it was dropped, "" when it was not.
        refused: the text that was dropped, where there was one.
    """

    parameter: int
    before: str
    after: str
    edits: tuple[Edit, ...] = ()
    items: tuple[FeedbackItem, ...] = ()
    left_out: int = 0
    problem: str = ""
    refused: str = ""

    @classmethod
    def of(cls, change: Change, parameter: int) -> Written:
        """A change of the parameter at a position."""
        told = change.edits, change.items, change.left_out, change.problem, change.refused
        return cls(parameter, change.before, change.after, *told)

    def change(self, variable: Variable) -> Change:
        """The other way round of `of`."""
        told = self.edits, self.items, self.left_out, self.problem, self.refused
        return Change(variable, self.before, self.after, *told)
