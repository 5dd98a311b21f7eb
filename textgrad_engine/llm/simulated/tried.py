"""Requests for a new text without feedback: in other words, or better than texts that were tried with their scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from textgrad_engine.llm.simulated.critic import criticize
from textgrad_engine.llm.simulated.optimizer import rewrite
from textgrad_engine.llm.simulated.reading import Case, Item, Task, blocks


@dataclass(frozen=True)
class Tried:
    """A request to write a better text (the prompt ``optimizer_scores``).

    Attributes:
        texts: what was tried, the best last.
        tasks: of each task that is shown the input and the right answer.
    """

    texts: tuple[str, ...]
    tasks: tuple[tuple[str, str], ...]


def original_in(user: str) -> str | None:
    """The text that is to be said in other words; None when nothing of the kind is asked."""
    return next((content for _, label, content in blocks(user) if label == "original"), None)


def tried_in(user: str) -> Tried | None:
    """What was tried and the tasks that are shown; None when nothing of the kind is asked."""
    texts: list[str] = []
    tasks: list[tuple[str, str]] = []
    inputs: list[str] = []
    for before, label, content in blocks(user):
        if label == "tried" and "tried before" not in before:  # what became of edits is told in any request
            texts.append(content)
        elif label == "input":
            inputs.append(content)
        elif label == "target":
            tasks.append(("\n".join(inputs), content))
            inputs = []
    return Tried(tuple(texts), tuple(tasks)) if texts else None


def better_than_tried(tried: Tried, seed: int) -> dict[str, Any]:
    """The best text that was tried, with what the tasks teach beside it, in the shape of the format "rewrite"."""
    best = tried.texts[-1]
    said = []
    for ticket, queue in tried.tasks:
        case = Case([("system", (), best), ("user", (), ticket)], "", [f"expected: {queue}"])
        said.append(criticize(case, seed))
    items = tuple(Item(number, 1, text) for number, text in enumerate(filter(None, said), 1))
    return rewrite(Task(tuple(best.split("\n")), items, (), 4, ""), seed)
