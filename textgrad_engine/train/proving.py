"""A step of an optimizer that is tried before it is kept, as a search tries a patch (`optim.search.proving`).

Where some edits of a step do harm, or break what is guarded, the others are raced without them. A text that was written
as a whole is taken for the edits that make it of the one before.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from textgrad_engine.errors import UNANSWERED
from textgrad_engine.optim.cells import Origin
from textgrad_engine.optim.change import Change
from textgrad_engine.optim.patch import stamped
from textgrad_engine.optim.proposers import Brief, Proposal
from textgrad_engine.optim.search.board import Board
from textgrad_engine.optim.search.drafts import Desk
from textgrad_engine.optim.search.found import Found
from textgrad_engine.optim.search.noise import noise_of
from textgrad_engine.optim.search.objective import Texts, handicap_of, slower_by
from textgrad_engine.optim.search.proving import proven
from textgrad_engine.optim.search.race import GLANCE, Race, balance, first_batch
from textgrad_engine.optim.search.racing import LosesAnswers, answered, run_race
from textgrad_engine.optim.search.work import in_edits, is_shorter, support_of_all

if TYPE_CHECKING:
    from textgrad_engine.train.run import Run
    from textgrad_engine.train.step import StepRun

DOUBT = 0.75
"""A shorter text is taken back when it is this probable that it is worse: ties go to it, losses do not."""

MOST_EDITS = 32
"""A step of more edits, such as a long text that was written anew, is raced as a whole: each of them would be run."""

LEAST_RIGHT = 18
"""A shorter text is run on so many examples that are right, where there are, before it is taken for no worse."""


def prove(run: StepRun, number: int, positions: Sequence[int]) -> tuple[Found, str]:
    """Race the texts of a step against the best ones, without the edits of the step that do harm or break a guard.

    Args:
        run: holds the texts.
        number: of the step.
        positions: the training examples that it was made from.

    Returns:
        The step with what is left of it, and its race; without one, and `lost`, where the answers for it were not to be
        had. And why the guards refuse what won its race, "" where they do not.

    Raises:
        ModelError: the models cannot be asked at all, or the budget is spent.
    """
    step = _found(run)
    objective, variables = run.objective, run.objective.parameters
    desk = Desk.of(run.optimizer, None, variables)
    board = _board(run, step.base)
    support = support_of_all(objective, step)
    first, then = (objective.near(support or positions, part)[:GLANCE] for part in (board.failing, board.right))
    rng = f"{run.trainer.seed}/{number}"

    def race(found: Found, changed: Sequence[int]) -> Found:
        if found is not step and desk.problem(found.base, found.texts):
            return found
        shorter = is_shorter(found.base, found.texts)
        begins = changed or ([*then, *board.right] if shorter else first)
        size = first_batch(changed) if changed else 2 * LEAST_RIGHT if shorter else 2 * GLANCE
        both = [found.base, found.texts]
        race = Race(
            board.strata(begins, random.Random(rng), () if changed else then),
            first=size,
            scale=board.scale,
            until="worse" if shorter else "better",
            reject=DOUBT if shorter else None,
            at_the_end=balance(*both),
            hopeful=board.hopeful,
            handicap=handicap_of(objective, *both),
            noise=board.noise,
            clusters=objective.clusters,
        )
        try:
            scores = answered(lambda some: objective.matrix(both, some))
            return replace(found, race=run_race(race, objective.val, scores, slower_by(objective, *both)))
        except UNANSWERED as error:  # the texts may break the program; others can still be tried
            problem = f"the race was given up: {type(error).__name__}: {error}"
            return replace(found, problems=(*found.problems, problem), lost=not isinstance(error, LosesAnswers))

    with run.phases.phase("validate", number, 0):
        if run.noise is None:
            run.noise = noise_of(objective, board.texts, board.val, run.trainer.seed)
        board.noise = run.noise
        if sum(len(change.edits) for change in step.changes) > MOST_EDITS:
            found = race(step, ())
        else:
            others = board.others(first, random.Random(rng), then)
            found = proven(objective, variables, step, [*first, *then], others, race, wins)
        return found, run.refusal(found) if wins(found) else ""  # guards may run examples, which belong to this phase


def wins(found: Found) -> bool:
    """Whether what was raced replaces the best texts: it is better, or shorter and not worse."""
    if found.race is None:
        return False
    outcome = found.race.outcome
    return outcome == "better" or (outcome == "no difference" and is_shorter(found.base, found.texts))


def _board(run: Run, texts: Texts) -> Board:
    """What is known of the best texts."""
    assert run.best_val is not None
    known = {n: score for n, score in enumerate(run.best_val.scores) if score is not None}
    return Board(texts, (), known, limits=run.objective.scale)


def _found(run: Run) -> Found:
    """The last step of a run's optimizer, as edits that have ids."""
    objective, optimizer = run.objective, run.optimizer
    base, now = objective.texts_of(run.best), objective.texts_of(run.texts())
    before, after = ([tuple(each[name]) for name in objective.names] for each in (run.origins, run.origins_now()))
    known = {id(variable): n for n, variable in enumerate(objective.parameters)}
    changes = []
    for change in optimizer.changes:
        n = known.get(id(change.variable))
        if n is not None and change.after != change.before == base[n]:
            changes.append(_in_edits(change, before[n], after[n], optimizer.steps))
    return Found(0, "patch", base, tuple(before), now, tuple(after), changes=tuple(changes))


def _in_edits(change: Change, before: tuple[Origin | None, ...], after: tuple[Origin | None, ...], step: int) -> Change:
    """A change as edits that have ids, also where the text was written as a whole."""
    if change.edits:
        return replace(change, edits=tuple(stamped(change.edits, step)))
    brief = Brief(change.variable.role, change.before, before, change.items, step=step)
    return replace(change, edits=in_edits(Proposal(change.after, after), brief).edits)
