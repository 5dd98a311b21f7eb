"""The orders in which demonstrations are taken: by label, or by how near they are to what is asked.

Taking those that are nearest to what is asked is KATE's (arXiv 2101.06804). Both orders are pure functions: no model is
asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textgrad_engine.optim.demos import Demo
from textgrad_engine.optim.words import grams, terms_of


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
