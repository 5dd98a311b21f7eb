"""Markup from values: every text is escaped by what builds an element, so that nothing in a run can become markup."""

from __future__ import annotations

import html
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeAlias

from textgrad_engine.report.printing import is_harmless
from textgrad_engine.report.words import count


@dataclass(frozen=True)
class Markup:
    """What is markup already; made by `element` and its like alone."""

    text: str


Inside: TypeAlias = Markup | str | None
"""What an element may hold: markup, a text, which is escaped, or None for nothing."""

GENERATOR = '<meta name="generator" content="textgrad-engine report">'
"""By this a page is known for one of ours."""

_VOID = {"br", "meta"}


def element(name: str, /, *inside: Inside, **attributes: str | float | bool | None) -> Markup:
    """An element.

    Args:
        name: of the element.
        inside: what it holds, in order.
        attributes: by name, ``_`` standing for ``-`` and ``class_`` for ``class``; True gives one without a value, None
            and False none.

    Example:
        >>> element("p", "1 < 2", element("b", "so"), class_="note", hidden=True).text
        '<p class="note" hidden>1 &lt; 2<b>so</b></p>'
    """
    opened = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        label = key.rstrip("_").replace("_", "-")
        opened.append(label if value is True else f'{label}="{_plain(str(value))}"')
    start = f"<{' '.join(opened)}>"
    return Markup(start if name in _VOID else f"{start}{joined(*inside).text}</{name}>")


def joined(*inside: Inside) -> Markup:
    """Several things one after the other."""
    return Markup("".join(each.text if isinstance(each, Markup) else _visible(each or "") for each in inside))


def data(text: str, most: int) -> Markup:
    r"""A text of which nobody knows what is in it: data, a model's answer, a setting.

    It stands alone, so that its direction of writing moves nothing beside it; a control character is shown by its
    number; of a longer text the beginning is shown, and how much is missing.

    Args:
        text: the text.
        most: so many characters of it are shown.

    Example:
        >>> data("a<b>\x1b", 10).text
        '<bdi>a&lt;b&gt;<span class="odd">U+001B</span></bdi>'
        >>> data("abcdef", 4).text
        '<bdi>abcd</bdi><span class="cut">… 2 more characters</span>'
    """
    shown = element("bdi", text[:most])
    missing = len(text) - most
    if missing <= 0:
        return shown
    more = f"… {count(missing)} more character{'' if missing == 1 else 's'}"
    return joined(shown, element("span", more, class_="cut"))


def document(title: str, style: str, body: Iterable[Inside]) -> str:
    """A whole page that loads nothing and runs nothing.

    Args:
        title: of the page.
        style: its style sheet, which must be our own.
        body: what is in it.
    """
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        Markup(GENERATOR),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", Markup(_plain(title))),
        element("style", Markup(style)),
    )
    page = element("html", head, "\n", element("body", "\n", *body, "\n"), "\n", lang="en")
    return f"<!doctype html>\n{page.text}\n"


def _plain(text: str) -> str:
    """A text escaped, for where there can be no elements."""
    return html.escape("".join(c if is_harmless(c) else "\N{REPLACEMENT CHARACTER}" for c in text))


def _visible(text: str) -> str:
    """A text escaped, with every character that could not be seen, or would move others, shown by its number."""
    if text.isprintable():
        return html.escape(text)
    return "".join(map(_character, text))


def _character(c: str) -> str:
    if c == "\n" or is_harmless(c):
        return html.escape(c)
    if c.isspace():
        return " "
    return f'<span class="odd">U+{ord(c):04X}</span>'
