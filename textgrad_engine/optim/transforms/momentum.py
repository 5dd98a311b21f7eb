"""`momentum`: the optimizer is shown what it tried before, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from textgrad_engine.checks import at_least, check
from textgrad_engine.optim.telling import Tried, is_there
from textgrad_engine.optim.transforms.base import Context, Gathered, Updated


@dataclass(frozen=True)
class Momentum:
    """See `momentum`."""

    window: int

    def init(self) -> dict[str, Any]:
        """No past."""
        return {"past": []}

    async def update(self, gathered: Gathered, state: dict[str, Any], context: Context) -> Updated:
        """Put the past behind the history that is there (the prompt ``past_edit``).

        When an edit is first shown, it is noted which of its lines are in the text. What was not, as it was taken back,
        and is there now, was kept as part of another edit: it is shown no longer, as its outcome is not true any more.
        """
        known = is_there(context.text)
        past, told = [], []
        for edit in state["past"][-self.window :]:
            there = [known(line) for line in edit["lines"]]
            past.append({"there": there, **edit})
            told += [
                Tried(0, line, edit["outcome"]).said()
                for line, before, now in zip(edit["lines"], past[-1]["there"], there)
                if before or not now
            ]
        return replace(gathered, history=(*gathered.history, *told)), {"past": past}

    def record(self, state: dict[str, Any], lines: Sequence[str], outcome: str) -> dict[str, Any]:
        """Remember an edit; what leaves the window is forgotten."""
        past = [*state["past"], {"lines": list(lines), "outcome": outcome}]
        return {"past": past[-self.window :]}


def momentum(window: int) -> Momentum:
    """A window of past edits and what became of them goes into `Gathered.history`, oldest first.

    Torch's momentum keeps a direction; words have no sum, so that what is kept are the steps themselves: one that was
    taken back is as much worth knowing as one that was kept.

    Args:
        window: how many edits are remembered, at least 1.

    Raises:
        ValueError: the window is below 1.

    Example:
        >>> momentum(2).record(momentum(2).init(), ["added 'Be brief.'"], "taken back")
        {'past': [{'lines': ["added 'Be brief.'"], 'outcome': 'taken back'}]}
    """
    check(momentum, locals(), at_least(1, "window"))
    return Momentum(window)
