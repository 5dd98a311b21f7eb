from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from textgrad_engine.optim.contracts import contracts_for
from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.optim.proposers import Brief, Patch, propose
from textgrad_engine.testing import ScriptedModel

BRIEF = Brief(role="system prompt", text="Sort.\nBe polite.", origins=(None, None), contracts=contracts_for([], 40))


def test_max_edits_of_a_proposer_goes_before_the_briefs() -> None:
    """And it is at least one."""
    model = ScriptedModel([{"edits": []}] * 2)
    for proposer in (Patch(), Patch(max_edits=2)):
        asyncio.run(propose(proposer, BRIEF, model))
    assert ["at most 4 edits" in r.messages[-1].text for r in model.requests] == [True, False]
    assert "at most 2 edits" in model.requests[1].messages[-1].text
    with pytest.raises(ValueError, match="max_edits must be at least 1"):
        Patch(max_edits=0)


@pytest.mark.parametrize(("count", "numbers"), [(0, "[]"), (1, "[1]"), (2, "[1, 2]"), (3, "[1, 2]")])
def test_the_form_of_a_patch_names_only_feedback_that_there_is(count: int, numbers: str) -> None:
    """Models copy what they are shown. One edit is one edit."""
    items = tuple(FeedbackItem(f"item {n}", 1, "", ()) for n in range(count))
    model = ScriptedModel([{"edits": []}])
    asyncio.run(propose(Patch(1), replace(BRIEF, items=items), model))
    *_, limit, form = model.requests[0].messages[-1].text.splitlines()
    assert limit == "Give at most 1 edit, as a JSON object:"
    assert form.endswith(f'"feedback": {numbers}}}]}}')


def test_edits_are_named_by_their_step() -> None:
    """So that each line can be found, and taken back, later."""
    edit = {"op": "add", "line": 2, "text": "x", "reason": "r", "feedback": []}
    brief = Brief("prompt", BRIEF.text, BRIEF.origins, step=7)
    found = asyncio.run(propose(Patch(), brief, ScriptedModel([{"edits": [edit, edit]}])))
    assert [each.id for each in found.edits] == ["7.1", "7.2"]
    assert [origin and origin.edit for origin in found.origins] == [None, None, "7.1", "7.2"]


def test_the_example_of_an_edit_names_a_line_that_the_text_has() -> None:
    """An example that breaks the rule above it teaches to break it."""
    for count in (1, 2, 5):
        model = ScriptedModel([{"edits": []}])
        text = "\n".join("abcde"[:count])
        asyncio.run(propose(Patch(), Brief("prompt", text, (None,) * count), model))
        assert f'"op": "add", "line": {min(3, count)}, ' in model.requests[0].messages[-1].text
