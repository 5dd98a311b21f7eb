"""Laws of patches: making, rebasing and taking back edits of lines, for any texts and edits."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from textgrad_engine.optim.between import edits_between
from textgrad_engine.optim.cells import Origin, cells_of, lines_of, text_of
from textgrad_engine.optim.patch import Edit, apply_patch, origins_of_rewrite
from textgrad_engine.optim.rebase import merge_patches, rebase
from textgrad_engine.optim.revert import edits_in, revert

LINE = st.sampled_from(["a", "b", "c", "", "- a", "a b."])
TEXT = st.lists(LINE, min_size=1, max_size=6).map("\n".join)
Held = tuple[str, list[Origin | None]]


@st.composite
def patch_of(draw: st.DrawFn, text: str) -> list[Edit]:
    """A patch that leaves a line of the text, or puts one in its place."""
    lines = len(lines_of(text))
    edits = []
    for number in draw(st.lists(st.integers(1, lines), unique=True, max_size=3)) if lines else ():
        op = draw(st.sampled_from(["replace", "remove"]))
        if op == "remove" and sum(edit.op == "remove" for edit in edits) == lines - 1:
            op = "replace"
        edits.append(Edit(op, number, "" if op == "remove" else draw(TEXT), "because"))
    adds = draw(st.lists(st.tuples(st.integers(0, lines), TEXT), max_size=2))
    return [*edits, *(Edit("add", number, written, "because") for number, written in adds)]


@st.composite
def grown(draw: st.DrawFn, seed: st.SearchStrategy[str] = TEXT, most: int = 4) -> list[Held]:
    """A text as it was at first, and after each of some steps, most of them patches and some rewrites."""
    text = draw(seed)
    held: list[Held] = [(text, [None] * (text.count("\n") + 1))]
    for step in range(1, draw(st.integers(0, most)) + 1):
        text, origins = held[-1]
        if draw(st.integers(0, 3)):
            held.append(apply_patch(text, origins, draw(patch_of(text)), [], step))
        else:
            after = draw(TEXT)
            held.append((after, origins_of_rewrite(text, origins, after, "", [], step)))
    return held


@given(grown())
def test_a_text_is_its_cells(held: list[Held]) -> None:
    """Law: nothing is lost between a text with its origins and its cells; there is one origin for each line."""
    for text, origins in held:
        assert text_of(cells_of(text, origins)) == (text, origins)
        assert len(origins) == len(text.split("\n"))


@given(grown(), st.randoms(use_true_random=False))
def test_taking_all_edits_back_gives_the_first_text(held: list[Held], order: object) -> None:
    """Law: in any order, and not a trace of them is left."""
    text, origins = held[-1]
    ids = sorted({cell.edit for cell in cells_of(text, origins)} | {cell.by for cell in cells_of(text, origins)} - {""})
    ids = [each for each in ids if each]
    order.shuffle(ids)  # type: ignore[attr-defined]
    for each in ids:
        if any(each in (cell.edit, cell.by) for cell in cells_of(text, origins)):
            text, origins = revert(text, origins, each)
    assert (text, origins) == held[0]


@given(grown(most=3), st.data())
def test_taking_the_last_step_back_gives_the_text_before_it(held: list[Held], data: st.DataObject) -> None:
    """Law: with all that the text knows of its past."""
    before = held[-1]
    text, origins = apply_patch(*before, data.draw(patch_of(before[0])), [], 9)
    for each in [each for each in edits_in(text, origins) if each.startswith("9.")]:
        text, origins = revert(text, origins, each)
    assert (text, origins) == before


@given(grown())
def test_the_edits_in_a_text_are_those_that_would_be_missed(held: list[Held]) -> None:
    """Law: each has lines in the text or keeps some out of it; the others have none and keep out none."""
    text, origins = held[-1]
    listed = edits_in(text, origins)
    cells = cells_of(text, origins)
    for each in {cell.edit for cell in cells} | {cell.by for cell in cells}:
        if each:
            undone = revert(text, origins, each)
            lines = [(cell.text, cell.edit) for cell in cells if not cell.by]
            left = [(cell.text, cell.edit) for cell in cells_of(*undone) if not cell.by]
            assert (each in listed) is (lines != left)


@given(TEXT, st.data())
def test_rebasing_onto_the_same_text_is_the_identity(text: str, data: st.DataObject) -> None:
    """Law: by text and by origins."""
    edits = data.draw(patch_of(text))
    origins: list[Origin | None] = [None] * (text.count("\n") + 1)
    assert rebase(edits, text, text).edits == tuple(edits)
    assert rebase(edits, text, text, origins, origins).edits == tuple(edits)


@given(grown(most=2), st.data())
def test_rebasing_disjoint_patches_commutes(held: list[Held], data: st.DataObject) -> None:
    """Law: whichever of two patches goes first, the lines are the same in the end."""
    text, origins = held[-1]
    one, two = ([replace(edit, id="") for edit in data.draw(patch_of(text))] for _ in range(2))
    touched = {edit.line for edit in one if edit.op != "add"}
    assume(not any(edit.line in touched for edit in two if edit.op != "add"))
    mine = apply_patch(text, origins, one, [], 8)
    yours = apply_patch(text, origins, two, [], 9)
    later_yours = rebase(two, text, mine[0], origins, mine[1])
    later_mine = rebase(one, text, yours[0], origins, yours[1])
    assert later_yours.conflicts == later_mine.conflicts == ()
    assume(not later_yours.duplicates and not later_mine.duplicates)
    first = apply_patch(*mine, later_yours.edits, [], 9)[0]
    second = apply_patch(*yours, later_mine.edits, [], 8)[0]
    assert Counter(first.split("\n")) == Counter(second.split("\n"))
    merged = merge_patches(text, one, two)
    assert not merged.conflicts
    third = apply_patch(text, origins, merged.edits, [], 8)[0]
    assert Counter(first.split("\n")) == Counter(third.split("\n"))


@given(grown(most=3), st.data())
def test_every_edit_is_made_refused_or_not_needed(held: list[Held], data: st.DataObject) -> None:
    """Law: a rebase loses nothing, and what it gives can be made; so can the other side of each conflict."""
    (text, origins), (new, new_origins) = held[0], held[-1]
    edits = data.draw(patch_of(text))
    for found in (rebase(edits, text, new, origins, new_origins), rebase(edits, text, new)):
        assert len(found.edits) + len(found.conflicts) + len(found.duplicates) == len(edits)
        apply_patch(new, new_origins, found.edits, [], 9)
        for conflict in found.conflicts:
            made = apply_patch(new, new_origins, conflict.instead, [], 9)[0]
            assert conflict.edit.op == "remove" or set(conflict.edit.text.split("\n")) <= set(made.split("\n"))


@given(TEXT, TEXT)
def test_the_patch_between_two_texts_makes_one_of_the_other(before: str, after: str) -> None:
    """Law: for any two texts."""
    edits, evidence = edits_between(before, after)
    assert apply_patch(before, [None] * (before.count("\n") + 1), edits, evidence, 1)[0] == after
