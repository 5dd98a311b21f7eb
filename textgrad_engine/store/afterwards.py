"""What is added to a run folder after its run: evaluations, and shortened texts."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from textgrad_engine.llm.lines import append_line
from textgrad_engine.store.files import file_name, unwritable, write_atomically
from textgrad_engine.store.records import FORMAT, dumps, timestamp


def append_evaluation(folder: Path, entry: Mapping[str, Any]) -> None:
    """Add a line to the run's ``evals.jsonl``.

    Args:
        folder: the run folder.
        entry: that an evaluation was begun, on what, or what came of it, as plain JSON values.

    Raises:
        RunError: it cannot be written.
    """
    try:
        with (folder / "evals.jsonl").open("ab", buffering=0) as file:
            append_line(file.fileno(), dumps({**entry, "time": timestamp(time.time())}))
    except OSError as error:
        raise unwritable(error, folder) from error


def check_shrunk(folder: Path) -> None:
    """Check that shortened texts can be written beside the best ones of a run; what is there stays as it is.

    Args:
        folder: the run folder.

    Raises:
        RunError: they cannot be written.
    """
    new = not (folder / "shrunk").exists()
    try:
        (folder / "shrunk").mkdir(exist_ok=True)
        for place in (folder, folder / "shrunk"):
            with tempfile.TemporaryFile(dir=place):
                pass
        if new:
            (folder / "shrunk").rmdir()
    except OSError as error:
        # A file that was made only to see whether it can be tells nobody anything by its name.
        raise unwritable(OSError(error.errno, error.strerror), folder) from error


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
        (folder / "shrunk").mkdir(exist_ok=True)
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
