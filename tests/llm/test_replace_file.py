"""Files that take another one's place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from textgrad_engine.llm import replace_file


def held(number: int) -> PermissionError:
    """What Windows says of a file that somebody has open."""
    error = PermissionError(13, "The file is being used by another process")
    error.winerror = number  # type: ignore[attr-defined]
    return error


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that were waited, without waiting."""
    found: list[float] = []
    monkeypatch.setattr(replace_file.time, "sleep", found.append)
    return found


def refusing(monkeypatch: pytest.MonkeyPatch, *errors: OSError) -> None:
    """Refuse so many moves before one is made."""
    left, really = list(errors), os.replace

    def replace(file: object, place: object) -> None:
        if left:
            raise left.pop(0)
        really(file, place)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "replace", replace)


@pytest.mark.parametrize("number", [5, 32, 33])
def test_a_file_that_is_open_for_a_moment_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: list[float], number: int
) -> None:
    """On Windows a virus scanner looks into every new file; that must not cost a run its result."""
    (tmp_path / "new").write_text("new", encoding="utf-8")
    (tmp_path / "old").write_text("old", encoding="utf-8")
    refusing(monkeypatch, held(number), held(number))
    replace_file.move(tmp_path / "new", tmp_path / "old")
    assert (tmp_path / "old").read_text(encoding="utf-8") == "new"
    assert len(waits) == 2


def test_what_is_removed_is_waited_for_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: list[float]) -> None:
    """A file that is there no longer needs no removing."""
    (tmp_path / "old").touch()
    left, really = [held(32)], os.unlink

    def unlink(path: object) -> None:
        if left:
            raise left.pop()
        really(path)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "unlink", unlink)
    replace_file.remove(tmp_path / "old")
    replace_file.remove(tmp_path / "old")
    assert not (tmp_path / "old").exists()
    assert len(waits) == 1


def test_it_is_not_waited_for_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: list[float]) -> None:
    """Whoever keeps the file open is named by the system's own words."""
    refusing(monkeypatch, *[held(32)] * 1000)
    with pytest.raises(PermissionError, match="used by another process"):
        replace_file.move(tmp_path / "new", tmp_path / "old")
    assert 2.0 <= sum(waits) <= 2.5


def test_any_other_refusal_is_final(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: list[float]) -> None:
    """Nobody gets a right to write by waiting."""
    refusing(monkeypatch, PermissionError(13, "Permission denied"))
    with pytest.raises(PermissionError):
        replace_file.move(tmp_path / "new", tmp_path / "old")
    assert waits == []
