"""A run folder that somebody else sent: whatever its files really are, nothing waits, and nothing elsewhere changes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine import llm, store
from textgrad_engine.errors import RunError
from textgrad_engine.store.afterwards import append_evaluation, check_shrunk, kept_calls, write_shrunk
from textgrad_engine.store.files import inner_folder, write_atomically
from textgrad_engine.store.lock import Lock, is_locked

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes, and links that anybody may make")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A file of the user's, to which somebody's links lead."""
    file = tmp_path / "precious.txt"
    file.write_text("as it was", encoding="utf-8")
    return file


@pytest.mark.parametrize("name", ["result.json", "config.json", "completions.jsonl"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_pipe_or_a_device_in_the_place_of_a_file_is_not_read(written: tuple[Path, Any], name: str, kind: str) -> None:
    """Reading it would wait for ever, or fill the memory."""
    path = written[0]
    (path / name).unlink()
    if kind == "pipe":
        os.mkfifo(path / name)
    else:
        (path / name).symlink_to("/dev/zero")
    with pytest.raises(RunError, match=rf"{name}: cannot be read: it is a pipe or a device, and a file is wanted"):
        list(store.read_run(path).completions())


def test_a_cassette_that_is_a_pipe_is_neither_played_nor_gone_on_with(tmp_path: Path) -> None:
    """Nobody writes into it, so each would wait for ever."""
    os.mkfifo(tmp_path / "answers.jsonl")
    with pytest.raises(RunError, match="it is a pipe or a device"), llm.replay(tmp_path / "answers.jsonl"):
        pass
    with (
        pytest.raises(RunError, match="it is a pipe or a device"),
        llm.record(tmp_path / "answers.jsonl", resume=True),
    ):
        pass


def test_a_lock_that_is_a_pipe_holds_nobody_up(tmp_path: Path) -> None:
    """Who only looks at a run opens it."""
    os.mkfifo(tmp_path / ".lock")
    assert not is_locked(tmp_path)


def test_a_lock_that_is_a_link_empties_no_file_elsewhere(tmp_path: Path, elsewhere: Path) -> None:
    """The lock's file holds the number of its process, and nothing else."""
    (tmp_path / ".lock").symlink_to(elsewhere)
    with pytest.raises(OSError, match="symbolic links"):
        Lock(tmp_path)
    assert elsewhere.read_text(encoding="utf-8") == "as it was"


@pytest.mark.parametrize("there", [True, False])
def test_evaluations_are_added_to_no_file_elsewhere(tmp_path: Path, elsewhere: Path, there: bool) -> None:
    """A link is refused by name, wherever it leads."""
    place = elsewhere if there else elsewhere.with_name("new.txt")
    run = tmp_path / "run"
    run.mkdir()
    (run / "evals.jsonl").symlink_to(place)
    with pytest.raises(RunError, match=r"evals.jsonl: the run folder cannot be written: it is a link"):
        append_evaluation(run, {})
    assert elsewhere.read_text(encoding="utf-8") == "as it was"
    assert place.exists() == there


@pytest.mark.parametrize("inside", [True, False])
def test_calls_are_kept_in_no_folder_or_file_elsewhere(tmp_path: Path, elsewhere: Path, inside: bool) -> None:
    """What an evaluation asks stands in a file whose name can be worked out beforehand."""
    run, other = tmp_path / "run", tmp_path / "other"
    run.mkdir()
    with kept_calls(run, "eval", {}) as recording:
        name = recording.path.name
    if inside:
        (run / "unfinished").mkdir()
        (run / "unfinished" / name).symlink_to(elsewhere.with_name("new.txt"))
    else:
        other.mkdir()
        (run / "unfinished").symlink_to(other)
    with pytest.raises(RunError, match="it is a link, which leads elsewhere"), kept_calls(run, "eval", {}):
        pass
    assert not elsewhere.with_name("new.txt").exists()
    assert inside or list(other.iterdir()) == []


def test_texts_are_written_into_no_folder_elsewhere(tmp_path: Path) -> None:
    """A short text is refused before anything was paid for it, and so is any folder of texts that is a link."""
    run, other = tmp_path / "run", tmp_path / "other"
    run.mkdir()
    other.mkdir()
    for name in ("shrunk", "best"):
        (run / name).symlink_to(other)
    with pytest.raises(RunError, match="shrunk: the run folder cannot be written: it is a link"):
        check_shrunk(run)
    with pytest.raises(RunError, match="it is a link"):
        write_shrunk(run, {"system": "Be brief."}, {})
    with pytest.raises(OSError, match="symbolic links"):
        inner_folder(run, "best")
    assert list(other.iterdir()) == []


def test_a_draft_goes_to_no_file_elsewhere(tmp_path: Path, elsewhere: Path) -> None:
    """Its name can be guessed, as it has the number of the process."""
    draft = tmp_path / f".best_prompt.txt.{os.getpid()}.tmp"
    draft.symlink_to(elsewhere)
    write_atomically(tmp_path / "best_prompt.txt", b"Be brief.")
    assert elsewhere.read_text(encoding="utf-8") == "as it was"
    assert (tmp_path / "best_prompt.txt").read_text(encoding="utf-8") == "Be brief."
    assert not (tmp_path / "best_prompt.txt").is_symlink()
