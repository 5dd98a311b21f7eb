"""``textgrad-engine diff``: what a run changed as tools read it, and two runs beside each other."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def killed(path: Path, to: Path, step: int = 3) -> Path:
    """A copy of a run as it is when the process was killed after so many steps."""
    shutil.copytree(path, to)
    (to / "result.json").unlink()
    events = (to / "events.jsonl").read_bytes().splitlines(keepends=True)
    steps = [number for number, line in enumerate(events) if b'"StepEnded"' in line]
    (to / "events.jsonl").write_bytes(b"".join(events[: steps[step]]) + b'{"event": "Ste')
    return to


@pytest.mark.parametrize("which", [0, 1])
def test_a_folder_that_is_no_run(cli: Any, trained: tuple[Path, Any], tmp_path: Path, which: int) -> None:
    """Exit code 2, whichever of the two it is."""
    folders = [trained[0], trained[0]]
    folders[which] = tmp_path
    result = cli("diff", *folders)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "this is no run folder" in result.stderr


def test_one_run_after_the_other_needs_one(cli: Any) -> None:
    """Wrong usage is exit code 2."""
    assert cli("diff").exit_code == 2
    assert cli("diff", "a", "b", "c").exit_code == 2


def test_a_pipe_gives_what_patch_reads(trained: tuple[Path, Any], tmp_path: Path) -> None:
    """The line of the help, by a real pipe: the seed prompt becomes the best one, byte for byte."""
    if shutil.which("patch") is None:
        pytest.skip("there is no patch")
    (tmp_path / "run").symlink_to(trained[0])
    (tmp_path / "prompt.txt").write_bytes((trained[0] / "seed" / "system.txt").read_bytes())
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHON": sys.executable, "PYTHONIOENCODING": "ascii"}
    command = '"$PYTHON" -m textgrad_engine diff run | patch -s prompt.txt'
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "prompt.txt").read_bytes() == (trained[0] / "best_prompt.txt").read_bytes()


@pytest.mark.parametrize("end", ["\n", "", "\n\n"])
def test_the_patch_fits_the_prompt_file_as_it_ends(
    cli: Any, trained: tuple[Path, Any], small: Any, tmp_path: Path, end: str
) -> None:
    """Editors end the last line, and patch takes nothing that says the file does not."""
    if shutil.which("patch") is None:
        pytest.skip("there is no patch")
    system = (trained[0] / "seed" / "system.txt").read_text(encoding="utf-8")
    change = 'user = "{ticket}"', 'user = "{ticket}"\nsystem_file = "prompt.txt"'
    config = small(change)
    text = (config / "config.toml").read_text(encoding="utf-8")
    (config / "config.toml").write_text(text.replace(f'system = """\n{system}"""\n', ""), encoding="utf-8")
    (config / "prompt.txt").write_text(system + end, encoding="utf-8")
    assert cli("train", config, "--run-dir", tmp_path / "run").exit_code == 0
    patch = cli("diff", tmp_path / "run").stdout
    assert json.loads(cli("diff", tmp_path / "run", "--json").stdout)["parameters"]["system"]["patch"] == patch
    command = ["patch", "-s", config / "prompt.txt"]
    done = subprocess.run(command, input=patch, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    best = (tmp_path / "run" / "best_prompt.txt").read_text(encoding="utf-8")
    assert best not in system
    assert (config / "prompt.txt").read_text(encoding="utf-8") == best + end[:1]


def test_of_a_prompt_file_in_a_folder_of_before_the_last_line_is_taken_to_end(
    cli: Any, trained: tuple[Path, Any], run: Any
) -> None:
    """Such folders do not say how the file ended; a prompt in the config has no file."""
    folder = run()
    kept = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert kept.pop("ends_line") is False
    kept["config"]["program"]["system_file"] = "prompt.txt"
    (folder / "config.json").write_text(json.dumps(kept), encoding="utf-8")
    assert "\\ No newline" not in cli("diff", folder).stdout
    assert cli("diff", trained[0]).stdout.endswith("\\ No newline at end of file\n")


def test_a_run_leaves_its_folder_as_it_was(cli: Any, trained: tuple[Path, Any]) -> None:
    """Looking changes nothing."""
    before = sorted((each.name, each.stat().st_mtime_ns) for each in trained[0].iterdir())
    cli("diff", trained[0])
    cli("diff", trained[0], trained[0], "--json")
    assert sorted((each.name, each.stat().st_mtime_ns) for each in trained[0].iterdir()) == before


def test_a_run_that_changed_nothing_prints_nothing(cli: Any, small: Any, tmp_path: Path) -> None:
    """Nothing is also what a tool is to be given; why is said beside it."""
    cli("train", small(rows=6), "--no-feedback", "--run-dir", tmp_path / "run", "-q")
    result = cli("diff", tmp_path / "run")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "nothing was changed: no change did better" in result.stderr


def test_a_run_that_tried_nothing_did_not_try_in_vain(cli: Any, small: Any, tmp_path: Path) -> None:
    """The budget was spent before the first step."""
    cli("train", small(("calls = 5000", "calls = 3"), rows=6), "--run-dir", tmp_path / "run", "-q")
    result = cli("diff", tmp_path / "run")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "nothing was changed: the budget was spent before the first step" in result.stderr


def test_a_killed_run_that_has_changed_nothing_yet_says_no_more(cli: Any, small: Any, tmp_path: Path) -> None:
    """It may find something once it goes on, so nothing is said of changes that did no better."""
    cli("train", small(rows=6), "--no-feedback", "--run-dir", tmp_path / "run", "-q")
    result = cli("diff", killed(tmp_path / "run", tmp_path / "killed", step=0))
    assert (result.exit_code, result.stdout) == (0, "")
    assert "; this is the best prompt so far" in result.stderr
    assert result.stderr.splitlines()[-1] == f"{tmp_path / 'killed'}: nothing was changed"


def test_a_killed_run_is_compared_as_far_as_it_came(cli: Any, trained: tuple[Path, Any], tmp_path: Path) -> None:
    """With a note beside the patch; against the whole run there is nothing paired to say."""
    path = killed(trained[0], tmp_path / "killed")
    result = cli("diff", path)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"--- {path}/seed/system.txt\n")
    assert "the last line is torn" in result.stderr
    assert "no result: it was killed after 3 steps; this is the best prompt so far" in result.stderr
    result = cli("diff", trained[0], path)
    assert result.exit_code == 0
    assert "nothing paired can be said, as B has no best prompt measured on test" in " ".join(result.stdout.split())


def test_two_runs_of_one_task(cli: Any, trained: tuple[Path, Any], tmp_path: Path) -> None:
    """Other settings on the same test set: a paired difference, what differs, and a patch from one to the other."""
    tickets = Path(__file__).parents[2] / "examples" / "tickets"
    other = tmp_path / "other"
    cli("train", tickets, "--no-feedback", "--seed", "3", "--run-dir", other, "-q")
    result = cli("diff", trained[0], other)
    assert result.exit_code == 0
    said = " ".join(result.stdout.split())
    assert "B against A: worse: -0.5" in said
    assert "on test, 113 examples" in said
    changed = json.loads(cli("diff", trained[0], other, "--json").stdout)["pairings"][0]["changed"]
    assert len(changed["worse"]) > len(changed["better"]) > 0
    assert f"got worse ({len(changed['worse'])}): {changed['worse'][0]['id']}, " in said
    assert f"got better ({len(changed['better'])}): {changed['better'][0]['id']}" in said
    assert "--repeats" not in said  # which `diff` does not have
    assert "feedback true false" in said
    assert "seed 0 3" in said
    assert f"--- {trained[0]}/best/system.txt +++ {other}/best/system.txt" in said
    body = json.loads(cli("diff", trained[0], other, "--json").stdout)
    assert body["pairings"][0]["comparison"]["n"] == 113
    assert body["settings"] == {"seed": {"a": 0, "b": 3}, "feedback": {"a": True, "b": False}}
    assert body["parameters"][0]["patch"].startswith("---")


def test_json_of_one_run(cli: Any, trained: tuple[Path, Any]) -> None:
    """The texts and the patch between them."""
    body = json.loads(cli("diff", trained[0], "--json").stdout)
    assert body["status"] == "finished"
    assert body["parameters"]["system"]["patch"] == cli("diff", trained[0]).stdout
    assert body["parameters"]["system"]["best"] == (trained[0] / "best_prompt.txt").read_text(encoding="utf-8")


def test_a_run_from_python_that_keeps_a_config_of_its_own_is_no_damaged_one(
    cli: Any, trained: tuple[Path, Any], run: Any
) -> None:
    """It is compared by what is known of it, and what other commands need of a config is said to be missing."""
    folder = run()
    (folder / "config.json").write_text(json.dumps({"format": 1, "seed": 7, "looks_before": "?"}), encoding="utf-8")
    result = cli("diff", trained[0], folder)
    said = " ".join(result.stdout.split())
    assert result.exit_code == 0
    assert "not all are known, as B was started from Python, with a config of its own; both keep seed" in said
    assert " seed 0 7 " in said
    result = cli("eval", folder)
    assert "its config.json holds no config of a command, as the run was started from Python" in result.stderr
    assert "tg.Trainer(run_dir=..., resume=True)" in cli("show", killed(folder, folder.parent / "killed")).stdout
