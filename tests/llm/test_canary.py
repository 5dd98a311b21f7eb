"""A key that is used everywhere must be found nowhere: files, logs, errors, reprs, the output of pytest itself."""

import os
import subprocess
import sys
from pathlib import Path

KEYS = {"chat": "sk-canary-0123456789abcdefghijklmnop", "responses": "canary/without.any=known+form"}
"""One of a known form and one of none, each for one of the APIs."""

RUN = """
import logging, os, traceback

import pytest

from textgrad_engine import Trainer, nn, use_models
from textgrad_engine.errors import AuthenticationFailed
from textgrad_engine.llm import Fallback, Message, OpenAIModel, Request, caching, observe, record, resolve
from textgrad_engine.optim import TGD
from textgrad_engine.testing import Fault, FunctionModel, LoopbackServer, feedback_for
from textgrad_engine import dispatch


def answer(request):
    if request.config.response_format is not None:
        properties = request.config.response_format.json_schema["properties"]
        if "edits" in properties:
            edit = {"op": "add", "line": 1, "text": "Shout.", "reason": "unsaid", "feedback": [1]}
            return {"edits": [edit]}
        return feedback_for(request, "shout")
    return "quietly"


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_run(tmp_path, monkeypatch, api):
    for name in ("CANARY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, os.environ[f"CANARY_{api}"])
    log = logging.FileHandler(tmp_path / "debug.log")
    logging.getLogger().addHandler(log)
    wrong = {"error": {"message": f"Incorrect API key provided: {os.environ['CANARY']}", "code": "invalid_api_key"}}
    html = f"<html>{os.environ['CANARY']}</html>"
    script = [Fault(500, body=html), Fault(401, body=wrong), Fault(400, body=html)]
    words = []
    with LoopbackServer(FunctionModel(answer), script=script, api_key=os.environ["CANARY"]) as server:
        bare = OpenAIModel("m", base_url=server.base_url, api_key=os.environ["CANARY"], api=api)
        model = resolve(bare)
        request = Request(messages=(Message(role="user", content="hello"),))
        seen = observe(lambda each: words.append(repr(each)))
        with record(tmp_path / "tape.jsonl"), caching(tmp_path / "cache"), seen:
            with pytest.raises(AuthenticationFailed) as caught:
                dispatch.run(lambda: model.complete(request))
            words += [str(caught.value), repr(caught.value), "".join(traceback.format_exception(caught.value))]
            program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
            rows = [{"word": word, "target": word.upper()} for word in ("one", "two", "three", "four")]
            with use_models(forward=model):
                result = Trainer(batch_size=2, run_dir=tmp_path / "run").fit(
                    program, nn.ExactMatch(), TGD(program.parameters()), rows, rows
                )
        words += [repr(model), str(bare), str(vars(bare)), repr(Fallback(model, "openai/gpt-5")), repr(result)]
        dispatch.run(bare.aclose)
    logging.getLogger().removeHandler(log)
    log.close()
    (tmp_path / "words.txt").write_text("\\n".join(words))
    assert (tmp_path / "cache" / "completions-1.sqlite").exists()
    print("\\n".join(words))
    raise caught.value
"""


def leaks(folder: Path, key: str) -> list[str]:
    return [str(path) for path in sorted(folder.rglob("*")) if path.is_file() and key.encode() in path.read_bytes()]


def test_a_canary_key_is_in_nothing_that_runs_leave(tmp_path: Path) -> None:
    """Run folder, cassette, cache, debug log, error texts, reprs, and what pytest prints of a failing test."""
    (tmp_path / "test_run.py").write_text(RUN)
    kept = tmp_path / "kept"
    options = ("-p", "textgrad_engine.testing.plugin", "-p", "no:cacheprovider", "-o", "log_level=DEBUG", "-ra", "-s")
    env = {**os.environ, **{f"CANARY_{api}": key for api, key in KEYS.items()}}
    env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # others take seconds to load
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"--basetemp={kept}", str(tmp_path / "test_run.py")],
        capture_output=True, text=True, env=env, timeout=120, cwd=tmp_path,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert "2 failed" in said, said
    assert said.count("AuthenticationFailed") >= 2
    for api, key in KEYS.items():
        left = kept / f"test_run_{api}_0"
        assert "Incorrect API key" in (left / "tape.jsonl").read_text()
        assert (left / "run" / "result.json").exists()
        assert (left / "debug.log").stat().st_size
        assert leaks(kept, key) == []
        assert key not in said
