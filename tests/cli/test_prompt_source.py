"""What ``--prompt FILE`` takes for source that holds a prompt."""

from __future__ import annotations

from pathlib import Path

import pytest

from textgrad_engine.cli.prompt_source import check_no_source
from textgrad_engine.errors import RunError

SOURCE = """
import os

LIMIT: int = 3
NAME: str
client = make_client(os.environ)
PROMPTS = {"long": "Sort the ticket, and answer with the name of the queue alone."}
PROMPT = "Sort the ticket."
"""


def test_the_texts_of_source_are_named_whatever_else_it_sets() -> None:
    """A module that holds a prompt has numbers, calls and tables beside it."""
    with pytest.raises(RunError, match="write the text that is meant, PROMPT, to a file"):
        check_no_source(Path("prompts.py"), SOURCE)


@pytest.mark.parametrize("text", ["Sort the ticket.", '[queues]\nbilling = "invoices"\n'])
def test_a_text_is_no_config_because_of_its_name(text: str) -> None:
    """A .toml file that is no TOML, or names no program, is a prompt like another."""
    check_no_source(Path("prompt.toml"), text)
