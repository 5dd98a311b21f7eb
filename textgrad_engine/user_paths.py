"""Paths as users write them."""

from __future__ import annotations

import os
from pathlib import Path


def expanded(path: str | os.PathLike[str]) -> Path:
    """A path, with the home that a ``~`` at its beginning stands for; as it is where nobody has one of that name.

    `Path.expanduser` fails on the latter, and ``~notes.csv`` is a file like any other.

    Example:
        >>> expanded("runs/a").as_posix(), expanded("~no such user.csv").name
        ('runs/a', '~no such user.csv')
    """
    return Path(os.path.expanduser(path))
