"""The README's Python runs as it stands."""

import re
import textwrap
from pathlib import Path

import pytest

import textgrad_engine as tg

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)


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


def test_the_first_block_is_twenty_lines() -> None:
    """The README promises the job in twenty lines."""
    lines = [line for line in BLOCKS[0].split("\n") if line.strip()]
    assert len(lines) <= 20


def test_the_first_screen_is_the_two_commands() -> None:
    """The two lines of set-up stand at the top, as the CI runs them."""
    top = (ROOT / "README.md").read_text(encoding="utf-8").split("\n")[:8]
    begin = "    python3 -m venv .venv && .venv/bin/pip install "
    assert begin + ". && .venv/bin/textgrad-engine train examples/tickets" in top
    assert begin + "'.[test]' && .venv/bin/pytest -n 2" in top
