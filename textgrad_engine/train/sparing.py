"""A step of which some edits break what is guarded: the others are raced without them, as in a search.

`optim.search.sparing` finds out which these are. A text that was written as a whole is taken for the edits that make it
of the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from textgrad_engine.errors import UNANSWERED
from textgrad_engine.optim.contracts import broken, contracts_for
from textgrad_engine.optim.optimizer import Change, Optimizer
from textgrad_engine.optim.patch import Origin, stamped
from textgrad_engine.optim.proposers import Brief, Proposal
from textgrad_engine.optim.search.found import Found
from textgrad_engine.optim.search.objective import Texts
from textgrad_engine.optim.search.race import RaceRecord
from textgrad_engine.optim.search.sparing import spared, spared_in_words
from textgrad_engine.optim.search.work import in_edits

if TYPE_CHECKING:
    from textgrad_engine.train.run import Run

__all__ = ["MOST_EDITS", "spare"]

MOST_EDITS = 32
"""A step of more edits, such as a long text that was written anew, is refused as a whole: each would be run."""


def spare(run: Run, race: RaceRecord, number: int) -> tuple[RaceRecord, str] | None:
    """Try a step that won its race and was refused without the edits that break what is guarded.

    Args:
        run: holds the step's texts; where it is of use, those without these edits afterwards.
        race: the race that the step won.
        number: of the step.

    Returns:
        The race of what is left, and in words why it is kept; None where nothing is left that may be kept.

    Raises:
        ModelError: the models cannot be asked at all, or the budget is spent.
    """
    objective, optimizer = run.objective, run.optimizer
    base, now = objective.texts_of(run.best), objective.texts_of(run.texts())
    before, after = ([tuple(each[name]) for name in objective.names] for each in (run.origins, run.origins_now()))
    known = {id(variable): n for n, variable in enumerate(objective.parameters)}
    changes = []
    for change in optimizer.changes:
        n = known.get(id(change.variable))
        if n is not None and change.after != change.before == base[n]:
            changes.append(_in_edits(change, before[n], after[n], optimizer.steps))
    step = Found(0, "patch", base, tuple(before), now, tuple(after), changes=tuple(changes), race=race)
    if sum(len(change.edits) for change in changes) > MOST_EDITS:
        return None

    def won(found: Found) -> bool:
        return found.race is not None and run.wins(found.race, found.texts)

    def raced(found: Found) -> Found:
        if _breaks_contract(optimizer, objective.parameters, base, found.texts):
            return found
        try:
            return replace(found, race=run.race(number, found.texts))
        except UNANSWERED:  # such texts may break the program: the step is refused as it is
            return found

    with run.phase("validate", number, 0):
        left = spared(objective, objective.parameters, step, raced, won)
    if not left.spared or left.race is None:
        return None
    written = {
        variable: (text, origins)
        for variable, text, origins, was in zip(objective.parameters, left.texts, left.origins, now)
        if text != was
    }
    optimizer.amend(left.changes, written, left.spared, f"refused: {left.spared_for}")
    return left.race, left.race.outcome + spared_in_words(left)


def _in_edits(change: Change, before: tuple[Origin | None, ...], after: tuple[Origin | None, ...], step: int) -> Change:
    """A change as edits that have ids, also where the text was written as a whole."""
    if change.edits:
        return replace(change, edits=tuple(stamped(change.edits, step)))
    brief = Brief(change.variable.role, change.before, before, change.items, step=step)
    return replace(change, edits=in_edits(Proposal(change.after, after), brief).edits)


def _breaks_contract(optimizer: Optimizer, variables: Sequence[object], before: Texts, after: Texts) -> bool:
    """Whether part of a step breaks a contract that the whole step keeps."""
    groups = {id(variable): group for group in optimizer.param_groups for variable in group["params"]}
    checked = (
        (contracts_for(group["constraints"], group["max_tokens"]), old, new)
        for variable, old, new in zip(variables, before, after)
        if old != new and {"constraints", "max_tokens"} <= (group := groups.get(id(variable), {})).keys()
    )
    return any(broken(contracts, old, new) is not None for contracts, old, new in checked)
