"""Examples whose right answer may be wrong: no text that was tried led to it, and most led to the same other one.

A model that contradicts a label again and again, under whatever instructions, is among the better signs of a wrong one
(Northcutt, Jiang and Chuang, "Confident Learning", arXiv 1911.00068, rank labels by the model's confidence in others).
Here a run has asked many texts anyway, so it costs nothing. It proves nothing: an example of a rule that nobody has
found looks the same.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from textgrad_engine.attributes import attributes_told
from textgrad_engine.llm.attachments import in_names
from textgrad_engine.optim.search.marks import marks_of
from textgrad_engine.optim.search.objective import Split, Texts
from textgrad_engine.train.scores import ALIKE

FEWEST = 3
"""So many texts must have been tried on an example."""

MOST = 0.6
"""Such a part of them must have led to the same answer."""


@attributes_told
@dataclass(frozen=True)
class Doubtful:
    """An example that no text got right, and on which most texts led to the same answer.

    Attributes:
        id: of the example.
        split: the set that it is in; where the training examples validate, ``"train"``.
        said: the answer that most texts led to, as JSON where it is no text.
        times: how many did.
        texts: how many different texts it was answered with.
    """

    id: str
    split: Split
    said: str
    times: int
    texts: int


class Answer(NamedTuple):
    """What was said on an example.

    Attributes:
        split: the set that the example is in.
        example: its id.
        texts: those that led to it.
        score: of the answer.
        said: the answer.
    """

    split: Split
    example: str
    texts: Texts
    score: float
    said: Any


class Answered:
    """Answers that were noted by the way, on any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: list[Answer] = []

    def note(self, answer: Answer) -> None:
        """Take note of an answer."""
        with self._lock:
            self._found.append(answer)

    def every(self) -> list[Answer]:
        """All of them, in the order in which they were noted."""
        with self._lock:
            return list(self._found)


def doubtful_among(answers: Iterable[Answer], limits: tuple[float, float] | None) -> tuple[Doubtful, ...]:
    """The doubtful examples, those first that most texts led to one answer on.

    Args:
        answers: of one text and example, the first counts.
        limits: the worst and the best score that there can be; None where nobody knows them.

    Example:
        >>> given = [Answer("val", "a", (f"text {n}",), 0.0, "no") for n in range(3)]
        >>> doubtful_among([*given, Answer("val", "b", ("text 1",), 1.0, "yes")], None)
        (Doubtful(id='a', split='val', said='no', times=3, texts=3),)
    """
    by_example: dict[tuple[Split, str], dict[Texts, tuple[float, str]]] = {}
    for split, example, texts, score, said in answers:
        by_example.setdefault((split, example), {}).setdefault(texts, (score, _as_text(said)))
    best = marks_of(limits, [score for found in by_example.values() for score, _ in found.values()]).top
    doubtful = []
    for (split, example), found in by_example.items():
        said, times = Counter(said for _, said in found.values()).most_common(1)[0]
        never_right = all(score < best - ALIKE for score, _ in found.values())
        if never_right and len(found) >= FEWEST and times >= MOST * len(found):
            doubtful.append(Doubtful(example, split, said, times, len(found)))
    return tuple(sorted(doubtful, key=lambda each: (-each.times, each.texts, each.split, each.id)))


def _as_text(said: Any) -> str:
    if isinstance(said, str):
        return said.strip()
    try:
        return json.dumps(in_names(said), ensure_ascii=False, sort_keys=True, default=str)
    except (TypeError, ValueError, RecursionError):  # of names that are no text, and of what holds itself
        return repr(said)
