"""``textgrad-engine shrink RUN``: a shorter prompt beside the run's best one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine.cli import shrink as shrink_command
from textgrad_engine.cli import shrinking
from textgrad_engine.cli.keeping import on_record
from textgrad_engine.cli.settings import Budget
from textgrad_engine.errors import RunError, Stopped
from textgrad_engine.llm.simulated import TicketsModel
from textgrad_engine.optim import NoCopying
from textgrad_engine.store import check_shrunk
from textgrad_engine.testing import LoopbackServer
from textgrad_engine.train.shrinking import most_runs

TICKETS = Path(__file__).parents[2] / "examples" / "tickets"


def test_a_killed_run(cli: Any, run: Any) -> None:
    """It has no best prompt to speak of; exit code 2."""
    path = run()
    (path / "result.json").unlink()
    result = cli("shrink", path)
    assert result.exit_code == 2
    assert "only finished runs can be shrunk" in result.stderr


def test_other_validation_examples_than_the_run_had(cli: Any, run: Any) -> None:
    """What chose the prompt must be what shortens it."""
    path = run()
    config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    config["digests"]["val"] = "0" * 16
    (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    result = cli("shrink", path)
    assert result.exit_code == 2
    assert "not the validation examples" in " ".join(result.stderr.split())


def test_the_short_prompt_is_written_beside_the_best_one(cli: Any, run: Any) -> None:
    """The best prompt stays; the short one has fewer tokens, and shrink.json says what it was chosen from."""
    path = run()
    best = (path / "best_prompt.txt").read_text(encoding="utf-8")
    result = cli("shrink", path, "--max-tries", "4", "--allowance", "30", "--lanes", "2")
    assert result.exit_code == 0
    said = " ".join(result.stderr.split())
    assert "Usually 696 to 3,393 runs of the program, each on one of its 87 examples; more if" in said
    assert f"by themselves; at most {most_runs(87, 1, 2):,}" in said
    assert (path / "best_prompt.txt").read_text(encoding="utf-8") == best
    short = (path / "shrunk_prompt.txt").read_text(encoding="utf-8")
    about = json.loads((path / "shrink.json").read_text(encoding="utf-8"))
    assert about["after"] == {"system": short}
    assert about["tokens"]["after"] <= about["tokens"]["before"]
    assert (about["ended"], about["tried"]) == ("tries", 4)
    assert set(short.split("\n")) <= set(best.split("\n"))
    assert "Score against length, of all that was raced" in result.stdout
    assert max(map(len, result.stdout.splitlines()[2:])) <= 80
    assert cli("show", path).exit_code == 0


def test_a_prompt_that_needs_every_line(cli: Any, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was left out, and what is said of the file does not call it short; a terminal is shown that in colors."""
    path = run()
    result = json.loads((path / "result.json").read_text(encoding="utf-8"))
    (path / "result.json").write_text(json.dumps(result | {"best": {"system": "Sort it."}}), encoding="utf-8")
    result = cli("shrink", path)
    monkeypatch.setenv("FORCE_COLOR", "1")
    in_color = cli("shrink", path).stdout
    assert ("\x1b[" in result.stdout, "\x1b[" in in_color) == (False, True)
    assert "Left out of the prompt: nothing" in result.stdout
    assert "Nothing was left out; the prompt as it was is in" in " ".join(result.stderr.split())


def test_the_clusters_of_the_config_count(cli: Any, small: Any, tmp_path: Path) -> None:
    """[data] clusters holds for whatever is said of the short prompt, as it does for the run."""
    path = tmp_path / "run"
    assert cli("train", small(), "--quiet", "--run-dir", path).exit_code == 0
    config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    config["config"]["data"]["clusters"] = config["config"]["data"]["target"]
    (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    document = json.loads(cli("shrink", path, "--max-tries", "1", "--json").stdout)
    queues = document["comparison"]["clusters"]
    assert 1 < queues < document["comparison"]["n"]
    assert document["val"]["before"]["clusters"] == document["val"]["after"]["clusters"] == queues


def test_a_spent_budget(cli: Any, run: Any) -> None:
    """Exit code 3, and what was found is written."""
    path = run()
    config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    config["config"]["budget"] = {"calls": 120}
    (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    result = cli("shrink", path, "--quiet")
    assert result.exit_code == 3
    assert (path / "shrunk_prompt.txt").is_file()


def test_what_cannot_be_written_is_not_paid_for(cli: Any, run: Any) -> None:
    """A run folder that cannot be written is found out beforehand; one that can be stays as it was until the end."""
    path = run()
    (path / "shrunk").touch()
    with LoopbackServer(TicketsModel(seed=0)) as server:
        result = cli("shrink", path, "--model", "m", "--base-url", server.base_url)
        assert (result.exit_code, server.requests) == (2, 0)
    assert "the run folder cannot be written" in result.stderr
    (path / "shrunk").unlink()
    before = sorted(path.iterdir())
    check_shrunk(path)
    assert sorted(path.iterdir()) == before


def test_what_can_be_written_no_longer_is_printed(cli: Any, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk may be full at the end; the short prompt is paid for."""

    def write(folder: Path, texts: Any, about: Any) -> Path:
        raise RunError("the run folder cannot be written: no space left")

    monkeypatch.setattr(shrink_command, "write_shrunk", write)
    result = cli("shrink", run(), "--max-tries", "1", "--allowance", "10")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["after"].keys() == {"system"}
    assert "no space left" in result.stderr


def test_an_interruption_leaves_the_folder_as_it_was(cli: Any, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 130; a short prompt that was not raced to its end is not written."""

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        raise Stopped("interrupted")

    monkeypatch.setattr(shrinking, "shrink", interrupted)
    path = run()
    before = sorted(path.rglob("*"))
    result = cli("shrink", path, "--json")
    assert result.exit_code == 130
    assert "interrupted: the prompt was not shrunk; what was answered is on record" in result.stderr
    assert json.loads(result.stdout)["exit_code"] == 130
    assert sorted(path.rglob("*")) == before


def test_a_short_prompt_may_copy_no_more_than_the_long_one_might(
    cli: Any, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The examples of the run are what it is compared with."""
    path = run()
    config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    config["config"]["optimizer"]["contracts"]["no_copying"] = True
    (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    asked: dict[str, Any] = {}
    shrink = shrinking.shrink

    def noting(*args: Any, **kwargs: Any) -> Any:
        asked.update(kwargs)
        return shrink(*args, **kwargs)

    monkeypatch.setattr(shrinking, "shrink", noting)
    assert cli("shrink", path, "--max-tries", "1", "--allowance", "10").exit_code == 0
    (copying,) = [each for each in asked["contracts"]["system"] if isinstance(each, NoCopying)]
    ticket = json.loads((TICKETS / "train.jsonl").read_text(encoding="utf-8").splitlines()[0])["ticket"]
    assert "copied from a training example" in str(copying.problem("Sort.", f"Sort.\n{ticket}"))


def test_help_says_what_there_is_after_an_interruption(cli: Any) -> None:
    """No short prompt, and what was answered; and that the run's limits hold."""
    said = " ".join(cli("shrink", "--help").stdout.split())
    assert "130 interrupted (the same command goes on)" in said
    assert "limits of the config's [budget] hold here" in said
    assert "eval RUN --shrunk" in said


def test_json(cli: Any, run: Any) -> None:
    """One document on stdout."""
    path = run()
    result = cli("shrink", path, "--max-tries", "1", "--allowance", "10", "--json")
    document = json.loads(result.stdout)
    assert document["file"] == str(path / "shrunk_prompt.txt")
    assert document["val"]["before"]["examples"] == 87
    assert document["front"][0]["tokens"] >= document["front"][-1]["tokens"]


def test_one_that_did_not_come_to_its_end_goes_on_from_there(cli: Any, small: Any, tmp_path: Path) -> None:
    """Each answer is paid for once, and the short prompt is that of one go."""
    path = tmp_path / "run"
    assert cli("train", small(rows=12), "--quiet", "--run-dir", path).exit_code == 0
    settings = ("--max-tries", "3", "--allowance", "30")
    with LoopbackServer(TicketsModel(seed=0)) as server:
        assert cli("shrink", path, "--model", "m", "--base-url", server.base_url, *settings).exit_code == 0
        calls, whole = server.requests, json.loads((path / "shrink.json").read_text(encoding="utf-8"))
    assert not (path / "unfinished").exists()
    with LoopbackServer(TicketsModel(seed=0)) as server:
        asked = ("shrink", path, "--model", "m", "--base-url", server.base_url, *settings)
        larger = on_record(Budget(calls=1))
        for number, limit in enumerate((10, 25, 40)):
            ended = cli(*asked, "--budget-calls", str(limit))
            assert (ended.exit_code, server.requests) == (3, limit)
            said = "raise the limit of calls" if number == 0 else f"the budget was spent; {larger}"
            assert said in " ".join(ended.stderr.split())
        assert cli(*asked).exit_code == 0
        assert server.requests == calls
    found = json.loads((path / "shrink.json").read_text(encoding="utf-8"))
    for each in (found, whole):
        del each["seconds"], each["time"]
    assert found == whole
    assert not (path / "unfinished").exists()
