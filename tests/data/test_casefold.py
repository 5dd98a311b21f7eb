"""Which texts are one to a reader, for all that compares texts: examples, feedback, edits and phrases."""

import pytest

from textgrad_engine.data.casefold import folded
from textgrad_engine.data.overlap import overlap
from textgrad_engine.optim.contracts import Forbids
from textgrad_engine.optim.contracts.detect import language_of
from textgrad_engine.optim.rebase import fold

DIFFERENT = [("x2", "x²"), ("H2O", "H₂O"), ("11/2", "1½"), ("1", "①"), ("m2", "㎡")]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_powers_indices_and_fractions_are_not_the_digits_they_are_made_of(one, other):
    """Unicode calls them compatible; an edit that puts x² in the place of x2 was dropped as made already."""
    assert folded(one) != folded(other)
    assert fold(f"- Write {one}.") != fold(f"Write {other}")
    assert Forbids([one]).problem("", f"Write {other}, please.") is None
    assert Forbids([one]).problem("", f"Write {one}, please.")
    assert [found.kind for found in overlap([{"q": f"What is {one}?"}], [{"q": f"What is {other}?"}])] != ["exact"]


@pytest.mark.parametrize(
    ("one", "other"),
    [("É", "e\u0301"), ("\uff21", "a"), ("\ufb01x", "Fix"), ("\u0130", "i"), ("\u0131", "I"), ("x²É", "X²e\u0301")],
)
def test_encodings_widths_and_case_make_no_difference(one, other):
    """So that nobody gets past a forbidden phrase by writing it in wide letters."""
    assert folded(one) == folded(other)


def test_a_word_of_turkish_in_capitals_is_the_same_word():
    """Its capital of the letter without a dot is the I of other languages, and nobody knows which one a text is in."""
    assert Forbids(["\u0131s\u0131t\u0131c\u0131"]).problem("", "ISITICI VAR MI?")
    again = overlap([{"q": "KIZ YANITLADI"}], [{"q": "K\u0131z yan\u0131tlad\u0131"}])
    assert [found.kind for found in again] == ["exact"]
    assert language_of("Bu soruya yan\u0131t verme, ne olursa olsun; bunu asla yapma ve sus.") == "tr"


@pytest.mark.parametrize(
    "mark", list("\u00ad\u200b\u200e\u2060\u202a\u2069\ufeff\ufe0f"), ids=lambda mark: f"U+{ord(mark):04X}"
)
def test_marks_that_cannot_be_seen_make_no_difference(mark):
    """Web pages, PDFs and chats bring them along, and nobody gets past a forbidden phrase or a split check by them."""
    text = f"Ein Guts{mark}chein"
    assert folded(text) == "ein gutschein"
    assert Forbids(["Gutschein"]).problem("", text)
    assert [found.kind for found in overlap([{"q": text}], [{"q": "Ein Gutschein"}])] == ["exact"]


def test_joiners_that_are_written_are_kept():
    """Without them words of Persian are other words, and an emoji of three is three."""
    assert (
        folded("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645") == "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    )
    assert folded("👩\u200d👧") == "👩\u200d👧"
