"""Markup from values: nothing that a run holds becomes markup, or is there unseen."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.report.html import data, document, element


class Tags(HTMLParser):
    """The elements of a piece of markup, and its text."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text(st.characters(codec=None), max_size=60))
def test_any_text_stays_text(text: str) -> None:
    """A reader sees its characters, and no element but the marks of ours."""
    markup = data(text, 100).text
    found = Tags(markup)
    assert set(found.tags) <= {"bdi", "span"}
    assert found.tags.count("bdi") == 1
    kept = "\n\u200c\u200d"
    odd = {c for c in text if not c.isprintable() and not c.isspace() and c not in kept}
    shown = (f"U+{ord(c):04X}" if c in odd else c for c in text)
    assert found.text == "".join(c if c.isprintable() or c in kept else " " for c in "".join(shown))
    markup.encode("utf-8")


def test_what_turns_texts_around_is_shown_by_its_number() -> None:
    """Overrides of the direction, terminal codes, what has no width, halves of characters."""
    for odd in ("\u202e", "\u2066", "\x1b", "\x00", "\u200b", "\ufeff", "\ud800"):
        assert f"U+{ord(odd):04X}" in data(f"a{odd}b", 10).text
        assert odd not in data(f"a{odd}b", 10).text


def test_what_is_needed_to_write_stays() -> None:
    """Persian and emoji are joined by characters without a width."""
    assert data("👨\u200d👩", 10).text == "<bdi>👨\u200d👩</bdi>"
    assert data("a\r\tb\nc", 10).text == "<bdi>a  b\nc</bdi>"


def test_a_long_text_is_cut_and_says_so() -> None:
    """By how much is missing."""
    assert "… 999,996 more characters" in data("a" * 1_000_000, 4).text
    assert data("a" * 5, 5).text == "<bdi>aaaaa</bdi>"
    assert "… 1 more character<" in data("a" * 6, 5).text


def test_attributes_and_titles_cannot_be_left() -> None:
    """Quotes, angles and line breaks."""
    hostile = '"><script>\n\u202e'
    assert element("p", title=hostile).text == '<p title="&quot;&gt;&lt;script&gt;\ufffd\ufffd"></p>'
    page = document("</title><script>", "p{}", [hostile])
    assert Tags(page).tags.count("script") == 0
    assert "<title>&lt;/title&gt;&lt;script&gt;</title>" in page


def test_a_page_may_load_and_run_nothing() -> None:
    """Its policy allows its own style sheet, by digest, and nothing else."""
    style = "p { color: red }"
    page = document("x", style, [])
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src &#x27;none&#x27;; style-src &#x27;sha256-{digest}&#x27;; base-uri &#x27;none&#x27;"
    assert policy in page
    assert page.index("Content-Security-Policy") < page.index("<style>")
    assert f"<style>{style}</style>" in page
