"""Files that take another one's place, or are removed, also on Windows."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

_HELD = (5, 32, 33)
"""What Windows says of a file that somebody has open: access denied, a sharing violation, a lock violation."""

_FIRST_WAIT, _PATIENCE = 0.01, 2.0


def move(file: str | os.PathLike[str], place: str | os.PathLike[str]) -> None:
    """`os.replace`, tried again for two seconds while Windows refuses it because somebody has one of the files open.

    A scanner for viruses, an indexer, or who reads the file just then, has it open for a moment. Elsewhere nobody is
    in the way of it, and a refusal is final.

    Args:
        file: what is moved.
        place: its new place; a file that is there is replaced.

    Raises:
        OSError: it is not possible.
    """
    _patiently(lambda: os.replace(file, place))


def remove(file: Path) -> None:
    """`Path.unlink` with the same patience; where there is no such file, nothing happens.

    Raises:
        OSError: it is not possible.
    """
    _patiently(lambda: file.unlink(missing_ok=True))


def _patiently(action: Callable[[], object]) -> None:
    wait, waited = _FIRST_WAIT, 0.0
    while True:
        try:
            action()
            return
        except PermissionError as error:
            if getattr(error, "winerror", None) not in _HELD or waited >= _PATIENCE:
                raise
        time.sleep(wait)
        waited += wait
        wait = min(2 * wait, 0.2)
