"""The one event-loop thread on which calls of models run, and the values that are still on their way.

`submit` hands over a coroutine function and the calls whose values it waits for; it returns a `Call` at once.
Everything that runs, runs on one private thread, so user code needs no loop of its own and may have one (a notebook, a
web handler).
"""

from __future__ import annotations

from textgrad_engine.dispatch.calls import Call, joint, run, submit, times_waited
from textgrad_engine.dispatch.endings import note_met
from textgrad_engine.dispatch.refusing import waits, would_wait_for_itself
from textgrad_engine.dispatch.scope import Scope, check_cancelled, current_scope, gives_up, through_with
from textgrad_engine.dispatch.source_lines import Line, asked_from, begun_from, caller_line
from textgrad_engine.dispatch.thread import call_soon, close_at_end, in_loop_thread, nudge
from textgrad_engine.dispatch.to_thread import aside, called, caught
from textgrad_engine.dispatch.waiting import LOOK_UP_SECONDS, Moment, place_taken, result_of, settled

__all__ = [
    "LOOK_UP_SECONDS",
    "Call",
    "Line",
    "Moment",
    "Scope",
    "aside",
    "asked_from",
    "begun_from",
    "call_soon",
    "called",
    "caught",
    "caller_line",
    "check_cancelled",
    "close_at_end",
    "current_scope",
    "gives_up",
    "in_loop_thread",
    "joint",
    "note_met",
    "nudge",
    "place_taken",
    "result_of",
    "run",
    "settled",
    "submit",
    "through_with",
    "times_waited",
    "waits",
    "would_wait_for_itself",
]
