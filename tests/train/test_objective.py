"""`Objective`: scores and feedback for any texts, and what is paid for them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, ops
from textgrad_engine.errors import AuthenticationFailed, BudgetExceeded, ContentFiltered, DataError
from textgrad_engine.func import pmap
from textgrad_engine.llm import Request
from textgrad_engine.optim.search.objective import FeedbackOn, Texts
from textgrad_engine.optim.search.objective import Objective as Wanted
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train import Objective, evaluate

WORDS = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen")
SEED, LOUD = ("Repeat the word.",), ("SHOUT the word.",)
EVERY = range(8)


def rows(*words: str) -> list[dict[str, Any]]:
    return [{"id": word, "word": word, "target": word.upper()} for word in words or WORDS]


class Shouting:
    """A program that is right when its text says SHOUT; ``before`` is called with every request."""

    def __init__(self, before: Callable[[Request], Any] = lambda request: None, **settings: Any) -> None:
        self.before = before
        self.model = FunctionModel(self.answer)
        self.program = nn.ChatCompletion("{word}", system=nn.Parameter(*SEED, role="system prompt"), model=self.model)
        self.objective = Objective(self.program, nn.ExactMatch(), rows(), rows(), **settings)

    async def answer(self, request: Request) -> Any:
        waits = self.before(request)
        if waits is not None:
            await waits
        if request.purpose == "backward":
            cases = request.config.response_format.json_schema["properties"]
            return {case: dict.fromkeys(schema["properties"], "Say to shout.") for case, schema in cases.items()}
        word = request.messages[-1].text
        return word.upper() if "SHOUT" in request.messages[0].text else word

    def feedback(self, texts: Texts, positions: Iterable[int]) -> FeedbackOn:
        """Feedback, for which the same model is the critic."""
        with tg.use_models(backward=self.model):
            return self.objective.feedback(texts, list(positions))

    @property
    def asked(self) -> int:
        """How many requests came since the last look."""
        count = len(self.model.requests)
        self.model.requests.clear()
        return count


def losing(*lost: str, text: str = "") -> Callable[[Request], None]:
    """No answer to some words, with texts that contain ``text``."""

    def before(request: Request) -> None:
        if request.purpose == "forward" and request.messages[-1].text in lost and text in request.messages[0].text:
            raise ContentFiltered(f"no answer to {request.messages[-1].text}")

    return before


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


def test_there_must_be_something_to_train() -> None:
    """A frozen program, and parameters that are another's."""
    here, other = Shouting(), Shouting()
    with pytest.raises(ValueError, match="Parameter 'system prompt' is no parameter of the program, which has system"):
        Objective(here.program, nn.ExactMatch(), rows(), parameters=list(other.program.parameters()))
    with pytest.raises(ValueError, match="nothing to train"):
        Objective(here.program, nn.ExactMatch(), rows(), parameters=[])
    here.program.requires_grad_(False)
    with pytest.raises(ValueError, match="no parameter that requires grad"):
        Objective(here.program, nn.ExactMatch(), rows())


@pytest.mark.parametrize("texts", [(), ("a", "b")])
def test_a_candidate_has_a_text_for_each_parameter(texts: tuple[str, ...]) -> None:
    """Whatever it is wanted for; nothing is asked, and the next candidate is not spoiled by it."""
    here = Shouting()
    for call in (here.objective.scores, here.feedback):
        with pytest.raises(ValueError, match=f"a text for each of system; got {len(texts)} texts"):
            call(texts, [0])
    assert here.asked == 0
    assert here.objective.scores(LOUD, [0]) == [1.0]


def test_a_loss_that_gives_words_is_refused() -> None:
    """A search needs numbers; whoever waits for the same score learns it too."""
    program = Shouting().program
    objective = Objective(program, lambda prediction, target: prediction, rows())
    for _ in range(2):
        with pytest.raises(TypeError, match="a score must be a number"):
            objective.scores(SEED, [0, 1])


# what is paid for


def test_it_is_an_objective() -> None:
    """The protocol that searches ask for."""
    assert isinstance(Shouting().objective, Wanted)


def test_what_was_scored_is_not_paid_for_again() -> None:
    """Neither one by one nor in a matrix nor as an evaluation; other texts, examples, splits and samples are."""
    here = Shouting()
    objective = here.objective
    assert (objective.scores(SEED, [0, 1, 2]), here.asked) == ([0.0] * 3, 3)
    assert (objective.scores(SEED, [2, 1]), here.asked) == ([0.0] * 2, 0)
    assert (objective.scores(SEED, [2, 3]), here.asked) == ([0.0] * 2, 1)
    assert (objective.matrix([SEED, LOUD], [0, 4]), here.asked) == ([[0.0] * 2, [1.0] * 2], 3)
    assert (objective.matrix([LOUD, LOUD], [0, 0]), here.asked) == ([[1.0] * 2] * 2, 0)
    assert (objective.missing(SEED), objective.missing(LOUD)) == (3, 6)
    assert (objective.evaluation(SEED).mean, here.asked) == (0.0, 3)
    assert (objective.scores(SEED, [0], "train"), here.asked) == ([0.0], 1)
    assert (objective.scores(SEED, [0], repeat=1), here.asked) == ([0.0], 1)
    assert (objective.scores(SEED, [0], repeat=1), here.asked) == ([0.0], 0)


def test_feedback_is_paid_once_for_its_scores() -> None:
    """What the forward half of it gave is known; feedback itself is asked for anew, as it goes through a graph."""
    here = Shouting()
    assert here.feedback(SEED, [0, 3]).scores == (0.0, 0.0)
    assert here.asked == 4
    assert (here.objective.scores(SEED, [3, 0], "train"), here.asked) == ([0.0, 0.0], 0)
    assert (here.feedback(LOUD, [0]).gradients, here.asked) == (((),), 1)


def test_repeats_are_samples_of_their_own() -> None:
    """In the cache too: else noise would be measured as zero."""
    seen: list[tuple[int, ...]] = []

    def before(request: Request) -> None:
        from textgrad_engine.llm.cachekey import sample_number  # inside: what the model's own code sees

        seen.append(sample_number(b""))

    here = Shouting(before)
    for repeat in (0, 1, 2):
        here.objective.scores(SEED, [0], repeat=repeat)
    assert seen == [(), (1,), (2,)]


def test_the_program_is_not_changed() -> None:
    """Candidates are run side by side, so the parameters cannot hold them."""
    here = Shouting()
    (system,) = here.program.parameters()
    version = system._version
    here.objective.matrix([LOUD, ("x",)], EVERY)
    here.feedback(("y",), EVERY)
    assert (system.data, system._version, system.grad) == (*SEED, version, [])


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


def test_what_is_known_can_be_looked_at_without_asking() -> None:
    """At the end of a run that was cut off; half an evaluation says so."""
    here = Shouting(losing("bee"))
    here.objective.adopt(SEED)
    assert here.objective.known(SEED) is None
    here.objective.scores(SEED, [0, 1, 2])
    assert here.asked == 3
    found = here.objective.known(SEED)
    assert found is not None
    assert found.scores == (0.0, None, 0.0, None, None, None, None, None)
    assert set(found.failures) == set(WORDS) - {"ant", "cat"}
    assert here.asked == 0


# threads and proposals


def test_texts_of_now_are_run_once_for_all_threads() -> None:
    """Who comes second waits for the answers that are under way."""
    go, first_asked = threading.Event(), threading.Event()

    async def hold() -> None:
        first_asked.set()
        while not go.is_set():
            await asyncio.sleep(0)

    here = Shouting(lambda request: hold())
    here.objective.adopt(SEED)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(here.objective.scores(SEED, EVERY))) for _ in range(3)]
    threads[0].start()
    assert first_asked.wait(60)
    for thread in threads[1:]:
        thread.start()
    go.set()
    for thread in threads:
        thread.join(60)
    assert (found, here.asked) == ([[0.0] * 8] * 3, 8)


def test_who_waits_for_a_failed_call_learns_why() -> None:
    """And who asks again asks anew."""
    first_asked, go = threading.Event(), threading.Event()
    broken = [True]

    async def fail() -> None:
        first_asked.set()
        while not go.is_set():
            await asyncio.sleep(0)
        if broken:
            raise AuthenticationFailed("no such key", status=401)

    here = Shouting(lambda request: fail())
    here.objective.adopt(SEED)
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            here.objective.scores(SEED, [0, 1])
        except AuthenticationFailed as error:
            errors.append(error)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    threads[0].start()
    assert first_asked.wait(60)
    threads[1].start()
    go.set()
    for thread in threads:
        thread.join(60)
    assert len(errors) == 2
    broken.clear()
    assert here.objective.scores(SEED, [0, 1]) == [0.0, 0.0]


def test_proposals_keep_to_themselves_until_texts_are_adopted() -> None:
    """Two that come to one text each pay for it: else what a proposal's calls are would depend on who was first."""
    here = Shouting()
    for number in (2, 1):
        with here.objective.proposal(number):
            assert here.objective.scores(LOUD, [0, number]) == [1.0, 1.0]
            assert here.objective.scores(LOUD, [0]) == [1.0]
        assert here.asked == 2
    with here.objective.proposal(3):
        assert here.objective.missing(LOUD) == 8
    here.objective.adopt(LOUD)
    with here.objective.proposal(3):
        assert (here.objective.missing(LOUD), here.objective.scores(LOUD, [0, 1, 2]), here.asked) == (5, [1.0] * 3, 0)


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


def test_the_bound_on_examples_holds_over_all_threads() -> None:
    """Lanes have it together; each answer here waits until as many as may be are under way."""
    here = Shouting(concurrency=3)

    async def until_others_are_asked(own: int) -> None:
        while len(here.model.requests) < min(own + 2, 24):
            await asyncio.sleep(0)

    here.before = lambda request: until_others_are_asked(len(here.model.requests))
    ask = pmap(lambda text: here.objective.scores((text,), EVERY))
    assert ask(["a", "b", "SHOUT"]) == [[0.0] * 8, [0.0] * 8, [1.0] * 8]
    assert (here.model.peak, len(here.model.requests)) == (3, 24)


def test_a_lost_place_is_given_back() -> None:
    """Examples that fail do not use up the bound for ever."""
    here = Shouting(losing("ant", "bee"), concurrency=1)
    assert here.objective.scores(SEED, EVERY) == [None, None, *[0.0] * 6]
    assert here.objective.scores(LOUD, EVERY) == [None, None, *[1.0] * 6]


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


def test_a_single_lost_answer_among_known_ones_is_passed_over() -> None:
    """What counts is what was asked about, not only what had to be bought."""
    here = Shouting(losing("hen"))
    here.objective.scores(LOUD, range(7))
    assert here.objective.evaluation(LOUD).scores == (*[1.0] * 7, None)


def test_one_candidate_that_breaks_the_program_does_not_stop_the_others() -> None:
    """Its row is empty; the others' is not."""
    here = Shouting(losing(*WORDS, text="BROKEN"))
    assert here.objective.matrix([SEED, ("BROKEN",)], EVERY) == [[0.0] * 8, [None] * 8]


def test_a_spent_budget_ends_it_and_keeps_what_was_paid_for() -> None:
    """The rest is bought when there is money again."""
    here = Shouting(concurrency=1)
    with tg.budget(calls=5), pytest.raises(BudgetExceeded):
        here.objective.scores(LOUD, EVERY)
    assert here.asked == 5
    assert here.objective.missing(LOUD) == 3
    assert (here.objective.scores(LOUD, EVERY), here.asked) == ([1.0] * 8, 3)


# feedback


class Chain(nn.Module):
    """Two prompts, one after the other."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.draft = nn.ChatCompletion("{word}", system=nn.Parameter("Draft.", role="drafter"), model=model)
        self.check = nn.ChatCompletion("Check {word}", system=nn.Parameter("Check.", role="checker"), model=model)

    def forward(self, word: str) -> Any:
        return self.check(word=self.draft(word=word))


def chained(request: Request) -> Any:
    if request.purpose == "backward":
        cases = request.config.response_format.json_schema["properties"]
        return {case: {key: f"about {key}" for key in schema["properties"]} for case, schema in cases.items()}
    return request.messages[-1].text


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


def test_some_of_the_parameters_in_an_order_of_ones_own() -> None:
    """The others stay as they are, get no feedback, and cost none."""
    program = Chain(FunctionModel(chained))
    draft, check = program.parameters()
    objective = Objective(program, nn.ExactMatch(), rows("ant"), parameters=[check, draft])
    assert (objective.names, objective.parameters) == (("check.system", "draft.system"), (check, draft))
    assert objective.texts_of({"draft.system": "D", "check.system": "C"}) == ("C", "D")
    only = Objective(program, nn.ExactMatch(), rows("ant"), parameters=[check])
    critic = FunctionModel(chained)
    with tg.use_models(backward=critic):
        assert [len(gradient) for gradient in only.feedback(("Check.",), [0]).gradients] == [1]
    assert len(critic.requests) == 1
    assert draft.grad == []


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


# what stands for a parameter


class Tagged(nn.Parameter):
    """A parameter with an attribute that a program reads."""

    def __init__(self, data: str, role: str, kind: str) -> None:
        super().__init__(data, role)
        self.kind = kind


class Telling(nn.Module):
    """Two calls; it notes what it finds in the place of its texts."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.first = Tagged("Repeat the word.", role="first prompt", kind="draft")
        self.second = Tagged("Repeat the word.", role="second prompt", kind="answer")
        self.model, self.seen = model, set[Any]()

    def forward(self, word: str) -> tg.Variable:
        for text in (self.first, self.second):
            self.seen.add((type(text), text.kind))
            content = [{"role": "system", "content": text}, {"role": "user", "content": "{word}"}]
            word = ops.chat_completion(self.model, content, {"word": word})  # type: ignore[assignment]
        return word  # type: ignore[return-value]


def test_what_stands_for_a_parameter_has_its_class_and_attributes() -> None:
    """Of those that are searched, and of those that are not; for scores and for feedback."""
    shouting = Shouting()
    program = Telling(shouting.model)
    objective = Objective(program, nn.ExactMatch(), rows(), parameters=[program.second])
    with tg.use_models(backward=shouting.model):
        objective.feedback(SEED, [0])
    objective.matrix([SEED, LOUD], [0, 1])
    assert program.seen == {(Tagged, "draft"), (Tagged, "answer")}


def test_hooks_on_a_parameter_are_obeyed() -> None:
    """They see the feedback on what stands for it, and may replace it; the parameter itself stays as it is."""
    shouting = Shouting()
    parameter = shouting.program.system
    seen: list[Any] = []
    parameter.register_hook(lambda feedback: seen.append(feedback.data) or "Redacted.")
    parameter.register_post_accumulate_grad_hook(lambda leaf: seen.append((leaf.data, len(leaf.grad))))
    removed = parameter.register_hook(lambda feedback: seen.append("removed"))
    removed.remove()
    found = shouting.feedback(SEED, [0])
    assert seen == ["Say to shout.", (SEED[0], 1)]
    assert [item.data for item in found.gradients[0]] == ["Redacted."]
    assert parameter.grad == []


def test_a_hook_that_is_called_when_feedback_is_written_may_choose_from_it() -> None:
    """What it leaves in the gradient of the leaf is what a search gets."""
    shouting = Shouting()

    def first_only(leaf: tg.Variable) -> None:
        leaf.grad = leaf.grad[:1]

    shouting.program.system.register_post_accumulate_grad_hook(first_only)
    assert [len(gradient) for gradient in shouting.feedback(SEED, [0, 1, 2]).gradients] == [1]


@pytest.mark.parametrize("mode", ["all", "any"])
def test_a_hook_on_several_parameters_is_called_once_for_all(mode: Any) -> None:
    """With what is said of each of them; of a text that is not searched for, nothing is."""
    shouting = Shouting()
    program = Telling(shouting.model)
    program.third = nn.Parameter("unused", role="third prompt")
    calls: list[Any] = []
    tg.autograd.register_multi_grad_hook([*program.parameters()], calls.append, mode=mode)
    objective = Objective(program, nn.ExactMatch(), rows(), parameters=[program.first, program.second])
    with tg.use_models(backward=shouting.model):
        objective.feedback(SEED * 2, [0])
    if mode == "any":
        assert [gradient.data for gradient in calls] == ["Say to shout."]
    else:
        assert [[None if each is None else each.data for each in call] for call in calls] == [
            ["Say to shout.", "Say to shout.", None]
        ]


def test_hooks_may_come_and_go_while_a_lane_reads_them() -> None:
    """A hook that takes itself away runs in one lane, while another one asks for feedback of its own."""

    class Shared(dict[int, Any]):
        def values(self) -> Any:  # each step of a loop over it is one at which another thread may change it
            raise RuntimeError("dictionary changed size during iteration")

    shouting = Shouting()
    seen: list[Any] = []
    handle = shouting.program.system.register_hook(lambda feedback: seen.append(feedback.data))
    shouting.program.system._hooks = Shared(shouting.program.system._hooks)
    shouting.feedback(SEED, [0])
    handle.remove()
    assert seen == ["Say to shout."]


def test_hooks_of_texts_that_are_not_searched_for_are_silent() -> None:
    """There is no feedback on these, as nobody trains them."""
    shouting = Shouting()
    program = Telling(shouting.model)
    program.first.register_hook(lambda feedback: pytest.fail("nobody asked for it"))
    objective = Objective(program, nn.ExactMatch(), rows(), parameters=[program.second])
    with tg.use_models(backward=shouting.model):
        assert objective.feedback(SEED, [0]).problems == ()


@pytest.mark.parametrize("made", [object, lambda: {"é", "b", "c"}, lambda: {(1, 2): "no text"}])
def test_the_digest_of_examples_is_that_of_their_content(made: Callable[[], Any]) -> None:
    """Of a set that makes its examples anew when they are read, too: where they are in memory is not asked."""
    program = Shouting().program
    held = []  # so that no two have one address

    def digest(*words: str) -> str:
        given = [{**row, "more": made()} for row in rows(*words)]
        held.append(given)
        return Objective(program, nn.ExactMatch(), given, given).digest

    assert digest("ant", "bee") == digest("ant", "bee")
    assert digest("ant", "bee") != digest("ant", "cat")


def test_the_digest_of_examples_is_the_same_in_every_process(tmp_path: Path) -> None:
    """A search that was saved goes on in another one; a set has another order there."""
    code = (
        "from textgrad_engine import nn; from textgrad_engine.testing import ScriptedModel\n"
        "from textgrad_engine.train import Objective\n"
        "program = nn.ChatCompletion('{q}', system=nn.Parameter('x', role='x'), model=ScriptedModel([]))\n"
        "rows = [{'q': 'a', 'target': 'b', 'tags': set('abcdefgh')}]\n"
        "print(Objective(program, nn.ExactMatch(), rows, rows).digest)"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True, cwd=tmp_path,
        ).stdout
        for seed in "12"
    }  # fmt: skip
    assert len(found) == 1
