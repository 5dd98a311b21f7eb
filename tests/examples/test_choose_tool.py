from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "examples" / "choose_tool.py"


def test_descriptions_learn_what_their_tools_are_for(run: Callable[[], str]) -> None:
    """Run as a user runs it: each description hears of its own cases alone, and the test set says that it helped."""
    shown = run()
    assert "search_b:\n  Searches.\n  Call it for address, courier, delivery, parcel, warehouse, customs.\n" in shown
    assert "test 0.250 -> 0.875; better" in shown
    calls = json.loads(next(line for line in shown.split("\n") if line.startswith("Calls: ")).removeprefix("Calls: "))
    assert calls["backward"] == 18  # one for each wrong call, about all four descriptions
    assert "A simulated model answered" in shown
