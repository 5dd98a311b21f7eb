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


def test_without_a_place_for_the_cache_nothing_is_begun(
    cli: Any, small: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong usage, exit code 2; the same command with another place can be given at once."""
    monkeypatch.chdir(tmp_path)
    options = ["--model", "sorter", "--base-url", "http://127.0.0.1:9/v1", "--cache", "--run-dir", "run"]
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TEXTGRAD_CACHE_DIR", str(tmp_path / "file" / "below"))
    done = cli("train", small(), *options)
    assert (done.exit_code, (tmp_path / "run").exists()) == (2, False)
    assert "the cache cannot use" in done.stderr
    monkeypatch.setenv("TEXTGRAD_CACHE_DIR", "~nobody-of-this-name/cache")
    done = cli("train", small(), *options)
    assert (done.exit_code, (tmp_path / "run").exists()) == (2, False)
    assert "the cache has no place: could not determine home directory; name another folder" in done.stderr
