"""When a disk fills, the answers that are under way are paid for, and are kept."""

from __future__ import annotations

import errno
import gc
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from textgrad_engine import llm, nn
from textgrad_engine.errors import RunError
from textgrad_engine.llm import disk_reserve
from textgrad_engine.llm.disk_reserve import Room
from textgrad_engine.llm.lines import append_line
from textgrad_engine.testing import FunctionModel, ScriptedModel

from ..disks import SmallDisk

WORDS = [f"word {number}" for number in range(40)]


@pytest.fixture
def lines(tmp_path: Path) -> Callable[[Room, bytes], None]:
    """Writes a line of a file through a room."""
    fd = os.open(tmp_path / "lines", os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0))
    return lambda room, line: room.write(lambda: append_line(fd, line))


def test_a_line_that_finds_the_disk_full_is_written_and_told_of(tmp_path: Path, disk: type[SmallDisk], lines) -> None:
    """So that what writes it ends; what comes behind finds room, until there is none."""
    disk(1000 + 20)
    kept = Room(tmp_path, 1000)
    lines(kept, b"a" * 15)
    with pytest.raises(OSError, match="No space left"):
        lines(kept, b"b" * 400)
    lines(kept, b"c" * 400)
    assert [line[:1] for line in (tmp_path / "lines").read_bytes().splitlines()] == [b"a", b"b", b"c"]
    with pytest.raises(OSError, match="No space left"):
        lines(kept, b"d" * 400)
    assert (tmp_path / "lines").read_bytes().count(b"\n") == 3


def test_each_of_several_that_find_it_full_at_once_is_written(tmp_path: Path, disk: type[SmallDisk], lines) -> None:
    """The room was given back for another one, between its own first try and its second."""
    disk(1000)
    kept = Room(tmp_path, 1000)
    inner: list[bytes] = []

    def first() -> None:
        if not inner:
            inner.append(b"while the other one fails")
            with pytest.raises(OSError, match="No space left"):
                lines(kept, inner[0])
            raise OSError(errno.ENOSPC, "No space left on device")
        lines(kept, b"the other one")

    with pytest.raises(OSError, match="No space left"):
        kept.write(first)
    assert (tmp_path / "lines").read_bytes() == b"while the other one fails\nthe other one\n"


def test_another_error_gives_no_room_back(tmp_path: Path, disk: type[SmallDisk], lines) -> None:
    """A folder that is gone needs none."""
    made = disk(1000)
    kept = Room(tmp_path, 1000)

    def gone() -> None:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    with pytest.raises(FileNotFoundError):
        kept.write(gone)
    assert made.promised == 1000


@pytest.mark.parametrize("promises", [True, False])
def test_where_no_room_can_be_had_a_full_disk_is_told_of_as_ever(
    tmp_path: Path, disk: type[SmallDisk], lines, promises: bool
) -> None:
    """It is too full already, or promises nothing; nothing is held then."""
    made = disk(999, promises=promises)
    kept = Room(tmp_path, 1000)
    assert made.promised == 0
    with pytest.raises(OSError, match="No space left"):
        lines(kept, b"a" * 999)
    assert not (tmp_path / "lines").read_bytes()
    assert Room(tmp_path / "none").write(lambda: None) is None


def test_a_system_that_cannot_promise_is_written_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS and Windows have no `posix_fallocate`."""
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    sizes: list[int] = []
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, content: sizes.append(len(content)) or write(fd, content))
    Room(tmp_path, (1 << 20) + 5)
    assert sizes == [1 << 20, 5]


def test_it_leaves_no_file_behind(tmp_path: Path, disk: type[SmallDisk]) -> None:
    """Whatever ends the process; and it ends with what it is for."""
    made = disk(1000)
    kept = Room(tmp_path, 1000)
    assert made.promised == 1000
    if os.name == "posix":
        assert not list(tmp_path.iterdir())
    del kept
    gc.collect()
    assert made.promised == 0


def test_a_cassette_keeps_what_was_under_way_when_the_disk_filled(tmp_path: Path, disk: type[SmallDisk]) -> None:
    """Who reads an answer that found it full is told; all that the model gave is on record, and not asked for again."""
    made = disk(disk_reserve.SIZE + 4000)
    answered: list[str] = []
    model = FunctionModel(lambda request: answered.append(request.messages[-1].text) or "yes")
    program = nn.ChatCompletion("{word}")
    told: list[str] = []
    with llm.use_models(forward=model), llm.record(tmp_path / "answers.jsonl") as recording:
        assert made.promised == disk_reserve.SIZE
        for asked in [program(word=word) for word in WORDS]:
            try:
                assert asked.data == "yes"
            except RunError as error:
                told.append(str(error))
        assert recording.answers == len(WORDS)
    assert made.promised == 0
    (said,) = told
    assert "cassette cannot be written: no space left on device" in said
    made.free = 1 << 24
    with llm.use_models(forward=model), llm.record(tmp_path / "answers.jsonl", resume=True):
        assert [program(word=word).data for word in WORDS] == ["yes"] * len(WORDS)
    assert sorted(answered) == sorted(WORDS)


def test_what_is_kept_of_a_single_answer_that_found_the_disk_full_counts(tmp_path: Path, disk: type[SmallDisk]) -> None:
    """An evaluation of which nothing is on record is removed."""
    disk(disk_reserve.SIZE + 200)
    with (
        llm.use_models(forward=ScriptedModel(["yes"])),
        llm.record(tmp_path / "answers.jsonl") as recording,
        pytest.raises(RunError, match="no space left"),
    ):
        assert nn.ChatCompletion("{word}")(word="one").data
    assert recording.answers == 1
