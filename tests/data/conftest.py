from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from textgrad_engine.data.load import load
from textgrad_engine.errors import DataError

Put: TypeAlias = Callable[[str, str | bytes], Path]
"""Makes a file of a name and a content."""

Refused: TypeAlias = Callable[[str, str | bytes, str], None]
"""Checks that such a file is refused as examples, by a message that begins with its path and has the given pattern."""


@pytest.fixture
def put(tmp_path: Path) -> Put:
    def made(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return made


@pytest.fixture
def check_refused(put: Put) -> Refused:
    def check(name: str, content: str | bytes, message: str) -> None:
        path = put(name, content)
        with pytest.raises(DataError, match=message) as caught:
            load(path)
        assert str(caught.value).startswith(str(path))

    return check
