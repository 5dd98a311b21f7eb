from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine import nn, templates
from textgrad_engine.optim import Edit
from textgrad_engine.optim.optimizer import Change
from textgrad_engine.optim.telling import edits_in_words, without_what_is_there

OLD = 'It\'s a "line".'
NEW = "Ends in 'x' by 'y'"

lines = st.text(alphabet=st.sampled_from("ab '\"\\{}\0\u2028é"), min_size=1, max_size=12)


def told(op: str, text: str = NEW, role: str = "") -> str:
    line = 1 if op != "add" else 0
    change = Change(nn.Parameter(OLD), OLD, OLD, (Edit(op, line, text, "why", ()),), (), 0, "")  # type: ignore[arg-type]
    (words,) = edits_in_words(change)
    return templates.load("past_edit").render(edit=words, outcome="no difference", role=role)


@pytest.mark.parametrize("op", ["add", "replace"])
@pytest.mark.parametrize("role", ["", "system prompt"])
def test_what_was_refused_and_is_there_now_is_not_said_to_have_failed(op: str, role: str) -> None:
    """The line was kept as part of another proposal; nobody shall be told to stay away from it."""
    entry = told(op, role=role)
    assert without_what_is_there([entry], [f"Sort.\n{NEW}"]) == []
    assert without_what_is_there([entry], ["Sort."]) == [entry]


def test_a_line_that_an_edit_would_have_replaced_or_removed_says_nothing() -> None:
    """It is in the text because the edit was refused."""
    history = [told("replace"), told("remove", "")]
    assert without_what_is_there(history, [OLD]) == history


@pytest.mark.parametrize("role", ["", "system prompt"])
def test_a_line_that_was_taken_out_and_is_back_is_not_said_to_be_out(role: str) -> None:
    """The same contradiction the other way round."""
    entry = templates.load("edit_removed").render(text=repr(NEW), outcome="no difference", role=role)
    assert without_what_is_there([entry], [NEW]) == []
    assert without_what_is_there([entry], [OLD]) == [entry]


@given(tried=lines, there=lines)
def test_whatever_the_lines_are(tried: str, there: str) -> None:
    """Quotes, backslashes and braces neither hide an entry nor take another one's place."""
    if "\n" in there or not there.strip() or tried == there:
        return
    entry = told("add", tried)
    if repr(there) not in entry:
        assert without_what_is_there([entry], [there]) == [entry]
    if tried.strip():
        assert without_what_is_there([entry], [tried]) == []


def test_several_texts_are_told_apart() -> None:
    """Where there are several, an entry names the one that it is about."""
    assert told("add", role="system prompt") == f"added {NEW!r} (in the system prompt) — no difference"
    assert told("add") == f"added {NEW!r} — no difference"
