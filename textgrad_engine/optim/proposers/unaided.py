"""The unaided proposer: the best text for its role that a model writes without any feedback; for controls."""

from __future__ import annotations

from dataclasses import dataclass

from textgrad_engine.llm.model import Model
from textgrad_engine.optim.proposers.asking import ask_for_text, slots_without_feedback
from textgrad_engine.optim.proposers.base import Brief, Proposal

MOST_SHOWN = 4
"""So many of the texts that were tried before are shown."""


@dataclass(frozen=True)
class Unaided:
    """Asks a model for the best text for its role. It is told of no feedback, and shown what was tried before.

    `Rewrite` is told to keep what the feedback does not speak against, and to leave the text as it is where no change
    would help. A model that obeys changes nothing where there is no feedback, and is no control for one that has it.
    """

    async def propose(self, brief: Brief, model: Model, problem: str) -> Proposal:
        """Ask for the new text; see `Proposer` for errors."""
        slots = slots_without_feedback(brief, problem)
        slots |= {"text": brief.text, "tried": list(brief.tried), "repeats": brief.repeats}
        return await ask_for_text(model, "control_rewrite", slots, brief)
