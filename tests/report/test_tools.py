"""What a report tells of tools: what there was, what came to nothing and why, however hostile it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from textgrad_engine.report import as_json, page_of, render, tools_of
from textgrad_engine.train import TrainResult


def called(name: str, error: str = "", text: str = "7") -> dict[str, Any]:
    return {"name": name, "arguments": '{"item": "hat"}', "text": text, **({"error": error} if error else {})}


CALLS = [called("price"), called("price", "KeyError: 'shoe'"), called("price", "KeyError: 'shoe'"), called("mail")]


def test_a_terminal_is_told_how_often_and_why_not(result: TrainResult) -> None:
    """In 80 columns; the tool that was called most often is first, and nothing is said where there are none."""
    shown = render(result, tools=tools_of(CALLS))
    assert (
        """
What the tools gave

  tool    calls   came to nothing
  price       3                 2
  mail        1

  price, 2 times: KeyError: 'shoe'

  Each call and what it gave is in tools.jsonl of the run folder.
"""
        in shown
    )
    assert "tools" not in render(result)


def test_names_that_a_model_makes_up_are_cut_and_harmless(result: TrainResult) -> None:
    """They may be of any length and number, and hold what a terminal would obey."""
    hostile = [called(f"{'x' * 300}\x1b[31m{number}", "there is no such tool " + "y" * 5_000) for number in range(40)]
    shown = render(result, tools=tools_of(hostile))
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "30 more names" in shown
    assert len(shown) < 10_000


def test_many_ways_to_word_a_failure_cost_no_memory() -> None:
    """The number of calls is right all the same."""
    (row,) = tools_of(called("price", f"no {number}") for number in range(5_000))
    assert (row.calls, row.failed) == (5_000, 5_000)
    assert len(row.problems) <= 100


def test_machines_are_told_too(result: TrainResult) -> None:
    """As plain JSON."""
    price, mail = json.loads(json.dumps(as_json(result, tools=tools_of(CALLS))))["tools"]
    assert price["problems"] == [{"problem": "KeyError: 'shoe'", "calls": 2}]
    assert (mail["calls"], mail["failed"]) == (1, 0)


def test_the_page_shows_what_some_calls_gave(run_of: Any, result: TrainResult) -> None:
    """Escaped and cut."""
    run = run_of(result)
    lines = [called("price", text="<script>alert(1)</script>" + "z" * 10_000), called("<b>", "no <i>such</i>")]
    Path(run.path, "tools.jsonl").write_text("".join([json.dumps(line) + "\n" for line in lines]), encoding="utf-8")
    page = page_of(run)
    assert "What the tools gave" in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>" not in page
    assert "<i>" not in page
    assert len(page) < 60_000
