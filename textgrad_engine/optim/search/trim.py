"""A patch without the edits that do harm in it.

A patch of several edits often holds good ones and a bad one, and would be refused as a whole. Where some examples were
run with the patch, and some got worse, the patch without each of its edits is run on those that got worse, all at once;
without those for which that helps, also on some that got better. An edit goes when the examples do better without it:
what it costs there is more than what it brings. Edits that bring something only together stay together, as each of them
is missed. So a patch of `k` edits with which `w` examples got worse and `b` better costs ``k w + s b`` more, where `s`
of the edits are under suspicion; of many examples that got worse or better, a few of each are enough.

What two edits spoil stays wrong whichever of them is missing. So where some examples are still worse with what is left,
each of its edits is run alone on these, too; one that spoils them by itself is under suspicion, and goes unless what
got better misses it. That costs as much again at most, and what is left is run on all that were looked at, as a race
begins there. Not the other way round: alone, edits that are of use together only do harm. On simulated tasks half of
the harm that the first look leaves in a patch is found so (docs/experiments.md, "Edits that do harm").

These examples were chosen for what one wording made of them, and another one may undo that by chance: regression to the
mean. So each text is compared with the others, which leave out other edits: what comes right whichever edit is missing
was not one edit's fault, and what goes wrong as often is not to its credit. That costs no call more. On simulated tasks
where another wording changes one answer in four or five, fewer than one in five of the edits that go by the first look
are good ones, instead of nearly one in three by comparison with the whole alone (docs/experiments.md, "Answers that
change with the wording").
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from textgrad_engine.autograd import Variable
from textgrad_engine.errors import UNANSWERED
from textgrad_engine.optim.search.found import Found, Placed, edits_of, left_out, with_edits
from textgrad_engine.optim.search.objective import Objective, Texts

MOST_LOOKED = 9
"""Of what got worse, and of what got better, at most so many are run without one of the edits."""

CHECKED = 24
"""So many other examples say whether what is left does no worse than the whole."""

_Scores: TypeAlias = tuple[float, Sequence[float]]
"""An example's score without an edit, and those with it: of the whole, and without another edit each. Or with it alone,
and without it: of the base, and with another edit each."""


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
    less = _without_harm(objective, variables, found, looked, alone=False)
    rest = _without_harm(objective, variables, less or found, looked, alone=True)
    return rest or less


def _without_harm(
    objective: Objective, variables: Sequence[Variable], found: Found, looked: Sequence[int], *, alone: bool
) -> Found | None:
    """A proposal without the edits that do harm, by what got worse without each of them, or with each alone."""
    edits = edits_of(found, variables)
    if len(edits) < 2:
        return None
    try:
        before, after = objective.matrix([found.base, found.texts], looked)
        changes = {n: b - a for n, a, b in zip(looked, before, after) if a is not None and b is not None and a != b}
        if not any(change < 0 for change in changes.values()):
            return None
        with_none, with_all = dict(zip(looked, before)), dict(zip(looked, after))
        # What got worse says which edits are under suspicion; only these can cost more than they bring.
        enough = max(map(abs, changes.values())) / 2  # less than one example is nothing to go by
        worse, better = ([n for n in changes if (changes[n] < 0) is which][:MOST_LOOKED] for which in (True, False))
        without = {edit: with_edits(found, variables, [e for e in edits if e != edit]).texts for edit in edits}
        if alone:
            single = {edit: with_edits(found, variables, [edit]).texts for edit in edits}
            harm = {edit: sum(map(_spoiled, scores)) for edit, scores in _run(objective, single, worse, with_none)}
        else:
            harm = {edit: sum(map(_regained, scores)) for edit, scores in _run(objective, without, worse, with_all)}
        suspects = {edit: texts for edit, texts in without.items() if harm[edit] > enough}
        for edit, scores in _run(objective, suspects, better, with_all):
            harm[edit] += sum(map(_missed, scores))
    except UNANSWERED:  # such texts may break the program; a race says so
        return None
    kept = [edit for edit in edits if harm[edit] <= enough]
    rest = with_edits(found, variables, kept)
    if not kept or len(kept) == len(edits) or rest.texts == found.base:
        return None
    return replace(rest, race=None, trimmed=(*found.trimmed, *left_out(found, variables, kept)))


def holds(objective: Objective, whole: Found, rest: Found, others: Sequence[int]) -> bool:
    """Whether what is left of a proposal does no worse than the whole on examples that did not choose what goes.

    The few examples by which edits go are chosen for having changed, and may have changed by chance: with a real model
    another wording gives other answers to one example in four, and what was left by sixteen examples did worse on the
    others in nine patches of nine (docs/experiments.md, "On a real model").

    Args:
        objective: runs the examples.
        whole: the proposal.
        rest: what is left of it.
        others: other validation examples than it was looked at on, in any order; `CHECKED` of them are run.

    Raises:
        ModelError: the models cannot be asked at all, or the budget is spent.
    """
    try:
        before, after = objective.matrix([whole.texts, rest.texts], others[:CHECKED]) if others else ([], [])
    except UNANSWERED:  # such texts may break the program; a race says so
        return True
    return sum(b - a for a, b in zip(before, after) if a is not None and b is not None) >= 0


def _run(
    objective: Objective, texts: Mapping[Placed, Texts], looked: Sequence[int], known: Mapping[int, float | None]
) -> list[tuple[Placed, list[_Scores]]]:
    """The scores of some examples with each edit's texts, beside those with the others' and those that are known."""
    rows = objective.matrix([*texts.values()], looked) if looked and texts else [[] for _ in texts]
    found: list[tuple[Placed, list[_Scores]]] = []
    for k, edit in enumerate(texts):
        beside = zip(*([known[n] for n in looked], *(row for m, row in enumerate(rows) if m != k)))
        pairs = [(score, [other for other in each if other is not None]) for score, each in zip(rows[k], beside)]
        found.append((edit, [(score, others) for score, others in pairs if score is not None]))
    return found


def _regained(scores: _Scores) -> float:
    """What an example that got worse gains without an edit, beyond what most texts with it give."""
    score, others = scores
    return max(0.0, score - statistics.median(others))


def _spoiled(scores: _Scores) -> float:
    """What an example that got worse loses by an edit alone, beyond what most texts with another one, or none, lose."""
    score, others = scores
    return max(0.0, statistics.median(others) - score)


def _missed(scores: _Scores) -> float:
    """What an example that got better gains without an edit, mostly less than nothing: by the mean of the others."""
    score, others = scores
    return score - statistics.fmean(others)
