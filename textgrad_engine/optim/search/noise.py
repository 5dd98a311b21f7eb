"""The noise of scores: how much an example's score differs by itself between two runs of the same texts.

Sampling temperature and a judge's mood change scores although nothing else has changed. A race that does not know of it
takes what differs from run to run for what a change does. Whether a model is deterministic is not known beforehand, so
it is measured: once a run, on a few examples.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from textgrad_engine.errors import UNANSWERED
from textgrad_engine.optim.search.objective import Objective, Texts

MEASURED = 8
"""So many examples are run a second time."""


def noise_of(objective: Objective, texts: Texts, known: Mapping[int, float], seed: int | str = 0) -> float:
    """The variance of one example's score between runs of the same texts, as `Race` takes it.

    Up to `MEASURED` validation examples are run a second time, as another sample of the same answers (a cache answers
    it only if that sample was bought before). Half the mean square of the differences is the variance (the formula for
    duplicate determinations; Dahlberg, "Statistical methods for medical and biological students", 1940). 0 where
    nothing was answered a second time.

    Args:
        objective: runs the examples.
        texts: the texts.
        known: their scores, by position, from the first run.
        seed: of which examples are run again.

    Raises:
        ModelError: the models cannot be asked at all, or the budget is spent.

    Example:
        >>> from textgrad_engine import nn
        >>> from textgrad_engine.testing import FunctionModel
        >>> from textgrad_engine.train import Objective
        >>> steady = FunctionModel(lambda request: request.messages[-1].text)
        >>> program = nn.ChatCompletion("{word}", nn.Parameter("Repeat.", role="system prompt"), model=steady)
        >>> objective = Objective(program, nn.ExactMatch(), [{"word": "a", "target": "a"}])
        >>> noise_of(objective, ("Repeat.",), {0: 1.0})
        0.0
    """
    every = sorted(known)
    twice = random.Random(f"{seed}/noise").sample(every, min(MEASURED, len(every)))
    try:
        again = objective.scores(texts, twice, repeat=1)
    except UNANSWERED:  # more than half of a few: nothing is known of the noise, and the run may go on
        return 0.0
    squares = [(score - known[n]) ** 2 for n, score in zip(twice, again) if score is not None]
    return sum(squares) / 2 / len(squares) if squares else 0.0
