"""Rows of JSON files: each that cannot be used is named with its line and the repair."""

from __future__ import annotations

import json
import tracemalloc
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.data import json_rows
from textgrad_engine.data.load import load
from textgrad_engine.errors import DataError

from .conftest import Put, Refused

BROKEN = {
    "jsonl syntax": ("a.jsonl", '{"a": 1}\n{"a" 2}\n', ":2: column 6: not JSON"),
    "jsonl trailing comma": ("a.jsonl", '{"a": 1},\n{"a": 2}\n', ":1: column 9: .*take off the comma"),
    "jsonl by str(row)": ("a.jsonl", '{"a": "x"}\n' + str({"a": "it's", "b": None}), ":2: column 2: .*json.dumps"),
    "jsonl with None": ("a.jsonl", '{"a": None}', ":1: column 7: .*null, true and false; .*json.dumps"),
    "json by str(rows)": ("a.json", str([{"a": "x"}]), ":1: column 3: .*json.dumps"),
    "jsonl comma in an object": (
        "a.jsonl",
        '{"a": 1, "b": [1, 2,]}\n',
        ":1: column .*: a comma behind which nothing foll",
    ),
    "jsonl comma at the end of an object": (
        "a.jsonl",
        '{"a": 1,}\n',
        ":1: column .*: a comma behind which nothing fol",
    ),
    "json comma in an object": (
        "a.json",
        '[{"a": 1},\n{"a": 1, }]',
        ":2: column .*: a comma behind which nothing follows",
    ),
    "jsonl half a line": ("a.jsonl", '{"a": "x"}\n{"a": "x', ":2: the file ends amid this line; complete it, or"),
    "jsonl half an object": ("a.jsonl", '{"a": 1}\n{"a": 1, ', ":2: the file ends amid this line; complete it, or"),
    "json with its list in a field": (
        "a.json",
        '{"n": 1, "data": [{"a": 1}]}',
        ":1: .*has one in 'data'; write that list",
    ),
    "json of columns": (
        "a.json",
        '{"text": ["x", "y"], "target": ["a", "b"]}',
        r":1: .*this is an object of columns; .*read_json\('a.json'\).to_json\('a.jsonl', orient='records', lines=True",
    ),
    "json of columns by number": (
        "a.json",
        '{"text": {"0": "x", "7": "y"}, "target": {"0": "a", "7": "b"}}',
        ":1: .*this is an object of columns; pandas",
    ),
    "json of rows by number": (
        "a.json",
        '{"0": {"a": 1}, "1": {"a": 2}}',
        ":1: .*has a row in each field; write these",
    ),
    "json of rows by name": (
        "a.json",
        '{"t1": {"a": 1}, "t2": {"a": 2}}',
        ":1: .*has a row in each field; write these",
    ),
    "json that is a row": ("a.json", '{"tags": ["x"], "text": "y"}', ":1: .*got an object; if each line is one"),
    "json that is a row of objects": ("a.json", '{"user": {"a": 1}, "bot": {"b": 2}}', ":1: .*got an object; if each"),
    "jsonl object over lines": ("a.jsonl", '{"a":\n1}\n', ":1: column 6: .*one whole object on each line"),
    "jsonl is a list": ("a.jsonl", '[\n{"a": 1}\n]', r":1: .*name the file \.json"),
    "jsonl list in one line": ("a.jsonl", '[{"a": 1}]', r":1: .*name the file \.json"),
    "jsonl row is a number": ("a.jsonl", '\n{"a": 1}\n\n7\n', ":4: a row is an object .* got a number"),
    "jsonl row is null": ("a.jsonl", "null", ":1: .* got null"),
    "jsonl row is a bool": ("a.jsonl", "true", ":1: .* got true or false"),
    "jsonl field twice": ("a.jsonl", '{"a": 1}\n{"a": 1, "a": 2}', ":2: the field 'a' is there twice"),
    "jsonl NaN": ("a.jsonl", '{"a": NaN}', ":1: NaN is no JSON value"),
    "jsonl infinite number": ("a.jsonl", '{"a": 1e999}', ":1: the number 1e999 is too large"),
    "jsonl long number": ("a.jsonl", '{"a": ' + "9" * 5000 + "}", ":1: .*write it as a string"),
    "jsonl deep": ("a.jsonl", '{"a": ' + "[" * 200_000 + "]" * 200_000 + "}", ":1: .*nested too deeply"),
    "jsonl surrogate": ("a.jsonl", '{"t": "ok"}\n{"t": "ab\\ud83d!"}', ":2: character 3 of column 't' is half"),
    "jsonl nested surrogate": ("a.jsonl", r'{"t": [{"u": "\udc00"}]}', r":1: character 1 of column 't'\[0\]\['u'\]"),
    "jsonl surrogate in name": ("a.jsonl", r'{"\udfff": 1}', ":1: a character of the column name"),
    "json syntax": ("a.json", '[\n {"a": 1},\n {"a": oops}\n]', ":3: column 8: not JSON"),
    "json no comma": ("a.json", '[{"a": 1}\n{"a": 2}]', ":2: column 1: .*expected ',' or ']'"),
    "json unfinished": ("a.json", '[{"a": 1}\n', ":2: column 1: .*expected ',' or ']'"),
    "json last comma": ("a.json", '[{"a": 1},\n]', ":2: column 1: .*comma before ']'"),
    "json more after the list": ("a.json", '[{"a": 1}]\n[]', ":2: column 1: .*something follows"),
    "json of objects per line": ("a.json", '\n{"a": 1}\n{"a": 2}', r":2: .*name the file \.jsonl"),
    "json is a string": ("a.json", '"rows"', ":1: a .json file is a list"),
    "json row is a string": ("a.json", '[{"a": 1},\n\n"x"]', ":3: a row is an object .* got a string"),
    "json row is a list": ("a.json", "[[1]]", ":1: .* got a list"),
    "newline-delimited": ("a.ndjson", "{}\n[1]", ":2: "),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_read_is_named_with_file_line_and_repair(case: str, check_refused: Refused) -> None:
    """No unreadable row reaches a paid call, and the message is enough to repair it."""
    check_refused(*BROKEN[case])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", '{"id": "x", "t": "é"}\n\n{"t": "\\u2028 \u2028"}'),
        ("a.jsonl", '\ufeff{"id": "x", "t": "é"}\r\n\r\n{"t": "\u2028 \u2028"}\r\n'),
        ("a.json", '\ufeff[{"id": "x", "t": "é"},\n\n {"t": "\u2028 \u2028"}]\n'),
        ("A.JSON", '[{"id": "x", "t": "é"},\r\n\r\n{"t": "\u2028 \u2028"}]'),
    ],
)
def test_equal_rows_are_read_from_every_kind_of_json(name: str, content: str, put: Put) -> None:
    """Marks, line ends, blank lines and unusual characters change neither values nor line numbers."""
    path = put(name, content)
    dataset = load(path)
    assert list(dataset) == [{"id": "x", "t": "é"}, {"t": "\u2028 \u2028"}]
    assert dataset.ids == ("x", f"{path.stem}:3")
    assert dataset.where(1) == f"{path}:3"
    assert dataset.path == path


def test_files_that_were_put_together_keep_their_byte_order_marks(put: Put) -> None:
    """One stands before each part, and is no part of a row."""
    assert len(load(put("a.jsonl", '\ufeff{"a": 1}\n\ufeff{"a": 2}\n'))) == 2


def test_a_row_of_many_fields_with_one_twice_is_refused_in_linear_time(check_refused: Refused) -> None:
    """Looked for by comparing each with each, 200,000 take half an hour."""
    fields = ", ".join(f'"f{n}": 1' for n in range(200_000))
    check_refused("a.jsonl", f'{{{fields}, "f199999": 2}}\n', ":1: the field 'f199999' is there twice")


def test_a_list_on_one_line_is_read_in_linear_time(put: Put) -> None:
    """As `json.dump` writes it; counted anew for each row, the rows before it took minutes for 100,000."""
    path = put("a.json", json.dumps([{"t": "x"}] * 100_000))
    assert load(path).ids[::33_333] == ("a:1", "a:1.33334", "a:1.66667", "a:1.100000")


def test_a_row_nested_more_deeply_than_python_calls_is_looked_through(put: Put, monkeypatch: Any) -> None:
    """From Python 3.12 on, JSON is read that is nested more deeply than functions may call each other."""
    nested: Any = "x"
    for _ in range(5000):
        nested = [nested]
    monkeypatch.setattr(json_rows, "_DECODER", SimpleNamespace(decode=lambda line: {"t": nested}))
    assert load(put("a.jsonl", r'{"t": "\ud83d\ude00"}'))[0]["t"] is nested


def test_where_half_of_a_pair_is_takes_no_memory_for_all_other_places(put: Put) -> None:
    """Under a long name each entry of a list has a long place: of a file of 100 kB these are hundreds of megabytes."""
    path = put("a.jsonl", json.dumps({"n" * 10_000: list(range(10_000)), "t": [{"u": ["x", "\ud83d"]}]}) + "\n")
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"a\.jsonl:1: character 1 of column 't'\[0\]\['u'\]\[1\] is half of a"):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_a_surrogate_pair_is_one_character(put: Put) -> None:
    """Only halves are refused: emoji escaped as a pair are fine."""
    assert load(put("a.jsonl", r'{"t": "\ud83d\ude00"}'))[0] == {"t": "😀"}


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=5).filter(lambda name: name != "id")


@given(rows=st.lists(st.dictionaries(names, values, max_size=4), min_size=1, max_size=5), indent=st.none() | st.just(2))
def test_what_json_wrote_is_read_back(
    rows: list[dict[str, object]], indent: int | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Both JSON forms give back exactly the rows that were written, and the line of each."""
    folder = tmp_path_factory.mktemp("rows")
    lines, whole = folder / "a.jsonl", folder / "b.json"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    text = json.dumps(rows, indent=indent, ensure_ascii=False)
    whole.write_text(text, encoding="utf-8", newline="\n")
    assert list(load(lines)) == list(load(whole)) == rows
    assert load(lines).ids == tuple(f"a:{n}" for n in range(1, len(rows) + 1))
    if indent and all(rows):
        starts = [n for n, line in enumerate(text.split("\n"), 1) if line.startswith("  {")]
        assert [int(load(whole).where(i).rpartition(":")[2]) for i in range(len(rows))] == starts
