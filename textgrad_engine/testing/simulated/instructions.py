"""What the simulated task model takes from a prompt."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from textgrad_engine.testing.simulated.vocabulary import attributes_in, clauses, rules_in, signs_in

_ONLY = re.compile(
    r"\bonly\b|\bnothing else\b|\bjust the code\b|\bno other\b|\bno (?:explanation|extra)", re.IGNORECASE
)
_DEMONSTRATION = re.compile(
    r"^[^\n]*?(Parcel: [^\n]+)\n\s*(?:[^\n]{0,40}?\b(?:answer|code|output)\b[^\n]{0,10}?:)?\s*(K[1-9])\b[^\n]*$",
    re.IGNORECASE | re.MULTILINE,
)
_FURNITURE = re.compile(r"^[^\S\n]*(?:</?[\w-]+>|Example \d+:?)[^\S\n]*$", re.IGNORECASE | re.MULTILINE)
_WORDS_A_LINE = 40


@dataclass(frozen=True)
class Instructions:
    """A prompt as the task model reads it.

    Attributes:
        rules: attribute and code, in the order in which they are consulted. Of several statements about one attribute
            the last counts, at the last one's place.
        examples: the solved examples in it: the attributes of the parcel, and its code. They are no rules.
        explained: the signs that it explains, each with its attribute; the last explanation counts.
        lines: how long it is, in lines (`lines_of`).
        bare: whether it asks for the code only.
    """

    rules: tuple[tuple[str, str], ...]
    examples: tuple[tuple[frozenset[str], str], ...]
    explained: tuple[tuple[str, str], ...]
    lines: int
    bare: bool

    @functools.cached_property
    def codes(self) -> dict[str, str]:
        """The code that is in force for each attribute, in the order of the text."""
        return dict(self.rules)

    @functools.cached_property
    def signs(self) -> dict[str, str]:
        """The attribute that each explained sign stands for."""
        return dict(self.explained)


@functools.lru_cache(maxsize=4096)
def read_instructions(text: str) -> Instructions:
    r"""Read a prompt.

    Example:
        >>> read_instructions("Answer with the code only.\nglass -> K4; wine -> K2\nPaint: K3. Glass: K5.").rules
        (('wine', 'K2'), ('paint', 'K3'), ('glass', 'K5'))
    """
    stated: dict[str, str] = {}
    examples = tuple((frozenset(attributes_in(found[1])), found[2].upper()) for found in _DEMONSTRATION.finditer(text))
    explained: dict[str, str] = {}
    for clause in clauses(_DEMONSTRATION.sub("", text)):
        explained |= dict(signs_in(clause))
        for rule in rules_in(clause):
            stated.pop(rule.attribute, None)
            stated[rule.attribute] = rule.code
    bare = _ONLY.search(text) is not None
    return Instructions(tuple(stated.items()), examples, tuple(explained.items()), lines_of(text), bare)


def lines_of(text: str) -> int:
    r"""The length of a prompt in lines, however it is laid out.

    Each statement counts for the rules in it, at least one, and for each 40 words one: several rules in one line are no
    shorter than several lines. A solved example counts as one line, tags and headings around it as none.

    Example:
        >>> lines_of("Sort parcels.\n\nglass -> K4; wine -> K4\npaint and tea -> K2")
        5
    """
    examples = len(_DEMONSTRATION.findall(text))
    parts = clauses(_FURNITURE.sub("", _DEMONSTRATION.sub("", text)))
    return examples + sum(max(1, len(rules_in(part)), -(-len(part.split()) // _WORDS_A_LINE)) for part in parts)
