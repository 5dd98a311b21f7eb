"""Read a text file that somebody has written; what is no text is said with the line, what it is, and the repair."""

from __future__ import annotations

import codecs
import io
from pathlib import Path

from textgrad_engine.errors import DataError

_BOMS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_NO_TABLES = {
    b"pk\x03\x04": "a zip archive, as .xlsx files are; export the table as .csv, or unpack it",
    b"\x1f\x8b": "compressed; unpack it first",
    b"par1\x15": "a parquet table; export it as .jsonl",
    b"version https://git-lfs": "a pointer of Git LFS; `git lfs pull` gets the file itself",
    b"<!doctype html": "a web page; download the file itself, which may want a login",
    b"<html": "a web page; download the file itself, which may want a login",
}
"""What files that are no tables begin with, in small letters, and what they are, with the repair. Thrift's \\x15 behind
"PAR1" is in each such file, and in no header of columns."""
_LONGEST_MARK = 64


def read_text(path: Path) -> str:
    """The text of a UTF-8 file without its byte order mark, its lines ended by newlines, whatever ends them there.

    Raises:
        DataError: the file cannot be read, is empty, or is not UTF-8 text; the message names the line.
    """
    return read_bytes(path).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def read_bytes(path: Path) -> bytes:
    """The same as bytes, its lines as they are: rows are decoded one at a time, as a text may take four times as much.

    Raises:
        DataError: as `read_text` does.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read: {error.strerror}; check its permissions") from error
    for mark, name in _BOMS:
        if raw.startswith(mark):
            raise DataError(f"{path}:1: the file is {name}; save it as UTF-8")
    raw = raw.removeprefix(codecs.BOM_UTF8)
    begins = raw[:_LONGEST_MARK].lstrip().lower()
    for mark, what in _NO_TABLES.items():
        if begins.startswith(mark):
            raise DataError(f"{path}: this is {what}")
    if not raw.strip():
        raise DataError(f"{path}:1: the file is empty; write something into it")
    for number, line in enumerate(io.BytesIO(raw), 1):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as error:
            what = "is not UTF-8; save the file as UTF-8"
            if error.reason == "unexpected end of data":
                what = (
                    "begins a character of UTF-8, and the file ends amid it; complete the file, or, if it is of "
                    "another encoding, save it as UTF-8"
                )
            raise DataError(
                f"{path}:{number}: byte {error.start + 1} of the line is 0x{line[error.start]:02x}, which {what}"
            ) from error
    if (place := raw.find(b"\0")) >= 0:
        line_number = raw.count(b"\n", 0, place) + 1
        raise DataError(
            f"{path}:{line_number}: there is a NUL character; the file is binary or UTF-16, save it as UTF-8 text"
        )
    return raw
