"""When nothing more is asked for: whoever proposes comes to nothing that could be tried."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from textgrad_engine.llm.ids import digest

FEWEST_VAIN, MOST_VAIN = 8, 64
"""After so many proposals in a row that could not be tried, nothing new is to be expected; mostly after the fewest."""

MOST_REFUSED = 24
"""As long as nothing could be tried, so many texts in a row that are refused, each another one, are too many.

Whoever writes a new text each time may keep the contracts the next time: where eight in ten of a proposer's texts break
one, the first 8 are refused in 17 runs of 100, and the first 24 in one of 200."""

LEVEL = 1e-4
"""As many in a row as come by chance more rarely than this, by how many came to nothing before, are enough in between.

Of a proposer of whose proposals seven in ten break a contract, eight in a row do in most runs of 100."""

ROUNDS_VAIN = 3
"""Of proposals that are asked for at the same time, so many rounds come to nothing before; their requests are alike."""


@dataclass
class Vain:
    """Counts the proposals in a row in which nothing new was that could be tried.

    Such as one that leaves the text as it is, that breaks a contract, or that was tried before. While nothing could be
    tried yet, texts that break a contract count for less, as long as each is another one. An answer that was not
    to be had is none of them, nor is a step for which nothing had to be proposed.

    Attributes:
        proposals: how many in a row.
        rounds: how many rounds in a row, of those that are asked for at the same time.
        why: what became of the last one.
        earlier: how many there were before those in a row.
        useful: how many could be tried.
        more: whether more of the round of the last one follow, which are paid for.
        begun: whether one of those in a row is of this round.
        refused: the texts that were refused before anything could be tried, by their digests, each once.

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
    earlier: int = 0
    useful: int = 0
    more: bool = False
    begun: bool = False
    refused: list[str] = field(default_factory=list)

    def count(self, why: str | None, *, more: bool = False, refused: Sequence[str] = ()) -> None:
        """Count a proposal.

        Args:
            why: why it could not be tried; "" for one that was, None for what is neither.
            more: whether more of its round follow.
            refused: of each text that it is about the one that was proposed and broke its contract; "" for none.
        """
        self.more = more
        if why:
            self.proposals, self.why, self.begun = self.proposals + 1, why, True
            if not self.useful and any(refused) and (told := digest(list(refused))) not in self.refused:
                self.refused.append(told)
        elif why is not None:
            self.earlier, self.useful = self.earlier + self.proposals, self.useful + 1
            self.proposals, self.rounds, self.begun = 0, 0, False
            self.refused.clear()
        if self.begun and not more:  # also where its last one was lost
            self.rounds, self.begun = self.rounds + 1, False

    @property
    def over(self) -> bool:
        """Whether nothing more is to be asked for."""
        return self.proposals >= self._most() and self.rounds >= ROUNDS_VAIN and not self.more

    @property
    def in_words(self) -> str:
        """What to say of it; "" while more is asked for."""
        if not self.over:
            return ""
        return (
            f"the last {self.proposals} proposals in a row were of no use (the last one: {self.why}), so no more were "
            "asked for"
        )

    def _most(self) -> int:
        """How many in a row are too many, by those before them."""
        if not self.useful:
            return FEWEST_VAIN + math.ceil(len(self.refused) * (1 - FEWEST_VAIN / MOST_REFUSED))
        share = (self.earlier + 0.5) / (self.earlier + self.useful + 2)
        return min(max(math.ceil(math.log(LEVEL) / math.log(share)), FEWEST_VAIN), MOST_VAIN)
