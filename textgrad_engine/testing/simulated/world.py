"""The world of parcels: which attributes decide, which only look as if they did, and what parcels there are."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import SupportsIndex

from textgrad_engine.llm.simulated.chance import chance, pick
from textgrad_engine.testing.simulated.groups import KINDS, Group, Kind, Sort
from textgrad_engine.testing.simulated.vocabulary import ATTRIBUTES, BY_NAME, CODES, SIGN, attributes_in

_FILLERS = 6
"""Attributes that decide nothing and go with nothing; a parcel has one or two of them."""

_WITH, _WITHOUT = 0.5, 0.15
"""How often a distractor is in a parcel, with the attribute that it likes to go with and without it."""

_USUAL_SHARE = 0.31
"""The part of the parcels for which the usual code is right."""

_UNEVEN = 3.0
"""The most frequent rule's share over the least frequent one's."""

_FIRST = "Ada Bo Cleo Dan Elin Finn Gus Hana Ivo June Kai Lea Max Nia Omar Pia Quin Rosa Sam Tove Udo Vera Wim Zoe"
_LAST = "Abel Berg Cole Dorn Eide Falk Grau Holm Iles Juhl Kern Lund Moss Nord Oort Park Rehn Sand Toft Vik Wall Zorn"


@dataclass(frozen=True)
class World:
    """What is true of parcels.

    Attributes:
        seed: what everything is hashed with.
        usual: the code of a parcel that no rule is about.
        groups: the rules, each in its group.
        distractors: attributes that decide nothing, each with the deciding attribute that it likes to go with.
        fillers: further attributes that decide nothing.
        signs: in a task with two prompts, the attributes that notes have as a sign, by sign.
    """

    seed: int
    usual: str
    groups: tuple[Group, ...]
    distractors: tuple[tuple[str, str], ...]
    fillers: tuple[str, ...]
    signs: tuple[tuple[str, str], ...] = ()

    @functools.cached_property
    def by_attribute(self) -> dict[str, Group]:
        """The group of each deciding attribute."""
        return {name: group for group in self.groups for name in group.attributes}

    def group_of(self, has: Sequence[str]) -> Group | None:
        """The group that decides a parcel with these attributes; None when no rule is about it."""
        return next((self.by_attribute[name] for name in has if name in self.by_attribute), None)

    def plain(self, parcel: str, known: Mapping[str, str] | None = None) -> str:
        """A parcel's line with its signs put in words: those that are known, or all."""
        if not self.signs:
            return parcel
        words = dict(self.signs) if known is None else known
        return SIGN.sub(lambda sign: BY_NAME[words[sign[0]]].listed if sign[0] in words else sign[0], parcel)

    def noted(self, parcel: str) -> str:
        """The note that a parcel's line is written from: its attributes as signs where there are such."""
        sign_of = {BY_NAME[name].listed: sign for sign, name in self.signs}
        parts = parcel.removeprefix("Parcel: ").split(", ")
        return f"Note: {', '.join(sign_of.get(part, part) for part in parts)}"

    def draw(self, parcel: str) -> float:
        """The parcel's own number in [0, 1)."""
        return chance(self.seed, "draw", self.plain(parcel))

    def target(self, parcel: str) -> str:
        """The right code of a parcel."""
        has = attributes_in(self.plain(parcel))
        group = self.group_of(has)
        if group is None:
            return self.usual
        here = frozenset(name for name in has if name in group.attributes)
        sorts = [sort for sort in group.sorts if frozenset(sort.attributes) == here]
        point = self.draw(parcel) * sum(sort.share for sort in sorts)
        for sort in sorts:
            point -= sort.share
            if point < 0:
                return sort.target
        return sorts[-1].target if sorts else self.usual

    def parcels(self, split: str, count: int) -> list[tuple[str, str]]:
        """Parcels of a split with their codes: each sort as often as its share says, in an order by hash."""
        sorts: list[tuple[float, Sort]] = [
            (group.share * sort.share, sort) for group in self.groups for sort in group.sorts
        ]
        sorts.append((1 - sum(share for share, _ in sorts), Sort((), self.usual, 1.0)))
        parcels: list[tuple[str, str]] = []
        for number, (sort, times) in enumerate(zip((s for _, s in sorts), _quotas([w for w, _ in sorts], count))):
            wanted = (parcel for parcel in self._drawn(split, number, sort) if self.target(parcel) == sort.target)
            parcels += [(next(wanted), sort.target) for _ in range(times)]
        return sorted(parcels, key=lambda entry: chance(self.seed, "order of", split, entry[0]))

    def _drawn(self, split: str, number: int, sort: Sort) -> Iterator[str]:
        """Endless parcels of a sort, no two the same."""
        seen: set[str] = set()
        tries = 0
        while True:
            key = (self.seed, split, number, tries)
            tries += 1
            names = set(sort.attributes)
            for name, friend in self.distractors:
                if chance(*key, name) < (_WITH if friend in sort.attributes else _WITHOUT):
                    names.add(name)
            names.add(pick(self.fillers, *key, "filler"))
            if chance(*key, "second?") < 0.5:
                names.add(pick(self.fillers, *key, "second"))
            listed = [attribute.listed for attribute in ATTRIBUTES if attribute.name in names]
            weight = f"{0.2 + 29.8 * chance(*key, 'weight') ** 2:.1f} kg"
            person = f"for {pick(_FIRST.split(), *key, 'first')} {pick(_LAST.split(), *key, 'last')}"
            parcel = f"Parcel: {', '.join([*listed, weight, person])}"
            if parcel not in seen:
                seen.add(parcel)
                yield parcel


def make_world(
    seed: int, rules: int, distractors: int, interactions: int | Sequence[Kind], *, signs: bool = False
) -> World:
    """Draw a world.

    Args:
        seed: what everything is hashed with.
        rules: how many true rules.
        distractors: how many attributes look relevant and are not.
        interactions: how many groups of rules interact, or their kinds.
        signs: whether every second deciding attribute has a sign that notes use in its place.

    Raises:
        ValueError: a number is out of range, a kind is unknown, or there are more interactions than rules for them.
    """
    kinds = _kinds(interactions)
    most = len(ATTRIBUTES) - _FILLERS
    if rules < 1:
        raise ValueError(f"rules must be at least 1, got {rules}")
    if distractors < 0 or rules + distractors > most:
        raise ValueError(f"distractors must be from 0 to {most - rules} beside {rules} rules, got {distractors}")
    if 2 * len(kinds) > rules:
        raise ValueError(
            f"each interacting group takes 2 of the rules: {len(kinds)} groups need {2 * len(kinds)} rules, and "
            f"rules is {rules}; raise rules to {2 * len(kinds)} or ask for at most {rules // 2} interactions"
        )
    names = sorted(BY_NAME, key=lambda name: chance(seed, "attribute", name))
    usual = pick(CODES, seed, "usual")
    codes = [code for code in CODES if code != usual]
    weights = [_UNEVEN ** (-place / max(1, rules - 1)) for place in range(rules)]
    weights.sort(key=lambda weight: chance(seed, "share", weight))
    groups: list[Group] = []
    used = 0
    for number, kind in enumerate([*kinds, *["single"] * (rules - 2 * len(kinds))]):
        size = 1 if kind == "single" else 2
        first = pick(codes, seed, "code", number)
        second = pick([code for code in codes if code != first], seed, "second code", number)
        own = names[used : used + (1 if kind == "rival" else size)]
        given = (first,) if kind == "single" else (first, first) if kind == "pair" else (first, second)
        groups.append(Group(kind, tuple(own), given, usual, sum(weights[used : used + size])))  # type: ignore[arg-type]
        used += size
    needy = sum(group.share * sort.share for group in groups for sort in group.sorts if sort.target != usual)
    groups = [dataclasses.replace(group, share=group.share * (1 - _USUAL_SHARE) / needy) for group in groups]
    deciding = [name for group in groups for name in group.attributes]
    spare = names[used:]
    friends = [(name, pick(deciding, seed, "friend", name)) for name in spare[:distractors]]
    fillers = tuple(spare[distractors : distractors + _FILLERS])
    chosen = deciding[::2] if signs else []
    numbers = sorted(range(10, 100), key=lambda number: chance(seed, "sign", number))
    named = tuple((f"Q{number}", name) for number, name in zip(numbers, chosen))
    return World(seed, usual, tuple(groups), tuple(friends), fillers, named)


def _kinds(interactions: int | Sequence[Kind]) -> list[Kind]:
    if isinstance(interactions, SupportsIndex):
        if operator.index(interactions) < 0:
            raise ValueError(f"interactions must be at least 0, got {interactions}")
        return [KINDS[number % len(KINDS)] for number in range(interactions)]
    if isinstance(interactions, str) or any(kind not in KINDS for kind in interactions):
        raise ValueError(
            f"interactions is a number of groups, or a sequence of {', '.join(KINDS)}; got {interactions!r}"
        )
    return list(interactions)


def _quotas(shares: Sequence[float], count: int) -> list[int]:
    """Whole numbers in proportion to the shares that add up to `count`, by largest remainders."""
    exact = [share * count for share in shares]
    whole = [int(number) for number in exact]
    by_rest = sorted(range(len(shares)), key=lambda place: (whole[place] - exact[place], place))
    for place in by_rest[: count - sum(whole)]:
        whole[place] += 1
    return whole
