"""The merge of two texts that descend from one: a proposer that asks nobody."""

from __future__ import annotations

from dataclasses import dataclass, replace

from textgrad_engine.llm.model import Model
from textgrad_engine.optim.between import edits_between
from textgrad_engine.optim.cells import Origin
from textgrad_engine.optim.proposers.base import Brief, Proposal, patched, second_parent
from textgrad_engine.optim.rebase import rebase


@dataclass(frozen=True)
class Merge:
    """Does to a text what was done to another candidate since their common ancestor; no model is asked.

    The candidate is the best of `Brief.others`. Where both changed a line, the line of the text itself stays;
    of a long one only where both changed the same sentence.

    Args:
        base: the text that both descend from.
        origins: of its lines, as they were then; None stands for a text that no step wrote.

    Source: the three-way merge of version control. GEPA (arXiv 2507.19457) merges two candidates too, by the whole
    prompts of a program; this merges by lines.
    """

    base: str
    origins: tuple[Origin | None, ...] | None = None

    async def propose(self, brief: Brief, model: Model, problem: str) -> Proposal:
        """Merge the two.

        Raises:
            ValueError: the brief has no other candidate.
        """
        other, other_origins = second_parent(brief)
        theirs, evidence = edits_between(self.base, other, other_origins)
        base_origins = self.origins or (None,) * (self.base.count("\n") + 1)
        rebased = rebase(theirs, self.base, brief.text, base_origins, brief.origins)
        found = patched(brief, rebased.edits, evidence)
        # The origins name the feedback; as numbers it would be taken for the brief's.
        return replace(found, edits=tuple(replace(edit, feedback=()) for edit in found.edits))
