"""A proposal on other texts than those it was made for."""

from __future__ import annotations

from textgrad_engine import Variable
from textgrad_engine.optim.cells import Origin
from textgrad_engine.optim.change import Change
from textgrad_engine.optim.patch import Edit, apply_patch
from textgrad_engine.optim.search.found import Found
from textgrad_engine.optim.search.moving import moved

BASE, NONE = "Sort.\nBe brief.", (None, None)


def proposal(*edits: Edit) -> tuple[Found, Variable]:
    variable = Variable(BASE, role="prompt", requires_grad=True)
    text, origins = apply_patch(BASE, NONE, edits, [], 3)
    change = Change(variable, BASE, text, edits, (), 0, "")
    return Found(3, "patch", (BASE,), (NONE,), (text,), (tuple(origins),), changes=(change,)), variable


def on(text: str, *edits: Edit) -> tuple[tuple[str, ...], tuple[tuple[Origin | None, ...], ...]]:
    after, origins = apply_patch(text, NONE, edits, [], 2)
    return (after,), (tuple(origins),)


def test_edits_go_to_where_their_lines_are_now() -> None:
    """Somebody has put a line before them; the edits keep the ids they have by the proposal's number."""
    found, variable = proposal(Edit("replace", 2, "Be very brief.", ""))
    there, disputed = moved(found, [variable], *on(BASE, Edit("add", 1, "By size.", "")))
    assert there.texts == ("Sort.\nBy size.\nBe very brief.",)
    assert (there.base, disputed) == (("Sort.\nBy size.\nBe brief.",), False)
    assert there.changes[0].before == there.base[0]
    assert [origin.edit for origin in there.origins[0] if origin is not None] == ["2.1", "3.1"]


def test_a_line_that_others_have_changed_is_disputed_and_has_the_proposals_way() -> None:
    """So that the two can be raced."""
    found, variable = proposal(Edit("replace", 2, "Be very brief.", ""))
    there, disputed = moved(found, [variable], *on(BASE, Edit("replace", 2, "Take your time.", "")))
    assert (there.texts, disputed) == (("Sort.\nBe very brief.",), True)


def test_what_others_have_done_too_is_nothing_any_more() -> None:
    """The texts are those of now, and no change is left."""
    found, variable = proposal(Edit("remove", 2, "", ""))
    there, disputed = moved(found, [variable], *on(BASE, Edit("remove", 2, "", "")))
    assert (there.texts, there.changes, disputed) == (("Sort.",), (), False)
