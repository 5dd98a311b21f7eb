"""Calls of `eval` and `shrink` that are kept until these come to their end, so that nothing is paid for twice."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from textgrad_engine.cli.config import Config
from textgrad_engine.cli.output import checking, say
from textgrad_engine.cli.resume_words import LIMITS
from textgrad_engine.cli.settings import Budget
from textgrad_engine.llm.recording import Recording
from textgrad_engine.report.words import plural
from textgrad_engine.store import Run, kept_calls

IN_THE_CACHE = "what was answered is in the cache: the same command goes on from there"


def on_record(spent: Budget | None = None) -> str:
    """What is said where one does not come to its end.

    Args:
        spent: the limits that ended it, as what was answered counts in them; None where something else did.

    Example:
        >>> on_record(Budget(calls=20))
        'what was answered is on record: the same command with a larger --budget-calls goes on from there'
    """
    raised = [option.split()[0] for name, option in LIMITS.items() if spent and getattr(spent, name) is not None]
    larger = f" with a larger {' or '.join(raised)}" if raised else ""
    return f"what was answered is on record: the same command{larger} goes on from there"


@contextlib.contextmanager
def keeping(
    run: Run, what: str, config: Config, about: Mapping[str, Any], *, missing: bool = False, quiet: bool
) -> Iterator[Recording]:
    """Inside the block, calls are kept in the run folder; those of before are played back, where it had no end.

    Args:
        run: whose folder it is.
        what: the name of the command.
        config: names models and endpoint.
        about: what else it depends on, as plain JSON values.
        missing: those of before are of one that came to its end and lacks answers.
        quiet: do not say that there are such.
    """
    models = config.models.on_record()
    with contextlib.ExitStack() as stack:
        with checking():
            kept = stack.enter_context(kept_calls(run.path, what, {**about, **models}, missing=missing))
        if kept.answers:
            say(f"{plural(kept.answers, 'call')} of before on record; only the rest is asked", quiet)
        yield kept
