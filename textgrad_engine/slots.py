"""The slots of templates that users write, and the one form of the names that fill them.

NOTE [Names]
    A letter with an accent can be one character or two, which look the same: editors write the one, names that come
    from file systems and some spreadsheets the other. So the name of a slot, of a column of a file, of a field of the
    config that names a column, and of a value for a slot is composed (Unicode's NFC) where it comes in, and compared
    from then on. What stands in a text, and values, are left as they are.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

_REMEMBERED = 20_000
"""Characters above which what was found out about a template is not remembered, with the template."""

_BRACED = re.compile(r"\{\{([^\s{}]+)\}\}|\{([^\s{}]+)\}")
SLOT_NAMES = "a slot's name is letters, digits and _, and does not begin with a digit"
"""What a message says of a name in braces that is no slot."""


def composed(name: str) -> str:
    r"""A name in the form in which names are compared; see NOTE [Names].

    Example:
        >>> composed("cafe\u0301") == "caf\u00e9"
        True
    """
    return unicodedata.normalize("NFC", name)


def by_composed_name(values: dict[str, T]) -> dict[str, T]:
    """Values by name, with the names composed; the dict itself where they are.

    Raises:
        ValueError: two names are one.
    """
    for name in values:  # a loop, as each call of a program comes here
        if type(name) is str and not name.isascii() and not unicodedata.is_normalized("NFC", name):
            break
    else:
        return values
    found: dict[str, T] = {}
    for name, value in values.items():
        name = composed(name) if isinstance(name, str) else name
        if name in found:
            raise ValueError(f"the name {name!r} is there twice, written with other characters that look alike")
        found[name] = value
    return found


def slots_of(template: str) -> tuple[str, ...]:
    """The names of the ``{slot}`` placeholders of a user's template, in order, each once.

    Example:
        >>> slots_of('Answer {question} as {"json": 1}, not as {{question}}.'), slots_of("{質問}に答えて。")
        (('question',), ('質問',))
    """
    if "{" not in template:
        return ()
    return _slots_of(template) if len(template) <= _REMEMBERED else _slots_of.__wrapped__(template)


@functools.lru_cache(maxsize=1024)
def _slots_of(template: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(composed(match[2]) for match in _slots_in(template) if match[2]))


def _slots_in(template: str) -> Iterator[re.Match[str]]:
    """What stands in one or two pairs of braces and can be the name of a slot: what can be that of an argument."""
    return (match for match in _BRACED.finditer(template) if (match[1] or match[2]).isidentifier())


def not_slots(template: str, names: Iterable[str]) -> list[str]:
    """Those of the names that stand in braces in a user's template and yet are text there, as no slot can be called so.

    Example:
        >>> not_slots("From {e-mail}: {text}, not {{e mail}}", ["text", "e-mail", "e mail"])
        ['e-mail']
    """
    template = composed(template)
    return [
        name
        for name in map(composed, names)
        if name.strip() and not name.isidentifier() and re.search(rf"(?<!\{{)\{{{re.escape(name)}\}}(?!\}})", template)
    ]


def doubled(template: str, names: Collection[str] = ()) -> str:
    """What is said of a name that stands in two pairs of braces, as slots of Jinja do; "" where none does.

    Args:
        template: a user's template.
        names: those that are looked for; all where there are none.

    Example:
        >>> doubled("Sort {{ ticket }}.", ["ticket"]), doubled("Sort {ticket} by {{rules}}.", ["ticket"])
        ('{{ ticket }} is text in it, as a slot has one pair of braces: {ticket}', '')
    """
    for match in re.finditer(r"\{\{\s*([^\s{}]+)\s*\}\}", template):
        name = composed(match[1])
        if name.isidentifier() and (not names or name in names):
            return f"{match[0]} is text in it, as a slot has one pair of braces: {{{name}}}"
    return ""


def fill(template: str, values: dict[str, str]) -> str:
    """Fill the ``{slot}`` placeholders of a user's template in one pass.

    Only names in `values` are slots; every other brace is text, so JSON in a template needs no escaping. ``{{name}}``
    stands for the literal ``{name}``.

    Example:
        >>> fill('{"id": 1} {who}', {"who": "{who}"})
        '{"id": 1} {who}'
    """
    if "{" not in template:
        return template
    pieces, slots = (_fillable if len(template) <= _REMEMBERED else _fillable.__wrapped__)(template)
    filled = pieces.copy()
    for at, name, doubled in slots:
        if name in values:
            filled[at] = filled[at][1:-1] if doubled else values[name]
    return "".join(filled)


def fill_around(template: str, values: dict[str, str], apart: Collection[str]) -> list[tuple[str, str]]:
    """As `fill`, and the text in pieces: each with the name of the slot behind it that no text fills, "" for the last.

    Example:
        >>> fill_around("See {picture}: {question} {{picture}}", {"question": "who?"}, ["picture"])
        [('See ', 'picture'), (': who? {picture}', '')]
    """
    pieces, slots = (_fillable if len(template) <= _REMEMBERED else _fillable.__wrapped__)(template)
    filled, found, begin = pieces.copy(), [], 0
    for at, name, doubled in slots:
        if doubled and (name in values or name in apart):
            filled[at] = filled[at][1:-1]
        elif name in apart:
            found.append(("".join(filled[begin:at]), name))
            begin = at + 1
        elif name in values:
            filled[at] = values[name]
    return [*found, ("".join(filled[begin:]), "")]


@functools.lru_cache(maxsize=256)  # a program fills the same template for every example
def _fillable(template: str) -> tuple[list[str], list[tuple[int, str, bool]]]:
    """A template in pieces; and for each slot its place among them, its name, and whether it has two braces."""
    pieces: list[str] = []
    slots: list[tuple[int, str, bool]] = []
    end = 0
    for match in _slots_in(template):
        pieces += [template[end : match.start()], match[0]]
        slots.append((len(pieces) - 1, composed(match[1] or match[2]), match[1] is not None))
        end = match.end()
    return [*pieces, template[end:]], slots
