"""The feedback on a parameter as an optimizer sees it: each thing once, whole, within a token budget."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from textgrad_engine.autograd import Variable
from textgrad_engine.llm import tokens
from textgrad_engine.optim.patch import Evidence

__all__ = ["FeedbackItem", "gather"]


@dataclass(frozen=True)
class FeedbackItem:
    """One thing that was said about a parameter.

    Attributes:
        text: what was said.
        times: how often it was said.
        answer: the answer that it was said about, when it was said once; shortened to `ANSWER_LENGTH` characters.
        examples: the examples where it was said.
    """

    text: str
    times: int
    answer: str
    examples: tuple[str, ...]

    @property
    def evidence(self) -> Evidence:
        """What a line's origin keeps of it."""
        return Evidence(self.text, self.examples)


ANSWER_LENGTH = 400


def gather(gradient: Iterable[Variable], max_tokens: int) -> tuple[list[FeedbackItem], int]:
    """The items of a gradient: equal texts become one, and what passes the budget is left out whole.

    Args:
        gradient: the feedback Variables, in order.
        max_tokens: the budget for all texts and answers together. Items that were said most often go first, then those
            that came first; at least one is kept.

    Returns:
        The items in the order of the gradient, and how many were left out.
    """
    found: dict[str, list[Variable]] = {}
    for variable in gradient:
        text = str(variable.data).strip()
        if text:
            found.setdefault(" ".join(text.split()), []).append(variable)
    items = [_item(variables) for variables in found.values()]
    ranked = sorted(range(len(items)), key=lambda n: (-items[n].times, n))
    kept: set[int] = set()
    spent = 0
    for number in ranked:
        cost = tokens.count(items[number].text) + tokens.count(items[number].answer)
        if kept and spent + cost > max_tokens:
            continue
        kept.add(number)
        spent += cost
    return [items[n] for n in sorted(kept)], len(items) - len(kept)


def _item(variables: list[Variable]) -> FeedbackItem:
    sources = [variable.source for variable in variables if variable.source is not None]
    names = [source.example for source in sources if source.example]
    answer = sources[0].output if len(variables) == 1 and sources else ""
    if len(answer) > ANSWER_LENGTH:
        answer = f"{answer[:ANSWER_LENGTH]} […{len(answer) - ANSWER_LENGTH:,} more characters]"
    return FeedbackItem(str(variables[0].data).strip(), len(variables), answer, tuple(dict.fromkeys(names)))
