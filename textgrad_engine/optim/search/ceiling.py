"""When nothing better can be shown: all validation examples have the best score that there can be."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from textgrad_engine.optim.search.marks import marks_of

if TYPE_CHECKING:
    from textgrad_engine.optim.search.objective import Objective


def nothing_to_show(objective: Objective, scores: Collection[float], beside: Collection[float] = ()) -> str:
    """Why no texts can be shown to be better than the best ones, in words; "" where some can.

    What is left then are feedback and proposals that are refused whatever they say. A shorter text that does as well
    could be kept, which `shrink` looks for without either. Where tokens or seconds count beside the score, texts can
    always be better.

    Args:
        objective: says what counts.
        scores: those of the best texts, of all validation examples that were answered.
        beside: other scores that were seen, which may be higher where the loss names no scale.

    Example:
        >>> from textgrad_engine import nn
        >>> from textgrad_engine.train import Objective
        >>> program = nn.ChatCompletion("{word}", nn.Parameter("Repeat.", role="system prompt"))
        >>> objective = Objective(program, nn.ExactMatch(), [{"word": "a", "target": "a"}])
        >>> print(nothing_to_show(objective, [1.0, 1.0]))
        all 2 validation examples have the best score, 1, so it ended; harder ones would tell more
        >>> nothing_to_show(objective, [0.5, 1.0])
        ''
    """
    marks = marks_of(objective.scale, [*scores, *beside])
    charged = objective.tokens_weight or objective.latency_weight
    if not scores or not marks.known or min(scores) < marks.top or charged:
        return ""
    which = "answered validation" if len(scores) < len(objective.val) else "validation"
    each = f"the only {which} example has" if len(scores) == 1 else f"all {len(scores)} {which} examples have"
    return f"{each} the best score, {marks.top:g}, so it ended; harder ones would tell more"
