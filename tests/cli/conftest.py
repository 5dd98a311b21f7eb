from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ..runner import Result, invoke

TICKETS = Path(__file__).parents[2] / "examples" / "tickets"


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs a command in this process, 80 columns wide."""
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("NO_COLOR", "FORCE_COLOR", "TEXTGRAD_DEBUG", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)

    def run(*args: str | Path) -> Result:
        result = invoke(*args)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Result]]:
    """One whole run of the tickets example, and what the command printed."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "80"
    path = tmp_path_factory.mktemp("cli") / "run"
    result = invoke("train", str(TICKETS), "--run-dir", str(path))
    if before is None:
        del os.environ["COLUMNS"]
    else:
        os.environ["COLUMNS"] = before
    assert result.exit_code == 0, result.output
    return path, result


@pytest.fixture
def run(trained: tuple[Path, Any], tmp_path: Path) -> Callable[[], Path]:
    """A copy of the run that may be written to, as `trained` is for all; beside it, so that the data is found."""

    def make() -> Path:
        path = trained[0].parent / tmp_path.name
        shutil.copytree(trained[0], path)
        return path

    return make


@pytest.fixture
def small(tmp_path: Path) -> Callable[..., Path]:
    """Makes a folder with a config of a few tickets; ``change`` replaces parts of its text.

    With the twelve that are taken where no number is given, `TGD` and `PatchSearch` each find a better prompt, after
    steps that are not kept.
    """

    def make(*change: tuple[str, str], rows: int | None = None) -> Path:
        folder = tmp_path / "small"
        folder.mkdir(exist_ok=True)
        for split in ("train", "val", "test"):
            lines = (TICKETS / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()
            lines = lines[12:24] if rows is None else lines[:rows]
            (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        text = (TICKETS / "config.toml").read_text(encoding="utf-8").replace("max_epochs = 3", "max_epochs = 1")
        for old, new in (("batch_size = 32", "batch_size = 6"), *change):
            assert old in text, old
            text = text.replace(old, new)
        (folder / "config.toml").write_text(text, encoding="utf-8")
        return folder

    return make


@pytest.fixture
def figures() -> Callable[[Path], dict[str, Any]]:
    """The scores that a run folder holds."""

    def read(path: Path) -> dict[str, Any]:
        body = json.loads((path / "result.json").read_text(encoding="utf-8"))
        return {name: body[name]["mean"] for name in ("seed_val", "best_val", "seed_test", "best_test")}

    return read
