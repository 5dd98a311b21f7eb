"""Reading dataset files: every unreadable file is named with its line and the repair."""

from __future__ import annotations

import codecs
import csv
import json
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.data.dataset import listed
from textgrad_engine.data.load import load
from textgrad_engine.errors import DataError


def put(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


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
    "spreadsheet": ("a.csv", b"PK\x03\x04\x14\x00", r": this is a zip archive, as \.xlsx files are"),
    "compressed": ("a.jsonl", b"\x1f\x8b\x08\x00", ": this is compressed; unpack it first"),
    "parquet": ("a.jsonl", b"PAR1\x15\x04", r": this is a parquet table; export it as \.jsonl"),
    "web page": ("a.csv", "\n<!DOCTYPE html>\n<html>", ": this is a web page"),
    "pointer": (
        "a.csv",
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
        ": this is a pointer of Git LFS",
    ),
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
    "json has no rows": ("a.json", " [ ] \n", "has no rows"),
    "csv wide row": ("a.csv", "a,b\n1,2\n\n1,2,3\n", ":4: the row has 3 fields, the header has 2; put fields"),
    "csv narrow row": ("a.csv", "a,b\n1\n", ":2: the row has 1 field, the header has 2; write a comma for each"),
    "csv wide row after a long one": ("a.csv", 'a,b\n"x\ny",2\n1,2,3\n', ":4: the row has 3 fields"),
    "csv open quote": ("a.csv", 'a,b\n1,2\n"x,2\n', ":3: not CSV"),
    "csv quote inside": ("a.csv", 'a,b\n"x"y,2\n', ":2: not CSV"),
    "csv column twice": ("a.csv", "\na,b, a\n1,2,3\n", ":2: the header names 'a' twice, as columns 1 and 3"),
    "csv column without a name": ("a.csv", "a,,c\n1,2,3\n", ":1: column 2 of the header has no name"),
    "csv with semicolons, narrow row": ("a.csv", "a;b\n1,5\n", ":2: .* write a semicolon for each that"),
    "csv with bars, narrow row": ("a.csv", "a|b\n1,5\n", ":2: .* write a bar for each that"),
    "csv behind its separator": ("a.csv", "sep=;\na;b\n1;2\n1;2;3\n", ":4: the row has 3 fields"),
    "csv header only": ("a.csv", "a,b\n", "has no rows"),
    "empty": ("a.csv", "", ":1: the file is empty"),
    "blank": ("a.jsonl", " \n\r\n", ":1: the file is empty"),
    "only a mark": ("a.jsonl", codecs.BOM_UTF8, ":1: the file is empty"),
    "latin-1": ("a.jsonl", b'{"a": "x"}\n{"a": "caf\xe9"}\n', ":2: byte 11 of the line is 0xe9, .*UTF-8"),
    "cut amid a character": (
        "a.jsonl",
        b'{"a": "x"}\n{"a": "caf\xc3',
        ":2: byte 11 of the line is 0xc3, which begins a character of UTF-8, and the file ends amid it; complete the",
    ),
    "utf-16": ("a.csv", "a,b\n1,2\n".encode("utf-16"), ":1: the file is UTF-16; save it as UTF-8"),
    "utf-32": ("a.csv", "a,b\n1,2\n".encode("utf-32"), ":1: the file is UTF-32"),
    "utf-16 without mark": ("a.csv", "a,b\n1,2\n".encode("utf-16-le"), ":1: there is a NUL"),
    "unknown ending": (
        "a.parquet",
        "x",
        r"'.parquet' is not known; .*read_parquet\('a.parquet'\).to_json\('a.jsonl', .* makes",
    ),
    "newline-delimited": ("a.ndjson", "{}\n[1]", ":2: "),
    "tabs, narrow row": ("a.tsv", "a\tb\n1,5\n", ":2: .* write a tab for each that"),
    "no ending": ("data", "{}", "has no ending"),
    "id is a list": ("a.jsonl", '{"id": 1}\n{"id": [2]}', ":2: an id is a string or a whole number, got list"),
    "id is a bool": ("a.jsonl", '{"id": true}', ":1: an id is .* got bool"),
    "id twice": ("a.jsonl", '{"id": 1}\n\n{"id": "1"}', r":3: the id '1' was already given at .*a\.jsonl:1"),
    "id as a made-up one": ("a.jsonl", '{"id": "a:2"}\n{"b": 1}', r":2: the id 'a:2' was already given at .*:1"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_read_is_named_with_file_line_and_repair(case: str, tmp_path: Path) -> None:
    """No unreadable row reaches a paid call, and the message is enough to repair it."""
    name, content, message = BROKEN[case]
    path = put(tmp_path, name, content)
    with pytest.raises(DataError, match=message) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))


def test_tables_under_other_endings(tmp_path: Path) -> None:
    """Tabs alone separate the columns of a TSV, whatever its header has."""
    assert list(load(put(tmp_path, "a.ndjson", '{"a": 1}\n{"a": 2}\n'))) == [{"a": 1}, {"a": 2}]
    assert list(load(put(tmp_path, "a.tsv", "a, or b;\tc\n1, 2\t3\n"))) == [{"a, or b;": "1, 2", "c": "3"}]


def test_columns_may_be_called_as_a_format_begins(tmp_path: Path) -> None:
    assert load(put(tmp_path, "a.csv", "par1,par2\n1,2\n"))[0] == {"par1": "1", "par2": "2"}


def test_an_address_is_no_file() -> None:
    with pytest.raises(DataError, match=r"https://a/b\.csv: this is an address; download"):
        load("https://a/b.csv")


def test_a_missing_file_suggests_a_near_name(tmp_path: Path) -> None:
    """A typing error in a file name is answered with the right one."""
    put(tmp_path, "train.jsonl", "{}")
    with pytest.raises(DataError, match=r"no such file; did you mean 'train.jsonl'"):
        load(tmp_path / "trian.jsonl")
    with pytest.raises(DataError, match=r"no such file; the folder has train.jsonl"):
        load(tmp_path / "zzz.csv")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_is_not_called_missing(tmp_path: Path) -> None:
    """`<(command)` of a shell and /dev/stdin are there, and the path is right; what helps is a file."""
    os.mkfifo(tmp_path / "a.jsonl")
    for path in (tmp_path / "a.jsonl", Path(os.devnull)):
        with pytest.raises(DataError, match="this is a pipe or a device; write what comes of it into a file, and name"):
            load(path)


def test_a_dash_is_told_that_nothing_is_read_from_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other programs read standard input by that name."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"-: nothing is read from standard input; write it into a file, and name that"):
        load("-")


def test_a_split_that_is_missing_is_not_taken_for_another_one(tmp_path: Path) -> None:
    """Their names are near, and a test on what was trained with tells nothing."""
    (tmp_path / "train.jsonl").write_text('{"text": "a"}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"test\.jsonl: there is no such file; the folder has train\.jsonl$"):
        load(tmp_path / "test.jsonl")
    (tmp_path / "test.csv").write_text("text\na\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"no such file; did you mean 'test\.csv'"):
        load(tmp_path / "test.jsonl")
    with pytest.raises(DataError, match=r"no such file; did you mean 'train\.jsonl'"):
        load(tmp_path / "tran.jsonl")


def test_a_missing_folder_and_a_folder_are_told_apart(tmp_path: Path) -> None:
    """The message says which part of a path is wrong."""
    put(tmp_path, "train.jsonl", "{}")
    with pytest.raises(DataError, match="there is no folder"):
        load(tmp_path / "nowhere" / "train.jsonl")
    with pytest.raises(DataError, match=r"this is a folder; name a file in it: train\.jsonl"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", '{"id": "x", "t": "é"}\n\n{"t": "\\u2028 \u2028"}'),
        ("a.jsonl", '\ufeff{"id": "x", "t": "é"}\r\n\r\n{"t": "\u2028 \u2028"}\r\n'),
        ("a.json", '\ufeff[{"id": "x", "t": "é"},\n\n {"t": "\u2028 \u2028"}]\n'),
        ("A.JSON", '[{"id": "x", "t": "é"},\r\n\r\n{"t": "\u2028 \u2028"}]'),
    ],
)
def test_equal_rows_are_read_from_every_kind_of_json(name: str, content: str, tmp_path: Path) -> None:
    """Marks, line ends, blank lines and unusual characters change neither values nor line numbers."""
    path = put(tmp_path, name, content)
    dataset = load(path)
    assert list(dataset) == [{"id": "x", "t": "é"}, {"t": "\u2028 \u2028"}]
    assert dataset.ids == ("x", f"{path.stem}:3")
    assert dataset.where(1) == f"{path}:3"
    assert dataset.path == path


def test_csv_values_are_strings_and_lines_are_those_where_rows_begin(tmp_path: Path) -> None:
    """Quoted line breaks, blank lines and spreadsheet leftovers do not shift the line numbers."""
    path = put(tmp_path, "a.csv", '\ufeffid, t\r\n7,"one\r\ntwo"\r\n\r\n8,"say ""hi"", now"\r\n,\r\n')
    dataset = load(path)
    assert list(dataset) == [{"id": "7", "t": "one\r\ntwo"}, {"id": "8", "t": 'say "hi", now'}]
    assert [dataset.where(i) for i in range(2)] == [f"{path}:2", f"{path}:5"]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("a,b\n1;5,x\n", 2),
        ('a;b\r\n"1;5";x\r\n', 2),
        ('\ufeff"a";"b"\r\n"1;5";x\r\n', 2),
        ('"a";b\n"1;5";x\n', 2),
        ("a\tb\n1;5\tx\n", 2),
        ("a|b\n1;5|x\n", 2),
        ('sep=;\r\na;b\r\n"1;5";x\r\n', 3),
        ("\n\na\tb\n1;5\tx\n", 4),
        ('sep=;\ra;b\r"1;5";x\r', 3),
        ('a;b\r"1;5";x\r1,5;y\r', 2),
    ],
)
def test_columns_may_stand_between_what_spreadsheets_write(content: str, line: int, tmp_path: Path) -> None:
    """In countries with decimal commas a spreadsheet has no other way to save a table as .csv."""
    dataset = load(put(tmp_path, "a.csv", content))
    assert (dataset[0], dataset.ids[0]) == ({"a": "1;5", "b": "x"}, f"a:{line}")


def test_names_of_columns_that_are_an_example_make_no_long_message() -> None:
    """Of a table without a header the first row is what others have for names."""
    assert listed(["Dear all,\n\nthe parcel " + "x" * 200, "billing"]) == f"Dear all, the parcel {'x' * 38}…, billing"


def test_a_name_in_quotes_separates_nothing(tmp_path: Path) -> None:
    """It may hold commas, and a table of one column has no separator."""
    assert list(load(put(tmp_path, "a.csv", '"x, y";b\n1,2;3\n'))) == [{"x, y": "1,2", "b": "3"}]
    assert list(load(put(tmp_path, "b.csv", '"x; y"\n"1;2"\n'))) == [{"x; y": "1;2"}]
    assert list(load(put(tmp_path, "c.csv", '"x\ny, z";b\n1,2;3\n'))) == [{"x\ny, z": "1,2", "b": "3"}]


def test_files_that_were_put_together_keep_their_byte_order_marks(tmp_path: Path) -> None:
    """One stands before each part, and is no part of a row."""
    assert len(load(put(tmp_path, "a.jsonl", '\ufeff{"a": 1}\n\ufeff{"a": 2}\n'))) == 2


def test_rows_on_one_line_have_ids_of_their_own(tmp_path: Path) -> None:
    """A JSON file without line breaks can be read, too."""
    dataset = load(put(tmp_path, "a.json", '[{"t": 1}, {"t": 2},\n{"t": 3}, {"t": 4}]'))
    assert dataset.ids == ("a:1", "a:1.2", "a:2", "a:2.2")
    assert dataset.where(1) == f"{tmp_path / 'a.json'}:1"


def test_a_surrogate_pair_is_one_character(tmp_path: Path) -> None:
    """Only halves are refused: emoji escaped as a pair are fine."""
    assert load(put(tmp_path, "a.jsonl", r'{"t": "\ud83d\ude00"}'))[0] == {"t": "😀"}


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
    lines = put(folder, "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    text = json.dumps(rows, indent=indent, ensure_ascii=False)
    whole = put(folder, "b.json", text)
    assert list(load(lines)) == list(load(whole)) == rows
    assert load(lines).ids == tuple(f"a:{n}" for n in range(1, len(rows) + 1))
    if indent and all(rows):
        starts = [n for n, line in enumerate(text.split("\n"), 1) if line.startswith("  {")]
        assert [int(load(whole).where(i).rpartition(":")[2]) for i in range(len(rows))] == starts


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_a_file_is_not_held_as_text_besides_its_rows(ending: str, tmp_path: Path) -> None:
    """One letter of another alphabet would make that four times the file."""
    rows = [{"text": f"{n} " + "abcdefgh " * 1000 + ("\U0001f600" if n == 50 else "")} for n in range(100)]
    lines = [json.dumps(row, ensure_ascii=False) for row in rows] if ending == "jsonl" else ["text"]
    lines += [row["text"] for row in rows] if ending == "csv" else []
    file = tmp_path / f"rows.{ending}"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    del lines
    tracemalloc.start()
    try:
        found = load(file)
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert list(found) == rows
    assert peak < held + 1.5 * file.stat().st_size


@pytest.mark.timeout(30)
def test_a_header_of_many_columns_is_read_at_once(tmp_path: Path) -> None:
    """A table of counts by word, say."""
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"c{number}" for number in range(100_000)) + "\n" + ",".join("1" * 100_000) + "\n")
    assert len(load(path)[0]) == 100_000


def test_a_field_of_a_table_may_be_as_long_as_a_contract(tmp_path: Path) -> None:
    """The reader of Python stops at 131,072 characters; its limit, which is the whole process's, stays as it was."""
    before = csv.field_size_limit()
    file = tmp_path / "contracts.csv"
    file.write_text(f'contract,kind\n"{"clause, " * 30_000}",lease\nshort,loan\n', encoding="utf-8")
    assert [(len(row["contract"]), row["kind"]) for row in load(file)] == [(240_000, "lease"), (5, "loan")]
    file.write_text(f'contract,kind\n"{"clause, " * 30_000},lease\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"contracts\.csv:2: not CSV: unexpected end of data"):
        load(file)
    assert csv.field_size_limit() == before
