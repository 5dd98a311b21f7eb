r"""Slots are filled once, and a name is the same however its letters are encoded; NOTE [Names] in slots.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import textgrad_engine as tg
from textgrad_engine import data, nn, ops, slots
from textgrad_engine.cli.config_data import read_data
from textgrad_engine.cli.config_file import load_config
from textgrad_engine.errors import DataError
from textgrad_engine.testing import FunctionModel

ONE, TWO = "caf\u00e9", "cafe\u0301"
hostile = st.text(alphabet=st.sampled_from("{}/\\'\"\n\0 abn") | st.characters(exclude_categories=["Cs"]), max_size=60)
FORMS = [(ONE, TWO), (TWO, ONE), (TWO, TWO)]


@pytest.mark.parametrize(("in_template", "given"), FORMS)
def test_a_value_gets_into_a_slot_that_looks_like_its_name(in_template: str, given: str) -> None:
    """However each of them is written."""
    assert ops.format(f"[{{{in_template}}}]", **{given: "x"}).data == "[x]"
    with tg.use_models(forward=FunctionModel(lambda request: request.messages[-1].text)):
        assert nn.ChatCompletion(f"[{{{in_template}}}]")(**{given: "x"}).data == "[x]"
        messages = [{"role": "user", "content": f"[{{{in_template}}}]"}]
        assert ops.chat_completion(None, messages, inputs={given: "x"}).data == "[x]"


@pytest.mark.parametrize(("in_template", "given"), FORMS)
def test_rows_made_in_python_are_run_whichever_form_they_have(in_template: str, given: str) -> None:
    """They never went through a file."""
    rows = [{given: "x", TWO + "_wanted": "x"}]
    with tg.use_models(forward=FunctionModel(lambda request: request.messages[-1].text)):
        found = tg.evaluate(nn.ChatCompletion(f"{{{in_template}}}"), rows, nn.ExactMatch(), target=ONE + "_wanted")
    assert found.mean == 1


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", f"{TWO},target\nx,y\n"),
        ("a.jsonl", f'{{"{TWO}": "x", "target": "y"}}\n'),
        ("a.json", f'[{{"{TWO}": "x", "target": "y"}}]'),
    ],
)
def test_columns_of_a_file_are_composed(tmp_path: Path, name: str, content: str) -> None:
    """Values are left as they are."""
    (tmp_path / name).write_text(content.replace("x", TWO), encoding="utf-8")
    loaded = data.load(tmp_path / name)
    assert loaded.columns == (ONE, "target")
    assert loaded[0][ONE] == TWO


@pytest.mark.parametrize(
    ("name", "content"), [("a.csv", f"{TWO},{ONE}\nx,y\n"), ("a.jsonl", f'{{"{TWO}": "x", "{ONE}": "y"}}\n')]
)
def test_two_columns_that_look_alike_are_refused(tmp_path: Path, name: str, content: str) -> None:
    """One of them would be lost."""
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=r":1: .* twice"):
        data.load(tmp_path / name)


def test_a_row_that_has_a_name_in_both_forms_is_refused() -> None:
    """It is named, as any example that cannot be used."""
    with (
        tg.use_models(forward=FunctionModel(lambda request: "x")),
        pytest.raises(DataError, match="example '0': the name 'café' is there twice"),
    ):
        tg.evaluate(nn.ChatCompletion(f"{{{ONE}}}"), [{ONE: "x", TWO: "y", "target": "x"}], nn.ExactMatch())


@pytest.mark.parametrize("name", ["\u0938\u0902\u0926\u0947\u0936", "\u0e02\u0e49\u0e2d", "\u5de5\u5355"])
def test_braces_of_jinja_are_told_of_in_any_script(name: str) -> None:
    """Signs on letters are part of a name, as they are for a slot."""
    assert slots.doubled(f"Sort {{{{ {name} }}}}.", [name]).startswith(f"{{{{ {name} }}}} is text in it")


def test_a_slot_that_has_no_value_stays_as_it_was_written() -> None:
    """Only names are composed, not texts."""
    assert slots.fill(f"{{{TWO}}} {{{{{TWO}}}}} {TWO}", {"other": "x"}) == f"{{{TWO}}} {{{{{TWO}}}}} {TWO}"
    assert slots.fill(f"{{{{{TWO}}}}}", {ONE: "x"}) == f"{{{TWO}}}"


def test_a_config_names_columns_whichever_form_it_has(tmp_path: Path) -> None:
    """A file name that was copied from a file manager may have come apart."""
    for split in ("train", "val", "test"):
        rows = [f'{{"{ONE}": "{split} {n}", "{TWO}_wanted": "y"}}' for n in range(4)]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(rows), encoding="utf-8")
    (tmp_path / "config.toml").write_text(
        f'''[program]
system = "Say y."
user = "{{{TWO}}}"
[data]
train = "train.jsonl"
val = "val.jsonl"
test = "test.jsonl"
target = "{TWO}_wanted"
[models]
forward = "simulated/tickets"
''',
        encoding="utf-8",
    )
    config = load_config(tmp_path)
    read_data(config)
    assert config.input_columns() == (ONE,)


@settings(max_examples=50)
@given(
    pieces=st.lists(
        st.sampled_from(["{a}", "{b}", "{{a}}", "{", "}", "{}", '{"json": 1}', "{0}", "{a.b}", " x "]), max_size=8
    ),
    a=hostile,
    b=hostile,
)
def test_filling_is_one_pass_over_named_slots(pieces, a, b):
    """Each slot is filled where it stands; JSON and other braces are text; `str.format` is not at work."""
    template = " ".join(pieces)
    expected = " ".join({"{a}": a, "{b}": b, "{{a}}": "{a}"}.get(piece, piece) for piece in pieces)
    assert slots.fill(template, {"a": a, "b": b}) == expected
    assert slots.slots_of(template) == tuple(dict.fromkeys(piece[1:-1] for piece in pieces if piece in ("{a}", "{b}")))


@pytest.mark.parametrize("name", ["質問", "प्रश्न", "ชื่อ", "שאלה", "이름", "größe", "gro\u0308\u00dfe", "名前2", "_x"])
def test_a_slot_is_called_as_the_data_calls_it(name):
    """A column's name in any language, with signs on its letters, is filled; it needs no renaming."""
    template = f"{{{name}}}: {{{{{name}}}}} {{2{name}}}"
    known = slots.composed(name)
    assert slots.slots_of(template) == (known,)
    assert slots.fill(template, {known: "x"}) == f"x: {{{name}}} {{2{name}}}"
    assert slots.not_slots(template, [name, f"2{name}"]) == [f"2{known}"]


@settings(max_examples=50)
@given(template=hostile)
def test_a_template_without_values_stays_as_it_is(template):
    """Nothing is unescaped or lost."""
    assert slots.fill(template, {}) == template
