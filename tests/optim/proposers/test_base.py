from __future__ import annotations

import asyncio

import pytest

import textgrad_engine as tg
from textgrad_engine.optim.cells import Origin
from textgrad_engine.optim.contracts import contracts_for
from textgrad_engine.optim.proposers import Brief, Proposal, Proposer, Rewrite, propose
from textgrad_engine.optim.proposers.base import second_parent
from textgrad_engine.optim.showing import numbered
from textgrad_engine.testing import ScriptedModel

BRIEF = Brief(role="system prompt", text="Sort.\nBe polite.", origins=(None, None), contracts=contracts_for([], 40))


def test_a_proposer_that_cannot_propose_is_not_made() -> None:
    """A subclass that spells it otherwise would have the protocol's, which gives None."""

    class Other(Proposer):
        def suggest(self, brief: Brief) -> Proposal:
            return Proposal(brief.text)

    with pytest.raises(TypeError, match=r"abstract method '?propose"):
        Other()  # type: ignore[abstract]


def test_the_second_parent_is_the_best_other() -> None:
    """Of equals the first; those that were not scored come last; without any there is nothing to merge."""
    origin = Origin(1, "r", ())
    others = (("a", None), ("b", 0.5), ("c\nd", 0.9), ("e", 0.9))
    brief = Brief("prompt", "x", (None,), others=others)
    assert second_parent(brief) == ("c\nd", (None, None))
    known = Brief("prompt", "x", (None,), others=others, other_origins=((), (), (origin, None), ()))
    assert second_parent(known) == ("c\nd", (origin, None))
    with pytest.raises(ValueError, match="has none in `others`"):
        second_parent(BRIEF)


def test_blank_lines_are_numbered_too() -> None:
    """The numbers are those of `text.split`, or edits would go astray."""
    assert numbered("a\n\nb\n").split("\n") == ["1| a", "2| ", "3| b", "4| "]


def test_a_brief_is_made_of_feedback() -> None:
    """What an objective gave for a text that the parameter does not hold; each example is remembered once."""
    prompt = tg.Variable("Sort.", role="system prompt", requires_grad=True)
    (prompt + "").backward("Be brief.")
    brief = Brief.of(prompt, [*prompt.grad, tg.Variable("be  brief."), tg.Variable(" ")], "Sort.\nBe kind.", step=3)
    assert (brief.role, brief.text, brief.origins, brief.step) == ("system prompt", "Sort.\nBe kind.", (None, None), 3)
    assert [(item.text, item.times) for item in brief.items] == [("Be brief.", 2)]
    made = asyncio.run(propose(Rewrite(), brief, ScriptedModel([{"text": "Sort. Be brief.", "reason": "asked"}])))
    assert made.text == "Sort. Be brief."
    assert made.origins[0] is not None
    assert made.origins[0].evidence == (brief.items[0].evidence,)


def test_a_brief_of_feedback_as_it_is_names_what_makes_items_of_it() -> None:
    """It would fail far from here, when a prompt is filled with it."""
    with pytest.raises(TypeError, match=r"items of a Brief are FeedbackItems, got Variable; Brief\.of\("):
        Brief("prompt", "Sort.", (None,), items=(tg.Variable("Be brief."),))  # type: ignore[arg-type]
