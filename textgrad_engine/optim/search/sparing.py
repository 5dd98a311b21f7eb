"""When a guard refuses a patch that won its race: its edits without those that break what must not break.

Searches do it with what a lane brings back, and the Trainer with a step of an optimizer (`train.proving`).

Which edits these are is found on the broken examples alone: each edit is put into the texts by itself and run there.
Where no edit breaks them by itself, the patch is tried without each. What is left must keep all that is guarded, and
win a race of its own, since the patch that won had the other edits in it. So a refused patch of `k` edits, which broke
`b` of `g` guarded examples, costs at most ``2 k b + g`` examples more, and a race; where guards run again what did
worse (`Objective.breaking`), it is up to so many times as much.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from textgrad_engine.autograd import Variable
from textgrad_engine.errors import UNANSWERED
from textgrad_engine.optim.search.found import Found, Placed, edits_of, left_out, with_edits
from textgrad_engine.optim.search.objective import Objective


def is_better(found: Found) -> bool:
    """Whether a proposal has won its race by being better."""
    return found.race is not None and found.race.outcome == "better"


def spared(
    objective: Objective,
    variables: Sequence[Variable],
    found: Found,
    race: Callable[[Found], Found],
    won: Callable[[Found], bool] = is_better,
) -> Found:
    """A proposal without the edits that break guarded examples; as it is where none do, or nothing better is left.

    Args:
        objective: has the guards.
        variables: the parameters.
        found: a proposal that was raced.
        race: races a proposal.
        won: whether a proposal is to be kept by its race.

    Raises:
        ModelError: the models cannot be asked at all, or the budget is spent.
    """
    edits = edits_of(found, variables)
    if not won(found) or len(edits) < 2:
        return found
    broken = objective.broken(found.base, found.texts, found.number)
    kept = _kept(objective, variables, found, edits, broken) if broken else []
    if not kept:
        return found
    rest = with_edits(found, variables, kept)
    refusal = objective.refusal(found.base, found.texts, found.number)
    if rest.texts == found.base or objective.refusal(found.base, rest.texts, found.number):
        return found
    raced = race(replace(rest, race=None))
    if not won(raced):
        return found
    return replace(raced, spared=left_out(found, variables, kept), spared_for=refusal)


def spared_in_words(found: Found) -> str:
    """What to say of the edits that a proposal goes without; "" when there is none."""
    count = sum(len(change.edits) for change in found.spared)
    return f"; without {count} of its edits, refused: {found.spared_for}" if count else ""


def _kept(
    objective: Objective,
    variables: Sequence[Variable],
    found: Found,
    edits: list[Placed],
    broken: Sequence[int],
) -> list[Placed]:
    """The edits that break none of the examples; none where nothing is left, or where that could not be found out."""
    try:
        alone = _harmless(objective, found, [with_edits(found, variables, [edit]) for edit in edits], broken)
        if not all(alone):
            return [edit for edit, harmless in zip(edits, alone) if harmless]
        # It takes several of them. The later an edit comes, the sooner it goes.
        without = [[other for other in edits if other is not edit] for edit in reversed(edits)]
        left = _harmless(objective, found, [with_edits(found, variables, each) for each in without], broken)
        return next((each for each, harmless in zip(without, left) if harmless), [])
    except UNANSWERED:  # such texts may break the program
        return []


def _harmless(objective: Objective, found: Found, tries: Sequence[Found], broken: Sequence[int]) -> list[bool]:
    """Which of some proposals do not do worse than the best texts on any of the broken examples."""
    return [not worse for worse in objective.breaking(found.base, [each.texts for each in tries], broken)]
