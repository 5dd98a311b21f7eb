"""What becomes of what lanes bring back; what a whole search makes of it is in `tests/optim/test_patch_search.py`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from textgrad_engine import Variable
from textgrad_engine.errors import AuthenticationFailed
from textgrad_engine.optim.change import Change
from textgrad_engine.optim.patch import Edit, apply_patch
from textgrad_engine.optim.proposers import Patch
from textgrad_engine.optim.search.board import Accepted, Begun, Board
from textgrad_engine.optim.search.drafts import Desk
from textgrad_engine.optim.search.found import Found
from textgrad_engine.optim.search.racing import RaceRecord
from textgrad_engine.optim.search.settling import MANY_TOGETHER, Settling, challenger
from textgrad_engine.optim.search.work import Workshop
from textgrad_engine.optim.search.written import Written

BASE, NONE = "Sort.\nBe brief.", (None, None)


class Quiet:
    """An objective that refuses what it is told to; nothing is run."""

    train = val = ("a", "b", "c")

    def __init__(self, refusal: str = "") -> None:
        self.says, self.adopted = refusal, list[Any]()

    def refusal(self, before: Any, after: Any, number: int = 0) -> str:
        return self.says

    def adopt(self, texts: Any, number: int | None = None) -> None:
        self.adopted.append((texts, number))

    def near(self, positions: Any, among: Any) -> list[int]:
        return list(among)


def race(outcome: Any, before: float = 0.0, after: float = 1.0) -> RaceRecord:
    return RaceRecord(outcome, ("a", "b"), (before,) * 2, (after,) * 2, 0.5, after - before)


def patch(*edits: Edit, number: int = 3, **more: Any) -> tuple[Found, Variable]:
    variable = Variable(BASE, role="prompt", requires_grad=True)
    text, origins = apply_patch(BASE, NONE, edits, [], number)
    change = Change(variable, BASE, text, edits, (), 0, "")
    found = Found(number, "patch", (BASE,), (NONE,), (text,), (tuple(origins),), changes=(change,), **more)
    return found, variable


def settling(board: Board, variable: Variable, objective: Quiet, *before: Variable) -> Settling:
    group = {"constraints": (), "max_tokens": 100}
    desk = Desk((*before, variable), (group,) * (len(before) + 1), None)
    shop = Workshop(desk, Patch(), momentum=5, feedback_batch_size=1, allowance=None)
    return Settling(board, shop, objective, {name: n for n, name in enumerate(objective.val)})  # type: ignore[arg-type]


def board(**known: Any) -> Board:
    return Board((BASE,), (NONE,), **{"val": {0: 0.0, 1: 0.0, 2: 1.0}, **known})


def test_a_guard_refuses_what_won_and_nothing_is_changed() -> None:
    """It is remembered for the proposer, with what it would have broken."""
    found, variable = patch(Edit("add", 2, "Be kind.", ""), race=race("better"))
    known, objective = board(), Quiet("it breaks c")
    decided = settling(known, variable, objective).settle(found)
    assert (decided.kept, decided.why) == (False, "refused: it breaks c")
    assert (known.texts, objective.adopted, known.quiet) == ((BASE,), [], 1)
    assert "it breaks c" in known.history[0].outcome


def test_what_won_is_adopted_and_what_was_given_up_is_tried_anew() -> None:
    """The board knows its edits, its scores, and that something was found."""
    found, variable = patch(Edit("add", 2, "Be kind.", ""), race=race("better"))
    known, objective = board(tries={0: 2}, quiet=4, vain=1), Quiet()
    assert settling(known, variable, objective).settle(found).kept
    assert objective.adopted == [(("Sort.\nBe brief.\nBe kind.",), 3)]
    assert (known.accepted, known.val) == ([Accepted(0, "3.1", ())], {0: 1.0, 1: 1.0, 2: 1.0})
    assert (known.kept, known.quiet, known.vain, known.tries) == (1, 0, 0, {})


@pytest.mark.parametrize("gone", [True, False])
def test_what_others_have_gained_meanwhile_is_not_gained_again(gone: bool) -> None:
    """The texts have changed since; the patch is put into them only where one of its examples still fails."""
    found, variable = patch(Edit("add", 2, "Be kind.", ""), race=race("better"))
    texts, origins = apply_patch(BASE, NONE, [Edit("replace", 1, "Sort it.", "")], [], 2)
    known = Board((texts,), (tuple(origins),), val={0: 1.0, 1: 1.0 if gone else 0.0})
    decided = settling(known, variable, Quiet()).settle(found)
    assert decided.kept is not gone
    assert known.texts == (("Sort it.\nBe brief." if gone else "Sort it.\nBe brief.\nBe kind."),)
    assert known.together == (not gone)


def test_a_guard_refuses_what_a_winner_comes_to_with_what_was_kept_meanwhile() -> None:
    """The texts have changed since it was raced, so what they come to together is what must break nothing."""
    found, variable = patch(Edit("add", 2, "Be kind.", ""), race=race("better"))
    texts, origins = apply_patch(BASE, NONE, [Edit("replace", 1, "Sort it.", "")], [], 2)
    known, objective = Board((texts,), (tuple(origins),), val={0: 1.0, 1: 0.0}), Quiet("it breaks c")
    decided = settling(known, variable, objective).settle(found)
    assert (decided.kept, decided.why) == (False, "refused: it breaks c")
    assert (known.texts, known.accepted, objective.adopted) == ((texts,), [], [])
    assert "it breaks c" in known.history[0].outcome


def test_what_another_patch_has_said_meanwhile_is_not_kept_twice() -> None:
    """Two lanes came to the same line; the second one changes nothing, though its examples still fail."""
    found, variable = patch(Edit("add", 2, "Be kind.", ""), race=race("better"))
    texts, origins = apply_patch(BASE, NONE, [Edit("add", 2, "Be kind.", "")], [], 2)
    known, objective = Board((texts,), (tuple(origins),), val={0: 0.0, 1: 0.0}), Quiet()
    decided = settling(known, variable, objective).settle(found)
    assert (decided.kept, decided.why) == (False, "another patch has said the same in the meantime")
    assert (known.texts, known.accepted, known.together, objective.adopted) == ((texts,), [], 0, [])


@pytest.mark.parametrize("outcome", ["better", "no difference"])
def test_what_becomes_of_a_patch_is_noted_for_the_text_that_it_is_for(outcome: str) -> None:
    """Of two prompts the second one was changed: its edit is tried without there, and shown to its proposer."""
    found, variable = patch(Edit("add", 2, "Be kind.", ""), race=race(outcome))
    other = Variable("Look.", role="first prompt", requires_grad=True)
    found = replace(
        found,
        base=("Look.", *found.base),
        base_origins=((None,), *found.base_origins),
        texts=("Look.", *found.texts),
        origins=((None,), *found.origins),
    )
    known = Board(("Look.", BASE), ((None,), NONE), val={0: 0.0, 1: 0.0})
    decided = settling(known, variable, Quiet(), other).settle(found)
    assert decided.kept == (outcome == "better")
    if decided.kept:
        assert [entry.parameter for entry in known.accepted] == [1]
    else:
        assert [entry.parameter for entry in known.refused] == [each.parameter for each in known.history] == [1]


def test_of_equals_the_shorter_text_is_taken() -> None:
    """It brings nothing but that: what was given up stays so, and the search comes no further from its end."""
    found, variable = patch(Edit("remove", 2, "", ""), race=race("no difference", 0.0, 0.0))
    known, objective = board(tries={0: 2}, quiet=4, vain=1, begun=3, under_way=[Begun(3)]), Quiet()
    decided = settling(known, variable, objective).settle(found)
    assert (decided.kept, decided.why) == (True, "no difference, and shorter")
    assert objective.adopted == [(("Sort.",), 3)]
    assert (known.kept, known.quiet, known.vain, known.tries, known.under_way) == (1, 5, 1, {0: 2}, [])


def test_of_equals_the_shorter_text_may_not_break_what_is_guarded() -> None:
    """As any other."""
    found, variable = patch(Edit("remove", 2, "", ""), race=race("no difference", 0.0, 0.0))
    known, objective = board(), Quiet("it breaks c")
    decided = settling(known, variable, objective).settle(found)
    assert (decided.kept, decided.why, objective.adopted) == (False, "refused: it breaks c", [])


@pytest.mark.parametrize("edit", [Edit("add", 2, "Be kind.", ""), Edit("replace", 2, "Be very brief.", "")])
def test_of_equals_the_longer_text_is_not_taken(edit: Edit) -> None:
    """It has to be better."""
    found, variable = patch(edit, race=race("no difference"))
    decided = settling(board(), variable, Quiet()).settle(found)
    assert (decided.kept, decided.why) == (False, "no difference shown")


def test_of_equals_the_shorter_text_is_raced_again_where_the_texts_have_changed() -> None:
    """Two lines that stand in for each other must not both go."""
    found, variable = patch(Edit("remove", 2, "", ""), race=race("no difference", 0.0, 0.0))
    texts, origins = apply_patch(BASE, NONE, [Edit("replace", 1, "Sort it.", "")], [], 2)
    known, objective = board(), Quiet()
    known.texts, known.origins = (texts,), (tuple(origins),)
    decided = settling(known, variable, objective).settle(found)
    assert (decided.kept, objective.adopted) == (False, [])
    assert decided.why == "no difference, and shorter; to be raced again, as the texts have changed"
    assert [rival.number for rival in known.rivals] == [3]


def test_what_could_not_be_settled_is_due_again() -> None:
    """The guard's examples could not be run: the proposal is under way as long as nobody drops it."""

    class Down(Quiet):
        def refusal(self, before: Any, after: Any, number: int = 0) -> str:
            raise AuthenticationFailed("no such key")

    found, variable = patch(Edit("add", 2, "Be kind.", ""), race=race("better"), examples=(1,), scores=(0.0,))
    known = board(begun=3, under_way=[Begun(3, (1,))])
    with pytest.raises(AuthenticationFailed):
        settling(known, variable, Down()).settle(found)
    assert known.busy == {1}


def test_edits_one_of_which_is_needed_are_tried_by_halves() -> None:
    """They were tried without together, and that was worse."""
    about = tuple(Accepted(0, f"2.{n}", ()) for n in (1, 2, 3, 4, 5))
    found, variable = patch(Edit("remove", 2, "", ""), race=race("worse"), about=about)
    known = board()
    assert not settling(known, variable, Quiet()).settle(replace(found, kind="ablation")).kept
    assert known.doubtful == [about[:2], about[2:]]


def without(outcome: Any, kind: Any, *edits: Edit) -> tuple[Found, Variable]:
    found, variable = patch(*edits, race=race(outcome, 0.0, 0.0), about=(Accepted(0, "2.1", ()),))
    return replace(found, kind=kind), variable


@pytest.mark.parametrize("kind", ["ablation", "tidying"])
def test_a_guard_refuses_that_lines_go(kind: str) -> None:
    """They stay, and so does what the board knows of them."""
    found, variable = without("no difference", kind, Edit("remove", 2, "", ""))
    known, objective = board(accepted=list(found.about)), Quiet("it breaks c")
    decided = settling(known, variable, objective).settle(found)
    assert (decided.kept, decided.why) == (False, "refused: it breaks c")
    assert (known.texts, known.accepted, known.history, objective.adopted) == ((BASE,), list(found.about), [], [])


def test_a_tidied_text_that_is_no_shorter_has_to_be_better() -> None:
    """Of equals the shorter one stays; of two of one length the new one is taken."""
    found, variable = without("no difference", "tidying", Edit("replace", 2, "Be brief, always.", ""))
    decided = settling(board(), variable, Quiet()).settle(found)
    assert (decided.kept, decided.why) == (False, "no difference shown, and it is longer")
    found, variable = without("better", "tidying", Edit("replace", 2, "Be brief, always.", ""))
    assert settling(board(), variable, Quiet()).settle(found).kept
    found, variable = without("no difference", "tidying", Edit("replace", 2, "Be short.", ""))
    assert settling(board(), variable, Quiet()).settle(found).kept


@pytest.mark.parametrize("kind", ["ablation", "tidying"])
def test_what_leaves_lines_out_is_due_again_where_the_texts_have_changed(kind: str) -> None:
    """What is gone since may have stood in for these; single edits are then tried without together."""
    found, variable = without("no difference", kind, Edit("remove", 2, "", ""))
    texts, origins = apply_patch(BASE, NONE, [Edit("replace", 1, "Sort it.", "")], [], 2)
    waiting = (Accepted(0, "1.1", ()),)
    known, objective = Board((texts,), (tuple(origins),), doubtful=[waiting]), Quiet()
    decided = settling(known, variable, objective).settle(found)
    assert (decided.kept, objective.adopted) == (False, [])
    assert decided.why == "no difference without; to be tried again, as the texts have changed"
    if kind == "tidying":
        assert (known.together, known.doubtful) == (MANY_TOGETHER, [waiting])
    else:
        assert (known.together, known.doubtful) == (0, [(*waiting, *found.about)])


def test_a_rival_is_a_proposal_of_its_own_whose_edits_keep_their_ids() -> None:
    """So that a line still knows who asked for it."""
    texts, origins = apply_patch(BASE, NONE, [Edit("replace", 2, "Be short.", "")], [], 2)
    known = Board((texts,), (tuple(origins),), val={0: 0.0, 1: 0.0})
    disputed, variable = patch(Edit("replace", 2, "Be very brief.", ""), race=race("better"))
    decided = settling(known, variable, Quiet()).settle(disputed)
    assert (decided.kept, len(known.rivals)) == (False, 1)
    (rival,) = known.rivals
    assert rival.written == (Written.of(disputed.changes[0], 0),)
    again = challenger(rival, 9, [variable])
    assert (again.number, again.kind, again.base) == (9, "rival", (BASE,))
    assert [edit.id for edit in again.changes[0].edits] == ["3.1"]
