"""Edits of the past in words, for the proposer that is shown them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from textgrad_engine import templates
from textgrad_engine.optim.between import edits_between
from textgrad_engine.optim.change import Change
from textgrad_engine.optim.sentences import changed_sentences, places_of


@dataclass(frozen=True)
class Tried:
    """An edit that was tried, and what became of it.

    Attributes:
        parameter: which text it was made in, by position.
        edit: the edit in words (`edits_in_words`); of one that was taken out again its lines, in quotes.
        outcome: what became of it, in words.
        removed: whether it was in the text and was taken out again.
    """

    parameter: int
    edit: str
    outcome: str
    removed: bool = False

    def said(self, other: str | None = None) -> str:
        """It in a sentence (the prompt ``past_edit`` or ``edit_removed``).

        Args:
            other: where it is said about another text than the one in question, the role of that one.
        """
        if self.removed:
            return templates.load("edit_removed").render(text=self.edit, outcome=self.outcome, other=other)
        return templates.load("past_edit").render(edit=self.edit, outcome=self.outcome, other=other)


def tried(changes: Iterable[tuple[int, Change]], outcome: str, *, each: bool = False) -> list[Tried]:
    """The edits of a proposal, each with what became of it.

    Of several edits the outcome is that of all together: one that does no harm may have been tried beside one that does
    (the prompt ``edits_together`` says so).

    Args:
        changes: what it changes, each with the position of the text that it is of.
        outcome: what became of it, in words.
        each: whether it is known of each edit by itself.
    """
    told = [(parameter, edit) for parameter, change in changes for edit in edits_in_words(change)]
    if len(told) > 1 and not each:
        outcome += " " + templates.load("edits_together").render(edits=len(told))
    return [Tried(parameter, edit, outcome) for parameter, edit in told]


def edits_in_words(change: Change) -> list[str]:
    """What was proposed for a parameter, a line for each edit (the prompt ``edit_in_words``).

    Of a text that was written as a whole, what differs in it are the edits; of a line that is shown by its sentences,
    these are told one by one.
    """
    prompt = templates.load("edit_in_words")
    lines = change.before.split("\n")
    told = []
    for edit in change.edits or edits_between(change.before, change.after)[0]:
        old = lines[edit.line - 1] if edit.op != "add" and edit.line <= len(lines) else ""
        parts = changed_sentences(old, edit.text) if edit.op == "replace" else [(old, edit.text)]
        for was, now in parts:
            op = edit.op if now or edit.op != "replace" else "remove"
            told.append(prompt.render(op="add" if now and not was else op, text=repr(now), old=repr(was)))
    return told


def history_of(
    past: Iterable[Tried], parameter: int, texts: Sequence[str], roles: Sequence[str], window: int
) -> tuple[str, ...]:
    r"""What the proposer for one text is told of the past, oldest first.

    What was tried in this text goes before what was tried in others, which are said to be others. An entry about lines
    that are in its text now is left out: a line that came to nothing in one proposal may be kept as part of another,
    and its proposer would be told that a line it is shown did not help, and not to say it again.

    Args:
        past: what was tried, oldest first.
        parameter: which text is to be changed, by position.
        texts: the texts as they are.
        roles: what they are, in words.
        window: at most so many entries.

    Example:
        >>> past = [Tried(n, f"added 'Be {how}.'", "worse") for n, how in ((0, "kind"), (0, "brief"), (1, "rude"))]
        >>> history_of(past, 0, ["Sort.\nBe kind.", "Answer."], ["", "second prompt"], 4)
        ("added 'Be brief.' — worse", "added 'Be rude.' (in another text of the program, the second prompt) — worse")
    """
    if not window:
        return ()

    @functools.cache
    def known(text: int) -> Callable[[str], bool]:
        return is_there(texts[text])

    own: list[tuple[int, Tried]] = []
    others: list[tuple[int, Tried]] = []
    for place, entry in reversed(list(enumerate(past))):  # of a past that grows with each step the end alone is shown
        found = own if entry.parameter == parameter else others
        if len(found) < window and not known(entry.parameter)(entry.said()):
            found.append((place, entry))
        if len(own) == window:
            break
    shown = sorted([*own, *others[: window - len(own)]], key=lambda each: each[0])
    return tuple(entry.said(None if entry.parameter == parameter else roles[entry.parameter]) for _, entry in shown)


def is_there(text: str) -> Callable[[str], bool]:
    r"""Says of an entry about the past, as `Tried.said` gives it, whether a line that it speaks of is in a text.

    Args:
        text: the text as it is.

    Example:
        >>> [is_there("Sort.\nBe kind.")(entry) for entry in ("added 'Be kind.' - no", "added 'Be brief.' - no")]
        [True, False]
    """
    edit, removed, gap = templates.load("edit_in_words"), templates.load("edit_removed"), "\0"
    there: list[str] = []
    parts = (place.text.strip() for place in places_of(text))
    for line in dict.fromkeys(line for line in (*text.split("\n"), *parts) if line.strip()):
        quoted = repr(line)
        there += [
            edit.render(op="add", text=quoted, old=""),
            edit.render(op="replace", text=quoted, old=gap).rpartition(gap)[2],
            removed.render(text=quoted, outcome=gap, other=None).partition(gap)[0],
        ]
    return lambda entry: any(said and said in entry for said in there)
