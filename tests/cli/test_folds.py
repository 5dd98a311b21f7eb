"""``train --folds``: the verdict is of all examples, and what was paid for is not paid for again."""

from __future__ import annotations

import functools
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine.cli.completion import run_folders
from textgrad_engine.store.lock import Lock
from textgrad_engine.testing import simulated_task

from ..runner import Result, invoke

TASK = simulated_task(rules=4, seed=1, train=50, val=30, test=1)
PROMPT = TASK.seed_prompt

FIFTY, FEW = (20, 15, 15), (10, 8, 6)
"""How many examples the three files have: so many that folds show a gain, and enough where nothing is to be shown."""


def begin(folder: Path, sizes: tuple[int, int, int] = FIFTY) -> None:
    """A config, its model, and examples in three files."""
    train, val, test = sizes
    rows = TASK.train
    parts = (rows[:train], rows[train : train + val], rows[train + val : train + val + test])
    for name, part in zip(("train", "val", "test"), parts):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
    (folder / "parcels.py").write_text(
        "from textgrad_engine.testing import simulated_task\n"
        "model = simulated_task(rules=4, seed=1, train=1, val=1, test=1).model\n"
    )
    (folder / "config.toml").write_text(
        f"[program]\nsystem = {json.dumps(PROMPT)}\nuser = '{{parcel}}'\n"
        "[data]\ntrain = 'train.jsonl'\nval = 'val.jsonl'\ntest = 'test.jsonl'\n"
        "[models]\nforward = 'parcels:model'\n[train]\nmax_epochs = 1\n"
    )


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that commands are given in."""
    begin(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def few(home: Path) -> Path:
    """The same folder with fewer examples."""
    begin(home, FEW)
    return home


BROKEN = """
from parcels import model as inner
class Broken:
    name, left = inner.name, 190
    async def complete(self, request):
        Broken.left -= 1
        if not Broken.left:
            raise KeyError('the machine is gone')
        return await inner.complete(request)
model = Broken()
"""
"""A model that is gone in the third of three folds."""


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[Path, Result]]:
    """Makes a cross-validation in a folder of its own, each of them once; the folder is to be copied."""

    @functools.cache
    def make(
        name: str, *args: str, folds: int = 3, model: str = "parcels", sizes: tuple[int, int, int] = FEW
    ) -> tuple[Path, Result]:
        folder = tmp_path_factory.mktemp(name)
        begin(folder, sizes)
        (folder / "broken.py").write_text(BROKEN)
        config = folder / "config.toml"
        config.write_text(config.read_text().replace("parcels:model", f"{model}:model"))
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            return folder, invoke("train", ".", "--folds", str(folds), "--run-dir", f"runs/{name}", *args)

    return make


@pytest.fixture
def whole(once: Any, home: Path) -> str:
    """A cross-validation of fifty examples that is finished."""
    shutil.copytree(once("a", sizes=FIFTY)[0], home, dirs_exist_ok=True)
    return "runs/a"


@pytest.fixture
def whole_of_few(once: Any, home: Path) -> str:
    """One of few examples that is finished."""
    shutil.copytree(once("a")[0], home, dirs_exist_ok=True)
    return "runs/a"


@pytest.fixture
def spent(once: Any, home: Path) -> Result:
    """One of few examples that a budget ended in each of its runs."""
    folder, result = once("cut", "--budget-calls", "210", "--quiet")
    shutil.copytree(folder, home, dirs_exist_ok=True)
    return result


@pytest.fixture
def control(once: Any, home: Path) -> Result:
    """One in `runs/b`, in two folds, whose optimizer got no feedback."""
    folder, result = once("b", "--no-feedback", folds=2, sizes=FIFTY)
    shutil.copytree(folder, home, dirs_exist_ok=True)
    return result


@pytest.fixture
def cut(once: Any, home: Path) -> Result:
    """One that an error ended in its third fold."""
    folder, result = once("cut", model="broken")
    shutil.copytree(folder, home, dirs_exist_ok=True)
    return result


@pytest.fixture
def run(once: Any, home: Path) -> Path:
    """One whose process was killed: its second run is on record as far as a small budget let it come."""
    shutil.copytree(once("killed", "--budget-calls", "210", folds=2)[0], home, dirs_exist_ok=True)
    path = Path("runs/killed")
    shutil.rmtree(path / "final")
    (path / "fold-2/result.json").unlink()
    return path


def test_fifty_examples_show_what_fifteen_do_not(cli: Any, home: Path) -> None:
    """In one file: `train` alone says what to do with them. Each tests once, and `show` prints the report again."""
    every = "".join((home / f"{name}.jsonl").read_text() for name in ("train", "val", "test"))
    (home / "all.jsonl").write_text(every)
    config = home / "config.toml"
    lines = "train = 'train.jsonl'\nval = 'val.jsonl'\ntest = 'test.jsonl'\n"
    config.write_text(config.read_text().replace(lines, "train = 'all.jsonl'\n"))
    refused = cli("train", home)
    assert (refused.exit_code, "with `--folds 5` every example is tested" in refused.stderr) == (2, True)
    done = cli("train", home, "--folds", 5, "--run-dir", "runs/a")
    assert done.exit_code == 0
    assert "runs/a: 5 folds of 50 examples" in done.stdout
    assert "on all folds" in done.stdout
    assert done.stderr.count("validate, too") == 2  # once of the folds, and once of the last run, which nothing tests
    assert "The prompt to use: runs/a/final/best_prompt.txt" in done.stdout
    said = " ".join(done.stdout.split())
    assert "It was trained on all 50 examples, so none tests it. But the folds' prompts, each made in the same" in said
    assert "way from about 40 of them, gained +0." in said
    assert "The prompt to use is in runs/a/final/best_prompt.txt" in done.stderr
    assert (home / "runs/a/final/best_prompt.txt").is_file()
    shown = cli("show", "runs/a")
    assert shown.stdout.startswith(done.stdout.partition("  used")[0])
    found = json.loads(cli("show", "runs/a", "--json").stdout)
    assert (found["verdict"], found["comparison"]["n"], len(found["folds"])) == ("better", 50, 5)
    assert (found["use"], found["controls"]) == ("final", [])
    assert cli("show", "runs/a/final", "--line", 5).exit_code == 0


def test_what_a_budget_ended_goes_on(cli: Any, home: Path, whole_of_few: str, spent: Result) -> None:
    """The same as in one go, each call paid for once."""
    in_one_go = json.loads(cli("show", whole_of_few, "--json").stdout)
    assert spent.exit_code == 3
    assert "budget spent; tested" in spent.stdout
    none = cli("train", home, "--folds", 3, "--run-dir", "runs/none", "--budget-calls", 2)
    assert none.exit_code == 2
    assert "equal part of what is left of the budget: the part of 0 calls" in " ".join(none.stdout.split())
    again = cli("resume", "runs/none", "--budget-calls", 3)
    assert "the seed prompt alone takes" not in again.stderr  # some of it may be on record
    assert "tested once" not in none.stdout
    short = cli("train", home, "--folds", 3, "--run-dir", "runs/short", "--budget-calls", 2, "--quiet")
    assert "nothing was asked: each run may use an equal part of what is left of the budget: the par" in short.stdout
    assert "the part of 0 calls" in json.loads(cli("show", "runs/short", "--json").stdout)["shortage"]
    assert "`textgrad-engine resume runs/none` goes on with it, with a larger --budget" in none.stderr
    assert (home / "runs/cut/fold-3/events.jsonl").is_file()  # each had its share
    again = json.loads(cli("resume", "runs/cut", "--budget-calls", 100_000, "--json").stdout)
    for each in (in_one_go, again):
        each.pop("run"), each.pop("seconds"), each.pop("test_openings_before")
    assert again == in_one_go


def test_runs_begun_by_a_resume_know_that_the_file_of_the_prompt_ends_its_line(cli: Any, few: Path) -> None:
    """Else the patch that `diff` makes of the final prompt fits no file that an editor wrote."""
    config = few / "config.toml"
    config.write_text(config.read_text().replace(f"system = {json.dumps(PROMPT)}", "system_file = 'prompt.txt'"))
    (few / "prompt.txt").write_text(f"{PROMPT}\n", encoding="utf-8")
    assert cli("train", few, "--folds", 3, "--run-dir", "runs/c").exit_code == 0
    diff = cli("diff", "runs/c").stdout
    assert "No newline at end of file" not in diff
    shutil.rmtree("runs/c/final")  # as if it had been killed before
    assert cli("resume", "runs/c").exit_code == 0
    assert cli("diff", "runs/c").stdout == diff


def test_what_other_runs_left_of_a_budget_is_said_to_go_on_with_it(cli: Any, few: Path) -> None:
    """Nobody raises a budget that has room, or waits for nothing: followed literally, the line ends it."""
    run = Path("runs/uneven")
    assert cli("train", few, "--folds", 3, "--run-dir", run, "--budget-calls", 336).exit_code == 3
    larger = f"`textgrad-engine resume {run}` goes on with it, with a larger --budget"
    assert larger in cli("show", run).stderr  # the final run had all that the folds left
    for file in run.glob("*/config.json"):  # as if others had needed less
        kept = json.loads(file.read_text(encoding="utf-8"))
        kept["config"]["budget"]["calls"] = 352
        file.write_text(json.dumps(kept), encoding="utf-8")
    said = f"`textgrad-engine resume {run}` goes on with it: 8 calls that other runs left of the budget go to "
    said += "those that spent their part. A larger --budget, --budget-calls or --budget-tokens adds to that."
    for shown in (run, run / "fold-1"):
        told = cli("show", shown)
        assert said in " ".join(f"{told.stdout} {told.stderr}".split())
    assert json.loads(cli("show", run, "--json").stdout)["way_on"] == said
    done = cli("resume", run)
    assert done.exit_code == 0, done.stderr


def test_a_larger_budget_holds_for_the_next_resume_too(cli: Any, few: Path) -> None:
    """Runs that had come to their end before keep the config that they ended with."""
    run = Path("runs/raised")
    assert cli("train", few, "--folds", 3, "--run-dir", run, "--budget-calls", 345).exit_code == 3

    def budgets() -> dict[str, tuple[str, int]]:
        found = {}
        for part in sorted(run.glob("*/config.json")):
            kept = json.loads(part.read_text(encoding="utf-8"))
            result = json.loads((part.parent / "result.json").read_text(encoding="utf-8"))
            found[part.parent.name] = result["status"], kept["config"]["budget"]["calls"]
        return found

    before = budgets()
    assert before["fold-1"] == ("finished", 345)
    assert ("budget", 345) in before.values()
    assert cli("resume", run, "--budget-calls", 346).exit_code == 3
    raised = budgets()
    assert raised["fold-1"] == ("finished", 345)
    assert ("budget", 346) in raised.values()
    cli("resume", run)
    assert budgets() == raised


def test_exit_code_goes_by_the_verdict_of_all_folds(cli: Any, home: Path, whole: str, spent: Result) -> None:
    """As of one run; where it came to no end, by what the folds were tested on."""
    assert cli("show", whole, "--exit-code").exit_code == 0
    told = cli("show", "runs/cut", "--exit-code")
    assert told.exit_code == 4
    assert '--exit-code: the verdict is "not shown"' in told.stderr


def test_a_budget_below_what_is_on_record_is_told_before_anything(cli: Any, home: Path, spent: Result) -> None:
    """Nothing can be bought with it."""
    used = json.loads(cli("show", "runs/cut", "--json").stdout)["total"]["calls"]
    told = " ".join(cli("resume", "runs/cut", "--budget-calls", used - 1).stderr.split())
    assert f"has room for {used - 1} calls, but the {used} calls on record count in it: nothing new" in told
    assert "on record count in it" not in cli("resume", "runs/cut", "--budget-calls", used + 1).stderr


def test_the_budget_that_is_said_to_do_is_that_of_all_runs(
    cli: Any, home: Path, spent: Result, caplog: pytest.LogCaptureFixture
) -> None:
    """Each run has a part of it, and the whole is what an option can raise."""
    none = cli("train", home, "--folds", 3, "--run-dir", "runs/none", "--budget-calls", 2)
    assert "the first one may need 1; raise the budget to 4 calls or more" in " ".join(none.stdout.split())
    assert cli("resume", "runs/none", "--budget-calls", 3).exit_code == 2
    assert cli("resume", "runs/none", "--budget-calls", 4).exit_code == 3

    def asked(name: str) -> int:
        return len((home / "runs/cut" / name / "completions.jsonl").read_text(encoding="utf-8").splitlines())

    cli("resume", "runs/cut", "--budget-calls", 210)
    first, *_ = re.findall("no room for more than was on record.* raise it to ([0-9,]+) calls or more", caplog.text)
    enough, before = int(first.replace(",", "")), asked("fold-1")
    assert 210 < enough < 420
    cli("resume", "runs/cut", "--budget-calls", enough)
    assert asked("fold-1") > before


def test_what_an_error_ended_is_not_shown_as_the_whole(cli: Any, home: Path, cut: Result) -> None:
    """The verdict is of the folds that were tested, and the way on is said; then it is what it would have been."""
    assert cut.exit_code == 1
    assert "`textgrad-engine resume runs/cut` goes on with it" in " ".join(cut.stderr.split())
    shown = cli("show", "runs/cut")
    assert shown.exit_code == 1
    assert "3 folds of 24 examples; it did not finish" in shown.stdout
    assert "on 2 of 3 folds" in shown.stdout
    assert "Without a result so far, and not counted here: fold-3, final." in shown.stdout
    assert "`textgrad-engine resume runs/cut` goes on with it." in shown.stderr  # no larger budget is needed
    found = json.loads(cli("show", "runs/cut", "--json").stdout)
    assert (found["status"], found["missing"]) == (None, ["fold-3", "final"])
    assert "Which prompt to use" not in cli("report", "runs/cut", "--out", "-").stdout
    for args in (("diff", "runs/cut"), ("shrink", "runs/cut"), ("eval", "runs/cut", "--data", "test.jsonl")):
        refused = cli(*args)
        assert (refused.exit_code, "there is no final prompt yet" in refused.stderr) == (2, True)
        assert "`textgrad-engine resume runs/cut` goes on with it" in refused.stderr
    assert cli("resume", "runs/cut", "--quiet").exit_code == 0
    assert "on all folds" in cli("show", "runs/cut").stdout


def test_a_finished_one_is_left_as_it_is(cli: Any, home: Path, whole: str) -> None:
    """It says so, reads neither config nor data, and asks nobody; machines get its result."""
    run = home / whole
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    hidden = (home / "config.toml").rename(home / "elsewhere.toml")
    done = cli("resume", whole)
    as_json, quiet = cli("resume", whole, "--json"), cli("resume", whole, "--quiet")
    hidden.rename(home / "config.toml")
    assert (done.exit_code, done.stdout) == (0, "")
    assert quiet.stdout.startswith(f"{whole}: ")
    assert f"{whole} is finished, so there is nothing to resume" in " ".join(done.stderr.split())
    assert json.loads(as_json.stdout) == json.loads(cli("show", whole, "--json").stdout)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_with_other_data_nothing_goes_on_and_nothing_is_overwritten(cli: Any, home: Path, cut: Result) -> None:
    """Else the folds would be told by ids that they do not have, for good."""
    before, data = (home / "runs/cut/folds.json").read_bytes(), (home / "test.jsonl").read_text()
    fewer, other = "".join(data.splitlines(keepends=True)[:4]), data.replace('"target": "K4"', '"target": "K5"')
    for changed in (fewer, other):
        assert changed != data
        (home / "test.jsonl").write_text(changed)
        refused = cli("resume", "runs/cut")
        assert (refused.exit_code, "not the examples that it was begun with" in refused.stderr) == (2, True)
        assert (home / "runs/cut/folds.json").read_bytes() == before
        assert "on 2 of 3 folds" in cli("show", "runs/cut").stdout
    (home / "test.jsonl").write_text(data)
    assert cli("resume", "runs/cut", "--quiet").exit_code == 0


def test_what_finished_folds_took_is_not_shared_out_again(cli: Any, home: Path, cut: Result) -> None:
    """A limit that is named when it goes on holds for the whole; two folds had used more than a quarter of this one."""
    used = json.loads(cli("show", "runs/cut", "--json").stdout)["total"]["calls"]
    again = json.loads(cli("resume", "runs/cut", "--budget-calls", used + 100, "--json").stdout)
    assert used / 2 > (used + 100) / 4
    assert (again["status"], len(again["folds"])) == ("budget", 3)
    assert again["total"]["calls"] <= used + 100


def test_what_is_in_the_folder_and_does_not_fit_is_said(cli: Any, home: Path, cut: Result) -> None:
    """In words."""
    kept = home / "runs/cut/folds.json"
    (home / "runs/early").mkdir()
    (home / "runs/early/folds.json").write_bytes(kept.read_bytes())
    none = cli("resume", "runs/early")
    assert (none.exit_code, "no fold was begun and nothing was paid for" in none.stderr) == (2, True)
    assert "tested on" not in cli("show", "runs/early").stdout
    kept.write_text(kept.read_text().replace("train-", "other-"))
    damaged = cli("show", "runs/cut")
    assert (damaged.exit_code, "names other examples than the folds have" in damaged.stderr) == (2, True)


def test_a_control_says_that_it_is_one(cli: Any, home: Path, control: Result) -> None:
    """As the report of a single run does."""
    assert "a control: the optimizer got no feedback" in control.stdout
    assert "a control: the optimizer got no feedback" in cli("show", "runs/b").stdout


def test_controls_are_pooled(cli: Any, home: Path) -> None:
    """Each control's texts were tested on all examples, too, and each run's report says what they were."""
    for name in ("train", "val", "test"):
        (home / f"{name}.jsonl").write_text("".join((home / f"{name}.jsonl").read_text().splitlines(True)[:6]))
    done = cli("train", home, "--folds", 2, "--controls", "--run-dir", "runs/a")
    said = " ".join(done.stdout.split())
    assert "Against rewrites without feedback (test mean 0." in said
    assert "on 18 examples of 2 folds" in said
    assert "Beside controls" in cli("show", "runs/a/fold-1").stdout
    found = json.loads(cli("show", "runs/a", "--json").stdout)["controls"]
    assert [each["comparison"]["n"] for each in found] == [18, 18]
    assert "Beside controls" in cli("report", "runs/a", "--out", "-").stdout


def new_rows(home: Path) -> Path:
    """Examples that are in none of the files."""
    path = home / "new.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in TASK.val))
    return path


def test_the_final_prompt_is_evaluated_on_other_examples_only(cli: Any, home: Path, whole: str) -> None:
    """It was trained on all of them; a fold's prompt is evaluated on its own fold, whatever the config calls test."""
    for args in ((whole,), (f"{whole}/final",)):
        refused = cli("eval", *args)
        assert (refused.exit_code, "no example tests the final prompt" in refused.stderr) == (2, True)
    done = json.loads(cli("eval", whole, "--data", new_rows(home), "--json").stdout)
    assert (done["run"], done["examples"], done["rows"], done["test_openings"]) == (f"{whole}/final", 30, {}, None)
    own = json.loads(cli("eval", f"{whole}/fold-2", "--json").stdout)
    assert (own["data"], own["split"], own["examples"], own["test_openings"]) == ("fold-2", "test", 17, 2)
    known = json.loads(cli("show", f"{whole}/fold-2", "--json").stdout)["test"]["best"]["mean"]
    assert own["mean"] == known


def test_the_final_prompt_is_shrunk_on_what_validated_it(cli: Any, home: Path, whole_of_few: str) -> None:
    """Of a fold it is the examples of that fold's run, and what was changed since is refused."""
    done = json.loads(cli("shrink", whole_of_few, "--max-tries", 1, "--json").stdout)
    assert (done["run"], done["val"]["before"]["examples"]) == (whole_of_few, 24)
    assert (home / whole_of_few / "final/shrunk_prompt.txt").is_file()
    assert cli("eval", whole_of_few, "--shrunk", "--data", new_rows(home), "--quiet").exit_code == 0
    own = json.loads(cli("shrink", f"{whole_of_few}/fold-1", "--max-tries", 1, "--json").stdout)
    assert own["val"]["before"]["examples"] == 16
    (home / "val.jsonl").write_text((home / "val.jsonl").read_text().replace("K4", "K5"))
    refused = cli("shrink", f"{whole_of_few}/fold-1")
    assert (refused.exit_code, "not the examples that it was begun with" in refused.stderr) == (2, True)


def test_two_of_them_are_paired_on_all_examples(cli: Any, home: Path, whole: str, control: Result) -> None:
    """Also where they are cut otherwise; beside a plain run on what that has tested."""
    cli("train", home, "--run-dir", "runs/plain", "--quiet")
    shown = cli("diff", whole, "runs/b")
    assert "B  runs/b: 2 folds of 50 examples; a control: the optimizer got no feedback" in shown.stdout
    said = " ".join(shown.stdout.split())
    assert "A and B are cross-validations: the folds' prompts were tested, each on" in said
    assert "folds 3 2" in said
    both = json.loads(cli("diff", whole, "runs/b", "--json").stdout)
    (pairing,) = both["pairings"]
    assert (pairing["on"], pairing["comparison"]["n"], pairing["comparison"]["verdict"]) == ("test", 50, "worse")
    assert both["settings"]["folds"] == {"a": 3, "b": 2}
    (text,) = both["parameters"]
    assert text["a"] == (home / whole / "final/best_prompt.txt").read_text()
    assert "--- runs/a/final/best/system.txt" in text["patch"]
    plain = json.loads(cli("diff", "runs/plain", whole, "--json").stdout)["pairings"][0]
    assert (plain["on"], plain["comparison"]["n"]) == ("test", 15)
    assert "50 examples, of which 15 are the same" in " ".join(plain["remarks"])


def test_the_diff_of_one_is_what_the_final_run_changed(cli: Any, home: Path, whole: str) -> None:
    """A pipe gets it byte for byte, and what it is about is told beside it."""
    shown = cli("diff", whole)
    assert shown.stdout == cli("diff", f"{whole}/final").stdout
    assert "this is what the run on all examples changed" in shown.stderr


def test_the_page_is_of_all_folds(cli: Any, home: Path, whole: str) -> None:
    """It says which prompt to use, and is the same wherever the folder lies."""
    assert "The report is in runs/a/report.html" in cli("report", whole).stderr
    page = (home / whole / "report.html").read_text()
    assert "Report on a cross-validation" in page
    assert "The prompt to use: a/final/best_prompt.txt" in page
    assert "textgrad-engine train config.toml --folds 3" in page
    assert "fold 3" in page
    shutil.copytree(home / whole, home / "elsewhere/a")
    (home / "elsewhere/a/report.html").unlink()
    assert cli("report", "elsewhere/a", "--out", "-").stdout == page


def test_no_prompt_is_called_better_that_was_not_shown_to_be(cli: Any, home: Path) -> None:
    """Of twelve examples nobody knows; how many would tell is said."""
    text = "".join((home / "train.jsonl").read_text().splitlines(keepends=True)[:6])
    (home / "train.jsonl").write_text(text)
    for name in ("val", "test"):
        (home / f"{name}.jsonl").write_text("".join((home / f"{name}.jsonl").read_text().splitlines(True)[:3]))
    done = cli("train", home, "--folds", 3, "--run-dir", "runs/a")
    assert "12 examples together show" in " ".join(done.stderr.split())
    said = " ".join(done.stdout.split())
    assert "no difference shown" in said
    assert "Which prompt to use is open, as these examples do not tell" in said
    assert "if you have to be sure, keep the seed prompt, or collect more examples: some" in said
    assert "The prompt to use is in" not in done.stderr
    assert json.loads(cli("show", "runs/a", "--json").stdout)["use"] is None
    assert "Which prompt to use is open" in cli("report", "runs/a", "--out", "-").stdout


def test_what_it_costs_is_told_beforehand(cli: Any, home: Path, whole: str) -> None:
    """The sum of all runs, and what the verdict of all will show."""
    one, all_of_them = (json.loads(cli("estimate", home, *given, "--json").stdout) for given in ((), ("--folds", 3)))
    assert (one["runs"], all_of_them["runs"]) == (1, 4)
    assert all_of_them["calls"]["forward"]["usual"] > 3 * one["calls"]["forward"]["usual"]
    shown = cli("estimate", home, "--folds", 3)
    assert "4 runs together, at most 8 steps on parcels:model" in shown.stdout
    assert "50 examples together show a true difference of 0.18" in shown.stdout
    assert max(map(len, shown.stdout.split("\n"))) <= 80
    assert not shown.stderr
    used = json.loads(cli("show", whole, "--json").stdout)["total"]
    for key in ("calls", "input_tokens", "output_tokens"):
        low, usual, high = (sum(each[end] for each in all_of_them[key].values()) for end in ("low", "usual", "high"))
        assert low <= used[key] <= high
        assert key == "output_tokens" or usual / 3 < used[key] < usual * 3
    refused = cli("estimate", home, "--folds", 51)
    assert (refused.exit_code, "cannot be dealt to 51 folds" in refused.stderr) == (2, True)


def test_what_was_killed_is_not_called_finished(cli: Any, run: Path) -> None:
    """`show` ends with 1, names the run and what goes on with all of them, and counts the folds that were tested."""
    shown = cli("show", run)
    assert shown.exit_code == 1
    assert "runs/killed: 2 folds of 24 examples; it did not finish" in shown.stdout
    assert "on 1 of 2 folds" in " ".join(shown.stdout.split())
    assert "Without a result so far, and not counted here: fold-2, final." in shown.stdout
    assert f"`textgrad-engine resume {run}` goes on with it" in shown.stderr
    as_json = cli("show", run, "--json")
    assert (as_json.exit_code, json.loads(as_json.stdout)["status"]) == (1, None)
    part = cli("show", run / "fold-2")
    assert f"`textgrad-engine resume {run}` goes on with all the runs there" in " ".join(part.stdout.split())
    assert f"go on with all of them: textgrad-engine resume {run}" in cli("resume", run / "fold-2").stderr
    assert run_folders("runs/k") == ["runs/killed"]
    assert cli("resume", run, "--budget-calls", 100_000).exit_code == 0
    assert cli("show", run).exit_code == 0


def test_what_is_gone_is_bought_again_with_anyway(cli: Any, run: Path) -> None:
    """Without it nothing is asked, and it counts as wrong use."""
    (run / "fold-2/completions.jsonl").write_bytes(b"")
    refused = cli("resume", run, "--budget-calls", 100_000)
    assert refused.exit_code == 2
    assert f"textgrad-engine resume {run.absolute()} --anyway" in refused.stderr
    assert cli("resume", run, "--budget-calls", 100_000, "--anyway").exit_code == 0


def test_a_finished_fold_that_cannot_be_played_back_is_taken_as_it_is_with_anyway(cli: Any, whole: str) -> None:
    """As its program, or a prompt of the library, is another one now; without the word nothing is asked."""
    run = Path(whole)
    before = json.loads(cli("show", run, "--json").stdout)
    shutil.rmtree(run / "final")
    kept = (run / "fold-1/completions.jsonl").read_text()
    (run / "fold-1/completions.jsonl").write_text(kept.replace('"content": "', '"content": "Other. '))
    refused = cli("resume", run, "--budget-calls", 100_000)
    assert refused.exit_code == 2
    said = " ".join(refused.stderr.split())
    assert "it asks for something that is not on record" in said
    assert "nothing was asked; --anyway goes on, and takes the folds that are finished as they are" in said
    done = cli("resume", run, "--budget-calls", 100_000, "--anyway")
    assert done.exit_code == 0, done.stderr
    assert done.stderr.count("It is finished, and taken as it is.") == 3
    found = json.loads(cli("show", run, "--json").stdout)
    assert (found["folds"], found["final"], found["total"]) == (before["folds"], before["final"], before["total"])
    used = [json.loads((run / f"fold-{n}/result.json").read_text())["usage"].values() for n in (1, 2, 3)]
    calls = sum(usage["calls"] for each in used for usage in each)
    assert json.loads((run / "shares.json").read_text())["final"]["free"][0] == 100_000 - calls  # they count in it


def test_what_ended_before_its_first_call_is_begun_anew(cli: Any, run: Path) -> None:
    """It was killed in the moment in which its folder was made."""
    shutil.rmtree(run / "fold-2")
    (run / "fold-1/config.json").unlink()
    for name in ("events", "completions"):
        (run / f"fold-1/{name}.jsonl").write_bytes(b"")
    (run / "fold-1/result.json").unlink()
    refused = cli("resume", run)
    assert (refused.exit_code, "no fold was begun and nothing was paid for" in refused.stderr) == (2, True)


def test_what_was_paid_for_is_not_called_nothing(cli: Any, run: Path) -> None:
    """Any fold's config is that of all, and where none is left, nobody is told to remove the folder."""
    kept = (run / "fold-2/config.json").read_bytes()
    shutil.rmtree(run / "fold-1")
    (run / "fold-2/config.json").unlink()
    refused = cli("resume", run)
    assert (refused.exit_code, "restore that of one of them" in refused.stderr) == (2, True)
    (run / "fold-2/config.json").write_bytes(kept)
    goes_on = cli("resume", run, "--budget-calls", 100_000, "--json")
    assert goes_on.exit_code == 0, goes_on.stderr
    assert json.loads(goes_on.stdout)["status"] == "finished"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_what_cannot_be_printed_is_no_wrong_use(home: Path, whole: str) -> None:
    """As of a single run: the folder is right, and the disk is full."""
    with Path("/dev/full").open("w") as full:
        args = [sys.executable, "-m", "textgrad_engine", "show", whole]
        done = subprocess.run(args, cwd=home, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "error: the result cannot be printed: no space left on device\n")


def test_what_is_odd_in_a_folder_is_told_of_each_run(cli: Any, run: Path) -> None:
    """And what goes on with it, also where its first fold is gone."""
    with (run / "fold-2/events.jsonl").open("ab") as file:
        file.write(b'{"event": "Ph')
    shutil.rmtree(run / "fold-1")
    shown = cli("show", run)
    assert f"note: {run / 'fold-2'}: " in shown.stderr
    assert f"`textgrad-engine resume {run}` goes on with it" in shown.stderr


def test_what_goes_on_keeps_the_settings_that_it_was_begun_with(cli: Any, few: Path) -> None:
    """In each of its runs: `diff` shows no setting that nobody changed."""
    text = (few / "config.toml").read_text().replace(f"system = {json.dumps(PROMPT)}", "system_file = 'prompt.txt'")
    (few / "prompt.txt").write_text(PROMPT)
    (few / "parcels.toml").write_text(text)
    cli("train", "parcels.toml", "--folds", 2, "--run-dir", "runs/whole", "--quiet")
    shutil.copytree(few / "runs/whole", few / "runs/cut")
    shutil.rmtree(few / "runs/cut/final")
    (few / "runs/cut/fold-2/result.json").unlink()
    assert cli("resume", "runs/cut", "--quiet").exit_code == 0
    for name in ("fold-1", "fold-2", "final"):
        one, other = (json.loads((few / f"runs/{run}/{name}/config.json").read_text()) for run in ("whole", "cut"))
        for each in (one, other):
            each.pop("looks_before")
        assert one == other
    assert json.loads(cli("diff", "runs/whole", "runs/cut", "--json").stdout)["settings"] == {}
    shutil.rmtree(few / "runs/cut/final")
    shown = " ".join(cli("diff", "runs/whole", "runs/cut").stdout.split())
    assert "Best prompts: nothing to compare, as one has none" in shown
    assert "compared below" not in shown


def test_while_one_goes_on_nobody_else_does(cli: Any, run: Path) -> None:
    """Also where its first folds are finished: what is given of the budget is told to one of two alone."""
    shares = (run / "shares.json").read_bytes()
    for place in (run / "fold-2", run):  # between two of its runs, nobody holds one
        held = Lock(place)
        refused = cli("resume", run, "--budget-calls", 100_000)
        shown, document = cli("show", run), json.loads(cli("show", run, "--json").stdout)
        held.release()
        assert (refused.exit_code, f"{place}: process " in refused.stderr) == (2, True)
        assert "is at work on this run" in refused.stderr
        assert "It still goes on." in shown.stderr
        assert (document["running"], document["way_on"]) == (True, None)
    assert (run / "shares.json").read_bytes() == shares


def test_a_fold_that_was_killed_at_its_beginning_goes_on(cli: Any, run: Path) -> None:
    """There is no config.json yet."""
    shutil.rmtree(run / "fold-2")
    (run / "fold-2").mkdir()
    for name in ("events", "completions"):
        (run / f"fold-2/{name}.jsonl").write_bytes(b"")
    assert cli("resume", run, "--budget-calls", 100_000).exit_code == 0


def test_killed_before_anything_was_written_its_place_is_free(cli: Any, home: Path) -> None:
    """All that is there is the file that it had locked."""
    (home / "runs/a").mkdir(parents=True)
    (home / "runs/a/.lock").write_bytes(b"1")
    assert cli("train", ".", "--folds", 3, "--run-dir", "runs/a", "--budget-calls", 60).exit_code == 3
    assert not (home / "runs/a/.lock").exists()


def test_a_place_where_nothing_can_be_written_is_named(cli: Any, home: Path) -> None:
    """Before anything is paid for."""
    refused = cli("train", ".", "--folds", 3, "--run-dir", "parcels.py/run")
    assert (refused.exit_code, "name another place" in refused.stderr) == (2, True)


def test_what_ends_at_once_says_what_is_left(cli: Any, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Ctrl-C twice does."""

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


def test_examples_that_other_runs_have_tested_on_are_told(cli: Any, few: Path) -> None:
    """Who looks three times finds something by luck more often than who looks once: said before it is paid for, too."""
    first = cli("train", few)
    assert "opened the same test examples" not in first.stdout
    cli("eval", "runs/" + few.name + "-1")
    third = cli("train", few, "--optimizer", "PatchSearch")
    said = " ".join(third.stdout.split())
    assert "Other runs had opened the same test examples 2 times before. In 3 looks at prompts that" in said
    assert "This run opened the test set once, at the end" in said
    shown = json.loads(cli("show", f"runs/{few.name}-2", "--json").stdout)
    assert (shown["test_openings"], shown["test_openings_before"]) == (1, 2)
    assert "had opened the same test examples 2 times" in " ".join(third.stderr.split())
    (few / "test.jsonl").write_text("".join((few / "test.jsonl").read_text().splitlines(keepends=True)[:4]))
    assert "opened the same test examples 3 times" in " ".join(cli("train", few).stdout.split())


def test_folds_are_one_look_and_count_those_before(cli: Any, home: Path, once: Any, whole_of_few: str) -> None:
    """They have tested each example once; who does it again, or takes some of them for a test set, looks again."""
    first = once("a")[1]
    assert "opened the same test examples" not in first.stdout + first.stderr
    again = cli("train", home, "--folds", 2, "--run-dir", "runs/b")
    assert "had opened the same test examples 1 time before" in " ".join(again.stderr.split())
    assert "had opened the same test examples 1 time before" in " ".join(cli("show", "runs/b").stdout.split())
    assert json.loads(cli("show", "runs/b", "--json").stdout)["test_openings_before"] == 1
    assert cli("resume", "runs/b", "--quiet").stdout.endswith("; test opened 1 time before\n")
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
    said = "15 test examples show a true difference of 0.48 in 4 of 5 cases, if a fifth of the answers change"
    assert said in " ".join(cli("estimate", home).stdout.split())
    assert said in " ".join(cli("train", home).stderr.split())
    rows = (home / "test.jsonl").read_text().splitlines(keepends=True)
    (home / "test.jsonl").write_text(rows[0])
    assert "1 test example shows no difference reliably" in " ".join(cli("estimate", home).stdout.split())
    (home / "test.jsonl").write_text("".join(rows[:4]))
    assert "4 test examples show no difference reliably, however large" in " ".join(
        cli("estimate", home).stdout.split()
    )
    config = home / "config.toml"
    judged = "[metric]\nname = 'judge'\ninstructions = 'Is it kind?'\nscale = [1, 5]\n\n[data]"
    config.write_text(config.read_text().replace("[data]", judged))
    assert "4 test examples show no difference reliably" in " ".join(cli("estimate", home).stdout.split())
    others = simulated_task(rules=4, seed=3, train=20, val=1, test=1).train
    (home / "test.jsonl").write_text("".join(json.dumps({**row, "id": f"o-{row['id']}"}) + "\n" for row in others))
    said = "in 4 of 5 cases, if differences have a standard deviation of 0.3 of the scale; smaller ones less often"
    assert said in " ".join(cli("estimate", home).stdout.split())
    config.write_text(config.read_text().replace("test = 'test.jsonl'\n", ""))
    assert "Without a test set nothing can be proved: the" in " ".join(cli("estimate", home).stdout.split())


def test_copies_show_no_more_than_one_of_them(cli: Any, home: Path) -> None:
    """The verdict takes them for a cluster, so what is said before it must, too."""
    rows = [json.loads(line) for line in (home / "test.jsonl").read_text().splitlines()]
    again = [{**row, "id": f"{row['id']}-{n}"} for n in range(10) for row in rows]
    (home / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in again))
    said = "150 test examples, of which 15 are different ones, show a true difference of 0.48 in 4 of 5 cases"
    assert said in " ".join(cli("estimate", home).stdout.split())


def test_a_document_that_is_most_of_the_test_set_is_seen_once(cli: Any, home: Path) -> None:
    """Beside 11 mails with one question one with 30 is as good as two, not as twelve."""
    config = home / "config.toml"
    config.write_text(config.read_text().replace("test = 'test.jsonl'", "test = 'test.jsonl'\nclusters = 'mail'"))
    rows = simulated_task(rules=4, seed=3, train=81, val=1, test=1).train
    for name, part in (("train", rows[:20]), ("val", rows[20:40]), ("test", rows[40:])):
        told = [{**row, "id": f"{name}{n}", "mail": max(0, n - 29)} for n, row in enumerate(part)]
        if name != "test":
            told = [{**row, "mail": n} for n, row in enumerate(told)]
        (home / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in told))
    said = "41 test examples in 12 clusters of different sizes show no difference reliably, however large"
    assert said in " ".join(cli("estimate", home).stdout.split())


def test_without_a_validation_set_the_training_examples_validate(cli: Any, few: Path) -> None:
    """Of few examples that finds more; what is tested is apart all the same."""
    config = few / "config.toml"
    config.write_text(config.read_text().replace("val = 'val.jsonl'\n", ""))
    done = cli("train", few, "--run-dir", "runs/a")
    assert done.exit_code == 0
    assert "10 examples to train, the same to validate, 6 to test" in done.stderr
    assert "are in train, too" not in done.stdout + done.stderr
    assert cli("eval", "runs/a").exit_code == 0
    assert cli("shrink", "runs/a").exit_code == 0
    assert cli("estimate", few).exit_code == 0


# several at once


def test_runs_at_once_find_what_they_find_one_after_the_other(cli: Any, home: Path, whole_of_few: str) -> None:
    """With the same calls; each line tells of which run it is."""
    done = cli("train", ".", "--folds", 3, "--run-dir", "runs/b", "--jobs", 4)
    assert done.exit_code == 0
    assert {line[:4] for line in done.stderr.splitlines() if "  step " in line} == {"1/3 ", "2/3 ", "3/3 ", "all "}
    alone, together = (json.loads(cli("show", path, "--json").stdout) for path in (whole_of_few, "runs/b"))
    assert together["test_openings_before"] == 1  # the other one is in this folder, too
    for key in ("run", "seconds", "test_openings_before"):
        del alone[key], together[key]
    assert together == alone


def test_what_an_error_ended_in_one_of_them_goes_on_in_all(cli: Any, home: Path, whole_of_few: str) -> None:
    """The others are stopped by it, and nothing that was paid for is paid for again."""
    (home / "broken.py").write_text(BROKEN.replace("190", "150"))
    config, own = home / "config.toml", (home / "config.toml").read_text()
    config.write_text(own.replace("parcels:model", "broken:model"))
    ended = cli("train", ".", "--folds", 3, "--run-dir", "runs/b", "--jobs", 4)
    assert (ended.exit_code, "the machine is gone" in ended.stderr) == (1, True)
    assert re.search(r"in the run of a cross-validation on (fold [123] of 3|all examples)", ended.stderr)
    paid = sum(len((run / "completions.jsonl").read_text().splitlines()) for run in Path("runs/b").glob("*/"))
    assert paid >= 100
    again = cli("resume", "runs/b", "--jobs", 4, "--json")
    assert again.exit_code == 0
    alone = json.loads(cli("show", whole_of_few, "--json").stdout)
    found = json.loads(again.stdout)
    for key in ("test", "comparison", "use", "total"):
        assert found.get(key) == alone.get(key)


def test_code_of_ones_own_is_run_by_one_run_at_a_time_unless_told(cli: Any, home: Path) -> None:
    """It may not be made for several threads; what is in the package is."""
    shown = {}
    for name, forward in (("own", "parcels:model"), ("built-in", "simulated/tickets")):
        config = (home / "config.toml").read_text()
        (home / f"{name}.toml").write_text(config.replace("parcels:model", forward))
        done = cli("train", f"{name}.toml", "--folds", 2, "--run-dir", f"runs/{name}", "--budget-calls", 300)
        shown[name] = "\nfold 1 of 2\n" in done.stderr, "1/2  step" in done.stderr
    assert shown == {"own": (True, False), "built-in": (False, True)}


def test_the_time_of_folds_is_estimated_as_they_go_on(cli: Any, home: Path) -> None:
    """All at once they wait about as long as one, not six times as long; under a budget the last one comes behind."""

    def most(*options: str) -> float:
        given = ("--folds", "5", "--optimizer", "PatchSearch", "--json", *options)
        return json.loads(cli("estimate", home, *given).stdout)["waits"]["high"]

    one_by_one = most()  # its model is code of one's own
    path = home / "config.toml"
    path.write_text(path.read_text().replace("parcels:model", "simulated/tickets"))
    at_once, behind = most(), most("--budget-calls", "5000")
    assert at_once < behind <= 2 * at_once < one_by_one / 2


def test_jobs_are_those_of_folds(cli: Any, home: Path, whole_of_few: str) -> None:
    """Of a single run there is nothing to do at once."""
    refused = cli("train", ".", "--jobs", 2)
    assert (refused.exit_code, "--jobs 2 is about the runs of --folds; name it, too" in refused.stderr) == (2, True)
    cli("train", ".", "--run-dir", "runs/one", "--budget-calls", 20)
    refused = cli("resume", "runs/one", "--jobs", 2)
    assert (refused.exit_code, "this is a single one; leave it out" in refused.stderr) == (2, True)
    assert cli("train", ".", "--folds", 3, "--jobs", 0).exit_code == 2
