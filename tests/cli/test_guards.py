"""The table [guards]: what no new prompt may break, with errors that name the line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine.cli.config_file import load_config
from textgrad_engine.errors import ConfigError


def with_guards(small: Any, text: str) -> Path:
    """A small config with the table at its end."""
    folder: Path = small()
    with (folder / "config.toml").open("a", encoding="utf-8") as file:
        file.write("\n[guards]\n" + text)
    return folder


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('never_break = ["t9999"]\n', 1, r"\[guards\] never_break names 't9999', and no validation example"),
        ('never_break = [\n  "t9999",\n]\n', 2, "never_break names 't9999'"),
        ('never_break = ["t013"]\n', 1, "names 't013', which is a training example; guards are about validation ex"),
        ('never_break = "t1"\n', 1, r"\[guards\] never_break"),
        ("[guards.floors.target]\nbiling = 0.8\n", 2, "floors names target = 'biling'"),
        ("[guards.floors.queue]\nbilling = 1.5\n", 2, "'billing' is 1.5, and scores run from 0 to 1"),
        ('[guards.floors.target]\nbilling = "high"\n', 2, r"\[guards.floors.target\] billing"),
        ("[guards.floors.queue]\nbilling = 80\n", 2, "floor of queue = 'billing' is 80, and scores run from 0 to 1"),
        ("never_brake = []\n", 1, "did you mean 'never_break'"),
        ("reruns = 2\n", 1, r"\[guards\] reruns means nothing without never_break"),
        ("reruns = -1\n", 1, r"\[guards\] reruns = -1: .*greater than or equal to 0"),
        ("passing = 0.5\n", 1, r"\[guards\] passing means nothing without never_break; take it out, or name examples"),
        ('never_break = ["t126"]\npassing = 75\n', 2, "passing is 75, and scores run from 0 to 1; .*above the lowest"),
    ],
)
def test_errors_name_the_line(cli: Any, small: Any, text: str, line: int, message: str) -> None:
    """Before anything is paid for, with exit code 2."""
    folder = with_guards(small, text)
    config = (folder / "config.toml").read_text(encoding="utf-8")
    start = config[: config.index("[guards]\n")].count("\n") + 1
    for command in ("train", "eval", "compare", "estimate"):
        more = ("--config", folder) if command == "compare" else ()
        result = cli(command, folder, *more)
        assert (command, result.exit_code) == (command, 2)
        assert f"config.toml:{start + line}: " in result.stderr
        assert re.search(message, result.stderr)
    assert not (folder / "runs").exists()


def test_a_run_keeps_its_guards(cli: Any, small: Any, tmp_path: Path) -> None:
    """Every validation example that the seed prompt has right still is, and refusals are in the journal."""
    plain = tmp_path / "plain"
    assert cli("train", small(), "--run-dir", plain, "--quiet").exit_code == 0
    seed = json.loads((plain / "result.json").read_text(encoding="utf-8"))["seed_val"]
    right = [name for name, score in zip(seed["ids"], seed["scores"]) if score == 1.0]
    guarded = tmp_path / "guarded"
    folder = with_guards(small, f"never_break = {json.dumps(right)}\n")
    assert cli("train", folder, "--run-dir", guarded, "--quiet").exit_code == 0
    best = json.loads((guarded / "result.json").read_text(encoding="utf-8"))["best_val"]
    after = dict(zip(best["ids"], best["scores"]))
    assert right
    assert all(after[name] == 1.0 for name in right)


def test_what_passes_is_not_refused(cli: Any, small: Any, tmp_path: Path) -> None:
    """A metric gives parts of a point: with half a point as what passes, examples may lose the other half."""
    half = "def score(said, wanted):\n    return 0.5 + 0.5 * (said == wanted)\n"
    metric = '[metric]\nfunction = "half:score"\npurpose = "is the right queue"\nscale = [0, 1]'
    refused = {}
    for passing in ("", "passing = 0.5\n"):
        folder = small(('[metric]\nname = "exact_match"', metric), rows=60)
        (folder / "half.py").write_text(half, encoding="utf-8")
        names = [json.loads(line)["id"] for line in (folder / "val.jsonl").read_text(encoding="utf-8").splitlines()]
        with (folder / "config.toml").open("a", encoding="utf-8") as file:
            file.write(f"\n[guards]\nnever_break = {json.dumps(names)}\n{passing}")
        run = tmp_path / f"run{len(refused)}"
        result = cli("train", folder, "--run-dir", run, "--quiet")
        assert result.exit_code == 0, result.stderr
        kept = json.loads((run / "config.json").read_text(encoding="utf-8"))["config"]["guards"]
        assert kept["passing"] == (0.5 if passing else None)
        refused[passing] = (run / "events.jsonl").read_text(encoding="utf-8").count("must never break: 1.000 -> 0.500")
    assert refused[""]
    assert not refused["passing = 0.5\n"]


def test_ids_may_be_numbers_as_in_the_table(small: Any) -> None:
    """A table that numbers its rows has the ids 1 and 2, and so have `Guards([1, 2])` in Python."""
    assert load_config(with_guards(small, "never_break = [1, 't2']\n")).guards.never_break == ["1", "t2"]
    with pytest.raises(ConfigError, match=r"\[guards\] never_break\[0\] = True: should be a valid string"):
        load_config(with_guards(small, "never_break = [true]\n"))


def test_an_evaluation_tells_which_floors_are_not_reached(cli: Any, small: Any) -> None:
    """A cheaper model that is no worse on the whole may be so on one slice, and the run's config has its floor."""
    folder = with_guards(small, "[guards.floors.queue]\naccount = 1.0\nshipping = 0.0\n")
    found = json.loads(cli("eval", folder, "--json").stdout)
    low, zero = found["floors"]
    assert (low["of"], low["least"], low["reached"]) == ("queue = 'account'", 1.0, False)
    assert (zero["of"], zero["reached"], zero["unanswered"]) == ("queue = 'shipping'", True, 0)
    by = {each["value"]: each for each in json.loads(cli("eval", folder, "--by", "queue", "--json").stdout)["slices"]}
    assert (low["mean"], low["examples"]) == (by["account"]["mean"], by["account"]["examples"])
    missed = f"loor not reached: queue = 'account', {low['mean']:.3f} of 1"
    assert f"F{missed}." in " ".join(cli("eval", folder).stdout.split())
    assert cli("eval", folder, "--quiet").stdout.endswith(f"; f{missed}\n")
    assert json.loads(cli("eval", small(), "--json").stdout)["floors"] == []


def test_of_an_evaluation_that_is_ended_early_floors_go_by_what_was_answered(cli: Any, small: Any) -> None:
    """A job that is killed after three examples read that a slice misses its floor of which none was come to."""
    lines = [f"{queue} = 1.0\n" for queue in ("account", "billing", "returns", "shipping", "technical", "trust")]
    folder = with_guards(small, "[guards.floors.queue]\n" + "".join(lines))
    (folder / "b.txt").write_text("Sort.", encoding="utf-8")
    for command in (("eval",), ("eval", "--quiet"), ("compare", "--prompt", folder / "b.txt")):
        name, *options = command
        ended = cli(name, folder, *options, "--budget-calls", "3")
        assert ended.exit_code == 3
        said = " ".join(ended.stdout.split())
        assert "not measured" not in said
        assert re.search(r"loors? not reached: queue = 'shipping', 0\.000 of 1.*, by what was answered", said)


def test_a_check_of_an_evaluation_goes_by_floors_too(cli: Any, small: Any, tmp_path: Path) -> None:
    """They are what its user asks of each slice; the mean alone hides one that fell."""
    folder = with_guards(small, "[guards.floors.queue]\naccount = 1.0\nshipping = 0.0\n")
    assert cli("eval", folder).exit_code == 0
    low = cli("eval", folder, "--at-least", "0.01")
    assert low.exit_code == 4
    assert "floor not reached: queue = 'account', " in low.stderr
    assert "below --at-least" not in low.stderr
    assert cli("train", folder, "--run-dir", tmp_path / "run", "--budget-calls", "60", "-q").exit_code in (0, 3)
    same = cli("eval", tmp_path / "run", "--not-worse")
    assert (same.exit_code, "floor not reached: queue = 'account', " in same.stderr) == (4, True)
    reached = with_guards(small, "[guards.floors.queue]\nshipping = 0.0\n")
    assert cli("eval", reached, "--at-least", "0.01").exit_code == 0


SHORT = "def short(answer):\n    return 1.0 if len(answer) < 12 else 0.0\n"


def with_metrics(small: Any, *lines: str) -> Path:
    """A small config whose score is made of the right queue, and of short answers with these lines."""
    second = '[[metric]]\nfunction = "short:short"\npurpose = "is short"\n' + "".join(f"{line}\n" for line in lines)
    folder: Path = small(('[metric]\nname = "exact_match"\n', f"[[metric]]\nweight = 4\n\n{second}"))
    (folder / "short.py").write_text(SHORT, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("floor", "message"),
    [
        ("2", "[[metric]] floor: the floor of the metric 'short:short' is 2, and scores run from 0 to 1"),
        ("nan", "[[metric]] floor = nan: should be a finite number"),
        ('"high"', "[[metric]] floor = 'high': should be a valid number"),
    ],
)
def test_a_floor_of_a_metric_that_cannot_be_names_its_line(cli: Any, small: Any, floor: str, message: str) -> None:
    """Before anything is paid for, with exit code 2."""
    folder = with_metrics(small, f"floor = {floor}")
    config = (folder / "config.toml").read_text(encoding="utf-8")
    result = cli("train", folder)
    assert result.exit_code == 2
    assert f"config.toml:{config[: config.index('floor = ')].count(chr(10)) + 1}: " in result.stderr
    assert message in " ".join(result.stderr.split())


def test_a_floor_of_the_only_metric_is_refused(cli: Any, small: Any) -> None:
    """No change is kept that scores less."""
    result = cli("train", small(('name = "exact_match"\n', 'name = "exact_match"\nfloor = 0.5\n')))
    assert result.exit_code == 2
    assert "[metric] floor is for one of several metrics" in " ".join(result.stderr.split())


def test_a_run_says_whether_a_metric_stays_above_its_floor(cli: Any, small: Any, tmp_path: Path) -> None:
    """Also one of folds, as every metric scores each validation set."""
    folder = with_metrics(small, "floor = 0.75")
    result = cli("train", folder, "--run-dir", tmp_path / "run")
    assert result.exit_code == 0
    said = " ".join(result.stdout.split())
    assert "he floor of 0.75 under the metric 'short:short' is reached: 1.000 -> 1.000" in said
    assert cli("estimate", folder).exit_code == 0
    assert cli("train", folder, "--folds", "2", "--run-dir", tmp_path / "folds", "--quiet").exit_code == 0
    of_fold = " ".join(cli("show", tmp_path / "folds" / "fold-1").stdout.split())
    assert "he floor of 0.75 under the metric 'short:short' is reached" in of_fold


def test_a_run_of_before_reruns_goes_on_as_it_was_begun(cli: Any, small: Any, tmp_path: Path) -> None:
    """Its config.json has no such key, as one run of each example decided."""
    folder = tmp_path / "run"
    config = with_guards(small, 'never_break = ["t001"]\nreruns = 0\n')
    val = [json.loads(line)["id"] for line in (config / "val.jsonl").read_text(encoding="utf-8").splitlines()]
    text = (config / "config.toml").read_text(encoding="utf-8")
    (config / "config.toml").write_text(text.replace('["t001"]', json.dumps(val[:3])), encoding="utf-8")
    assert cli("train", config, "--run-dir", folder, "--quiet").exit_code == 0
    kept = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert kept["config"]["guards"].pop("reruns") == 0
    (folder / "config.json").write_text(json.dumps(kept), encoding="utf-8")
    before = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    calls = (folder / "completions.jsonl").read_text(encoding="utf-8")
    (folder / "result.json").unlink()
    resumed = cli("resume", folder)
    assert resumed.exit_code == 0, resumed.stderr
    after = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert after["best"] == before["best"]
    assert (folder / "completions.jsonl").read_text(encoding="utf-8").count("\n") == calls.count("\n")
