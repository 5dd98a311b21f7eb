"""Edits of the past in words, for the proposer that is shown them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textgrad_engine import templates
from textgrad_engine.optim.optimizer import Change

__all__ = ["edits_in_words", "without_what_is_there"]


def edits_in_words(change: Change) -> list[str]:
    """What was proposed for a parameter, a line for each edit (the prompt ``edit_in_words``)."""
    prompt = templates.load("edit_in_words")
    if not change.edits:
        return [prompt.render(op="rewrite", text="", old="")]
    lines = change.before.split("\n")
    told = []
    for edit in change.edits:
        old = lines[edit.line - 1] if edit.op != "add" and edit.line <= len(lines) else ""
        told.append(prompt.render(op=edit.op, text=repr(edit.text), old=repr(old)))
    return told


def without_what_is_there(history: Iterable[str], texts: Sequence[str]) -> list[str]:
    r"""A history but for what it says of lines that are in the texts now.

    A line that came to nothing in one proposal may be kept as part of another. Its proposer would be told that a line
    it is shown did not help, and not to say it again.

    Args:
        history: entries made of `edits_in_words`, or of the prompt ``edit_removed``.
        texts: the texts as they are.

    Example:
        >>> without_what_is_there(["added 'Be kind.' - no", "added 'Be brief.' - no"], ["Sort.\nBe kind."])
        ["added 'Be brief.' - no"]
    """
    edit, removed, gap = templates.load("edit_in_words"), templates.load("edit_removed"), "\0"
    there: list[str] = []
    for line in dict.fromkeys(line for text in texts for line in text.split("\n") if line.strip()):
        quoted = repr(line)
        there += [
            edit.render(op="add", text=quoted, old=""),
            edit.render(op="replace", text=quoted, old=gap).rpartition(gap)[2],
            removed.render(text=quoted, outcome=gap, role=gap).partition(gap)[0],
        ]
    return [entry for entry in history if not any(said and said in entry for said in there)]
