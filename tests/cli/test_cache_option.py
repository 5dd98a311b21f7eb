"""``train --cache``: what was paid for once is not paid for again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine.llm.simulated import TicketsModel
from textgrad_engine.testing import LoopbackServer


def test_a_second_run_asks_nothing_and_finds_the_same(
    cli: Any, small: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same job again, with the cache, sends no request; without it, it would send them all."""
    monkeypatch.setenv("TEXTGRAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    found, sent = [], []
    with LoopbackServer(TicketsModel(seed=0)) as server:
        options = ["--model", "sorter", "--base-url", server.base_url, "--cache", "--json"]
        for _ in range(2):
            done = cli("train", small(), *options)
            assert done.exit_code == 0, done.output
            found.append(json.loads(done.stdout))
            sent.append(server.requests)
    assert sent[0] == sent[1] > 0
    assert [found[0][key] for key in ("parameters", "val", "test")] == [
        found[1][key] for key in ("parameters", "val", "test")
    ]
