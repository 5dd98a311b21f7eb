"""``textgrad-engine show RUN --step N``: what a step did, above all which lines it removed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.llm import Request
from textgrad_engine.testing import FunctionModel, feedback_for


def answer(request: Request) -> Any:
    """Shouts unless it is told to whisper; its optimizer removes what tells it so."""
    if request.purpose == "backward":
        return feedback_for(request, "Do not whisper.")
    if request.purpose == "optimizer":
        return {"edits": [{"op": "remove", "line": 2, "text": "", "reason": "whispering is wrong", "feedback": [1]}]}
    word = request.messages[-1].text
    return word if "Whisper" in request.messages[0].text else word.upper()


@pytest.fixture(scope="module")
def shortened(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose first step removes line 2 of 2."""
    path = tmp_path_factory.mktemp("step") / "run"
    rows = [{"id": f"e{n}", "word": f"w{n}", "target": f"W{n}"} for n in range(24)]
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Answer.\nWhisper.", role="system prompt"))
    with tg.use_models(forward=FunctionModel(answer)):
        tg.Trainer(run_dir=path).fit(
            program, nn.ExactMatch(), optim.PatchSearch(program.parameters()), rows[:12], rows[12:]
        )
    return path


def test_a_step_that_is_not_there(cli: Any, shortened: Path) -> None:
    """Exit code 2, and the range."""
    result = cli("show", shortened, "--step", "99")
    assert result.exit_code == 2
    assert "so there is no step 99" in result.stderr
    assert cli("show", shortened, "--step", "0").exit_code == 2


def test_a_step_and_a_line_are_not_asked_for_together(cli: Any, shortened: Path) -> None:
    """One of them would be passed over."""
    result = cli("show", shortened, "--step", "1", "--line", "1")
    assert result.exit_code == 2
    assert "give one of them" in result.stderr


def test_a_killed_run_explains_what_it_did(cli: Any, shortened: Path, tmp_path: Path) -> None:
    """As the whole run does, also as JSON, and says that it has no result."""
    killed = tmp_path / "killed"
    shutil.copytree(shortened, killed)
    (killed / "result.json").unlink()
    for how in ((), ("--json",)):
        result = cli("show", killed, "--step", "1", *how)
        assert result.exit_code == 0
        assert result.stdout == cli("show", shortened, "--step", "1", *how).stdout
        assert "has no result, as the run was killed" in result.stderr
    assert "so there is no step 99" in cli("show", killed, "--step", "99").stderr


def test_a_line_that_was_removed_is_traced(cli: Any, shortened: Path) -> None:
    """The report and the old number of the line name the step; the step has feedback, examples, race and ablation."""
    listed = cli("show", shortened).stdout
    assert "  - Whisper.\n      step 1: whispering is wrong\n" in listed
    result = cli("show", shortened, "--line", "2")
    assert result.exit_code == 2
    assert "'Whisper.', is gone since step 1, which --step 1 explains" in " ".join(result.stderr.split())
    assert "removed in step 1" in cli("show", shortened, "--line", "1").stdout
    shown = cli("show", shortened, "--step", "1").stdout
    assert "  - Whisper.\n  Edit 1.1: whispering is wrong\n  Feedback that asked for it\n    e0, e1" in shown
    assert "race on 12 examples: difference +1.000" in shown
    assert "Tried without in step " in shown
    assert "ablation: it is worse without" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_json_has_the_same(cli: Any, shortened: Path) -> None:
    """One document, with the races' examples."""
    document = json.loads(cli("show", shortened, "--step", "1", "--parameter", "system", "--json").stdout)
    assert document["trial"]["kept"]
    assert len(document["trial"]["race"]["gained"]) == 12
    (edit,) = document["edits"]
    assert (edit["removed"], edit["added"], edit["reason"]) == (["Whisper."], [], "whispering is wrong")
    assert edit["evidence"][0]["examples"]
    assert len(edit["ablations"][0]["race"]["lost"]) == 12


def test_the_calls_of_a_step_are_named(cli: Any, shortened: Path) -> None:
    """By the option that lists them."""
    assert "--step 1 with `calls` lists what was asked in it." in cli("show", shortened, "--step", "1").stdout
    purposes = [
        each["purpose"] for each in json.loads(cli("calls", shortened, "--step", "1", "--json").stdout)["calls"]
    ]
    assert {"forward", "backward", "optimizer"} == set(purposes)
