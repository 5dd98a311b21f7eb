"""A proposal on other texts than those it was made for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from textgrad_engine.autograd import Variable
from textgrad_engine.optim.patch import apply_patch, stamped
from textgrad_engine.optim.rebase import rebase
from textgrad_engine.optim.search.board import Origins
from textgrad_engine.optim.search.found import Found, number_of
from textgrad_engine.optim.search.objective import Texts


def moved(found: Found, variables: Sequence[Variable], texts: Texts, origins: Origins) -> tuple[Found, bool]:
    """The proposal on some texts, and whether these have changed the same lines (then it has its way).

    Args:
        found: the proposal; its race stays that on the texts it was made for.
        variables: the parameters.
        texts: the texts.
        origins: where their lines come from.
    """
    after, own, changes, disputed = list(texts), list(origins), [], False
    for change in found.changes:
        n = number_of(change, variables)
        edits = stamped(change.edits, found.number)
        rebased = rebase(edits, change.before, after[n], found.base_origins[n], own[n])
        there = [*rebased.edits, *(edit for conflict in rebased.conflicts for edit in conflict.instead)]
        disputed = disputed or bool(rebased.conflicts)
        if there:
            evidence = [item.evidence for item in change.items]
            text, lines = apply_patch(after[n], own[n], there, evidence, found.number)
            changes.append(replace(change, before=after[n], after=text, edits=tuple(there)))
            after[n], own[n] = text, tuple(lines)
    return (
        replace(
            found,
            base=texts,
            base_origins=origins,
            texts=tuple(after),
            origins=tuple(own),
            changes=tuple(changes),
        ),
        disputed,
    )
