"""Requests of Trace's OptoPrime: cases are found along the calls of the computation that is shown."""

from __future__ import annotations

import json

import pytest

from textgrad_engine.testing.simulated.instructions import read_instructions
from textgrad_engine.testing.simulated.vocabulary import attributes_in

from .foreign import TASK, ask

USUAL = TASK.world.usual
WRONG = [row for row in TASK.train if row["target"] != USUAL][:3]
RIGHT = next(row for row in TASK.train if row["target"] == USUAL)


def problem(rows: list[dict[str, str]], name: str = "Parameters") -> str:
    """The computation with its values, those of each kind in another order than the calls."""
    places = range(len(rows))
    ends = ", ".join(f"args_{n}=check{n}" for n in places)
    said = [
        "The answer is right."
        if row["target"] == USUAL
        else f"The answer is wrong. Expected exactly: {row['target']}\nGot: {USUAL}"
        for row in rows
    ]
    code = [f"query{n} = query(system_prompt=str0, parcel=parcel{n})" for n in places]
    code += [f"check{n} = check(response=query{n}, truth=truth{n})" for n in places]
    others = [f"(str) query{n}={USUAL}" for n in places] + [f"(str) check{n}={said[n]}" for n in places]
    inputs = [f"(str) truth{n}={rows[n]['target']}" for n in reversed(places)]
    inputs += [f"(str) parcel{n}={rows[n]['parcel']}" for n in reversed(places)]
    sections = {
        "Instruction": "Change the variables.",
        "Code": "\n".join([*code, f"concat0 = concat({ends})"]),
        name: f"(str) str0={TASK.seed_prompt}",
        "Inputs": "\n".join(inputs),
        "Others": "\n".join(others),
        "Outputs": f"(str) concat0={' '.join(said)}",
        "Feedback": "Improve correctness.",
    }
    return "\n\n".join(f"#{name}\n{text}" for name, text in sections.items())


@pytest.mark.parametrize("name", ["Parameters", "Variables"])
def test_each_wrong_answer_becomes_a_rule(name: str) -> None:
    """Of the parcel that its calls lead to, though the values come in another order."""
    purpose, answer = ask(problem([RIGHT, *WRONG], name))
    assert purpose == "optimizer"
    text = json.loads(answer)["suggestion"]["str0"]
    assert text.startswith(TASK.seed_prompt)
    deciding = [next(n for n in attributes_in(row["parcel"]) if n in TASK.world.by_attribute) for row in WRONG]
    assert read_instructions(text).codes == {name: row["target"] for name, row in zip(deciding, WRONG)}


def test_where_all_is_right_it_ends() -> None:
    """Nothing is made up about right answers."""
    assert ask(problem([RIGHT])) == ("optimizer", "TERMINATE")


def test_calls_that_lead_nowhere_are_left_alone() -> None:
    """A value that is not shown, and a call of itself, are no case."""
    broken = problem(WRONG).replace("parcel0=", "lost=").replace("(response=query1,", "(response=check1,")
    codes = read_instructions(json.loads(ask(broken)[1])["suggestion"]["str0"]).codes
    deciding = next(n for n in attributes_in(WRONG[2]["parcel"]) if n in TASK.world.by_attribute)
    assert codes == {deciding: WRONG[2]["target"]}


def test_a_parcel_beside_such_headings_is_a_parcel() -> None:
    """Without a variable that may be changed it is no such request."""
    assert ask(f"#Code\n{RIGHT['parcel']}")[0] == "forward"
