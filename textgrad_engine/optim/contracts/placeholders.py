"""`Placeholders`: the slots that the program fills stay in the text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from textgrad_engine.optim.contracts.base import say
from textgrad_engine.slots import SLOT_NAMES, composed, slots_of


@dataclass(frozen=True)
class Placeholders:
    """The ``{slots}`` of the old text must be in the new one, and no others.

    It holds for every text that is trained, unless a parameter has one of its own, or a step of `TGD` has only feedback
    that is an evaluator's on the text itself, as on a solution that is improved: that is no template.

    A text without slots is told nothing beforehand, as its requests stay short; what is wrong says the repair.

    Args:
        kept: the names of the slots; all else in braces is then text. ``[]`` for a text that has none, such as code of
            a program, or LaTeX. None stands for those of the old text, and is for a user template of
            `nn.ChatCompletion`, which takes no name in braces for text.

    Raises:
        TypeError: `kept` is a single text, or something else than texts is in it.
        ValueError: a text in it cannot be the name of a slot.

    Example:
        >>> print(Placeholders().problem("Sort {ticket}.", "Sort the ticket."))
        the placeholder {ticket} is missing
        >>> Placeholders([]).problem("f'{day}.{month}.'", "f'{day}. {name}'")
    """

    kept: Iterable[str] | None = None

    def __post_init__(self) -> None:
        kept: object = self.kept
        if kept is None:
            return
        names = tuple(kept) if isinstance(kept, Iterable) and not isinstance(kept, str | bytes | type) else (None,)
        if not all(isinstance(name, str) for name in names):
            raise TypeError(f"Placeholders takes the names of slots, such as ['ticket'], got {kept!r:.80}")
        if wrong := [name for name in names if not composed(str(name)).isidentifier()]:
            raise ValueError(
                f"Placeholders takes the names of slots without braces; {SLOT_NAMES}; got {wrong[0]!r:.80}"
            )
        names = tuple(dict.fromkeys([composed(str(name)) for name in names]))
        # A set is in another order in each process, and what is asked is to be the same on `resume`.
        object.__setattr__(self, "kept", tuple(sorted(names)) if isinstance(kept, AbstractSet) else names)

    def describe(self, before: str) -> str:
        """Names the placeholders."""
        slots = self._slots(before)
        return self._said(slots, (), ()) if slots else ""

    def problem(self, before: str, after: str) -> str | None:
        """Compares the placeholders."""
        old, new = self._slots(before), slots_of(after)
        missing = [slot for slot in old if slot not in new]
        added = [slot for slot in new if slot not in old] if self.kept is None else []
        if not missing and not added:
            return None
        return self._said(old, missing, added)

    def _said(self, kept: Sequence[str], missing: Sequence[str], added: Sequence[str]) -> str:
        others = self.kept is not None
        return say("placeholders", kept=_braced(kept), missing=_braced(missing), added=_braced(added), others=others)

    def _slots(self, before: str) -> tuple[str, ...]:
        return slots_of(before) if self.kept is None else tuple(self.kept)


def _braced(slots: Sequence[str]) -> list[str]:
    return [f"{{{slot}}}" for slot in slots]
