"""`NoCopying`: a prompt that holds the training examples has learned nothing from them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from textgrad_engine.checks import at_least, check
from textgrad_engine.data import examples_of
from textgrad_engine.llm.images import is_part
from textgrad_engine.optim.contracts.base import say
from textgrad_engine.optim.words import size_of, together, words_of

_SHOWN = 40
"""Words of a copied run that are shown."""

_SEARCHED = 1000
"""So many new runs are searched for, one by one. To go through all runs of the examples takes as long as a thousand
searches, however large these are."""


@dataclass(frozen=True, init=False)
class NoCopying:
    """No run of `n` words from the training examples may get into the text, unless it was there before.

    Words are compared without case, punctuation and line ends (`optim.words`). Where a script has no spaces between
    words, two letters of Chinese or Japanese count as a word, and four of Thai and its like. A disguised copy is not
    detected: other words here and there, another order or language, letters one by one or look-alikes of another
    script, all words as one, or base64. Test examples that are in no other set show what such a copy is worth.

    Args:
        examples: rows of a dataset (mappings; what is text in their values counts), or texts.
        n: words in a run, at least 1.
        target: the column of the answers, or several. Short answers are labels, which a prompt may have to name.
        shortest: texts of fewer than `n` words, but at least so many, must not be copied as a whole. Texts that several
            examples share (values of a category) and short answers may be.

    Raises:
        ValueError: there are no examples, or a number is out of its range.
        TypeError: an example is neither a row nor a text.

    Example:
        >>> rows = [{"ticket": "My parcel never came to Springfield", "target": "delivery"}]
        >>> no_copying = NoCopying(rows, n=5, target="target")
        >>> print(no_copying.problem("Sort.", "Sort. 'My parcel never came to town' is delivery."))
        these words are copied from a training example; say the general rule instead:
        <copied-ac642af9>
        my parcel never came to
        </copied-ac642af9>
    """

    n: int
    shortest: int
    examples: int
    """How many there are."""
    _long: str = field(repr=False)
    _short: tuple[str, ...] = field(repr=False)

    def __init__(
        self,
        examples: Iterable[Mapping[str, Any] | str],
        n: int = 8,
        *,
        target: str | Collection[str] | None = None,
        shortest: int = 3,
    ) -> None:
        check(NoCopying.__init__, locals(), at_least(1, "n", "shortest"))
        answers = () if target is None else (target,) if isinstance(target, str) else target
        long: dict[str, None] = {}
        short: Counter[str] = Counter()
        count = 0
        for example in examples_of(examples):
            count += 1
            own = set()
            for column, text in _texts(example):
                words = words_of(text)
                if (size := sum(map(size_of, words))) >= n:
                    long[" ".join(words)] = None
                elif size >= shortest and (column is None or column not in answers):
                    own.add(" ".join(words))
            short.update(own)
        if not count:
            raise ValueError("NoCopying was given no examples")
        object.__setattr__(self, "n", n)
        object.__setattr__(self, "shortest", shortest)
        object.__setattr__(self, "examples", count)
        # One text that is searched as a whole is small and fast; a line end separates those that it is made of.
        object.__setattr__(self, "_long", "".join(f" {text} \n" for text in long))
        object.__setattr__(self, "_short", tuple(text for text, times in short.items() if times == 1))

    def describe(self, before: str) -> str:
        """Asks for general words."""
        return say("no_copying", n=self.n, copied=[])

    def problem(self, before: str, after: str) -> str | None:
        """Shows what was copied."""
        copied = self.copied(before, after)
        return say("no_copying", n=self.n, copied=copied) if copied else None

    def copied(self, before: str, after: str) -> list[str]:
        """The runs of words that `after` took from the examples, each as long as it is, shortened to 40 words."""
        old, words = words_of(before), words_of(after)
        known = {" ".join(old[start:end]) for start, end in _runs(old, self.n)}
        new = [(" ".join(words[start:end]), start, end) for start, end in _runs(words, self.n)]
        # A prompt has most of it from before; the examples may be a hundred megabytes.
        there = self._in_examples({gram for gram, _, _ in new if gram not in known})
        runs: list[list[int]] = []
        for gram, start, end in new:
            if gram in there:
                if runs and start <= runs[-1][1]:
                    runs[-1][1] = end
                else:
                    runs.append([start, end])
        found = [together(words[start : min(end, start + _SHOWN)]) for start, end in runs]
        was, now = (f" {' '.join(each)} " for each in (old, words))
        short = (text for text in self._short if f" {text} " in now and f" {text} " not in was)
        found += [together(text.split(" ")) for text in short]
        return list(dict.fromkeys(found))

    def _in_examples(self, grams: set[str]) -> set[str]:
        """Those of some runs of n words that are in the examples."""
        if len(grams) <= _SEARCHED:
            return {gram for gram in grams if f" {gram} " in self._long}
        found = set()
        for line in _LINE.finditer(self._long):
            words = line[0].split()
            found |= grams & {" ".join(words[start:end]) for start, end in _runs(words, self.n)}
        return found


_LINE = re.compile("[^\n]+")


def _runs(words: Sequence[str], n: int) -> Iterator[tuple[int, int]]:
    """Where runs of n words begin and end, one for each beginning."""
    end, size = 0, 0.0
    for start, word in enumerate(words):
        while size < n and end < len(words):
            size += size_of(words[end])
            end += 1
        if size < n:
            return
        yield start, end
        size -= size_of(word)


def _texts(example: Mapping[str, Any] | str) -> list[tuple[str | None, str]]:
    if isinstance(example, str):
        return [(None, example)]
    if not isinstance(example, Mapping):
        raise TypeError(f"NoCopying: an example is a row of a dataset or a text, got {type(example).__name__}")
    return [(str(column), text) for column, value in example.items() for text in _inside(value)]


def _inside(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if is_part(value):  # an image holds no words that a text could copy
        return []
    if isinstance(value, Mapping):
        return [text for inner in value.values() for text in _inside(inner)]
    if isinstance(value, (list, tuple)):
        return [text for inner in value for text in _inside(inner)]
    return []
