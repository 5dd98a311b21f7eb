"""The documentation runs as it stands, and the tests that it names exist."""

import contextlib
import doctest
import importlib
import inspect
import io
import operator
import pkgutil
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import textgrad_engine as tg
from textgrad_engine.cli.main import app

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))


BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$(?=(?:\n\n```text\n(.*?)^```$)?)", re.MULTILINE | re.DOTALL)
"""A block of a page: its language, the file that it is, what is in it, and the `text` block right behind it."""


class Reader:
    """Somebody who types a page: Python into one session, files and commands in one empty folder.

    A `text` block right behind Python is what that prints, and in a `console` block, what follows a ``$ command``;
    ``...`` stands for any text. A block with a file's name behind its language is that file.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.session: dict[str, object] = {}
        self.code = 0

    def read(self, page: str) -> None:
        """Do what a page says, and compare what comes of it."""
        for language, name, body, printed in BLOCK.findall(page):
            if name:
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / name).write_text(body, encoding="utf-8")
            elif language == "python":
                told = io.StringIO()
                with contextlib.redirect_stdout(told):
                    exec(compile(body, "a page", "exec"), self.session)
                compare(printed, told.getvalue(), body)
            elif language == "console":
                for typed in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                    command, _, wanted = typed.partition("\n")
                    compare(wanted, self.run(command), command)
        assert self.code == 0, "a command failed, and the page does not say so with `echo $?`"

    def run(self, command: str) -> str:
        """What a command prints."""
        words = shlex.split(command)
        if words == ["echo", "$?"]:
            code, self.code = self.code, 0
            return f"{code}\n"
        assert self.code == 0, f"what was before {command!r} failed, and the page does not say so"
        if words[0] == "textgrad-engine":
            result = CliRunner().invoke(app, words[1:])
            self.code = result.exit_code
            return result.output
        assert words[0] == "pytest", f"no test knows how to run {command!r}"
        done = subprocess.run(
            [sys.executable, "-m", *words], cwd=self.folder, capture_output=True, text=True, check=False
        )
        self.code = done.returncode
        return done.stdout


def compare(wanted: str, got: str, what: str) -> None:
    """Check that a page shows what is printed; what it does not show may be anything."""
    if wanted:
        shown, printed = (
            "".join(f"{line.rstrip()}\n" for line in text.strip("\n").split("\n")) for text in (wanted, got)
        )
        if not doctest.OutputChecker().check_output(shown, printed, doctest.ELLIPSIS):
            pytest.fail(f"{what}\nprints\n{printed}\nand the page shows\n{shown}")


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Reader]:
    """A reader in an empty folder, 80 columns wide, without a key."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name in ("NO_COLOR", "FORCE_COLOR", "TEXTGRAD_DEBUG", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    before = set(sys.modules)
    yield Reader(tmp_path)
    tg.set_models()
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_run_in_order(page: Path, reader: Reader) -> None:
    """What a reader pastes, block after block into one session, works, and prints what the page shows."""
    reader.read(page.read_text(encoding="utf-8"))
    assert reader.session or "```python" not in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("page", "what"),
    [
        ("```python\nprint(1)\n```\n\n```text\n2\n```\n", "and the page shows"),
        ("```python\nprint(1)\n1 / 0\n```\n", "division by zero"),
        ("```console\n$ textgrad-engine show none\n```\n", "does not say so"),
        ("```console\n$ textgrad-engine show none\n$ echo $?\n0\n```\n", "and the page shows"),
        ("```console\n$ textgrad-engine --version\ntextgrad-engine 9\n```\n", "and the page shows"),
    ],
)
def test_a_page_that_does_not_hold_is_found(page: str, what: str, reader: Reader) -> None:
    """Else outputs could be made up, and a command fail."""
    with pytest.raises((AssertionError, ZeroDivisionError, pytest.fail.Exception), match=re.escape(what)):
        reader.read(page)


def test_every_test_that_a_page_names_exists() -> None:
    """A promise names the test that protects it; a renamed test must not leave the page lying."""
    named = {name for page in PAGES for name in re.findall(r"`(?:[\w/]+::)?(test_\w+)`", page.read_text())}
    sources = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py")]
    defined = {name for source in sources for name in re.findall(r"def (test_\w+)\(", source)}
    assert named
    assert named <= defined, sorted(named - defined)


PORTED = [
    (path, words)
    for row in re.findall(r"^\| .* \|$", (ROOT / "docs" / "porting.md").read_text(), re.MULTILINE)
    for path, words in re.findall(r"`([A-Za-z_.]+)(?:\((.*?)\))?`", row.split(" | ")[-1])
    if path not in {"forward", "fn"}  # of the reader's own
]


@pytest.mark.parametrize(("path", "words"), sorted(set(PORTED)))
def test_what_another_library_s_name_is_called_here_is_there(path: str, words: str) -> None:
    """Who ports a program can type what the right-hand column says, with its keywords."""
    found = operator.attrgetter(path)(tg)
    if words:
        inspect.signature(found).bind_partial(**{word.removesuffix("=…"): None for word in words.split(", ")})


PARTS = sorted({name for _, name, _ in pkgutil.iter_modules(tg.__path__)})


@pytest.mark.parametrize("part", PARTS)
def test_what_the_code_refers_to_is_there(part: str) -> None:
    """`optim.search.race` in a docstring leads a reader somewhere, also after something was moved."""
    lost = []
    for path in (ROOT / "textgrad_engine").rglob("*.py"):
        for name in re.findall(rf"`({part}(?:\.[a-z_]+)+(?:\.[A-Z]\w+)?)`", path.read_text()):
            found = importlib.import_module(f"textgrad_engine.{part}")
            for step in name.split(".")[1:]:
                if hasattr(found, "__path__") and not hasattr(found, step):
                    with contextlib.suppress(ModuleNotFoundError):  # a module that nobody has loaded yet
                        importlib.import_module(f"{found.__name__}.{step}")
                found = getattr(found, step, None)
            if found is None:
                lost.append(f"{path.relative_to(ROOT)}: {name}")
    assert lost == []
