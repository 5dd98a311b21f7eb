"""What a step did, noted for one that does not say it itself."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.value import label_of
from textgrad_engine.optim.cells import Origin
from textgrad_engine.optim.change import Change
from textgrad_engine.optim.gather import collect
from textgrad_engine.optim.patch import apply_patch, origins_of_rewrite
from textgrad_engine.optim.texts import write_texts
from textgrad_engine.wording import a_class, told

Written = tuple[str, Sequence[Origin | None]]
"""A text, and for each of its lines why it reads as it does."""


class Before(NamedTuple):
    """A parameter before a step.

    Attributes:
        text: what it said.
        origins: of its lines.
        feedback: on it; what the step's closure gave counts instead.
    """

    text: str
    origins: Sequence[Origin | None]
    feedback: Sequence[Variable]


def check_heard(variables: Sequence[Variable]) -> None:
    """Feedback is Variables; `grad` is a list, to which anybody may have appended something else.

    Raises:
        TypeError: somebody has.
    """
    for variable in variables:
        for item in variable.grad:
            if not isinstance(item, Variable):
                raise TypeError(
                    f"the grad of {label_of(variable)} holds Variables, got {type(item).__name__}: {item!r:.60}; write "
                    "Variable(text)"
                )


def check_written(who: str, variables: Sequence[Variable], before: Sequence[Any]) -> None:
    """A step writes texts, no text for what is none, and leaves what does not require grad, as nobody races that.

    Args:
        who: took the step.
        variables: its parameters.
        before: the data of each, before the step.

    Raises:
        ValueError: a step has changed such a parameter; all are as before it.
        TypeError: it has made something else than a text of one, or a text of what was none.
    """
    for variable, data in zip(variables, before):
        wrong: Exception | None = None
        if type(variable.data) is type(data) and variable.data == data:
            continue
        if isinstance(data, str) and not isinstance(variable.data, str):
            kind = a_class(type(variable.data))
            wrong = TypeError(f"has made {kind} of {label_of(variable)}; a parameter is a text")
        elif isinstance(variable.data, str) and not isinstance(data, str):
            wrong = TypeError(
                f"has made a text of {label_of(variable)}, which holds {told(data)}; leave it out of the optimizer, or "
                "freeze it: requires_grad_(False)"
            )
        elif not variable.requires_grad:
            wrong = ValueError(
                f"has changed {label_of(variable)}, which does not require grad; leave out what is frozen: `if "
                "variable.requires_grad`"
            )
        if wrong is not None:
            write_texts(variables, before)
            raise type(wrong)(f"{who}.step {wrong}. All parameters are as they were before the step")


def note(
    variable: Variable, was: Before, said: Change | None, held: Written | None, step: int, *, proposes: bool
) -> tuple[Change | None, Written | None]:
    """What a step did to a parameter, as far as it has not said so itself, or has gone on after it had.

    Args:
        variable: the parameter.
        was: it before the step.
        said: what the step says that it did to it.
        held: the origins that are remembered for it.
        step: its number.
        proposes: whether its changes are proposals, which need not be in the parameters (those of a search).

    Returns:
        What it did, and the origins to remember; each is what was given where there is nothing to add.
    """
    after = str(variable.data)
    stale = said is not None and not proposes and (said.before, said.after) != (was.text, after)
    if after == was.text and not stale:
        return said, held
    change, before, origins = said, was.text, was.origins
    if change is None:
        change = Change(variable, before, after, items=collect(variable.grad or was.feedback).items)
    elif stale:
        items = change.items if change.before == before else collect(variable.grad or was.feedback).items
        whole = Change(variable, before, after, items=items, left_out=change.left_out, problem=change.problem)
        if held is not None and held[0] == change.after and after != before:
            before, origins = held  # what it has done before it went on has its own
        change = whole
    if held is not None and held[0] == after:
        return change, held
    if after == before:
        return change, (after, origins)
    evidence = [item.evidence for item in change.items]
    lines: Sequence[Origin | None] = ()
    with contextlib.suppress(ValueError, IndexError):  # edits that are not what was done
        text, made = apply_patch(before, origins, change.edits, evidence, step)
        lines = made if text == after else ()
    if not lines:
        lines = _quoting(after, origins_of_rewrite(before, origins, after, "", evidence, step), step)
    return change, (after, lines)


def _quoting(text: str, origins: Sequence[Origin | None], step: int) -> list[Origin | None]:
    """The origins of lines; those of a step that quote feedback, or are quoted by it, are edits that answer that alone.

    Args:
        text: the lines.
        origins: of these, where each run of lines that the step wrote is one edit.
        step: the step.
    """
    found: list[Origin | None] = []
    number = sum(1 for _ in {each.edit for each in origins if each is not None and each.step == step})
    run, quoted, edit = "", None, ""
    for line, origin in zip(text.split("\n"), origins):
        if origin is None or origin.step != step:
            found.append(origin)
            continue
        words = line.strip()
        said = tuple(each for each in origin.evidence if words and (words in each.text or each.text in words))
        if origin.edit != run:
            run, quoted, edit = origin.edit, said, origin.edit
        elif words and said != quoted:
            number += 1
            quoted, edit = said, f"{step}.{number}"
        found.append(replace(origin, edit=edit, evidence=quoted or origin.evidence))
    return found
