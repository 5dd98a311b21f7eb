from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from textgrad_engine import templates
from textgrad_engine.optim.transforms import Context, Gathered, momentum

CONTEXT = Context("Sort.", "system prompt", None, 1)


def history(window: int, state: dict[str, Any], before: tuple[str, ...] = ()) -> tuple[str, ...]:
    return asyncio.run(momentum(window).update(Gathered((), before), state, CONTEXT))[0].history


def recorded(window: int, *outcomes: str) -> dict[str, Any]:
    state = momentum(window).init()
    for number, outcome in enumerate(outcomes):
        state = momentum(window).record(state, [f"added 'Line {number}.'", "removed a line"], outcome)
    return state


def test_past_edits_come_with_what_became_of_them() -> None:
    """Also of those that were taken back, oldest first, behind what others put there."""
    state = recorded(2, "kept: 0.1 -> 0.2", "taken back: 0.2 -> 0.1")
    assert history(2, state, ("of another",)) == (
        "of another",
        "added 'Line 0.' — kept: 0.1 -> 0.2",
        "removed a line — kept: 0.1 -> 0.2",
        "added 'Line 1.' — taken back: 0.2 -> 0.1",
        "removed a line — taken back: 0.2 -> 0.1",
    )


def test_what_leaves_the_window_is_forgotten() -> None:
    """The state does not grow with the run; a smaller window over an older state shows less."""
    state = recorded(2, "a", "b", "c", "")
    assert [past["outcome"] for past in state["past"]] == ["c", ""]
    assert history(1, state) == (
        "added 'Line 3.' — outcome not known",
        "removed a line — outcome not known",
    )


def test_showing_the_past_notes_once_what_was_there() -> None:
    """The state is not changed in place, is plain data, and stays as it is when it is shown again."""
    state = recorded(2, "kept")
    after = asyncio.run(momentum(2).update(Gathered(()), state, CONTEXT))[1]
    assert state == recorded(2, "kept")
    assert json.loads(json.dumps(after)) == after
    later = replace(CONTEXT, text="Sort.\nLine 0.")
    told, again = asyncio.run(momentum(2).update(Gathered(()), after, later))
    assert (told.history, again) == (("removed a line — kept",), after)  # the line was not there, and is now


def test_the_words_are_a_prompt(tmp_path: Path) -> None:
    """A user may say it otherwise."""
    header = "---\nname: past_edit\npurpose: mine\nversion: 1\nslots: edit, outcome, other\n---\n# User\n"
    (tmp_path / "past_edit.md").write_text(header + "{{ outcome }}: {{ edit }}\n", "utf-8")
    with templates.use_prompts(tmp_path):
        assert history(1, recorded(1, "{{ kept }}"))[0] == "{{ kept }}: added 'Line 0.'"
