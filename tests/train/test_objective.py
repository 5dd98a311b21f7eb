"""`Objective`: scores and feedback for any texts, and what is paid for them."""

from __future__ import annotations

import re
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, ops
from textgrad_engine.errors import ContentFiltered, DataError
from textgrad_engine.llm import Request
from textgrad_engine.optim.search.objective import Objective as Wanted
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train import Objective, evaluate

from .shouting import EVERY, LOUD, SEED, WORDS, Chain, Shouting, chained, losing, rows

# what is refused


def test_an_empty_set_is_refused() -> None:
    """Nothing could be drawn, or decided."""
    program = Shouting().program
    with pytest.raises(DataError, match="the train set is empty"):
        Objective(program, nn.ExactMatch(), [])
    with pytest.raises(DataError, match="the val set is empty"):
        Objective(program, nn.ExactMatch(), rows(), [])


@pytest.mark.parametrize("flaw", [{"target": "X"}, {"word": "cat"}])
def test_a_bad_example_is_found_before_anything_is_paid(flaw: dict[str, Any]) -> None:
    """Also the last one of the validation set."""
    here = Shouting()
    with pytest.raises(DataError, match="has no field"):
        Objective(here.program, nn.ExactMatch(), rows(), [*rows(), flaw])
    assert here.asked == 0


def test_a_loss_that_gives_words_is_refused() -> None:
    """A search needs numbers; whoever waits for the same score learns it too."""
    program = Shouting().program
    objective = Objective(program, lambda prediction, target: prediction, rows())
    for _ in range(2):
        with pytest.raises(TypeError, match="a score must be a number"):
            objective.scores(SEED, [0, 1])


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ("Shout.", "got 'Shout.'; write ('...',)"),
        (["Shout."], "got the list ['Shout.']; write ('...',)"),
        ((), "has a text for each of system; got 0 texts"),
        ((nn.Parameter("Shout."),), "got a value of type Parameter among them; write ('...',)"),
        ((3,), "got 3 among them; write ('...',)"),
    ],
)
def test_what_is_no_candidate_is_refused_with_the_form_of_one(texts: Any, told: str) -> None:
    """Who writes a search of one's own has one prompt, and forgets that there could be several."""
    here = Shouting()
    for ask in (here.objective.scores, here.objective.feedback, here.objective.runs):
        with pytest.raises((TypeError, ValueError), match=rf"^a candidate .*{re.escape(told)}$"):
            ask(texts, [0])
    for ask_all in (
        here.objective.evaluation,
        here.objective.missing,
        lambda given: here.objective.refusal(given, SEED),
    ):
        with pytest.raises((TypeError, ValueError), match=rf"^a candidate .*{re.escape(told)}$"):
            ask_all(texts)
    assert here.asked == 0


@pytest.mark.parametrize("position", [-1, len(WORDS), "ant", 1.0])
@pytest.mark.parametrize("split", ["train", "val"])
def test_a_position_that_there_is_not_is_named(position: Any, split: Any) -> None:
    """One below zero would be paid for twice, and a run of few examples would end with Python's words."""
    here = Shouting()
    words = rf"^position {position!r} of the {split} examples: there are {len(WORDS)}, from 0 to {len(WORDS) - 1}"
    with pytest.raises(IndexError, match=words):
        here.objective.scores(SEED, [0, position], split)
    if split == "train":
        for ask in (here.objective.feedback, here.objective.runs):
            with pytest.raises(IndexError, match=words):
                ask(SEED, [0, position])
        with pytest.raises(IndexError, match=words):
            here.objective.demos([position])
    assert here.asked == 0


def test_a_split_that_there_is_not_is_refused() -> None:
    """The test set is sealed, whatever it is called."""
    with pytest.raises(
        ValueError, match=r"^there are train and val examples to score, got 'test'; the test set is only"
    ):
        Shouting().objective.scores(SEED, [0], "test")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"got \[0\]; write scores\(texts, positions, split\); the test set"):
        Shouting().objective.scores(SEED, "train", [0])  # type: ignore[arg-type]


# what is scored


def test_it_is_an_objective() -> None:
    """The protocol that searches ask for."""
    assert isinstance(Shouting().objective, Wanted)


def test_an_evaluation_is_that_of_evaluate() -> None:
    """Scores, predictions, ids and failures; progress is told for what is run."""
    here = Shouting(losing("cat"))
    told: list[int] = []
    here.objective.scores(SEED, [0, 1])
    found = here.objective.evaluation(SEED, told.append)
    plain = evaluate(here.program, rows(), nn.ExactMatch())
    assert (found.ids, found.scores, found.predictions) == (plain.ids, plain.scores, plain.predictions)
    assert found.failures == plain.failures == {"cat": "ContentFiltered: no answer to cat"}
    assert sorted(told) == list(range(6))


# proposals


def test_a_proposal_is_made_in_its_phase() -> None:
    """The journal knows which calls a proposal made; the block is over when it was begun."""
    entered: list[Any] = []

    class Phase:
        def __init__(self, number: int) -> None:
            self.number = number

        def __enter__(self) -> None:
            entered.append(self.number)

        def __exit__(self, *_: object) -> None:
            entered.append(-self.number)

    here = Shouting(phases=Phase)
    with here.objective.proposal(7):
        assert entered == [7]
    assert entered == [7, -7]


# lost answers


def test_lost_answers_are_none_and_not_zero() -> None:
    """And are remembered as lost: asking again in the same run would give the same."""
    here = Shouting(losing("bee", "cat", "dog"))
    assert here.objective.scores(LOUD, EVERY) == [1.0, None, None, None, *[1.0] * 4]
    assert here.asked == 8
    assert here.objective.scores(LOUD, range(6)) == [1.0, None, None, None, 1.0, 1.0]
    assert here.asked == 0


def test_when_most_are_lost_nothing_can_be_said() -> None:
    """The first error is raised, with the count; what was answered stays known."""
    here = Shouting(losing("ant", "bee", "cat", "dog", "eel"))
    with pytest.raises(ContentFiltered, match="no answer to ant") as caught:
        here.objective.scores(LOUD, EVERY)
    assert any("5 of 8 examples went unanswered" in note for note in caught.value.__notes__)
    assert here.asked == 8
    assert (here.objective.scores(LOUD, [5, 6, 7, 0]), here.asked) == ([1.0, 1.0, 1.0, None], 0)


def test_only_the_last_count_of_lost_answers_is_told() -> None:
    """A failure that is known is raised again among other examples; who reads it is told of those that ended it."""
    here = Shouting(losing("ant", "bee", "cat", "dog", "eel"))
    for positions in (EVERY, range(3)):
        with pytest.raises(ContentFiltered) as caught:
            here.objective.scores(LOUD, positions)
    told = [note for note in caught.value.__notes__ if "went unanswered" in note]
    assert told == ["3 of 3 examples went unanswered; this is the first error"]


def test_a_single_lost_answer_among_known_ones_is_passed_over() -> None:
    """What counts is what was asked about, not only what had to be bought."""
    here = Shouting(losing("hen"))
    here.objective.scores(LOUD, range(7))
    assert here.objective.evaluation(LOUD).scores == (*[1.0] * 7, None)


def test_one_candidate_that_breaks_the_program_does_not_stop_the_others() -> None:
    """Its row is empty; the others' is not."""
    here = Shouting(losing(*WORDS, text="BROKEN"))
    assert here.objective.matrix([SEED, ("BROKEN",)], EVERY) == [[0.0] * 8, [None] * 8]


# feedback


def test_feedback_is_told_apart_by_parameter() -> None:
    """Each gets what was said about it, an item for each failed example, with its source."""
    program = Chain(FunctionModel(chained))
    objective = Objective(program, nn.ExactMatch(), rows("ant", "bee"))
    with tg.use_models(backward=FunctionModel(chained)):
        found = objective.feedback(("Draft.", "Check."), [1, 0])
    assert (objective.names, found.scores, found.problems) == (("draft.system", "check.system"), (0.0, 0.0), ())
    assert [len(gradient) for gradient in found.gradients] == [2, 2]
    for gradient in found.gradients:
        assert [item.source.example for item in gradient if item.source] == ["bee", "ant"]
    assert all(parameter.grad == [] for parameter in program.parameters())


def test_examples_that_are_right_send_nothing() -> None:
    """Nor is a critic asked about them."""
    here = Shouting()
    found = here.feedback(LOUD, EVERY)
    assert (found.gradients, found.scores, here.asked) == (((),), (1.0,) * 8, 8)


def test_lost_feedback_is_told_and_the_rest_is_used() -> None:
    """A lost answer of the program is no score; one of the critic is a problem in words."""

    def before(request: Request) -> None:
        losing("bee")(request)
        if request.purpose == "backward" and ">cat<" in request.messages[-1].text.replace("\n", ""):
            raise ContentFiltered("not about cats")

    here = Shouting(before)
    found = here.feedback(SEED, [0, 1, 2, 3])
    assert found.scores == (0.0, None, 0.0, 0.0)
    assert [item.source.example for item in found.gradients[0] if item.source] == ["ant", "dog"]
    assert len(found.problems) == 1
    assert "ContentFiltered: not about cats" in found.problems[0]


def test_feedback_calls_are_shared_as_it_is_set() -> None:
    """The setting around the call counts."""
    here = Shouting()
    with ops.feedback_batch_size(4):
        here.feedback(SEED, EVERY)
    assert here.asked == 8 + 2


# which examples are alike


def texts(*some: str) -> list[dict[str, Any]]:
    return [{"word": text, "target": "x"} for text in some]


def near(train: list[str], val: list[str], positions: list[int], among: list[int] | None = None) -> list[int]:
    program = nn.ChatCompletion("{word}", system=nn.Parameter("x", role="p"), model=FunctionModel(lambda r: "x"))
    objective = Objective(program, nn.ExactMatch(), texts(*train), texts(*val))
    return objective.near(positions, list(range(len(val))) if among is None else among)


def test_examples_that_share_rare_words_are_near() -> None:
    """What all have in common says nothing; case and marks do not matter."""
    val = ["parcel with wine to Peru", "parcel with Glass, insured", "parcel with tea", "parcel with glass to Peru"]
    assert near(["parcel with glass"], val, [0])[:2] == [1, 3]
    assert near(["parcel to peru!"], val, [0])[:2] == [0, 3]
    assert near(["nothing alike here"], val, [0]) == [0, 1, 2, 3]


def test_only_those_in_question_are_ranked() -> None:
    """Each once; no example in question is left out, and none comes in."""
    val = [f"word{n}" for n in range(6)]
    assert near(["word4 word2"], val, [0], [5, 2, 4]) == [2, 4, 5]
    assert near(["word4"], val, [0], []) == []
    assert near(["word4"], val, [], [3, 1]) == [1, 3]


def test_what_several_examples_share_counts_more() -> None:
    """The feedback of a minibatch is about what its examples have in common."""
    val = ["red", "blue", "green", "grey"]
    assert near(["red cat", "blue cat", "blue dog"], val, [0, 1, 2])[:2] == [1, 0]


ANSWERS: dict[str, tuple[Any, Any, bool]] = {
    "a text": (nn.ExactMatch(), "A", True),
    "what all must meet": (nn.Rubric(["It is loud."]), "A", True),
    "its own criteria": (nn.Rubric(), ["It is loud."], False),
    "criteria of a part": (nn.OnMatch(nn.Rubric(), "Answer: (.*)"), "It ends with Answer: A", False),
    "criteria of a field": (nn.OnField(nn.Rubric(), "label"), {"label": ["It is loud."]}, False),
    "criteria of one of several": (nn.Weighted({"a": nn.OnField(nn.Rubric(), "a")}), {"a": ["Loud."]}, False),
    "a field of JSON": (nn.OnField(nn.ExactMatch(), "label"), "A", False),
    "a list in a field": (nn.OnField(nn.JSONMatch(), "tags"), ["A"], False),
    "the whole JSON": (nn.OnField(nn.ExactMatch(), "label"), {"label": "A"}, True),
    "a part": (nn.OnMatch(nn.ExactMatch(), "Answer: (.*)"), "A", False),
    "the part with what is before it": (nn.OnMatch(nn.ExactMatch(), "Answer: (.*)"), "So.\nAnswer: A", True),
    "two fields": (
        nn.Weighted({name: nn.OnField(nn.ExactMatch(), name) for name in ("label", "why")}),
        {"label": "A", "why": "B"},
        True,
    ),
    "a field beside a judge": (
        nn.Weighted({"label": nn.OnField(nn.ExactMatch(), "label"), "kind": nn.Judge("Kind?")}), "A", False
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ANSWERS)
def test_a_target_that_is_no_whole_answer_is_not_shown_as_one(case: str) -> None:
    """A demonstration of it would teach a form in which every answer is wrong."""
    loss, wanted, is_answer = ANSWERS[case]
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Say it.", role="system prompt"))
    (demo,) = Objective(program, loss, [{"word": "a", "target": wanted}]).demos([0])
    assert (demo is not None) == is_answer


def test_an_output_by_name_is_a_whole_answer() -> None:
    """Of a program of one's own the field may be one of several texts that it gives."""

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.chat = nn.ChatCompletion("{word}", system=nn.Parameter("Say it.", role="system prompt"))

        def forward(self, word: str) -> dict[str, Any]:
            return {"label": self.chat(word=word), "why": "x"}

    loss = nn.OnField(nn.ExactMatch(), "label")
    assert Objective(Two(), loss, [{"word": "a", "target": "A"}]).demos([0]) != [None]
