from __future__ import annotations

import pytest

from textgrad_engine.optim.cells import Cell, Evidence, Origin
from textgrad_engine.optim.patch import Edit, apply_patch, origins_of_rewrite
from textgrad_engine.optim.revert import edits_in, revert

SEED = "Sort the mail.\nBe brief.\nBe polite."


def step(held: tuple[str, list[Origin | None]], number: int, *edits: Edit) -> tuple[str, list[Origin | None]]:
    return apply_patch(*held, edits, [Evidence("asked", ("t1",))], number)


def first(*edits: Edit) -> tuple[str, list[Origin | None]]:
    return step((SEED, [None] * 3), 1, *edits)


def test_an_edit_that_is_not_there_is_named() -> None:
    """With those that are, so that a slip in an id is seen."""
    held = first(Edit("add", 1, "x", ""), Edit("remove", 2, "", ""))
    with pytest.raises(ValueError, match=r"no edit '1.3'; it has 1.1, 1.2"):
        revert(*held, "1.3")
    with pytest.raises(ValueError, match="no edit ''; it has none"):
        revert("a", [None], "")


def test_origins_of_another_text_are_refused() -> None:
    """One origin too few would put every line after it down to somebody else."""
    with pytest.raises(ValueError, match="a text of 3 lines has 3 origins, got 2"):
        revert(SEED, [None, None], "1.1")


def test_one_edit_of_a_patch_is_taken_back_alone() -> None:
    """The others stay, wherever they stand."""
    held = first(Edit("add", 0, "x\ny", ""), Edit("replace", 2, "Be short.\nBe clear.", ""), Edit("remove", 3, "", ""))
    assert held[0] == "x\ny\nSort the mail.\nBe short.\nBe clear."
    assert revert(*held, "1.1")[0] == "Sort the mail.\nBe short.\nBe clear."
    assert revert(*held, "1.2")[0] == "x\ny\nSort the mail.\nBe brief."
    assert revert(*held, "1.3")[0] == "x\ny\nSort the mail.\nBe short.\nBe clear.\nBe polite."
    assert edits_in(*held) == ("1.1", "1.2", "1.3")


def test_an_edit_is_taken_back_after_others_came() -> None:
    """A later edit of its line stays: what it replaced is then what this edit had replaced."""
    held = first(Edit("replace", 2, "Be short.", ""), Edit("add", 3, "Name the queue.", ""))
    held = step(held, 2, Edit("replace", 2, "One word.", ""), Edit("add", 2, "No more.", ""), Edit("remove", 1, "", ""))
    assert held[0] == "One word.\nNo more.\nBe polite.\nName the queue."
    assert edits_in(*held) == ("1.2", "2.1", "2.2", "2.3")
    without = revert(*held, "1.1")
    assert without[0] == held[0]
    assert revert(*without, "2.1")[0] == "Be brief.\nNo more.\nBe polite.\nName the queue."
    assert revert(*held, "2.1")[0] == "Be short.\nNo more.\nBe polite.\nName the queue."
    assert revert(*held, "2.3")[0] == "Sort the mail.\n" + held[0]


def test_which_edits_can_be_seen_is_told_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is gone from a text grows with each patch that is kept, and a search asks before each proposal."""
    reads = []

    def edit(cell: Cell) -> str:
        reads.append(cell)
        return "" if cell.origin is None else cell.origin.edit

    monkeypatch.setattr(Cell, "edit", property(edit))
    counts = []
    for steps in (10, 100):
        held = first()
        for number in range(1, steps + 1):
            held = step(held, number, Edit("replace", 2, f"Be short, {number}.", ""), Edit("add", 3, f"x{number}", ""))
            held = step(held, number, Edit("remove", 4, "", "", id=f"{number}.r"))
        reads.clear()
        found = edits_in(*held)
        counts.append(len(reads) / steps)
        every = [f"{number}.{edit}" for number in range(1, steps + 1) for edit in ("1", "2", "r")]
        for name in every[:6] + every[-6:]:
            assert (name in found) == (revert(*held, name)[0] != held[0])
    assert counts[1] <= counts[0] <= 5


def test_a_rewrite_is_taken_back_run_by_run() -> None:
    """Each run of lines that it changed is an edit, so that the good part of a rewrite can stay."""
    after = "Sort the post.\nBe brief.\nBe kind.\nThank them."
    held = after, origins_of_rewrite(SEED, [None] * 3, after, "warmer", [], 4)
    assert edits_in(*held) == ("4.1", "4.2")
    assert revert(*held, "4.1")[0] == "Sort the mail.\nBe brief.\nBe kind.\nThank them."
    assert revert(*held, "4.2")[0] == "Sort the post.\nBe brief.\nBe polite."


def test_ids_are_ordered_by_number() -> None:
    """The tenth edit of a step comes after its second, and step ten after step two."""
    held = first(*[Edit("add", 3, str(number), "") for number in range(11)])
    held = step(held, 10, Edit("remove", 1, "", ""))
    assert edits_in(*held) == (*[f"1.{number}" for number in range(1, 12)], "10.1")


def test_a_text_may_lose_all_its_lines_and_get_them_back() -> None:
    """It then is the empty text, which is one empty line."""
    held = apply_patch("a", [None], [Edit("remove", 1, "", "")], [], 1)
    assert (held[0], len(held[1])) == ("", 1)
    assert revert(*held, "1.1") == ("a", [None])
    assert apply_patch("", [None], [Edit("remove", 1, "", ""), Edit("add", 1, "b", "")], [], 1)[0] == "b"
