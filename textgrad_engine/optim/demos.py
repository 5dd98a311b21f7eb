"""Demonstrations: examples that were solved, to be shown in a prompt, and the orders in which they are taken.

That a program's own good answers make good demonstrations is DSPy's bootstrapping (arXiv 2310.03714); taking those that
are nearest to what is asked is KATE's (arXiv 2101.06804). Here both orders are pure functions: no model is asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from textgrad_engine.optim.words import grams, terms_of

__all__ = ["Demo", "by_label", "by_likeness", "demo_of", "demos_and_queries", "solved"]


@dataclass(frozen=True)
class Demo:
    """An example with an answer that is right.

    Attributes:
        inputs: the name and the text of each of its fields.
        answer: the answer.
        label: what demonstrations are balanced by: the class of the example, where it has one.
        example: the id of the example.
    """

    inputs: tuple[tuple[str, str], ...]
    answer: str
    label: str = ""
    example: str = ""


def solved(
    ids: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    answers: Sequence[Any],
    scores: Sequence[float | None],
    *,
    fields: Sequence[str],
    target: str = "target",
    least: float = 1.0,
) -> list[Demo]:
    """The demonstrations that an evaluation gives: examples whose answer scored high enough, in order.

    Args:
        ids: the ids of the examples.
        rows: the examples.
        answers: what the program answered to each, which is what is shown; None where it gave no answer.
        scores: the score of each answer; None where there is none.
        fields: the fields that are shown; a row that lacks one is left out.
        target: the field that labels are taken from; rows without it have none.
        least: the lowest score that is good enough.

    Raises:
        ValueError: there are not as many ids, rows, answers and scores.

    Example:
        >>> rows = [{"mail": "My bill?", "target": "billing"}, {"mail": "Hi", "target": "other"}]
        >>> solved(["t1", "t2"], rows, ["billing", "billing"], [1.0, 0.0], fields=["mail"])
        [Demo(inputs=(('mail', 'My bill?'),), answer='billing', label='billing', example='t1')]
    """
    if not len(ids) == len(rows) == len(answers) == len(scores):
        raise ValueError(
            f"solved() wants an id, a row, an answer and a score for each example, got {len(ids)}, {len(rows)}, "
            f"{len(answers)} and {len(scores)}"
        )
    found = []
    for name, row, answer, score in zip(ids, rows, answers, scores):
        if answer is None or score is None or not score >= least or any(field not in row for field in fields):
            continue
        found.append(demo_of(name, {field: row[field] for field in fields}, answer, row.get(target)))
    return found


def demo_of(example: str, inputs: Mapping[str, Any], answer: Any, label: Any = None) -> Demo:
    """The demonstration of one example; what is no text is shown as JSON.

    Args:
        example: its id.
        inputs: its fields.
        answer: what is shown as the right answer.
        label: what demonstrations are balanced by, such as its target; None for none.

    Example:
        >>> demo_of("t1", {"mail": "My bill?"}, "billing", "billing")
        Demo(inputs=(('mail', 'My bill?'),), answer='billing', label='billing', example='t1')
    """
    shown = tuple((field, _text(value)) for field, value in inputs.items())
    return Demo(shown, _text(answer), "" if label is None else _text(label), example)


class _Examples(Protocol):
    """What is needed here of `optim.search.objective.Objective`, which knows of demonstrations: it cannot be named."""

    train: tuple[str, ...]

    def demos(self, positions: Sequence[int], texts: tuple[str, ...] | None = None) -> list[Demo | None]: ...


def demos_and_queries(
    examples: _Examples, texts: tuple[str, ...], scores: Mapping[int, float | None], top: float
) -> dict[str, Any]:
    """What the training examples give a proposer beside feedback: `Brief.demos` and `Brief.queries`.

    The demonstrations are the examples that the program has just solved, with its own answers, and those that the data
    has an answer for, but for the ones that it has just failed; the inputs of these are the queries. Nothing is run.

    Args:
        examples: the objective of a search.
        texts: what the examples were run with.
        scores: of the examples that were run with these texts, by position; None where no answer was to be had.
        top: the score from which an example counts as solved.
    """
    known = {position: score for position, score in scores.items() if score is not None}
    answered = dict(zip(known, examples.demos(list(known), texts)))
    failed = [position for position, score in known.items() if not score >= top]
    found = dict(enumerate(examples.demos(range(len(examples.train)))))
    found |= {position: demo for position, demo in answered.items() if demo is not None}
    asked = [demo for position in failed if (demo := answered[position]) is not None]
    return {
        "demos": tuple(demo for position, demo in found.items() if demo is not None and position not in failed),
        "queries": tuple(" ".join(text for _, text in demo.inputs) for demo in asked),
    }


def by_label(demos: Iterable[Demo]) -> list[Demo]:
    """The demonstrations such that the first few have each label about equally often: one of each, then another.

    Labels come in the order of their first demonstration, and the demonstrations of a label in theirs.

    Example:
        >>> demos = [Demo((), "yes", label) for label in ["a", "a", "a", "b"]]
        >>> [demo.label for demo in by_label(demos)]
        ['a', 'b', 'a', 'a']
    """
    groups: dict[str, list[Demo]] = {}
    for demo in demos:
        groups.setdefault(demo.label, []).append(demo)
    return _in_turn(list(groups.values()))


def by_likeness(demos: Sequence[Demo], queries: Sequence[str]) -> list[Demo]:
    """The demonstrations such that the first few are like what is asked: the nearest to each query, then the next.

    How like two texts are is the share of their words and pairs of words that both have (Jaccard); of equals the first
    demonstration is nearer.

    Args:
        demos: the demonstrations.
        queries: texts such as the inputs of examples that fail; with none, the order stays.

    Example:
        >>> demos = [Demo((("mail", text),), "x") for text in ("Where is my bill?", "The app does not start.")]
        >>> [demo.inputs[0][1] for demo in by_likeness(demos, ["It does not start"])]
        ['The app does not start.', 'Where is my bill?']
    """
    if not queries:
        return list(demos)
    runs = [_runs(" ".join(text for _, text in demo.inputs)) for demo in demos]
    ranked = []
    for query in dict.fromkeys(queries):
        asked = _runs(query)
        near = sorted(range(len(demos)), key=lambda n: (-_likeness(asked, runs[n]), n))
        ranked.append([demos[n] for n in near])
    return list(dict.fromkeys(_in_turn(ranked)))


def _in_turn(groups: Sequence[Sequence[Demo]]) -> list[Demo]:
    longest = max(map(len, groups), default=0)
    return [group[turn] for turn in range(longest) for group in groups if turn < len(group)]


def _runs(text: str) -> frozenset[tuple[str, ...]]:
    words = terms_of(text)
    return frozenset([*grams(words, 1), *grams(words, 2)])


def _likeness(one: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> float:
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) if shared else 0.0


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
