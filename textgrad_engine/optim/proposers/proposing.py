"""A proposal that can be made and keeps its contracts: one that does not is asked for once more."""

from __future__ import annotations

from dataclasses import replace

from textgrad_engine import dispatch
from textgrad_engine.errors import ContractError, ReturnError
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.resolve import is_resolved
from textgrad_engine.llm.response import Completion
from textgrad_engine.optim.contracts import broken
from textgrad_engine.optim.patch import apply_patch, origins_of_rewrite, stamped
from textgrad_engine.optim.proposers.base import Brief, Flawed, Proposal, Proposer
from textgrad_engine.optim.proposers.legible import legible


async def propose(proposer: Proposer, brief: Brief, model: Model) -> Proposal:
    """A proposal that can be made and keeps the contracts: one that does not is asked for once more.

    The second request has the problem and the answer that had it, for the model remembers nothing. Where that is no
    better, those edits are left of it that can be made and keep the contracts, and where there are none it is dropped.

    Raises:
        ModelError: there was no answer.
        ReturnError: the proposer gave something else than a proposal.
        ValueError: it gave not as many origins as its text has lines.
    """
    problem, refused, heard = "", "", _Heard(model)
    usable: Proposal | None = None
    for _ in range(2):
        try:
            given = await dispatch.called(proposer.propose, replace(brief, refused=heard.last), heard, problem)
            made = _checked(given, proposer, brief)
            if made.text != brief.text and (found := broken(brief.contracts, brief.text, made.text)) is not None:
                raise Flawed([found], made)
        except ContractError as error:
            problem = "; ".join(dict.fromkeys([str(error), *_also_broken(error, brief)]))
            refused = error.rest.text if isinstance(error, Flawed) and error.rest.text != brief.text else refused
            usable = error.rest if isinstance(error, Flawed) and error.rest.edits else usable
            continue
        return made
    fitting = None if usable is None else _what_fits(usable, brief)
    return fitting or Proposal(brief.text, brief.origins, problem=problem, refused=refused)


def _also_broken(error: ContractError, brief: Brief) -> list[str]:
    """What is wrong by the contracts with those edits of a proposal that can be made, beside what is with others."""
    if not isinstance(error, Flawed) or error.rest.text == brief.text:
        return []
    found = broken(brief.contracts, brief.text, error.rest.text)
    return [] if found is None else [found]


def _checked(made: object, proposer: Proposer, brief: Brief) -> Proposal:
    """What a proposer gave, with origins for the lines that it wrote without saying so.

    Raises:
        ReturnError: it is no proposal.
        ValueError: it has not as many origins as its text has lines.
    """
    name = type(proposer).__name__
    if not isinstance(made, Proposal):
        raise ReturnError(f"{name}.propose() gave {made!r:.80}; give a Proposal(text)")
    if not isinstance(made.text, str):
        raise ReturnError(
            f"{name}.propose() gave a Proposal whose text is {made.text!r:.80}; give the new text as a str"
        )
    text, *texts = legible([made.text, *(edit.text for edit in made.edits)], brief)
    if text != made.text:
        edits = tuple(replace(edit, text=own) for edit, own in zip(made.edits, texts))
        made = replace(made, text=text, edits=edits if text != brief.text else ())
    count = made.text.count("\n") + 1
    origins = tuple(made.origins or ())
    if not origins:
        origins = brief.origins if made.text == brief.text else (None,) * count
    if len(origins) != count:
        raise ValueError(
            f"{name}.propose() gave {len(origins)} origins for a text of {count} lines; give one for each line, "
            "that of brief.origins for a line that stayed and None for a new one; or none, and they are worked out"
        )
    if made.text != brief.text and not made.edits and None in origins:
        evidence = [item.evidence for item in brief.items]
        derived = origins_of_rewrite(brief.text, brief.origins, made.text, "", evidence, brief.step)
        origins = tuple(own or line for own, line in zip(origins, derived))
    return replace(made, origins=origins)


def _what_fits(made: Proposal, brief: Brief) -> Proposal | None:
    """A proposal with those of its edits that keep the contracts together; None where that changes nothing."""
    if made.text != brief.text and broken(brief.contracts, brief.text, made.text) is None:
        return made
    written = stamped(made.edits, brief.step)
    asked = {origin.edit: origin.evidence for origin in made.origins if origin is not None}
    evidence = [item.evidence for item in brief.items]
    fitting: Proposal | None = None
    chosen: set[int] = set()
    # What takes out or changes lines comes first: it makes room for what is added.
    for place in sorted(range(len(written)), key=lambda place: written[place].op == "add"):
        edits = tuple(edit for n, edit in enumerate(written) if n in chosen or n == place)
        text, lines = apply_patch(brief.text, brief.origins, edits, evidence, brief.step)
        if text != brief.text and broken(brief.contracts, brief.text, text) is None:
            chosen.add(place)
            origins = (o and replace(o, evidence=asked.get(o.edit, o.evidence)) for o in lines)
            fitting = Proposal(text, tuple(origins), edits)
    return fitting


class _Heard:
    """A model whose last answer is kept."""

    def __init__(self, inner: Model) -> None:
        self._inner = inner
        self.last = ""

    @property
    def asks_resolved(self) -> bool:
        return is_resolved(self._inner)

    @property
    def name(self) -> str:
        return self._inner.name

    async def complete(self, request: Request) -> Completion:
        completion = await self._inner.complete(request)
        self.last = completion.text
        return completion
