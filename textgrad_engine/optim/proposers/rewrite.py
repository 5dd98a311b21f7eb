"""The rewrite proposer: the whole text anew, as TextGrad does it; the fallback where edits of lines do not fit."""

from __future__ import annotations

from dataclasses import dataclass

from textgrad_engine.llm.model import Model
from textgrad_engine.optim.proposers.asking import ask_for_text, shared_slots
from textgrad_engine.optim.proposers.base import Brief, Proposal


@dataclass(frozen=True)
class Rewrite:
    """Asks a model for the whole new text (TextGrad, arXiv 2406.07496).

    Where no change would help, the model says so by an empty text, so that words to that effect do not become the text.

    Example:
        >>> import asyncio
        >>> from textgrad_engine.testing import ScriptedModel
        >>> model = ScriptedModel([{"text": "", "reason": "It says all that the feedback asks for."}])
        >>> brief = Brief(role="prompt", text="Sort.", origins=(None,))
        >>> asyncio.run(Rewrite().propose(brief, model, "")).text
        'Sort.'
    """

    async def propose(self, brief: Brief, model: Model, problem: str) -> Proposal:
        """Ask for the new text; see `Proposer` for errors."""
        slots = shared_slots(brief, problem) | {"text": brief.text, "examples": list(brief.examples)}
        evidence = [item.evidence for item in brief.items]
        return await ask_for_text(model, "optimizer_rewrite", slots, brief, evidence, may_stay=True)
