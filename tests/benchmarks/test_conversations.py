"""Requests of GEPA and TextGrad: instructions beside cases or conversations, read by what they show."""

import pytest

from textgrad_engine.testing.simulated.instructions import read_instructions
from textgrad_engine.testing.simulated.vocabulary import attributes_in

from .foreign import TASK, ask

WRONG = [row for row in TASK.train if row["target"] != TASK.world.usual][:3]
RIGHT = next(row for row in TASK.train if row["target"] == TASK.world.usual)


def deciding(row):
    return next(name for name in attributes_in(row["parcel"]) if name in TASK.world.by_attribute)


def reflection(rows):
    """Current instructions between fences, cases as headings, a new text wanted between fences."""
    cases = "\n\n".join(
        f"# Example {number}\n## Inputs\n{row['parcel']}\n\n## Generated Outputs\n{TASK.world.usual}\n\n"
        f"## Feedback\nWrong. The correct answer is '{row['target']}'."
        for number, row in enumerate(rows, 1)
    )
    return (
        f"Instructions:\n```\n{TASK.seed_prompt}\n```\nCases:\n```\n{cases}\n```\nWrite better ones within ``` blocks."
    )


def conversation(row, said):
    return (
        f"<LM_SYSTEM_PROMPT> {TASK.seed_prompt} </LM_SYSTEM_PROMPT>\n\n<LM_INPUT> {row['parcel']} </LM_INPUT>\n\n"
        f"<LM_OUTPUT> {TASK.world.usual} </LM_OUTPUT>\n\n{said}"
    )


def test_a_reflection_on_examples_gives_new_instructions():
    """What GEPA asks: each shown failure becomes a rule, the old lines stay, the answer is fenced."""
    purpose, text = ask(reflection(WRONG))
    assert purpose == "optimizer"
    assert text.startswith("```\n")
    assert text.endswith("\n```")
    assert TASK.seed_prompt in text
    codes = read_instructions(text.strip("`\n")).codes
    assert codes == {deciding(row): row["target"] for row in WRONG}


def test_a_criticism_of_one_conversation_is_prose():
    """What TextGrad's backward engine asks: the lesson of the case, from the objective's expected code."""
    row = WRONG[0]
    objective = f"<OBJECTIVE_FUNCTION>Address this: the answer is wrong, expected {row['target']}.</OBJECTIVE_FUNCTION>"
    purpose, text = ask(conversation(row, objective), "Give feedback.")
    assert purpose == "backward"
    assert attributes_in(text) == (deciding(row),)
    assert row["target"] in text


def test_a_right_answer_needs_no_change():
    """Nothing is made up about an answer that is what was expected."""
    objective = f"<OBJECTIVE_FUNCTION>The correct answer is {TASK.world.usual}.</OBJECTIVE_FUNCTION>"
    assert "nothing needs to change" in ask(conversation(RIGHT, objective))[1]


def test_a_criticism_of_an_answer_alone_names_both_codes():
    """What TextGrad asks about the prediction itself, before it asks about the prompt."""
    user = (
        "<INPUTS_TO_FUNCTION> **Prediction(role: response)**: K1\n\n**Ground truth answer(role: truth)**: K2 "
        "</INPUTS_TO_FUNCTION>\n\n<OBJECTIVE_FUNCTION>Give feedback.</OBJECTIVE_FUNCTION>"
    )
    assert ask(user)[1] == "The answer K1 is wrong. The correct answer is K2."


def test_feedback_becomes_a_text_between_the_tags_that_were_asked_for():
    """What TextGrad's optimizer asks: the shortened variable is completed from the conversation."""
    row = WRONG[0]
    user = (
        "<VARIABLE> You give (...) only. </VARIABLE>\n"
        + conversation(row, f"<FEEDBACK>{deciding(row)} -> {row['target']}</FEEDBACK>")
        + "\nSend it as <IMPROVED_VARIABLE>{text}</IMPROVED_VARIABLE>."
    )
    purpose, text = ask(user)
    assert purpose == "optimizer"
    inside = text.removeprefix("<IMPROVED_VARIABLE>").removesuffix("</IMPROVED_VARIABLE>")
    assert inside.startswith(TASK.seed_prompt)
    assert read_instructions(inside).codes == {deciding(row): row["target"]}


def test_without_anything_to_change_the_text_stays():
    """Feedback that only says that all is well must not grow the prompt."""
    said = "<FEEDBACK>The answer is right, so nothing needs to change.</FEEDBACK>"
    text = ask(conversation(RIGHT, said) + "\n<IMPROVED_VARIABLE> tags, please.")[1]
    assert text == f"<IMPROVED_VARIABLE>{TASK.seed_prompt}</IMPROVED_VARIABLE>"


@pytest.mark.parametrize("prompt", ["", "Give feedback to customers. glass -> K4"])
def test_a_parcel_is_a_parcel_whatever_the_system_text_says(prompt):
    """Instructions that speak of feedback do not turn a task request into a request for criticism."""
    purpose, text = ask(RIGHT["parcel"], prompt)
    assert purpose == "forward"
    assert TASK.world.usual in text
