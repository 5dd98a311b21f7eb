"""Examples that are in two splits, word for word or nearly so: a score on them proves less than it seems.

Two texts are equal when they are so but for case, white space and the encoding of characters. They are near when the
sets of their runs of five characters have a Jaccard index of at least 0.8, the measure and the threshold of Lee et al.,
"Deduplicating Training Data Makes Language Models Better" (arXiv:2107.06499); in runs of characters, so that it holds
in every language; a letter of Chinese or Japanese, and a syllable of Korean, says as much as three of others and counts
as three. A text of less than 50 characters with another character in its middle is not near any more: "What is 2 + 3?"
and "What is 2 + 5?" are two questions.

Comparing all pairs would take hours for large splits. So each text is filed under the 32 smallest hashes of its runs of
eight characters, and only those that share at least a quarter of them are compared: near texts share about 22. Of texts
of more than 512 runs those with the 512 smallest hashes stand for all, and the index is an estimate, to within 0.03 or
so (`data.sketch`).
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from textgrad_engine.attributes import attributes_told
from textgrad_engine.checks import check
from textgrad_engine.data.casefold import folded
from textgrad_engine.data.dataset import Examples, by_position, examples_of, ids_of
from textgrad_engine.data.sketch import Sketch
from textgrad_engine.llm.attachments import in_names
from textgrad_engine.llm.conversation import is_conversation, turns_of
from textgrad_engine.llm.images import is_part

NEAR = 0.8
"""The Jaccard index from which on two texts are near duplicates."""

_FILED = 200  # texts under one mark, at most
_LETTERS = 100_000  # in the place of images, at most
_REMEMBERED = 64  # comparisons
_TRIED = 16  # texts that one is compared with, at most, by rare and by common marks, those with the most of them first

_found: dict[bytes, list[Overlap]] = {}
"""What `check_splits` found, by a digest of what it compared: who trains again, or goes on, has the same splits."""

_adding = threading.Lock()

Rows = Examples[Mapping[str, Any]]


@attributes_told
@dataclass(frozen=True)
class Overlap:
    """An example that is in another split, too.

    Attributes:
        kind: ``"exact"`` or ``"near"``.
        first: the split that it is also in.
        second: the split it is found in.
        first_id: the example there that it is like.
        second_id: its own id.
        similarity: the Jaccard index, 1 for exact ones.
    """

    kind: Literal["exact", "near"]
    first: str
    second: str
    first_id: str
    second_id: str
    similarity: float

    def __str__(self) -> str:
        how = "is" if self.kind == "exact" else f"is {self.similarity:.0%} like"
        return f"{self.second} example {self.second_id!r} {how} {self.first} example {self.first_id!r}"


def overlap(
    a: Rows,
    b: Rows,
    *,
    fields: Sequence[str] | None = None,
    threshold: float = NEAR,
    names: tuple[str, str] = ("first", "second"),
) -> list[Overlap]:
    """Find the examples of `b` that are in `a`, too.

    Args:
        a: one split, such as the training examples.
        b: the other one.
        fields: what is compared, such as the inputs of the program; None for all fields but ``"id"``.
        threshold: the Jaccard index from which on two texts are near duplicates.
        names: of the two splits.

    Returns:
        One entry for each example of `b` that has an equal one in `a`, or else the nearest that is found there, in the
        order of `b`.
        Examples without any text are like no others.

    Raises:
        ValueError: the threshold is not above 0 and at most 1.

    Example:
        >>> seen = [{"id": "t1", "ticket": "My parcel 8100 has not arrived after ten days, where is it now?"}]
        >>> new = [{"ticket": "my parcel 8100 has not arrived after  ten days, where is it now?"}]
        >>> [str(found) for found in overlap(seen, new, names=("train", "val"))]
        ["val example '0' is train example 't1'"]
        >>> new = [{"ticket": "My parcel 8100 hasn't arrived after ten days, where is it now?"}, {"ticket": "Refund!"}]
        >>> [(found.kind, round(found.similarity, 2)) for found in overlap(seen, new)]
        [('near', 0.8)]
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"a Jaccard index is above 0 and at most 1, got threshold={threshold}")
    return _between(_Split(a, fields), _Split(b, fields), threshold, names)


def check_splits(
    train: Rows, val: Rows, test: Rows | None = None, *, fields: Sequence[str] | None = None
) -> list[Overlap]:
    """Find the examples of the validation and test sets that are in an earlier set, too.

    Args:
        train: the training examples.
        val: the validation examples.
        test: the test examples, if any.
        fields: what is compared, such as the inputs of the program; None for all fields but ``"id"``.

    Returns:
        What `overlap` finds of train in val, of train in test, and of val in test, in this order.

    Example:
        >>> check_splits([{"q": "1 + 1?"}], [{"q": "1 + 2?"}], [{"q": " 1 + 1?"}])[0].second
        'test'
    """
    given = {"train": train, "val": val} | ({} if test is None else {"test": test})
    named = {name: by_position(rows, f"check_splits: {name}: ") for name, rows in given.items()}
    check(check_splits, locals() | named)
    splits = {name: _Split(rows, fields) for name, rows in named.items()}
    digest = _digest(splits)
    found = _found.get(digest)
    if found is None:
        found = [
            each
            for first, second in itertools.combinations(splits, 2)
            for each in _between(splits[first], splits[second], NEAR, (first, second))
        ]
        with _adding:
            _found[digest] = found
            for oldest in list(_found)[:-_REMEMBERED]:
                del _found[oldest]
    return list(found)


def _digest(splits: Mapping[str, _Split]) -> bytes:
    """What tells the splits from others; a text at a time, as all of them together may take hundreds of megabytes."""
    found = hashlib.sha256()
    for name, split in splits.items():
        for part in (name, split.ids):
            found.update(repr(part).encode("utf-8", "surrogatepass"))
        for text in split.texts:
            found.update(repr(text).encode("utf-8", "surrogatepass"))
    return found.digest()


def repeated(rows: Rows, *, fields: Sequence[str] | None = None) -> tuple[str, ...]:
    """For each example of a split the first one there that is equal to it, or itself, by its id.

    Args:
        rows: the split.
        fields: what is compared, such as the inputs of the program; None for all fields but ``"id"``.

    Example:
        >>> repeated([{"q": "1 + 1?"}, {"q": "2 + 2?"}, {"q": " 1 + 1?"}])
        ('0', '1', '0')
    """
    names = ids_of(rows)
    first: dict[str, str] = {}
    return tuple([first.setdefault(text, name) if text else name for text, name in zip(compared(rows, fields), names)])


def describe(found: Sequence[Overlap], sizes: dict[str, int] | None = None) -> list[str]:
    """What was found in words, a sentence for each pair of splits.

    Args:
        found: by `check_splits`.
        sizes: how many examples each split has, for "3 of 60".

    Example:
        >>> same = Overlap("exact", "train", "test", "t7", "x1", 1.0)
        >>> near = Overlap("near", "train", "test", "t9", "x2", 0.91)
        >>> describe([same, near], {"test": 60})
        ["2 of 60 test examples are in train, too (1 exactly, 1 nearly): test example 'x1' is train example 't7'"]
    """
    pairs: dict[tuple[str, str], list[Overlap]] = {}
    for each in found:
        pairs.setdefault((each.first, each.second), []).append(each)
    sentences = []
    for (first, second), these in pairs.items():
        exact = sum(each.kind == "exact" for each in these)
        counts = [f"{count} {word}" for count, word in ((exact, "exactly"), (len(these) - exact, "nearly")) if count]
        total = f" of {sizes[second]}" if sizes and second in sizes else ""
        are = "example is" if len(these) == 1 and not total else "examples are"
        shown = next((each for each in these if each.kind == "exact"), these[0])
        sentences.append(f"{len(these)}{total} {second} {are} in {first}, too ({', '.join(counts)}): {shown}")
    return sentences


def compared(rows: Rows, fields: Sequence[str] | None) -> list[str]:
    """What is compared of each row: without case, encoding and white space; "" where there is no text.

    Args:
        rows: the examples.
        fields: those that are compared; None for all but ``"id"``.
    """
    texts = []
    for row in examples_of(rows):
        names = [name for name in row if name != "id"] if fields is None else fields
        values = [row[name] for name in names if row.get(name) is not None]
        pictured = [each for each in values if is_part(each)]
        written = [_written(each) for each in values if not is_part(each)]
        text = " ".join(folded(" ".join(written)).split())
        texts.append(f"{text} {_told_apart(pictured, len(text))}" if pictured else text)
    return texts


def _written(value: Any) -> str:
    """A value as a text; of a conversation what was said, as who says it is alike in all."""
    if is_conversation(value):
        return "\n".join([turn.said for turn in turns_of(value)])
    return value if isinstance(value, str) else _as_json(value)


def _told_apart(parts: Sequence[Any], length: int) -> str:
    """Letters in the place of images: as many as there are of text, so that equal questions about two are not near."""
    named = _as_json([in_names(part) for part in parts])  # as JSON, the bytes of an image take ten times as long
    digest = hashlib.sha256(named.encode("utf-8", "backslashreplace")).hexdigest()
    blocks = range(1, 1 + min(length, _LETTERS) // len(digest))
    return "".join([digest, *(hashlib.sha256(f"{digest}{block}".encode()).hexdigest() for block in blocks)])


def _as_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr, ensure_ascii=False)


_DENSE = re.compile("[\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]")


def letters_in(text: str) -> int:
    """How many characters a text has, of which those that say as much as three count as three.

    Example:
        >>> letters_in("No."), letters_in("不要。")
        (3, 7)
    """
    return len(text) if text.isascii() else len(text) + 2 * len(_DENSE.findall(text))


def _sketched(text: str) -> Sketch:
    """A text as it is compared: with letters of dense scripts three times each."""
    if text.isascii():
        return Sketch(text)
    thrice = {ord(letter): letter * 3 for letter in _DENSE.findall("".join(set(text)))}
    return Sketch(text.translate(thrice))


class _Split:
    """A split as it is compared; what is worked out about its texts is kept for further comparisons."""

    def __init__(self, rows: Rows, fields: Sequence[str] | None) -> None:
        self.ids, self.texts = ids_of(rows), compared(rows, fields)
        self.places: dict[str, int] = {}
        for index, text in enumerate(self.texts):
            if text:
                self.places.setdefault(text, index)
        self.sketches = {text: _sketched(text) for text in self.places}

    @functools.cached_property
    def filed(self) -> dict[int, list[str]]:
        """Its texts by their marks."""
        filed: dict[int, list[str]] = defaultdict(list)
        for text, sketch in self.sketches.items():
            for mark in sketch.marks:
                if len(held := filed[mark]) < _FILED:
                    held.append(text)
        return dict(filed)

    def near(self, sketch: Sketch, threshold: float) -> tuple[str, float] | None:
        """The text of it that is nearest to another one, and how near; None when there is none that is near."""
        rare: Counter[str] = Counter()
        common: Counter[str] = Counter()  # by marks that more texts have than are filed there, as those of a template
        for mark in sketch.marks:
            if filed := self.filed.get(mark):
                (rare if len(filed) < _FILED else common).update(filed)
        marks, nearest = frozenset(sketch.marks), None
        kept: frozenset[int] | None = None
        for text, count in (*rare.most_common(_TRIED), *common.most_common(_TRIED)):
            other = self.sketches[text]
            least = min(len(marks), len(other.marks)) / 4
            # Where they are too few they are counted again, as a text need not be filed under all of its marks.
            if count < least and len(marks.intersection(other.marks)) < least:
                continue
            if not sketch.may_reach(threshold, other):
                continue
            kept = sketch.kept if kept is None else kept
            similarity = sketch.jaccard(other, kept)
            if similarity >= threshold and (nearest is None or similarity > nearest[1]):
                nearest = text, similarity
        return nearest


def _between(old: _Split, new: _Split, threshold: float, names: tuple[str, str]) -> list[Overlap]:
    """What `overlap` finds."""
    found = []
    looked_up: dict[str, tuple[str, float] | None] = {}
    for text, new_id in zip(new.texts, new.ids):
        if text in old.places:
            found.append(Overlap("exact", *names, old.ids[old.places[text]], new_id, 1.0))
            continue
        if text and text not in looked_up:
            looked_up[text] = old.near(new.sketches[text], threshold)
        if (near := looked_up.get(text)) is not None:
            found.append(Overlap("near", *names, old.ids[old.places[near[0]]], new_id, near[1]))
    return found
