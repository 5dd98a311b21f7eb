"""The documentation runs as it stands, and the tests that it names exist."""

import re
from pathlib import Path

import pytest

import textgrad_engine as tg

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    yield {}
    tg.set_models()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_run_in_order(page: Path, session: dict[str, object]) -> None:
    """What a reader pastes, block after block into one session, works."""
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(block, page.name, "exec"), session)
    assert session or "```python" not in page.read_text()


def test_every_test_that_a_page_names_exists() -> None:
    """A promise names the test that protects it; a renamed test must not leave the page lying."""
    named = {name for page in PAGES for name in re.findall(r"`(?:[\w/]+::)?(test_\w+)`", page.read_text())}
    sources = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py")]
    defined = {name for source in sources for name in re.findall(r"def (test_\w+)\(", source)}
    assert named
    assert named <= defined, sorted(named - defined)
