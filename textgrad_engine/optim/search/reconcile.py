"""Which edits do harm in the texts that several patches were put together into.

Each patch won its own race, and nobody has raced all of them at once. So what they are expected to score together is
compared with what they do: where an example falls short of that, the texts without each of the edits are run on it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from textgrad_engine.optim.revert import edits_in, revert
from textgrad_engine.optim.search.board import Accepted, Origins
from textgrad_engine.optim.search.found import Found
from textgrad_engine.optim.search.objective import Objective, Texts
from textgrad_engine.optim.search.trim import gained_without

__all__ = ["Ground", "at_odds", "without"]


class Ground:
    """The texts that a wave of patches is tried on, which the lane that reconciles them tells the others.

    A patch is asked for while that goes on; it is put on these texts before it is tried, so that no line which one of
    the patches before brought hides what it gains.

    Example:
        >>> ground = Ground()
        >>> ground.settled() is None  # nobody reconciles anything, so nobody waits
        True
    """

    def __init__(self) -> None:
        self.awaited = False
        self._found: Found | None = None
        self._told = threading.Event()

    def tell(self, found: Found | None) -> None:
        """Say what came of it; None where nothing did."""
        self._found = found
        self._told.set()

    def settled(self) -> Found | None:
        """What came of it; waits for that where it is `awaited`."""
        if self.awaited:
            self._told.wait()
        return self._found


def at_odds(
    objective: Objective,
    texts: Texts,
    origins: Origins,
    about: Sequence[Accepted],
    failed: Sequence[int],
    held: Sequence[int],
    now: Mapping[int, float],
) -> tuple[Accepted, ...]:
    """The edits without which the texts do better where they fall short of what was expected.

    Args:
        objective: runs the examples.
        texts: the texts.
        origins: where their lines come from.
        about: the edits that may be at odds with each other.
        failed: validation examples, by position, that may be better without one of them.
        held: those that the edits were kept for; what is lost there speaks for an edit.
        now: the scores that the texts have on all of these.

    Raises:
        AnswerError: too few answers were to be had.
        ModelError: the models cannot be asked at all, or the budget is spent.
    """
    there = [entry for entry in about if entry.edit in edits_in(texts[entry.parameter], origins[entry.parameter])]
    candidates = {entry: without(texts, origins, [entry])[0] for entry in there}
    more = gained_without(objective, candidates, failed, now)
    suspects = {entry: other for entry, other in candidates.items() if more[entry] > 0}
    for entry, change in gained_without(objective, suspects, held, now).items():
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
