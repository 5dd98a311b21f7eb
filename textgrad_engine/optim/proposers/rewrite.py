"""The rewrite proposer: the whole text anew, as TextGrad does it; the fallback where edits of lines do not fit."""

from __future__ import annotations

from dataclasses import dataclass

from textgrad_engine.llm.model import Model
from textgrad_engine.optim.patch import REWRITE_SCHEMA, origins_of_rewrite
from textgrad_engine.optim.proposers.base import Brief, Proposal, ask, shared_slots

__all__ = ["Rewrite"]


@dataclass(frozen=True)
class Rewrite:
    """Asks a model for the whole new text (TextGrad, arXiv 2406.07496)."""

    async def propose(self, brief: Brief, model: Model, problem: str) -> Proposal:
        """Ask for the new text; see `Proposer` for errors."""
        slots = shared_slots(brief, problem) | {"text": brief.text, "examples": list(brief.examples)}
        body = await ask(model, "optimizer_rewrite", "rewrite", REWRITE_SCHEMA, slots)
        text = str(body["text"]).strip("\n")
        if text == brief.text.strip("\n"):  # line ends around the text are no change
            text = brief.text
        evidence = [item.evidence for item in brief.items]
        origins = origins_of_rewrite(brief.text, brief.origins, text, body["reason"], evidence, brief.step)
        return Proposal(text, tuple(origins))
