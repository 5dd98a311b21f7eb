from __future__ import annotations

import json
import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine import data

from ..runner import invoke

FOLDER = Path(__file__).parents[2] / "examples" / "lamps"


@pytest.fixture
def lamps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the example, and an empty folder around it."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(FOLDER, tmp_path / "lamps"))


def train(*arguments: str) -> str:
    result = invoke("train", "lamps", "--quiet", *arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_prompt_learns_what_the_lamps_mean(lamps: Path) -> None:
    """As a user runs it: each rule that common sense does not know, from pictures that the critic was shown."""
    assert "test 0.500 -> 1.000; better on test" in train("--run-dir", "run")
    best = Path("run/best_prompt.txt").read_text()
    assert [color for color in ("blue", "white", "violet", "orange") if f"The {color} lamp means" in best] == [
        "blue",
        "white",
        "violet",
        "orange",
    ]
    entries = [json.loads(line) for line in Path("run/completions.jsonl").read_text().splitlines()]
    asked = next(each for each in entries if each["purpose"] == "backward")["request"]["messages"][-1]["content"]
    assert Path("run", asked[1]["image_url"]["url"]).read_bytes().startswith(b"\x89PNG")
    assert "attachments" in asked[1]["image_url"]["url"]


def test_a_critic_that_is_shown_nothing_finds_nothing(lamps: Path) -> None:
    """So it is the pictures that the lessons come from."""
    config = lamps / "config.toml"
    config.write_text(config.read_text().replace("# feedback_images = 16", "feedback_images = 0 #"))
    assert "test 0.500 -> 0.500; no change did better" in train("--run-dir", "run")


def test_a_search_finds_them_too(lamps: Path) -> None:
    """Its lanes ask the critic from threads of their own."""
    assert "test 0.500 -> 1.000" in train("--run-dir", "run", "--optimizer", "PatchSearch")


def test_the_pictures_are_what_the_script_draws(lamps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They can be drawn anew, and no two examples are one."""
    kept = {file.relative_to(lamps): file.read_bytes() for file in lamps.rglob("*.png")}
    kept |= {file.relative_to(lamps): file.read_bytes() for file in lamps.glob("*.jsonl")}
    shutil.rmtree(lamps / "panels")
    made: dict[str, Any] = runpy.run_path(str(lamps / "make.py"))
    made["main"]()
    assert {name: (lamps / name).read_bytes() for name in kept} == kept
    assert len({content for name, content in kept.items() if name.suffix == ".png"}) == 88
    sets = [data.load(lamps / f"{name}.jsonl", images=["panel"]) for name in ("train", "val", "test")]
    assert data.check_splits(*sets, fields=["panel", "machine"]) == []
