from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

import textgrad_engine as tg
from textgrad_engine.errors import NoModelError
from textgrad_engine.fences import fence, nonce_for
from textgrad_engine.llm import Message, Request
from textgrad_engine.optim.contracts import contracts_for
from textgrad_engine.optim.proposers import Brief, Crossover, Patch, Rewrite, propose
from textgrad_engine.optim.proposers.asking import LateModel
from textgrad_engine.optim.proposers.by_scores import ByScores
from textgrad_engine.optim.proposers.paraphrase import Paraphrase
from textgrad_engine.optim.proposers.unaided import Unaided
from textgrad_engine.testing import ScriptedModel

BRIEF = Brief(role="system prompt", text="Sort.\nBe polite.", origins=(None, None), contracts=contracts_for([], 40))


@pytest.mark.parametrize(
    "answer",
    [
        fence(BRIEF.text).replace(BRIEF.text, "Sort it.\nBe brief."),
        "```\nSort it.\nBe brief.\n```",
        "```markdown\nSort it.\nBe brief.\n```\n",
    ],
)
def test_a_rewrite_loses_what_it_was_put_between_as_a_whole(answer: str) -> None:
    """The tags that the text was shown between, or a code fence, would become a part of the prompt."""
    found = asyncio.run(propose(Rewrite(), BRIEF, ScriptedModel([{"text": answer, "reason": ""}])))
    assert found.text == "Sort it.\nBe brief."


def test_a_code_fence_that_the_text_had_or_that_is_not_one_stays() -> None:
    """It is a part of the prompt."""
    fenced = replace(BRIEF, text="```\nSort.\n```", origins=(None,) * 3)
    for brief, answer in ((fenced, "```\nSort it.\n```"), (BRIEF, "```\na\n```\nSort it.\n```\nb\n```")):
        assert asyncio.run(propose(Rewrite(), brief, ScriptedModel([{"text": answer, "reason": ""}]))).text == answer


def test_a_rewrite_with_numbers_of_lines_or_a_lone_tag_is_asked_for_once_more() -> None:
    """Where the text has such numbers itself, they are a part of it."""
    lone = f"<text-{nonce_for(BRIEF.text, 'text')}>"
    script = [{"text": text, "reason": ""} for text in ("1| Sort it.", f"{lone}\nSort it.")]
    model = ScriptedModel(script)
    found = asyncio.run(propose(Rewrite(), BRIEF, model))
    assert (found.text, lone in found.problem) == (BRIEF.text, True)
    assert "the text has `1| `" in model.requests[1].messages[-1].text
    counted = replace(BRIEF, text="1| Sort.", origins=(None,))
    assert asyncio.run(propose(Rewrite(), counted, ScriptedModel(script[:1]))).text == "1| Sort it."


@pytest.mark.parametrize("proposer", [Unaided(), Paraphrase(), ByScores()])
def test_who_asks_for_another_text_in_any_case_does_not_take_an_empty_one(
    proposer: Unaided | Paraphrase | ByScores,
) -> None:
    """A control that may leave all as it is would be none."""
    model = ScriptedModel([{"text": "", "reason": "fine as it is"}, {"text": "Sort it.", "reason": ""}])
    assert asyncio.run(propose(proposer, BRIEF, model)).text == "Sort it."
    assert "Your last proposal could not be used: the new text is empty" in model.requests[1].messages[-1].text


@pytest.mark.parametrize("proposer", [Patch(), Rewrite()])
def test_examples_are_shown_whole_and_fenced(proposer: Patch | Rewrite) -> None:
    """Good texts of other programs, which may hold anything."""
    brief = Brief("prompt", "Sort.", (None,), examples=("You grade.\n</example>", "You route."))
    model = ScriptedModel([{"edits": []} if isinstance(proposer, Patch) else {"text": "Sort.", "reason": ""}])
    asyncio.run(propose(proposer, brief, model))
    shown = model.requests[0].messages[-1].text
    assert shown.count("<example-") == 2
    assert "\nYou grade.\n</example>\n</example-" in shown


@pytest.mark.parametrize("proposer", [Patch(), Rewrite(), Crossover()])
def test_a_text_that_is_empty_is_said_to_be(proposer: Patch | Rewrite | Crossover) -> None:
    """Instead of tags with nothing, or the number of a line that is none, between them."""
    edit = {"op": "replace", "line": 1, "text": "Sort.", "reason": "r", "feedback": []}
    model = ScriptedModel([{"text": "Sort.", "reason": "r"} if isinstance(proposer, Rewrite) else {"edits": [edit]}])
    brief = Brief("prompt", "", (None,), others=(("Be brief.", 0.5),), step=7)
    found = asyncio.run(propose(proposer, brief, model))
    assert (found.text, [each and each.edit for each in found.origins]) == ("Sort.", ["7.1"])
    asked = model.requests[0].messages[-1].text
    assert " empty so far" in asked.split("\n")[0]
    assert "<text-" not in asked


def test_a_late_model_is_looked_up_when_it_is_asked() -> None:
    """A proposer that asks nobody works where no model was named; one that does says that none was."""
    late = LateModel()
    request = Request(messages=(Message(role="user", content="?"),))
    with pytest.raises(NoModelError):
        asyncio.run(late.complete(request))
    with tg.use_models(optimizer=ScriptedModel(["yes"], name="other")):
        assert late.name == "other"
        assert asyncio.run(late.complete(request)).text == "yes"
