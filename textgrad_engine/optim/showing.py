"""How texts are shown to the one who proposes, and what of that has come back with the answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from textgrad_engine import fences
from textgrad_engine.llm.parsing import strip_fence
from textgrad_engine.optim.sentences import places_of

_MARK = re.compile(r"^(?:\d+|\+)\|~?(?: |$)", re.MULTILINE)
_TAG = re.compile(r"</?([^<>/]+)-[0-9a-f]{8}>")
_PROSE = ("", "text", "txt", "markdown", "md")


def numbered(text: str) -> str:
    r"""The lines of a text with their numbers, as prompts show them; of a long line its sentences (`places_of`).

    Example:
        >>> print(numbered("Sort.\nBe brief."))
        1| Sort.
        2| Be brief.
        >>> print(numbered("Be brief. " * 60)[:26])
        1| Be brief.
        2|~ Be brief.
    """
    return "\n".join(
        f"{number}|{'~' if place.goes_on else ''} {line}"
        for number, (place, line) in enumerate(zip(places_of(text), shown_lines(text)), 1)
    )


def shown_lines(text: str) -> list[str]:
    """The lines of a text as they are shown, each sentence of a long one by itself, without the space behind it."""
    places = places_of(text)
    ends = [*(not place.goes_on for place in places[1:]), True]
    return [place.text if at_end else place.text.rstrip() for place, at_end in zip(places, ends)]


def marked(lines: Sequence[str], lacking: Collection[str]) -> str:
    r"""Lines of another text, with a sign at those that the first one lacks.

    Example:
        >>> marked(["Sort.", "Be brief."], {"Be brief."})
        ' | Sort.\n+| Be brief.'
    """
    return "\n".join(f"{'+' if line in lacking else ' '}| {line}" for line in lines)


def unwrapped(text: str, shown: Sequence[str]) -> str:
    r"""An answer without what it was put between as a whole: a code fence, or the tags that a shown text stood between.

    A fence stays where a shown text has one, too, and where it is not sure to be a single one.

    Args:
        text: the answer.
        shown: the texts that the one who answers was shown.

    Example:
        >>> unwrapped("```\nSort.\n```", ["Sort it."]), unwrapped(fences.fence("Sort."), ["Sort."])
        ('Sort.', 'Sort.')
    """
    if not any(each.lstrip().startswith("```") for each in shown):
        inside = strip_fence(text, _PROSE)
        text = text if "\n```" in inside or inside.startswith("```") else inside
    opened, _, rest = text.strip().partition("\n")
    inside, _, closed = rest.rpartition("\n")
    tag = _TAG.fullmatch(opened)
    if tag is not None and closed == opened.replace("<", "</", 1) and opened in _opened([tag[1]], shown):
        return inside
    return text


def left_over(text: str, shown: Sequence[str]) -> str:
    r"""The first thing in a text that is only how texts are shown, and that none of them has; "" where there is none.

    That is the number or sign at the beginning of a line, and a tag that a shown text stood between.

    Args:
        text: what was proposed.
        shown: the texts that the one who proposes was shown.

    Example:
        >>> left_over("Sort.\n2| Be brief.", ["Sort."]), left_over("2| Be brief.", ["1| Sort."])
        ('2| ', '')
    """
    if not shown:
        return ""
    mark = _MARK.search(text)
    if mark is not None and not any(map(_MARK.search, shown)):
        return mark[0]
    tags = {tag[0].replace("</", "<", 1): tag for tag in reversed(list(_TAG.finditer(text)))}  # of each the first
    if not tags:
        return ""
    opened = _opened({tag[1] for tag in tags.values()}, shown)
    found = [tag for opening, tag in tags.items() if opening in opened]
    return min(found, key=lambda tag: tag.start())[0] if found else ""


def _opened(labels: Iterable[str], shown: Sequence[str]) -> set[str]:
    """The tags, with these labels, that texts which were shown stand behind."""
    forms = [form for each in shown for form in (each, numbered(each))]
    return {f"<{label}-{fences.nonce_for(form, label)}>" for label in labels for form in forms}
