"""The benchmark of optimizers runs over HTTP, counts what it cost, and writes a table, a picture and the runs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .foreign import benchmark_module

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "optimizers.py"

SMALL = """
import sys; sys.path.insert(0, sys.argv.pop(1))
import optimizers
optimizers.TASKS["additive"] = {"rules": 4, "train": 16, "val": 12, "test": 12}
optimizers.main()
"""


@pytest.fixture(scope="module")
def script() -> Any:
    """The script as a module."""
    return benchmark_module("optimizers")


def refused(script: Any, *asked: object) -> None:
    """Have the script say that something cannot be done."""
    with pytest.raises(SystemExit) as ended:
        script.main([str(each) for each in asked])
    assert ended.value.code == 2


@pytest.mark.skipif(sys.platform == "win32", reason="the interpreter that has nothing is a shell script")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("dspy.MIPROv2", r"needs 'dspy\[optuna\]', which .* has not; .*--others"),
        ("trace OptoPrime", "needs 'trace-opt', which"),  # pip has an "opto", which is something else
        ("nobody", "no 'nobody'; .*TGD.*textgrad"),
    ],
)
def test_who_cannot_be_run_is_said_before_anything_is(
    name: str, said: str, script: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A package that the other interpreter has not, and a name that nobody has."""
    bare = tmp_path / "python"
    bare.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    bare.chmod(0o755)
    refused(script, "--only", "TGD", name, "--others", bare, "--out", tmp_path / "runs")
    assert re.search(said, " ".join(capsys.readouterr().err.split()))
    assert not (tmp_path / "runs").exists()


def test_an_interpreter_that_is_not_there_is_named(script: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """It ended in a traceback."""
    refused(script, "--others", "/nowhere/python")
    assert capsys.readouterr().err.endswith("error: --others /nowhere/python: there is no such program\n")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--virtual", "--only", "TGD", "gepa"], "--virtual runs ours alone, without HTTP, and gepa is not ours"),
        (["--seeds", "0", "--beside", "nowhere.json"], "--beside nowhere.json: there is no such file"),
    ],
)
def test_what_cannot_be_together_or_is_not_there_is_said(
    asked: list[str], said: str, script: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is run."""
    refused(script, *asked, "--out", tmp_path / "runs")
    assert said in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_it_runs_optimizers_over_http_and_writes_what_they_came_to(tmp_path: Path) -> None:
    """A search and a control with few calls: each with its calls by purpose, its tokens, and its way."""
    names = ["PatchSearch", "random edits"]
    small = ["--tasks", "additive", "--seeds", "1", "--first", "5", "--calls", "50", "--latency", "0"]
    asked = [sys.executable, "-c", SMALL, SCRIPT.parent, *small, "--only", *names, "--out", tmp_path / "runs"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    rows = [line.split(" | ") for line in done.stdout.splitlines() if line.startswith(("| PatchSearch |", "| random"))]
    assert [row[0].strip("| ") for row in rows] == names * 2  # what they came to, and how far they were with the same
    runs = json.loads((tmp_path / "runs" / "runs.json").read_text())
    assert [run["optimizer"] for run in runs] == names
    for run in runs:
        assert sum(run["calls"].values()) <= 50
        assert run["calls"]["forward"] > 0
        assert run["tokens"] > 10 * sum(run["calls"].values())
        assert (run["points"][0][0], run["points"][0][-1]) == (0, 0.0)
        assert run["points"][-1][-1] == run["way"]
    assert runs[0]["calls"].keys() >= {"backward", "optimizer"}
    assert runs[1]["calls"].keys() == {"forward"}
    picture = (tmp_path / "runs" / "picture.svg").read_text()
    assert all(re.search(rf">{name}", picture) for name in names)


@pytest.mark.skipif(sys.platform != "linux", reason="the clock reads from Linux what threads do")
def test_ours_run_without_http_on_a_clock_that_only_counts_the_wait(tmp_path: Path) -> None:
    """Whatever else the machine does, time is a number of answers; runs of before are taken in from files."""
    small = ["--virtual", "--tasks", "additive", "--first", "5", "--calls", "120", "--only", "PatchSearch"]
    for seeds, beside, out in (("1", [], "first"), ("0", ["--beside", tmp_path / "first" / "results.json"], "again")):
        asked = [sys.executable, SCRIPT, *small, "--seeds", seeds, *beside, "--out", tmp_path / out]
        done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr
        assert re.search(r"^\| PatchSearch \| .*\]\* \|$", done.stdout, re.MULTILINE)
    (run,) = json.loads((tmp_path / "first" / "runs.json").read_text())
    assert run["prompt"]
    assert run["virtual"]
    answers = [point[1] / run["latency"] for point in run["points"][1:]]
    assert answers[-1] > 1
    assert all(abs(answer - round(answer)) < 1e-6 for answer in answers)
    first, again = ((tmp_path / name / "results.json").read_text() for name in ("first", "again"))
    assert first == again
