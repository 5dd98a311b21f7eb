from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.optim.words import grams, size_of, terms_of, together, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("?! -- ...", []),
        ("Straße, STRASSE", ["strasse", "strasse"]),
        ("e\u0301tude \u00e9tude", ["\u00e9tude", "\u00e9tude"]),
        ("snake_case 3.5", ["snake", "case", "3", "5"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("读工单", ["读", "工", "单"]),
        ("a\u200bb\x00c", ["a", "b", "c"]),
        ("İSTANBUL istanbul", ["istanbul", "istanbul"]),
    ],
)
def test_words_are_equal_however_they_are_written(text: str, words: list[str]) -> None:
    """Case, encoding, signs on letters, and scripts without spaces."""
    assert words_of(text) == words


@given(st.text())
def test_any_text_has_words_without_space(text: str) -> None:
    """Law: words can be joined by spaces and read back."""
    words = words_of(text)
    assert " ".join(words).split(" ") == (words or [""])
    assert words_of(" ".join(words)) == words


@given(st.text(st.characters(codec="ascii")))
def test_words_do_not_depend_on_what_else_a_text_holds(text: str) -> None:
    """Law: plain text, which is taken apart in a quicker way, has the words that it has in front of other letters."""
    assert [*words_of(text), "é"] == words_of(f"{text} é")
    assert terms_of(text) == terms_of(f"{text} 猫")[:-1] == words_of(text)


@given(st.lists(st.sampled_from("abc"), max_size=9), st.integers(1, 5))
def test_runs_cover_all_words(words: list[str], n: int) -> None:
    """Law: none is lost, and none is longer than asked for."""
    runs = grams(words, n)
    assert [run[0] for run in runs] + list(runs[-1][1:] if runs else ()) == words
    assert all(len(run) == min(n, len(words)) for run in runs)


def test_words_are_put_together_as_they_are_read() -> None:
    """A Thai word whose letters stand apart can be read by nobody."""
    text = "the parcel 追跡番号 พัสดุ 티켓 box"
    assert together(words_of(text)) == "the parcel 追跡番号พัสดุ 티켓 box"


def test_letters_of_scripts_without_spaces_are_parts_of_words() -> None:
    """So a number of words is about as much text in any language."""
    assert [sum(map(size_of, words_of(text))) for text in ("my parcel", "追跡番号", "พัสดุหาย", "티켓")] == [2, 2, 2, 1]


def test_terms_tell_texts_apart_that_have_the_same_letters() -> None:
    """All texts of a language have its letters; what a text is about shows in runs of them."""
    assert terms_of("my bill, 发票X") == ["my", "bill", "发票", "x"]
    assert not set(terms_of("发现支票")) & set(terms_of("发票"))
    assert terms_of("พัสดุ") == ["พัสด", "ัสดุ"]
    assert terms_of("猫") == ["猫"]
