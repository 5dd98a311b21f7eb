"""A proposal without some of its edits."""

from __future__ import annotations

from textgrad_engine.autograd import Variable
from textgrad_engine.optim.change import Change
from textgrad_engine.optim.patch import Edit, apply_patch
from textgrad_engine.optim.search.found import Found, edits_of, left_out, trimmed_in_words, with_edits

FIRST, SECOND = Variable("Look.", role="first"), Variable("Sort.", role="second")


def two() -> Found:
    """Two edits of the second text and one of the first, which comes last."""
    texts, origins, changes = ["Look.", "Sort."], [(None,), (None,)], []
    for n, variable, lines in ((1, SECOND, ("Be brief.", "Be kind.")), (0, FIRST, ("Look twice.",))):
        edits = tuple(Edit("add", 1, line, "asked") for line in lines)
        text, own = apply_patch(texts[n], origins[n], edits, [], 3)
        changes.append(Change(variable, texts[n], text, edits, (), 0, ""))
        texts[n], origins[n] = text, tuple(own)  # type: ignore[call-overload]
    base = ("Look.", "Sort."), ((None,), (None,))
    return Found(3, "patch", *base, tuple(texts), tuple(origins), changes=tuple(changes))


def test_each_edit_is_told_with_its_text_and_the_id_of_its_lines() -> None:
    """What a proposer wrote and was dropped has none."""
    found = two()
    told = edits_of(found, (FIRST, SECOND))
    assert [(n, edit.text, edit.id) for n, edit in told] == [
        (1, "Be brief.", "3.1"),
        (1, "Be kind.", "3.2"),
        (0, "Look twice.", "3.1"),
    ]
    dropped = Change(FIRST, "Look.", "Look.", (Edit("add", 1, "x", ""),), (), 0, "too long")
    assert edits_of(Found(3, "patch", *[((),)] * 4, changes=(dropped,)), (FIRST, SECOND)) == []  # type: ignore[arg-type]


def test_what_is_kept_and_what_is_left_out_are_the_whole() -> None:
    """Lines keep their ids; a text none of whose edits stays is not said to be changed."""
    found, variables = two(), (FIRST, SECOND)
    every = edits_of(found, variables)
    rest, gone = with_edits(found, variables, every[1:2]), left_out(found, variables, every[1:2])
    assert rest.texts == ("Look.", "Sort.\nBe kind.")
    assert [(change.variable, change.after, len(change.edits)) for change in rest.changes] == [
        (SECOND, rest.texts[1], 1)
    ]
    (origin,) = [origin for own in rest.origins for origin in own if origin is not None]
    assert origin.edit == "3.2"
    assert [(change.variable, [edit.text for edit in change.edits]) for change in gone] == [
        (SECOND, ["Be brief."]),
        (FIRST, ["Look twice."]),
    ]
    assert with_edits(found, variables, every).texts == found.texts
    assert left_out(found, variables, every) == ()
    assert with_edits(found, variables, []).texts == found.base


def test_edits_that_did_harm_are_counted() -> None:
    """Of all texts together; nothing is said of none."""
    found, variables = two(), (FIRST, SECOND)
    assert trimmed_in_words(found) == ""
    gone = Found(3, "patch", *[((),)] * 4, trimmed=left_out(found, variables, []))  # type: ignore[arg-type]
    assert trimmed_in_words(gone) == "; without 3 of its edits, which did harm in it"
