"""Reading dataset files: whatever cannot be read is named with its line and the repair."""

from __future__ import annotations

import errno
import json
import os
import tracemalloc
import unicodedata
from pathlib import Path

import pytest

from textgrad_engine.data.load import load
from textgrad_engine.data.names import listed
from textgrad_engine.errors import DataError

from .conftest import Put, Refused

BROKEN = {
    "json has no rows": ("a.json", " [ ] \n", "has no rows"),
    "csv header only": ("a.csv", "a,b\n", "has no rows"),
    "unknown ending": (
        "a.parquet",
        "x",
        r"'.parquet' is not known; .*read_parquet\('a.parquet'\).to_json\('a.jsonl', .* makes",
    ),
    "a text of tabs": (
        "a.txt",
        "a\tb\n1\t2\n",
        "'.txt' is not known; .* where tabs stand between its columns, name it .tsv",
    ),
    "an older workbook": ("a.xls", "x", "'.xls' is not known; .* export it as .csv"),
    "a workbook of another program": ("a.ods", "x", "'.ods' is not known; .* export it as .csv"),
    "no ending": ("data", "{}", "has no ending"),
    "id is a list": ("a.jsonl", '{"id": 1}\n{"id": [2]}', ":2: an id is a string or a whole number, got list"),
    "id is a bool": ("a.jsonl", '{"id": true}', ":1: an id is .* got bool"),
    "id twice": ("a.jsonl", '{"id": 1}\n\n{"id": "1"}', r":3: the id '1' was already given at .*a\.jsonl:1"),
    "id as a made-up one": ("a.jsonl", '{"id": "a:2"}\n{"b": 1}', r":2: the id 'a:2' was already given at .*:1"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_read_is_named_with_file_line_and_repair(case: str, check_refused: Refused) -> None:
    """No unreadable row reaches a paid call, and the message is enough to repair it."""
    check_refused(*BROKEN[case])


def test_tables_under_other_endings(put: Put) -> None:
    """Tabs alone separate the columns of a TSV, whatever its header has."""
    assert list(load(put("a.ndjson", '{"a": 1}\n{"a": 2}\n'))) == [{"a": 1}, {"a": 2}]
    assert list(load(put("a.tsv", "a, or b;\tc\n1, 2\t3\n"))) == [{"a, or b;": "1, 2", "c": "3"}]


def test_an_address_is_no_file() -> None:
    with pytest.raises(DataError, match=r"https://a/b\.csv: this is an address; download"):
        load("https://a/b.csv")


def test_a_missing_file_suggests_a_near_name(put: Put, tmp_path: Path) -> None:
    """A typing error in a file name is answered with the right one."""
    put("train.jsonl", "{}")
    with pytest.raises(DataError, match=r"no such file; did you mean 'train.jsonl'"):
        load(tmp_path / "trian.jsonl")
    with pytest.raises(DataError, match=r"no such file; the folder has train.jsonl"):
        load(tmp_path / "zzz.csv")


@pytest.mark.parametrize(("number", "of_windows"), [(errno.EINVAL, 123), (errno.EBADF, 6)])
def test_a_name_that_no_file_of_windows_can_have_is_that_of_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, of_windows: int
) -> None:
    """Such as of a path with a tab, which was a backslash before a t, or of a console; the system has its own words."""
    real = Path.stat

    def stat(path: Path, **how: bool) -> os.stat_result:
        if "\t" in path.name:
            error = OSError(number, "The filename or directory name syntax is incorrect", str(path))
            error.winerror = of_windows  # type: ignore[attr-defined]
            raise error
        return real(path, **how)

    monkeypatch.setattr(Path, "stat", stat)
    with pytest.raises(DataError, match=r"there is no such file; check the path"):
        load(tmp_path / "data\train.jsonl")


def test_a_name_that_looks_the_same_is_told_apart(put: Put, tmp_path: Path) -> None:
    """Archives from a Mac hold names in which a letter with a sign is two characters."""
    put(unicodedata.normalize("NFD", "Gr\u00f6\u00dfen.csv"), "a,b\n1,2\n")
    if (tmp_path / "Gr\u00f6\u00dfen.csv").exists():
        pytest.skip("this file system takes both for one")
    with pytest.raises(
        DataError, match=r"no such file, but one whose name looks the same, .*: rename it, or copy its name"
    ):
        load(tmp_path / "Gr\u00f6\u00dfen.csv")


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


def test_a_missing_folder_and_a_folder_are_told_apart(put: Put, tmp_path: Path) -> None:
    """The message says which part of a path is wrong."""
    put("train.jsonl", "{}")
    with pytest.raises(DataError, match="there is no folder"):
        load(tmp_path / "nowhere" / "train.jsonl")
    with pytest.raises(DataError, match=r"this is a folder; name a file in it: train\.jsonl"):
        load(tmp_path)


def test_names_of_columns_that_are_an_example_make_no_long_message() -> None:
    """Of a table without a header the first row is what others have for names."""
    assert listed(["Dear all,\n\nthe parcel " + "x" * 200, "billing"]) == f"Dear all, the parcel {'x' * 38}…, billing"


def test_rows_on_one_line_have_ids_of_their_own(put: Put, tmp_path: Path) -> None:
    """A JSON file without line breaks can be read, too."""
    dataset = load(put("a.json", '[{"t": 1}, {"t": 2},\n{"t": 3}, {"t": 4}]'))
    assert dataset.ids == ("a:1", "a:1.2", "a:2", "a:2.2")
    assert dataset.where(1) == f"{tmp_path / 'a.json'}:1"


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
