"""What the simulated task model takes from a prompt."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from textgrad_engine.testing.simulated.vocabulary import clauses, rules_in

__all__ = ["Instructions", "lines_of", "read_instructions"]

_ONLY = re.compile(
    r"\bonly\b|\bnothing else\b|\bjust the code\b|\bno other\b|\bno (?:explanation|extra)", re.IGNORECASE
)
_WORDS_A_LINE = 40


@dataclass(frozen=True)
class Instructions:
    """A prompt as the task model reads it.

    Attributes:
        rules: attribute and code, in the order in which they are consulted. Of several statements about one attribute
            the last counts, at the last one's place.
        lines: how long it is, in lines (`lines_of`).
        bare: whether it asks for the code only.
    """

    rules: tuple[tuple[str, str], ...]
    lines: int
    bare: bool

    @functools.cached_property
    def codes(self) -> dict[str, str]:
        """The code that is in force for each attribute, in the order of the text."""
        return dict(self.rules)


@functools.lru_cache(maxsize=4096)
def read_instructions(text: str) -> Instructions:
    r"""Read a prompt.

    Example:
        >>> read_instructions("Answer with the code only.\nglass -> K4; wine -> K2\nPaint gets K3. Glass gets K5.").rules
        (('wine', 'K2'), ('paint', 'K3'), ('glass', 'K5'))
    """
    stated: dict[str, str] = {}
    for clause in clauses(text):
        for rule in rules_in(clause):
            stated.pop(rule.attribute, None)
            stated[rule.attribute] = rule.code
    return Instructions(tuple(stated.items()), sum(_lengths(text)), _ONLY.search(text) is not None)


def lines_of(text: str) -> int:
    r"""The length of a prompt in lines, however it is laid out.

    Each statement counts for the rules in it, at least one, and for each 40 words one: several rules in one line are no
    shorter than several lines.

    Example:
        >>> lines_of("Sort parcels.\n\nglass -> K4; wine -> K4\npaint and tea -> K2")
        5
    """
    return sum(_lengths(text))


def _lengths(text: str) -> Iterator[int]:
    for clause in clauses(text):
        yield max(1, len(rules_in(clause)), -(-len(clause.split()) // _WORDS_A_LINE))
