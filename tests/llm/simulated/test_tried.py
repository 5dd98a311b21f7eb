"""The embedded model where it is asked for new texts without feedback."""

from __future__ import annotations

import asyncio
import json

import pytest

from textgrad_engine import templates
from textgrad_engine.llm import GenerateConfig, Message, Request
from textgrad_engine.llm.response_format import ResponseFormat
from textgrad_engine.llm.simulated import TicketsModel
from textgrad_engine.llm.simulated.tried import original_in, tried_in
from textgrad_engine.optim.patch import REWRITE_SCHEMA

SEED = "Sort the mail into billing, shipping, account, technical, returns or trust. Answer with the name only."


def asked(prompt: str, **slots: object) -> str:
    text = templates.load(prompt).render(role="prompt", constraints=[], problem="", refused="", **slots)
    form = ResponseFormat(name="rewrite", json_schema=REWRITE_SCHEMA)
    messages = (Message(role="system", content="You improve."), Message(role="user", content=text))
    request = Request(messages=messages, config=GenerateConfig(response_format=form))
    body = json.loads(asyncio.run(TicketsModel(noise=0.0).complete(request)).text)
    return str(body["text"])


@pytest.mark.parametrize("history", [[], ["added 'Be kind.' — no difference"]])
def test_what_is_no_such_request_is_read_as_none(history: list[str]) -> None:
    """Other prompts are answered as before, also with what became of earlier edits, which is no text to go on from."""
    user = templates.load("optimizer_rewrite").render(
        role="prompt",
        text=SEED,
        feedback=[],
        left_out=0,
        constraints=[],
        history=history,
        examples=[],
        problem="",
        refused="",
    )
    assert original_in(user) is None
    assert tried_in(user) is None


def test_a_paraphrase_loses_nothing() -> None:
    """The embedded model leaves a text as it is, rather than to lose a rule."""
    assert asked("optimizer_paraphrase", text=f"{SEED}\nGift cards go to account.") == (
        f"{SEED}\nGift cards go to account."
    )


def test_the_best_text_is_made_better_by_what_the_tasks_show() -> None:
    """It reads the solved tasks as anybody would, and keeps what the best text says."""
    demo = {"inputs": [("ticket", "My gift card is not accepted.")], "answer": "account", "part": False}
    tried = [{"text": "Sort.", "score": "10", "of": "100"}, {"text": SEED, "score": "45", "of": "100"}]
    text = asked("optimizer_scores", tried=tried, demos=[demo])
    assert text.startswith(SEED)
    assert "account" in text.removeprefix(SEED)


def test_without_feedback_it_says_what_no_version_that_was_tried_says() -> None:
    """And when it has nothing else to say, the text as it is."""
    tried: list[str] = []
    while (text := asked("control_rewrite", text=SEED, tried=tried, repeats=0)) != SEED:
        assert text not in tried
        tried.append(text)
    assert len(tried) == 5
