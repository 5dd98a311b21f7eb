"""Images in a run folder: once each, whatever asks for them, and found again by who goes on with the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import data, nn, optim
from textgrad_engine.errors import TextgradError
from textgrad_engine.llm import Request
from textgrad_engine.testing import FunctionModel, feedback_for, png


def fn(request: Request) -> Any:
    if request.purpose == "backward":
        return feedback_for(request, "Say red.")
    if request.purpose == "optimizer":
        return {"edits": [{"op": "add", "line": 1, "text": "Say red.", "reason": "It is.", "feedback": [1]}]}
    return "red" if "Say red." in request.messages[0].text else "blue"


class Run:
    """A run on pictures, which can be begun, cut and resumed."""

    def __init__(self, folder: Path, shade: int = 0) -> None:
        self.folder, self.model = folder, FunctionModel(fn)
        parts = [data.image_part(png([[(255, shade, n)] * 40] * 40)) for n in range(24)]
        rows = [{"id": f"t{n}", "picture": part, "target": "red"} for n, part in enumerate(parts)]
        self.sets = rows[:8], rows[8:16], rows[16:]

    def go(self, calls: int | None = None) -> Any:
        chat = nn.ChatCompletion("{picture}", system=nn.Parameter("Look.", role="system prompt"))
        trainer = tg.Trainer(max_epochs=2, batch_size=8, run_dir=self.folder, resume=True)
        with tg.use_models(forward=self.model), tg.budget(calls=calls):
            return trainer.fit(chat, nn.ExactMatch(), optim.TGD(chat.parameters()), *self.sets)


def test_each_image_is_in_the_folder_once(tmp_path: Path) -> None:
    """However many requests hold it; a line of the journal has its name, and the file is the picture itself."""
    run = Run(tmp_path / "run")
    run.go()
    files = {f"attachments/{file.name}": file.read_bytes() for file in (run.folder / "attachments").iterdir()}
    assert len(files) == 24
    assert png([[(255, 0, 0)] * 40] * 40) in files.values()
    text = (run.folder / "completions.jsonl").read_text()
    assert "base64" not in text
    requests = [json.loads(line) for line in text.splitlines()]
    named = [part["image_url"]["url"] for each in requests for part in parts_of(each) if part["type"] == "image_url"]
    assert set(named) == set(files)
    assert len(named) > 48
    assert any(each["purpose"] == "backward" and "attachments/" in json.dumps(each) for each in requests)


def parts_of(entry: dict[str, Any]) -> list[dict[str, Any]]:
    content = entry["request"]["messages"][-1]["content"]
    return [] if isinstance(content, str) else content


def test_a_run_that_was_cut_goes_on_without_asking_twice(tmp_path: Path) -> None:
    """Requests are known again by the names of their images, and the result is that of a whole run."""
    whole, cut = Run(tmp_path / "whole"), Run(tmp_path / "cut")
    expected = whole.go()
    cut.go(calls=20)
    assert cut.go().best == expected.best
    assert len(cut.model.requests) == len(whole.model.requests)
    count = len(cut.model.requests)
    assert cut.go().best == expected.best
    assert len(cut.model.requests) == count


def test_a_folder_of_before_that_holds_the_bytes_is_resumed(tmp_path: Path) -> None:
    """It was written when requests were written down whole."""
    run = Run(tmp_path / "run")
    run.go(calls=20)
    names = {each.name: each.read_bytes() for each in (run.folder / "attachments").iterdir()}
    file = run.folder / "completions.jsonl"
    text = file.read_text()
    for name, content in names.items():
        text = text.replace(f"attachments/{name}", data.image_part(content)["image_url"]["url"])
    assert "base64" in text
    file.write_text(text)
    run.go()
    whole = Run(tmp_path / "whole")
    whole.go()
    assert len(run.model.requests) == len(whole.model.requests)


def test_other_images_are_another_run(tmp_path: Path) -> None:
    """Resuming stops before it pays, as it does for other texts."""
    Run(tmp_path / "run").go(calls=20)
    other = Run(tmp_path / "run", shade=9)
    with pytest.raises(TextgradError):
        other.go()
    assert other.model.requests == []


def test_the_page_about_a_run_holds_no_images(tmp_path: Path) -> None:
    """It is sent to colleagues: the examples are named."""
    from ..runner import invoke  # heavy, and wanted here alone

    run = Run(tmp_path / "run")
    run.go()
    assert invoke("report", str(run.folder)).exit_code == 0
    page = (run.folder / "report.html").read_text()
    assert "base64" not in page
    assert "t3" in page
