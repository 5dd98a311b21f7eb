"""What fills a slot: texts, numbers, and what is written in one way only."""

import datetime
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine import nn, use_models
from textgrad_engine.testing import FunctionModel


class Truth:
    """Looks like numpy's `bool_`, which is no number."""

    __module__, shape = "numpy", ()

    def __str__(self) -> str:
        return "True"


DAY = datetime.date(2024, 2, 29)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (DAY, "2024-02-29"),
        (datetime.time(8, 30), "08:30:00"),
        (Decimal("1.50"), "1.50"),
        (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (Path("a.txt"), "a.txt"),
        (7, "7"),
        (Truth(), "True"),
    ],
)
def test_a_value_with_one_way_to_write_it_is_sent_so_and_can_be_trained_on(value: Any, text: str) -> None:
    """A table has dates and decimals; a run measured them and ended at its first step."""
    model = FunctionModel(lambda r: {"case_1": {"system": "Say no."}} if r.purpose == "backward" else "yes")
    program = nn.ChatCompletion("On {when}?", system=nn.Parameter("Rules."), model=model)
    answer = program(when=value)
    with use_models(backward=model):
        nn.ExactMatch()(answer, "no").backward()
    assert [item.data for item in program.system.grad] == ["Say no."]
    assert model.requests[0].messages[-1].text == f"On {text}?"
    batch = program(when=[value, "Monday"])
    assert batch.data == ["yes", "yes"]
    assert model.requests[2].messages[-1].text == f"On {text}?"


@pytest.mark.parametrize("value", [float("nan"), Decimal("nan"), Decimal("snan")])
def test_what_is_no_number_is_refused(value: Any) -> None:
    """Also where comparing it raises."""
    with pytest.raises(ValueError, match=r"the value of \{when\} is nan"):
        nn.ChatCompletion("On {when}?", model=FunctionModel(lambda r: "yes"))(when=value)


@pytest.mark.parametrize("value", [b"x", {"a": 1}, {1, 2}, ("a", "b"), object()])
def test_what_is_no_text_is_refused_by_the_name_of_its_slot(value: Any) -> None:
    """It went out as Python prints it, where nothing was trained."""
    program = nn.ChatCompletion("On {when}?", model=FunctionModel(lambda r: "yes"))
    with pytest.raises(TypeError, match=r"the value of \{when\} is .*, which is no text"):
        program(when=value)
    with pytest.raises(TypeError, match=r"entry 1 of the value of \{when\} is .*, which is no text"):
        program(when=["a", value])
