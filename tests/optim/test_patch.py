from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.fences import fence
from textgrad_engine.optim.cells import Evidence, Gone, Origin
from textgrad_engine.optim.patch import Edit, Op, apply_patch, edits_from, origins_of_rewrite

EVIDENCE = [Evidence("too long", ("t1",)), Evidence("too rude", ("t2", "t3"))]


def entry(op: str, line: int, text: str = "", feedback: Any = ()) -> dict[str, Any]:
    return {"op": op, "line": line, "text": text, "reason": " because ", "feedback": list(feedback)}


def read(*entries: dict[str, Any], lines: int = 3, shown: Sequence[str] = ()) -> tuple[list[Edit], list[str]]:
    return edits_from({"edits": list(entries)}, text="\n" * (lines - 1), feedback=2, max_edits=4, shown=shown)


def patched(text: str, *edits: Edit) -> str:
    return apply_patch(text, [None] * len(text.split("\n")), edits, EVIDENCE, 1)[0]


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (entry("replace", 4, "x"), "edit 2 replaces line 4; the text has lines 1 to 3"),
        (entry("replace", 0, "x"), "edit 2 replaces line 0; the text has lines 1 to 3"),
        (entry("remove", -1), "edit 2 removes line -1; the text has lines 1 to 3"),
        (entry("add", 4, "x"), "edit 2 adds a line behind line 4; the last line is 3 (0 puts it first)"),
        (entry("add", 1, " \n"), "edit 2 adds no text behind line 1"),
        (entry("replace", 2, ""), "edit 2 replaces line 2 by nothing; use remove to delete a line"),
        (entry("remove", 1), "edit 2 removes line 1, which edit 1 replaces or removes already"),
    ],
)
def test_an_edit_that_cannot_be_made_is_named_and_costs_no_other(edit: dict[str, Any], problem: str) -> None:
    """The reason is said to the optimizer, which may try once more; what came before and behind it can be made."""
    edits, problems = read(entry("replace", 1, "x"), edit, entry("add", 1, "y"), entry("add", 9, "z"))
    assert [one.text for one in edits] == ["x", "y"]
    assert problems == [problem, "edit 4 adds a line behind line 9; the last line is 3 (0 puts it first)"]


def test_the_only_line_of_a_text_is_named_as_such() -> None:
    """Not as "lines 1 to 1"."""
    edits, problems = edits_from({"edits": [entry("remove", 2)]}, text="Sort.", feedback=0, max_edits=4)
    assert (edits, problems) == ([], ["edit 1 removes line 2; the text has line 1 only"])


@pytest.mark.parametrize(("op", "line"), [("add", 0), ("add", 1), ("replace", 1)])
def test_the_empty_text_has_no_line_that_stays_beside_what_is_added(op: Op, line: int) -> None:
    """As a string it is one empty line, which models and people's code write behind, or into."""
    edits, problems = edits_from({"edits": [entry(op, line, "Sort.", [1])]}, text="", feedback=2, max_edits=4)
    assert (edits, problems) == ([Edit("add", 0, "Sort.", "because", (1,))], [])
    assert patched("", *edits) == patched("", Edit(op, line, "Sort.", "because", (1,))) == "Sort."
    assert patched("", *edits, Edit(op, line, "Be brief.", "")) == "Sort.\nBe brief."
    emptied = apply_patch("Sort it.", [None], [Edit("remove", 1, "", "")], [], 1)
    assert apply_patch(*emptied, [Edit(op, line, "Sort.", "")], [], 2)[0] == "Sort."


def test_what_cannot_be_done_to_the_empty_text_is_told_so() -> None:
    """Not that it has lines 1 to 0."""
    entries = [entry("remove", 1), entry("replace", 2, "x"), entry("add", 2, "x")]
    assert edits_from({"edits": entries}, text="", feedback=0, max_edits=4)[1] == [
        "edit 1 removes line 1; the text is empty",
        "edit 2 replaces line 2; the text is empty",
        "edit 3 adds a line behind line 2; the text is empty: 0 puts it first",
    ]


def test_a_rewrite_of_the_empty_text_is_the_optimizers_whole() -> None:
    """Also where it begins with an empty line, and where all of a text is taken out."""
    assert [each and each.edit for each in origins_of_rewrite("", [None], "\nSort.", "", [], 3)] == ["3.1", "3.1"]
    (gone,) = origins_of_rewrite("Sort.", [None], "", "", [], 3)
    assert gone is not None
    assert gone.gone_before == (Gone("Sort.", None, "3.1"),)


def test_one_line_may_be_replaced_and_added_to() -> None:
    """Two edits of a line contradict each other; adding behind it does not."""
    assert len(read(entry("replace", 2, "x"), entry("add", 2, "y"), entry("add", 2, "z"))[0]) == 3


def test_of_too_many_edits_the_first_are_left() -> None:
    """The step size is a limit, not a wish."""
    edits, problems = read(*[entry("add", 0, f"{n}") for n in range(6)])
    assert ([edit.text for edit in edits], problems) == (list("0123"), ["there are 6 edits, and the limit is 4"])


@pytest.mark.parametrize(
    ("text", "found"), [("2| x", "2| "), ("x\n+| y", "+| "), (fence("a\nb\nc"), "<text-"), ("</original-e5ea9b1a>", "")]
)
def test_what_lines_are_only_shown_with_is_no_part_of_an_edit(text: str, found: str) -> None:
    """A number of a line, a sign or a tag would become a part of the prompt."""
    edits, problems = read(entry("add", 0, text), shown=["a\nb\nc"])
    assert bool(edits) is not bool(found)
    assert [f"edit 1 has a text with `{found}" in problem for problem in problems] == [True] * bool(found)
    assert len(read(entry("add", 0, text))[0]) == 1  # nothing was shown that could have come back


def test_numbers_of_feedback_that_was_not_shown_are_dropped() -> None:
    """A line is never traced to feedback that does not exist."""
    (edit,), _ = read(entry("add", 0, "x\n", feedback=[2, 9, 2, 0, -1, 1]))
    assert (edit.feedback, edit.text, edit.reason) == ((2, 1), "x", "because")


def test_no_edits_is_an_answer() -> None:
    """If nothing would help, nothing is done."""
    assert read() == ([], [])


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
    (edit,), _ = read({**entry("replace", 2, "x"), "line": 2.0, "feedback": [1.0]})
    assert patched("a\nb\nc", edit) == "a\nx\nc"
    assert [type(number) for number in (edit.line, *edit.feedback)] == [int, int]
