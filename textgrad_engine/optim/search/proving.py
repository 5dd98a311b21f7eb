"""From a proposal to the race that decides about it, without the edits that do harm or break what is guarded.

Searches do it with what a lane brings back, and the Trainer with a step of an optimizer (`train.proving`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from textgrad_engine.autograd import Variable
from textgrad_engine.optim.search.found import Found
from textgrad_engine.optim.search.objective import Objective
from textgrad_engine.optim.search.race import FEWEST
from textgrad_engine.optim.search.sparing import is_better, spared
from textgrad_engine.optim.search.trim import holds, trimmed

Racing: TypeAlias = Callable[[Found, Sequence[int]], Found]
"""Races a proposal, first on these validation examples; what cannot be raced comes back without a race."""

Won: TypeAlias = Callable[[Found], bool]
"""Whether a proposal is to be kept by its race."""


def proven(
    objective: Objective,
    variables: Sequence[Variable],
    found: Found,
    looked: Sequence[int],
    others: Sequence[int],
    race: Racing,
    won: Won = is_better,
) -> Found:
    """A proposal with its race: as it is, or what is left of it without edits that do harm or break what is guarded.

    Args:
        objective: runs the examples, and has the guards.
        variables: the parameters.
        found: the proposal.
        looked: the validation examples where a difference shows first; it is looked at on these before it is raced.
        others: further ones, drawn at random, on which what is left must do no worse than the whole (`trim.holds`).
        race: races it.
        won: whether it is to be kept.

    Raises:
        ModelError: the models cannot be asked at all, or the budget is spent.
    """
    less = trimmed(objective, variables, found, looked)
    if less is not None and not holds(objective, found, less, others):
        less = None
    raced = trimmed_race(objective, variables, less or found, race, won)
    if less is not None and raced.race is None and not raced.lost:  # what is left breaks a contract; the whole does not
        raced = trimmed_race(objective, variables, found, race, won)
    return spared(objective, variables, raced, lambda rest: trimmed_race(objective, variables, rest, race, won), won)


def trimmed_race(
    objective: Objective, variables: Sequence[Variable], found: Found, race: Racing, won: Won = is_better
) -> Found:
    """Race a proposal; what did not win although examples gained is raced again without the edits that do harm.

    Args:
        objective: runs the examples.
        variables: the parameters.
        found: the proposal.
        race: races it.
        won: whether it is to be kept.
    """
    raced = race(found, ())
    if raced.race is None or won(raced) or len(raced.race.gained) < FEWEST:
        return raced
    positions = {name: n for n, name in enumerate(objective.val)}
    lost, gained = ([positions[name] for name in part] for part in (raced.race.lost, raced.race.gained))
    rest = trimmed(objective, variables, raced, [*lost, *gained])
    if rest is None:
        return raced
    again = race(rest, [*lost, *gained])  # all of them in the first batch: a few gains alone would flatter what is left
    return again if again.race is not None else replace(raced, problems=again.problems)
