"""The proposer that learns from scores alone: it is shown what was tried and how well it did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from textgrad_engine.llm import tokens
from textgrad_engine.llm.model import Model
from textgrad_engine.optim.proposers import Brief, Proposal
from textgrad_engine.optim.proposers.base import ask_for_text, shared_slots

__all__ = ["ByScores", "shown_scores"]


@dataclass(frozen=True)
class ByScores:
    """Asks a model for a new text, from `Brief.others` with their scores, ascending, and from `Brief.demos`.

    Args:
        max_tokens: at most so many tokens of texts that were tried; those with the lowest scores are left out first.

    Raises:
        ValueError: `max_tokens` is less than 1.

    Source: the meta-prompt of OPRO (arXiv 2309.03409), in words of our own.
    """

    max_tokens: int = 8000

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, got {self.max_tokens}")

    async def propose(self, brief: Brief, model: Model, problem: str) -> Proposal:
        """Ask for a new text; see `Proposer` for errors."""
        known = [(text, score) for text, score in brief.others if score is not None]
        ranked = sorted(known, key=lambda each: each[1])
        while len(ranked) > 1 and sum(tokens.count(text) for text, _ in ranked) > self.max_tokens:
            del ranked[0]
        scores = shown_scores([score for _, score in ranked])
        shared = shared_slots(brief, problem)
        slots = {
            "tried": [{"text": text, "score": score} for (text, _), score in zip(ranked, scores)],
            "demos": [asdict(demo) for demo in brief.demos],
            **{name: shared[name] for name in ("role", "constraints", "problem", "refused")},
        }
        return await ask_for_text(model, "optimizer_scores", slots, brief)


def shown_scores(scores: Sequence[float]) -> list[str]:
    """Scores as the model sees them: whole percents where all are between 0 and 1, as in the paper, else three digits.

    Example:
        >>> shown_scores([0.5, 0.614]), shown_scores([2.5, 3.14159])
        (['50', '61'], ['2.5', '3.14'])
    """
    if all(0 <= score <= 1 for score in scores):
        return [f"{100 * score:.0f}" for score in scores]
    return [f"{score:.3g}" for score in scores]
