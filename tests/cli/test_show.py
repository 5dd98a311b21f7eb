"""``textgrad-engine show``: the report again, also of a run that was killed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine.cli import show
from textgrad_engine.store import reader, sittings
from textgrad_engine.store.lock import Lock


@pytest.mark.parametrize("name", ["events.jsonl", "result.json"])
def test_a_run_that_ends_while_it_is_read_was_not_killed(
    cli: Any, trained: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Its lock is gone when all is read, and its result came after that was looked for, or just before."""
    path = tmp_path / "run"
    shutil.copytree(trained[0], path)
    result = (path / "result.json").read_bytes()
    (path / "result.json").unlink()
    lock = Lock(path)
    home, real = (sittings, sittings.read_lines) if name == "events.jsonl" else (reader, reader.config_of)

    def ends(*args: Any) -> Any:
        found = real(*args)
        found = list(found) if name == "events.jsonl" else found
        (path / "result.json").write_bytes(result)
        lock.release()
        return found

    monkeypatch.setattr(home, real.__name__, ends)
    shown = cli("show", path).stdout
    assert ("No result yet: it still runs; 12 steps so far" in shown) is (name == "result.json")
    assert ("Finished after 12 steps" in shown) is (name == "events.jsonl")
    assert "killed" not in shown


def test_a_folder_that_is_no_run(cli: Any, tmp_path: Path) -> None:
    """Exit code 2."""
    result = cli("show", tmp_path)
    assert result.exit_code == 2
    assert "this is no run folder" in result.stderr
    (tmp_path / "runs" / "a-1").mkdir(parents=True)
    (tmp_path / "runs" / "a-1" / "events.jsonl").write_text("")
    for place in (tmp_path, tmp_path / "runs"):
        assert f"name what `train` wrote; {tmp_path / 'runs'} has a-1\n" in cli("show", place).stderr


def test_the_report_is_the_one_that_was_printed(cli: Any, trained: tuple[Path, Any]) -> None:
    """Character by character; nothing goes on with a run that is finished."""
    path, printed = trained
    result = cli("show", path)
    assert result.exit_code == 0
    assert result.stdout == printed.stdout
    assert result.stderr == ""


def test_json_is_that_of_train(cli: Any, trained: tuple[Path, Any]) -> None:
    """One document, with the same figures."""
    document = json.loads(cli("show", trained[0], "--json").stdout)
    assert document["verdict"] == "better"
    assert document["candidates"] == 8
    assert len(document["steps"]) == 12


def test_a_run_that_ended_with_an_error_says_which(cli: Any, trained: tuple[Path, Any], tmp_path: Path) -> None:
    """It was not killed, nor does it still run."""
    path = tmp_path / "failed"
    shutil.copytree(trained[0], path)
    (path / "result.json").unlink()
    events = (path / "events.jsonl").read_bytes().splitlines(keepends=True)[:-1]
    failed = {"event": "RunFailed", "error": "AuthenticationFailed: no such key", "notes": ["the example is t7"]}
    (path / "events.jsonl").write_bytes(b"".join(events) + json.dumps(failed).encode() + b"\n")
    result = cli("show", path)
    shown = " ".join(result.stdout.split())
    assert "No result: it ended with an error after 12 steps" in shown
    assert "It ended with an error: AuthenticationFailed: no such key the example is t7" in shown
    assert "killed" not in result.stdout
    assert json.loads(cli("show", path, "--json").stdout)["error"].startswith("AuthenticationFailed")
    assert "no result, as the run ended with an error, so" in cli("show", path, "--line", "1").stderr
    assert "no result, as the run ended with an error; only" in cli("shrink", path).stderr


def test_a_killed_run_is_shown_as_far_as_it_came(cli: Any, trained: tuple[Path, Any], tmp_path: Path) -> None:
    """No result, and still: the scores of its steps, and the diff of its best prompt with who asked for it."""
    path = tmp_path / "killed"
    shutil.copytree(trained[0], path)
    (path / "result.json").unlink()
    events = (path / "events.jsonl").read_bytes().splitlines(keepends=True)
    steps = [number for number, line in enumerate(events) if b'"StepEnded"' in line]
    (path / "events.jsonl").write_bytes(b"".join(events[: steps[3]]) + b'{"event": "Ste')
    result = cli("show", path)
    assert result.exit_code == 1
    assert "the last line is torn" in result.stderr
    assert "No result: it was killed after 3 steps" in " ".join(result.stdout.split())
    said = f"`textgrad-engine resume {path}` goes on with it."
    calls = len((path / "completions.jsonl").read_bytes().splitlines())
    assert 1_000 < calls < 1_800  # races need fewer than all examples for each change
    assert f"On record: {calls:,} calls" in result.stdout
    assert "  + " in result.stdout
    assert "      t0" in result.stdout
    document = json.loads(cli("show", path, "--json").stdout)
    assert (document["status"], document["running"], document["way_on"]) == (None, False, said)
    assert (document["total"]["calls"], [step["step"] for step in document["steps"]]) == (calls, [1, 2, 3])
    assert cli("show", path, "--front", "1").stderr.endswith("front: only a run that came to its end has one\n")
    assert "".join(said.split()) in "".join(result.stdout.split())  # a long path is folded
    lock = Lock(path)  # as its process has that still runs
    shown = " ".join(cli("show", path).stdout.split())
    assert "No result yet: it still runs; 3 steps so far" in shown
    assert "resume" not in shown
    document = json.loads(cli("show", path, "--json").stdout)
    assert (document["status"], document["running"], document["way_on"]) == (None, True, None)
    assert "no result, as the run still goes on; only" in cli("shrink", path).stderr
    lock.release()


def test_a_text_of_the_front(cli: Any, trained: tuple[Path, Any], tmp_path: Path) -> None:
    """As it is, so that a file takes it; what there is not is told."""
    path, printed = trained
    front = json.loads((path / "result.json").read_text(encoding="utf-8"))["front"]
    assert len(front) > 1
    assert f"{len(front)}      101" in printed.stdout
    for number, point in enumerate(front, start=1):
        assert cli("show", path, "--front", str(number)).stdout == point["texts"]["system"] + "\n"
    document = json.loads(cli("show", path, "--front", "1", "--parameter", "system", "--json").stdout)
    assert document == {"run": str(path), "n": 1, **front[0]}
    for options, why in (
        (("--front", str(len(front) + 1)), f"on the front: it has {len(front)}; `show` has a table"),
        (("--front", "1", "--parameter", "user"), "there is no text 'user' on its front; it has system"),
    ):
        done = cli("show", path, *options)
        assert (done.exit_code, why in " ".join(done.stderr.split())) == (2, True)


def test_several_texts_of_the_front_stand_below_their_names(
    cli: Any, run: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a terminal nothing in them is obeyed; in a pipe all of it is there."""
    path = run()
    body = json.loads((path / "result.json").read_text(encoding="utf-8"))
    body["front"][0]["texts"] = {"first": "Say\x1b[2J it.", "second.part": "Be brief."}
    (path / "result.json").write_text(json.dumps(body), encoding="utf-8")
    assert cli("show", path, "--front", "1").stdout == "== first\nSay\x1b[2J it.\n\n== second.part\nBe brief.\n"
    monkeypatch.setattr(show, "at_terminal", lambda: True)
    assert "Say\ufffd[2J it." in cli("show", path, "--front", "1").stdout


@pytest.mark.parametrize("command", ["show", "resume", "eval", "shrink", "diff", "report"])
@pytest.mark.parametrize("key", ["folder", "digests", "rows", "looks_before", "config", "program", "budget", "data"])
def test_whatever_was_written_into_a_config_json_by_hand_ends_no_command_with_a_traceback(
    cli: Any, run: Callable[[], Path], command: str, key: str
) -> None:
    """The file is there to be read, so somebody edits it; whoever needs what was there is told."""
    path = run()
    body = json.loads((path / "config.json").read_text(encoding="utf-8"))
    (body if key in body else body["config"])[key] = ["x"]
    (path / "config.json").write_text(json.dumps(body), encoding="utf-8")
    result = (path / "result.json").read_text(encoding="utf-8").replace('"finished"', '"budget"', 1)
    (path / "result.json").write_text(result, encoding="utf-8")
    result = cli(command, path)  # raises what is no exit
    assert result.exit_code in (0, 1, 2)
    if result.exit_code == 2:
        assert key in result.stderr


FLOOR = {"of": "queue = 'billing'", "least": 0.9, "split": "test", "examples": 9, "seed": 0.5, "best": 0.8}


def test_a_floor_that_is_reached_on_test_or_missed_on_validation_alone_is_no_reason(cli: Any, run: Any) -> None:
    """By those of validation changes were refused; what the prompt is worth is told by those of test."""
    path = run()
    body = json.loads((path / "result.json").read_text(encoding="utf-8"))
    floors = [{**FLOOR, "split": "val"}, {**FLOOR, "best": 0.9}]
    (path / "result.json").write_text(json.dumps(body | {"floors": floors}), encoding="utf-8")
    assert cli("show", path, "--exit-code").exit_code == 0


def test_exit_code_tells_a_shown_improvement_from_all_else(cli: Any, run: Callable[[], Path]) -> None:
    """A step of CI takes a prompt over, or not; what is printed stays as it is."""
    path = run()
    plain, better = cli("show", path), cli("show", path, "--exit-code")
    assert (plain.exit_code, better.exit_code) == (0, 0)
    assert better.output == plain.output
    body = json.loads((path / "result.json").read_text(encoding="utf-8"))
    for change, why in (
        ({"comparison": {**body["comparison"], "verdict": "not shown"}}, 'the verdict is "not shown"'),
        ({"comparison": {**body["comparison"], "verdict": "worse"}}, 'the verdict is "worse"'),
        ({"compared_on": "val"}, "the verdict is of the validation set, which chose the prompt"),
        ({"best": body["seed"]}, "the seed prompt was kept"),
        ({"comparison": None}, "there is no verdict, as the test set was not run with both prompts"),
        ({"floors": [FLOOR]}, "floor not reached: queue = 'billing', 0.800 of 0.9 on test"),
        (
            {"floors": [FLOOR], "comparison": {**body["comparison"], "verdict": "worse"}},
            "the verdict is \"worse\"; floor not reached: queue = 'billing', 0.800 of 0.9 on test",
        ),
    ):
        (path / "result.json").write_text(json.dumps(body | change), encoding="utf-8")
        told = cli("show", path, "--exit-code", *(["--json"] if "comparison" in change else []))
        assert told.exit_code == 4, change
        assert f"--exit-code: {why}" in " ".join(told.stderr.split())
        assert cli("show", path).exit_code == 0
    (path / "result.json").unlink()
    assert cli("show", path, "--exit-code").exit_code == 1
    assert cli("show", path.parent / "none", "--exit-code").exit_code == 2
    refused = cli("show", path, "--exit-code", "--line", "1")
    assert refused.exit_code == 2
    assert "--exit-code goes by the verdict of the report" in refused.stderr
