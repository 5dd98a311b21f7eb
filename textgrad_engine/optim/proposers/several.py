"""Several candidates of one proposer: the same brief asked more than once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from textgrad_engine.checks import at_least, check
from textgrad_engine.errors import UNANSWERED, ModelError
from textgrad_engine.llm.cachekey import repeat
from textgrad_engine.llm.model import Model
from textgrad_engine.optim.proposers.base import Brief, Proposal, Proposer
from textgrad_engine.optim.proposers.proposing import propose


@dataclass(frozen=True)
class Several:
    """Up to `n` different proposals, asked for at once.

    Each is a sample of its own for the cache (`llm.repeat`). What makes them differ is the model's temperature, and the
    order of the feedback: each sees it rotated by another part, so that another item stands first. The first sees it as
    it is. Their edits are numbered alike, by the brief's step: at most one of them may be put into a text.

    Args:
        proposer: who proposes.
        n: how many are asked for.

    Raises:
        ValueError: `n` is less than 1.
    """

    proposer: Proposer
    n: int

    def __post_init__(self) -> None:
        check(Several, vars(self), at_least(1, "n"))

    async def propose_many(self, brief: Brief, model: Model) -> list[Proposal]:
        """The proposals that change the text, each once, in the order of asking.

        An answer that is not to be had (`errors.UNANSWERED`) costs its candidate and not the others.

        Returns:
            At least one; where none changes the text, a single one that says why.

        Raises:
            ModelError: no model can be asked at all, or there was not one answer.
        """
        tasks = []
        for index in range(self.n):
            with repeat(index):  # part of the cache's key
                tasks.append(asyncio.ensure_future(self._sample(index, brief, model)))
        try:
            found = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        answers = [made for made in found if isinstance(made, Proposal)]
        if not answers:
            raise next(made for made in found if not isinstance(made, Proposal))
        different = {made.text: made for made in reversed(answers) if made.text != brief.text}
        return [different[text] for text in reversed(different)] or answers[:1]

    async def _sample(self, index: int, brief: Brief, model: Model) -> Proposal | ModelError:
        shift = index * len(brief.items) // self.n
        items = brief.items[shift:] + brief.items[:shift]
        try:
            made = await propose(self.proposer, replace(brief, items=items), model)
        except UNANSWERED as error:
            return error
        edits = tuple(
            replace(edit, feedback=tuple((number - 1 + shift) % len(items) + 1 for number in edit.feedback))
            for edit in made.edits
        )
        return replace(made, edits=edits)


async def propose_many(proposer: Proposer | Several, brief: Brief, model: Model) -> list[Proposal]:
    """The proposals of `Several`, or the single one of any other proposer.

    Raises:
        ModelError: there was no answer.
    """
    if isinstance(proposer, Several):
        return await proposer.propose_many(brief, model)
    return [await propose(proposer, brief, model)]
