"""``--json``: one document on stdout whatever happens, and docs/json.md says what is in it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from textgrad_engine.cli import output
from textgrad_engine.errors import RunError

PAGE = (Path(__file__).parents[2] / "docs" / "json.md").read_text(encoding="utf-8")
TICKETS = Path(__file__).parents[2] / "examples" / "tickets"


def explained(heading: str) -> set[str]:
    """The keys that a section of the page names, and those of the parts that come again."""
    sections = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")}
    found = next(text for title, text in sections.items() if f"`{heading}" in title or heading == title)
    return set(re.findall(r"`(\w+)`", found + sections["Parts that come again"]))


@pytest.mark.parametrize(
    ("heading", "args"),
    [
        ("train`", ("show", "RUN")),
        ("show RUN --line N`", ("show", "RUN", "--line", "12")),
        ("show RUN --line N`", ("show", "RUN", "--step", "2")),
        ("diff RUN`", ("diff", "RUN")),
        ("diff RUN`", ("diff", "RUN", "RUN")),
        ("eval RUN`", ("eval", "RUN", "--data", str(TICKETS / "val.jsonl"), "--repeats", "2")),
        ("eval RUN`", ("eval", "RUN", "--data", str(TICKETS / "val.jsonl"), "--budget-calls", "9")),
        ("eval RUN`", ("eval", str(TICKETS))),
        ("estimate CONFIG`", ("estimate", str(TICKETS), "--optimizer", "PatchSearch")),
        ("estimate CONFIG`", ("estimate", str(TICKETS), "--folds", "3", "--price", "input=1,output=2")),
        ("shrink RUN`", ("shrink", "RUN", "--max-tries", "1", "--budget-calls", "200")),
    ],
)
def test_the_page_says_what_is_in_it(cli: Any, run: Any, heading: str, args: tuple[str, ...]) -> None:
    """A key that nobody explains is of no use to a script."""
    path = run()
    result = cli(*[str(path) if arg == "RUN" else arg for arg in args], "--json")
    assert set(json.loads(result.stdout)) <= explained(heading)


def test_the_lines_of_a_diff_are_explained(cli: Any, run: Any) -> None:
    """They are what a script takes a change apart by."""
    found = json.loads(cli("show", str(run()), "--json").stdout)["parameters"]
    lines = [line for text in found.values() for line in text["diff"]]
    assert lines
    assert {key for line in lines for key in line} <= explained("train`")


def test_what_changed_beside_the_first_prompt_is_explained(cli: Any, tmp_path: Path) -> None:
    """Of each example that got worse, and of the lists that they are in."""
    (tmp_path / "bad.txt").write_text("Always answer: none of them.", encoding="utf-8")
    result = cli("compare", TICKETS, "--prompt", str(tmp_path / "bad.txt"), "--no-cache", "--json")
    found = json.loads(result.stdout)
    (_, arm) = found["arms"]
    args = ("compare", TICKETS, "--prompt", str(tmp_path / "bad.txt"), "--no-cache", "--json", "--example")
    one = json.loads(cli(*args, arm["changed"]["worse"][0]["id"]).stdout)
    assert set(one) | set(one["example"]) | set(one["arms"][0]) <= explained("compare RUN --example ID`")
    assert set(found) | set(arm) | set(arm["changed"]) | set(arm["changed"]["worse"][0]) <= explained("compare RUN`")


def test_no_key_is_explained_twice() -> None:
    """Two rows for one key say it in two ways, and only one of them is kept up."""
    for section in PAGE.split("\n## "):
        keys = re.findall(r"^\| ((?:`\w+`(?:, )?)+)", section, re.MULTILINE)
        named = [key for cell in keys for key in re.findall(r"`(\w+)`", cell)]
        assert sorted({*named}) == sorted(named), section.partition("\n")[0]


def test_an_error_is_a_document_too(cli: Any, tmp_path: Path) -> None:
    """A script that reads stdout learns why there is nothing else."""
    for command in ("train", "resume", "eval", "estimate", "show", "diff", "shrink"):
        result = cli(command, tmp_path / "nothing", "--json")
        found = json.loads(result.stdout)
        assert set(found) == {"error", "notes", "exit_code"} == explained("An error") & set(found)
        assert (found["exit_code"], result.exit_code) == (2, 2)
        assert result.stderr.startswith(f"error: {found['error']}")


def test_what_code_of_the_users_prints_is_not_among_it(cli: Any, small: Any, tmp_path: Path) -> None:
    """Where it is imported, and where it runs."""
    folder = small(('name = "exact_match"', 'function = "loud:score"\npurpose = "sameness"'), rows=4)
    (folder / "loud.py").write_text(  # flushed, as the runner of click before 8.2 reads no buffer of stderr
        "print('imported', flush=True)\n"
        "def score(prediction, target):\n"
        "    print('scored', flush=True)\n"
        "    return prediction == target\n"
    )
    result = cli("train", folder, "--run-dir", tmp_path / "run", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["status"] == "finished"
    assert {"imported", "scored"} <= set(result.stderr.split("\n"))


def test_what_other_processes_print_is_not_among_it(small: Any, tmp_path: Path) -> None:
    """A metric that runs tests begins one, which writes to the descriptor; so does a library that is not Python's."""
    folder = small(('name = "exact_match"', 'function = "loud:score"\npurpose = "sameness"'), rows=4)
    (folder / "loud.py").write_text(
        "import os, subprocess, sys\n"
        "WRITES = 'import os; os.write(1, b\"tests passed\\\\n\")'  # a line at once, beside three others\n"
        "def score(prediction, target):\n"
        "    subprocess.run([sys.executable, '-c', WRITES], check=True)\n"
        "    os.write(1, b'raw\\n')\n"
        "    return prediction == target\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "textgrad_engine", "eval", str(folder)]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, env=env, cwd=tmp_path, check=False)
    assert done.returncode == 0
    assert json.loads(done.stdout)["status"] == "finished"
    assert {"tests passed", "raw"} <= set(done.stderr.split("\n"))
    wrong = subprocess.run([*command, "--json", "--missing"], capture_output=True, text=True, env=env, check=False)
    assert json.loads(wrong.stdout)["exit_code"] == wrong.returncode == 2


def test_an_error_of_the_users_code_has_its_notes(cli: Any, small: Any, tmp_path: Path) -> None:
    """What is left in the run folder is one of them."""
    folder = small(('name = "exact_match"', 'function = "bad:score"\npurpose = "sameness"'), rows=4)
    (folder / "bad.py").write_text("def score(prediction, target):\n    return {}['no']\n")
    result = cli("train", folder, "--run-dir", tmp_path / "run", "--json")
    found = json.loads(result.stdout)
    assert (found["exit_code"], result.exit_code) == (1, 1)
    assert "bad.py:2, in score: KeyError" in found["error"]
    assert any("what was paid for until then is in" in note for note in found["notes"])


def ended_by(error: BaseException, before: Any = None) -> tuple[int, str]:
    """Exit code and stdout of a command that ends so, and has printed something before or nothing."""

    @output.command
    def run(*, as_json: bool) -> None:
        if before is not None:
            output.write_json(before)
        raise error

    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.raises(typer.Exit) as end:
        run(as_json=True)
    return end.value.exit_code, out.getvalue()


def test_ctrl_c_is_a_document_too() -> None:
    """As there is nothing else to be printed then."""
    code, printed = ended_by(KeyboardInterrupt())
    assert (code, json.loads(printed)) == (130, {"error": "interrupted", "notes": [], "exit_code": 130})


def test_there_is_never_a_second_document() -> None:
    """What fails after the result was printed is said on stderr alone."""
    code, printed = ended_by(RunError("the disk is full"), before={"paid": "for"})
    assert (code, json.loads(printed)) == (1, {"paid": "for"})
