"""``textgrad-engine init`` where the answers are objects, or in several columns."""

from __future__ import annotations

import csv
import json
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from textgrad_engine.cli.init_answers import Answer
from textgrad_engine.cli.init_targets import answers_of
from textgrad_engine.data import Dataset

from ..runner import invoke

CLERK = """
import json
import re

from textgrad_engine.testing import feedback_for, FunctionModel


def clerk(request):
    prompt, mail = request.messages[0].text, request.messages[-1].text
    if request.purpose == "backward":
        return feedback_for(request, "Money is billing.")
    if request.purpose == "optimizer":
        last = max(int(number) for number in re.findall(r"^(\\d+)\\|", mail, re.MULTILINE))
        return {"edits": [{"op": "add", "line": last, "reason": "r", "feedback": [1], "text": "Money is billing."}]}
    paid = int(mail.split()[-1])
    queue = "billing" if "Money" in prompt and paid % 2 else "trust"
    return json.dumps({"queue": queue, "euros": float(paid)})


model = FunctionModel(clerk, name="clerk")
"""


TAGGER = CLERK.replace(
    """queue = "billing" if "Money" in prompt and paid % 2 else "trust"
    return json.dumps({"queue": queue, "euros": float(paid)})""",
    """tags = [["broken", "late"], ["late"], []][paid % 3]
    return json.dumps({"tags": tags if "Money" in prompt else ["late"]})""",
)
"""A model that tags mails, with the tags in another order."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the tables, with a model that extracts beside it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def init(rows: list[dict[str, Any]], *args: str, name: str = "table.jsonl") -> Result:
    if name.endswith(".csv"):
        with Path(name).open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, rows[0])
            table.writeheader()
            table.writerows(rows)
    else:
        Path(name).write_text("".join([json.dumps(row) + "\n" for row in rows]), encoding="utf-8")
    return invoke("init", "task", "--data", name, "--model", "simulated/tickets", *args)


def config() -> dict[str, Any]:
    return tomllib.loads(Path("task/config.toml").read_text(encoding="utf-8"))


def flat(number: int) -> list[dict[str, Any]]:
    return [{"mail": f"mail {n}", "queue": "billing" if n % 2 else "trust", "euros": n} for n in range(number)]


def objects(number: int) -> list[dict[str, Any]]:
    return [{"mail": row.pop("mail"), "target": row} for row in flat(number)]


# what is refused, with nothing written


TWO = ("--target", "queue", "--target", "euros")

REFUSED: dict[str, tuple[list[dict[str, Any]], tuple[str, ...], str]] = {
    "a text among objects": (
        [*objects(2), {"mail": "x", "target": "billing"}],
        (),
        ":3: column 'target', by --target, is 'billing' in this row, and an object in others; write it as an object",
    ),
    "an object without a field": (
        [*objects(2), {"mail": "x", "target": {"queue": "a"}}],
        (),
        ":3: .* an object without the field 'euros', which others have; write 'euros': null where there is nothing",
    ),
    "no field": ([{"mail": "x", "target": {}}], (), ":1: .* is an object without a field in all rows"),
    "a list among texts": (
        [{"mail": "x", "target": "a"}, {"mail": "y", "target": None}, {"mail": "z", "target": ["a"]}],
        (),
        ":2: .*null",
    ),
    "null alone": ([{"mail": "x", "target": {"a": None}}], (), "'a', by --target, is null in all rows"),
    "an object in one of several": (
        [*flat(2), {"mail": "x", "queue": "1", "euros": {"c": 1}}],
        TWO,
        ":3: column 'euros', by --target, is an object in this row, and a single value before; write all rows alike",
    ),
    "criteria among several answers": (
        [{**row, "asked": [{"criterion": "It greets."}]} for row in flat(3)],
        ("--target", "queue", "--target", "asked"),
        ":1: column 'asked', by --target, has criteria, which no answer has as a field; name it alone, or leave it out",
    ),
    "no such notes": (flat(3), (*TWO, "--notes", "mial"), "--notes mial: .* no such column; .* did you mean 'mail'"),
    "notes that are shown": (
        flat(3),
        ("--target", "queue", "--notes", "mail", "--input", "mail"),
        "--input mail: that is what people noted, by --notes; the model must not be shown it",
    ),
    "notes that are the answer": (
        flat(3),
        (*TWO, "--notes", "queue"),
        "--notes queue: that is the right answer, by --target; the critic is shown it anyway",
    ),
    "no such column": (flat(3), (*TWO, "--target", "mial"), "--target mial: .* no such column; .* did you mean 'mail'"),
    "an answer that is shown": (flat(3), (*TWO, "--input", "euros"), "--input euros: that is the right answer"),
    "a row without a column": ([{"mail": "x", "queue": "1"}, *flat(1)], TWO, ":1: this row has no column 'euros'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_answers_that_cannot_be_compared_are_named(case: str) -> None:
    """With the line of the table and the repair, and nothing is written."""
    rows, args, said = REFUSED[case]
    done = init(rows, *args)
    assert done.exit_code == 2
    assert re.search(said, " ".join(done.stderr.split())), done.stderr
    assert not Path("task").exists()


# what is made


@pytest.mark.parametrize("kind", ["objects", "columns", "csv"])
def test_a_metric_for_each_field_is_trained_as_it_stands(kind: str) -> None:
    """Of an object, and of columns, whose numbers are texts in a CSV."""
    rows, args = (objects(120), ()) if kind == "objects" else (flat(120), TWO)
    done = init(rows, *args, name="table.csv" if kind == "csv" else "table.jsonl")
    assert done.exit_code == 0, done.output
    found = config()
    assert [each["field"] for each in found["metric"]] == ["queue", "euros"]
    own = [each.get("target") for each in found["metric"]]
    assert own == ([None, None] if kind == "objects" else ["queue", "euros"])
    assert found["data"].get("target") == ("target" if kind == "objects" else None)
    assert found["program"]["response_format"]["properties"] == {
        "queue": {"type": "string", "enum": ["billing", "trust"]},
        "euros": {"type": "integer"},
    }
    first = Path("task/prompt.txt").read_text(encoding="utf-8")
    assert first == (
        "Read the mail.\nAnswer with a JSON object that has\n- queue, which is one of: billing, trust\n- euros\n"
    )
    if kind != "columns":
        assert invoke("train", "task", "-q", "--run-dir", "simulated").exit_code == 0
    Path("task/clerk.py").write_text(CLERK, encoding="utf-8")
    ran = invoke("train", "task", "--model", "clerk:model", "--json", "--run-dir", "run")
    assert ran.exit_code == 0, ran.output
    result = json.loads(ran.stdout)
    assert (result["test"]["best"]["mean"], result["verdict"]) == (1.0, "better")
    assert [part["mean"] for part in result["test"]["seed"]["parts"]][1] == 1.0


def test_a_few_of_them_go_through_folds() -> None:
    """As init says."""
    assert init(objects(12)).exit_code == 0
    assert invoke("train", "task", "--folds", "2", "-q", "--run-dir", "run").exit_code == 0


def test_lists_and_objects_must_be_right_as_a_whole() -> None:
    """Each field that is one has a metric that compares JSON: of tags in any order, of what has parts in its own."""
    rows = [
        {"mail": f"m{n}", "target": {"name": f"n{n}", "tags": ["a"], "items": [{"sku": f"s{n}", "count": n}]}}
        for n in range(9)
    ]
    done = init(rows)
    assert done.exit_code == 0, done.output
    said = " ".join(done.stdout.split())
    assert "Of 'tags', 'items' the whole value must be right (json_match)" in said
    found = config()
    assert found["metric"] == [
        {"name": "exact_match", "field": "name"},
        {"name": "json_match", "any_order": True, "field": "tags"},
        {"name": "json_match", "field": "items"},
    ]
    form = found["program"]["response_format"]
    assert form["required"] == ["name", "tags", "items"]
    assert form["properties"]["tags"] == {"type": "array", "items": {"type": "string"}}
    assert form["properties"]["items"]["items"] == {
        "type": "object",
        "required": ["sku", "count"],
        "additionalProperties": False,
        "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}},
    }
    prompt = Path("task/prompt.txt").read_text(encoding="utf-8")
    assert prompt.endswith("- name\n- tags, which is a list of some of: a\n- items\n")
    assert invoke("eval", "task", "-q").exit_code == 0


def test_a_list_may_be_missing_among_several_answers() -> None:
    """Null is no value of another kind, and the model may answer it."""
    rows = [{"mail": f"m{n}", "tags": None if n % 3 == 1 else ["a", "b"], "n": n} for n in range(9)]
    done = init(rows, "--target", "tags", "--target", "n")
    assert done.exit_code == 0, done.output
    assert config()["program"]["response_format"]["properties"]["tags"]["type"] == ["array", "null"]


def test_json_in_a_column_of_a_csv_is_read() -> None:
    """A cell holds no object, so whoever labels an extraction in a spreadsheet writes it as JSON."""
    rows = [{**row, "target": json.dumps(row["target"])} for row in objects(120)]
    done = init(rows, name="table.csv")
    assert done.exit_code == 0, done.output
    assert [each["field"] for each in config()["metric"]] == ["queue", "euros"]
    first = json.loads(Path("task/train.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert set(first["target"]) == {"queue", "euros"}


def test_a_row_without_json_among_such_is_named() -> None:
    """With its line, as where the table has objects."""
    rows = [{**row, "target": json.dumps(row["target"])} for row in objects(12)]
    rows[3]["target"] = " "
    done = init(rows, name="table.csv")
    assert done.exit_code == 2
    assert "table.csv:5: column 'target', by --target, is ' ' in this row, and an object in others" in " ".join(
        done.stderr.split()
    )


def test_truth_values_are_named_as_json_writes_them() -> None:
    """The prompt asks for JSON, in which there is no True."""
    rows = [{"mail": f"m{n}", "target": {"name": f"n{n}", "urgent": n % 2 == 0}} for n in range(9)]
    assert init(rows).exit_code == 0
    assert "- urgent, which is one of: false, true\n" in Path("task/prompt.txt").read_text(encoding="utf-8")


def test_a_column_that_is_one_of_the_answers_is_left_out() -> None:
    """Whichever of them it is."""
    rows = [{**row, "desk": row["queue"].upper()} for row in flat(12)]
    done = init(rows, "--target", "euros", "--target", "queue")
    assert "The column 'desk' is the answer itself ('queue') in all rows" in " ".join(done.stdout.split())
    assert config()["program"]["user"] == "{mail}"


@pytest.mark.parametrize("name", ["a b", "say {it}", 'quo"te', "größe", "line\nbreak"])
def test_any_name_of_a_field_can_be_written(name: str) -> None:
    """The config is TOML, and the prompt has no slot that is none."""
    rows = [{"mail": f"m{n}", "target": {name: f"v{n}", "other": n}} for n in range(9)]
    done = init(rows)
    assert done.exit_code == 0, done.output
    assert config()["metric"][0]["field"] == name
    assert invoke("eval", "task", "-q").exit_code == 0


def test_labels_with_commas_are_told_apart() -> None:
    """In one line."""
    rows = [{"mail": f"m{n}", "kind": ("food, drink", "other")[n % 2], "n": n} for n in range(9)]
    assert init(rows, "--target", "kind", "--target", "n").exit_code == 0
    assert "- kind, which is one of: food, drink; other\n" in Path("task/prompt.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (["a", "", " ", "b"], "In 2 rows the column 'kind' is empty."),
        (["a", "", "b"], "In 1 row the column 'kind' is empty."),
    ],
)
def test_texts_that_are_hardly_ever_right_are_told_of(answers: list[str], said: str) -> None:
    """A table may be half done."""
    assert said in " ".join(init_of_kinds(answers).stdout.split())


@pytest.mark.parametrize("answers", [["a", "b"], ['{"a": 1}', "none"], ["[1]", "[2]"], ["{" * 5000] * 2])
def test_other_texts_are_not_told_of(answers: list[str]) -> None:
    """An answer may well begin with a brace."""
    assert "column 'kind'" not in " ".join(init_of_kinds(answers).stdout.split())


def init_of_kinds(answers: list[str]) -> Result:
    return init([{"mail": f"m{n}", "kind": answer} for n, answer in enumerate(answers)], "--target", "kind")


def test_long_answers_are_told_of() -> None:
    """Of any field."""
    rows = [{"mail": f"m{n}", "target": {"why": f"because {n} " * 20, "n": n}} for n in range(9)]
    assert "see [metric] in config.toml" in " ".join(init(rows).stdout.split())


@pytest.mark.parametrize(
    ("values", "texts_alone", "schema"),
    [
        ((1, 2), False, {"type": "integer"}),
        ((1, 2.5), False, {"type": "number"}),
        ((True, False), False, {"type": "boolean"}),
        (("1", "2"), False, {"type": "string"}),
        (("1", "2"), True, {"type": "integer"}),
        (("1", "2.50", "-1e3"), True, {"type": "number"}),
        (("007", "12"), True, {"type": "string"}),
        (("1,5", "2"), True, {"type": "string"}),
        (("1e400", "2"), True, {"type": "string"}),
        (("9" * 5000, "2"), True, {"type": "string"}),
        ((1, "a"), False, {"type": ["integer", "string"]}),
        ((1, None), False, {"type": ["integer", "null"]}),
        (("a", "b", "a", "b"), False, {"type": "string", "enum": ["a", "b"]}),
        (("a", "b", "a", "b", None), False, {"type": ["string", "null"]}),
        (("a", "a"), False, {"type": "string"}),
        (("a", "b"), False, {"type": "string"}),
        (([], []), False, {"type": "array", "items": {"type": "string"}}),
        (([1], None), False, {"type": ["array", "null"], "items": {"type": "integer"}}),
        (([1], "a"), False, {"type": ["array", "string"]}),
        (
            ({"a": 1}, {"a": 2, "b": [True]}),
            False,
            {
                "type": "object",
                "required": ["a"],
                "additionalProperties": False,
                "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {"type": "boolean"}}},
            },
        ),
    ],
)
def test_the_form_is_that_of_the_values(values: tuple[Any, ...], texts_alone: bool, schema: dict[str, Any]) -> None:
    """A number in a CSV is a text that JSON would read as one; a choice has a few values, each more than once."""
    assert Answer("a", "a", values).schema(texts_alone=texts_alone) == schema


def test_one_column_of_texts_is_a_text() -> None:
    """As most tables have it: no JSON is asked for."""
    found = answers_of(Dataset([{"a": "x"}, {"a": "y"}]), ["a", "a"])
    assert (found.fields, found.columns, found.each[0].values) == (False, ("a",), ("x", "y"))


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_a_column_of_lists_is_trained_as_it_stands(kind: str) -> None:
    """Of tags, say: the answer is an object with that list, as endpoints hold models to objects."""
    tags = [["late", "broken"], ["late"], []]
    rows = [
        {"mail": f"mail {n}", "tags": json.dumps(tags[n % 3]) if kind == "csv" else tags[n % 3]} for n in range(120)
    ]
    done = init(rows, "--target", "tags", name=f"table.{kind}")
    assert done.exit_code == 0, done.output
    found = config()
    assert found["metric"] == {"name": "json_match", "any_order": True, "field": "tags"}
    form = found["program"]["response_format"]["properties"]
    assert form == {"tags": {"type": "array", "items": {"type": "string", "enum": ["broken", "late"]}}}
    prompt = Path("task/prompt.txt").read_text(encoding="utf-8")
    assert prompt.endswith("\nAnswer with a JSON object that has\n- tags, which is a list of some of: broken, late\n")
    Path("task/clerk.py").write_text(TAGGER, encoding="utf-8")
    ran = invoke("train", "task", "--model", "clerk:model", "--json", "--run-dir", "run")
    assert ran.exit_code == 0, ran.output
    result = json.loads(ran.stdout)
    assert (result["test"]["best"]["mean"], result["verdict"]) == (1.0, "better")


def test_lists_in_one_of_several_columns_of_a_csv_are_read() -> None:
    """As those of a table of JSON lines are, and not taken for one text among a few."""
    tags = [["late", "broken"], ["late"], []]
    rows = [{"mail": f"mail {n}", "tags": json.dumps(tags[n % 3]), "euros": n} for n in range(12)]
    assert init(rows, "--target", "tags", "--target", "euros", name="table.csv").exit_code == 0
    found = config()
    assert found["metric"][0] == {"name": "json_match", "any_order": True, "field": "tags", "target": "tags"}
    assert found["program"]["response_format"]["properties"]["tags"]["type"] == "array"
    first = Path("task/train.jsonl").read_text(encoding="utf-8").splitlines()[0]
    assert (json.loads(first)["tags"], json.loads(first)["euros"]) == (tags[0], "0")


def test_objects_in_one_of_several_columns_are_compared_whole() -> None:
    """And not with what they have in a field of that name, so they become a field of one answer."""
    rows = [{"mail": f"mail {n}", "who": {"who": f"n{n}"}, "n": n} for n in range(12)]
    assert init(rows, "--target", "who", "--target", "n", "--clusters", "n").exit_code == 0
    Path("task/clerk.py").write_text(
        "import json\n"
        "from textgrad_engine.testing import FunctionModel\n"
        "number = lambda request: int(request.messages[-1].text.split()[-1])\n"
        "answer = lambda n: json.dumps({'who': {'who': f'n{n}'}, 'n': n})\n"
        "model = FunctionModel(lambda request: answer(number(request)))\n",
        encoding="utf-8",
    )
    ran = invoke("eval", "task", "--model", "clerk:model", "--json")
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["mean"] == 1.0


JUDGE = """
import re

from textgrad_engine.testing import feedback_for, FunctionModel


def clerk(request):
    prompt, mail = request.messages[0].text, request.messages[-1].text
    if request.purpose == "judge":
        criteria, answer = mail.partition("<answer-")[::2]
        asked = re.findall(r"^(\\d+)\\. It says (\\w+)", criteria, re.MULTILINE)
        return {number: {"explanation": f"Say {word}.", "met": word in answer} for number, word in asked}
    if request.purpose == "backward":
        return feedback_for(request, "Say sorry.")
    if request.purpose == "optimizer":
        last = max(int(number) for number in re.findall(r"^(\\d+)\\|", mail, re.MULTILINE))
        return {"edits": [{"op": "add", "line": last, "reason": "r", "feedback": [1], "text": "Say sorry."}]}
    return "soon, sorry" if "sorry" in prompt else "soon"


model = FunctionModel(clerk, name="clerk")
"""


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_a_column_of_criteria_is_trained_as_it_stands(kind: str) -> None:
    """In the form of HealthBench: each example's answer is looked at by its own."""
    criteria = [{"criterion": "It says soon.", "points": 1}, {"criterion": "It says sorry.", "points": 3, "tags": []}]
    value = json.dumps(criteria) if kind == "csv" else criteria
    rows = [{"mail": f"mail {n}", "rubrics": value} for n in range(120)]
    done = init(rows, "--target", "rubrics", name=f"table.{kind}")
    assert done.exit_code == 0, done.output
    assert "'rubrics' has criteria, and a judge says of each whether" in done.output
    assert (config()["metric"], config()["program"].get("response_format")) == ({"name": "rubric"}, None)
    assert Path("task/prompt.txt").read_text(encoding="utf-8") == "Read the mail, and answer.\n"
    Path("task/clerk.py").write_text(JUDGE, encoding="utf-8")
    ran = invoke("train", "task", "--model", "clerk:model", "--json", "--run-dir", "run")
    assert ran.exit_code == 0, ran.output
    test = json.loads(ran.stdout)["test"]
    assert (test["seed"]["mean"], test["best"]["mean"]) == (0.25, 1.0)


def test_criteria_as_python_writes_them_are_told_of() -> None:
    """As a data frame with lists in its cells is saved: they were long texts that an answer should be to the letter."""
    rows = [{"mail": f"mail {n}", "rubrics": str([{"criterion": f"It's {n}.", "points": 1}])} for n in range(12)]
    done = init(rows, "--target", "rubrics", name="table.csv")
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "'rubrics' has lists or objects as Python's str() writes them, and is taken for text; as json" in said
    shutil.rmtree("task")
    plain = init([{**row, "rubrics": "[sic] {so it was"} for row in rows], "--target", "rubrics")
    assert (plain.exit_code, "Python's" in plain.output) == (0, False)


def test_what_all_examples_share_is_told_by_criterion() -> None:
    """In the report, by eval, and of single examples."""
    assert init([{"mail": f"mail {n}", "target": "x"} for n in range(120)]).exit_code == 0
    Path("task/clerk.py").write_text(JUDGE, encoding="utf-8")
    found = Path("task/config.toml").read_text(encoding="utf-8")
    made = 'name = "rubric"\ncriteria = ["It says soon.", { criterion = "It says sorry.", points = 3 }]'
    Path("task/config.toml").write_text(found.replace('name = "exact_match"', made), encoding="utf-8")
    ran = invoke("train", "task", "--model", "clerk:model", "--run-dir", "run")
    assert ran.exit_code == 0, ran.output
    assert "How many of the answers do well by each of the 2 criteria" in ran.stdout
    assert re.search(r"It says sorry\.\s+75%\s+0\.000\s+1\.000", ran.stdout)
    done = invoke("eval", "run", "--seed-prompt")
    lines = r"of it\s+1\.000 It says soon\., 1 point\n\s+0\.000 It says sorry\., 3 points\n"
    assert re.search(lines, done.stdout), done.output


def test_a_criterion_of_several_lines_is_told_in_its_place_by_eval() -> None:
    """Its second line had stood at the edge, as a line of the result."""
    assert init([{"mail": f"mail {n}", "target": "x"} for n in range(12)]).exit_code == 0
    Path("task/clerk.py").write_text(JUDGE, encoding="utf-8")
    found = Path("task/config.toml").read_text(encoding="utf-8")
    long = "It says soon,\\n- and then " + "what comes next, " * 6
    made = f'name = "rubric"\ncriteria = ["{long}", "It says sorry."]'
    Path("task/config.toml").write_text(found.replace('name = "exact_match"', made), encoding="utf-8")
    lines = invoke("eval", "task", "--model", "clerk:model").stdout.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("  of it "))
    assert lines[at].endswith("It says soon, - and then what comes next, what comes next, what")
    assert (lines[at + 1][:15].strip(), lines[at + 2].split()[-2:]) == ("", ["1", "point"])
    assert all(len(line) <= 80 for line in lines)


def test_a_column_of_notes_is_for_the_critic() -> None:
    """Some rows may have none; one that says the answer is no leak, as the model is not shown it."""
    rows = [{**row, "why": row["queue"] if number % 3 else None} for number, row in enumerate(flat(120))]
    done = init(rows, "--target", "queue", "--target", "euros", "--notes", "why")
    assert done.exit_code == 0, done.output
    assert (config()["data"]["notes"], config()["program"]["user"]) == ("why", "{mail}")
    assert "'why'" not in done.output
    Path("task/clerk.py").write_text(CLERK, encoding="utf-8")
    ran = invoke("train", "task", "--model", "clerk:model", "--json", "--run-dir", "run")
    assert ran.exit_code == 0, ran.output
    asked = Path("run/completions.jsonl").read_text(encoding="utf-8")
    assert "People noted this on the case" in asked


@pytest.mark.parametrize(("mark", "pattern"), [("#### {}", "#### (.*)"), (r"so $\\boxed{{{}}}$.", r"\\boxed\{(.*)\}")])
def test_answers_behind_their_reasoning_are_compared_alone(mark: str, pattern: str) -> None:
    """As GSM8K and MATH have them: the prompt asks for the mark, and each answer is long."""
    rows = [{"q": f"Twice {n}?", "answer": f"{n} and {n} are the answer.\n{mark.format(2 * n)}"} for n in range(12)]
    done = init(rows, "--target", "answer")
    assert done.exit_code == 0, done.output
    assert config()["metric"] == {"name": "exact_match", "pattern": pattern}
    assert "to the letter" not in done.output
    assert "What 'answer' has behind its reasoning is compared" in done.output
    first, last = Path("task/prompt.txt").read_text(encoding="utf-8").splitlines()
    assert first == "Read the q, and answer step by step."
    assert mark.format("")[:4].strip("$ s") in last
    Path("task/clerk.py").write_text(
        "import re\nfrom textgrad_engine.testing import FunctionModel\n"
        f"mark = {mark!r}\n"
        "def says(request):\n"
        "    return 'Easy. ' + mark.format(2 * int(re.findall('[0-9]+', request.messages[-1].text)[0]))\n"
        "model = FunctionModel(says)\n",
        encoding="utf-8",
    )
    ran = invoke("eval", "task", "--model", "clerk:model", "--json")
    assert json.loads(ran.stdout)["mean"] == 1.0


def test_one_answer_without_the_mark_is_told_of() -> None:
    """Then nothing says where the others end, and all are compared whole."""
    rows = [{"q": f"Twice {n}?", "answer": f"{n} and {n} are {'####' if n else ''} {2 * n}"} for n in range(12)]
    assert init(rows, "--target", "answer").exit_code == 0
    assert config()["metric"] == {"name": "exact_match"}


def test_an_object_may_hold_what_looks_like_criteria() -> None:
    """The model is asked to find them there, as any other value."""
    rows = [{"mail": f"mail {n}", "target": {"wishes": [{"criterion": f"It is {n}."}]}} for n in range(12)]
    assert init(rows).exit_code == 0
    assert config()["metric"] == {"name": "json_match", "field": "wishes"}
