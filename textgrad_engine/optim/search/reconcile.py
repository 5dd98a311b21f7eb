"""Which edits do harm in the texts that several patches were put together into.

Each patch won its own race, and nobody has raced all of them at once. So what they are expected to score together is
compared with what they do: where an example falls short of that, the texts without each of the edits are run on it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from textgrad_engine.optim.revert import edits_in, revert
from textgrad_engine.optim.search.board import Accepted, Origins
from textgrad_engine.optim.search.objective import Objective, Texts
from textgrad_engine.optim.search.trim import MOST_LOOKED, gained_without

__all__ = ["at_odds", "without"]


def at_odds(
    objective: Objective,
    texts: Texts,
    origins: Origins,
    about: Sequence[Accepted],
    expected: Mapping[int, float],
    now: Mapping[int, float],
    gained: Collection[int],
) -> tuple[Accepted, ...]:
    """The edits without which the texts do better where they fall short of what was expected.

    Args:
        objective: runs the examples.
        texts: the texts.
        origins: where their lines come from.
        about: the edits that may be at odds with each other.
        expected: for validation examples, by position, the score that is expected of the texts.
        now: the score that they have.
        gained: those of them that the edits were kept for; what is lost there speaks for an edit.

    Raises:
        AnswerError: too few answers were to be had.
        ModelError: the models cannot be asked at all, or the budget is spent.
    """
    there = [entry for entry in about if entry.edit in edits_in(texts[entry.parameter], origins[entry.parameter])]
    short = [n for n in now if now[n] < expected[n]]
    held = [n for n in gained if n in now and now[n] >= expected[n]]
    candidates = {entry: without(texts, origins, [entry])[0] for entry in there}
    more = gained_without(objective, candidates, short[:MOST_LOOKED], now)
    suspects = {entry: other for entry, other in candidates.items() if more[entry] > 0}
    for entry, change in gained_without(objective, suspects, held[:MOST_LOOKED], now).items():
        more[entry] += change
    return tuple(entry for entry in there if more[entry] > 0)


def without(texts: Texts, origins: Origins, about: Sequence[Accepted]) -> tuple[Texts, Origins]:
    """Texts without some of their edits.

    Args:
        texts: the texts.
        origins: where their lines come from.
        about: the edits; one that is not there any more is passed over.
    """
    left, own = list(texts), list(origins)
    for entry in about:
        if entry.edit in edits_in(left[entry.parameter], own[entry.parameter]):  # it may have gone with another one
            left[entry.parameter], lines = revert(left[entry.parameter], own[entry.parameter], entry.edit)
            own[entry.parameter] = tuple(lines)
    return tuple(left), tuple(own)
