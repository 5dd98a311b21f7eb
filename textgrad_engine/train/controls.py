"""What the controls of a run came to: searches from the seed prompt without feedback, beside its optimizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from textgrad_engine.attributes import attributes_told
from textgrad_engine.llm.response import Usage
from textgrad_engine.train.comparison import Comparison
from textgrad_engine.train.evaluation import Evaluation

CONTROLS = ("rewrites without feedback", "random edits")
"""The names of the controls."""


@attributes_told
@dataclass(frozen=True)
class Control:
    """The result of one control.

    Attributes:
        name: what it did, in words.
        best: the texts that it selected on the validation set, by dotted name; the seed texts when none did better.
        val: `best` on the validation set; None if the run ended before that.
        test: `best` on the test set; None without a test set, or if the run ended before that.
        comparison: the optimizer's best texts against these; None when they were not both evaluated.
        compared_on: the set that `comparison` is about. On the validation set it flatters both.
        tried: how many texts it raced.
        kept: how many of these it kept.
        usage: what its search used.
        problem: in words why it ended early; "" when it did not.
    """

    name: str
    best: dict[str, str]
    val: Evaluation | None
    test: Evaluation | None
    comparison: Comparison | None
    compared_on: Literal["test", "val"] | None
    tried: int
    kept: int
    usage: Usage
    problem: str = ""


@attributes_told
@dataclass(frozen=True)
class Controls:
    """The controls of a run.

    Attributes:
        optimizer: the name of the optimizer that they stand beside.
        calls: how many calls it used before the test set was opened, and each control at most for its search.
        usage: what these calls of the optimizer's used.
        each: the controls.
        problem: why a budget had no room for them beside the search, or none for a step beside them, in words; else "".
    """

    optimizer: str
    calls: int
    usage: Usage
    each: tuple[Control, ...] = ()
    problem: str = ""
