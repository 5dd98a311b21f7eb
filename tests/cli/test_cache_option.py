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


@pytest.mark.parametrize(
    ("command", "without"),
    [
        ("train CONFIG --cache", "with --no-cache nothing is kept on disk"),
        ("eval CONFIG --cache", "without --cache nothing is kept on disk"),
        ("compare CONFIG --prompt mine.txt", "with --no-cache nothing is kept on disk"),
        ("shrink RUN --cache", "without --cache nothing is kept on disk"),
        ("resume RUN --cache", "with --no-cache nothing is kept on disk"),
    ],
)
def test_who_has_no_place_for_a_cache_is_told_how_to_do_without(
    cli: Any,
    small: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    without: str,
) -> None:
    """A container without a home, or a disk that is mounted to be read: followed literally, the line ends that."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    (tmp_path / "mine.txt").write_text("Sort the ticket into a queue.")
    folder = small()
    unfinished = ("--budget-calls", "40") if command.startswith("resume") else ()
    if "RUN" in command:
        assert cli("train", folder, "--run-dir", "run", "--quiet", *unfinished).exit_code in (0, 3)
    monkeypatch.setenv("TEXTGRAD_CACHE_DIR", str(tmp_path / "file" / "below"))
    words = ["run" if word == "RUN" else folder if word == "CONFIG" else word for word in command.split()]
    done = cli(*words)
    assert done.exit_code == 2
    assert "the cache cannot use" in done.stderr
    assert "name another folder" in done.stderr
    assert without in done.stderr
    options = [word for word in words if word != "--cache"] + (["--no-cache"] if "--no-cache" in without else [])
    more = ("--budget-calls", "9000") if unfinished else ()
    assert cli(*options, "--quiet", *more).exit_code == 0
