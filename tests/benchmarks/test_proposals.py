"""Requests of AdalFlow: its backward engine gets criticism, its optimizer a new prompt as XML."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence

import pytest

from textgrad_engine.testing.simulated.instructions import read_instructions
from textgrad_engine.testing.simulated.vocabulary import attributes_in

from .foreign import TASK, ask

FINE = "Eval score: 1.0. No noticeable error."
FORM = "<response>\n<reasoning>why</reasoning>\n<proposed_variable>The proposed variable content</proposed_variable>"


def propose(feedback: Sequence[str], failed: Sequence[str] = (), prompt: str = TASK.seed_prompt) -> tuple[str, str]:
    """The new prompt and its reasons."""
    entries = "\n".join(f"{n}. method: editing\nreasoning: {text}" for n, text in enumerate(failed, 1))
    history = f"<START_OF_CURRENT_ITERATION>\n{entries}\n<END_OF_CURRENT_ITERATION>" if failed else ""
    shown = "".join(f"<SCORE>0.0</SCORE>\n<FEEDBACK>{text}</FEEDBACK>\n" for text in feedback)
    purpose, answer = ask(f"{FORM}\n<VARIABLE>{prompt}</VARIABLE>\n{history}\n{shown}")
    assert purpose == "optimizer"
    found = ET.fromstring(answer)
    return found.findtext("proposed_variable", ""), found.findtext("reasoning", "")


def test_the_backward_engine_is_told_what_the_case_shows() -> None:
    """The expected code stands behind the conversation, the given one after ``LM_OUTPUT:``, neither in a tag."""
    row = next(row for row in TASK.train if row["target"] != TASK.world.usual)
    user = (
        f"<VARIABLE>{TASK.seed_prompt}</VARIABLE>\nLM_INPUT: {{'input_str': '{row['parcel']}'}}\n"
        f"LM_OUTPUT:  {TASK.world.usual}\nGROUND_TRUTH: {row['target']}\n<OBJECTIVE_FUNCTION>\nGive feedback: 0. "
        f"expected answer: {row['target']},\n Feedback: Say more.\n</OBJECTIVE_FUNCTION>"
    )
    purpose, text = ask(user)
    assert purpose == "backward"
    assert set(attributes_in(text)) <= TASK.world.by_attribute.keys()
    assert row["target"] in text
    right = user.replace(f"LM_OUTPUT:  {TASK.world.usual}", f"LM_OUTPUT:  {row['target']}")
    assert "nothing needs to change" in ask(right)[1]


def test_feedback_becomes_rules_in_xml() -> None:
    """With its marks escaped, so that an arrow in a line does not end the answer's form."""
    prompt = f"{TASK.seed_prompt}\nwine -> K4 & <no more>"
    text, reasons = propose(["Add a rule: glass -> K2.", FINE], prompt=prompt)
    assert text.startswith(prompt)
    assert read_instructions(text).codes == {"wine": "K4", "glass": "K2"}
    assert "glass means K2" in reasons


@pytest.mark.parametrize("feedback", [[], [FINE], ["  "]])
def test_where_nothing_was_wrong_the_prompt_stays(feedback: list[str]) -> None:
    """Nothing is made up."""
    assert propose(feedback)[0] == TASK.seed_prompt


def test_what_failed_in_this_step_is_mostly_left_alone() -> None:
    """As anything that a request shows as rejected."""
    said = ["Add a rule: glass -> K2.", "Add a rule: tea -> K3."]
    failed = ["1 feedback item says that glass means K2."]
    texts = [propose(said, failed, f"{TASK.seed_prompt}\nVersion {number}.")[0] for number in range(20)]
    assert all("tea" in text for text in texts)
    assert sum("glass" in text for text in texts) < 10
