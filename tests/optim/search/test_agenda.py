"""What a patch search tries beside patches, and what the board notes of it."""

from __future__ import annotations

from typing import Any

from textgrad_engine.optim.cells import Evidence
from textgrad_engine.optim.patch import Edit, apply_patch
from textgrad_engine.optim.search.agenda import company, due
from textgrad_engine.optim.search.board import Accepted, Board, Refused

ENTRIES = tuple(Accepted(0, f"1.{n}", ()) for n in (1, 2))


def board(**known: Any) -> Board:
    """A text with two lines that were added to it."""
    edits = [Edit("add", 1, text, "", (), f"1.{n}") for n, text in enumerate(("Be brief.", "Be kind."), 1)]
    text, origins = apply_patch("Sort.", [None], edits, [], 1)
    return Board((text,), (tuple(origins),), accepted=list(ENTRIES), **known)


def test_each_edit_has_its_turn_again_when_its_trial_was_dropped() -> None:
    """The board notes whose turn it was, and what stood there."""
    known = board(kept=8, tested={"0/1.1": 0})
    assert [due(known, 8, stuck=True) for _ in range(3)] == [ENTRIES[:1], ENTRIES[1:], ()]
    assert known.tested == {"0/1.1": 8, "0/1.2": 8}
    known.put_back()
    assert known.tested == {"0/1.1": 0}
    assert [due(known, 8, stuck=True) for _ in range(3)] == [ENTRIES[:1], ENTRIES[1:], ()]
    for number in (3, 4):
        known.end(number)
    known.put_back()
    assert due(known, 8, stuck=True) == ()


def test_after_so_many_kept_patches_edits_are_tried_without() -> None:
    """Each once, and again after as many more; before that only where patches bring nothing any longer."""
    assert due(board(kept=7), 8, stuck=False) == ()
    known = board(kept=8)
    assert [due(known, 8, stuck=False) for _ in range(3)] == [ENTRIES[:1], ENTRIES[1:], ()]
    known.kept = 15
    assert due(known, 8, stuck=True) == ()
    known.kept = 16
    assert due(known, 8, stuck=False) == ENTRIES[:1]


def test_doubtful_edits_stay_doubtful_when_their_trial_was_dropped() -> None:
    """Those that are in the texts no longer are forgotten."""
    known = board(
        tested={"0/1.1": 0, "0/1.2": 0}, doubtful=[(Accepted(0, "9.9", ()),), (*ENTRIES, Accepted(0, "9.9", ()))]
    )
    for _ in range(2):
        assert due(known, 8, stuck=True) == ENTRIES
        assert due(known, 8, stuck=True) == ()
        known.put_back()
        assert known.doubtful == [ENTRIES]


class Alike:
    """An objective in which all examples are alike."""

    train = ("t0", "t1")

    def near(self, positions: Any, among: Any) -> list[int]:
        """As they stand."""
        return list(among)


def test_edits_in_company_are_due_again_when_their_trial_was_dropped() -> None:
    """Once it is settled, they are not."""
    refused = [Refused(0, Edit("add", 1, text, "", (1,)), (Evidence("Say so.", ("t0",)),)) for text in ("One.", "Two.")]
    known = board(refused=refused, val={0: 0.0})
    for _ in range(2):
        assert company(known, Alike()) == tuple(refused)  # type: ignore[arg-type]
        assert company(known, Alike()) == ()  # type: ignore[arg-type]
        known.put_back()
    assert company(known, Alike()) == tuple(refused)  # type: ignore[arg-type]
    known.end(known.begun)
    known.put_back()
    assert company(known, Alike()) == ()  # type: ignore[arg-type]


def test_edits_that_answer_no_example_are_in_no_company() -> None:
    """Nobody knows whether they are about the same; one that does answer an example stays alone, too."""
    refused = [Refused(0, Edit("add", 1, text, "", (1,)), (Evidence("Say so.", ()),)) for text in ("One.", "Two.")]
    refused.append(Refused(0, Edit("add", 1, "Three.", "", (1,)), (Evidence("Say so.", ("t0",)),)))
    known = board(refused=refused, val={0: 0.0})
    assert company(known, Alike()) == ()  # type: ignore[arg-type]
    assert (known.united, known.under_way) == ([], [])
