"""``textgrad-engine init``: from a table of examples to a folder that train takes."""

from __future__ import annotations

import csv
import json
import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from textgrad_engine.cli import prompt_source
from textgrad_engine.data import load

from ..runner import Result, invoke

Init = Callable[..., Result]
MODEL = ("--model", "simulated/tickets")


@pytest.fixture
def init(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Init:
    """Runs the command beside a table ``table.csv`` of rows, with a folder ``task`` to make."""
    monkeypatch.chdir(tmp_path)

    def run(rows: list[dict[str, Any]], *args: str, name: str = "table.csv") -> Result:
        with open(name, "w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, list(rows[0]))
            table.writeheader()
            table.writerows(rows)
        return invoke("init", "task", "--data", name, *args)

    return run


def tickets(number: int) -> list[dict[str, Any]]:
    return [{"ticket": f"ticket {n} says", "queue": ("billing", "trust", "account")[n % 3]} for n in range(number)]


def parts() -> dict[str, list[dict[str, Any]]]:
    return {name: list(load(f"task/{name}.jsonl")) for name in ("train", "val", "test")}


# what is refused, with nothing written


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            (),
            "table.csv has no such column; it has ticket, queue; the first row names the columns, and --target the one",
        ),
        ((), "If none does, write a config with a judge that scores without one: docs/config.md shows it below"),
        (("--target", "queu"), "did you mean 'queue'?"),
        (("--target", "queue", "--input", "subject"), "--input subject: table.csv has no such column"),
        (("--target", "queue", "--input", "queue"), "--input queue: that is the right answer"),
        (("--target", "queue", "--clusters", "thread"), "--clusters thread: table.csv has no such column"),
        (("--target", "queue", "--clusters", "ticket"), "table.csv has no column to show the model besides queue"),
        (("--target", "queue", "--prompt", "mine.txt"), "--prompt mine.txt: "),
    ],
)
def test_what_cannot_be_used_is_named(init: Init, args: tuple[str, ...], said: str) -> None:
    """With the option, and what there is instead."""
    done = init(tickets(3), *args)
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())
    assert not Path("task").exists()


def test_a_column_that_fills_no_slot_is_named_with_the_repair(init: Init) -> None:
    """What is shown must be in the prompt as {name}; columns that are not shown may be called anything."""
    rows = [{"order no": "7", **row} for row in tickets(3)]
    done = init(rows, "--target", "queue")
    assert done.exit_code == 2
    assert "the column 'order no' cannot fill a slot of a prompt" in " ".join(done.stderr.split())
    assert init(rows, "--target", "queue", "--input", "ticket", *MODEL).exit_code == 0


def test_an_example_without_an_answer_is_named_by_its_line(init: Init, tmp_path: Path) -> None:
    """Before anything is written."""
    Path("some.jsonl").write_text('{"ticket": "a", "queue": "trust"}\n{"ticket": "b"}\n', encoding="utf-8")
    done = invoke("init", "task", "--data", "some.jsonl", "--target", "queue")
    assert done.exit_code == 2
    assert "some.jsonl:2: this row has no column 'queue'" in " ".join(done.stderr.split())
    assert not Path("task").exists()


def test_an_example_of_no_cluster_is_named_by_its_line(init: Init, tmp_path: Path) -> None:
    """Of the table, not of a part that is cut from it."""
    rows = [{"ticket": f"t{n}", "queue": "trust", "doc": None if n == 2 else str(n)} for n in range(4)]
    Path("some.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    done = invoke("init", "task", "--data", "some.jsonl", "--target", "queue", "--clusters", "doc")
    assert done.exit_code == 2
    assert "error: some.jsonl:3: " in done.stderr
    assert not Path("task").exists()


def test_the_table_is_asked_for_by_its_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who names the table in the place of the folder is shown the whole command."""
    monkeypatch.chdir(tmp_path)
    Path("some.csv").write_text("ticket,target\na,b\n", encoding="utf-8")
    for given, wanted in (
        (["some.csv"], "init some --data some.csv"),
        (["task"], "init task --data TABLE"),
        (["task", "some.csv"], "init task --data some.csv"),
    ):
        done = invoke("init", *given)
        assert done.exit_code == 2
        assert f"--data is missing: the table of examples, as in `textgrad-engine {wanted}" in done.stderr
    assert (
        "b: one folder is made, and the table is that of --data"
        in invoke("init", "a", "b", "--data", "some.csv").stderr
    )
    assert [path.name for path in tmp_path.iterdir()] == ["some.csv"]


def init_of(rows: list[dict[str, Any]], *args: str) -> Result:
    text = "".join([json.dumps(row) + "\n" for row in rows])
    Path("rows.jsonl").write_text(text, encoding="utf-8")
    return invoke("init", "task", "--data", "rows.jsonl", "--target", "queue", *MODEL, *args)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"ticket": ["a", "b"], "queue": "trust"}, "rows.jsonl:2: column 'ticket' holds a list"),
        ({"ticket": {"a": "b"}, "queue": "trust"}, "rows.jsonl:2: column 'ticket' holds an object"),
        ({"ticket": None, "queue": "trust"}, "rows.jsonl:2: column 'ticket' is null"),
        ({"queue": "trust"}, "--input names the columns to be shown, if ticket is not to be"),
        (
            {"ticket": "b", "queue": ["trust"]},
            "rows.jsonl:2: column 'queue', by --target, is a list in this row, and a single value before",
        ),
    ],
)
def test_a_value_that_no_prompt_can_be_made_of_is_named_by_its_line_in_the_table(
    init: Init, row: dict[str, Any], said: str
) -> None:
    """With nothing written, so that the same line works once the table is repaired."""
    good = {"ticket": "a", "queue": "trust"}
    done = init_of([good, row])
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())
    assert not Path("task").exists()
    assert init_of([good, {"ticket": "c", "queue": "billing"}]).exit_code == 0


@pytest.mark.parametrize("args", [("--base-url", "notaurl"), ("--model", "")])
def test_a_config_that_would_be_refused_is_not_left_behind(init: Init, args: tuple[str, ...]) -> None:
    """Neither the folder, nor its files where the folder was there."""
    for there in ([], ["mine.txt"]):
        for name in there:
            Path("task").mkdir()
            Path("task", name).write_text("mine", encoding="utf-8")
        done = init(tickets(3), "--target", "queue", *args)
        assert done.exit_code == 2
        assert "was not made" in done.stderr
        assert [path.name for path in Path("task").glob("*")] == there
    assert init(tickets(3), "--target", "queue", *MODEL).exit_code == 0


def test_examples_that_cannot_be_cut_are_refused(init: Init) -> None:
    """All of them equal, or in two clusters."""
    done = init([tickets(1)[0]] * 120, "--target", "queue", *MODEL)
    assert (done.exit_code, Path("task").exists()) == (2, False)
    assert "table.csv: examples with the same ticket stay in one part" in " ".join(done.stderr.split())
    rows = [{"doc": n % 2, **row} for n, row in enumerate(tickets(120))]
    done = init(rows, "--target", "queue", "--clusters", "doc", *MODEL)
    assert done.exit_code == 2
    assert "with the same ticket or of one doc stay" in " ".join(done.stderr.split())


@pytest.mark.parametrize("other", ["", " ", "two\nlines"])
def test_answers_that_no_line_can_list_are_not_listed(init: Init, other: str) -> None:
    """The prompt would have a choice that nobody sees."""
    assert init_of([{"ticket": f"t{n}", "queue": ("trust", other)[n % 2]} for n in range(8)]).exit_code == 0
    assert "one of" not in Path("task/prompt.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("there", ["config.toml", "prompt.txt", "train.jsonl", "test.jsonl"])
def test_nothing_is_replaced(init: Init, there: str) -> None:
    """Also not what only a larger table would have written."""
    Path("task").mkdir()
    Path("task", there).write_text("mine", encoding="utf-8")
    done = init(tickets(3), "--target", "queue")
    assert done.exit_code == 2
    assert f"{Path('task', there)} is there already" in " ".join(done.stderr.split())
    assert [(path.name, path.read_text(encoding="utf-8")) for path in Path("task").iterdir()] == [(there, "mine")]


def test_a_file_in_the_place_of_the_folder_is_left(init: Init) -> None:
    """Its name is said."""
    Path("task").write_text("mine", encoding="utf-8")
    done = init(tickets(3), "--target", "queue")
    assert (done.exit_code, Path("task").read_text(encoding="utf-8")) == (2, "mine")
    assert "task: this is a file" in done.stderr


# what is made


def test_the_folder_is_trained_as_it_stands(init: Init) -> None:
    """The way of the README, to the verdict."""
    source = Path(__file__).parent.parent.parent / "examples" / "tickets"
    rows = [row for name in ("train", "val", "test") for row in load(source / f"{name}.jsonl")[:60]]
    done = init(rows, "--target", "queue", *MODEL)
    assert done.exit_code == 0, done.output
    assert "180 examples of table.csv: 54 in train, 54 in val, 72 in test." in " ".join(done.stdout.split())
    assert "72 test examples show a true difference" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    ran = invoke("train", "task", "--json")
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["comparison"]["verdict"] == "better"


def test_all_rows_are_in_one_part_with_their_ids(init: Init) -> None:
    """A row without an id is called after its line in the table."""
    rows = [{"id": f"t{n}" if n % 2 else "", **row} for n, row in enumerate(tickets(120))]
    assert init(rows, "--target", "queue", *MODEL).exit_code == 0
    ids = [row["id"] for part in parts().values() for row in part]
    assert sorted(ids) == sorted(row["id"] or f"table:{n + 2}" for n, row in enumerate(rows))


def test_rows_that_show_the_model_nothing_are_told_of(init: Init) -> None:
    """An empty cell is a text, which is sent, and which some endpoints refuse."""
    rows = [*tickets(9), {"ticket": "", "queue": "trust"}, {"ticket": " ", "queue": "trust"}]
    said = " ".join(init(rows, "--target", "queue", *MODEL).stdout.split())
    assert "In 2 rows ticket is empty, so the model is shown nothing: write what is missing, or take them out." in said


def test_rows_that_show_the_model_something_are_not(init: Init) -> None:
    rows = [{**row, "note": ""} for row in tickets(9)]
    assert "is shown nothing" not in init(rows, "--target", "queue", *MODEL).stdout


def test_few_examples_stay_together_and_go_through_folds(init: Init) -> None:
    """Of 99 examples three parts show nothing; what is printed can be typed, and says so of fewer, too."""
    done = init(tickets(99), "--target", "queue", *MODEL)
    assert sorted(path.name for path in Path("task").iterdir()) == ["config.toml", "prompt.txt", "train.jsonl"]
    assert "textgrad-engine train task --folds 5" in done.stdout
    shutil.rmtree("task")
    done = init(tickets(20), "--target", "queue", *MODEL)
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in Path("task").iterdir()) == ["config.toml", "prompt.txt", "train.jsonl"]
    assert "textgrad-engine train task --folds 5" in done.stdout
    said = [line.split("  #")[0].split()[1:] for line in done.stdout.splitlines() if line.startswith("  textgrad-")]
    assert [each[0] for each in said] == ["eval", "estimate", "train"]
    assert [invoke(*each).exit_code for each in said] == [0, 0, 0]


def test_columns_are_named_in_either_form_of_unicode(init: Init) -> None:
    """A terminal may give an accent by itself, as macOS does; a table is read with those that are composed."""
    rows = [{"e\u0301tat": f"t{n}", "cle\u0301": "ab"[n % 2], "groupe\u0301": n} for n in range(8)]
    args = ("--target", "cle\u0301", "--input", "e\u0301tat", "--clusters", "groupe\u0301", *MODEL)
    done = init(rows, *args)
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize(("number", "said", "folds"), [(3, "3 examples", 3), (1, "1 example", 0)])
def test_too_few_for_folds_are_told_so(init: Init, number: int, said: str, folds: int) -> None:
    """And not only by the command that is named, which takes as many as there can be."""
    done = init(tickets(number), "--target", "queue", *MODEL)
    assert f"But --folds 5: {said} with inputs of their own cannot be dealt" in " ".join(done.stdout.split())
    assert f"train task --folds {folds} " in done.stdout if folds else "textgrad-engine train" not in done.stdout
    assert ("tests all of them in turn" in " ".join(done.stdout.split())) == bool(folds)
    assert "textgrad-engine eval task" in done.stdout


def test_few_clusters_make_few_folds(init: Init) -> None:
    """Each fold takes two of them."""
    rows = [{"ticket": f"ticket {n}", "doc": f"d{n % 6}", "queue": "trust"} for n in range(30)]
    done = init(rows, "--target", "queue", "--clusters", "doc", *MODEL)
    assert "But --folds 5: 6 clusters by 'doc' cannot be dealt to 5 folds" in " ".join(done.stdout.split())
    assert "textgrad-engine train task --folds 3" in done.stdout
    assert invoke("estimate", "task", "--folds", "3").exit_code == 0


def test_what_is_said_fits_a_narrow_terminal(init: Init, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line is broken nowhere."""
    monkeypatch.setenv("COLUMNS", "50")
    done = init(tickets(9), "--target", "queue", *MODEL)
    assert max(map(len, done.stdout.splitlines())) <= 50
    assert "  textgrad-engine train task --folds 5\n" in done.stdout


def test_wide_letters_of_a_folder_s_name_take_two_columns(init: Init, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a terminal shows them."""
    monkeypatch.setenv("COLUMNS", "80")
    init(tickets(120), "--target", "queue", *MODEL)
    said = invoke("init", "\u65e5\u672c" * 8, "--data", "table.csv", "--target", "queue", *MODEL).stdout
    assert max(cell_len(line) for line in said.splitlines()) <= 80


def test_numbers_are_written_in_one_way(init: Init) -> None:
    said = " ".join(init(tickets(4000), "--target", "queue", *MODEL).stdout.split())
    assert "the 4,000 examples of table.csv: 1,200 in train, 1,200 in val, 1,600 in test." in said


def test_equal_inputs_and_clusters_are_in_one_part(init: Init) -> None:
    """`train` refuses parts that overlap, and a document that is trained on is no test."""
    rows = [{"ticket": f"ticket {n // 2}", "doc": f"d{n // 5}", "queue": "trust"} for n in range(150)]
    assert init(rows, "--target", "queue", "--clusters", "doc", *MODEL).exit_code == 0
    for column in ("ticket", "doc"):
        seen = [{row[column] for row in part} for part in parts().values()]
        assert sum(map(len, seen)) == len(set.union(*seen))
    assert tomllib.loads(Path("task/config.toml").read_text(encoding="utf-8"))["data"]["clusters"] == "doc"


def test_the_seed_draws_other_parts(init: Init) -> None:
    """The same one draws the same."""
    found = []
    for number, seed in enumerate(("1", "1", "2")):
        assert init(tickets(120), "--target", "queue", "--seed", seed, *MODEL).exit_code == 0
        found.append([row["ticket"] for row in parts()["test"]])
        Path("task").rename(f"task{number}")
    assert found[0] == found[1] != found[2]


def test_a_prompt_of_ones_own_is_taken_as_it_is(init: Init) -> None:
    """Its file stays where it is."""
    Path("mine.txt").write_text("Sort.\n\n  Be brief.", encoding="utf-8")
    assert init(tickets(9), "--target", "queue", "--prompt", "mine.txt", *MODEL).exit_code == 0
    assert Path("task/prompt.txt").read_text(encoding="utf-8") == "Sort.\n\n  Be brief."


SOURCE = 'import os\n\nSHORT = "Sort."\nTICKETS: str = """\\\nSort the ticket.\nSay "billing" or $HOME."""\n'


def test_source_that_holds_the_prompt_is_not_taken_for_it(init: Init, tmp_path: Path) -> None:
    """The model would be sent Python; the command that is named writes the text itself to a file."""
    Path("my app").mkdir()
    Path("my app/prompts.py").write_text(SOURCE, encoding="utf-8")
    done = init(tickets(9), "--target", "queue", "--prompt", "my app/prompts.py", *MODEL)
    assert (done.exit_code, Path("task").exists()) == (2, False)
    assert f"--prompt {Path('my app/prompts.py')}: this is Python source" in done.stderr
    assert "TICKETS or SHORT" in done.stderr
    assert written_by(done.stderr) == 'Sort the ticket.\nSay "billing" or $HOME.'
    assert init(tickets(9), "--target", "queue", "--prompt", "prompt.txt", *MODEL).exit_code == 0


def written_by(said: str) -> str:
    """What ``prompt.txt`` holds after the command that an error names."""
    named = said.partition("such as `")[2].partition("`")[0]
    python = f'"{sys.executable}"' if os.name == "nt" else shlex.quote(sys.executable)
    subprocess.run(named.replace("python", python, 1), shell=True, check=True)
    return Path("prompt.txt").read_text(encoding="utf-8")


def test_on_windows_the_command_that_is_named_is_for_its_shells(init: Init, monkeypatch: pytest.MonkeyPatch) -> None:
    """Single quotes are none to cmd, and PowerShell takes away double ones inside, and redirects as UTF-16."""
    monkeypatch.setattr(prompt_source, "_WINDOWS", True)
    Path("Ada's app").mkdir()
    Path("Ada's app/prompts.py").write_text(SOURCE, encoding="utf-8")
    said = init(tickets(9), "--target", "queue", "--prompt", "Ada's app/prompts.py", *MODEL).stderr
    begin, inside, end = said.partition("such as `")[2].partition("`")[0].split('"')
    assert (begin, end) == ("python -c ", "")
    assert ">" not in inside
    assert written_by(said) == 'Sort the ticket.\nSay "billing" or $HOME.'


def test_the_command_that_is_named_holds_any_name(init: Init) -> None:
    """Beyond the first 65,536 characters, too, which JSON would write as two halves."""
    Path("\U0001f39f.py").write_text('\u0926\u092f\u093e = "Sort."\n', encoding="utf-8")
    done = init(tickets(9), "--target", "queue", "--prompt", "\U0001f39f.py", *MODEL)
    assert written_by(done.stderr) == "Sort."


def test_source_without_a_text_that_can_be_named_is_refused_too(init: Init) -> None:
    """It may be made in a function, or be no Python at all."""
    for text in ("def prompt():\n    return 'Sort.'\n", "Sort the ticket."):
        Path("prompts.py").write_text(text, encoding="utf-8")
        done = init(tickets(9), "--target", "queue", "--prompt", "prompts.py", *MODEL)
        assert done.exit_code == 2
        assert "write the text that it makes to a file, and name that" in done.stderr


def test_a_prompt_with_a_slot_of_its_own_is_told_that_the_column_is_shown_twice(init: Init) -> None:
    """A prompt that was one message with the example in it: whoever is sent all of it reads the example twice."""
    rows = [{"plan": f"{n}", **each} for n, each in enumerate(tickets(9))]
    Path("mine.txt").write_text("Sort the ticket of plan {plan}.", encoding="utf-8")
    said = " ".join(init(rows, "--target", "queue", "--prompt", "mine.txt", *MODEL).stdout.split())
    assert "prompt.txt has {plan}, and so has user in config.toml, so the model would be shown it twice" in said
    assert "Take it out of one of them." in said
    shutil.rmtree("task")
    Path("mine.txt").write_text('Sort {ticket}, as in {{"queue": "trust"}}.', encoding="utf-8")
    said = " ".join(init(tickets(9), "--target", "queue", "--prompt", "mine.txt", *MODEL).stdout.split())
    assert "prompt.txt has {ticket}, and so has user in config.toml" in said
    assert "Take it out of prompt.txt, or train one message that holds both by a class" in said
    assert 'has doubled braces, {{"queue": "trust"}}, which the model is shown as they stand' in said
    shutil.rmtree("task")
    Path("mine.txt").write_text("Sort {{ ticket }}.", encoding="utf-8")
    said = " ".join(init(tickets(9), "--target", "queue", "--prompt", "mine.txt", *MODEL).stdout.split())
    assert "prompt.txt: {{ ticket }} is text in it, as a slot has one pair of braces: {ticket}." in said
    assert "twice" not in said


def test_a_prompt_without_slots_is_told_nothing_of_them(init: Init) -> None:
    """JSON and braces that are no slots of the table are text, as they always were."""
    Path("mine.txt").write_text('Answer {"queue": {"name": ""}}, not {customer}.', encoding="utf-8")
    said = init(tickets(9), "--target", "queue", "--prompt", "mine.txt", *MODEL).stdout
    assert ("twice" in said, "braces" in said) == (False, False)


def test_the_first_prompt_names_the_answers_where_these_are_few(init: Init) -> None:
    """A target that is another one each time is no choice."""
    assert init(tickets(9), "--target", "queue", *MODEL).exit_code == 0
    first = Path("task/prompt.txt").read_text(encoding="utf-8")
    assert "which is one of: account, billing, trust." in first
    Path("task").rename("other")
    rows = [{"a": n, "b": n, "sum": 2 * n} for n in range(9)]
    assert init(rows, "--target", "sum", *MODEL).exit_code == 0
    assert Path("task/prompt.txt").read_text(encoding="utf-8").splitlines()[:2] == [
        "Read the a and the b.",
        "Give the sum.",
    ]
    user = tomllib.loads(Path("task/config.toml").read_text(encoding="utf-8"))["program"]["user"]
    assert user == "a: {a}\nb: {b}"


def test_answers_with_commas_stand_in_lines_of_their_own(init: Init) -> None:
    """In one line nobody could tell where one of them ends."""
    rows = [{"a": n, "kind": ("food, drink", "other")[n % 2]} for n in range(9)]
    assert init(rows, "--target", "kind", *MODEL).exit_code == 0
    first = Path("task/prompt.txt").read_text(encoding="utf-8")
    assert "which is one of these:\n- food, drink\n- other\nAnswer with" in first


@pytest.mark.parametrize(
    "other", ["\u00e9tude ", "e\u0301tude", "\u00e9tude\u00a0", "\u00e9tude\r\n", "\ufeff\u00e9tude"]
)
def test_answers_that_exact_match_takes_for_one_are_one_in_the_prompt(init: Init, other: str) -> None:
    """Cells of spreadsheets end in white space, and letters with signs come from several programs."""
    rows = [{"a": n, "kind": ("\u00e9tude", other, "other", "other")[n % 4]} for n in range(9)]
    assert init(rows, "--target", "kind", *MODEL).exit_code == 0
    first = Path("task/prompt.txt").read_text(encoding="utf-8")
    assert first.splitlines()[1] == "Give the kind, which is one of: other, \u00e9tude."


@pytest.mark.parametrize("answer", ["\U0001f469\u200d\U0001f4bb", "\u0646\u0645\u06cc\u200c\u062f\u0627\u0646\u0645"])
def test_answers_with_joiners_are_named(init: Init, answer: str) -> None:
    """Persian is written with them, and emoji of several are made of them."""
    rows = [{"a": n, "kind": (answer, "other")[n % 2]} for n in range(9)]
    assert init(rows, "--target", "kind", *MODEL).exit_code == 0
    assert answer in Path("task/prompt.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("answer", ["{kind}", "{a}", "two\nlines"])
def test_answers_that_would_change_the_prompt_are_not_named_in_it(init: Init, answer: str) -> None:
    """One in braces would be a slot, and train would refuse the folder that was just made."""
    rows = [{"a": n, "kind": (answer, "other")[n % 2]} for n in range(9)]
    assert init(rows, "--target", "kind", *MODEL).exit_code == 0
    first = Path("task/prompt.txt").read_text(encoding="utf-8")
    assert first == "Read the a.\nGive the kind.\nAnswer with the kind and nothing else.\n"


def test_long_answers_are_told_of(init: Init) -> None:
    """Exact match would say that all of them are wrong."""
    rows = [{"q": f"q{n}", "answer": f"a{n} " * 40} for n in range(9)]
    assert "see [metric] in config.toml" in " ".join(init(rows, "--target", "answer", *MODEL).stdout.split())


@pytest.mark.parametrize("column", ['say "it"', "a\\b", "tab\there", "\x7f", "naïve', 'and [x]\n# y"])
def test_any_name_of_a_column_can_be_written(init: Init, column: str) -> None:
    """The config is TOML, whatever the table is called and has in it."""
    rows = [{"ticket": f"t{n}", column: "yes"} for n in range(120)]
    done = init(rows, "--target", column, *MODEL, name="ta'ble.csv")
    assert done.exit_code == 0, done.output
    assert tomllib.loads(Path("task/config.toml").read_text(encoding="utf-8"))["data"]["target"] == column


def test_model_and_endpoint_are_in_the_config(init: Init) -> None:
    """An endpoint of one's own needs no key here, as nobody is asked."""
    done = init(tickets(9), "--target", "queue", "--model", "qwen3:8b", "--base-url", "http://localhost:11434/v1")
    assert done.exit_code == 0, done.output
    models = tomllib.loads(Path("task/config.toml").read_text(encoding="utf-8"))["models"]
    assert models == {"forward": "qwen3:8b", "base_url": "http://localhost:11434/v1"}


@pytest.mark.parametrize(
    ("args", "budget"),
    [
        (("--model", "openai/gpt-5-mini"), {"dollars": 2.0}),
        (("--model", "openai/gpt-5-mini", "--base-url", "http://localhost:1/v1"), {"calls": 5000}),
        (("--model", "no-such-model"), {"calls": 5000}),
        (MODEL, {"calls": 5000}),
    ],
)
def test_the_budget_is_in_dollars_where_these_are_known(init: Init, args: tuple[str, ...], budget: Any) -> None:
    """A limit that cannot be kept is refused by `train`."""
    assert init(tickets(9), "--target", "queue", *args).exit_code == 0
    assert tomllib.loads(Path("task/config.toml").read_text(encoding="utf-8"))["budget"] == budget


# columns that hold the answer


def leaky(number: int = 12, **columns: Callable[[dict[str, Any]], Any]) -> list[dict[str, Any]]:
    """Tickets with further columns, made of each row."""
    return [{**row, **{name: make(row) for name, make in columns.items()}} for row in tickets(number)]


def shown() -> str:
    config: dict[str, Any] = tomllib.loads(Path("task/config.toml").read_text(encoding="utf-8"))
    return str(config["program"]["user"])


def test_a_column_that_is_the_answer_is_left_out_and_said(init: Init) -> None:
    """A prompt that is shown it would only learn to copy it, and score 1.0."""
    done = init(leaky(desk=lambda row: row["queue"].upper() + " "), "--target", "queue", *MODEL)
    assert done.exit_code == 0, done.output
    assert "The column 'desk' is the answer itself ('queue') in all rows" in " ".join(done.output.split())
    assert shown() == "{ticket}"


def test_one_that_nearly_always_is_the_answer_is_left_out_too(init: Init) -> None:
    """A few rows in which somebody sent the ticket on make it no better."""
    rows = leaky(60, desk=lambda row: "trust" if row["ticket"] == "ticket 3 says" else row["queue"])
    done = init(rows, "--target", "queue", *MODEL)
    assert "is the answer itself ('queue') in 98% of the rows" in " ".join(done.output.split())
    assert shown() == "{ticket}"


def test_one_that_agrees_where_nearly_all_answers_are_the_same_is_shown(init: Init) -> None:
    """Both are "no" nearly always, and it says nothing of the few that matter."""
    rows = [{"mail": f"mail {n}", "link": "no", "spam": "yes" if n % 20 == 0 else "no"} for n in range(60)]
    done = init(rows, "--target", "spam", *MODEL)
    assert "is the answer itself" not in done.output
    assert "{link}" in shown()


def test_one_that_is_named_is_shown_and_said(init: Init) -> None:
    """Who names it may want that."""
    rows = leaky(desk=lambda row: row["queue"])
    done = init(rows, "--target", "queue", "--input", "ticket", "--input", "desk", *MODEL)
    assert "'desk' is the answer itself ('queue') in all rows: it is shown, as --input" in " ".join(done.output.split())
    assert "{desk}" in shown()


def test_where_nothing_else_is_left_to_show_that_is_an_error(init: Init) -> None:
    """And nothing is written."""
    rows = [{"desk": row["queue"], "queue": row["queue"]} for row in tickets(12)]
    done = init(rows, "--target", "queue", *MODEL)
    assert done.exit_code == 2
    assert "besides queue and desk, as desk is the answer itself; add one" in " ".join(done.output.split())
    assert not Path("task").exists()


def test_equal_rows_do_not_make_the_parts_lopsided(init: Init) -> None:
    """A question that is there sixty times is one to train on, beside others; the rest is cut as without it."""
    rows = [*[{"ticket": "Where is it?", "queue": "trust"}] * 60, *tickets(140)]
    done = init(rows, "--target", "queue", *MODEL)
    said = " ".join(done.stdout.split())
    assert "102 in train, 42 in val, 56 in test." in said
    assert "stay in one part, and up to 60 do, so the parts are not 60, 60 and 80." in said


def test_where_equal_rows_are_too_many_for_parts_of_the_usual_sizes_it_is_said(init: Init) -> None:
    """Else 144, 24 and 32 of 200 look like a mistake."""
    rows = [*[{"ticket": "Where is it?", "queue": "trust"}] * 120, *tickets(80)]
    done = init(rows, "--target", "queue", *MODEL)
    said = " ".join(done.stdout.split())
    assert "144 in train, 24 in val, 32 in test." in said
    assert (
        "Examples with the same ticket stay in one part, and up to 120 do, so the parts are not 60, 60 and 80." in said
    )
