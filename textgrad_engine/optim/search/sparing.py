"""When a guard refuses a patch that won its race: its edits without those that break what must not break.

Which edits these are is found on the broken examples alone: each edit is put into the texts by itself and run there.
Where no edit breaks them by itself, the patch is tried without each. What is left must keep all that is guarded, and
win a race of its own, since the patch that won had the other edits in it. So a refused patch of `k` edits, which broke
`b` of `g` guarded examples, costs at most ``2 k b + g`` examples more, and a race.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from textgrad_engine.autograd import Variable
from textgrad_engine.errors import UNANSWERED
from textgrad_engine.optim.patch import Edit, apply_patch, stamped
from textgrad_engine.optim.search.objective import Objective

if TYPE_CHECKING:
    from textgrad_engine.optim.search.work import Found

__all__ = ["spared"]


def spared(objective: Objective, variables: Sequence[Variable], found: Found, race: Callable[[Found], Found]) -> Found:
    """A proposal without the edits that break guarded examples; as it is where none do, or nothing better is left.

    Args:
        objective: has the guards.
        variables: the parameters.
        found: a proposal that was raced.
        race: races a proposal.

    Raises:
        ModelError: the models cannot be asked at all, or the budget is spent.
    """
    edits = [
        (n, edit)
        for change in found.changes
        if change.after != change.before
        for n, variable in enumerate(variables)
        if variable is change.variable
        for edit in stamped(change.edits, found.number)
    ]
    if found.race is None or found.race.outcome != "better" or len(edits) < 2:
        return found
    broken = objective.broken(found.base, found.texts, found.number)
    kept = _kept(objective, variables, found, edits, broken) if broken else []
    if not kept:
        return found
    rest = _with(found, variables, kept)
    refusal = objective.refusal(found.base, found.texts, found.number)
    if rest.texts == found.base or objective.refusal(found.base, rest.texts, found.number):
        return found
    raced = race(replace(rest, race=None))
    if raced.race is None or raced.race.outcome != "better":
        return found
    dropped = []
    for change in found.changes:
        gone = [edit for n, edit in edits if variables[n] is change.variable and (n, edit) not in kept]
        if gone:
            dropped.append(replace(change, edits=tuple(gone)))
    return replace(raced, spared=tuple(dropped), spared_for=refusal)


def _kept(
    objective: Objective,
    variables: Sequence[Variable],
    found: Found,
    edits: list[tuple[int, Edit]],
    broken: Sequence[int],
) -> list[tuple[int, Edit]]:
    """The edits that break none of the examples; none where nothing is left, or where that could not be found out."""
    try:
        alone = _harmless(objective, found, [_with(found, variables, [edit]) for edit in edits], broken)
        if not all(alone):
            return [edit for edit, harmless in zip(edits, alone) if harmless]
        # It takes several of them. The later an edit comes, the sooner it goes.
        without = [[other for other in edits if other is not edit] for edit in reversed(edits)]
        left = _harmless(objective, found, [_with(found, variables, each) for each in without], broken)
        return next((each for each, harmless in zip(without, left) if harmless), [])
    except UNANSWERED:  # such texts may break the program
        return []


def _harmless(objective: Objective, found: Found, tries: Sequence[Found], broken: Sequence[int]) -> list[bool]:
    """Which of some proposals do not do worse than the best texts on any of the broken examples."""
    before, *rows = objective.matrix([found.base, *(each.texts for each in tries)], broken)
    return [
        all(new is not None and (old is None or new >= old - 1e-9) for old, new in zip(before, row)) for row in rows
    ]


def _with(found: Found, variables: Sequence[Variable], edits: Sequence[tuple[int, Edit]]) -> Found:
    """The proposal with these of its edits only; they keep their ids."""
    texts, origins, changes = list(found.base), list(found.base_origins), []
    for change in found.changes:
        n = next(n for n, variable in enumerate(variables) if variable is change.variable)
        own = tuple(edit for parameter, edit in edits if parameter == n)
        if own:
            evidence = [item.evidence for item in change.items]
            texts[n], lines = apply_patch(change.before, found.base_origins[n], own, evidence, found.number)
            origins[n] = tuple(lines)
            changes.append(replace(change, after=texts[n], edits=own))
    return replace(found, texts=tuple(texts), origins=tuple(origins), changes=tuple(changes))
