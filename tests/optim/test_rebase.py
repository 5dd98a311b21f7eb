from __future__ import annotations

import pytest

from textgrad_engine.optim.between import edits_between
from textgrad_engine.optim.cells import Evidence, Origin
from textgrad_engine.optim.patch import Edit, apply_patch
from textgrad_engine.optim.rebase import fold, merge_patches, rebase
from textgrad_engine.optim.revert import revert

BASE = "Sort.\nBe brief.\nBe polite."
NONE: list[Origin | None] = [None] * 3
Held = tuple[str, list[Origin | None]]


def later(*edits: Edit, base: Held = (BASE, NONE), step: int = 1) -> Held:
    return apply_patch(*base, edits, [], step)


def both(edits: list[Edit], now: Held, base: Held = (BASE, NONE)) -> str:
    """The text with the edits rebased; by text and by origins it must be the same here."""
    made = []
    for origins in ((None, None), (base[1], now[1])):
        rebased = rebase(edits, base[0], now[0], *origins)
        assert not rebased.conflicts
        made.append(apply_patch(*now, rebased.edits, [], 9)[0])
    assert made[0] == made[1]
    return made[0]


@pytest.mark.parametrize("by_origins", [True, False])
@pytest.mark.parametrize(
    ("theirs", "mine", "standing", "resolved"),
    [
        (
            [Edit("replace", 2, "Short.", "")],
            Edit("replace", 2, "Brief!", ""),
            ("Short.",),
            "Sort.\nBrief!\nBe polite.",
        ),
        ([Edit("replace", 2, "Short.", "")], Edit("remove", 2, "", ""), ("Short.",), "Sort.\nBe polite."),
        ([Edit("remove", 2, "", "")], Edit("replace", 2, "Brief!", ""), (), "Sort.\nBrief!\nBe polite."),
        (
            [Edit("replace", 2, "Short.\nSweet.", "")],
            Edit("replace", 2, "Brief!", ""),
            ("Short.", "Sweet."),
            "Sort.\nBrief!\nBe polite.",
        ),
        ([Edit("remove", 1, "", "")], Edit("replace", 1, "Sort it.", ""), (), "Sort it.\nBe brief.\nBe polite."),
    ],
)
def test_an_edit_of_a_line_that_is_no_longer_so_is_a_conflict(
    theirs: list[Edit], mine: Edit, standing: tuple[str, ...], resolved: str, by_origins: bool
) -> None:
    """It is not made; what stands there is named, and so is what would put it there, to race both."""
    now = later(*theirs)
    found = rebase([mine], BASE, now[0], *((NONE, now[1]) if by_origins else ()))
    (conflict,) = found.conflicts
    assert (found.edits, conflict.edit, conflict.theirs) == ((), mine, standing)
    assert apply_patch(*now, conflict.instead, [], 2)[0] == resolved


def test_the_same_change_is_not_made_twice() -> None:
    """An add in other case and bullets, a replacement by the same words, a removal of what is gone."""
    now = later(Edit("add", 3, "Name the queue.", ""), Edit("replace", 1, "Sort it.", ""), Edit("remove", 2, "", ""))
    mine = [
        Edit("add", 0, "- name  the Queue", ""),
        Edit("replace", 1, "SORT it", ""),
        Edit("remove", 2, "", ""),
        Edit("add", 3, "Name the queue.\nGive reasons.", ""),
    ]
    found = rebase(mine, BASE, now[0], NONE, now[1])
    assert (found.duplicates, found.conflicts) == (tuple(mine[:3]), ())
    assert [edit.text for edit in found.edits] == ["Name the queue.\nGive reasons."]


def test_what_stood_there_before_is_no_duplicate() -> None:
    """Whoever repeats a line of the text he was shown means it; blank lines are like no other."""
    mine = [Edit("add", 3, "Sort.", ""), Edit("add", 1, "", "")]
    now = later(Edit("add", 2, "\nx", ""))
    assert rebase(mine, BASE, now[0]).duplicates == ()


@pytest.mark.parametrize(
    ("theirs", "line", "expected"),
    [
        ([Edit("replace", 1, "Sort it.", "")], 1, "Sort it.\nMINE\nBe brief.\nBe polite."),
        ([Edit("remove", 2, "", "")], 2, "Sort.\nMINE\nBe polite."),
        ([Edit("remove", 1, "", ""), Edit("remove", 2, "", "")], 2, "MINE\nBe polite."),
        ([Edit("add", 3, "THEIRS", "")], 3, "Sort.\nBe brief.\nBe polite.\nTHEIRS\nMINE"),
        ([Edit("add", 0, "THEIRS", "")], 0, "MINE\nTHEIRS\nSort.\nBe brief.\nBe polite."),
        ([Edit("add", 1, "THEIRS", "")], 1, "Sort.\nMINE\nTHEIRS\nBe brief.\nBe polite."),
    ],
)
def test_an_add_goes_where_its_line_is_now(theirs: list[Edit], line: int, expected: str) -> None:
    """Behind what replaced it, behind the nearest line before one that is gone, and at the end when it was the end."""
    assert both([Edit("add", line, "MINE", "")], later(*theirs)) == expected


def test_what_several_found_for_the_empty_text_stands_one_behind_the_other() -> None:
    """Also what was to stand in its line; and what was found before the last line went."""
    empty: Held = ("", [None])
    now = later(Edit("add", 0, "Sort.", ""), base=empty)
    assert both([Edit("replace", 1, "Be brief.", ""), Edit("add", 1, "Be kind.", "")], now, empty) == (
        "Sort.\nBe brief.\nBe kind."
    )
    merged = merge_patches("", [Edit("replace", 1, "Sort.", "")], [Edit("replace", 1, "Be brief.", "")])
    assert (apply_patch(*empty, merged.edits, [], 1)[0], merged.conflicts) == ("Sort.\nBe brief.", ())
    emptied = later(*[Edit("remove", line, "", "") for line in (1, 2, 3)])
    assert both([Edit("add", 3, "Be kind.", "")], emptied) == "Be kind."
    (conflict,) = rebase([Edit("replace", 2, "Be kind.", "")], BASE, *[emptied[0], NONE, emptied[1]]).conflicts
    assert apply_patch(*emptied, conflict.instead, [], 9)[0] == "Be kind."


def test_origins_tell_equal_lines_apart() -> None:
    """By their text the second 'x' would be taken for the first, which is gone."""
    base = ("x\ny\nx", NONE)
    now = later(Edit("remove", 1, "", ""), Edit("remove", 2, "", ""), base=base)
    assert now[0] == "x"
    mine = [Edit("replace", 3, "X", "")]
    assert [edit.line for edit in rebase(mine, base[0], now[0], base[1], now[1]).edits] == [1]
    assert len(rebase([Edit("replace", 1, "X", "")], base[0], now[0], base[1], now[1]).conflicts) == 1


def test_an_edit_of_a_line_that_was_taken_back_meets_what_stands_there_again() -> None:
    """A lane that began before an ablation comes back to a text without the line it edited."""
    base = later(Edit("replace", 2, "Short.", ""))
    now = revert(*base, "1.1")
    found = rebase([Edit("replace", 2, "Very short.", "")], base[0], now[0], base[1], now[1])
    assert [conflict.theirs for conflict in found.conflicts] == [("Be brief.",)]
    assert apply_patch(*now, found.conflicts[0].instead, [], 2)[0] == "Sort.\nVery short.\nBe polite."


def test_origins_of_another_history_are_not_believed() -> None:
    """A text that was typed in by hand is matched by its lines."""
    now = "Be brief.\nBe polite."
    found = rebase([Edit("replace", 2, "Short.", "")], BASE, now, NONE, [None, None])
    assert [edit.line for edit in found.edits] == [1]


def test_ids_and_reasons_go_with_an_edit() -> None:
    """A rebased edit is the same edit: it can be found and taken back by its id."""
    mine = Edit("replace", 3, "Be kind.", "ruder than needed", (2,), "4.1")
    now = later(Edit("add", 0, "x", ""))
    (edit,) = rebase([mine], BASE, now[0]).edits
    assert (edit.id, edit.reason, edit.feedback, edit.line) == ("4.1", "ruder than needed", (2,), 4)


def test_a_merge_keeps_both_patches_and_names_what_they_disagree_on() -> None:
    """The first has its way; the second's feedback is counted behind the first's."""
    one = [Edit("replace", 2, "Short.", "", (1,), "1.1"), Edit("add", 3, "Name it.", "", (2,), "1.2")]
    two = [
        Edit("replace", 2, "Long.", "", (1,), "2.1"),
        Edit("replace", 1, "Sort it.", "", (1,), "2.2"),
        Edit("add", 1, "name it", "", (1,), "2.3"),
    ]
    merged = merge_patches(BASE, one, two, feedback=2)
    evidence = [Evidence(name, ()) for name in ("a", "b", "c")]
    text, origins = apply_patch(BASE, NONE, merged.edits, evidence, 3)
    assert text == "Sort it.\nShort.\nBe polite.\nName it."
    assert [(ours.id, yours.id) for ours, yours in merged.conflicts] == [("1.1", "2.1")]
    assert [edit.id for edit in merged.duplicates] == ["2.3"]
    assert origins[0] is not None
    assert (origins[0].edit, origins[0].step, origins[0].evidence) == ("2.2", 2, (evidence[2],))


def test_a_patch_since_an_ancestor_has_who_wrote_what() -> None:
    """So a candidate of several steps can be merged, and each of its lines is still traced."""
    evidence = [Evidence("asked", ("t1",))]
    held = apply_patch(BASE, NONE, [Edit("add", 3, "x", "first", (1,)), Edit("remove", 1, "", "")], evidence, 1)
    held = apply_patch(*held, [Edit("add", 3, "y\nz", "second", (1,))], evidence, 2)
    edits, found = edits_between(BASE, *held)
    assert found == evidence
    assert [(edit.op, edit.line, edit.text, edit.reason, edit.id, edit.feedback) for edit in edits] == [
        ("remove", 1, "", "", "", ()),
        ("add", 3, "x", "first", "1.1", (1,)),
        ("add", 3, "y\nz", "second", "2.1", (1,)),
    ]


def test_folding_leaves_what_makes_a_difference() -> None:
    """Signs and numbers are kept: '> 5' is not '< 5'."""
    assert fold(" 1. Be  BRIEF. ") == fold("* be brief") == "be brief"
    assert fold("・簡潔に。") == fold("簡潔に") == "簡潔に"
    assert fold("x > 5") != fold("x < 5")
    assert fold("1.5 points") == "1.5 points"
