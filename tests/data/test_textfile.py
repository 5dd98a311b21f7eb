"""Text files: what is no text is named with its line, what it is, and the repair."""

from __future__ import annotations

import codecs

import pytest

from textgrad_engine.data.load import load
from textgrad_engine.data.textfile import read_text

from .conftest import Put, Refused

BROKEN = {
    "spreadsheet": ("a.csv", b"PK\x03\x04\x14\x00", r": this is a zip archive, as \.xlsx files are"),
    "compressed": ("a.jsonl", b"\x1f\x8b\x08\x00", ": this is compressed; unpack it first"),
    "parquet": ("a.jsonl", b"PAR1\x15\x04", r": this is a parquet table; export it as \.jsonl"),
    "web page": ("a.csv", "\n<!DOCTYPE html>\n<html>", ": this is a web page"),
    "pointer": (
        "a.csv",
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
        ": this is a pointer of Git LFS",
    ),
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
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_read_is_named_with_file_line_and_repair(case: str, check_refused: Refused) -> None:
    """No unreadable row reaches a paid call, and the message is enough to repair it."""
    check_refused(*BROKEN[case])


def test_columns_may_be_called_as_a_format_begins(put: Put) -> None:
    assert load(put("a.csv", "par1,par2\n1,2\n"))[0] == {"par1": "1", "par2": "2"}


def test_lines_end_by_newlines_whatever_ends_them(put: Put) -> None:
    """A prompt is the same text on every system, and so are the numbers of its lines."""
    assert read_text(put("a.txt", "\ufeffSort.\r\nBe brief.\rDone.\n")) == "Sort.\nBe brief.\nDone.\n"
