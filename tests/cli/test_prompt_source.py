"""What ``--prompt FILE`` takes for source that holds a prompt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from textgrad_engine import nn
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


def test_a_saved_program_is_told_where_its_prompts_are() -> None:
    """Of DSPy's `program.save` and of `json.dumps(module.state_dict())`; all of it would be one prompt, in silence."""
    saved = {"rewrite.predict": {"demos": [], "signature": {"instructions": "Sort.", "fields": []}}, "metadata": {}}
    said = r"this is a saved program, .* write the text that is meant, rewrite\.predict\.signature\.instructions, to a"
    with pytest.raises(RunError, match=said):
        check_no_source(Path("program.json"), json.dumps(saved))
    ours = nn.ChatCompletion("{ticket}", system=nn.Parameter("Sort.", role="prompt")).state_dict()
    with pytest.raises(RunError, match=r"the text that is meant, system\.data, to a file"):
        check_no_source(Path("STATE.JSON"), json.dumps(ours))


@pytest.mark.parametrize(
    "text", ["Sort the ticket.", '{"task": "Sort the ticket.", "rules": {"signature": "none"}}', "[1]", "7", "[" * 9999]
)
def test_a_text_is_no_saved_program_because_of_its_name(text: str) -> None:
    """Some write their prompts as JSON."""
    check_no_source(Path("prompt.json"), text)
