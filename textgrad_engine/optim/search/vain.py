"""When nothing more is asked for: whoever proposes comes to nothing that could be tried."""

from __future__ import annotations

from dataclasses import dataclass

MOST_VAIN = 8
"""After so many proposals in a row that could not be tried, nothing new is to be expected."""

ROUNDS_VAIN = 3
"""Of proposals that are asked for at the same time, so many rounds come to nothing before; their requests are alike."""


@dataclass
class Vain:
    """Counts the proposals in a row in which nothing new was that could be tried.

    Such as one that leaves the text as it is, that breaks a contract, or that was tried before. An answer that was not
    to be had is none of them, nor is a step for which nothing had to be proposed.

    Attributes:
        proposals: how many in a row.
        rounds: how many rounds in a row, of those that are asked for at the same time.
        why: what became of the last one.

    Example:
        >>> vain = Vain()
        >>> for _ in range(8):
        ...     vain.count("nothing was proposed")
        >>> vain.in_words
        'the last 8 proposals in a row were of no use (the last one: nothing was proposed), so no more were asked for'
    """

    proposals: int = 0
    rounds: int = 0
    why: str = ""

    def count(self, why: str, *, more: bool = False) -> None:
        """Count a proposal.

        Args:
            why: why it could not be tried; "" for one that was.
            more: whether more of its round follow.
        """
        if not why:
            self.proposals = self.rounds = 0
        else:
            self.proposals, self.why = self.proposals + 1, why
        if not more and self.proposals:
            self.rounds += 1

    @property
    def over(self) -> bool:
        """Whether nothing more is to be asked for."""
        return self.proposals >= MOST_VAIN and self.rounds >= ROUNDS_VAIN

    @property
    def in_words(self) -> str:
        """What to say of it; "" while more is asked for."""
        if not self.over:
            return ""
        return (
            f"the last {self.proposals} proposals in a row were of no use (the last one: {self.why}), so no more were "
            "asked for"
        )
