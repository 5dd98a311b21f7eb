"""A patch without the edits that do harm in it.

A patch of several edits often holds good ones and a bad one, and would be refused as a whole. Where some examples were
run with the patch, and some got worse, the patch without each of its edits is run on those alone that changed. An edit
goes when they do better without it: what it costs there is more than what it brings. Edits that bring something only
together stay together, as each of them is missed. So a patch of `k` edits that changed `c` examples costs ``k c`` more,
all at once; of many examples that got worse or better, a few of each are enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from textgrad_engine.autograd import Variable
from textgrad_engine.errors import UNANSWERED
from textgrad_engine.optim.search.found import Found, edits_of, left_out, with_edits
from textgrad_engine.optim.search.objective import Objective

__all__ = ["trimmed"]

MOST_LOOKED = 6
"""Patches without one of their edits are run on at most so many of the examples that got worse, and as many better."""


def trimmed(objective: Objective, variables: Sequence[Variable], found: Found, looked: Sequence[int]) -> Found | None:
    """A proposal without the edits that do harm; None where none does, or only such.

    Args:
        objective: runs the examples.
        variables: the parameters.
        found: the proposal; its race is not looked at.
        looked: the validation examples that it is looked at on; nothing is bought when none of them gets worse.

    Raises:
        ModelError: the models cannot be asked at all, or the budget is spent.
    """
    edits = edits_of(found, variables)
    if len(edits) < 2:
        return None
    try:
        before, after = objective.matrix([found.base, found.texts], looked)
        changes = {n: b - a for n, a, b in zip(looked, before, after) if a is not None and b is not None and a != b}
        if not any(change < 0 for change in changes.values()):
            return None
        worse, better = ([n for n, change in changes.items() if (change < 0) is which] for which in (True, False))
        changed = [*worse[:MOST_LOOKED], *better[:MOST_LOOKED]]
        with_all = dict(zip(looked, after))
        without = [with_edits(found, variables, [other for other in edits if other != edit]) for edit in edits]
        rows = objective.matrix([each.texts for each in without], changed)
    except UNANSWERED:  # such texts may break the program; a race says so
        return None
    kept = []
    for edit, row in zip(edits, rows):
        known = [(score, with_all[n]) for n, score in zip(changed, row)]
        if sum(score - old for score, old in known if score is not None and old is not None) <= 0:
            kept.append(edit)
    rest = with_edits(found, variables, kept)
    if not kept or len(kept) == len(edits) or rest.texts == found.base:
        return None
    return replace(rest, race=None, trimmed=(*found.trimmed, *left_out(found, variables, kept)))
