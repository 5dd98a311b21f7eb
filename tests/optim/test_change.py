"""What a step did, as a loop of one's own prints it."""

from __future__ import annotations

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.testing import ScriptedModel


def test_what_a_step_did_is_read_at_a_glance() -> None:
    """The text as it is now and the edits that made it so; not all that it was made of."""
    prompt = nn.Parameter("Sort the ticket.", role="system prompt")
    prompt.grad = [tg.Variable("It is to answer with a word.", role="feedback")]
    edit = {"op": "add", "line": 1, "text": "Answer with a word.", "reason": "it was asked for", "feedback": [1]}
    optimizer = optim.TGD([prompt], model=ScriptedModel([{"edits": [edit]}]))
    optimizer.step()
    shown = repr(optimizer.changes)
    assert "Answer with a word." in shown
    assert "it was asked for" in shown
    assert "It is to answer" not in shown
    assert len(shown) < 400
