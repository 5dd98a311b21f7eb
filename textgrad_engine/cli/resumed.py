"""What a run that was resumed made of what had been paid for before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from textgrad_engine.llm.answers import Answer
from textgrad_engine.llm.charged import usage_of
from textgrad_engine.llm.money import money
from textgrad_engine.llm.response import Usage
from textgrad_engine.report.words import count, plural
from textgrad_engine.store.resume import Earlier
from textgrad_engine.train import TrainResult


@dataclass(frozen=True)
class Resumed:
    """What a run that was resumed made of what had been paid for before.

    Attributes:
        played_back: so many calls were answered by it.
        usage: what these had used.
        not_asked_again: so many recorded calls were not asked for again.
        lost: what these had used.
    """

    played_back: int
    usage: Usage
    not_asked_again: int
    lost: Usage

    @classmethod
    def of(cls, earlier: Earlier) -> Self:
        """What it made of it so far."""
        played, left = earlier.player.played, earlier.player.left
        return cls(len(played), _used(played), len(left), _used(left))

    def as_json(self) -> dict[str, Any]:
        """The same for machines."""
        return {
            "played_back": {"calls": self.played_back, "usage": self.usage.model_dump()},
            "not_asked_again": {"calls": self.not_asked_again, "usage": self.lost.model_dump()},
        }

    def in_words(self, result: TrainResult, path: Path) -> list[str]:
        """The same for people, a line each."""
        every, before = plural(result.total.calls, "call"), count(self.usage.calls)
        lines = [f"Of {every}, {before} had been paid for before{_for(self.usage)}."]
        if self.not_asked_again and result.status == "finished":
            lines.append(
                f"{plural(self.not_asked_again, 'recorded call')} did not come up again{_for(self.lost)}, as the run "
                "went another way this time (its budget had ended it elsewhere, or something has changed); what was "
                f"answered stays in {path / 'answers-*.jsonl'}."
            )
        return lines


def _for(usage: Usage) -> str:
    """What was paid, in brackets, where it is known and something."""
    return f" ({money(usage.dollars)})" if usage.dollars else ""


def _used(answers: Iterable[Answer]) -> Usage:
    used = (usage_of(each.outcome) if isinstance(each.outcome, Exception) else each.outcome.usage for each in answers)
    return sum(filter(None, used), Usage())
