"""Paths as users write them."""

from __future__ import annotations

import os
from pathlib import Path


def expanded(path: str | os.PathLike[str]) -> Path:
    """A path, with the home that a ``~`` at its beginning stands for; as it is where nobody has one of that name.

    `Path.expanduser` fails on the latter, and ``~notes.csv`` is a file like any other. Windows does not know who its
    users are, and takes any name for one whose home is beside the own one; so that home must be there.

    Example:
        >>> expanded("runs/a").as_posix(), expanded("~no such user.csv").name
        ('runs/a', '~no such user.csv')
    """
    given = Path(path)
    named = given.parts[0] if given.parts else ""
    if named.startswith("~") and named != "~" and not os.path.isdir(os.path.expanduser(named)):
        return given
    return Path(os.path.expanduser(path))
