"""``textgrad-engine eval``."""
from __future__ import annotations
from textgrad_engine.cli.options import RunPath
from textgrad_engine.cli.output import command
@command
def evaluate(run: RunPath) -> None:
    """Evaluate."""
