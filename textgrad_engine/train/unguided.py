"""Controls: what the seed prompt becomes at no more calls and without feedback, beside what the optimizer made of it.

An optimizer that only tries things out, or only makes a prompt longer, looks good beside the seed prompt. What its
feedback is worth shows beside a search that gets at most as many calls and no feedback: one has the prompt rewritten
by the model, one changes it at random. Both keep what the same paired race shows to be better.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from textgrad_engine.autograd import Variable
from textgrad_engine.errors import UNANSWERED, BudgetExceeded
from textgrad_engine.llm.amounts import Amount
from textgrad_engine.llm.budget import limited
from textgrad_engine.llm.meters import meter
from textgrad_engine.llm.response import Usage
from textgrad_engine.optim import Optimizer, RandomEdits, RandomSearch
from textgrad_engine.optim.proposers import Proposer, Unaided
from textgrad_engine.optim.search.objective import Texts, handicap_of
from textgrad_engine.optim.search.work import is_shorter
from textgrad_engine.optim.texts import texts_now, write_texts
from textgrad_engine.train.comparison import score_changes
from textgrad_engine.train.controls import CONTROLS
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.latency import latency_change
from textgrad_engine.train.objective import Objective
from textgrad_engine.train.scores import ALIKE


@dataclass(frozen=True)
class Searched:
    """What a search without feedback found.

    Attributes:
        texts: the texts that it selected, in the order of the objective's parameters.
        val: these on the validation set; None when that could not be paid for.
        tried: how many texts it raced.
        kept: how many of these it kept.
        usage: what the search used.
        problem: in words why it ended early; "" when it did not.
    """

    texts: Texts
    val: Evaluation | None
    tried: int
    kept: int
    usage: Usage
    problem: str = ""


def proposers_of(seed: int) -> dict[str, Proposer]:
    """What the controls propose with, by their names.

    Args:
        seed: of what is drawn at random.
    """
    return dict(zip(CONTROLS, (Unaided(), RandomEdits(seed))))


def search_without_feedback(
    objective: Objective,
    proposer: Proposer,
    optimizer: Optimizer,
    seed_val: Evaluation,
    *,
    most: Amount,
    seed: int = 0,
    to_the_end: bool = False,
    phase: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext,
) -> Searched:
    """Search from the texts of now, with no feedback and so much at most; the parameters end as they began.

    Where a race would need more than is left, the search ends with what it has. The texts that it selected are then run
    on the validation examples that its races have not run, on top of that; they are dropped when they do no better
    there than the seed texts (`beats_seed`), as in any search.

    Args:
        objective: a new one, so that nothing that others paid for is used.
        proposer: makes the proposals.
        optimizer: the one that this is a control of; it gives model and contracts.
        seed_val: the texts of now on the validation set.
        most: what the search may use. Answers from the cache count as calls.
        seed: of the order of examples in races.
        to_the_end: whether it goes on where nothing better can be shown.
        phase: a new phase of the run. The search and what comes on top have one each: what the search has no room for
            may be asked then, and is not to be taken for an answer that the search had, where the run is played back.

    Raises:
        BudgetExceeded: a limit around the run is reached.
        ModelError: the models cannot be asked at all.
    """
    start = texts_now(objective.parameters)
    search = RandomSearch(
        [_group_of(parameter, optimizer) for parameter in objective.parameters],
        proposer,
        getattr(optimizer, "model", None),
        proposals=max(most.calls, 1),
        seed=seed,
    )
    search.to_the_end = to_the_end
    texts, tried, kept, problem = start, 0, 0, ""
    with meter() as used:
        with phase(), limited(most) as limit:
            try:
                while used.total.calls + used.cached < most.calls and (decided := search.step(objective)) is not None:
                    tried += decided.race is not None
                    if decided.kept:
                        kept += 1
                        texts = search.texts()
            except BudgetExceeded as error:
                if not limit.refused(error):  # but one around the run
                    raise
            except UNANSWERED as error:
                problem = f"{type(error).__name__}: {error}"
            finally:
                search.close()
                write_texts(objective.parameters, start)
        searched = used.total
    if texts == start:
        return Searched(start, seed_val, tried, kept, searched, problem)
    try:
        with phase():
            objective.move(texts)
            val = objective.evaluation(texts)
    except UNANSWERED as error:
        return Searched(start, seed_val, tried, kept, searched, problem or f"{type(error).__name__}: {error}")
    if not beats_seed(objective, start, texts, seed_val, val):
        return Searched(start, seed_val, tried, kept, searched, problem)
    return Searched(texts, val, tried, kept, searched, problem)


def beats_seed(objective: Objective, seed: Texts, best: Texts, seed_val: Evaluation, best_val: Evaluation) -> bool:
    """Whether the texts that a search selected take the place of the seed texts; of equals the shorter ones do.

    Texts that lose answers which the seed texts have are no equals.

    Args:
        objective: says what tokens and seconds cost.
        seed: the seed texts.
        best: those that were selected.
        seed_val: the seed texts on the validation set.
        best_val: the others there.
    """
    handicap = handicap_of(objective, seed, best)
    ties = is_shorter(seed, best) and best_val.unanswered <= seed_val.unanswered
    return does_better(best_val, seed_val, handicap, objective.latency_weight, ties=ties)


def does_better(
    best: Evaluation, seed: Evaluation, handicap: float = 0.0, latency_weight: float = 0.0, *, ties: bool = False
) -> bool:
    """Whether texts do better than the seed texts, over the examples where both answered.

    Args:
        best: the scores of the texts.
        seed: those of the seed texts.
        handicap: by so much the mean must be higher to pay for further tokens.
        latency_weight: what a second of an example costs, where both evaluations know how long it took.
        ties: whether doing as well is enough.

    Example:
        >>> seed, best = (Evaluation(("a", "b"), scores, (None, None), {}) for scores in ((0.0, 1.0), (1.0, None)))
        >>> does_better(best, seed), does_better(seed, seed)
        (True, False)
    """
    found = score_changes(seed, best)
    if latency_weight and (slower := latency_change(seed, best)) is not None:
        handicap += latency_weight * (slower.after - slower.before)
    gain, price = sum(found), len(found) * handicap
    return gain > price + ALIKE or (ties and bool(found) and gain >= price - ALIKE)


def _group_of(parameter: Variable, optimizer: Optimizer) -> dict[str, Any]:
    """The parameter as a group, with the contracts that the optimizer keeps for it."""
    found = optimizer.group_of(parameter)
    settings = {name: value for name, value in found.items() if name in ("constraints", "max_tokens")}
    return {"params": [parameter], **settings}
