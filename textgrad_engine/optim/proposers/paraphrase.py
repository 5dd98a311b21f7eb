"""The paraphrase proposer: the same text in other words."""

from __future__ import annotations

from dataclasses import dataclass

from textgrad_engine.llm.model import Model
from textgrad_engine.optim.proposers.asking import ask_for_text, slots_without_feedback
from textgrad_engine.optim.proposers.base import Brief, Proposal


@dataclass(frozen=True)
class Paraphrase:
    """Asks a model to say the text in other words; it is told of no feedback.

    Source: the Monte-Carlo successors of ProTeGi (arXiv 2305.03495), which explore the neighbourhood of a text.
    """

    async def propose(self, brief: Brief, model: Model, problem: str) -> Proposal:
        """Ask for the text in other words; see `Proposer` for errors."""
        slots = {"text": brief.text, **slots_without_feedback(brief, problem)}
        return await ask_for_text(model, "optimizer_paraphrase", slots, brief)
