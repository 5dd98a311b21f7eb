"""Calls of `eval` and `shrink` that are kept until these come to their end, so that nothing is paid for twice."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from textgrad_engine.cli.config import Config
from textgrad_engine.cli.output import say
from textgrad_engine.llm.recording import Recording
from textgrad_engine.report.words import plural
from textgrad_engine.store import Run, kept_calls

ON_RECORD = "what was answered is on record: the same command goes on from there"
"""What is said where one does not come to its end."""


@contextlib.contextmanager
def keeping(run: Run, what: str, config: Config, about: Mapping[str, Any], *, quiet: bool) -> Iterator[Recording]:
    """Inside the block, calls are kept in the run folder; those of before are played back, where it had no end.

    Args:
        run: whose folder it is.
        what: the name of the command.
        config: names models and endpoint.
        about: what else it depends on, as plain JSON values.
        quiet: do not say that there are such.
    """
    models = {"models": config.models.roles(), "base_url": config.models.base_url}
    with kept_calls(run.path, what, {**about, **models}) as kept:
        if kept.answers:
            say(f"{plural(kept.answers, 'call')} of before on record; only the rest is asked", quiet)
        yield kept
