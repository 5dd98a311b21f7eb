"""Sketches: the smallest hashes of a text's runs, whatever way they are found, and the index that they give."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.data import sketch
from textgrad_engine.data.sketch import Sketch

LETTERS = "ab \n\udc80é不\U0001f600"


def runs(text: str, length: int) -> set[str]:
    return {text[place : place + length] for place in range(max(1, len(text) - length + 1))}


@given(st.text(LETTERS, max_size=40), st.integers(1, 8))
def test_the_first_byte_of_a_hash_depends_on_the_run_alone(text: str, length: int) -> None:
    """Not on where it stands, nor on which letters the text has elsewhere."""
    found = sketch._first_bytes(text, length)
    alone = [text[place : place + length] for place in range(len(found))]
    assert found == b"".join(sketch._first_bytes(run, length) for run in alone)


@given(st.text(LETTERS, max_size=200), st.integers(1, 8), st.integers(1, 20))
def test_the_smallest_hashes_are_those_of_all_runs(text: str, length: int, most: int) -> None:
    """Although most runs are never hashed as a whole."""
    every = sorted({sketch._smallest(run, length, 1)[0][0] for run in runs(text, length)})
    assert sketch._smallest(text, length, most) == (every[:most], len(every) <= most)


@pytest.mark.parametrize("text", ["a" * 5000, "ab" * 5000, "Yours sincerely, " * 300])
def test_a_text_that_repeats_itself_keeps_all_its_runs(text: str) -> None:
    """However few of them have a small hash."""
    hashes, complete = sketch._smallest(text, 5, 512)
    assert complete
    assert len(hashes) == len(runs(text, 5))


@pytest.mark.parametrize("alphabet", ["abcdefghij ", "不要喊猫é"])
@pytest.mark.parametrize("letters", [40, 400, 4000])
def test_the_index_is_that_of_the_runs(alphabet: str, letters: int) -> None:
    """Exactly for short texts, nearly for long ones, at any likeness."""
    source = random.Random(letters)
    text = "".join(source.choices(alphabet, k=letters))
    for share in (0.0, 0.1, 0.5, 1.0):
        cut = round(share * letters)
        other = "".join(source.choices(alphabet, k=cut)) + text[cut:]
        exact = len(runs(text, 5) & runs(other, 5)) / len(runs(text, 5) | runs(other, 5))
        one = Sketch(text)
        found = one.jaccard(Sketch(other), one.kept)
        assert found == pytest.approx(exact, abs=0 if letters < 500 else 0.06)


@pytest.mark.parametrize("letters", [40, 400, 4000])
@pytest.mark.parametrize("least", [0.3, 0.8, 1.0])
def test_the_quick_look_rules_out_nothing_that_is_near(letters: int, least: float) -> None:
    """Whether all runs are compared, or the smallest hashes of one text or of both; and it rules out what is far."""
    source = random.Random(letters)
    text = "".join(source.choices("abcdefghij ", k=letters))
    one = Sketch(text)
    for number in range(60):
        cut = round(number / 60 * letters * source.random())
        other = Sketch("".join(source.choices("abcdefghij ", k=cut)) + text[cut : source.choice([letters, 300])])
        if one.jaccard(other, one.kept) >= least:
            assert one.may_reach(least, other)
            assert other.may_reach(least, one)
    assert one.may_reach(least, Sketch(text))
    far = [Sketch("".join(source.choices("abcdefghij ", k=letters))) for _ in range(20)]
    assert not any(one.may_reach(least, each) for each in far)
