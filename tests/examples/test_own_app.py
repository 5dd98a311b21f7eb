from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "own_app.py"


def test_the_prompt_of_the_app_is_trained(run: Callable[[], str], caplog: pytest.LogCaptureFixture) -> None:
    """Run as a user runs it: both lessons are in the prompt, and it says that the models are simulated."""
    said = run()
    assert "Say the state of the order." in said
    assert "Say sorry where something was lost." in said
    assert "val 0.417 -> 1.000; test 0.458 -> 1.000; better" in said
    assert "Simulated models answered" in said
    assert caplog.messages == []  # such as that the sets are not apart


def test_the_app_knows_nothing_of_the_library() -> None:
    """It is a function of messages; of what it does not find it says so."""
    app = runpy.run_path(str(SCRIPT))["my_app"]
    system = {"role": "system", "content": "Say the state of the order."}
    assert app([system, {"role": "user", "content": "Where is 101?"}]) == "your order is lost."
    assert app([system, {"role": "user", "content": "Hello?"}]) == "your order is unknown."
    assert "received" in app([{**system, "content": "Be kind."}, {"role": "user", "content": "Where is 101?"}])
