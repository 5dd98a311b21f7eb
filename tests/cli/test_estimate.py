"""``textgrad-engine estimate`` says what train would cost."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from textgrad_engine.cli.main import app

TICKETS = Path(__file__).parent.parent.parent / "examples" / "tickets"


def test_a_config_that_is_none_exits_2(tmp_path: Path) -> None:
    """Nothing to estimate is wrong usage, as for train."""
    assert CliRunner().invoke(app, ["estimate", str(tmp_path / "nowhere")]).exit_code == 2


def test_a_price_range_needs_no_key(monkeypatch) -> None:
    """One wants to know the price before one has an account."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = CliRunner().invoke(app, ["estimate", str(TICKETS), "--model", "openai/gpt-5-mini", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert 0 < found["dollars"]["low"] < found["dollars"]["high"]
    assert found["models"] == ["openai/gpt-5-mini"]


def test_the_table_fits_a_terminal() -> None:
    """It is read in 80 columns."""
    done = CliRunner().invoke(app, ["estimate", str(TICKETS)])
    assert done.exit_code == 0, done.output
    assert "At most 12 steps on simulated/tickets" in done.stdout
    assert max(map(len, done.stdout.split("\n"))) <= 80
