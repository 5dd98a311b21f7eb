"""Ctrl-C: the real command in a process of its own, told to stop in the middle."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import pytest

from textgrad_engine.llm.simulated import TicketsModel
from textgrad_engine.store import read_run
from textgrad_engine.testing import Fault, LoopbackServer

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise on Windows")


NO_END_OF_PATIENCE = """
from textgrad_engine.__main__ import main
from textgrad_engine.train import interrupt
interrupt._Block._wait = lambda block: None
main()
"""


def start(cwd: Path, *args: str, program: tuple[str, ...] = ("-m", "textgrad_engine")) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "80"}
    command = [sys.executable, *program, *args]
    # A session of its own, so that the signal does not depend on how this test was started.
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, cwd=cwd, start_new_session=True
    )


def wait_for_line(stream: IO[str] | None, beginning: str) -> str:
    assert stream is not None
    seen = ""
    for line in stream:
        seen += line
        if line.startswith(beginning):
            return seen
    raise AssertionError(f"no line {beginning!r} in {seen!r}")


def wait_for_a_question(server: LoopbackServer | Path, process: subprocess.Popen[str]) -> None:
    """Of a server, or of a model of the folder's own that makes a file of it."""
    while not (server.exists() if isinstance(server, Path) else server.in_flight):
        with contextlib.suppress(subprocess.TimeoutExpired):  # to look all the time would take the processor from both
            raise AssertionError(f"it ended with code {process.wait(0.005)}")


OWN = """
import asyncio, pathlib
from textgrad_engine.llm.simulated import TicketsModel

class Waits:
    name, inner, answers = "waits", TicketsModel(seed=0), {answers}
    async def complete(self, request):
        Waits.answers -= 1
        if Waits.answers < 0:
            pathlib.Path(__file__).with_name("asked").touch()
            await asyncio.sleep({seconds})
        return await self.inner.complete(request)

model = Waits()
"""


def waiting(small: Any, answers: int, seconds: str) -> Path:
    """A folder with a model of its own that takes so long for all but the first answers, a few calls at once."""
    config = 'forward = "waits:model"\nmax_in_flight = 4'
    folder: Path = small(('forward = "simulated/tickets"', config))
    (folder / "waits.py").write_text(OWN.format(answers=answers, seconds=seconds), encoding="utf-8")
    return folder


def test_before_the_first_score_there_is_still_an_answer(small: Any, tmp_path: Path) -> None:
    """Nothing was measured, and the report says so instead of failing."""
    folder = waiting(small, 0, "1")
    with start(tmp_path, "train", str(folder), "--run-dir", str(tmp_path / "run")) as process:
        wait_for_line(process.stderr, "Run folder")
        wait_for_a_question(folder / "asked", process)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "Interrupted before the first step" in stdout
    assert stdout.count("not measured") >= 4


@pytest.mark.parametrize(("optimizer", "over_http"), [("TGD", True), ("PatchSearch", False)])
def test_twice_ends_at_once(small: Any, tmp_path: Path, optimizer: str, over_http: bool) -> None:
    """No answer ever comes, and nobody waits for it, in this thread or in another; the message names the folder."""
    run = tmp_path / "run"
    folder = small()
    seed_scores = len((folder / "val.jsonl").read_text(encoding="utf-8").splitlines())
    silence = Fault(delay=math.inf)
    with LoopbackServer(TicketsModel(seed=0), faults=lambda n: silence if n > seed_scores else None) as server:
        asked: tuple[str, ...] = ("--base-url", server.base_url)
        if not over_http:
            folder, asked = waiting(small, seed_scores, "3600"), ()
        args = ("train", str(folder), *asked, "--run-dir", str(run), "--optimizer", optimizer)
        with start(tmp_path, *args, program=("-c", NO_END_OF_PATIENCE)) as process:
            wait_for_line(process.stderr, "step")
            wait_for_a_question(server if over_http else folder / "asked", process)
            process.send_signal(signal.SIGINT)
            wait_for_line(process.stderr, "stopping: ")
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=60)  # answers in flight would get for ever
    assert (process.returncode, stdout) == (130, ""), stderr
    assert stderr.strip() == (
        f"interrupted; what was paid for until then is in {run}, with the best prompt so far and without a "
        f"result.json; `textgrad-engine show {run}` prints what is known, and `textgrad-engine resume {run}` goes on "
        "with it"
    )
    assert (run / "best_prompt.txt").is_file()
    assert read_run(run).usage().calls == seed_scores


def test_a_comparison_that_is_interrupted_tells_what_was_answered(
    trained: tuple[Path, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No arm begins after it, and the same command asks for the rest alone."""
    monkeypatch.setenv("TEXTGRAD_CACHE_DIR", str(tmp_path / "cache"))
    run = trained[0].parent / tmp_path.name
    shutil.copytree(trained[0], run)
    config = json.loads((run / "config.json").read_text(encoding="utf-8"))
    config["config"]["models"]["max_in_flight"] = 4
    (run / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "mine.txt").write_text("Answer with a queue.", encoding="utf-8")
    rows = (Path(__file__).parents[2] / "examples" / "tickets" / "train.jsonl").read_text(encoding="utf-8").splitlines()
    (tmp_path / "some.jsonl").write_text("\n".join(rows[:12]), encoding="utf-8")
    with LoopbackServer(TicketsModel(seed=0), latency=0.5) as server:
        command = ["compare", str(run), "--prompt", "mine.txt", "--data", "some.jsonl", "--base-url", server.base_url]
        with start(tmp_path, *command, "--json") as process:
            wait_for_a_question(server, process)
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=60)
        assert process.returncode == 130, stderr
        document = json.loads(stdout)
        first, second = document["arms"]
        answered = first["evaluation"]["examples"] - first["evaluation"]["unanswered"]
        assert 0 < answered == server.requests < 12
        assert (document["status"], second["evaluation"]) == ("interrupted", None)
        assert "interrupted; what was answered is in the cache: the same command goes on from there" in stderr
        with start(tmp_path, *command, "--json") as process:
            stdout, stderr = process.communicate(timeout=60)
        assert process.returncode == 0, stderr
        assert server.requests == 24
        assert [arm["evaluation"]["unanswered"] for arm in json.loads(stdout)["arms"]] == [0, 0]


def test_an_evaluation_that_is_interrupted_scores_what_was_answered(
    trained: tuple[Path, object], tmp_path: Path
) -> None:
    """What was paid for is told, with what the rest could make of it, and the look at the test split is counted."""
    run = trained[0].parent / tmp_path.name
    shutil.copytree(trained[0], run)
    config = json.loads((run / "config.json").read_text(encoding="utf-8"))
    config["config"]["models"]["max_in_flight"] = 4
    (run / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with (
        LoopbackServer(TicketsModel(seed=0), latency=1.0) as server,
        start(tmp_path, "eval", str(run), "--base-url", server.base_url, "--json") as process,
    ):
        wait_for_a_question(server, process)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    document = json.loads(stdout)
    answered = 113 - document["unanswered"]
    assert 0 < answered == document["usage"]["calls"] < 113
    assert (document["status"], document["test_openings"]) == ("interrupted", 2)
    assert document["bounds"][0] < document["bounds"][1]
    assert f"interrupted; {answered} of 113 examples got a score" in stderr
    assert [entry["event"] for entry in read_run(run).evals] == ["EvaluationStarted", "EvaluationEnded"]
