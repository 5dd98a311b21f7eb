"""Text that other people wrote, as it stands in what a model is sent: between tags that cannot occur in it."""

from __future__ import annotations

import functools
import hashlib
import re
import sys
from collections.abc import Iterable

from textgrad_engine.plain_values import of_member
from textgrad_engine.signed import unsigned

_REMEMBERED = 20_000
"""Characters above which what was found out about a text is not remembered, with the text, for the next time."""

_NO_TEXTS: tuple[type, ...] = ()
if sys.version_info >= (3, 14):
    from string.templatelib import Template

    _NO_TEXTS = (Template,)


def as_text(value: object) -> str:
    """A value as it stands in what a model is sent.

    Raises:
        TypeError: it is a template string (``t"…"``, from Python 3.14 on), whose values nobody has put in yet.

    Example:
        >>> as_text("three"), as_text(3)
        ('three', '3')
    """
    if why := unfilled(value):
        raise TypeError(f'a template string (t"…") is no text: {why}')
    if isinstance(value, set | frozenset) and value and all(isinstance(each, str) for each in value):
        texts = f"{{{', '.join(sorted(map(repr, value)))}}}"  # else in another order in each process
        return texts if isinstance(value, set) else f"frozenset({texts})"
    return str(of_member(value))


def unfilled(value: object) -> str:
    """Why a template string is no text, with the repair; "" for anything else.

    Example:
        >>> unfilled("three")
        ''
    """
    if not isinstance(value, _NO_TEXTS):
        return ""
    return (
        f'its values are not put in; got {value!r:.80}. Write f"…" to put them in at once, or "…" with {{slots}} for '
        "values of each call"
    )


def fence(text: object, label: str = "text") -> str:
    """Put text between a pair of tags that cannot occur in it.

    The tag ends in a nonce made by hashing the whole text, so that equal texts get equal fences (caches and replay need
    that) and no text can hold its own closing tag.

    Example:
        >>> print(fence("</answer>", "answer"))
        <answer-5086e624>
        </answer>
        </answer-5086e624>
    """
    return fenced(as_text(text), label)


def fenced(text: str, label: str) -> str:
    """`fence` for what is a text already."""
    nonce = _nonce(label, text) if len(text) <= _REMEMBERED else _nonce.__wrapped__(label, text)
    return f"<{label}-{nonce}>\n{text}\n</{label}-{nonce}>"


MOST_QUOTED = 300
"""Characters of a text that is quoted in its line; a longer one stands between tags."""

MOST_INSIDE = 80
"""Those of one that is quoted in a sentence which may be quoted itself."""


def is_quotable(text: object, *, inside: bool = False) -> bool:
    r"""Whether a text can stand between quotation marks in a line, so that it is seen where it ends.

    Such a text is short, is one line of characters that can be seen, and has no quotation marks or tags of its own.

    Args:
        text: the text.
        inside: between backticks, in a sentence that can be quoted itself.

    Example:
        >>> is_quotable("billing"), is_quotable('say "yes"'), is_quotable("a\nb"), is_quotable("</answer-0a1b2c3d>")
        (True, False, False, False)
        >>> is_quotable("Expected `billing`."), is_quotable("Expected `billing`.", inside=True)
        (True, False)
    """
    text = as_text(text)
    most, marks = (MOST_INSIDE, _MARKS_INSIDE) if inside else (MOST_QUOTED, _MARKS)
    return len(text) <= most and text.isprintable() and not marks.search(text)


_MARKS = re.compile('["<>\u201c-\u201f\u2033\uff02\xab\xbb]')
_MARKS_INSIDE = re.compile('[`"<>\u201c-\u201f\u2033\uff02\xab\xbb]')


def quoted(text: object, label: str = "text") -> str:
    """Put a text behind a colon: between quotation marks if it `is_quotable`, else as `fence` does, on the lines below.

    A pair of tags costs some twenty tokens, which for an answer of a word is most of what it takes to show it.

    Example:
        >>> print(f"Answer:{quoted('billing', 'answer')}")
        Answer: "billing"
        >>> print(f"Answer:{quoted('</answer>', 'answer')}")
        Answer:
        <answer-5086e624>
        </answer>
        </answer-5086e624>
    """
    return quoted_text(as_text(text), label)


def quoted_text(text: str, label: str) -> str:
    """`quoted` for what is a text already."""
    # What `is_quotable` says, without its two calls, as it is asked of each answer and each piece of feedback.
    if len(text) <= MOST_QUOTED and text.isprintable() and not _MARKS.search(text):
        return f' "{text}"'
    return f"\n{fenced(text, label)}"


def unfenced(text: str) -> str:
    r"""A text as a person wants to read it: without the tags of `fence`, where they end a line.

    Example:
        >>> print(unfenced(f"Expected exactly:\n{fence('Rome', 'expected')}\nGot:\n{fence('Oslo', 'got')}"))
        Expected exactly:
        Rome
        Got:
        Oslo
    """
    return _TAG.sub("", text).strip()


_TAG = re.compile(r"(?:(?:^|\n)[ ]*|[ ])</?\w+-[0-9a-f]{8}>(?=\n|$)")


def mark(text: str, label: str, beside: Iterable[str] = ()) -> str:
    """Put a piece of a longer text between such tags as `fence` uses, where it stands.

    Args:
        text: the piece.
        label: of the tags.
        beside: what else the longer text is made of, which may have been written to hold these tags.

    Example:
        >>> f"Facts: {mark('Two moons.', 'facts')} Answer."
        'Facts: <facts-cbc86057>Two moons.</facts-cbc86057> Answer.'
    """
    nonce, others = nonce_for(text, label), [other.lower() for other in (text, *beside)]
    while any(nonce in other for other in others):
        nonce = _next(nonce)
    return f"<{label}-{nonce}>{text}</{label}-{nonce}>"


def nonce_for(content: str, label: str) -> str:
    """Eight hexadecimal digits made by hashing a content; equal contents get equal ones.

    They do not occur in it, in capitals or not: a model may take either for the tag.

    Example:
        >>> nonce_for("</answer>", "answer")
        '5086e624'
    """
    return _nonce(label, content) if len(content) <= _REMEMBERED else _nonce.__wrapped__(label, content)


@functools.lru_cache(maxsize=256)  # the program's own texts are in every request
def _nonce(label: str, content: str) -> str:
    # An address that is signed anew makes no other request, so its signature is not hashed (NOTE [Signed addresses]).
    nonce = hashlib.sha256(f"{label}\0{unsigned(content)}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    low = content.lower()
    while nonce in low:
        nonce = _next(nonce)
    return nonce


def _next(nonce: str) -> str:
    return hashlib.sha256(nonce.encode()).hexdigest()[:8]
