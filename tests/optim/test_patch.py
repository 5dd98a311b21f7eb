from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.errors import ContractError
from textgrad_engine.optim.patch import Edit, Evidence, Gone, Origin, apply_patch, edits_from, origins_of_rewrite

EVIDENCE = [Evidence("too long", ("t1",)), Evidence("too rude", ("t2", "t3"))]


def entry(op: str, line: int, text: str = "", feedback: Any = ()) -> dict[str, Any]:
    return {"op": op, "line": line, "text": text, "reason": " because ", "feedback": list(feedback)}


def read(*entries: dict[str, Any], lines: int = 3, feedback: int = 2, max_edits: int = 4) -> list[Edit]:
    return edits_from({"edits": list(entries)}, lines=lines, feedback=feedback, max_edits=max_edits)


def patched(text: str, *edits: Edit) -> str:
    return apply_patch(text, [None] * len(text.split("\n")), edits, EVIDENCE, 1)[0]


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (entry("replace", 4, "x"), "no line 4 to replace; the text has lines 1 to 3"),
        (entry("replace", 0, "x"), "no line 0 to replace"),
        (entry("remove", -1), "no line -1 to remove"),
        (entry("add", 4, "x"), "no line 4 to add; the text has lines 0 to 3"),
        (entry("add", 1, " \n"), "edit of line 1 has no text"),
        (entry("replace", 2, ""), "edit of line 2 has no text; use remove"),
    ],
)
def test_an_edit_that_cannot_be_made_is_named(edit: dict[str, Any], problem: str) -> None:
    """The reason is said to the optimizer, which may try once more."""
    with pytest.raises(ContractError, match=problem):
        read(edit)


def test_one_line_is_edited_once() -> None:
    """Two edits of a line contradict each other; adding behind it does not."""
    with pytest.raises(ContractError, match="line 2 is edited twice"):
        read(entry("replace", 2, "x"), entry("remove", 2))
    assert len(read(entry("replace", 2, "x"), entry("add", 2, "y"), entry("add", 2, "z"))) == 3


def test_too_many_edits_are_refused() -> None:
    """The step size is a limit, not a wish."""
    with pytest.raises(ContractError, match="there are 3 edits, and 2 are allowed"):
        read(*[entry("add", n, "x") for n in range(3)], max_edits=2)


def test_numbers_of_feedback_that_was_not_shown_are_dropped() -> None:
    """A line is never traced to feedback that does not exist."""
    (edit,) = read(entry("add", 0, "x\n", feedback=[2, 9, 2, 0, -1, 1]))
    assert (edit.feedback, edit.text, edit.reason) == ((2, 1), "x", "because")


def test_no_edits_is_an_answer() -> None:
    """If nothing would help, nothing is done."""
    assert read() == []


def test_edits_speak_of_the_old_numbers() -> None:
    """However the edits are ordered, each line number is that of the text that was shown."""
    made = patched(
        "a\nb\nc",
        Edit("remove", 1, "", ""),
        Edit("add", 3, "last", ""),
        Edit("replace", 2, "B", ""),
        Edit("add", 0, "first", ""),
        Edit("add", 2, "x", ""),
        Edit("add", 2, "y", ""),
    )
    assert made == "first\nB\nx\ny\nc\nlast"


def test_every_line_knows_its_origin() -> None:
    """Lines that stay keep theirs; new ones name step, reason and the feedback that asked for them."""
    old = Origin(1, "earlier", ())
    edits = [Edit("replace", 1, "A\nA2", "shorter", (2,)), Edit("add", 2, "new", "ruder", (1, 2))]
    text, origins = apply_patch("a\nb", [None, old], edits, EVIDENCE, 7)
    assert text.split("\n") == ["A", "A2", "b", "new"]
    shorter = Origin(7, "shorter", (EVIDENCE[1],), "7.1")
    was = (Gone("a", None, "7.1"),)
    assert origins == [replace(shorter, gone_before=was), shorter, old, Origin(7, "ruder", tuple(EVIDENCE), "7.2")]


def test_a_rewrite_keeps_the_origins_of_lines_that_stay() -> None:
    """Only what was written anew is put down to this step; repeated lines are matched in order."""
    old = Origin(1, "earlier", ())
    origins = origins_of_rewrite("a\nb\n\nc", [old, None, None, old], "b\n\nnew\nc\na", "tidier", EVIDENCE, 2)
    new = Origin(2, "tidier", tuple(EVIDENCE))
    assert [origin and replace(origin, gone_before=(), edit="") for origin in origins[1:]] == [None, new, old, new]
    assert [origin and origin.edit for origin in origins] == ["", None, "2.2", "", "2.3"]
    assert origins[0] == Origin(0, "", (), gone_before=(Gone("a", old, "2.1"),))


LINES = st.lists(st.text(st.characters(blacklist_characters="\n", blacklist_categories=("Cs",))), min_size=1)


@given(LINES)
def test_no_edits_change_nothing(lines: list[str]) -> None:
    """Law: the empty patch is the identity, and a rewrite into the same text keeps all origins."""
    origins = [Origin(n, "", ()) for n in range(len(lines))]
    text = "\n".join(lines)
    assert apply_patch(text, origins, [], [], 1) == (text, origins)
    assert origins_of_rewrite(text, origins, text, "", [], 1) == origins


@given(LINES, LINES, st.data())
def test_origins_fit_the_lines(lines: list[str], new: list[str], data: st.DataObject) -> None:
    """Law: after any patch or rewrite there is one origin for each line of the text."""
    numbers = data.draw(st.lists(st.integers(1, len(lines)), unique=True))
    edits = [Edit(data.draw(st.sampled_from(("add", "replace", "remove"))), n, "x", "") for n in numbers]
    text, origins = apply_patch("\n".join(lines), [None] * len(lines), edits, [], 1)
    if len(edits) < len(lines) or not all(edit.op == "remove" for edit in edits):
        assert len(origins) == len(text.split("\n"))
    after = "\n".join(new)
    assert len(origins_of_rewrite("\n".join(lines), [None] * len(lines), after, "", [], 1)) == len(after.split("\n"))


def test_a_line_may_be_written_as_a_whole_number_with_a_point() -> None:
    """JSON knows no difference between 2 and 2.0; a line has a number that a list can be asked for."""
    (edit,) = read({**entry("replace", 2, "x"), "line": 2.0, "feedback": [1.0]})
    assert patched("a\nb\nc", edit) == "a\nx\nc"
    assert [type(number) for number in (edit.line, *edit.feedback)] == [int, int]
