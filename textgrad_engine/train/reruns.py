"""Examples that must never break, run again before they count as broken (`Guards.reruns`).

What texts reached is the most that an example came to in the runs of it that there were. So a text that was let pass by
its second run is held to that run from then on, not to its first: else what passed once by chance could break for good
with the next text. The texts of now are not run again for it, only the new ones where they did worse. Nor is a mark in
the middle of a scale, which may have been luck, looked at again: `Guards.passing` says which marks are good enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from textgrad_engine.train.guarded import Scores, is_worse

Worse: TypeAlias = Sequence[Sequence[int]]
"""Of each of several texts, the positions of the examples that do worse."""


def most_of(positions: Sequence[int], runs: Iterable[Sequence[float | None]]) -> Scores:
    """The most that each example came to in several runs; None where it was answered in none.

    Args:
        positions: the examples.
        runs: their scores, a run each.

    Example:
        >>> most_of((3, 5, 7), [(0.0, 1.0, None), (0.5, None, None)])
        {3: 0.5, 5: 1.0, 7: None}
    """
    scores = zip(*runs)
    return {n: max((s for s in each if s is not None), default=None) for n, each in zip(positions, scores)}


def still_worse(
    level: Scores, found: Worse, reruns: int, run: Callable[[int, Worse], Sequence[Sequence[float | None]]]
) -> Worse:
    """What does worse in each run: what did is run again until it reaches its level, or there are no more runs.

    Args:
        level: what each example has to reach (`Guarded.due`).
        found: what does worse in the first run.
        reruns: at most so many further runs.
        run: runs these examples again, all at once, from the number of the run: their scores, None where no answer was
            to be had, which is no better.

    Example:
        >>> scores = {(1, 4): 0.0, (1, 6): 1.0, (2, 4): 0.5}
        >>> still_worse({4: 1.0, 6: 1.0}, [[4, 6]], 2, lambda n, worse: [[scores[n, k] for k in row] for row in worse])
        [[4]]
    """
    for repeat in range(1, reruns + 1):
        if not any(found):
            break
        rows = run(repeat, found)
        found = [[n for n, score in zip(worse, row) if is_worse(level[n], score)] for worse, row in zip(found, rows)]
    return found
