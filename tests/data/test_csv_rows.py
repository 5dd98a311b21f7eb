"""Rows of tables: each that cannot be used is named with its line and the repair."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from textgrad_engine.data.load import load
from textgrad_engine.errors import DataError

from .conftest import Put, Refused

BROKEN = {
    "csv wide row": ("a.csv", "a,b\n1,2\n\n1,2,3\n", ":4: the row has 3 fields, the header has 2; put fields"),
    "csv narrow row": ("a.csv", "a,b\n1\n", ":2: the row has 1 field, the header has 2; write a comma for each"),
    "csv wide row after a long one": ("a.csv", 'a,b\n"x\ny",2\n1,2,3\n', ":4: the row has 3 fields"),
    "csv open quote": ("a.csv", 'a,b\n1,2\n"x,2\n', ":3: not CSV"),
    "csv quote inside": ("a.csv", 'a,b\n"x"y,2\n', ":2: not CSV"),
    "csv column twice": ("a.csv", "\na,b, a\n1,2,3\n", ":2: the header names 'a' twice, as columns 1 and 3"),
    "csv header once more": ("a.csv", "a,b\n1,2\n\ufeffa, b\n3,4\n", ":3: the header stands here once more, .*; take"),
    "csv header once more, shorter": ("a.csv", "a,b,\n1,2,\na,b\n", ":3: the header stands here once more, .*; take"),
    "csv columns of white space": ("a.csv", " , \nx,y\n", ":1: column 1 of the header has no name"),
    "csv column without a name": ("a.csv", "a,,c\n1,2,3\n", ":1: column 2 of the header has no name"),
    "csv with semicolons, narrow row": ("a.csv", "a;b\n1,5\n", ":2: .* write a semicolon for each that"),
    "csv with bars, narrow row": ("a.csv", "a|b\n1,5\n", ":2: .* write a bar for each that"),
    "csv behind its separator": ("a.csv", "sep=;\na;b\n1;2\n1;2;3\n", ":4: the row has 3 fields"),
    "tabs, narrow row": ("a.tsv", "a\tb\n1,5\n", ":2: .* write a tab for each that"),
    "csv field below no name": (
        "a.csv",
        "a;b;;\n1;2;;\n1;2;;x\n",
        ":3: column 4 has 'x' .* no name in the header; name",
    ),
    "csv wide row beside empty columns": ("a.csv", "a,b,\n1,2,,\n", ":2: the row has 4 fields, the header has 3"),
    "csv narrow row beside empty columns": ("a.csv", "a,b,,\n1\n", ":2: the row has 1 field, the header has 2"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_read_is_named_with_file_line_and_repair(case: str, check_refused: Refused) -> None:
    """No unreadable row reaches a paid call, and the message is enough to repair it."""
    check_refused(*BROKEN[case])


def test_csv_values_are_strings_and_lines_are_those_where_rows_begin(put: Put) -> None:
    """Quoted line breaks, blank lines and spreadsheet leftovers do not shift the line numbers."""
    path = put("a.csv", '\ufeffid, t\r\n7,"one\r\ntwo"\r\n\r\n8,"say ""hi"", now"\r\n,\r\n')
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
def test_columns_may_stand_between_what_spreadsheets_write(content: str, line: int, put: Put) -> None:
    """In countries with decimal commas a spreadsheet has no other way to save a table as .csv."""
    dataset = load(put("a.csv", content))
    assert (dataset[0], dataset.ids[0]) == ({"a": "1;5", "b": "x"}, f"a:{line}")


def test_a_name_in_quotes_separates_nothing(put: Put) -> None:
    """It may hold commas, and a table of one column has no separator."""
    assert list(load(put("a.csv", '"x, y";b\n1,2;3\n'))) == [{"x, y": "1,2", "b": "3"}]
    assert list(load(put("b.csv", '"x; y"\n"1;2"\n'))) == [{"x; y": "1;2"}]
    assert list(load(put("c.csv", '"x\ny, z";b\n1,2;3\n'))) == [{"x\ny, z": "1,2", "b": "3"}]


@pytest.mark.parametrize(
    ("content", "row"),
    [
        ("Betrag (EUR, netto);Text\n1,50;gut, ja\n", {"Betrag (EUR, netto)": "1,50", "Text": "gut, ja"}),
        ("Name, Vorname;Text|Art\n\n;\nRoth, Eva;x\n", {"Name, Vorname": "Roth, Eva", "Text|Art": "x"}),
        ("a, or b\tc; d\n1\t3\n", {"a, or b": "1", "c; d": "3"}),
        ('a;b,c\n"x\n;y",2\n', {"a;b": "x\n;y", "c": "2"}),
        ("a;b,c\n1;2,3\n", {"a;b": "1;2", "c": "3"}),
    ],
)
def test_a_name_that_holds_another_separator_is_told_by_the_row_below_it(
    content: str, row: dict[str, str], put: Put
) -> None:
    """A spreadsheet that puts semicolons between columns writes a comma in a name without quotes."""
    assert list(load(put("a.csv", content))) == [row]


@pytest.mark.parametrize("row", ["1;2;;", "1;2;", "1;2"])
def test_empty_columns_behind_the_last_one_are_none(row: str, put: Put) -> None:
    """A spreadsheet writes them where somebody has deleted what was there, in all rows or in the first ones alone."""
    assert list(load(put("a.csv", f"\ufeffa;b;;\r\nx;y;;\r\n{row}\r\n;;;\r\n"))) == [
        {"a": "x", "b": "y"},
        {"a": "1", "b": "2"},
    ]


def test_marks_without_a_width_are_no_part_of_a_name(put: Put) -> None:
    """A second byte order mark, and what a web page had around a heading; nobody would find such a column."""
    path = put("a.csv", "\ufeff\ufeff a \u200b;\u200b b\ufeff\n1;\ufeff2\n")
    assert list(load(path)) == [{"a": "1", "b": "\ufeff2"}]


def test_a_row_of_one_column_may_be_called_as_that(put: Put) -> None:
    """In a list of words, say."""
    assert list(load(put("a.csv", "word\nsay\nword\n"))) == [{"word": "say"}, {"word": "word"}]


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
