"""Which examples are about the same: by the definition, and without holding their words."""

from __future__ import annotations

import math
import random
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.optim.words import terms_of
from textgrad_engine.train.nearness import Nearness

FIELDS = st.fixed_dictionaries({"q": st.lists(st.sampled_from([*"abcdefgh", "é", "不"]), max_size=8).map(" ".join)})


def by_definition(others: list[dict[str, str]], among: list[dict[str, str]]) -> list[int]:
    """All words of all examples, in the order of the words, each weighed by how rare it is."""
    asked, known = ([set(terms_of(each["q"])) for each in examples] for examples in (others, among))

    def weight(word: str) -> float:
        seen = sum(word in words for words in known)
        return math.log((1 + len(known)) / (1 + seen)) * min(sum(word in words for words in asked), 3)

    shared = [sum(weight(word) for word in sorted(words)) / math.sqrt(len(words) or 1) for words in known]
    return sorted(range(len(among)), key=lambda position: (-shared[position], position))


@given(st.lists(FIELDS, max_size=5), st.lists(FIELDS, max_size=8))
def test_the_order_is_that_of_the_definition(others: list[dict[str, str]], among: list[dict[str, str]]) -> None:
    """Ties and examples without words, too."""
    nearness = Nearness(others, among)
    every = range(len(others)), range(len(among))
    assert nearness.by(*every) == nearness.by(*every) == by_definition(others, among)


def test_what_is_about_the_same_is_told_without_spaces_between_words() -> None:
    """The letters of a Chinese or Thai text are in most others, too; its words are not."""
    for asked, others in (("发票", ["票发", "发票有误"]), ("พัสดุหาย", ["ดุสัพยาห", "ขอพัสดุ"])):
        assert Nearness([{"q": asked}], [{"q": each} for each in [*others, "x"]]).by([0], [0, 1])[0] == 1


def test_less_is_held_than_the_texts_themselves() -> None:
    """A set of the words of each document would be several times as large as the document."""
    source = random.Random(1)
    known = ["".join(source.choices("abcdefghijklmnop", k=source.randint(3, 9))) for _ in range(3000)]
    among = [{"q": " ".join(source.choices(known, k=1500))} for _ in range(100)]
    size = sum(len(fields["q"]) for fields in among)
    tracemalloc.start()
    try:
        nearness = Nearness(among[:2], among)
        first = nearness.by([0, 1], range(100))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert first[:2] in ([0, 1], [1, 0])
    assert held < 1.5 * size
