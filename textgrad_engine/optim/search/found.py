"""What a lane of a patch search brings back, and the same with some of its edits only."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from textgrad_engine.autograd import Variable
from textgrad_engine.optim.change import Change
from textgrad_engine.optim.patch import Edit, apply_patch, stamped
from textgrad_engine.optim.search.board import Accepted, Origins
from textgrad_engine.optim.search.objective import Texts
from textgrad_engine.optim.search.racing import RaceRecord

Placed: TypeAlias = tuple[int, Edit]
"""An edit with the number of its parameter."""

Kind = Literal["patch", "tidying", "ablation", "rival", "union"]


@dataclass(frozen=True)
class Found:
    """What a lane brings back.

    Attributes:
        number: the proposal's number.
        kind: what was proposed.
        base: the texts it was made for.
        base_origins: where their lines came from.
        texts: the texts that it makes of them.
        origins: where the lines of these come from.
        examples: the training examples whose feedback it answers, by position.
        scores: their scores before.
        feedback: how many pieces of feedback reached the parameters.
        changes: for each parameter concerned what is proposed.
        race: the race; None when nothing was proposed.
        problems: answers that were not to be had, in words.
        about: the edits that it would take out again.
        dropped: why it was not raced, or not to the end; "" when it was, or when nothing was proposed.
        lost: whether it came to nothing because answers were not to be had.
        spared: the edits that it goes without, as they broke what must not break, by parameter.
        spared_for: what they broke, in words.
        trimmed: the edits that it goes without, as they did harm in its company, by parameter.
    """

    number: int
    kind: Kind
    base: Texts
    base_origins: Origins
    texts: Texts
    origins: Origins
    examples: tuple[int, ...] = ()
    scores: tuple[float | None, ...] = ()
    feedback: int = 0
    changes: tuple[Change, ...] = ()
    race: RaceRecord | None = None
    problems: tuple[str, ...] = ()
    about: tuple[Accepted, ...] = ()
    dropped: str = ""
    lost: bool = False
    spared: tuple[Change, ...] = ()
    spared_for: str = ""
    trimmed: tuple[Change, ...] = ()


def edits_of(found: Found, variables: Sequence[Variable]) -> list[Placed]:
    """The edits of a proposal, each with the number of its parameter, by the ids that their lines have.

    Args:
        found: the proposal.
        variables: the parameters.
    """
    return [
        (number_of(change, variables), edit)
        for change in found.changes
        if change.after != change.before
        for edit in stamped(change.edits, found.number)
    ]


def number_of(change: Change, variables: Sequence[Variable]) -> int:
    """Which of the parameters a change is of."""
    return next(n for n, variable in enumerate(variables) if variable is change.variable)


def with_edits(found: Found, variables: Sequence[Variable], edits: Collection[Placed]) -> Found:
    """The proposal with these of its edits only; they keep their ids."""
    texts, origins, changes = list(found.base), list(found.base_origins), []
    for change in found.changes:
        n = number_of(change, variables)
        own = tuple(edit for parameter, edit in edits if parameter == n)
        if own:
            evidence = [item.evidence for item in change.items]
            texts[n], lines = apply_patch(change.before, found.base_origins[n], own, evidence, found.number)
            origins[n] = tuple(lines)
            changes.append(replace(change, after=texts[n], edits=own))
    return replace(found, texts=tuple(texts), origins=tuple(origins), changes=tuple(changes))


def left_out(found: Found, variables: Sequence[Variable], kept: Collection[Placed]) -> tuple[Change, ...]:
    """The changes of a proposal with those edits only that are not kept."""
    gone = []
    for change in found.changes:
        own = tuple(edit for n, edit in edits_of(replace(found, changes=(change,)), variables) if (n, edit) not in kept)
        if own:
            gone.append(replace(change, edits=own))
    return tuple(gone)


def trimmed_in_words(found: Found) -> str:
    """What to say of the edits that a proposal goes without, as they did harm in it; "" when there is none."""
    count = sum(len(change.edits) for change in found.trimmed)
    return f"; without {count} of its edits, which did harm in it" if count else ""
