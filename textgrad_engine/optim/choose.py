"""Choosing among candidates by their scores on a few examples: what `TGD` does with several."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from textgrad_engine.autograd import Variable, no_grad
from textgrad_engine.autograd.value import label_of
from textgrad_engine.errors import UNANSWERED
from textgrad_engine.llm import tokens
from textgrad_engine.optim.search.objective import Objective, worths

GLANCE = 24
"""So many examples of an objective are looked at; those with feedback first, then others from all over the set."""

Candidate: TypeAlias = Mapping[Variable, str]
"""New texts by their parameter; the others stay as they are."""


def scores_of(
    closure: Objective | Callable[[], Any], candidates: Sequence[Candidate], examples: Iterable[str]
) -> list[float | None]:
    """The mean score of each candidate, higher is better; None where nothing was answered.

    With an objective, what tokens and seconds cost comes off it.

    Args:
        closure: an objective; or a function of nothing that scores the program as it is: it gives a number, a Variable
            that holds one, or a sequence of these, in which None stands for a lost answer. It is called once for each
            candidate, with the candidate's texts in the parameters. Variables may be pending: nothing is read before
            all candidates are under way.
        candidates: the candidates.
        examples: the ids of the examples that there was feedback on; an objective scores these before others.

    Raises:
        TypeError: what the function gave is no score.
        ValueError: the objective is not about a parameter of a candidate.
    """
    if isinstance(closure, Objective):
        rows = _by_objective(closure, candidates, examples)
    else:
        rows = _by_function(closure, candidates)
    # On the examples that all answered: who loses the hard ones to errors must not win by that.
    columns = [column for column in zip(*rows) if all(score is not None for score in column)]
    return [_mean(row) for row in (zip(*columns) if columns else rows)]


def best_of(candidates: Sequence[Candidate], scores: Sequence[float | None]) -> int:
    """The position of the candidate with the highest score; of equals that with the fewest tokens, then the first."""

    def rank(number: int) -> tuple[bool, float, int]:
        score = scores[number]
        return score is None, -(score or 0.0), sum(tokens.count(text) for text in candidates[number].values())

    return min(range(len(candidates)), key=rank)


def _by_objective(
    objective: Objective, candidates: Sequence[Candidate], examples: Iterable[str]
) -> list[list[float | None]]:
    known = {id(parameter) for parameter in objective.parameters}
    for candidate in candidates:
        for variable in candidate:
            if id(variable) not in known:
                raise ValueError(
                    f"the objective is not about {label_of(variable)}, which the optimizer trains; make both with "
                    "program.parameters()"
                )
    texts = [
        tuple(candidate.get(parameter, str(parameter.data)) for parameter in objective.parameters)
        for candidate in candidates
    ]
    positions = _positions(objective.train, examples)
    rows = objective.matrix(texts, positions, "train")
    return [worths(objective, each, positions, row, "train") for each, row in zip(texts, rows)]


def _positions(ids: Sequence[str], examples: Iterable[str]) -> list[int]:
    """At most `GLANCE` positions: of the examples named, then of others at even distances."""
    where = {name: position for position, name in enumerate(ids)}
    first = [where[name] for name in dict.fromkeys(examples) if name in where][:GLANCE]
    named = set(first)
    others = [position for position in range(len(ids)) if position not in named]
    wanted = min(GLANCE - len(first), len(others))
    return [*first, *(others[n * len(others) // wanted] for n in range(wanted))]


def _by_function(closure: Callable[[], Any], candidates: Sequence[Candidate]) -> list[list[float | None]]:
    touched = list(dict.fromkeys(variable for candidate in candidates for variable in candidate))
    held = {variable: variable.data for variable in touched}
    given: list[Any] = []
    with no_grad():
        try:
            for candidate in candidates:
                for variable in touched:
                    variable.data = candidate.get(variable, held[variable])
                given.append(closure())
        finally:
            for variable, text in held.items():
                variable.data = text
    rows = [_row(each) for each in given]
    if len({len(row) for row in rows}) > 1:
        raise TypeError(
            f"the closure gave {' and '.join(str(len(row)) for row in rows)} scores; it must score the same "
            "examples for every candidate"
        )
    return rows


def _row(given: Any) -> list[float | None]:
    each = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    return [None if score is None else _number(score) for score in each]


def _number(score: Any) -> float | None:
    if isinstance(score, (Variable, int, float)):
        try:
            with contextlib.suppress(TypeError, ValueError):
                return float(score)
        except UNANSWERED:
            return None
    raise TypeError(
        "to choose among candidates the closure returns a score, or a sequence of scores, one for each example "
        f"(numbers or Variables; higher is better); it returned {type(score).__name__}"
    )


def _mean(scores: Sequence[float | None]) -> float | None:
    known = [score for score in scores if score is not None]
    return sum(known) / len(known) if known else None
