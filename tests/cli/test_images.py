"""A config of an image task: its pictures are read, and what is wrong with them is said before anything is asked."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from textgrad_engine.cli import build
from textgrad_engine.cli.config_data import read_data
from textgrad_engine.cli.config_file import load_config
from textgrad_engine.errors import ConfigError, DataError
from textgrad_engine.nn import Judge
from textgrad_engine.testing import png

from ..runner import invoke

CONFIG = """
[program]
system = "Look."
user = "{picture} What color is it?"
[data]
train = "train.jsonl"
val = "val.jsonl"
images = ["picture"]
image_detail = "low"
[metric]
name = "exact_match"
[models]
forward = "vision:model"
"""
VISION = """
from textgrad_engine.testing import FunctionModel, pixels_of
model = FunctionModel(lambda asked: "red" if pixels_of(asked.messages[-1].content[0])[0][0][0] > 99 else "black")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a config, and six pictures; nothing is red but what is said to be."""
    for split in ("train", "val"):
        names = [f"{split}{number}.png" for number in range(3)]
        for number, name in enumerate(names):
            (tmp_path / name).write_bytes(png([[(255, number, len(split))]]))
        rows = [json.dumps({"picture": name, "target": "red"}) + "\n" for name in names]
        (tmp_path / f"{split}.jsonl").write_text("".join(rows))
    (tmp_path / "config.toml").write_text(CONFIG)
    (tmp_path / "vision.py").write_text(VISION)
    return tmp_path


def test_rows_become_images_that_the_model_sees(project: Path) -> None:
    """Also where a prompt is evaluated on a file of its own."""
    train, _, _ = read_data(load_config(project))
    assert train[0]["picture"]["image_url"]["detail"] == "low"
    for arguments in ([], ["--data", str(project / "train.jsonl")]):
        result = invoke("eval", str(project), *arguments)
        assert result.exit_code == 0, result.output
        assert "1.000" in result.output


def test_a_missing_image_ends_the_command_with_file_line_and_column(project: Path) -> None:
    """Before a call is paid for."""
    (project / "val1.png").unlink()
    result = invoke("eval", str(project))
    assert result.exit_code == 2
    assert "val.jsonl:2: column 'picture'" in result.output.replace("\n", " ")
    with pytest.raises(DataError, match=r"val1\.png: there is no such file; did you mean"):
        read_data(load_config(project))


def test_images_that_a_table_takes_from_elsewhere_are_told_before_they_are_sent(project: Path) -> None:
    """A table that somebody sent may name any image of the reader's, also by a link beside it."""
    quiet = invoke("estimate", str(project))
    assert quiet.exit_code == 0, quiet.output
    assert "outside" not in quiet.output
    elsewhere = project.parent / "holiday.png"
    elsewhere.write_bytes(png([[(255, 0, 0)]]))
    (project / "link.png").symlink_to(elsewhere)
    for name in ("../holiday.png", str(elsewhere), "link.png"):
        rows = [{"picture": "val0.png", "target": "red"}, {"picture": name, "target": "red"}]
        (project / "val.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        told = "".join(invoke("estimate", str(project)).output.split())
        assert f"1 image that val.jsonl names is outside of its folder ({name!r}).".replace(" ", "") in told


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"picture"]', "3]", r":8: \[data\] images\[0\] = 3"),
        ('"low"', '"lowest"', r":9: \[data\] image_detail .*'auto', 'low' or 'high'"),
        ('images = ["picture"]', "", r":9: \[data\] image_detail means nothing without images"),
        ('"exact_match"', '"exact_match"\nimages = 3', r":12: \[metric\] images means nothing to exact_match"),
        ('"exact_match"', '"judge"\ninstructions = "?"\nimages = -1', r"\[metric\] images"),
        ("[models]", "[train]\nfeedback_images = -1\n[models]", r"\[train\] feedback_images"),
    ],
)
def test_what_a_config_says_of_images_is_checked(project: Path, old: str, new: str, why: str) -> None:
    """With its line."""
    (project / "config.toml").write_text(CONFIG.replace(old, new))
    with pytest.raises(ConfigError, match=why):
        load_config(project)


def test_a_judge_is_made_with_its_number_of_images(project: Path) -> None:
    """And with the usual one where the file says nothing."""
    judge = 'name = "judge"\ninstructions = "Is it so?"'
    for said, images in (("", 16), ("\nimages = 0", 0)):
        (project / "config.toml").write_text(CONFIG.replace('name = "exact_match"', judge + said))
        made = build.make_metric(load_config(project))
        assert isinstance(made, Judge)
        assert made.images == images


def test_an_image_for_the_system_prompt_is_refused_before_anything_is_asked(project: Path) -> None:
    """No model takes it there; what is said names the line of the config, and the row."""
    (project / "config.toml").write_text(CONFIG.replace("Look.", "Look at {picture}."))
    result = invoke("eval", str(project))
    assert result.exit_code == 2
    assert re.search(r"config\.toml:3: \[program\] system has the slot \{picture\}, .*user's message", result.output)
