"""docs/guide.md: what it says that the library says when something goes wrong is what it says."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from textgrad_engine.errors import RateLimited
from textgrad_engine.llm.statuses import error_of

from .pages import ROOT, Reader, reading
from .runner import Result, invoke

GUIDE = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
SAYS = re.findall(r"^\| `(.*?)` \| .* \|$", GUIDE[GUIDE.index("## 8.") :], re.MULTILINE)


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Reader]:
    """Somebody with an empty folder."""
    with reading(tmp_path, monkeypatch) as found:
        yield found


@pytest.fixture
def receipts(reader: Reader) -> Path:
    """The guide's table, metric, model and config."""
    reader.read(re.search(r"^```python\n.*?^```$", GUIDE, re.MULTILINE | re.DOTALL)[0])  # type: ignore[index]
    for name, body in re.findall(r"^```\w+ (receipts/\S+)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL):
        (reader.folder / name).write_text(body, encoding="utf-8")
    return reader.folder / "receipts"


def train(folder: Path, *args: str) -> Result:
    """What ``train`` does with it."""
    return invoke("train", str(folder), *args)


def configure(folder: Path, more: str = "", *change: tuple[str, str]) -> None:
    """Change the config, and put more at its end."""
    text = (folder / "config.toml").read_text(encoding="utf-8")
    for old, new in change:
        assert old in text
        text = text.replace(old, new)
    (folder / "config.toml").write_text(f"{text}\n{more}", encoding="utf-8")


def answering(folder: Path, purpose: str, answer: str) -> None:
    """Have the clerk answer otherwise when it is asked for a purpose."""
    with (folder / "clerk.py").open("a", encoding="utf-8") as file:
        file.write(
            "\nfrom textgrad_engine.llm import Completion\n"
            f"model = FunctionModel(lambda request: {answer} if request.purpose == {purpose!r} else clerk(request))\n"
        )


def keep(folder: Path, split: str, which: Callable[[int, str], bool]) -> None:
    """Keep only those lines of a split."""
    file = folder / f"{split}.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    file.write_text("".join(line for number, line in enumerate(lines) if which(number, line)), encoding="utf-8")


def cut_off(folder: Path) -> Result:
    answering(folder, "forward", 'Completion(text="20", finish_reason="length")')
    return train(folder)


def in_prose(folder: Path) -> Result:
    keep(folder, "train", lambda number, line: number < 8)
    answering(folder, "backward", 'Completion(text="Sure, here is what I think.")')
    return train(folder)


def silent(folder: Path) -> Result:
    answering(folder, "backward", "dict.fromkeys(request.config.response_format.json_schema['properties'], "
        "dict.fromkeys(['system'], ''))")  # fmt: skip
    return train(folder)


ALL = " YYYY-MM-DD, decimal point. Book dinner as marketing. Book trade as marketing. Book parking as travel."


def right_already(folder: Path) -> Result:
    configure(folder, "", ("and office.", f"and office.{ALL}"))
    for split in ("train", "test"):
        keep(folder, split, lambda number, line: "th of" not in line)
    return train(folder)


def nothing_better(folder: Path) -> Result:
    keep(folder, "val", lambda number, line: "th of" not in line)
    return right_already(folder)


def hardly_wrong(folder: Path) -> Result:
    configure(folder, "", ("and office.", f"and office.{ALL.removesuffix(' Book parking as travel.')}"))
    val = (folder / "val.jsonl").read_text(encoding="utf-8").splitlines()
    wrong = next(number for number, line in enumerate(val) if "th of" in line)
    keep(folder, "val", lambda number, line: number == wrong or "th of" not in line)
    for split in ("train", "test"):
        keep(folder, split, lambda number, line: "th of" not in line)
    return train(folder)


def few(folder: Path) -> Result:
    keep(folder, "test", lambda number, line: number < 5)
    return train(folder)


def no_column(folder: Path) -> Result:
    configure(folder, "", ('target = "booking"', 'target = "bookings"'))
    return train(folder)


def too_long(folder: Path) -> Result:
    configure(folder, "[optimizer]\nmax_tokens = 40\n")
    return train(folder)


def unknown_price(folder: Path) -> Result:
    return train(folder, "--model", "qwen3:8b", "--base-url", "http://localhost:11434/v1", "--budget", "1")


def spent(folder: Path) -> Result:
    configure(folder, "[budget]\ncalls = 150\n")
    return train(folder)


def interrupted(folder: Path) -> Result:
    once = "(vars(clerk).setdefault('pressed', __import__('itertools').count()).__next__() == 0)"
    answering(folder, "backward", f"({once} and __import__('signal').raise_signal(2)) or clerk(request)")
    return train(folder)


TROUBLES: dict[str, tuple[Callable[[Path], Result], int]] = {
    "was cut off at its length limit": (cut_off, 1),
    "was asked for JSON (feedback) and answered something else": (in_prose, 1),
    "found nothing to change": (silent, 0),
    "all training answers were right, so there was nothing to learn": (right_already, 0),
    "have the best score, 1, so it ended": (nothing_better, 0),
    "a change is kept only if it does better on 2 at least": (hardly_wrong, 0),
    "no difference would be seen reliably, however large": (few, 0),
    "there is no column 'bookings' in any row": (no_column, 2),
    "the new text has 57 tokens, and 40 are allowed": (too_long, 0),
    "the price of 'qwen3:8b' is not known": (unknown_price, 2),
    "The budget was spent": (spent, 3),
    "Interrupted": (interrupted, 130),
}


@pytest.mark.parametrize("said", TROUBLES)
def test_what_the_guide_quotes_is_said(said: str, receipts: Path) -> None:
    """Somebody who searches the page for what they see finds it, with the exit code that scripts get."""
    if said == "Interrupted" and sys.platform == "win32":
        pytest.skip("signals are sent otherwise on Windows")
    make, code = TROUBLES[said]
    result = make(receipts)
    assert said in " ".join(result.output.split()), result.output
    assert result.exit_code == code, result.output


def test_a_stand_in_that_answers_what_does_not_fit_is_named(receipts: Path) -> None:
    """Who writes one for a config as the page does sees what was wrong with its answer, and no traceback."""
    answering(receipts, "backward", '{"nonsense": 1}')
    result = train(receipts)
    assert result.exit_code == 1
    assert "FunctionModel 'function' does not have the form feedback" in " ".join(result.output.split())
    assert not isinstance(result.exception, AssertionError)


def test_an_endpoint_that_is_asked_too_often_is_named_with_the_setting() -> None:
    """The first row: its repair is what the message says."""
    error = error_of(429, '{"error": {"message": "Rate limit reached"}}', {}, "gpt-5-mini", "https://api.openai.com/v1")
    assert isinstance(error, RateLimited)
    assert SAYS[0] in str(error)
    assert "requests_per_minute" in str(error)


def test_every_row_of_the_table_is_tried() -> None:
    """And the page is as long as somebody reads."""
    assert SAYS[1:] == list(TROUBLES)
    assert len(GUIDE.splitlines()) <= 350


def test_what_is_said_of_the_optimizers_was_measured() -> None:
    """Each way with its interval is in a row of the same optimizer in docs/proving-ground.md."""
    measured = (ROOT / "docs" / "proving-ground.md").read_text(encoding="utf-8").splitlines()
    found = 0
    for name, row in re.findall(r"^\| `(\w+)` \| (.*)$", GUIDE, re.MULTILINE):
        own = name if name != "RandomSearch" else "rewrites, no feedback"
        rows = [line for line in measured if re.match(rf"\| {own}[ ,]", line)]
        for way, low, high in re.findall(r"(\d+)% \[(\d+), (\d+)\]", row):
            found += 1
            assert any(f"| {way} [{low}, {high}] |" in line for line in rows), (name, way)
        for thousands in re.findall(r"(\d+)k tokens", row):
            assert any(f"{tokens / 1000:.0f}" == thousands for tokens in _tokens(rows)), (name, thousands)
        for seconds in re.findall(r"(\d+) s\b", row):  # an answer took 200 ms there
            answers = [int(time) for line in rows for time in re.findall(r"\| (\d+) \[\d+, \d+\]\*? \|$", line)]
            assert any(f"{number / 5:.0f}" == seconds for number in answers), (name, seconds)
    assert found > 10


def _tokens(rows: list[str]) -> list[int]:
    return [int(tokens.replace(",", "")) for row in rows for tokens in re.findall(r"\| ([\d,]+) \[", row)]
