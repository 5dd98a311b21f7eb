from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, optim, use_models
from textgrad_engine.data import DataLoader
from textgrad_engine.errors import DataError
from textgrad_engine.testing import FunctionModel, ScriptedModel
from textgrad_engine.train.fields import check_examples, fields_named_by
from textgrad_engine.train.targets import target_for


class Program(nn.Module):
    def forward(self, ticket: str, *, tone: str = "kind") -> str:
        return ticket + tone


def test_a_missing_field_names_example_and_fields() -> None:
    """A null is a missing field too, and is called so: the field is there."""
    with pytest.raises(
        DataError, match="example 't7' has no field 'ticket', which the program's forward names; it has text"
    ):
        fields_named_by(Program())({"text": "x"}, "t7")
    with pytest.raises(DataError, match=r"'t7' has null in the field 'ticket', which the .* names; give it a value"):
        fields_named_by(Program())({"text": "x", "ticket": None}, "t7")
    with pytest.raises(DataError, match="'t7' has null in the field 'queue' for the target; give it a value"):
        target_for(nn.ExactMatch(), "queue")({"ticket": "x", "queue": None}, "t7")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (float("nan"), "nan, as tables have it in an empty field"),
        ("a\ud800b", "half of a surrogate pair at character 2"),
        (b"x", "a value of the type bytes, which is no text; of an image"),
        ({"a": 1}, "an object, which is no text"),
        (
            {"type": "image_url", "image_url": {"url": "x"}},
            r"an image at 'x', where no model can get it; data\.image_part\('x'\) reads a file",
        ),
        ("x" * 5_000_001, "5,000,001 characters, and a request has 5,000,000"),
        (["a"], "a list, which would be a batch"),
        ([], "a list, which has nothing in it; write a text, or, of a chat, at least one message"),
        ([{"from": "human", "value": "a"}], "a chat whose message 1 has no 'role'; write"),
    ],
)
def test_what_no_request_can_hold_is_refused_before_the_first_one(value: Any, why: str) -> None:
    """By the example's name: in the middle of a run it ended that, and nothing told which example it was."""
    good = [{"id": f"t{n}", "ticket": "a", "target": "ok"} for n in range(4)]
    model = FunctionModel(lambda request: "ok")
    program = nn.ChatCompletion("{ticket}", system=nn.Parameter("Rules."))
    with use_models(forward=model), pytest.raises(DataError, match=f"example 'bad': the field 'ticket' holds {why}"):
        tg.Trainer(max_epochs=1).fit(
            program,
            nn.ExactMatch(),
            optim.TGD(program.parameters()),
            good,
            [*good, {"id": "bad", "ticket": value, "target": "ok"}],
        )
    assert model.requests == []


def test_modules_one_after_the_other_get_the_fields_of_the_first() -> None:
    """Named as the first module names them, in a Sequential of Sequentials, too."""
    first, row = nn.ChatCompletion("{ticket}", model=ScriptedModel([])), {"ticket": "a", "tone": "b", "other": "c"}
    for chain in (nn.Sequential(first, Program()), nn.Sequential(nn.Sequential(first), Program())):
        assert fields_named_by(chain)(row, "1") == {"ticket": "a"}
    assert fields_named_by(nn.Sequential(Program(), first))(row, "1") == {"ticket": "a", "tone": "b"}
    with pytest.raises(DataError, match="example '1' has no field 'ticket'"):
        fields_named_by(nn.Sequential(first, Program()))({"text": "a"}, "1")


def test_a_missing_slot_of_a_chat_completion_is_a_missing_field() -> None:
    """Its forward takes any keyword; its slots say which."""
    pick = fields_named_by(nn.ChatCompletion("{a} and {b}"))
    with pytest.raises(DataError, match="no field 'b'"):
        pick({"a": "x"}, "t1")
    assert pick({"a": "x", "b": "y", "target": "z"}, "t1") == {"a": "x", "b": "y"}


def test_a_field_in_braces_that_no_slot_can_be_called_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """A spreadsheet calls its columns as it likes, and what stands in these braces goes to the model as text."""
    program = nn.ChatCompletion("{q}", system="It is of {Kunde (neu)}, {{Text}} and {Text (de)}. {x y}")
    for name in ("t1", "t2"):
        assert fields_named_by(program)({"q": "x", "Text (de)": "y"}, name) == {"q": "x"}
    [said] = [record.getMessage() for record in caplog.records]
    assert "{Text (de)} goes to the model as text, though the examples have such a field: a slot's name is" in said
    assert "rename the field" in said


def test_null_is_no_value_for_a_slot_of_the_system_prompt() -> None:
    """Left out, the slot itself would be sent; where the data have no such field it may be meant as it stands."""
    pick = fields_named_by(nn.ChatCompletion("{q}", system="Write to {name}."))
    with pytest.raises(DataError, match=r"'t1' has null in .*'name'.* sent with {name}.*; give it a value \(\"\""):
        pick({"q": "x", "name": None}, "t1")
    assert pick({"q": "x", "name": ""}, "t1") == {"q": "x", "name": ""}
    assert pick({"q": "x"}, "t1") == {"q": "x"}

    class Polite(nn.ChatCompletion):
        def forward(self, q: str, name: str | None = None, **others: Any) -> Any:
            return super().forward(q=q, name=name or "you", **others)

    assert fields_named_by(Polite("{q}", system="Write to {name}."))({"q": "x", "name": None}, "t1") == {"q": "x"}


def test_a_program_gets_the_fields_it_names_and_no_others() -> None:
    """The target never leaks into the program; defaults hold where a field is missing, or null."""
    row = {"id": "1", "ticket": "x", "target": "secret"}
    assert fields_named_by(Program())(row, "1") == {"ticket": "x"}
    assert fields_named_by(Program())({**row, "tone": "dry"}, "1") == {"ticket": "x", "tone": "dry"}
    assert fields_named_by(Program())({**row, "tone": None}, "1") == {"ticket": "x"}
    assert fields_named_by(lambda ticket: ticket)(row, "1") == {"ticket": "x"}


def all_fields(**fields: Any) -> Any:
    return fields


def in_order(*fields: Any) -> Any:
    return fields


def by_place(ticket: Any, /) -> Any:
    return ticket


@pytest.mark.parametrize(
    ("program", "taken"), [(all_fields, r"\*\*fields"), (by_place, "ticket"), (in_order, r"\*fields")]
)
def test_a_program_that_names_no_field_is_told_so(program: Any, taken: str) -> None:
    """It would be called with nothing, and fail in the words of whatever it does first."""
    with pytest.raises(TypeError, match=rf"takes {taken}, and .* by name with the fields .* def forward\(self, ticket"):
        fields_named_by(program)({"ticket": "x"}, "1")


def test_a_program_may_take_any_name_and_say_which_it_wants() -> None:
    """As nn.ChatCompletion does; and one that wants nothing is a constant."""

    class Both:
        slots = ("ticket", "tone")

        def __call__(self, **fields: Any) -> Any:
            return fields

    row = {"ticket": "x", "tone": "dry", "target": "z"}
    assert fields_named_by(Both())(row, "1") == {"ticket": "x", "tone": "dry"}
    for constant in (lambda: "always this", lambda **_: "always this", lambda *_args, **_fields: "always this"):
        assert fields_named_by(constant)(row, "1") == {}


def test_slots_are_a_repair_where_they_are_read_alone() -> None:
    """What takes all by place has no use for names, and was called with nothing when it had them."""

    def by_place(*fields: Any) -> Any:
        return fields

    by_place.slots = ("ticket",)  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match=r"write them out, def forward\(self, ticket\)$"):
        fields_named_by(by_place)
    with pytest.raises(TypeError, match=r'or name them in an attribute slots = \("ticket",\)$'):
        fields_named_by(lambda **fields: fields)


def test_who_wants_the_whole_example_is_told_that_fields_come_by_name() -> None:
    """As other libraries give it; a name that is nearly there is another mistake."""
    example = {"ticket": "Where is it?", "queue": "shipping"}
    said = r"no field 'row'.*it has ticket, queue; a program is called with the fields that it names, not with the exam"
    with pytest.raises(DataError, match=said):
        fields_named_by(lambda row: row)(example, "t7")
    with pytest.raises(DataError, match=r"no field 'tickets'.*it has ticket, queue$"):
        fields_named_by(lambda tickets: tickets)(example, "t7")


def test_slots_that_are_one_text_are_refused() -> None:
    """Their letters would be taken for the names."""

    class One:
        slots = "ticket"

        def __call__(self, **fields: Any) -> Any:
            return fields

    with pytest.raises(TypeError, match=r"the slots of One are the text 'ticket'.* write \('ticket',\)"):
        fields_named_by(One())


def test_a_program_that_names_its_fields_may_have_slots_of_its_own() -> None:
    """They are no names of fields then, and nobody reads them."""

    class Planner:
        slots = "morning and afternoon"

        def __call__(self, ticket: str) -> str:
            return ticket

    assert fields_named_by(Planner())({"ticket": "x"}, "1") == {"ticket": "x"}


@pytest.mark.parametrize(("value", "why"), [(["new", "vip"], "a list"), ([], "a list"), ({"a": 1}, "an object")])
def test_what_is_no_text_does_not_fill_a_slot(value: Any, why: str) -> None:
    """A list would be a batch, of which each call sees one entry; a program of a class may join it as it likes."""
    chat = nn.ChatCompletion("{question} {contexts}", system="Answer. {hint}")
    row = {"question": "q", "contexts": "none"}
    for field in ("contexts", "hint"):
        with pytest.raises(DataError, match=f"example 't1': the field '{field}' holds {why}, which .* one"):
            fields_named_by(chat)({**row, field: value}, "t1")
    assert fields_named_by(lambda contexts: "")({**row, "contexts": value}, "t1") == {"contexts": value}


def from_sqlite() -> list[Any]:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    rows = connection.execute("SELECT 'no signal' AS text, 'technical' AS target").fetchall()
    connection.close()
    return rows


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("val.jsonl", r"fit: val should be .*, and is the path 'val\.jsonl'; data\.load\('val\.jsonl'\) reads them"),
        (Path("val.jsonl"), r"fit: val should be a sequence of dicts, and is the path 'val\.jsonl'"),
        ([{"text": "x"}, ("x", "y")], "fit: example 1 of val is a tuple; an example is a dict of its fields"),
        (from_sqlite(), r"fit: example 0 of val is a Row; give dict\(row\)"),
        (DataLoader([{"text": "x"}]), r"fit: val should be .*, and is a DataLoader, .*; give the dataset .*\.dataset"),
        (None, "fit: val should be a sequence of examples.* got NoneType; data.random_split cuts some off"),
        (
            iter([{"text": "x"}]),
            "fit: val should be a sequence of examples.* got list_iterator; of a stream take a part",
        ),
    ],
)
def test_what_is_no_sequence_of_examples_is_refused(rows: Any, message: str) -> None:
    """With the name of the argument and the repair."""
    with pytest.raises(TypeError, match=message):
        check_examples(rows, "val", "fit")


class Sorter(nn.Module):
    def forward(self, text: str) -> tg.Variable:
        return tg.Variable(text)


def test_a_mock_stands_for_a_program_where_it_says_what_it_is_called_with() -> None:
    """By its spec, or by slots as a ChatCompletion has them; else it would be called with nothing, or not at all."""
    rows = [{"text": "a", "target": "x"}, {"text": "b", "target": "x"}]
    answer = tg.Variable("x")
    specified = mock.create_autospec(Sorter, instance=True)
    specified.return_value = answer
    slotted = mock.Mock(return_value=answer, slots=("text",))
    for program in (specified, slotted, mock.create_autospec(lambda text: text, return_value=answer)):
        assert tg.evaluate(program, rows, nn.ExactMatch()).mean == 1
        assert program.call_args_list == [mock.call(text="a"), mock.call(text="b")]
    for unspecified in (mock.Mock(return_value=answer), mock.MagicMock(return_value=answer)):
        with pytest.raises(TypeError, match=r'name them in an attribute slots = \("ticket",\)'):
            tg.evaluate(unspecified, rows, nn.ExactMatch())
