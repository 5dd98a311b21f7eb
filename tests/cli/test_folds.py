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
        each.pop("run"), each.pop("seconds"), each.pop("test_openings_before")
    assert again == whole


def cut_in_the_third_fold(cli: Any, home: Path) -> Any:
    """An error of the model's in the third of three folds."""
    (home / "broken.py").write_text(
        "from parcels import model as inner\n"
        "class Broken:\n"
        "    name, left = inner.name, 700\n"
        "    async def complete(self, request):\n"
        "        Broken.left -= 1\n"
        "        if not Broken.left:\n"
        "            raise KeyError('the machine is gone')\n"
        "        return await inner.complete(request)\n"
        "model = Broken()\n"
    )
    config = home / "config.toml"
    config.write_text(config.read_text().replace("parcels:model", "broken:model"))
    return cli("train", home, "--folds", 3, "--run-dir", "runs/cut")


def test_what_an_error_ended_is_not_shown_as_the_whole(cli: Any, home: Path) -> None:
    """The verdict is of the folds that were tested, and the way on is said; then it is what it would have been."""
    cut = cut_in_the_third_fold(cli, home)
    assert cut.exit_code == 1
    assert "`textgrad-engine resume runs/cut` goes on with it" in " ".join(cut.stderr.split())
    shown = cli("show", "runs/cut")
    assert shown.exit_code == 1
    assert "3 folds of 50 examples; it did not come to its end" in shown.stdout
    assert "on 2 of 3 folds" in shown.stdout
    assert "Without a result so far, and not counted here: fold-3, final." in shown.stdout
    assert "`textgrad-engine resume runs/cut` goes on with it" in shown.stderr
    found = json.loads(cli("show", "runs/cut", "--json").stdout)
    assert (found["status"], found["missing"]) == (None, ["fold-3", "final"])
    assert "such as runs/cut/fold-1" in cli("report", "runs/cut").stderr
    assert cli("resume", "runs/cut", "--quiet").exit_code == 0
    assert "better over 3 folds" in cli("resume", "runs/cut", "--quiet").stdout
    assert "on all folds" in cli("show", "runs/cut").stdout


@pytest.mark.parametrize("what", ["fewer", "other"])
def test_with_other_data_nothing_goes_on_and_nothing_is_overwritten(cli: Any, home: Path, what: str) -> None:
    """Else the folds would be told by ids that they do not have, for good."""
    cut_in_the_third_fold(cli, home)
    before, data = (home / "runs/cut/folds.json").read_bytes(), (home / "test.jsonl").read_text()
    lines = data.splitlines(keepends=True)
    changed = "".join(lines[:9]) if what == "fewer" else data.replace('"target": "K4"', '"target": "K5"')
    assert changed != data
    (home / "test.jsonl").write_text(changed)
    refused = cli("resume", "runs/cut")
    assert (refused.exit_code, "not the examples that it was begun with" in refused.stderr) == (2, True)
    assert (home / "runs/cut/folds.json").read_bytes() == before
    assert "on 2 of 3 folds" in cli("show", "runs/cut").stdout
    (home / "test.jsonl").write_text(data)
    assert cli("resume", "runs/cut", "--quiet").exit_code == 0


def test_what_finished_folds_took_is_not_shared_out_again(cli: Any, home: Path) -> None:
    """A limit that is named when it goes on holds for the whole; two folds had used more than a quarter of this one."""
    cut_in_the_third_fold(cli, home)
    used = json.loads(cli("show", "runs/cut", "--json").stdout)["total"]["calls"]
    again = json.loads(cli("resume", "runs/cut", "--budget-calls", used + 250, "--json").stdout)
    assert used / 2 > (used + 250) / 4
    assert (again["status"], len(again["folds"])) == ("budget", 3)
    assert again["total"]["calls"] <= used + 250


def test_what_is_in_the_folder_and_does_not_fit_is_said(cli: Any, home: Path) -> None:
    """In words."""
    cut_in_the_third_fold(cli, home)
    kept = home / "runs/cut/folds.json"
    (home / "runs/early").mkdir()
    (home / "runs/early/folds.json").write_bytes(kept.read_bytes())
    none = cli("resume", "runs/early")
    assert (none.exit_code, "no fold was begun and nothing was paid for" in none.stderr) == (2, True)
    assert "tested on" not in cli("show", "runs/early").stdout
    kept.write_text(kept.read_text().replace("train-", "other-"))
    damaged = cli("show", "runs/cut")
    assert (damaged.exit_code, "names other examples than the folds have" in damaged.stderr) == (2, True)


def test_a_control_says_that_it_is_one(cli: Any, home: Path) -> None:
    """As the report of a single run does."""
    done = cli("train", home, "--folds", 3, "--no-feedback", "--run-dir", "runs/a")
    assert "a control: the optimizer got no feedback" in done.stdout
    assert "a control: the optimizer got no feedback" in cli("show", "runs/a").stdout


def test_what_controls_found_is_said_to_be_in_each_run(cli: Any, home: Path) -> None:
    """They are paid for, and are not in the report of the folds."""
    done = cli("train", home, "--folds", 2, "--controls", "--run-dir", "runs/a")
    assert "What the controls found is in the report of each run" in " ".join(done.stdout.split())
    assert "Beside controls" in cli("show", "runs/a/fold-1").stdout


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
    assert "runs/killed: 3 folds of 50 examples; it did not come to its end" in shown.stdout
    assert "on 1 of 3 folds" in " ".join(shown.stdout.split())
    assert "Without a result so far, and not counted here: fold-2, fold-3, final." in shown.stdout
    assert f"`textgrad-engine resume {run}` goes on with it" in shown.stderr
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
    assert (refused.exit_code, "no fold was begun and nothing was paid for" in refused.stderr) == (2, True)


def test_a_fold_that_was_killed_at_its_beginning_goes_on(cli: Any, home: Path) -> None:
    """There is no config.json yet."""
    run = killed_in_its_second_fold(cli)
    shutil.rmtree(run / "fold-2")
    (run / "fold-2").mkdir()
    for name in ("events", "completions"):
        (run / f"fold-2/{name}.jsonl").write_bytes(b"")
    assert cli("resume", run, "--budget-calls", 100_000).exit_code == 0


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


def test_folds_are_one_look_and_count_those_before(cli: Any, home: Path) -> None:
    """They have tested each example once; who does it again, or takes some of them for a test set, looks again."""
    first = cli("train", home, "--folds", 3, "--run-dir", "runs/a")
    assert "opened the same test examples" not in first.stdout + first.stderr
    again = cli("train", home, "--folds", 3, "--run-dir", "runs/b")
    assert "had opened the same test examples 1 time before" in " ".join(again.stderr.split())
    assert "had opened the same test examples 1 time before" in " ".join(cli("show", "runs/b").stdout.split())
    assert json.loads(cli("show", "runs/b", "--json").stdout)["test_openings_before"] == 1
    assert "had opened the same test examples 2 times" in " ".join(cli("train", home).stdout.split())


@pytest.mark.parametrize(
    "config", ["{", "[]", "null", '{"rows": ["x"]}', '{"rows": {"test": ["x"]}}', '{"rows": null}', '{"config": {}}']
)
def test_what_else_lies_beside_a_run_ends_nothing(cli: Any, home: Path, config: str) -> None:
    """A folder ``runs`` may be that of other programs, too."""
    for name in ("config.json", "folds.json"):
        (home / "runs" / name.partition(".")[0]).mkdir(parents=True)
        (home / "runs" / name.partition(".")[0] / name).write_text(config)
    (home / "runs/config/events.jsonl").write_text('{"event": "RunStarted"}\n')
    assert cli("train", home, "--run-dir", "runs/a", "--budget-calls", 20).exit_code == 3


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


def test_copies_show_no_more_than_one_of_them(cli: Any, home: Path) -> None:
    """The verdict takes them for a cluster, so what is said before it must, too."""
    rows = [json.loads(line) for line in (home / "test.jsonl").read_text().splitlines()]
    again = [{**row, "id": f"{row['id']}-{n}"} for n in range(10) for row in rows]
    (home / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in again))
    said = "150 test examples, of which 15 are different ones, show a true difference of 0.48 4 times in 5"
    assert said in " ".join(cli("estimate", home).stdout.split())


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
