from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

Put: TypeAlias = Callable[[str, str | bytes], Path]
"""Makes a file of a name and a content."""


@pytest.fixture
def put(tmp_path: Path) -> Put:
    def made(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return made
