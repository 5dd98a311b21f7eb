"""What is added to a run folder after its run: evaluations, shortened texts, and the calls of both until they end."""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from textgrad_engine.errors import RunError
from textgrad_engine.llm.ids import digest
from textgrad_engine.llm.lines import append_line
from textgrad_engine.llm.record import record
from textgrad_engine.llm.recording import Recording, is_recorded
from textgrad_engine.llm.replace_file import remove
from textgrad_engine.store.files import file_name, inner_folder, unwritable, write_atomically
from textgrad_engine.store.lines import open_lines
from textgrad_engine.store.records import FORMAT, dumps, timestamp
from textgrad_engine.untrusted_files import check_unlinked


def append_evaluation(folder: Path, entry: Mapping[str, Any]) -> None:
    """Add a line to the run's ``evals.jsonl``.

    Args:
        folder: the run folder.
        entry: that an evaluation was begun, on what, or what came of it, as plain JSON values.

    Raises:
        RunError: it cannot be written.
    """
    try:
        fd = open_lines(folder / "evals.jsonl")
        try:
            append_line(fd, dumps({**entry, "time": timestamp(time.time())}))
        finally:
            os.close(fd)
    except OSError as error:
        raise unwritable(error, folder) from error


def check_writable(folder: Path) -> None:
    """Check that files can be made in a run folder, which may be a checkout that is only read.

    Args:
        folder: the run folder.

    Raises:
        RunError: none can be made.
    """
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        # A file that was made only to see whether it can be tells nobody anything by its name.
        raise unwritable(OSError(error.errno, error.strerror), folder) from error


def check_shrunk(folder: Path) -> None:
    """Check that shortened texts can be written beside the best ones of a run; what is there stays as it is.

    Args:
        folder: the run folder.

    Raises:
        RunError: they cannot be written.
    """
    new = not (folder / "shrunk").exists()
    try:
        inner_folder(folder, "shrunk")
    except OSError as error:
        raise unwritable(error, folder) from error
    check_writable(folder)
    check_writable(folder / "shrunk")
    if new:
        (folder / "shrunk").rmdir()


def write_shrunk(folder: Path, texts: Mapping[str, str], about: Mapping[str, Any]) -> Path:
    """Write shortened texts beside the best ones of a run: ``shrunk/`` and ``shrink.json``, those of before replaced.

    Args:
        folder: the run folder.
        texts: by dotted name; of a single one there is a ``shrunk_prompt.txt``, too.
        about: what came of shrinking, as plain JSON values.

    Returns:
        Where the texts are: the file of a single one, else the folder.

    Raises:
        RunError: it cannot be written.
    """
    try:
        inner_folder(folder, "shrunk")
        for name, text in texts.items():
            content = text.encode("utf-8", "backslashreplace")
            write_atomically(folder / "shrunk" / f"{file_name(name, texts)}.txt", content)
            if len(texts) == 1:
                write_atomically(folder / "shrunk_prompt.txt", content)
        body = {"format": FORMAT, **about, "time": timestamp(time.time())}
        write_atomically(folder / "shrink.json", dumps(body, indent=1) + b"\n")
    except OSError as error:
        raise unwritable(error, folder) from error
    return folder / "shrunk_prompt.txt" if len(texts) == 1 else folder / "shrunk"


UNFINISHED = "unfinished"
"""The folder of calls that something was paid for which has not come to its end."""


@contextlib.contextmanager
def kept_calls(folder: Path, what: str, about: Mapping[str, Any], *, missing: bool = False) -> Iterator[Recording]:
    """Inside the block, calls are kept in a run folder, and those that were kept of the same before are played back.

    So what was killed, stopped or out of budget, begun again, pays for what is missing alone. Two that do the same at
    the same time keep calls of their own.

    Args:
        folder: the run folder.
        what: is done, such as ``"eval"``.
        about: on what, as plain JSON values.
        missing: go on with what came to its end and lacks answers (`keep_for_missing`), not with what did not come to
            its end.

    Yields:
        What is kept; `done_with` removes it.

    Raises:
        RunError: it cannot be written, or what was kept is damaged; or nothing of the same lacks answers.
    """
    name = f"{what}-{digest(about)[:16]}"
    if missing:
        file = folder / UNFINISHED / f"{_LACKING}{name}.jsonl"
        if not file.exists():
            raise RunError(
                f"{folder}: no finished {what} of the same prompt, examples and models lacks answers; leave out "
                "--missing to ask for all"
            )
    else:
        kept = [file for file in sorted((folder / UNFINISHED).glob(f"{name}-*.jsonl")) if not is_recorded(file)]
        free = (folder / UNFINISHED / f"{name}-{number}.jsonl" for number in itertools.count(1))
        file = kept[0] if kept else next(file for file in free if not file.exists())
    try:
        for place in (file.parent, file):
            check_unlinked(place)
    except OSError as error:
        raise unwritable(error, folder) from None
    with record(file, resume=True) as recording:
        try:
            yield recording
        finally:
            if not recording.answers:
                done_with(recording)


def done_with(recording: Recording) -> None:
    """Remove calls that were kept (`kept_calls`): what they were paid for has come to its end, and is written.

    Raises:
        RunError: they cannot be removed.
    """
    try:
        recording.discard()
        remove(_lacking_of(recording))  # of an earlier one of the same
    except OSError as error:
        raise unwritable(error, recording.path.parent) from error
    with contextlib.suppress(OSError):  # others are kept there
        recording.path.parent.rmdir()


def keep_for_missing(recording: Recording) -> None:
    """Keep the calls of what came to its end without some answers, for who asks for these alone (`kept_calls`).

    Raises:
        RunError: they cannot be moved.
    """
    try:
        recording.move_to(_lacking_of(recording))
    except OSError as error:
        raise unwritable(error, recording.path.parent) from error


_LACKING = "missing-"


def _lacking_of(recording: Recording) -> Path:
    """Where the calls of what lacks answers are kept; there is one file of the same, whatever was begun beside it."""
    name = recording.path.stem
    if not name.startswith(_LACKING):
        name = _LACKING + name.rpartition("-")[0]
    return recording.path.with_name(f"{name}.jsonl")
