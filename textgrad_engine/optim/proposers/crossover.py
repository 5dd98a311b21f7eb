"""The crossover proposer: a model puts what is good in another candidate into this one, as edits of its lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from textgrad_engine.checks import at_least, check
from textgrad_engine.llm.model import Model
from textgrad_engine.optim.cells import Origin
from textgrad_engine.optim.patch import PATCH_SCHEMA, edits_from
from textgrad_engine.optim.proposers.asking import ask, shared_slots
from textgrad_engine.optim.proposers.base import Brief, Flawed, Proposal, patched, second_parent
from textgrad_engine.optim.proposers.legible import legible_edits
from textgrad_engine.optim.rebase import fold
from textgrad_engine.optim.sentences import by_sentences
from textgrad_engine.optim.showing import marked, numbered, shown_lines


@dataclass(frozen=True)
class Crossover:
    """Asks a model to merge the best of `Brief.others` into the text.

    The answer is a patch of the text, so that none of its lines is lost in copying, and what comes from the other
    candidate can be taken out again edit by edit. A line that is taken over word for word keeps the feedback that had
    asked for it. Where both descend from one known text and nothing has to be weighed, `Merge` does it without a model.

    Args:
        max_edits: at most so many edits; None allows as many as there are lines in which the two differ.

    Raises:
        ValueError: `max_edits` is less than 1.

    Source: crossover of prompts by a model, as in EvoPrompt (arXiv 2309.08532); there the child is written as a whole.
    """

    max_edits: int | None = None

    def __post_init__(self) -> None:
        check(Crossover, vars(self), at_least(1, "max_edits"))

    async def propose(self, brief: Brief, model: Model, problem: str) -> Proposal:
        """Ask for edits and make them; see `Proposer` for further errors.

        Raises:
            ValueError: the brief has no other candidate.
        """
        other, other_origins = second_parent(brief)
        lines, others = shown_lines(brief.text), shown_lines(other)
        differing = len(_unshared(lines, others)) + len(_unshared(others, lines))
        limit = max(1, differing) if self.max_edits is None else self.max_edits
        slots = shared_slots(brief, problem) | {
            "lines": numbered(brief.text),
            "sentences": by_sentences(brief.text),
            "other": marked(others, set(_unshared(others, lines))),
            "max_edits": limit,
        }
        body = legible_edits(await ask(model, "optimizer_crossover", "patch", PATCH_SCHEMA, slots), brief)
        feedback, shown = len(brief.items), [brief.text, other]
        made, problems = edits_from(body, text=brief.text, feedback=feedback, max_edits=limit, shown=shown)
        found = patched(brief, made)
        origins = _with_evidence(found.text, found.origins, brief.step, other.split("\n"), other_origins)
        found = replace(found, origins=origins)
        if problems:
            raise Flawed(problems, found)
        return found


def _unshared(lines: Sequence[str], others: Sequence[str]) -> list[str]:
    """The lines that the others do not have, but for blank ones."""
    there = {fold(line) for line in others}
    return [line for line in lines if line.strip() and fold(line) not in there]


def _with_evidence(
    text: str,
    origins: Sequence[Origin | None],
    step: int,
    others: Sequence[str],
    other_origins: Sequence[Origin | None],
) -> tuple[Origin | None, ...]:
    """The origins, where lines of this step that the other candidate has name also what had asked for them there."""
    known = {fold(line): origin.evidence for line, origin in zip(others, other_origins) if origin is not None}
    found: list[Origin | None] = []
    for line, origin in zip(text.split("\n"), origins):
        more = known.get(fold(line), ())
        if origin is not None and origin.step == step and more:
            new = (item for item in more if item not in origin.evidence)
            origin = replace(origin, evidence=(*origin.evidence, *new))
        found.append(origin)
    return tuple(found)
