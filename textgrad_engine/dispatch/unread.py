"""What was asked for and is read by nobody is waited for, and not for ever without a word."""

from __future__ import annotations

import logging

from textgrad_engine.dispatch.scope import Scope

_PATIENCE = 30.0
"""Seconds after which it is told what is waited for."""

_log = logging.getLogger("textgrad_engine.dispatch")


def through_with(calls: Scope, who: str) -> None:
    """Wait for the calls of a scope after what they were made for is there.

    Args:
        calls: the scope; its calls in the background are not waited for.
        who: has made them, for the log.
    """
    if late := calls.wait(_PATIENCE):
        _log.warning(
            "%s has what it needs, and waits for what was asked for and is read by nobody: %s%s%s; Ctrl-C ends it",
            who,
            late[0].label,
            f", asked for at {late[0].where}" if late[0].where else "",
            f", and {len(late) - 1} more" if len(late) > 1 else "",
        )
        calls.wait()
