"""``eval --prompt FILE``: a text of one's own in the place of a run's, or of a config's."""

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
    Path("bytes.txt").write_bytes(b"\xff\xfe")
    done = cli("eval", run, *options)
    assert (done.exit_code, said in " ".join(done.stderr.split())) == (2, True)
    assert not (run / "evals.jsonl").exists()
