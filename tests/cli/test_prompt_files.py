"""``--prompt FILE``: a text of one's own in the place of a run's or a config's; what `train` begins with, too."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def mine(tmp_path: Path, run: Callable[[], Path]) -> tuple[Path, Path]:
    """A run, and its best prompt with a line more and the line ends of Windows."""
    path, file = run(), tmp_path / "mine.txt"
    best = (path / "best_prompt.txt").read_text(encoding="utf-8")
    file.write_bytes((best + "\nThink twice.\n").replace("\n", "\r\n").encode())
    return path, file


def test_an_edited_prompt_is_compared_with_what_the_run_measured(cli: Any, mine: tuple[Path, Path]) -> None:
    """Pair by pair, and what is measured later is compared with it in turn."""
    run, file = mine
    done = cli("eval", run, "--prompt", file, "--not-worse")
    said = " ".join(done.stdout.split())
    assert done.exit_code == 0
    assert f"prompt in {file} on test.jsonl" in said
    assert "best prompt, in the run" in said
    sent = [json.loads(line) for line in (run / "evals.jsonl").read_text(encoding="utf-8").splitlines()]
    assert sent[-1]["prompt"] == f"in {file}"
    later = json.loads(cli("eval", run, "--json").stdout)["earlier"]
    assert [(each["prompt"], each["current"]) for each in later][-1] == (f"in {file}", True)


def test_a_file_that_was_edited_since_is_told_from_what_it_held(cli: Any, mine: tuple[Path, Path]) -> None:
    """Both have one name; what the same file holds still is no text of then."""
    run, file = mine
    for _ in range(2):
        found = json.loads(cli("eval", run, "--prompt", file, "--json").stdout)["earlier"]
    assert [(each["prompt"], each["current"]) for each in found][-1] == (f"in {file}", True)
    file.write_text("Another one.", encoding="utf-8")
    found = json.loads(cli("eval", run, "--prompt", file, "--json").stdout)["earlier"]
    assert [(each["prompt"], each["current"]) for each in found][-1] == (f"in {file}", False)
    assert " of then" in " ".join(cli("eval", run, "--prompt", file).stdout.split())


def test_a_name_commands_no_terminal(cli: Any, mine: tuple[Path, Path]) -> None:
    """Neither now nor beside later evaluations; what is in brackets is no style."""
    run, file = mine
    hostile = file.rename(file.with_name("[bold]\x1b[2J.txt"))
    for done in [cli("eval", run, "--prompt", hostile, *quiet) for quiet in ((), ("-q",))] + [cli("eval", run)]:
        assert done.exit_code == 0
        assert "\x1b" not in done.stdout
        assert "[bold]\ufffd[2J.txt" in done.stdout.replace("\n", "").replace(" ", "")


def test_source_is_no_prompt(cli: Any, small: Any, mine: tuple[Path, Path], tmp_path: Path) -> None:
    """Of train and eval alike, before anything is paid for; of a class that trains code it may be the text."""
    file = tmp_path / "prompts.py"
    file.write_text('SORT = "Sort the ticket."\n', encoding="utf-8")
    for args in (("eval", mine[0]), ("train", small(), "--run-dir", tmp_path / "run"), ("estimate", small())):
        done = cli(*args, "--prompt", file)
        assert (done.exit_code, "this is Python source" in done.stderr) == (2, True)
    assert not (tmp_path / "run").exists()


def test_a_slot_that_is_lost_is_told(cli: Any, small: Any, tmp_path: Path) -> None:
    """What fills it is shown no more; where none is lost nothing is said."""
    folder = small(("Read the ticket", "Read {ticket}"))
    for text, told in (("Read it.", True), ("Read {ticket}, twice.", False)):
        (tmp_path / "mine.txt").write_text(text, encoding="utf-8")
        done = cli("eval", folder, "-q", "--prompt", tmp_path / "mine.txt")
        assert (done.exit_code, "lacks {ticket}" in " ".join(done.stderr.split())) == (0, told)


def test_a_home_is_found_behind_a_name(cli: Any, mine: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell puts it in only where a word begins."""
    run, file = mine
    monkeypatch.setenv("HOME", str(file.parent))
    monkeypatch.setenv("USERPROFILE", str(file.parent))
    assert cli("eval", run, "-q", "--prompt", "system=~/mine.txt").exit_code == 0


def test_where_nothing_is_trained_no_file_takes_its_place(cli: Any, small: Any, tmp_path: Path) -> None:
    """And the program is evaluated as it is without one."""
    folder = small()
    (folder / "fixed.py").write_text(FIXED, encoding="utf-8")
    config = (folder / "config.toml").read_text(encoding="utf-8")
    start, end = config.index("system"), config.index("[data]")
    (folder / "config.toml").write_text(f'{config[:start]}class = "fixed:Fixed"\n\n{config[end:]}', encoding="utf-8")
    (tmp_path / "mine.txt").write_text("Sort.", encoding="utf-8")
    assert cli("eval", folder, "-q").exit_code == 0
    done = cli("eval", folder, "--prompt", tmp_path / "mine.txt")
    assert (done.exit_code, "has no text that is trained" in " ".join(done.stderr.split())) == (2, True)


FIXED = """
from textgrad_engine import nn


class Fixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.sort = nn.ChatCompletion("{ticket}", system="Sort.")

    def forward(self, ticket):
        return self.sort(ticket=ticket)
"""

CODE = """
from textgrad_engine.testing import FunctionModel


def look(what: str) -> str:
    \"\"\"Looks.\"\"\"
    return what


def answer(request):
    return repr([request.messages[0].text, request.config.tools[0]["function"]["description"]])


model = FunctionModel(answer)
"""
TRAINED = 'user = "{ticket}"\ntools = ["hears:look"]\ntrain_tools = true'


@pytest.mark.parametrize("several", [False, True])
def test_the_text_is_that_of_the_file(cli: Any, small: Any, tmp_path: Path, several: bool) -> None:
    """Without the line break at its end, as a prompt file is read; of several texts that which is named."""
    tools = TRAINED if several else TRAINED.replace("true", "false")
    folder = small(('user = "{ticket}"', tools), ("simulated/tickets", "hears:model"))
    (folder / "hears.py").write_text(CODE, encoding="utf-8")
    for name in ("system", "told"):
        (tmp_path / f"{name}.txt").write_bytes(f"{name}\r\nTwice.\r\n".encode())
    system, told = tmp_path / "system.txt", tmp_path / "told.txt"
    both = (f"system={system}", "--prompt", f"tools.look.description={told}")
    options = both if several else (system,)
    found = json.loads(cli("eval", folder, "--json", "--prompt", *options).stdout)
    assert {each["prediction"] for each in found["scores"]} == {
        repr(["system\nTwice.", "told\nTwice." if several else "Looks."])
    }
    if several:
        done = cli("eval", folder, "--prompt", system)
        assert done.exit_code == 2
        said = "".join(done.stderr.split())
        assert f"saywhoseitis,--promptNAME={system},ofsystem,tools.look.description" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--prompt", "min.txt"), "--prompt min.txt: "),
        (("--prompt", "empty.txt"), "the file is empty; write something into it"),
        (("--prompt", "bytes.txt"), "--prompt bytes.txt: "),
        (("--prompt", "target.txt"), "--prompt target.txt: it shows the model {queue}, the right answer; take it out"),
        (("--prompt", "mine.txt", "--prompt", "mine.txt"), "another --prompt has the text; name one of them"),
        (("--prompt", "sytem=mine.txt"), "no text that is trained is called 'sytem'; there is system; did you mean"),
        (("--prompt", "mine.txt", "--shrunk"), "--shrunk and --prompt name 2 prompts; leave 1 of them out"),
    ],
)
def test_what_is_no_prompt_is_refused(
    cli: Any, mine: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, options: Any, said: str
) -> None:
    """Before anything is asked, or the test set is opened."""
    run, file = mine
    monkeypatch.chdir(file.parent)
    Path("empty.txt").write_text(" \n", encoding="utf-8")
    Path("target.txt").write_text("Say {queue}.\n", encoding="utf-8")
    Path("bytes.txt").write_bytes(b"\xff\xfe")
    done = cli("eval", run, *options)
    assert (done.exit_code, said in " ".join(done.stderr.split())) == (2, True)
    assert not (run / "evals.jsonl").exists()


def test_a_run_begins_with_the_prompt_of_a_file(cli: Any, mine: tuple[Path, Path], small: Any, tmp_path: Path) -> None:
    """As with the best one of another run; what is written down, estimated and resumed is that."""
    _, file = mine
    folder, run = small(), tmp_path / "run"
    text = file.read_bytes().decode().replace("\r\n", "\n").removesuffix("\n")
    assert cli("train", folder, "--prompt", file, "--run-dir", run, "-q").exit_code == 0
    kept = json.loads((run / "config.json").read_text(encoding="utf-8"))["config"]["program"]
    seeds = [each.read_text(encoding="utf-8") for each in (run / "seed").iterdir()]
    assert (kept["system"], seeds) == (text, [text])
    found = json.loads((run / "result.json").read_text(encoding="utf-8"))
    assert found["seed"] == {"system": text}
    for name in ("result.json", "best_prompt.txt"):
        (run / name).unlink()
    assert cli("resume", run, "-q").exit_code == 0
    again = json.loads((run / "result.json").read_text(encoding="utf-8"))
    assert (again["seed"], again["best"]) == (found["seed"], found["best"])
    plain, longer = (
        json.loads(cli("estimate", folder, "--json", *options).stdout) for options in ((), ("--prompt", file))
    )
    assert longer != plain


def test_other_texts_are_begun_with_too_but_with_folds(cli: Any, small: Any, tmp_path: Path) -> None:
    """A run of folds makes its programs anew, and would not know them when it is resumed."""
    folder = small(('user = "{ticket}"', TRAINED), ("simulated/tickets", "hears:model"))
    (folder / "hears.py").write_text(CODE, encoding="utf-8")
    told = tmp_path / "told.txt"
    told.write_text("Looks {queue} up.\n", encoding="utf-8")  # what describes a tool has no slots
    option = ("--prompt", f"tools.look.description={told}")
    assert cli("train", folder, *option, "--run-dir", tmp_path / "run").exit_code == 1  # this model is no critic
    seed = (tmp_path / "run" / "seed" / "tools.look.description.txt").read_text(encoding="utf-8")
    assert seed == "Looks {queue} up."
    done = cli("train", folder, *option, "--folds", "2")
    assert (done.exit_code, "with --folds only the system prompt" in " ".join(done.stderr.split())) == (2, True)


def test_a_prompt_that_the_config_does_not_go_with_is_refused(cli: Any, small: Any, tmp_path: Path) -> None:
    """A line that is to be frozen is not there; the error says that the option is why."""
    text = tmp_path / "short.txt"
    text.write_text("Sort.\n", encoding="utf-8")
    folder = small(
        ("max_edits = 12", 'max_edits = 4\ncontracts = { frozen = ["- billing: payments, invoices and refunds"] }')
    )
    done = cli("train", folder, "--prompt", text)
    assert done.exit_code == 2
    assert "has the line" in " ".join(done.stderr.split())
