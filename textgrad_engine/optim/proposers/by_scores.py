"""The proposer that learns from scores alone: it is shown what was tried and how well it did."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from textgrad_engine.checks import at_least, check
from textgrad_engine.llm import tokens
from textgrad_engine.llm.model import Model
from textgrad_engine.optim.proposers.asking import ask_for_text, slots_without_feedback
from textgrad_engine.optim.proposers.base import Brief, Proposal


@dataclass(frozen=True)
class ByScores:
    """Asks a model for a new text, from `Brief.others` with their scores, ascending, and from `Brief.demos`.

    Args:
        max_tokens: at most so many tokens of texts that were tried; those with the lowest scores are left out first.
        limits: the worst and the best score that there can be; None where nobody knows.

    Raises:
        ValueError: `max_tokens` is less than 1.

    Source: the meta-prompt of OPRO (arXiv 2309.03409), in words of our own.
    """

    max_tokens: int = 8000
    limits: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        check(ByScores, vars(self), at_least(1, "max_tokens"))

    async def propose(self, brief: Brief, model: Model, problem: str) -> Proposal:
        """Ask for a new text; see `Proposer` for errors."""
        known = [(text, score) for text, score in brief.others if score is not None]
        ranked = sorted(known, key=lambda each: each[1])
        while len(ranked) > 1 and sum(tokens.count(text) for text, _ in ranked) > self.max_tokens:
            del ranked[0]
        scores = shown_scores([score for _, score in ranked], self.limits)
        slots = {
            "tried": [{"text": text, "score": score, "of": of} for (text, _), (score, of) in zip(ranked, scores)],
            "demos": [asdict(demo) for demo in brief.demos],
            **slots_without_feedback(brief, problem),
        }
        return await ask_for_text(model, "optimizer_scores", slots, brief)


def shown_scores(scores: Sequence[float], limits: tuple[float, float] | None = None) -> list[tuple[str, str]]:
    """Scores as the model sees them, each with the best that there can be, "" where nobody knows that.

    Those with limits are percents of the way from the worst to the best, as accuracies are in the paper, and so are
    those that are all between 0 and 1; what was paid for tokens and seconds may bring them below 0. Whole ones would
    hide what differs on a scale of which little is used, so these and all others have three digits.

    Args:
        scores: the scores.
        limits: the worst and the best score that there can be; None where nobody knows, infinite where there is none.

    Example:
        >>> shown_scores([0.5, 0.614]), shown_scores([0.5], (0.0, 10.0)), shown_scores([2.5, 3.14159])
        ([('50', '100'), ('61', '100')], [('5', '100')], [('2.5', ''), ('3.14', '')])
    """
    if limits is None and all(0 <= score <= 1 for score in scores):
        limits = 0.0, 1.0
    if limits is None or not all(map(math.isfinite, limits)):
        return [(f"{score:.3g}", "") for score in scores]
    worst, best = limits
    digits = ".0f" if limits == (0, 1) else ".3g"
    return [(f"{100 * (score - worst) / (best - worst):{digits}}", "100") for score in scores]
