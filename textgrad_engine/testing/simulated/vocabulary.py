"""What parcels can be like, and how rules about that are found in a text."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

CODES = tuple(f"K{number}" for number in range(1, 10))


@dataclass(frozen=True)
class Attribute:
    """Something that a parcel can be like.

    Attributes:
        name: the words that stand for it in any text.
        listed: how a parcel's line has it.
        spoken: how a sentence about parcels has it.
    """

    name: str
    listed: str
    spoken: str


_CONTENTS = (
    "glass books wine cheese batteries paint medicine lamps carpets mirrors honey knives clocks perfume seeds candles "
    "toys shoes violins cameras fossils maps tea vinegar"
)
_PLACES = (
    "Norway Peru Kenya Japan Malta Chile Iceland Greece Canada Egypt Nepal Cuba Ireland Poland Brazil Ghana Latvia "
    "Oman Fiji Samoa"
)
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
_STATES = (
    "gift wrapped|insured|oversized|refrigerated|prepaid|palletised|vacuum packed|shrink wrapped|hand delivered|"
    "cash on delivery|sealed twice|marked urgent|consolidated"
)

ATTRIBUTES = (
    *[Attribute(name, name, f"with {name}") for name in _CONTENTS.split()],
    *[Attribute(name, f"to {name}", f"to {name}") for name in _PLACES.split()],
    *[Attribute(name, f"on {name}", f"sent on {name}") for name in _DAYS.split()],
    *[Attribute(name, name, f"that are {name}") for name in _STATES.split("|")],
)
"""In the order in which a parcel's line has them."""

BY_NAME = {attribute.name: attribute for attribute in ATTRIBUTES}

SIGN = re.compile(r"\bQ[1-9]\d?\b")
"""The house's own sign for an attribute, as notes have it in a task with two prompts."""

_FOLDED = {name.lower(): name for name in BY_NAME}
_NAME = "|".join(re.escape(name) for name in sorted(_FOLDED, key=len, reverse=True))
_MENTION = re.compile(rf"(?P<attribute>\b(?:{_NAME})\b)|(?P<code>\bK[1-9]\b)", re.IGNORECASE)
_NOT = re.compile(
    r"[(,]?\s*\b(?:not|never|instead of|rather than|than)\s+(?:the\s+)?(?:code\s+)?K[1-9]\b", re.IGNORECASE
)
_CLAUSE = re.compile(r"[;\n]|(?<=[.!?])\s+")


@dataclass(frozen=True)
class Rule:
    """One thing that a text says: parcels with the attribute get the code."""

    attribute: str
    code: str


@functools.lru_cache(maxsize=8192)
def attributes_in(text: str) -> tuple[str, ...]:
    """The names of the attributes that a text speaks of, each once, in its order.

    Example:
        >>> attributes_in("Parcel: glass, to Norway, 3.1 kg, for Ada Berg")
        ('glass', 'Norway')
    """
    found = (match["attribute"] for match in _MENTION.finditer(text))
    return tuple(dict.fromkeys(_FOLDED[name.lower()] for name in found if name))


def clauses(text: str) -> list[str]:
    """The statements of a text: its lines, cut at semicolons and at the ends of sentences; none is blank."""
    return [part.strip() for part in _CLAUSE.split(text) if part.strip(" \t-*•.")]


@functools.lru_cache(maxsize=8192)  # prompts that are tried are mostly made of the same statements
def rules_in(clause: str) -> tuple[Rule, ...]:
    """The rules in one statement: each attribute with the code after it, or before it where a code comes first.

    Codes that are only ruled out ("not K1") do not count, nor do attributes after the last code of a statement that
    began with an attribute ("glass gets K4, also when it goes to Norway").

    Example:
        >>> [(rule.attribute, rule.code) for rule in rules_in("Parcels with glass or wine get code K4, not K1.")]
        [('glass', 'K4'), ('wine', 'K4')]
        >>> [(rule.attribute, rule.code) for rule in rules_in("K2 for Norway and K3 for Peru")]
        [('Norway', 'K2'), ('Peru', 'K3')]
    """
    mentions: Sequence[re.Match[str]] = list(_MENTION.finditer(_NOT.sub(" ", clause)))
    rules: list[Rule] = []
    waiting: list[str] = []
    code = ""
    code_first = bool(mentions) and mentions[0]["code"] is not None
    for mention in mentions:
        if mention["code"]:
            code = mention["code"].upper()
            rules += [Rule(name, code) for name in waiting]
            waiting = []
        elif code_first:
            rules.append(Rule(_FOLDED[mention["attribute"].lower()], code))
        else:
            waiting.append(_FOLDED[mention["attribute"].lower()])
    return tuple(dict.fromkeys(rules))


def signs_in(clause: str) -> tuple[tuple[str, str], ...]:
    """The signs that a statement explains, each with the attribute that it stands for.

    Example:
        >>> signs_in("Q7 means glass, and Norway is written Q12.")
        (('Q7', 'glass'), ('Q12', 'Norway'))
    """
    signs = list(dict.fromkeys(SIGN.findall(clause)))
    return tuple(zip(signs, attributes_in(clause))) if not rules_in(clause) else ()
