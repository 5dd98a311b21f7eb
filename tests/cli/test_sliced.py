"""``show --by`` and ``eval --by``: where a prompt is better, and where worse."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from textgrad_engine.cli import sliced
from textgrad_engine.data import Dataset
from textgrad_engine.errors import DataError, RunError
from textgrad_engine.llm import Completion, Request
from textgrad_engine.llm.simulated import TicketsModel
from textgrad_engine.testing import FunctionModel

from .test_folds import begin

TICKETS = Path(__file__).parents[2] / "examples" / "tickets"


def queues() -> dict[str, int]:
    rows = [json.loads(line)["queue"] for line in (TICKETS / "test.jsonl").read_text(encoding="utf-8").splitlines()]
    return {queue: rows.count(queue) for queue in rows}


def test_a_finished_run_is_shown_by_the_answers(cli: Any, trained: tuple[Path, Any]) -> None:
    """For nothing, as both prompts were tested; each slice has its own difference."""
    done = cli("show", trained[0], "--by", "queue")
    assert done.exit_code == 0, done.output
    assert "test examples by queue" in " ".join(done.stdout.split())
    assert "\n\n  queue       examples   seed    best    difference\n" in done.stdout
    for queue, number in queues().items():
        (line,) = [line for line in done.stdout.splitlines() if line.startswith(f"  {queue} ")]
        assert line.split()[1] == str(number)
        assert line.endswith(("better", "not shown"))
    assert "hold for all 6 slices together (Bonferroni)" in done.stdout
    assert "All together: better: +0.504" in done.stdout
    assert "guards" not in done.stdout
    found = json.loads(cli("show", trained[0], "--by", "queue", "--json").stdout)
    assert (found["run"], found["by"], found["split"]) == (str(trained[0]), "queue", "test")
    assert {each["value"]: each["before"]["examples"] for each in found["slices"]} == queues()
    total = sum(each["after"]["mean"] * each["after"]["examples"] for each in found["slices"])
    assert total / 113 == pytest.approx(json.loads(cli("show", trained[0], "--json").stdout)["test"]["best"]["mean"])


def test_values_that_read_alike_are_one_slice() -> None:
    """As exact match takes them for one; rows that look the same would tell nobody which is which."""
    rows = Dataset(
        [{"of": of} for of in ("Gr\u00f6\u00dfe", "Gro\u0308\u00dfe ", "\ufeffGr\u00f6\u00dfe", "a\u00a0b", "a b", "")]
    )
    assert sliced.values_of(rows, "of") == [*["Gr\u00f6\u00dfe"] * 3, "a\u00a0b", "a b", ""]


def test_the_page_of_a_run_has_it_where_that_is_asked_for(cli: Any, run: Callable[[], Path]) -> None:
    """A wrong column writes nothing."""
    path = run()
    assert cli("report", path, "--by", "queues").exit_code == 2
    assert not (path / "report.html").exists()
    assert cli("report", path, "--by", "queue").exit_code == 0
    assert "Test examples by queue" in (path / "report.html").read_text(encoding="utf-8")


def test_an_evaluation_is_shown_by_the_answers(cli: Any, run: Callable[[], Path]) -> None:
    """Of a run on other examples, too, and where a budget ends it; of a config likewise."""
    asked = ("eval", run(), "--data", TICKETS / "val.jsonl", "--by", "queue")
    done = cli(*asked)
    assert "  queue       examples   score\n" in done.stdout
    assert "Each interval is a 95% one by itself" in done.stdout
    found = json.loads(cli(*asked, "--json").stdout)
    assert found["by"] == "queue"
    assert sum(each["examples"] for each in found["slices"]) == found["examples"] == 87
    cut = json.loads(cli(*asked, "--budget-calls", "10", "--json").stdout)
    assert sum(each["unanswered"] for each in cut["slices"]) == 77
    assert "by" not in json.loads(cli(*asked[:-2], "--json").stdout)
    assert "  billing " in cli("eval", TICKETS, "--by", "queue").stdout


def test_an_evaluation_stands_beside_what_the_run_measured_slice_by_slice(
    cli: Any, run: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cheaper model may be as good on the whole, or nearly so, and useless for one kind."""
    path = run()
    tickets = TicketsModel(seed=0)

    async def no_trust(request: Request) -> Completion:
        found = await tickets.complete(request)
        return found.model_copy(update={"text": "billing"}) if found.text == "trust" else found

    cheap = FunctionModel(lambda request: "", name="cheap")
    cheap.complete = no_trust  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "cheap", SimpleNamespace(model=cheap))
    asked = ("eval", path, "--model", "cheap:model", "--by", "queue")
    done = cli(*asked)
    assert re.search(r"\n  queue +examples +in the run +now +difference\n", done.stdout), done.stdout
    found = {each["value"]: each for each in json.loads(cli(*asked, "--json").stdout)["slices"]}
    assert found["trust"]["comparison"]["verdict"] == "worse"
    assert found["trust"]["after"]["mean"] == 0
    assert {found[each]["comparison"]["verdict"] for each in found if each != "trust"} == {"not shown"}
    cut = json.loads(cli(*asked, "--budget-calls", "5", "--json").stdout)
    assert "comparison" not in cut["slices"][0]
    other = json.loads(cli("eval", path, "--by", "queue", "--data", TICKETS / "val.jsonl", "--json").stdout)
    assert "comparison" not in other["slices"][0]


def test_a_run_that_kept_its_prompt_has_nothing_to_compare(cli: Any, small: Any, tmp_path: Path) -> None:
    """Its scores are there all the same."""
    cli("train", small(("calls = 5000", "calls = 30")), "--run-dir", tmp_path / "run")
    done = cli("show", tmp_path / "run", "--by", "queue")
    assert done.exit_code == 0, done.output
    assert "score\n" in done.stdout
    assert "difference" not in done.stdout
    assert "The run kept the seed prompt, so there is nothing to compare it with." in " ".join(done.stdout.split())


def test_folds_are_shown_by_all_that_they_tested(cli: Any, tmp_path: Path) -> None:
    """Each example by the prompts of its own fold."""
    begin(tmp_path)
    with (tmp_path / "config.toml").open("a", encoding="utf-8") as config:
        config.write("[optimizer]\nmax_edits = 4\n")  # with which every example comes right
    done = cli("train", tmp_path, "--folds", "2", "--run-dir", tmp_path / "run", "--budget-calls", "1500")
    assert done.exit_code in (0, 3), done.output
    found = json.loads(cli("show", tmp_path / "run", "--by", "target", "--json").stdout)
    assert found["split"] == "folds"
    assert sum(each["before"]["examples"] for each in found["slices"]) == 50
    said = " ".join(cli("show", tmp_path / "run", "--by", "target").stdout.split())
    assert "examples of all folds by target" in said
    assert cli("report", tmp_path / "run", "--by", "target").exit_code == 0
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "Examples of all folds by target" in page
    assert "All together: better: " in page
    looked_at = json.loads(cli("show", tmp_path / "run", "--examples", "1", "--json").stdout)
    assert (looked_at["split"], looked_at["without_best"], looked_at["worse"]) == ("folds", 0, 0)
    assert "Every example has the best score." in cli("show", tmp_path / "run", "--examples", "1").stdout
    one = json.loads(cli("show", tmp_path / "run" / "fold-1", "--by", "target", "--json").stdout)
    assert (one["split"], sum(each["after"]["examples"] for each in one["slices"] if "after" in each)) == ("test", 25)
    refused = cli("show", tmp_path / "run", "--by", "target", "--val")
    assert (refused.exit_code, "as each fold validates on others" in " ".join(refused.stderr.split())) == (2, True)
    final = cli("show", tmp_path / "run" / "final", "--by", "target")
    assert "validation examples by target" in " ".join(final.stdout.split())
    assert "These examples chose the best prompt, so its scores on them flatter it." in " ".join(final.stdout.split())


def test_a_run_without_a_test_set_is_shown_by_what_chose(cli: Any, small: Any, tmp_path: Path) -> None:
    """And that is said."""
    folder = small(('\ntest = "test.jsonl"', ""))
    assert cli("train", folder, "--run-dir", tmp_path / "run").exit_code == 0
    said = " ".join(cli("show", tmp_path / "run", "--by", "queue").stdout.split())
    assert "validation examples by queue" in said
    assert "chose the best prompt" in said


def test_floors_are_chosen_by_the_validation_examples(cli: Any, run: Callable[[], Path]) -> None:
    """Which they are about; of folds each has others."""
    path = run()
    found = json.loads(cli("show", path, "--by", "queue", "--val", "--json").stdout)
    assert found["split"] == "val"
    assert sum(each["after"]["examples"] for each in found["slices"]) == 87
    assert "chose the best prompt" in " ".join(cli("show", path, "--by", "queue", "--val").stdout.split())
    done = cli("show", path, "--val")
    assert (done.exit_code, "it needs --by COLUMN" in done.stderr) == (2, True)


def test_what_cannot_be_told_apart_is_refused(cli: Any, run: Callable[[], Path]) -> None:
    """With the columns that there are; before anything is asked, and exit code 2."""
    path = run()
    for command in (("show", path), ("eval", path)):
        done = cli(*command, "--by", "que")
        assert done.exit_code == 2
        assert "there is no column 'que'" in done.stderr
        assert "did you mean 'queue'?" in done.stderr
        done = cli(*command, "--by", "ticket")
        assert done.exit_code == 2
        assert "each of the 113 examples has a value of its own" in " ".join(done.stderr.split())
    assert cli("show", path, "--by", "queue", "--line", "2").exit_code == 2
    assert not (path / "evals.jsonl").exists()


def test_data_that_was_changed_is_not_taken_for_that_of_the_run(cli: Any, small: Any, tmp_path: Path) -> None:
    """As the scores would be told of other examples."""
    folder = small()
    assert cli("train", folder, "--run-dir", tmp_path / "run").exit_code == 0
    rows = (folder / "test.jsonl").read_text(encoding="utf-8").splitlines()
    (folder / "test.jsonl").write_text("\n".join(reversed(rows)) + "\n", encoding="utf-8")
    done = cli("show", tmp_path / "run", "--by", "queue")
    assert (done.exit_code, "these are not the test examples" in done.stderr) == (2, True)
    (folder / "test.jsonl").unlink()
    gone = cli("show", tmp_path / "run", "--by", "queue").stderr
    assert "there is no such file" in gone
    assert "If the run folder was moved, put it back" in gone


def test_a_run_without_result_or_config_says_what_to_do(cli: Any, run: Callable[[], Path]) -> None:
    """In Python it is a line."""
    path = run()
    (path / "config.json").unlink()
    done = cli("show", path, "--by", "queue")
    assert "result.best_test.by(values)" in " ".join(done.stderr.split())
    (path / "result.json").unlink()
    done = cli("show", path, "--by", "queue")
    assert (done.exit_code, "has no result, as the run was killed" in done.stderr) == (2, True)


def test_a_column_may_be_typed_as_another_keyboard_writes_it(cli: Any, tmp_path: Path) -> None:
    """A letter with a mark is one sign or two, which nobody sees."""
    row = {"text": "a", "stra\u00dfe \u00e4": "x", "target": "a"}
    (tmp_path / "rows.jsonl").write_text(f"{json.dumps(row)}\n" * 2, encoding="utf-8")
    (tmp_path / "echo.py").write_text(
        "from textgrad_engine.testing import FunctionModel\n"
        "model = FunctionModel(lambda request: request.messages[-1].text)\n"
    )
    (tmp_path / "config.toml").write_text(
        "program = { system = 'Repeat.', user = '{text}' }\n"
        "data = { train = 'rows.jsonl' }\nmodels = { forward = 'echo:model' }\n"
    )
    done = cli("eval", tmp_path, "--by", "stra\u00dfe a\u0308")
    assert done.exit_code == 0, done.output
    assert re.search(r"\n  x +2 +1\.000", done.stdout)


def test_values_are_texts_and_json() -> None:
    """A missing one is a kind of its own, which no text is taken for by chance of its type."""
    rows = Dataset([{"v": "a"}, {"v": None}, {}, {"v": 1}, {"v": 1.0}, {"v": True}, {"v": ["a", "é"]}, {"v": {"k": 1}}])
    assert [*map(str, sliced.values_of(rows, "v"))] == [
        "a",
        "(none)",
        "(none)",
        "1",
        "1.0",
        "true",
        '["a", "é"]',
        '{"k": 1}',
    ]
    with pytest.raises(DataError, match="no column"):
        sliced.values_of(rows, "w")
    with pytest.raises(RunError, match="each of the 2 examples has a value of its own"):
        sliced.values_of(Dataset([{"v": 1}, {"v": 2}]), "v")
    assert sliced.values_of(Dataset([{"v": 1}]), "v") == ["1"]
