"""Images that tools gave, in a run folder: once each, and given again by who goes on with the run."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import data, nn, optim
from textgrad_engine.errors import RunError
from textgrad_engine.llm import Completion, Request
from textgrad_engine.testing import FunctionModel, feedback_for, png

COLORS = {f"sign {n}": (0, n, 255) for n in range(12)}
ROWS = [{"id": name, "place": name, "target": "BLUE"} for name in COLORS]


def fn(request: Request) -> Any:
    """Looks at the sign, and names what it sees as its prompt says."""
    if request.purpose == "backward":
        return feedback_for(request, "Say: shout.")
    if request.purpose == "optimizer":
        return {"edits": [{"op": "add", "line": 1, "text": "Shout.", "reason": "It is.", "feedback": [1]}]}
    *_, last = request.messages
    if last.role != "tool":
        function = {"name": "look", "arguments": json.dumps({"place": last.text})}
        called = ({"id": "call_1", "type": "function", "function": function},)
        return Completion(text="", finish_reason="tool_calls", tool_calls=called)
    assert last.content[1]["image_url"]["url"].startswith("data:image/png;base64,")
    return "BLUE" if "Shout." in request.messages[0].text else "blue"


class Run:
    """A run of an agent that looks at signs; what it looked at is noted."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.model, self.looked = folder, FunctionModel(fn), list[str]()

    def look(self, place: str) -> dict[str, Any]:
        """A photo of a place."""
        self.looked.append(place)
        return {"photo": data.image_part(png([[COLORS[place]] * 40] * 40))}

    def go(self, calls: int | None = None) -> Any:
        system = nn.Parameter("Look.", role="system prompt")
        chat = nn.ChatCompletion("{place}", system=system, tools=[self.look])
        trainer = tg.Trainer(max_epochs=1, batch_size=4, run_dir=self.folder, resume=True)
        with tg.use_models(forward=self.model), tg.budget(calls=calls):
            return trainer.fit(chat, nn.ExactMatch(), optim.TGD(chat.parameters()), ROWS[:4], ROWS[4:8], ROWS[8:])


def test_each_image_is_in_the_folder_once_and_given_again_from_there(tmp_path: Path) -> None:
    """A run that was cut ends as a whole one does, and no tool is run twice that is on record."""
    whole, cut = Run(tmp_path / "whole"), Run(tmp_path / "cut")
    expected = whole.go()
    assert len(list((whole.folder / "attachments").iterdir())) == len(COLORS)
    for name in ("tools.jsonl", "completions.jsonl"):
        text = (whole.folder / name).read_text(encoding="utf-8")
        assert "base64" not in text
        assert "attachments/" in text
    cut.go(calls=21)
    assert cut.go().best == expected.best
    assert sorted(cut.looked) == sorted(whole.looked)
    assert len(cut.model.requests) == len(whole.model.requests)
    done = len(cut.looked)
    assert cut.go().best == expected.best  # a finished run is played back
    assert len(cut.looked) == done


def test_an_image_that_is_gone_is_named(tmp_path: Path) -> None:
    """Nobody knows any more what the tool gave, and it may not be run twice."""
    run = Run(tmp_path / "run")
    run.go(calls=21)
    shutil.rmtree(run.folder / "attachments")
    with pytest.raises(RunError, match=r"attachments.\w+\.png: an image that a tool gave cannot be read: .*restore"):
        run.go()


@pytest.mark.skipif(os.name != "posix", reason="links need rights there")
def test_an_image_that_is_a_link_is_not_sent(tmp_path: Path) -> None:
    """A folder that somebody sent would have the file that its link names sent to a model."""
    run = Run(tmp_path / "run")
    run.go(calls=21)
    for file in (run.folder / "attachments").iterdir():
        file.rename(tmp_path / file.name)
        file.symlink_to(tmp_path / file.name)
    asked = len(run.model.requests)
    with pytest.raises(RunError, match=r"attachments.\w+\.png: an image that a tool gave cannot be read: "):
        run.go()
    assert len(run.model.requests) == asked
