"""The files that a run is made of: one that holds something else now is told, and what the run goes on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from textgrad_engine.cli.config_file import load_config
from textgrad_engine.cli.sources import changed_since, digests_of, other_code

CONFIG = """\
[program]
system_file = "prompt.txt"
user = "{ticket}"
response_format = "answer.json"
tools = "tools.json"
[data]
train = "train.jsonl"
target = "queue"
[models]
forward = "models.own:model"
[metric]
function = "metric:kind"
purpose = "Is it the right queue?"
"""
FILES = {
    "config.toml": CONFIG,
    "prompt.txt": "Sort the ticket.\n",
    "answer.json": '{"type": "object", "properties": {"queue": {"type": "string"}}}\n',
    "tools.json": '[{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]\n',
    "metric.py": "def kind(prediction, target):\n    return float(prediction == target)\n",
    "models/own.py": "from textgrad_engine.llm import CallableModel\nmodel = CallableModel(lambda text: text)\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A config with all the files that one may name."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8", newline="\n")
    (tmp_path / "train.jsonl").write_text('{"ticket": "My lamp is broken.", "queue": "returns"}\n', encoding="utf-8")
    return tmp_path


def test_each_file_that_a_config_names_is_known(folder: Path) -> None:
    """And itself; of nothing else is anything kept, such as of what is beside it."""
    (folder / "notes.txt").write_text("Nobody names this.", encoding="utf-8")
    assert set(digests_of(load_config(folder))) == set(FILES)


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".py")])
def test_code_is_that_of_now(folder: Path, name: str) -> None:
    """It is not in the run folder, so nothing else could be run."""
    config = load_config(folder)
    held = digests_of(config)
    with (folder / name).open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    (said,) = changed_since(held, config)
    assert said.startswith(
        f"note: {folder / name} was changed since the run was begun. The run goes on with the code as"
    )


@pytest.mark.parametrize("name", [name for name in FILES if not name.endswith(".py")])
def test_settings_and_texts_are_those_of_the_run(folder: Path, name: str) -> None:
    """They are in the run folder."""
    config = load_config(folder)
    held = digests_of(config)
    with (folder / name).open("a", encoding="utf-8") as file:
        file.write("\n\n")
    (said,) = changed_since(held, config)
    assert said.startswith(f"note: {folder / name} was changed since the run was begun. The run goes on with what it")
    assert said.endswith("with it as it is.")


def test_both_are_told_of(folder: Path) -> None:
    """Texts first, as they are not what somebody has just written."""
    config = load_config(folder)
    held = digests_of(config)
    for name in FILES:
        (folder / name).write_text("other", encoding="utf-8")
    texts, code = changed_since(held, config)
    assert "answer.json and " in texts
    assert "metric.py were changed" in code or "own.py were changed" in code


def test_scores_of_changed_code_may_mean_something_else(folder: Path) -> None:
    """Texts and settings are those of the run, so of these nothing is said."""
    config = load_config(folder)
    held = digests_of(config)
    (folder / "prompt.txt").write_text("other", encoding="utf-8")
    assert other_code(held, config) == ""
    (folder / "metric.py").write_text("other", encoding="utf-8")
    assert other_code(held, config) == (
        f"note: {folder / 'metric.py'} was changed since the run was begun, and is used as it is now, so the scores of "
        "then may mean something else."
    )


def test_what_is_as_it_was_is_not_told_of(folder: Path) -> None:
    """Neither other ends of lines, as a checkout on Windows has, nor a file that is gone: the run needs it no more."""
    config = load_config(folder)
    held = digests_of(config)
    assert changed_since(held, config) == []
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\r\n")
    assert changed_since(held, config) == []
    for name in FILES:
        (folder / name).unlink()
    assert changed_since(held, config) == []
    assert changed_since({}, config) == []  # a run of before
