"""Edits of the past in words, for the proposer that is shown them."""

from __future__ import annotations

from textgrad_engine import templates
from textgrad_engine.optim.optimizer import Change

__all__ = ["edits_in_words"]


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
