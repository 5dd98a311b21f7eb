"""Feedback as reports show it: equal texts once, with the examples that they came from."""

from __future__ import annotations

from collections.abc import Iterable

from textgrad_engine.optim.cells import Evidence
from textgrad_engine.report.words import in_order

SHOWN_EXAMPLES = 8


def merged(evidence: Iterable[Evidence]) -> list[Evidence]:
    """Equal texts once, with all their examples.

    Example:
        >>> merged([Evidence("Be brief.", ("t10",)), Evidence("Be  brief.", ("t9",))])
        [Evidence(text='Be brief.', examples=('t9', 't10'))]
    """
    by_text: dict[str, set[str]] = {}
    for item in evidence:
        by_text.setdefault(" ".join(item.text.split()), set()).update(item.examples)
    return [Evidence(text, tuple(in_order(examples))) for text, examples in by_text.items()]


def in_words(examples: tuple[str, ...]) -> str:
    """The first examples by their ids, and how many there are beside.

    Example:
        >>> in_words(("t1", "t2")), in_words(())
        ('t1, t2', 'no example')
    """
    shown = ", ".join(examples[:SHOWN_EXAMPLES]) or "no example"
    more = len(examples) - SHOWN_EXAMPLES
    return f"{shown} and {more} more" if more > 0 else shown
