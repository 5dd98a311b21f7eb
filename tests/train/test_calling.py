from __future__ import annotations

import threading
from typing import Any

import pytest

from textgrad_engine import Variable, nn
from textgrad_engine.errors import DataError
from textgrad_engine.llm import Request
from textgrad_engine.testing import FunctionModel, ScriptedModel
from textgrad_engine.train.calling import fields_named_by, run_scored, run_together, target_for

PATIENCE = 60.0


class Program(nn.Module):
    def forward(self, ticket: str, *, tone: str = "kind") -> str:
        return ticket + tone


@pytest.mark.parametrize("row", [{"text": "x"}, {"text": "x", "ticket": None}])
def test_a_missing_field_names_example_and_fields(row: dict[str, Any]) -> None:
    """A null is a missing field too."""
    with pytest.raises(DataError, match="example 't7' has no field 'ticket', which the program's forward names"):
        fields_named_by(Program())(row, "t7")


def test_a_missing_slot_of_a_chat_completion_is_a_missing_field() -> None:
    """Its forward takes any keyword; its slots say which."""
    pick = fields_named_by(nn.ChatCompletion("{a} and {b}"))
    with pytest.raises(DataError, match="no field 'b'"):
        pick({"a": "x"}, "t1")
    assert pick({"a": "x", "b": "y", "target": "z"}, "t1") == {"a": "x", "b": "y"}


def test_a_program_gets_the_fields_it_names_and_no_others() -> None:
    """The target never leaks into the program; defaults hold where a field is missing."""
    row = {"id": "1", "ticket": "x", "target": "secret"}
    assert fields_named_by(Program())(row, "1") == {"ticket": "x"}
    assert fields_named_by(Program())({**row, "tone": "dry"}, "1") == {"ticket": "x", "tone": "dry"}
    assert fields_named_by(lambda ticket: ticket)(row, "1") == {"ticket": "x"}


@pytest.mark.parametrize("loss", [nn.ExactMatch(), lambda prediction, target: prediction])
def test_a_target_of_another_name_must_be_there(loss: Any) -> None:
    """Who names a field means it."""
    with pytest.raises(DataError, match="example 't1' has no field 'queue' for the target; it has ticket"):
        target_for(loss, "queue")({"ticket": "x"}, "t1")


def test_a_loss_that_needs_a_target_says_so_beforehand() -> None:
    """A module whose forward has no default for it needs one; others may do without."""
    with pytest.raises(DataError, match="no field 'target'"):
        target_for(nn.ExactMatch(), "target")({"ticket": "x"}, "t1")
    for loss in (nn.Judge("Kind?"), nn.Metric(len, "length"), lambda prediction, _: prediction):
        assert target_for(loss, "target")({"ticket": "x"}, "t1") is None


def test_a_loss_that_is_no_variable_is_refused() -> None:
    """A plain function of strings is a metric, and the message says how to make it one."""
    with pytest.raises(TypeError, match=r"got float; nn\.Metric"):
        run_scored(lambda position: (None, 1.0), 3)  # type: ignore[arg-type,return-value]


def test_an_error_gives_the_place_free_again() -> None:
    """A failing example does not leave the others waiting for ever."""
    tried: list[int] = []

    def start(position: int) -> tuple[None, Variable]:
        tried.append(position)
        raise ValueError("broken")

    for _ in range(3):
        with pytest.raises(ValueError, match="broken"):
            run_scored(start, 5, concurrency=1)
    assert tried == [0, 0, 0]


def test_a_program_that_never_waits_stays_in_its_thread() -> None:
    """Dispatching is enough: no threads are made for it."""
    model = ScriptedModel(["x"] * 3)
    chat = nn.ChatCompletion("{w}", model=model)
    seen: list[str] = []

    def work(word: str) -> Variable:
        seen.append(threading.current_thread().name)
        return chat(w=word)

    results = run_together(work, ["a", "b", "c"])
    assert [result.data for result in results] == ["x"] * 3
    assert set(seen) == {threading.current_thread().name}


def test_a_program_that_waits_is_run_in_threads_after_its_first_wait(main_waits: Any) -> None:
    """The first example shows that it waits; the rest meet at a barrier, which one thread could never pass."""

    async def answer(request: Request) -> str:
        if request.messages[-1].text == "0":
            await main_waits()
        return "x"

    chat = nn.ChatCompletion("{w}", model=FunctionModel(answer))
    together = threading.Barrier(4, timeout=PATIENCE)

    def work(number: int) -> tuple[int, str]:
        answer = chat(w=str(number)).data
        if number:
            together.wait()
        return number, answer

    assert run_together(work, range(5)) == [(n, "x") for n in range(5)]
