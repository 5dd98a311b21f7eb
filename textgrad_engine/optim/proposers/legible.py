"""What a proposal may bring into a text: nothing that whoever reviews it cannot see."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from typing import Any

from textgrad_engine.ops.unseen import without_unseen
from textgrad_engine.optim.proposers.base import Brief

_log = logging.getLogger("textgrad_engine.optim.proposers")

_SHOWN = 8
"""Characters that are named."""


def legible(texts: Iterable[str], brief: Brief) -> list[str]:
    r"""Texts of a proposal without characters that nobody sees and that the text in use does not have.

    They are left out, and not asked about once more: what is left is what its writer and its reviewer see. The log says
    so, as they may come from an example that somebody wrote to have them in the prompt.

    Args:
        texts: what is proposed: a text, or those of edits.
        brief: what it is proposed for; what hides in its text, and in those of other candidates, may stay.

    Example:
        >>> legible(["Be kind."], Brief("prompt", "Sort.", (None,)))
        ['Be kind.']
    """
    known = "\n".join([brief.text, *(other for other, _ in brief.others)])
    found: list[str] = []
    gone: Counter[str] = Counter()
    for text in texts:
        left = without_unseen(text, known)
        found.append(left)
        if left != text:
            gone += Counter(text) - Counter(left)
    if gone:
        names = [f"U+{ord(c):04X}" for c in sorted(gone)]
        more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        _log.warning(
            "a proposal for the %s had characters that nobody sees or that a terminal obeys (%s%s); they were left out",
            brief.role or "prompt",
            ", ".join(names[:_SHOWN]),
            more,
        )
    return found


def legible_edits(body: dict[str, Any], brief: Brief) -> dict[str, Any]:
    """The edits of a model's answer (`patch.PATCH_SCHEMA`), with texts that are `legible`."""
    texts = legible([entry["text"] for entry in body["edits"]], brief)
    return body | {"edits": [entry | {"text": text} for entry, text in zip(body["edits"], texts)]}
