"""What people noted of examples: the critic of an answer that is not right reads it, the program does not."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from contextvars import ContextVar

from textgrad_engine import templates
from textgrad_engine.autograd.examples import unnumbered
from textgrad_engine.blocks import block
from textgrad_engine.checks import check
from textgrad_engine.ops.images import encoded_named
from textgrad_engine.scoped import setting
from textgrad_engine.wording import told

NOTES: ContextVar[Mapping[str, str] | None] = ContextVar("textgrad_engine_notes", default=None)
"""The notes by the names of examples; None where there are none."""


@block
@contextlib.contextmanager
def notes(by_example: Mapping[str, str]) -> Iterator[None]:
    """Inside the block, backward passes show the critic people's notes on an example.

    For example why its answer is right, or what was wrong with an earlier answer. A note is shown if there is feedback
    on the answer, so a right answer takes no call; without a critic the optimizer reads it. An example gets its name
    from `autograd.example`, as the Trainer sets it.

    Args:
        by_example: the note on an example, by its name; examples without one are shown none.

    Raises:
        TypeError: a name or a note is no text.

    Example:
        >>> from textgrad_engine import autograd, nn, use_models
        >>> from textgrad_engine.testing import FunctionModel, feedback_for
        >>> def clerk(request):
        ...     return feedback_for(request, "Go by the invoice.") if request.purpose == "backward" else "trust"
        >>> model = FunctionModel(clerk)
        >>> program = nn.ChatCompletion("{mail}", system=nn.Parameter("Sort the mail."))
        >>> with use_models(forward=model), notes({"m7": "She means the invoice of May."}), autograd.example("m7"):
        ...     nn.ExactMatch()(program(mail="It is wrong!"), "billing").backward()
        >>> "She means the invoice of May." in model.requests[-1].messages[-1].text
        True
    """
    check(notes, locals())
    for name, note in by_example.items():
        if not isinstance(name, str) or not isinstance(note, str):
            raise TypeError(
                f"notes: a note is a text by the name of its example, such as {{'t017': '...'}}; got {told(note)} by "
                f"{name!r:.60}"
            )
    with setting(NOTES, by_example):
        yield


def note_on(example: str) -> str:
    """What people noted of an example, in the words of ``prompts/note.md``; "" where nothing is known.

    Args:
        example: its name, also that of one entry of a batch that it has.
    """
    known = NOTES.get()
    note = known.get(unnumbered(example), "").strip() if known and example else ""
    return templates.load("note").render(note=encoded_named(note)) if note else ""
