"""What a page of the documentation says, done as a reader would do it."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import textgrad_engine as tg

from .runner import invoke

ROOT = Path(__file__).parent.parent

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
            result = invoke(*words[1:])
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


@contextlib.contextmanager
def reading(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """A reader in an empty folder, 80 columns wide, without a key; what was imported from there is forgotten again."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name in ("NO_COLOR", "FORCE_COLOR", "TEXTGRAD_DEBUG", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    before = set(sys.modules)
    try:
        yield Reader(folder)
    finally:
        tg.set_models()
        for name in set(sys.modules) - before:
            found = [getattr(sys.modules[name], "__file__", None), *getattr(sys.modules[name], "__path__", ())]
            if any(str(place).startswith(str(folder)) for place in found):
                del sys.modules[name]
