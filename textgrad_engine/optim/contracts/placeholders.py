"""`Placeholders`: the slots that the program fills stay in the text."""

from __future__ import annotations

from dataclasses import dataclass

from textgrad_engine.optim.contracts.base import say
from textgrad_engine.slots import slots_of

__all__ = ["Placeholders"]


@dataclass(frozen=True)
class Placeholders:
    """The ``{slots}`` of the old text must be in the new one, and no others.

    A text without slots is told nothing beforehand, as its requests stay short; what is wrong says the repair.

    Example:
        >>> print(Placeholders().problem("Sort {ticket}.", "Sort the ticket."))
        the placeholder {ticket} is missing
    """

    def describe(self, before: str) -> str:
        """Names the placeholders."""
        slots = slots_of(before)
        return say("placeholders", kept=_braced(slots), missing=[], added=[]) if slots else ""

    def problem(self, before: str, after: str) -> str | None:
        """Compares the placeholders."""
        old, new = slots_of(before), slots_of(after)
        missing = [slot for slot in old if slot not in new]
        added = [slot for slot in new if slot not in old]
        if not missing and not added:
            return None
        return say("placeholders", kept=_braced(old), missing=_braced(missing), added=_braced(added))


def _braced(slots: list[str] | tuple[str, ...]) -> list[str]:
    return [f"{{{slot}}}" for slot in slots]
