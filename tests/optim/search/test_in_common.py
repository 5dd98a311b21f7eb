"""Texts with their common lines once: nothing is lost by it, and it is done only where it is worth it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine import templates
from textgrad_engine.llm.simulated.tried import tried_in
from textgrad_engine.optim.proposers import Brief, propose
from textgrad_engine.optim.search.by_scores import ByScores
from textgrad_engine.optim.search.in_common import in_common, listed, refers
from textgrad_engine.testing import ScriptedModel

RULES = "\n".join(
    f"Whoever writes about {what} is answered by the people of {what}." for what in ("bills", "keys", "mail")
)
LINES = [*RULES.split("\n"), "Be polite.", "", "  ", "[", "1", "Answer with one word only, which is the name of it."]


def rendered(texts: list[str]) -> str:
    lines, short = in_common(texts)
    tried = [{"text": text, "score": "1", "of": ""} for text in short]
    slots: dict[str, Any] = {"demos": [], "constraints": [], "problem": "", "refused": ""}
    slots |= {"role": "prompt", "lines": "\n".join(listed(lines)), "tried": tried}
    return templates.load("optimizer_scores").render(**slots)


@given(st.lists(st.lists(st.sampled_from(LINES), min_size=1, max_size=8).map("\n".join), min_size=1, max_size=8))
def test_the_texts_can_be_written_out_again(texts: list[str]) -> None:
    """Whatever they have in common, blank lines and lines that stand in a text twice too."""
    lines, short = in_common(texts)
    for text, taken in zip(texts, short):
        written = []
        for part in taken.split("\n"):
            first, _, last = part.strip("[]").partition("-") if lines and refers(part) else ("", "", "")
            written += lines[int(first) - 1 : int(last or first)] if first else [part]
        assert "\n".join(written) == text


def test_a_model_is_shown_each_line_once() -> None:
    """And who reads the request has the texts as they were, the best last."""
    texts = [f"{RULES}\nBe {word}." for word in ("brief", "polite", "kind", "quick")]
    asked = rendered(texts)
    assert asked.count("Whoever writes about keys") == 1
    found = tried_in(asked)
    assert found is not None
    assert list(found.texts) == texts


@pytest.mark.parametrize(
    "texts",
    [
        [],
        ["Sort."],
        ["Sort.", "Sort the mail."],
        [RULES],
        [RULES, f"{RULES}\n[2-3]", f"{RULES}\nBe brief."],
        ["Sort the mail into queues.\nBe brief.", "Sort the parcels into boxes.\nBe brief."],
    ],
)
def test_texts_that_share_little_stay_whole(texts: list[str]) -> None:
    """So do those that have such numbers themselves, which would be taken for lines."""
    assert in_common(texts) == ([], texts)


def test_an_answer_with_numbers_in_it_is_asked_for_once_more() -> None:
    """It would be a prompt that nobody can read; the second request says what is wrong."""
    others = tuple((f"{RULES}\nBe {word}.", 0.5) for word in ("brief", "polite", "kind", "quick"))
    brief = Brief("prompt", f"{RULES}\nBe quick.", (None,) * 4, others=others)
    model = ScriptedModel([{"text": "[1-3]\nBe nice.", "reason": ""}, {"text": f"{RULES}\nBe nice.", "reason": ""}])
    made = asyncio.run(propose(ByScores(), brief, model))
    assert made.text == f"{RULES}\nBe nice."
    assert "the text has `[1-3]`, which stands for lines" in model.requests[1].messages[-1].text
    plain = Brief("prompt", "Sort.", (None,), others=(("Sort.", 0.5),))
    assert asyncio.run(propose(ByScores(), plain, ScriptedModel([{"text": "[1-3]", "reason": ""}]))).text == "[1-3]"
