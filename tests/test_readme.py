"""The README's Python runs as it stands."""

import re
import shlex
import shutil
import textwrap
from pathlib import Path

import pytest

import textgrad_engine as tg
from textgrad_engine.cli.build import make_guards, make_optimizer, make_program
from textgrad_engine.cli.config_data import read_data
from textgrad_engine.cli.config_file import load_config

from . import runner
from .runner import invoke

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [
    shlex.split(line.strip().removeprefix(".venv/bin/"), comments=True)
    for line in re.findall(r"^    (\.venv/bin/textgrad-engine .*)$", PAGE, re.MULTILINE)
]


@pytest.fixture
def at_the_root(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    yield
    tg.set_models()


def test_the_python_of_the_readme_runs_in_order(at_the_root: None, capsys: pytest.CaptureFixture[str]) -> None:
    """What a reader pastes, block after block into one session, works and gets better."""
    session: dict[str, object] = {}
    for block in BLOCKS:
        exec(compile(textwrap.dedent(block), "README.md", "exec"), session)
    assert session["result"].comparison.verdict == "better"
    assert "better:" in capsys.readouterr().out
    session["test_the_ticket_reaches_the_model"]()


def test_the_config_of_the_readme_is_one(tmp_path: Path) -> None:
    """Its ten lines, put beside the tickets with a prompt, say something that can be trained."""
    (config,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    for name in ("train", "val", "test"):
        shutil.copy(ROOT / "examples" / "tickets" / f"{name}.jsonl", tmp_path)
    (tmp_path / "prompt.txt").write_text("Sort the ticket.", encoding="utf-8")
    (tmp_path / "config.toml").write_text(config, encoding="utf-8")
    found = load_config(tmp_path)
    assert make_guards(found, read_data(found)[1]) is not None
    assert make_optimizer(found, make_program(found)).param_groups[0]["max_edits"] == 12
    assert len(config.splitlines()) <= 10


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_commands_of_the_readme_are_there(words: list[str]) -> None:
    """Each names a command and options that there are; what they do is tested where they are."""
    (_, command), options = words[:2], [word for word in words if word.startswith("--")]
    assert set(options) <= {name for each in runner.COMMANDS[command].params for name in each.opts}
    assert [word for word in words[2:] if not word.startswith("-")], "a folder, or a run"


def test_the_first_command_prints_what_the_page_shows(at_the_root: None, tmp_path: Path) -> None:
    """The table at the top is that of the run, line by line; its time, and so how wide it is, are the machine's."""
    block = re.findall(r"^```\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[0]
    shown = [line.split() for line in re.sub(r"  [\d.]+ s$", "", block, flags=re.MULTILINE).splitlines()[:-1]]
    output = invoke("train", "examples/tickets", "--run-dir", str(tmp_path / "run")).output
    printed = [line.split() for line in output.splitlines()]
    assert [line for line in shown if not any(each[: len(line)] == line for each in printed)] == []
    (number,) = re.findall(r"`calls runs/tickets-1 (\d+)` shows one: here what the critic was sent", PAGE)
    assert "backward, step 1, about t006" in invoke("calls", str(tmp_path / "run"), number).output


def test_the_page_is_read_in_a_few_minutes() -> None:
    """Reference belongs to docs/; ten commands at least are shown here."""
    assert len(PAGE.splitlines()) <= 250
    assert len(COMMANDS) >= 10


def test_the_first_block_is_twenty_lines() -> None:
    """The README promises the job in twenty lines."""
    lines = [line for line in BLOCKS[0].split("\n") if line.strip()]
    assert len(lines) <= 20


def test_the_first_screen_is_the_two_commands() -> None:
    """The two lines of set-up stand at the top, as the CI runs them."""
    top = PAGE.split("\n")[:8]
    begin = "    python3 -m venv .venv && .venv/bin/pip install "
    assert begin + ". && .venv/bin/textgrad-engine train examples/tickets" in top
    assert begin + "'.[test]' && .venv/bin/pytest -n 2" in top
