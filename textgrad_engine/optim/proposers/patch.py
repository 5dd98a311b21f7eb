"""The patch proposer: a short list of edits to numbered lines, each with its reason and the feedback it answers."""

from __future__ import annotations

from dataclasses import dataclass

from textgrad_engine.checks import at_least, check
from textgrad_engine.llm.model import Model
from textgrad_engine.optim.patch import PATCH_SCHEMA, edits_from
from textgrad_engine.optim.proposers.asking import ask, shared_slots
from textgrad_engine.optim.proposers.base import Brief, Flawed, Proposal, patched
from textgrad_engine.optim.proposers.legible import legible_edits
from textgrad_engine.optim.sentences import by_sentences
from textgrad_engine.optim.showing import numbered


@dataclass(frozen=True)
class Patch:
    """Asks a model for edits of numbered lines.

    Lines that no edit names stay as they are, so a long text is neither paid for again nor lost by the way; each new
    line is traced to the feedback that asked for it.

    Args:
        max_edits: at most so many edits; None takes the brief's.

    Raises:
        ValueError: `max_edits` is less than 1.
    """

    max_edits: int | None = None

    def __post_init__(self) -> None:
        check(Patch, vars(self), at_least(1, "max_edits"))

    async def propose(self, brief: Brief, model: Model, problem: str) -> Proposal:
        """Ask for edits and make them; see `Proposer` for errors."""
        limit = brief.max_edits if self.max_edits is None else self.max_edits
        slots = shared_slots(brief, problem) | {
            "lines": numbered(brief.text),
            "sentences": by_sentences(brief.text),
            "max_edits": limit,
            "examples": list(brief.examples),
        }
        body = await ask(model, "optimizer_patch", "patch", PATCH_SCHEMA, slots)
        made, problems = edits_from(
            legible_edits(body, brief),
            text=brief.text,
            feedback=len(brief.items),
            max_edits=limit,
            shown=[brief.text, *brief.examples],
        )
        found = patched(brief, made)
        if problems:
            raise Flawed(problems, found)
        return found
