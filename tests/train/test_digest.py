"""What tells examples from others with the same ids: the same in every process, and of every copy."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine import nn
from textgrad_engine.train import Objective

from .shouting import Shouting, rows


@pytest.mark.parametrize("made", [object, lambda: {"é", "b", "c"}, lambda: {(1, 2): "no text"}])
def test_the_digest_of_examples_is_that_of_their_content(made: Callable[[], Any]) -> None:
    """Of a set that makes its examples anew when they are read, too: where they are in memory is not asked."""
    program = Shouting().program
    held = []  # so that no two have one address

    def digest(*words: str) -> str:
        given = [{**row, "more": made()} for row in rows(*words)]
        held.append(given)
        return Objective(program, nn.ExactMatch(), given, given).digest

    assert digest("ant", "bee") == digest("ant", "bee")
    assert digest("ant", "bee") != digest("ant", "cat")


def test_the_digest_of_examples_is_the_same_in_every_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A search that was saved goes on in another one; a set has another order there."""
    code = (
        "from textgrad_engine import nn; from textgrad_engine.testing import ScriptedModel\n"
        "from textgrad_engine.train import Objective\n"
        "program = nn.ChatCompletion('{q}', system=nn.Parameter('x', role='x'), model=ScriptedModel([]))\n"
        "rows = [{'q': 'a', 'target': 'b', 'tags': set('abcdefgh')}]\n"
        "print(Objective(program, nn.ExactMatch(), rows, rows).digest)"
    )
    monkeypatch.setenv("PYTHONHASHSEED", "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    exec(code)
    assert capsys.readouterr().out == done.stdout != ""
