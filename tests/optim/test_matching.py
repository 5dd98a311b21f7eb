"""Lines of two texts that are the same: as difflib has them, and soon where thousands of lines are blank."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.optim import matching
from textgrad_engine.optim.between import edits_between
from textgrad_engine.optim.matching import matcher_of, pairs_in
from textgrad_engine.optim.patch import apply_patch, origins_of_rewrite

lines = st.lists(st.sampled_from(["a", "b", "c", "", "d e"]), max_size=12)


@given(lines, lines)
def test_texts_of_usual_size_are_compared_as_difflib_does_it(before: list[str], after: list[str]) -> None:
    """Edits and origins of before are what they were."""
    expected = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    assert matcher_of(before, after).get_opcodes() == expected


@given(lines, lines)
def test_what_is_matched_beside_others_alone_still_makes_one_text_of_the_other(
    before: list[str], after: list[str]
) -> None:
    """Law: for as many pairs as there may be."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "MOST_PAIRS", 4)
        made: list[str] = []
        for tag, start, stop, first, last in matcher_of(before, after).get_opcodes():
            made += before[start:stop] if tag == "equal" else after[first:last]
        assert made == after


@given(lines, lines, st.sampled_from([0, 50_000]))
def test_what_became_of_each_line_still_makes_one_text_of_the_other(
    before: list[str], after: list[str], most: int
) -> None:
    """Law: the parts cover both texts in order, what is equal is equal, and a replacement is of one line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "MOST_COMPARED", most)
        old = new = 0
        for tag, start, stop, first, last in pairs_in(before, after):
            assert (start, first) == (old, new)
            assert tag != "equal" or before[start:stop] == after[first:last]
            assert tag != "replace" or (stop - start == 1 and last > first)
            assert tag not in ("insert", "delete") or (start == stop) != (first == last)
            old, new = stop, last
        assert (old, new) == (len(before), len(after))


def test_a_list_in_other_words_is_a_change_for_each_entry() -> None:
    """It was one that wrote all lines in the place of the first, and took the others out one by one."""
    old = ["Sort:", "- bills: payments", "- parcels: transport and tracking", "- trust: fraud", "Answer."]
    new = ["Sort:", "- bills: payments and invoices", "- parcels: tracking, late ones, damage", "- trust: fraud, abuse",
           "A threat goes to trust.", "Answer."]  # fmt: skip
    edits, _ = edits_between("\n".join(old), "\n".join(new))
    assert [(edit.op, edit.line, edit.text) for edit in edits] == [
        ("replace", 2, new[1]),
        ("replace", 3, new[2]),
        ("replace", 4, new[3]),
        ("add", 4, new[4]),
    ]
    origins = origins_of_rewrite("\n".join(old), [None] * 5, "\n".join(new), "clearer", (), 7)
    assert [origin.edit if origin else "" for origin in origins] == ["", "7.1", "7.2", "7.3", "7.4", ""]


def test_an_entry_that_moved_up_is_told_from_one_that_is_gone() -> None:
    """The line that has its words is its heir, not the one in its place."""
    old, new = ["- bills: payments", "- parcels: transport"], ["- parcels: transport, or lost", "Be brief."]
    assert list(pairs_in(old, new)) == [("delete", 0, 1, 0, 0), ("replace", 1, 2, 0, 1), ("insert", 2, 2, 1, 2)]


def test_letters_of_scripts_without_spaces_are_no_words_in_common() -> None:
    """Any two lines of Thai share most of their letters, so that each was the heir of a line about something else."""
    name, gifts = "ตอบชื่อแผนกเท่านั้น และห้ามอธิบายเพิ่มเติม", "ถ้าลูกค้าพูดถึงบัตรของขวัญ ให้เลือกบัญชี"
    new = ["ใช้ภาษาสุภาพกับลูกค้าเสมอ และขึ้นต้นด้วยคำทักทาย", "ให้ตอบชื่อแผนกเท่านั้น"]
    assert list(pairs_in([name, gifts], new)) == [
        ("insert", 0, 0, 0, 1),
        ("replace", 0, 1, 1, 2),
        ("delete", 1, 2, 2, 2),
    ]


def test_lines_without_words_in_common_go_by_their_place() -> None:
    """Of three lines that became two the last is gone; of one that became three all stand in its place."""
    assert list(pairs_in(["a", "b", "c"], ["x", "y"])) == [
        ("replace", 0, 1, 0, 1),
        ("replace", 1, 2, 1, 2),
        ("delete", 2, 3, 2, 2),
    ]
    assert list(pairs_in(["a"], ["x", "y", "z"])) == [("replace", 0, 1, 0, 3)]
    assert list(pairs_in(["a", "b"], ["x", "y", "z"])) == [("replace", 0, 1, 0, 1), ("replace", 1, 2, 1, 3)]


def test_blank_lines_stay_beside_their_paragraphs() -> None:
    """Where there are too many to be compared with each other."""
    old = [line for number in range(400) for line in (f"Rule {number}.", "")]
    new = [*old[:300], "One more.", "", *old[300:]]
    assert [code for code in matcher_of(old, new).get_opcodes() if code[0] != "equal"] == [
        ("insert", 300, 300, 300, 302)
    ]


@pytest.mark.timeout(30)
def test_a_model_that_writes_nothing_but_blank_lines_holds_nobody_up() -> None:
    """A prompt of a thousand paragraphs, and an answer of twenty thousand blank lines; it took hours."""
    before = "\n\n".join(f"Rule {number}." for number in range(1000))
    after = "Rules.\n" + "\n" * 20_000
    origins = origins_of_rewrite(before, [None] * 1999, after, "shorter", (), 1)
    assert len(origins) == 20_002
    edits, _ = edits_between(before, after)
    assert apply_patch(before, [None] * 1999, edits, (), 1)[0] == after


@pytest.mark.timeout(30)
def test_a_line_that_changed_among_forty_thousand_is_found_at_once() -> None:
    """Paragraphs of a line each, with blank lines between."""
    old = [line for number in range(20_000) for line in (f"Rule {number}.", "")]
    new = ["Rule seven." if line == "Rule 7." else line for line in old]
    assert [code for code in matcher_of(old, new).get_opcodes() if code[0] != "equal"] == [("replace", 14, 15, 14, 15)]
