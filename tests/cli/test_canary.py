"""A key that every command is given, and that an endpoint says in its errors, is in nothing that a command leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from textgrad_engine.llm import Request
from textgrad_engine.testing import Fault, FunctionModel, LoopbackServer, feedback_for

KEY = "canary/without.any=known+form0123"


def answer(request: Request) -> Any:
    """Something to every kind of request."""
    if request.config.response_format is None:
        return "billing"
    properties = request.config.response_format.json_schema["properties"]
    if "edits" in properties:
        edit = {"op": "add", "line": 1, "text": "Say it.", "reason": "unsaid", "feedback": [1]}
        return {"edits": [edit]}
    return feedback_for(request, "say it")


def test_no_command_shows_or_keeps_the_key(
    cli: Any, small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What is printed, with --json too, the run folder, the cache, the log, and an error with its traceback."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    caplog.set_level(0)
    wrong = {"error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}}
    html = f"<html>{KEY}</html>"
    printed = []
    with (
        LoopbackServer(FunctionModel(answer), script=[Fault(401, body=wrong)], api_key=KEY) as refusing,
        LoopbackServer(FunctionModel(answer), script=[Fault(400, body=html)], api_key=KEY) as server,
    ):
        folder = small(('forward = "simulated/tickets"', f'forward = "m"\nbase_url = "{server.base_url}"'), rows=6)
        run, other = tmp_path / "run", tmp_path / "other.txt"
        other.write_text("Answer with a queue.", encoding="utf-8")
        failed = cli("train", folder, "--run-dir", tmp_path / "failed", "--base-url", refusing.base_url)
        for command in (
            ("estimate", folder),
            ("estimate", folder, "--json"),
            ("train", folder, "--run-dir", run, "--cache"),
            ("train", folder, "--run-dir", tmp_path / "second", "--cache", "--json"),
            ("show", run),
            ("show", run, "--json"),
            ("eval", run, "--data", folder / "test.jsonl"),
            ("eval", run, "--data", folder / "test.jsonl", "--json"),
            ("compare", folder, "--prompt", other),
            ("compare", folder, "--prompt", other, "--json"),
        ):
            done = cli(*command)
            assert done.exit_code == 0, done.output
            printed += [done.stdout, done.stderr]
    assert failed.exit_code == 1
    assert "Incorrect API key" in failed.stderr
    printed += [failed.stdout, failed.stderr, caplog.text]
    assert "<html>[API key]" in (run / "completions.jsonl").read_text(encoding="utf-8")
    assert list((tmp_path / "cache").rglob("*.sqlite"))
    assert [text for text in printed if KEY in text] == []
    left = [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert left == []
