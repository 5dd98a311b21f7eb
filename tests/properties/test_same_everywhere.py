"""Property tests try the same examples, whichever tests were run before in the same process."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def tried() -> list[tuple[int, str]]:
    """What a property with many examples is tried on."""
    found: list[tuple[int, str]] = []

    @settings(max_examples=300)
    @given(st.integers(), st.text())
    def law(number: int, text: str) -> None:
        found.append((number, text))

    law()
    return found


def test_a_module_that_is_loaded_meanwhile_changes_no_example(tmp_path: Path) -> None:
    """Benchmarks and examples are loaded by some tests, and which of these share a process is chance."""
    before = tried()
    path = tmp_path / "constants.py"
    path.write_text("FOUND = [" + ", ".join(f"{7**n}, 'w{n}'" for n in range(3, 20)) + "]", encoding="utf-8")
    spec = importlib.util.spec_from_file_location("constants", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "constants", module)
        assert tried() == before
