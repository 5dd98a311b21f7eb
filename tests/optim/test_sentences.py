# ruff: noqa: RUF001  the marks of other scripts are meant
"""Sentences of lines that are too long to be written anew: what is a place, and what edits of places come to."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from textgrad_engine.fences import fence
from textgrad_engine.optim.patch import Edit, edits_from
from textgrad_engine.optim.rebase import merge_patches, rebase
from textgrad_engine.optim.sentences import Place, by_sentences, changed_sentences, excerpts, merged_line, places_of
from textgrad_engine.optim.showing import left_over, numbered

KINDS = [f"Tickets of kind {n} go to queue {n}." for n in range(30)]
PARAGRAPH = " ".join(KINDS)


def edited(text: str, *edits: tuple[str, int, str]) -> list[tuple[str, int, str]]:
    body = {"edits": [{"op": op, "line": n, "text": new, "reason": f"r{n}", "feedback": [1]} for op, n, new in edits]}
    made, problems = edits_from(body, text=text, feedback=1, max_edits=9)
    assert problems == []
    return [(edit.op, edit.line, edit.text) for edit in made]


@given(st.lists(st.sampled_from([*"aB.。!？」 \n\tกข", "x" * 300, "e.g. ", "End. "])).map("".join))
def test_places_hold_the_whole_text(text: str) -> None:
    """Law: nothing is lost or made up, and no place is in two lines."""
    places = places_of(text)
    lines = text.split("\n")
    assert ["".join(place.text for place in places if place.line == n) for n in range(1, len(lines) + 1)] == lines
    assert [place.goes_on for place in places] == [
        at > 0 and place.line == places[at - 1].line for at, place in enumerate(places)
    ]


@given(
    st.lists(st.sampled_from(["Short line.", "", PARAGRAPH, "一文字目。" * 40, "กขค " * 90]), min_size=1, max_size=4),
    st.data(),
)
def test_a_place_is_replaced_and_nothing_else_changes(lines: list[str], data: st.DataObject) -> None:
    """Law: whichever place is edited, all the others stand as they stood."""
    text = "\n".join(lines)
    assume(text)  # the empty one has no place
    places = places_of(text)
    number = data.draw(st.integers(1, len(places)))
    ((op, line, new),) = edited(text, ("replace", number, "NEW"))
    own = [n for n, place in enumerate(places) if place.line == line]
    old = "".join(("NEW" if n == number - 1 else places[n].text.rstrip()) + _gap(places[n]) for n in own)
    assert (op, line, new.rstrip()) == ("replace", places[number - 1].line, old.rstrip())


def _gap(place: Place) -> str:
    return place.text[len(place.text.rstrip()) :]


def test_short_lines_are_places_as_a_whole() -> None:
    """A line that is soon written again is; a long one without an end of a sentence has no parts."""
    assert not by_sentences("Sort it. Be brief.\nBe kind.")
    assert not by_sentences("x" * 2_000)
    assert by_sentences("Sort it.\n" + PARAGRAPH)


@pytest.mark.parametrize(
    ("sentences", "between"),
    [
        (["Sort e.g. Bills into billing.", 'Say "yes."', "Version 3.5 is old!", "(See J. R. Smith.)"] * 9, " "),
        (["Nimm auch inkl. übrige Kosten.", "Frage ggf. öfter nach."] * 12, " "),
        (
            [
                "\u0423\u043a\u0430\u0436\u0438 \u0440\u0443\u0431. \u0437\u0430 \u0448\u0442\u0443\u043a\u0443.",
                "\u041e\u0442\u0432\u0435\u0442\u044c.",
            ]
            * 20,
            " ",
        ),
        (["请将工单分到正确的队列。", "如果是账单问题，请选择“账单。”", "谢谢！"] * 9, ""),
        (["チケットを分類してください。", "以上です。"] * 9, ""),
        (["صنف الرسالة الآن.", "هل هي فاتورة؟"] * 9, " "),
        (["टिकट को सही कतार में रखें।", "बस इतना ही।"] * 9, " "),
    ],
)
def test_sentences_end_as_their_language_ends_them(sentences: list[str], between: str) -> None:
    """Quotations end behind their mark; initials, abbreviations and numbers end nothing."""
    assert [place.text.strip() for place in places_of(between.join(sentences))] == sentences


def test_thai_is_cut_at_the_spaces_between_clauses() -> None:
    """It has no full stop."""
    clause = "ถ้าลูกค้าพูดถึงพัสดุที่ยังไม่มาถึงให้ตอบว่าขนส่ง"
    assert [place.text.strip() for place in places_of(" ".join([clause] * 4))] == [clause] * 4


def test_a_long_line_is_shown_by_sentences() -> None:
    """The sign says which of them share a line; a copied sign is found in an answer."""
    shown = numbered(f"Sort.\n{PARAGRAPH}\nEnd. ").split("\n")
    assert shown[:3] == ["1| Sort.", f"2| {KINDS[0]}", f"3|~ {KINDS[1]}"]
    assert shown[-1] == "32| End. "
    assert left_over("3|~ New.", [PARAGRAPH]) == "3|~ "


def test_edits_of_sentences_are_one_edit_of_their_line() -> None:
    """It replaces the line by what all of them make of it; what is put behind its end is a line."""
    text = f"Sort.\n{PARAGRAPH}\nEnd."
    found = edited(
        text,
        ("replace", 3, "Kind 1 is lost."),
        ("add", 31, "A line behind the paragraph."),
        ("remove", 4, ""),
        ("add", 5, "One more."),
        ("replace", 32, "The end."),
    )
    new = " ".join([KINDS[0], "Kind 1 is lost.", KINDS[3], "One more.", *KINDS[4:]])
    assert found == [("replace", 2, new), ("add", 2, "A line behind the paragraph."), ("replace", 3, "The end.")]


def test_sentences_without_spaces_are_joined_without_any() -> None:
    """And the end of the line leaves no space behind when its last sentence goes."""
    one = "甲乙丙丁戊己。"
    assert edited(one * 30, ("add", 2, "新。"))[0][2] == one * 2 + "新。" + one * 28
    assert edited(PARAGRAPH, ("remove", 30, ""))[0][2] == " ".join(KINDS[:-1])


def test_a_line_that_loses_all_sentences_goes() -> None:
    """Rather than staying as an empty one."""
    text = "Sort.\n" + "Tickets go to the queue that is their own, " * 15 + "too. Be kind."
    assert edited(text, ("remove", 2, ""), ("remove", 3, "")) == [("remove", 2, "")]


def test_an_edit_of_sentences_keeps_their_reasons_and_feedback() -> None:
    """Who looks at the line later finds all that was asked for."""
    body = {
        "edits": [{"op": "replace", "line": n, "text": "New.", "reason": f"why {n}", "feedback": [n]} for n in (1, 2)]
    }
    ((edit,), problems) = edits_from(body, text=PARAGRAPH, feedback=2, max_edits=4)
    assert (edit.reason, edit.feedback, problems) == ("why 1; why 2", (1, 2), [])


def test_an_edit_of_a_sentence_that_is_not_there_names_the_numbers_that_are() -> None:
    """They are those that the model was shown."""
    body = {"edits": [{"op": "remove", "line": 31, "text": "", "reason": "", "feedback": []}]}
    assert edits_from(body, text=PARAGRAPH, feedback=0, max_edits=4)[1] == [
        "edit 1 removes line 31; the text has lines 1 to 30"
    ]


@pytest.mark.parametrize("between", [" ", ""])
@given(st.sets(st.integers(0, 29)), st.sets(st.integers(0, 29)))
def test_what_two_changed_in_one_line_is_put_together(between: str, ones: set[int], others: set[int]) -> None:
    """Law: where they changed different sentences, both changes are in it, and nothing else; it does not matter who was
    first."""
    kinds = KINDS if between else [f"种类{n}的工单。" for n in range(60)]
    base = between.join(kinds)

    def changed(*what: set[int]) -> str:
        numbers = set().union(*what)
        return between.join(f"NEW {kind}" if n in numbers else kind for n, kind in enumerate(kinds))

    one, other = changed(ones), changed(others - ones)
    assert merged_line(base, one, other) == merged_line(base, other, one) == changed(ones, others)


def test_a_sentence_that_both_changed_is_a_conflict() -> None:
    """As is a place where both put something; the same change is none."""
    one, other = (PARAGRAPH.replace(KINDS[3], new) for new in ("One.", "Other."))
    assert merged_line(PARAGRAPH, one, other) is None
    assert merged_line(PARAGRAPH, one, one) == one
    added = [PARAGRAPH.replace(KINDS[3], f"{KINDS[3]} {new}") for new in ("One.", "Other.")]
    assert merged_line(PARAGRAPH, *added) is None
    assert merged_line("Sort.", "Sort it.", "Sort.") is None


def test_a_patch_is_moved_to_a_line_in_which_another_sentence_was_changed() -> None:
    """Patches that were found side by side are no rivals because a prompt is one paragraph."""
    theirs, mine = (PARAGRAPH.replace(KINDS[n], f"Kind {n} is junk.") for n in (3, 20))
    found = rebase([Edit("replace", 1, mine, "why")], PARAGRAPH, theirs)
    assert not found.conflicts
    (edit,) = found.edits
    assert changed_sentences(PARAGRAPH, edit.text) == [(KINDS[n], f"Kind {n} is junk.") for n in (3, 20)]
    assert rebase([Edit("replace", 1, theirs, "why")], PARAGRAPH, theirs).duplicates


def test_the_indentation_of_a_long_line_is_kept() -> None:
    """It may be an item of a list in a list."""
    text = f"- a\n    - {PARAGRAPH}"
    assert numbered(text).split("\n")[1] == f"2|     - {KINDS[0]}"
    ((_, _, new),) = edited(text, ("replace", 2, "    - Kind 0 is junk."), ("replace", 4, "  Kind 2 is junk."))
    assert new == f"    - Kind 0 is junk. {KINDS[1]} Kind 2 is junk. {' '.join(KINDS[3:])}"
    old = text.split("\n")[1]
    assert merged_line(old, new, old.replace(KINDS[9], "Kind 9 is junk.")) == new.replace(KINDS[9], "Kind 9 is junk.")
    assert edited(text, ("remove", 2, ""))[0][2] == f"    - {' '.join(KINDS[1:])}"


@pytest.mark.parametrize("line", ["." * 100_000, "。" * 100_000, "." + " " * 100_000 + "a", '!"' * 50_000])
def test_a_line_of_nothing_but_marks_is_one_place(line: str) -> None:
    """Found in a time that goes with its length, or no test would see the end."""
    assert [place.text for place in places_of(line)] == [line]


@pytest.mark.parametrize("end", ["", " ", "　"])
def test_what_is_put_together_keeps_the_spaces_of_its_line(end: str) -> None:
    """Chinese has none between sentences, also where one stands at the end of the line."""
    kinds = [f"种类{n}的工单转给队列{n}。" for n in range(40)]
    base = "".join(kinds) + end
    one, other = base.replace(kinds[3], "甲。"), base.replace(kinds[20], "乙。")
    assert merged_line(base, one, other) == one.replace(kinds[20], "乙。")
    spaced = f"{KINDS[0]}  {'  '.join(KINDS[1:20])} {' '.join(KINDS[20:])}"
    one, other = spaced.replace(KINDS[3], "One."), f"{spaced} Other."
    assert merged_line(spaced, one, other) == f"{one}  Other."


def test_edits_of_two_lines_that_have_become_one_are_both_in_it_once() -> None:
    """A rewrite may make one paragraph of two; to write that twice would double it."""
    second = PARAGRAPH.replace("kind", "sort")
    base, now = f"{PARAGRAPH}\n{second}", f"{PARAGRAPH} {second}"
    edits = [
        Edit("replace", 1, PARAGRAPH.replace(KINDS[3], "One."), "First.", (1,), "4.1"),
        Edit("replace", 2, second.replace("sort 20", "sort 99"), "Second.", (2,), "4.2"),
    ]
    found = rebase(edits, base, now)
    expected = now.replace(KINDS[3], "One.").replace("sort 20", "sort 99")
    assert found.edits == (Edit("replace", 1, expected, "First; Second", (1, 2), "4.1"),)
    assert not found.conflicts


def test_patches_of_different_sentences_are_one_patch() -> None:
    """So that two candidates of a population are merged without asking a model."""
    one, other = (PARAGRAPH.replace(KINDS[n], f"Kind {n} is junk.") for n in (3, 20))
    first, second = Edit("replace", 1, one, "One.", (1,)), Edit("replace", 1, other, "Other.", (1,))
    merged = merge_patches(PARAGRAPH, [first], [second], feedback=1)
    both = one.replace(KINDS[20], "Kind 20 is junk.")
    assert merged.edits == (Edit("replace", 1, both, "One; Other", (1, 2)),)
    assert not merged.conflicts
    disagreeing = Edit("replace", 1, PARAGRAPH.replace(KINDS[3], "Kind 3 is fine."), "")
    assert len(merge_patches(PARAGRAPH, [first], [second, disagreeing]).conflicts) == 1


def test_the_mark_of_an_item_is_not_written_twice() -> None:
    """It is put before what is left of a line, but not where that was written with it."""
    assert edited(f"- {PARAGRAPH}", ("remove", 1, ""), ("add", 1, "- Be kind."))[0][2].startswith("- Be kind. Tickets")
    assert edited(f"- Do so. 1. {PARAGRAPH}", ("remove", 1, ""))[0][2].startswith("- 1. Tickets of kind 0")


def test_the_number_of_an_item_is_no_sentence() -> None:
    """To remove it alone would change nothing."""
    text = f"1. {PARAGRAPH} 2. Be kind. It is 5. Be brief."
    assert [place.text for place in places_of(text)][:1] == [f"1. {KINDS[0]} "]
    assert [place.text for place in places_of(text)][-3:] == ["2. Be kind. ", "It is 5. ", "Be brief."]


def test_what_is_left_out_beside_each_other_has_one_ellipsis() -> None:
    """Where sentences come in, nothing stands between those that stay."""
    new = PARAGRAPH.replace(KINDS[3], f"{KINDS[3]} One.").replace(KINDS[9], f"{KINDS[9]} Other.").replace(KINDS[20], "")
    assert excerpts(PARAGRAPH, new) == (f"… {KINDS[20]} …", "… One. … Other. …")


@pytest.mark.timeout(30)
def test_an_answer_full_of_tags_is_looked_through_at_once() -> None:
    """Each is compared with those of all texts that were shown; the first that is one of these is told."""
    shown = ["\n".join(f"Line {line} of {text}." for line in range(300)) for text in range(20)]
    tags = "".join(f"<text-{number:08x}>\n</tried-{number:08x}>\n" for number in range(2000))
    assert left_over(tags, shown) == ""
    own = fence(shown[7], "tried").partition("\n")[0]
    assert left_over(f"{tags}{own.replace('<', '</')}{own}", shown) == own.replace("<", "</")
