"""What lanes do: proposals as edits, and the examples that stand behind them. See `test_patch_search` for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textgrad_engine import nn
from textgrad_engine.autograd import Variable
from textgrad_engine.optim.change import Change
from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.optim.patch import Edit, apply_patch, origins_of_rewrite
from textgrad_engine.optim.proposers import Brief, Patch, Proposal
from textgrad_engine.optim.revert import edits_in, revert
from textgrad_engine.optim.search.board import Accepted, Board, Refused
from textgrad_engine.optim.search.drafts import Desk
from textgrad_engine.optim.search.found import Found
from textgrad_engine.optim.search.objective import Texts
from textgrad_engine.optim.search.race import ACCEPT, AT_THE_END, MANY
from textgrad_engine.optim.search.work import Workshop, in_edits, is_shorter, support_of
from textgrad_engine.optim.search.written import Written
from textgrad_engine.testing import ScriptedModel
from textgrad_engine.train import Objective

ITEMS = (FeedbackItem("Be brief.", 1, "", ("t1",)), FeedbackItem("Be kind.", 2, "", ("t0", "t9")))
LINES = st.lists(st.sampled_from(["a", "b", "c", "- d", ""]), min_size=1, max_size=7).map("\n".join)


def brief(text: str, origins: Any = None, step: int = 5) -> Brief:
    return Brief("prompt", text, tuple(origins or [None] * len(text.split("\n"))), ITEMS, step=step)


def rewritten(asked: Brief, text: str) -> Proposal:
    evidence = [item.evidence for item in asked.items]
    return Proposal(text, tuple(origins_of_rewrite(asked.text, asked.origins, text, "anew", evidence, asked.step)))


def test_what_is_made_of_edits_stays_as_it_is() -> None:
    """So does what changes nothing, and what was dropped."""
    made = Proposal("a\nb", (None, None), (Edit("add", 1, "b", "why", (1,), "5.1"),))
    assert in_edits(made, brief("a")) is made
    nothing = Proposal("a", (None,))
    assert in_edits(nothing, brief("a")) is nothing
    dropped = Proposal("a", (None,), problem="too long")
    assert in_edits(dropped, brief("a")) is dropped


def test_a_rewrite_is_taken_by_its_lines() -> None:
    """Each with an id of its own, the reason of the whole, and all feedback: nobody knows which line answers which."""
    made = in_edits(rewritten(brief("a\nb\nc\nd"), "a\nB\nc\ne\nf"), brief("a\nb\nc\nd"))
    assert made.text == "a\nB\nc\ne\nf"
    assert [(each.op, each.line, each.text, each.id) for each in made.edits] == [
        ("replace", 2, "B", "5.1"), ("replace", 4, "e\nf", "5.2"),
    ]  # fmt: skip
    assert {(each.reason, each.feedback) for each in made.edits} == {("anew", (1, 2))}
    assert edits_in(made.text, made.origins) == ("5.1", "5.2")
    assert revert(made.text, made.origins, "5.1")[0] == "a\nb\nc\ne\nf"


def test_removed_lines_have_a_reason_too() -> None:
    """Nothing stands where they stood, so nothing there could say it."""
    made = in_edits(rewritten(brief("a\nb\nc\nd"), "a\nc\nD"), brief("a\nb\nc\nd"))
    assert [(each.op, each.line, each.reason, each.feedback) for each in made.edits] == [
        ("remove", 2, "anew", (1, 2)), ("replace", 4, "anew", (1, 2)),
    ]  # fmt: skip


@settings(max_examples=80)
@given(LINES, LINES, LINES)
def test_the_edits_of_a_rewrite_make_the_same_text(first: str, second: str, third: str) -> None:
    """Also on a text that has a history; no two edits share an id, and taking all of them back gives the old text."""
    one = brief(first, step=1)
    began = in_edits(rewritten(one, second), one)
    two = brief(began.text, began.origins, step=2)
    made = in_edits(rewritten(two, third), two)
    assert made.text == third
    assert len({each.id for each in made.edits}) == len(made.edits)
    evidence = [item.evidence for item in ITEMS]
    assert apply_patch(began.text, began.origins, made.edits, evidence, 2) == (third, list(made.origins))
    text, origins = made.text, list(made.origins)
    for each in made.edits:
        if each.id in edits_in(text, origins):
            text, origins = revert(text, origins, each.id)
    assert text == began.text


def test_the_examples_that_stand_behind_an_edit() -> None:
    """By position in the training set, each once, in the order of the feedback; what is no training example is not."""
    program = nn.ChatCompletion("{word}", system=nn.Parameter("a", role="prompt"), model=ScriptedModel([]))
    rows = [{"id": f"t{n}", "word": "x", "target": "x"} for n in range(4)]
    objective = Objective(program, nn.ExactMatch(), rows)
    change = Change(Variable("a"), "a", "b", (), (*ITEMS, FeedbackItem("More.", 1, "", ("t1", "t3"))), 0, "")
    assert support_of(objective, change, Edit("add", 1, "x", "", (3, 2, 1))) == (1, 3, 0)
    assert support_of(objective, change, Edit("add", 1, "x", "", ())) == ()


def test_what_was_written_can_be_kept_without_its_parameter() -> None:
    """As plain data, and back."""
    variable = Variable("a")
    change = Change(variable, "a", "b", (Edit("replace", 1, "b", "why", (1,), "1.1"),), ITEMS, 3, "")
    assert Written.of(change, 4).parameter == 4
    assert Written.of(change, 4).change(variable) == change


# the end of a race


class Known:
    """An objective in which any other text does some examples better, and some worse, than the one of now.

    Args:
        size: how many validation examples there are, every sixth of which is failed.
        gained: so many of the failures are repaired.
        lost: so many of those that are right are broken.
    """

    tokens_weight = latency_weight = 0.0
    scale = (0.0, 1.0)
    clusters: tuple[str, ...] = ()

    def __init__(self, size: int, gained: int, lost: int) -> None:
        self.val = tuple(f"v{n}" for n in range(size))
        failing, right = ([n for n in range(size) if (n % 6 == 0) is which] for which in (True, False))
        self.before = {n: float(n % 6 > 0) for n in range(size)}
        self.after = self.before | dict.fromkeys(failing[:gained], 1.0) | dict.fromkeys(right[len(right) - lost :], 0.0)
        self.ran: set[int] = set()

    def matrix(self, candidates: Sequence[Texts], positions: Sequence[int]) -> list[list[float]]:
        """The scores at these positions, first of the texts of now."""
        self.ran.update(positions)
        return [[(self.after if at else self.before)[n] for n in positions] for at in range(len(candidates))]


def workshop(text: str) -> Workshop:
    desk = Desk((Variable(text, role="prompt"),), ({"constraints": (), "max_tokens": 99},), None)
    return Workshop(desk, Patch(), momentum=3, feedback_batch_size=4, allowance=96)


def settled(objective: Known, text: str, pool: int) -> Found:
    """Race a text against "a, b", with so many examples in use."""
    shop = workshop("a\nb")
    board = Board(("a\nb",), ((None, None),), val={n: objective.before[n] for n in range(pool)}, limits=(0.0, 1.0))
    found = Found(1, "rival", board.texts, board.origins, (text,), ((None,) * len(text.split("\n")),))
    return shop.rival(objective, board, found, (), "0")  # type: ignore[arg-type]


@pytest.mark.parametrize("pool", [48, 96])
def test_at_the_end_more_is_asked_of_a_text_that_is_longer(pool: int) -> None:
    """All was run, and one more example was repaired than broken: a line goes for another one, and none is added."""
    outcomes = {}
    for text in ("a\nc", "a", "a\nb\nc"):
        objective = Known(96, gained=2, lost=1)
        race = settled(objective, text, pool).race
        assert race is not None
        assert len(objective.ran) == 96
        assert AT_THE_END < race.probability < ACCEPT
        outcomes[text] = race.outcome
    assert outcomes == {"a\nc": "better", "a": "better", "a\nb\nc": "no difference"}


@pytest.mark.parametrize(
    ("gained", "lost", "outcome"), [(0, 0, "no difference"), (1, 1, "no difference"), (0, 1, "worse")]
)
@pytest.mark.parametrize("pool", [48, 96])
def test_what_is_shorter_and_not_better_is_run_on_all_that_may_be(
    pool: int, gained: int, lost: int, outcome: str
) -> None:
    """A race for what is better ends where nothing gets better; whether lines are missed shows elsewhere."""
    objective = Known(96, gained, lost)
    race = settled(objective, "a", pool).race
    assert race is not None
    assert race.outcome == outcome
    assert outcome == "worse" or objective.ran == set(range(96))
    longer = settled(Known(96, gained, lost), "a\nb\nc", pool).race
    assert longer is not None
    assert len(longer.examples) < 96


@pytest.mark.parametrize(
    ("before", "after", "shorter"),
    [
        (("a b", "c"), ("a", "c"), True),
        (("a\nb",), ("a b",), False),
        (("a\nbcd",), ("a\nb",), True),
        (("abcdef",), ("a\nb",), False),
        (("a", "bcd"), ("ab", "b"), True),
        (("a",), ("a",), False),
    ],
)
def test_what_is_shorter_has_no_more_lines_and_fewer_characters(before: Texts, after: Texts, shorter: bool) -> None:
    """Of all texts together."""
    assert is_shorter(before, after) is shorter


class Strange(Known):
    """Words in common say nothing: the examples that a line is about are those that come last by them."""

    train = ("t0",)

    def near(self, positions: Sequence[int], among: Sequence[int]) -> list[int]:
        """As they stand."""
        return list(among)


@pytest.mark.parametrize(("gained", "lost", "kept"), [(0, 1, True), (8, 12, True), (0, 0, False), (8, 0, False)])
def test_a_line_goes_only_when_all_that_may_be_run_was_run(gained: int, lost: int, kept: bool) -> None:
    """It may be of use for one example in a hundred, and failures that come out right by chance hide that."""
    objective = Strange(96, gained, lost)
    shop = workshop("a\nb")
    text, origins = apply_patch("a", [None], [Edit("add", 1, "b", "why", (1,), "1.1")], [ITEMS[0].evidence], 1)
    entry = Accepted(0, "1.1", (0,))
    board = Board((text,), (tuple(origins),), val=dict(objective.before), limits=(0.0, 1.0), accepted=[entry])
    race = shop.ablation(objective, board, 2, (entry,), "0").race  # type: ignore[arg-type]
    assert race is not None
    assert (race.outcome == "worse") is kept
    assert kept or len(objective.ran) == 96


def test_an_edit_that_goes_with_another_one_is_taken_back_once() -> None:
    """It took out a line of that one, so nothing of it is left to be taken back."""
    objective, shop = Strange(96, 0, 0), workshop("a")
    text, origins = apply_patch("a", [None], [Edit("add", 1, "b\nc", "why", (1,), "1.1")], [ITEMS[0].evidence], 1)
    text, origins = apply_patch(text, origins, [Edit("remove", 2, "", "why", (1,), "2.1")], [ITEMS[0].evidence], 2)
    about = (Accepted(0, "1.1", (0,)), Accepted(0, "2.1", (0,)))
    board = Board((text,), (tuple(origins),), val=dict(objective.before), limits=(0.0, 1.0), accepted=list(about))
    assert text == "a\nc"
    for entries in (about, about[::-1]):
        assert shop.ablation(objective, board, 3, entries, "0").texts == ("a",)  # type: ignore[arg-type]


def test_edits_that_were_refused_one_by_one_are_not_kept_for_a_good_beginning() -> None:
    """All failures come first and are repaired: a patch would have won by then, edits in company are run further."""
    objective = Strange(96, gained=16, lost=0)
    shop = workshop("a")
    board = Board(("a",), ((None,),), val=dict(objective.before), limits=(0.0, 1.0))
    refused = tuple(Refused(0, Edit("add", 1, text, "why", (1,)), (ITEMS[0].evidence,)) for text in "bc")
    found = shop.union(objective, board, 2, refused, "0")  # type: ignore[arg-type]
    assert found.texts == ("a\nb\nc",)
    assert found.race is not None
    assert found.race.outcome == "better"
    assert len(found.race.examples) >= MANY


def test_edits_in_company_are_told_of_the_text_that_they_are_for() -> None:
    """Of two prompts the other one is not said to be changed."""
    objective = Strange(96, gained=16, lost=0)
    variables = Variable("x", role="first prompt"), Variable("a", role="prompt")
    shop = Workshop(Desk(variables, ({"constraints": (), "max_tokens": 99},) * 2, None), Patch(), 3, 4, 96)
    board = Board(("x", "a"), ((None,), (None,)), val=dict(objective.before), limits=(0.0, 1.0))
    refused = tuple(Refused(1, Edit("add", 1, text, "why", (1,)), (ITEMS[0].evidence,)) for text in "bc")
    found = shop.union(objective, board, 2, refused, "0")  # type: ignore[arg-type]
    assert found.texts == ("x", "a\nb\nc")
    (change,) = found.changes
    assert change.variable is variables[1]
    assert [(edit.text, edit.feedback) for edit in change.edits] == [("b", (1,)), ("c", (2,))]


def test_few_examples_are_not_settled_by_the_balance() -> None:
    """Of these a balance of two would be enough, so a race of them stays undecided."""
    race = settled(Known(MANY - 1, gained=4, lost=2), "a\nc", MANY - 1).race
    assert race is not None
    assert race.outcome == "no difference"
    assert race.probability > AT_THE_END
