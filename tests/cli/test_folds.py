"""``train --folds``: the verdict is of all examples, and what was paid for is not paid for again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine.cli.completion import run_folders
from textgrad_engine.testing import simulated_task

PROMPT = simulated_task(rules=4, seed=1, train=1, val=1, test=1).seed_prompt


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a config, its model, and 50 examples in three files."""
    monkeypatch.chdir(tmp_path)
    rows = simulated_task(rules=4, seed=1, train=50, val=1, test=1).train
    for name, part in (("train", rows[:20]), ("val", rows[20:35]), ("test", rows[35:])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
    (tmp_path / "parcels.py").write_text(
        "from textgrad_engine.testing import simulated_task\n"
        "model = simulated_task(rules=4, seed=1, train=1, val=1, test=1).model\n"
    )
    (tmp_path / "config.toml").write_text(
        f"[program]\nsystem = {json.dumps(PROMPT)}\nuser = '{{parcel}}'\n"
        "[data]\ntrain = 'train.jsonl'\nval = 'val.jsonl'\ntest = 'test.jsonl'\n"
        "[models]\nforward = 'parcels:model'\n"
    )
    return tmp_path


def test_fifty_examples_show_what_fifteen_do_not(cli: Any, home: Path) -> None:
    """Each tests once; the report says what the verdict is about, and `show` prints it again."""
    done = cli("train", home, "--folds", 5, "--run-dir", "runs/a")
    assert done.exit_code == 0
    assert "runs/a: 5 folds of 50 examples" in done.stdout
    assert "on all folds" in done.stdout
    assert "The final prompt is trained on all examples, and itself tested on none." in done.stdout
    assert (home / "runs/a/final/best_prompt.txt").is_file()
    shown = cli("show", "runs/a")
    assert shown.stdout.startswith(done.stdout.partition("  used")[0])
    found = json.loads(cli("show", "runs/a", "--json").stdout)
    page = Path(__file__).parents[2].joinpath("docs/json.md").read_text(encoding="utf-8")
    section = page.partition("## `train --folds K`")[2].partition("\n## ")[0]
    assert all(f"`{key}`" in section for key in found)
    assert (found["verdict"], found["comparison"]["n"], len(found["folds"])) == ("better", 50, 5)
    assert "such as runs/a/final" in cli("eval", "runs/a").stderr
    assert cli("show", "runs/a/final", "--line", 5).exit_code == 0


def test_what_a_budget_ended_goes_on(cli: Any, home: Path) -> None:
    """The same as in one go, each call paid for once."""
    whole = json.loads(cli("train", home, "--folds", 3, "--run-dir", "runs/whole", "--json").stdout)
    cut = cli("train", home, "--folds", 3, "--run-dir", "runs/cut", "--budget-calls", 500, "--quiet")
    assert cut.exit_code == 3
    assert "budget spent; tested" in cut.stdout
    none = cli("train", home, "--folds", 3, "--run-dir", "runs/none", "--budget-calls", 2)
    assert none.exit_code == 2
    assert "equal part of what is left of the budget: the budget of 0 calls" in " ".join(none.stdout.split())
    assert "tested once" not in none.stdout
    assert "`textgrad-engine resume runs/none` goes on with it, with a larger --budget" in none.stderr
    assert (home / "runs/cut/fold-3/events.jsonl").is_file()  # each had its share
    again = json.loads(cli("resume", "runs/cut", "--budget-calls", 100_000, "--json").stdout)
    for each in (whole, again):
        each.pop("run"), each.pop("seconds")
    assert again == whole


def killed_in_its_second_fold(cli: Any) -> Path:
    """A cross-validation whose process was killed: its second run is on record as far as a small budget let it come."""
    run = Path("runs/killed")
    cli("train", ".", "--folds", 3, "--run-dir", run, "--budget-calls", 500)
    shutil.rmtree(run / "fold-3")
    shutil.rmtree(run / "final")
    (run / "fold-2/result.json").unlink()
    return run


def test_what_was_killed_is_not_called_finished(cli: Any, home: Path) -> None:
    """`show` ends with 1, names the run and what goes on with all of them, and counts the folds that were tested."""
    run = killed_in_its_second_fold(cli)
    shown = cli("show", run)
    assert shown.exit_code == 1
    assert "on 1 fold" in shown.stdout
    assert f"The run in {run / 'fold-2'} was killed." in shown.stderr
    assert f"`textgrad-engine resume {run}` goes on with it." in shown.stderr
    as_json = cli("show", run, "--json")
    assert (as_json.exit_code, json.loads(as_json.stdout)["status"]) == (1, None)
    part = cli("show", run / "fold-2")
    assert f"`textgrad-engine resume {run}` goes on with all the runs there" in " ".join(part.stdout.split())
    assert f"go on with all of them: textgrad-engine resume {run}" in cli("resume", run / "fold-2").stderr
    assert run_folders("runs/k") == ["runs/killed"]
    assert cli("resume", run, "--budget-calls", 100_000).exit_code == 0
    assert cli("show", run).exit_code == 0


def test_what_is_gone_is_bought_again_with_anyway(cli: Any, home: Path) -> None:
    """Without it nothing is asked, and it counts as wrong use."""
    run = killed_in_its_second_fold(cli)
    (run / "fold-2/completions.jsonl").write_bytes(b"")
    refused = cli("resume", run, "--budget-calls", 100_000)
    assert refused.exit_code == 2
    assert f"textgrad-engine resume {run.absolute()} --anyway" in refused.stderr
    assert cli("resume", run, "--budget-calls", 100_000, "--anyway").exit_code == 0


def test_what_ended_before_its_first_call_is_begun_anew(cli: Any, home: Path) -> None:
    """It was killed in the moment in which its folder was made."""
    run = killed_in_its_second_fold(cli)
    (run / "fold-1/config.json").unlink()
    refused = cli("resume", run)
    assert (refused.exit_code, "ended before its first fold" in refused.stderr) == (2, True)


def test_a_fold_that_was_killed_at_its_beginning_goes_on(cli: Any, home: Path) -> None:
    """There is no config.json yet."""
    run = killed_in_its_second_fold(cli)
    shutil.rmtree(run / "fold-2")
    (run / "fold-2").mkdir()
    for name in ("events", "completions"):
        (run / f"fold-2/{name}.jsonl").write_bytes(b"")
    assert cli("resume", run, "--budget-calls", 100_000).exit_code == 0


def test_changed_data_is_refused_and_changes_nothing(cli: Any, home: Path) -> None:
    """What is known of the folder stays, so that it can be shown."""
    run = killed_in_its_second_fold(cli)
    known = (run / "folds.json").read_bytes()
    rows = (home / "train.jsonl").read_text().splitlines(keepends=True)
    (home / "train.jsonl").write_text("".join(rows[3:]))
    refused = cli("resume", run, "--budget-calls", 100_000)
    assert (refused.exit_code, "it had other examples or clusters" in refused.stderr) == (2, True)
    assert (run / "folds.json").read_bytes() == known
    assert "33 of 50 examples were not tested" in cli("show", run).stdout


def test_a_place_where_nothing_can_be_written_is_named(cli: Any, home: Path) -> None:
    """Before anything is paid for."""
    refused = cli("train", ".", "--folds", 3, "--run-dir", "parcels.py/run")
    assert (refused.exit_code, "name another place" in refused.stderr) == (2, True)


def test_what_ends_at_once_says_what_is_left(cli: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Ctrl-C twice does."""
    run = killed_in_its_second_fold(cli)

    def interrupted(*given: Any, **named: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("textgrad_engine.cli.folds.fit_parts", interrupted)
    done = cli("resume", run)
    assert done.exit_code == 130
    assert f"interrupted; what was paid for until then is in {run};" in done.stderr


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--folds", "51"], "50 examples with inputs of their own cannot be dealt to 51 folds"),
        (["--folds", "5", "--run-dir", "."], "name a new or empty folder"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_paid_for(
    cli: Any, home: Path, given: list[str], said: str
) -> None:
    """With exit code 2."""
    done = cli("train", home, *given)
    assert (done.exit_code, said in " ".join(done.stderr.split())) == (2, True)


def test_guards_are_of_one_validation_set(cli: Any, home: Path) -> None:
    """Every fold has another one."""
    config = home / "config.toml"
    config.write_text(config.read_text() + "[guards]\nnever_break = ['train-25']\n")
    done = cli("train", home, "--folds", 5)
    assert (done.exit_code, "[guards] are about validation examples" in done.stderr) == (2, True)


def test_examples_that_other_runs_have_tested_on_are_told(cli: Any, home: Path) -> None:
    """Who looks three times finds something by luck more often than who looks once: said before it is paid for, too."""
    first = cli("train", home)
    assert "opened the same test examples" not in first.stdout
    cli("eval", "runs/" + home.name + "-1")
    third = cli("train", home, "--optimizer", "PatchSearch")
    said = " ".join(third.stdout.split())
    assert "Other runs had opened the same test examples 2 times before. Who looks 3 times at prompts" in said
    assert "By this run the test set was opened once" in said
    shown = json.loads(cli("show", f"runs/{home.name}-2", "--json").stdout)
    assert (shown["test_openings"], shown["test_openings_before"]) == (1, 2)
    assert "had opened the same test examples 2 times" in " ".join(third.stderr.split())
    (home / "test.jsonl").write_text("".join((home / "test.jsonl").read_text().splitlines(keepends=True)[:4]))
    assert "opened the same test examples 3 times" in " ".join(cli("train", home).stdout.split())


def test_what_a_test_set_can_show_is_said_before_anything_is_paid_for(cli: Any, home: Path) -> None:
    """By `estimate`, and at the beginning of `train`."""
    said = "15 test examples show a true difference of 0.48 4 times in 5, where a fifth of the answers change"
    assert said in " ".join(cli("estimate", home).stdout.split())
    assert said in " ".join(cli("train", home).stderr.split())
    (home / "test.jsonl").write_text("".join((home / "test.jsonl").read_text().splitlines(keepends=True)[:4]))
    assert "4 test examples show no difference reliably, however large" in " ".join(
        cli("estimate", home).stdout.split()
    )
    config = home / "config.toml"
    config.write_text(config.read_text().replace("test = 'test.jsonl'\n", ""))
    assert "Without a test set nothing will be shown" in " ".join(cli("estimate", home).stdout.split())


def test_one_file_is_enough(cli: Any, home: Path) -> None:
    """Of 50 examples: `train` alone says what to do with them, and that does it."""
    every = "".join((home / f"{name}.jsonl").read_text() for name in ("train", "val", "test"))
    (home / "all.jsonl").write_text(every)
    config = home / "config.toml"
    lines = "train = 'train.jsonl'\nval = 'val.jsonl'\ntest = 'test.jsonl'\n"
    config.write_text(config.read_text().replace(lines, "train = 'all.jsonl'\n"))
    refused = cli("train", home)
    assert (refused.exit_code, "`train --folds 5` tests every example" in refused.stderr) == (2, True)
    assert json.loads(cli("train", home, "--folds", 5, "--json").stdout)["comparison"]["n"] == 50


def test_without_a_validation_set_the_training_examples_validate(cli: Any, home: Path) -> None:
    """Of few examples that finds more; what is tested is apart all the same."""
    config = home / "config.toml"
    config.write_text(config.read_text().replace("val = 'val.jsonl'\n", ""))
    done = cli("train", home, "--run-dir", "runs/a")
    assert done.exit_code == 0
    assert "20 examples to train, the same to validate, 15 to test" in done.stderr
    assert "are in train, too" not in done.stdout + done.stderr
    assert cli("eval", "runs/a").exit_code == 0
    assert cli("shrink", "runs/a").exit_code == 0
    assert cli("estimate", home).exit_code == 0
