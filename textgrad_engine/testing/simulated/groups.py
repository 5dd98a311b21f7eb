"""Rules that decide alone or together, and the best lines for each such group by exhaustive search.

Kinds of groups. `code(...)` is the single place where it is written what a group's lines do to an item:

- ``single``: one attribute, one code.
- ``rival``: one attribute, and parcels with it that want different codes, most of them the first. Nothing in a parcel
  tells which. One line can be in force, and the one for the larger part is better.
- ``pair``: two attributes. Parcels with both want a code, and get it when both lines are there; parcels with one of
  them want the usual code, and lose it while its line is there without the other.
- ``order``: two attributes, a line for each. Of parcels with both, the line that comes first decides, and the first
  attribute's must.
- ``company``: two attributes, a line for each, each helps alone. Together the first draws most of the second's parcels
  away. The second has more of them, so the best is the second alone, though adding it to the first helps as well.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal["single", "rival", "pair", "order", "company"]
KINDS: tuple[Kind, ...] = get_args(Kind)[1:]
"""The kinds of interacting groups, in the order in which a number of groups takes them."""

DRAWN = 0.9
"""In a ``company`` group: the part of the second attribute's parcels that the first line draws away."""


@dataclass(frozen=True)
class Sort:
    """A sort of items in a group: its deciding attributes, the right code, and its share of the group."""

    attributes: tuple[str, ...]
    target: str
    share: float


@dataclass(frozen=True)
class Group:
    """Attributes that decide together.

    Attributes:
        kind: how they do.
        attributes: their names.
        codes: the code that belongs to each; of a rival the two codes of its one attribute, the better one first.
        usual: the code without any rule.
        share: its share of all items.
    """

    kind: Kind
    attributes: tuple[str, ...]
    codes: tuple[str, ...]
    usual: str
    share: float

    @functools.cached_property
    def sorts(self) -> tuple[Sort, ...]:
        """Its sorts of items."""
        a, b = self.attributes[0], self.attributes[-1]
        first, second = self.codes[0], self.codes[-1]
        if self.kind == "single":
            return (Sort((a,), first, 1.0),)
        if self.kind == "rival":
            return (Sort((a,), first, 0.6), Sort((a,), second, 0.4))
        if self.kind == "pair":
            return (Sort((a, b), first, 0.5), Sort((a,), self.usual, 0.25), Sort((b,), self.usual, 0.25))
        if self.kind == "order":
            return (Sort((a,), first, 0.25), Sort((b,), second, 0.25), Sort((a, b), first, 0.5))
        return (Sort((a,), first, 0.4), Sort((b,), second, 0.6))

    def code(self, stated: Mapping[str, str], has: frozenset[str], draw: float) -> str:
        """The code that an item of this group gets.

        Args:
            stated: the prompt's code for each attribute, in the prompt's order.
            has: the item's attributes.
            draw: the item's number in [0, 1), for what happens to a part of the items.
        """
        a, b = self.attributes[0], self.attributes[-1]
        if self.kind in ("single", "rival"):
            return stated.get(a, self.usual)
        if self.kind == "pair":
            if a in has and b in has:
                return stated[a] if a in stated and stated.get(b) == stated[a] else self.usual
            return self.usual if a in stated and b in stated else stated.get(a if a in has else b, self.usual)
        if self.kind == "order":
            return next((code for name, code in stated.items() if name in has and name in (a, b)), self.usual)
        if b in has and a in stated and b in stated and draw < DRAWN:
            return stated[a]
        return stated.get(a if a in has else b, self.usual)

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """The lines that somebody who looks at its items could want, whether they help or not."""
        if self.kind == "rival":
            return tuple((self.attributes[0], code) for code in self.codes)
        return tuple(zip(self.attributes, self.codes))

    def value(self, stated: Mapping[str, str]) -> float:
        """The part of the group's items that some lines get right, over all items there could be."""
        cuts = ((0.0, DRAWN), (DRAWN, 1.0))
        return sum(
            sort.share * (high - low)
            for sort in self.sorts
            for low, high in cuts
            if self.code(stated, frozenset(sort.attributes), (low + high) / 2) == sort.target
        )

    @functools.cached_property
    def best(self) -> tuple[tuple[str, str], ...]:
        """The best lines in their best order, by trying all; of equals the fewest."""
        tried = [
            lines
            for length in range(len(self.lines) + 1)
            for lines in itertools.permutations(self.lines, length)
            if len({name for name, _ in lines}) == length
        ]
        return max(tried, key=lambda lines: (round(self.value(dict(lines)), 9), -len(lines)))
