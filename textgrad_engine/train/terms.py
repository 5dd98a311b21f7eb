"""On what terms texts were chosen, beside their scores: what length and time cost, and what must not break."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.objective import Objective
from textgrad_engine.train.standing import Standing


def terms_of(
    objective: Objective,
    seed: Evaluation | None,
    best: Evaluation | None,
    tested: Sequence[Standing] | None = None,
) -> tuple[str, ...]:
    """The terms of a run, and how its best texts stand to them, a sentence for each, without its full stop.

    Args:
        objective: of the run.
        seed: the seed texts on the validation set; None where that is not known.
        best: the best texts there; likewise.
        tested: how they stand to the floors on the test set; None where both were not run on it.
    """
    untimed = objective.timed and seed is not None and not any(seed.latency)
    return (
        *_costs(objective, untimed),
        *([_UNTIMED] if untimed else []),
        *_guards(objective, seed, best, tested),
        *_varying(objective),
    )


_UNTIMED = (
    "no time was measured, as the program's model does not say how long its answers take "
    "(llm.Completion(..., latency=seconds)), so the latency_weight decided nothing"
)


def _varying(objective: Objective) -> Iterator[str]:
    """What to know of guards that refused something, where scores vary by themselves, as far as a run measured that."""
    guarded = objective.guarded
    if guarded is None:
        return
    again = guarded.reruns > 0  # what must never break; what floors are under is run once in any case
    refused = objective.floors_refused or objective.marks_refused if again else objective.guards_refused
    changed, twice = objective.vary() if refused else (0, 0)
    if not changed:
        return
    vary = (
        f"but of {twice} examples that were run twice with the same texts, {changed} got another score, so they may "
        "have refused changes that are no worse"
    )
    if objective.floors_refused or not again:
        repair = "; with reruns=2 an example that must never break is run again before it counts as broken"
        who = "floors" if again else "guards"
        yield (
            f"{who} refused changes by one run of each example, {vary}"
            f"{repair if guarded.never_break and not again else ''}"
        )
    if objective.marks_refused and again:  # they are held to the best run so far, which may have been luck
        repair = "" if guarded.passing is not None else "passing=... says which score is good enough, and "
        yield (
            f"examples that must never break refused changes for marks below the best one, {vary}; {repair}a floor "
            "under their mean is steadier"
        )


def _costs(objective: Objective, untimed: bool) -> Iterator[str]:
    prices = (
        (objective.tokens_weight, "1,000 tokens of the texts"),
        (0.0 if untimed else objective.latency_weight, "a second of an answer"),
    )
    costs = [f"{weight:g} for {of}" for weight, of in prices if weight]
    if costs:
        yield (
            f"texts were compared by their score less {' and '.join(costs)}, so one that scored higher may have been "
            "refused"
        )


def _guards(
    objective: Objective, seed: Evaluation | None, best: Evaluation | None, tested: Sequence[Standing] | None
) -> Iterator[str]:
    if objective.guarded is None or seed is None or best is None:
        return
    was, now = dict(enumerate(seed.scores)), dict(enumerate(best.scores))
    if len(was) == len(now) == len(objective.val):
        by_metric = [(dict(enumerate(a.scores)), dict(enumerate(b.scores))) for a, b in zip(seed.parts, best.parts)]
        yield from objective.guarded.standing(was, now, best.limits and best.limits[1], by_metric, tested)
