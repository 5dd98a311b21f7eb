"""Requests in DSPy's form: the task inside is answered as without it, and optimizers learn what the request shows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest

from textgrad_engine.testing.simulated.instructions import read_instructions
from textgrad_engine.testing.simulated.vocabulary import attributes_in, rules_in

from . import foreign
from .foreign import TASK

WRONG = [row for row in TASK.train if row["target"] != TASK.world.usual][:3]


def ask(objective: str, given: Mapping[str, str], wanted: Sequence[str], as_json: bool = False) -> tuple[str, str]:
    """What is asked through DSPy's adapters: the purpose that is seen, and the answer."""
    lines = "".join(f"\n        {line}" for line in objective.split("\n"))
    system = f"Your input fields are: ...\nIn adhering to this structure, your objective is: {lines}"
    fields = "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in given.items())
    marks = ", then ".join(f"`[[ ## {name} ## ]]`" for name in wanted)
    reply = (
        f"Respond with a JSON object in the following order of fields: {', then '.join(f'`{n}`' for n in wanted)}."
        if as_json
        else f"Respond with the corresponding output fields, starting with the field {marks}, "
        "and then ending with the marker for `[[ ## completed ## ]]`."
    )
    user = f"{fields}\n\n{reply}"
    return foreign.ask(user, system)


def field(answer: str, name: str) -> str:
    return answer.split(f"[[ ## {name} ## ]]\n")[1].split("\n\n[[ ## ")[0]


@pytest.mark.parametrize("row", TASK.train[:8], ids=lambda row: row["id"])
def test_the_frame_of_a_task_changes_nothing_in_its_answer(row: Mapping[str, str]) -> None:
    """The same code as for the bare instructions, and the frame is no part of their length."""
    prompt = f"{TASK.optimum_prompt}\nRespond with the code."
    purpose, answer = ask(prompt, {"parcel": row["parcel"]}, ["code"])
    assert purpose == "forward"
    assert answer == f"[[ ## code ## ]]\n{TASK.model.task.answer(prompt, row['parcel'])}\n\n[[ ## completed ## ]]"


def test_json_is_given_where_it_is_asked_for() -> None:
    """DSPy falls back to it, and its GEPA begins with it."""
    answer = ask(TASK.seed_prompt, {"parcel": WRONG[0]["parcel"]}, ["code"], as_json=True)[1]
    assert json.loads(answer) == {"code": TASK.world.usual}


@pytest.mark.parametrize("shown", ["[]", "no JSON", '[{"Inputs": "tea"}]', '{"Feedback": 3}', "[1, null]"])
def test_without_a_case_that_can_be_read_the_instruction_stays(shown: str) -> None:
    """Nothing is made up, and nothing fails."""
    given = {"current_instruction": TASK.seed_prompt, "examples_with_feedback": shown}
    assert field(ask("Write.", given, ["new_instruction"])[1], "new_instruction") == TASK.seed_prompt


def test_cases_with_feedback_become_rules() -> None:
    """What `dspy.GEPA` asks: each shown failure becomes a rule, as in GEPA's own request; right answers none."""
    right = next(row for row in TASK.train if row["target"] == TASK.world.usual)
    examples = [
        {
            "Inputs": {"parcel": row["parcel"]},
            "Generated Outputs": {"code": TASK.world.usual},
            "Feedback": f"The answer is wrong. Expected exactly: {row['target']}\nGot: {TASK.world.usual}"
            if row is not right
            else "The answer is right.",
        }
        for row in [right, *WRONG]
    ]
    given = {"current_instruction": TASK.seed_prompt, "examples_with_feedback": json.dumps(examples)}
    purpose, answer = ask("Write.", given, ["new_instruction"], as_json=True)
    assert purpose == "optimizer"
    text = json.loads(answer)["new_instruction"]
    assert text.startswith(TASK.seed_prompt)
    deciding = [next(n for n in attributes_in(row["parcel"]) if n in TASK.world.by_attribute) for row in WRONG]
    assert read_instructions(text).codes == {name: row["target"] for name, row in zip(deciding, WRONG)}


def test_examples_are_described_by_what_two_of_them_show() -> None:
    """What MIPROv2 asks first, with examples as Python prints them, all in one line."""
    rows = [
        ("glass, to Peru", "K2"),
        ("glass", "K2"),
        ("wine", "K1"),
        ("tea, to Peru", "K1"),
        ("maps", "K1"),
    ]
    shown = ", ".join(
        f"Example({{'parcel': 'Parcel: {text}, 3.1 kg, for Ada Berg', 'code': '{code}'}}) (input_keys={{'parcel'}})"
        for text, code in rows
    )
    purpose, answer = ask("Describe.", {"examples": f"[{shown}]"}, ["observations"])
    assert purpose == "optimizer"
    assert field(answer, "observations") == "Parcels with glass get code K2."


def test_a_proposal_takes_its_rules_from_the_description() -> None:
    """Most of what the description says, nothing else, and another tip makes another proposal."""
    said = "Parcels with glass or wine get code K2. Parcels to Peru or to Cuba get code K3."
    found = []
    for tip in range(12):
        given = {"dataset_description": said, "basic_instruction": TASK.seed_prompt, "tip": f"tip {tip}"}
        text = field(ask("Propose.", given, ["proposed_instruction"])[1], "proposed_instruction")
        found.append(frozenset(read_instructions(text).rules))
    told = {(rule.attribute, rule.code) for part in said.split(". ") for rule in rules_in(part)}
    assert frozenset().union(*found) == told
    assert len(set(found)) > 2


def test_prose_is_given_where_prose_is_wanted() -> None:
    """What a program is for, which MIPROv2 asks of it, is no code."""
    purpose, answer = ask("Describe.", {"program_code": ""}, ["program_description"])
    assert purpose == "optimizer"
    assert "parcel" in field(answer, "program_description")
