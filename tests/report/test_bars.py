"""Bars for a terminal."""

from __future__ import annotations

import io
import re

from rich.console import Console

from textgrad_engine.report.bars import Bars
from textgrad_engine.train.events import (
    Evaluated,
    PhaseAdvanced,
    PhaseEnded,
    PhaseStarted,
    RunStarted,
)

from .events import HALF, STARTED, called, tried


def test_the_status_says_what_is_done_before_the_first_step_and_after_the_last() -> None:
    """Before the first event splits are compared, which takes seconds where they are large."""
    bars = Bars(Console(file=io.StringIO(), force_terminal=True, width=80))
    assert bars.status() == "checking the data"
    bars.on_event(STARTED)
    assert bars.status().startswith("step 1 of 4, ")
    for event in (PhaseStarted(1, "validate", 0, 10), PhaseEnded(1), Evaluated(1, "validate", 0, HALF)):
        bars.on_event(event)
    bars.on_event(PhaseStarted(2, "test", 4, 20))
    assert bars.status().startswith("testing, best 0.500, ")
    bars.on_event(PhaseEnded(2))
    bars.on_event(Evaluated(2, "test", 4, HALF))
    assert bars.status().startswith("testing, best 0.500, ")


def test_bars_show_every_phase_and_the_status() -> None:
    """One bar for each phase with done/total; below it calls, tokens, cost, best score and time left."""
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=25, color_system=None)
    bars = Bars(console)
    for event in (
        STARTED, PhaseStarted(1, "validate", 0, 10), called(1), PhaseEnded(1), Evaluated(1, "validate", 0, HALF),
        PhaseStarted(2, "forward", 1, 32), PhaseAdvanced(2, 7), called(2), PhaseEnded(2),
        PhaseStarted(3, "backward", 1, 0), called(3), called(3),
    ):  # fmt: skip
        bars.on_event(event)
    with console.capture() as capture:
        console.print(bars.live.get_renderable())
    lines = [
        " ".join(line.replace("━", "").replace("╸", "").replace("╺", "").split()) for line in capture.get().splitlines()
    ]
    assert lines == [
        "forward 32/32",
        "backward 2 calls",
        "optimize",
        "validate",
        "test",
        "step 1 of 4, best 0.500, 4 calls, 4.0k tokens, $0.00, 0.0 s so far",
    ]
    bars.on_event(PhaseEnded(3))
    for asking, beginning in ((True, "stopping: waiting for answers in flight"), (False, "finishing: ")):
        bars.on_interrupt(asking, "Ctrl-Break")
        assert bars.status().startswith(beginning)
        assert len(bars.status()) <= 80


def test_names_of_examples_are_neither_markup_nor_commands() -> None:
    """A run ended at an id that reads like the end of a style, and a terminal obeyed another."""
    shown = io.StringIO()
    bars = Bars(Console(file=shown, force_terminal=True, width=200))
    overlaps = ("1 val example is in train: '[/INST] 3[a]'", "another: \x1b[2J\u202e")
    bars.on_event(RunStarted({"system": "a"}, train=2, val=1, test=0, steps=1, overlaps=overlaps))
    assert "warning: 1 val example is in train: '[/INST] 3[a]'" in shown.getvalue()
    assert "\x1b[2J" not in shown.getvalue()
    assert "\u202e" not in shown.getvalue()


def test_one_bar_shows_a_search() -> None:
    """How many proposals are under way, and what they have asked; many of them overlap."""
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=25, color_system=None)
    bars = Bars(console)

    def shown() -> list[str]:
        with console.capture() as capture:
            console.print(bars.live.get_renderable())
        return [" ".join(re.sub("[━╸╺]", "", line).split()) for line in capture.get().splitlines()]

    for event in (
        RunStarted({"system": "a"}, train=64, val=10, test=20, steps=None), PhaseStarted(1, "score", 0, 0),
        PhaseEnded(1), PhaseStarted(2, "validate", 0, 10), called(2), PhaseEnded(2),
        Evaluated(2, "validate", 0, HALF), PhaseStarted(3, "score", 1, 0), called(3), PhaseStarted(4, "search", 1, 0),
        PhaseStarted(5, "search", 2, 0), called(5), called(4), called(5),
    ):  # fmt: skip
        bars.on_event(event)
    assert shown() == [
        "search 2 under way, 4 calls",
        "validate 10/10",
        "test",
        "step 1, best 0.500, 5 calls, 5.0k tokens, $0.00, 0.0 s so far",
    ]
    for event in (PhaseEnded(4), tried(1, "patch"), PhaseEnded(3), PhaseStarted(6, "score", 2, 0), called(6)):
        bars.on_event(event)
    assert shown()[0] == "search 1 under way, 3 calls"
    assert shown()[-1].startswith("step 2, best 0.750, ")
    for event in (PhaseEnded(5), PhaseEnded(6), PhaseStarted(7, "validate", 2, 10), PhaseAdvanced(7, 3)):
        bars.on_event(event)
    assert shown()[1] == "validate 3/10"
    assert bars.tally.left is None
