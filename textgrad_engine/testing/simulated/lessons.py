"""What a piece of feedback asks for, whatever its words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from textgrad_engine.llm.simulated.reading import Item
from textgrad_engine.testing.simulated.vocabulary import attributes_in, clauses, rules_in, signs_in

_REMOVE = re.compile(r"\bremove\b|\bdrop\b|\btake (?:that|the|this) line out\b|\bdelete\b|\bdoes harm\b", re.IGNORECASE)
_BEFORE = re.compile(r"\b(?:before|above|ahead of)\b", re.IGNORECASE)
_FORMAT = re.compile(r"\bnothing else\b|\bcode only\b", re.IGNORECASE)
_TIDY = re.compile(r"\bsay the same\b|\bsays nothing\b|\bduplicates?\b|\bredundant\b", re.IGNORECASE)
_REJECTED = re.compile(
    r"reject|refused|dropp|worse|not kept|undone|taken back|taken out|revert|did not help|no better|discard|not shown|"
    r"no gain|removed again|lost",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Lesson:
    """One thing that feedback asks for.

    Attributes:
        kind: a line that gives the attribute the code; a line that explains the sign; no line about it; the line about
            it before another's; an answer of the right form; nothing said twice.
        attribute: the attribute or the sign, "" where the kind has none.
        other: the code, or the other attribute.
    """

    kind: Literal["rule", "sign", "remove", "order", "format", "tidy"]
    attribute: str = ""
    other: str = ""


@dataclass
class Support:
    """A lesson, how often it was said, and the numbers of the items that say it."""

    lesson: Lesson
    weight: int = 0
    numbers: list[int] = field(default_factory=list)


def lessons_in(feedback: str) -> tuple[Lesson, ...]:
    """What a text of feedback asks for; nothing when it is vague.

    Example:
        >>> [lesson.kind for lesson in lessons_in("Remove the line about glass. Parcels to Norway get code K4.")]
        ['remove', 'rule']
    """
    found: list[Lesson] = []
    for clause in clauses(feedback):
        names = attributes_in(clause)
        if rules := rules_in(clause):
            found += [Lesson("rule", rule.attribute, rule.code) for rule in rules]
        elif signs := signs_in(clause):
            found += [Lesson("sign", *pair) for pair in signs]
        elif names and _REMOVE.search(clause):
            found.append(Lesson("remove", names[0]))
        elif len(names) == 2 and _BEFORE.search(clause):
            found.append(Lesson("order", *names))
        elif _TIDY.search(clause):
            found.append(Lesson("tidy"))
        elif _FORMAT.search(clause):
            found.append(Lesson("format"))
    return tuple(dict.fromkeys(found))


def gathered(items: Iterable[Item]) -> list[Support]:
    """The lessons of some items, those with the most support first."""
    found: dict[Lesson, Support] = {}
    for item in items:
        for lesson in lessons_in(item.text):
            support = found.setdefault(lesson, Support(lesson))
            support.weight += item.times
            support.numbers.append(item.number)
    return sorted(found.values(), key=lambda support: (-support.weight, support.numbers[0]))


def rejected(history: Iterable[str]) -> frozenset[Lesson]:
    """What was tried before and came to nothing, as far as the lines about the past show it.

    Example:
        >>> [lesson.kind for lesson in rejected(["removed 'glass -> K1' — taken back: score 0.5 -> 0.4"])]
        ['remove']
    """
    found: set[Lesson] = set()
    for past in history:
        if not _REJECTED.search(past):
            continue
        if past.startswith("removed "):
            found |= {Lesson("remove", lesson.attribute) for lesson in lessons_in(past) if lesson.kind == "rule"}
        else:
            found |= set(lessons_in(past.partition(" by ")[2] if past.startswith("replaced ") else past))
    return frozenset(found)
