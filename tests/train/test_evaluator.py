from __future__ import annotations

import asyncio
import gc
import itertools
import json
import math
import re
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import Variable, nn, ops, optim
from textgrad_engine.errors import (
    AuthenticationFailed,
    BadRequest,
    BudgetExceeded,
    ContentFiltered,
    ContextOverflow,
    DataError,
    ScoreError,
    Stopped,
)
from textgrad_engine.llm import Completion, Request, Stop, Usage, repeat, resolve
from textgrad_engine.testing import FunctionModel, ScriptedModel, feedback_for
from textgrad_engine.train import Evaluation, Objective, aevaluate, compare, evaluate, under_way
from textgrad_engine.train.evaluator import attempt

from ..llm.asking import asked

PATIENCE = 60.0


def rows(count: int, **fields: Any) -> list[dict[str, Any]]:
    return [{"word": str(n), "target": str(n), **fields} for n in range(count)]


def word(request: Request) -> str:
    return request.messages[-1].text


def echo(failing: dict[str, Exception] | None = None, wrong: tuple[str, ...] = ()) -> FunctionModel:
    """Says the word back; some wrongly, some fail."""

    def answer(request: Request) -> str:
        said = word(request)
        if failing and said in failing:
            raise failing[said]
        return "no" if said in wrong else said

    return FunctionModel(answer)


def scores(model: Any, count: int, **options: Any) -> Evaluation:
    return evaluate(nn.ChatCompletion("{word}", model=model), rows(count), nn.ExactMatch(), **options)


class Waits(nn.Module):
    """Looks at its answer before it gives it."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.chat = nn.ChatCompletion("{word}", model=model)

    def forward(self, word: str) -> str:
        return str(self.chat(word=word))


@pytest.mark.parametrize("waits", [False, True])
def test_what_was_answered_before_the_budget_was_spent_is_not_lost(waits: bool) -> None:
    """More than half may be missing then, as nobody asked for them; those that failed by themselves are counted."""
    model = resolve(echo({"1": ContentFiltered("no")}))
    program = Waits(model) if waits else nn.ChatCompletion("{word}", model=model)
    with tg.budget(calls=3):
        found, ended = attempt(program, rows(8), nn.ExactMatch())
    assert isinstance(ended, BudgetExceeded)
    assert found is not None
    assert (found.answered, found.unanswered, found.bounds) == ((1.0, 1.0), 6, (0.25, 1.0))
    with tg.budget(calls=3), pytest.raises(BudgetExceeded):
        evaluate(program, rows(8), nn.ExactMatch())


class Forgiving(Waits):
    """Has an answer in any case, as agents with a retry of their own have."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.chat.system = nn.Parameter("Say.", role="system prompt")

    def forward(self, word: str) -> str:
        try:
            return super().forward(word)
        except Exception:
            return "sorry"


class Asking(nn.Module):
    """Asks a forgiving part, as a tool."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.part = Forgiving(model)
        self.chat = nn.ChatCompletion("{word}", model=FunctionModel(self.answer), tools=[self.ask])

    def ask(self, word: str) -> str:
        """Ask it."""
        return self.part(word=word)

    def answer(self, request: Request) -> str | Completion:
        if request.messages[-1].role == "tool":
            return request.messages[-1].text
        function = {"name": "ask", "arguments": json.dumps({"word": word(request)})}
        called = ({"id": "1", "type": "function", "function": function},)
        return Completion(text="", finish_reason="tool_calls", tool_calls=called, usage=Usage())

    def forward(self, word: str) -> Variable:
        return self.chat(word=word)


class Direct(Forgiving):
    """Asks its model without an operation, in a loop of its own."""

    def forward(self, word: str) -> str:
        return asyncio.run(asked(self.chat.model, word))


class AskingDirectly(Asking):
    """So does a tool of it, which is async."""

    async def ask(self, word: str) -> str:  # type: ignore[override]
        """Ask it."""
        return await asked(self.part.chat.model, word)


class Awaiting(Forgiving):
    """Asks its model in a Function of its own, on the loop of operations."""

    def forward(self, word: str) -> Variable:  # type: ignore[override]
        model = self.chat.model

        class Ask(tg.Function):
            @staticmethod
            async def forward(ctx: Any, said: Variable) -> Variable:
                return Variable(await asked(model, str(said)))

        answer: Variable = Ask.apply(Variable(word))
        return answer


class Improving(Forgiving):
    """Criticizes its own answer, and makes do without that where nobody criticizes it."""

    def forward(self, word: str) -> str:
        draft = Variable(word, "a draft", requires_grad=True)
        try:
            with tg.enable_grad():
                tg.backward(nn.TextLoss("Is it right?")(draft))
        except Exception:
            return "sorry"
        return word


class Evaluating(nn.Module):
    """Evaluates a forgiving part, and has an answer where that ends, too."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.part = Forgiving(model)

    def forward(self, word: str) -> str:
        try:
            (said,) = evaluate(self.part, [{"word": word, "target": word}], nn.ExactMatch()).predictions
        except Exception:
            return "sorry"
        return str(said)


@pytest.mark.parametrize("kind", [Forgiving, Asking, Direct, AskingDirectly, Awaiting, Improving, Evaluating])
def test_what_no_budget_had_room_for_is_not_scored_whatever_the_program_made_of_it(kind: Any) -> None:
    """It would count as wrong: the score of a program that catches errors fell with its budget, without a word."""
    model = resolve(echo())
    critic = resolve(FunctionModel(lambda request: json.dumps({"nothing_wrong": True, "criticism": ""})))
    with tg.use_models(forward=critic):
        with tg.budget(calls=3), pytest.raises(BudgetExceeded):
            evaluate(kind(model), rows(8), nn.ExactMatch(), concurrency=1)
        with tg.budget(calls=7):
            found, ended = attempt(kind(model), rows(8), nn.ExactMatch(), concurrency=1)
        assert isinstance(ended, BudgetExceeded)
        assert found is not None
        assert set(found.answered) == {1.0}
        with tg.budget(calls=5), pytest.raises(BudgetExceeded):
            Objective(kind(model), nn.ExactMatch(), rows(8)).scores(("Say.",), range(8))


class Complaining(Waits):
    """Has an error of its own for all that goes wrong."""

    def forward(self, word: str) -> str:
        try:
            return super().forward(word)
        except Exception as error:
            raise RuntimeError("the agent failed") from error


def test_a_budget_ends_a_program_that_makes_an_error_of_its_own_of_that() -> None:
    """What was answered before was lost with it, and a run ended by an error in place of its budget."""
    model = resolve(echo())
    with tg.budget(calls=3):
        found, ended = attempt(Complaining(model), rows(8), nn.ExactMatch(), concurrency=1)
    assert isinstance(ended, BudgetExceeded)
    assert found is not None
    assert (found.answered, found.unanswered) == ((1.0, 1.0, 1.0), 5)

    def strict(prediction: str, target: str) -> float:
        return float(Complaining(model)(word=prediction) == target)

    chat = nn.ChatCompletion("{word}", model=model)
    with tg.budget(calls=5):
        found, ended = attempt(chat, rows(3), nn.Metric(strict, purpose="a word"))
    assert isinstance(ended, BudgetExceeded)
    assert found is not None
    assert (found.answered, found.unanswered) == ((1.0, 1.0), 1)
    with pytest.raises(RuntimeError, match="the agent failed"):
        evaluate(Complaining(resolve(echo({"1": ContentFiltered("no")}))), rows(3), nn.ExactMatch())


def test_what_no_budget_had_room_for_is_no_score_of_candidates_that_are_run_together() -> None:
    """Nested `vmap` runs them, where a metric of one's own may ask a model, and catch what comes of it."""
    model = resolve(echo())
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Say.", role="system prompt"), model=model)
    judge = nn.ChatCompletion("{word}", model=model)

    def score(prediction: str, target: str) -> float:
        try:
            return float(str(judge(word=prediction)) == target)
        except Exception:
            return 0.0

    objective = Objective(program, nn.Metric(score, purpose="a word"), rows(3))
    with tg.budget(calls=8), pytest.raises(BudgetExceeded) as raised:
        objective.matrix([("Say it.",), ("Say so.",)], range(3))
    assert len(raised.traceback) < 20
    assert objective.matrix([("Say it.",), ("Say so.",)], range(3)) == [[1.0] * 3] * 2


def test_what_a_stop_left_unasked_is_not_scored_whatever_the_program_made_of_it() -> None:
    """After Ctrl-C the result so far is of what was asked."""
    with Stop() as stop:

        def answer(request: Request) -> str:
            if word(request) == "2":
                stop.set()
            return word(request)

        found, ended = attempt(Forgiving(FunctionModel(answer)), rows(8), nn.ExactMatch(), concurrency=1)
    assert isinstance(ended, Stopped)
    assert found is not None
    assert (found.answered, found.unanswered) == ((1.0, 1.0, 1.0), 5)


def test_what_a_stop_left_in_the_queue_is_not_scored_where_a_program_awaits_its_model_itself() -> None:
    """It waits for its turn at the endpoint, or for another attempt, when Ctrl-C comes."""

    class Together(Direct):
        def forward(self, word: str) -> str:
            async def both() -> list[str]:
                return await asyncio.gather(*[asked(self.chat.model, each) for each in (word, f"{word} again")])

            return asyncio.run(both())[-1].split()[0]

    with Stop() as stop:

        async def answer(request: Request) -> str:
            if word(request) == "1":
                for number in range(9):
                    await asyncio.sleep(0)
                    if number == 4:  # the other one is in the queue by then, and leaves it at once
                        stop.set()
            return word(request)

        model = resolve(FunctionModel(answer), max_in_flight=1)
        found, ended = attempt(Together(model), rows(3), nn.ExactMatch(), concurrency=1)
    assert isinstance(ended, Stopped)
    assert found is not None
    assert (found.answered, found.unanswered) == ((1.0,), 2)


def test_a_failure_that_a_program_makes_do_with_is_its_own_matter() -> None:
    """One of the endpoint, and that of a budget or stop which the program has set for itself."""

    class Frugal(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.chat = nn.ChatCompletion("{word}", model=resolve(echo()))

        def forward(self, word: str) -> str:
            said = ""
            with tg.budget(calls=2):
                while True:
                    try:
                        said = str(self.chat(word=word))
                    except BudgetExceeded:
                        return said

    assert evaluate(Frugal(), rows(3), nn.ExactMatch()).scores == (1.0, 1.0, 1.0)

    class Hasty(Frugal):
        def forward(self, word: str) -> str:
            with Stop() as stop:
                first = str(self.chat(word=word))
                stop.set()
                try:
                    return str(self.chat(word=word))
                except Stopped:
                    return first

    assert evaluate(Hasty(), rows(3), nn.ExactMatch()).scores == (1.0, 1.0, 1.0)
    failing = Forgiving(resolve(echo({"1": ContentFiltered("no")})))
    assert evaluate(failing, rows(3), nn.ExactMatch()).scores == (1.0, 0.0, 1.0)


class Twice(nn.Module):
    """Says a word and its capitals, as a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.chat = nn.ChatCompletion("{word}", system=nn.Parameter("Say.", role="system prompt"), model=echo())

    def forward(self, word: str) -> Variable:
        return self.chat(word=[word, word.upper()])


@pytest.mark.parametrize("loss", [nn.ExactMatch(), nn.Metric(lambda said, wanted: 1.0, "anything")])
def test_a_batch_of_predictions_for_one_target_is_refused(loss: Any) -> None:
    """Nobody knows which of them the target is for."""
    given = [{"id": "t1", "word": "a", "target": "a"}]
    with pytest.raises(DataError, match="example 't1': the program gave a batch of 2 predictions for one target"):
        evaluate(Twice(), given, loss)
    with pytest.raises(DataError, match="example 't1': the program gave a batch of 2 predictions"):
        tg.train.Objective(Twice(), loss, given).scores(("Say.",), [0])


class Once(Twice):
    """Says a word as a batch of one."""

    def forward(self, word: str) -> Variable:
        return self.chat(word=[word])


@pytest.mark.parametrize("loss", [nn.ExactMatch(), nn.Metric(lambda said, wanted: float(said == wanted), "equal")])
def test_a_batch_of_one_is_a_prediction_like_any_other(loss: Any) -> None:
    """Nothing is added to its score."""
    program, given = Once(), [{"id": "t1", "word": "a", "target": "b"}]
    said = program(word="a").data
    assert len(said) == 1
    assert evaluate(program, [{**given[0], "target": said[0]}], loss).scores == (1.0,)
    assert evaluate(program, given, loss).scores == (0.0,)


def test_a_batch_of_predictions_may_have_a_target_for_each() -> None:
    """Or a loss of its own, which says what a batch is worth."""
    given = [{"word": "a", "target": ["a", "A"]}, {"word": "b", "target": ["b", "b"]}]
    assert evaluate(Twice(), given, nn.ExactMatch()).scores == (1.0, 0.5)
    assert tg.train.Objective(Twice(), nn.ExactMatch(), given).scores(("Say.",), [0, 1]) == [1.0, 0.5]
    plain = [{"word": "a", "target": "a"}]

    def either(said: Variable, wanted: str) -> Variable:
        return tg.ops.exact_match_evaluator(said, wanted, reduction_fn=max)[0]

    assert evaluate(Twice(), plain, either).scores == (1.0,)


def test_examples_of_which_half_a_batch_is_right_are_not_taken_for_right() -> None:
    """The sum of two scores is at the top of the scale where one is right, and a run would have nothing to learn."""
    given = [{"id": word, "word": word, "target": [word, "no"]} for word in ("ant", "bee")]
    program = Twice()
    heard: list[Any] = []

    def critic(request: Request) -> Any:
        return feedback_for(request, "Say no.") if request.purpose == "backward" else {"edits": []}

    class Heard:
        def on_event(self, event: Any) -> None:
            if isinstance(event, tg.train.events.StepEnded):
                heard.append((event.train_mean, event.feedback))

    with tg.use_models(backward=FunctionModel(critic), optimizer=FunctionModel(critic)):
        trainer = tg.Trainer(callbacks=[Heard()])
        result = trainer.fit(program, nn.ExactMatch(), optim.TGD(program.parameters()), given, given)
    assert result.seed_val.scores == (0.5, 0.5)
    assert heard == [(0.5, 2)]


def test_arguments_in_the_order_of_fit_are_told_apart() -> None:
    """`fit` has the loss before the examples; and a path is no dataset."""
    program = nn.ChatCompletion("{word}", model=echo())
    with pytest.raises(TypeError, match=r"evaluate\(program, dataset, loss\); got ExactMatch for the dataset and list"):
        evaluate(program, nn.ExactMatch(), rows(2))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"evaluate: dataset should be .*, and is the path 'val\.jsonl'"):
        evaluate(program, "val.jsonl", nn.ExactMatch())  # type: ignore[arg-type]


def test_an_empty_dataset_is_an_error() -> None:
    """Nothing has no mean."""
    with pytest.raises(DataError, match="the dataset is empty"):
        scores(ScriptedModel([]), 0)


@pytest.mark.parametrize("broken", [{"word": "x"}, {"target": "x"}, {"word": None, "target": "x"}])
def test_data_errors_come_before_any_call(broken: dict[str, Any]) -> None:
    """A bad last row costs nothing."""
    model = ScriptedModel([])
    with pytest.raises(DataError, match="example '2'"):
        evaluate(nn.ChatCompletion("{word}", model=model), [*rows(2), broken], nn.ExactMatch())
    assert model.requests == []


def test_two_rows_with_one_id_are_an_error() -> None:
    """Scores by id would be of either."""
    with pytest.raises(DataError, match="'a' was already given"):
        evaluate(nn.ChatCompletion("{word}"), rows(2, id="a"), nn.ExactMatch())


@pytest.mark.parametrize("metric", [lambda said, wanted: said.split() == wanted, lambda gold, pred: gold.label == pred])
def test_a_function_of_plain_texts_is_told_how_it_becomes_a_loss(metric: Any) -> None:
    """It gets as far as the first thing that a text can do and a Variable cannot; a loss that is a module knows."""
    program = nn.ChatCompletion("{word}", model=echo())
    with pytest.raises((AttributeError, TypeError)) as caught:
        evaluate(program, rows(2), metric)
    assert any("nn.Metric(function, purpose) makes one" in note for note in caught.value.__notes__)

    class Own(nn.Module):
        def forward(self, prediction: Any, target: str) -> Any:
            return metric(prediction, target)

    with pytest.raises((AttributeError, TypeError)) as caught:
        evaluate(program, rows(2), Own())
    assert not any("nn.Metric" in note for note in caught.value.__notes__)


def test_a_loss_in_words_is_no_score() -> None:
    """The message names the losses that are."""
    model = ScriptedModel(["x", {"nothing_wrong": False, "criticism": "too short"}])
    with tg.use_models(forward=model), pytest.raises(TypeError, match="A TextLoss only gives words"):
        evaluate(nn.ChatCompletion("{word}"), rows(1), nn.TextLoss("Is it long?"))


@pytest.mark.parametrize("worst", [math.nan, math.inf, -1e200, 10**400])
def test_a_number_that_no_mean_can_be_taken_of_is_no_score(worst: float) -> None:
    """It is told where it is given; with the interval, at the end of a run, all was paid for."""

    class Reward(nn.Module):
        def forward(self, prediction: Variable, target: Any) -> Variable:
            return Variable(worst if prediction.data == "b" else 1.0, role="reward")

    program = nn.ChatCompletion("{q}", model=FunctionModel(lambda request: request.messages[-1].text))
    given = [{"q": letter, "target": ""} for letter in "abc"]
    with pytest.raises(ScoreError, match=r"the loss gave .*, which is no score: .* numbers up to 1e\+100"):
        evaluate(program, given, Reward())


def test_an_unanswered_example_is_counted_apart() -> None:
    """It has no score: neither a zero nor a reason to end the evaluation."""
    found = scores(echo({"1": ContentFiltered("withheld"), "3": BadRequest("odd", status=400)}, wrong=("2",)), 5)
    assert found.scores == (1.0, None, 0.0, None, 1.0)
    assert found.predictions == ("0", None, "no", None, "4")
    assert found.mean == pytest.approx(2 / 3)
    assert found.failures == {"1": "ContentFiltered: withheld", "3": "BadRequest: odd"}
    assert "on 3 examples, 2 unanswered" in str(found)
    assert len(found) == 5


def test_more_than_half_unanswered_says_nothing_about_the_program() -> None:
    """The first error in dataset order is raised, with the count; exactly half still counts."""
    failing = {str(n): ContentFiltered(f"withheld {n}") for n in (3, 1, 2)}
    with pytest.raises(ContentFiltered, match="withheld 1") as caught:
        scores(echo(failing), 5)
    assert "3 of 5 examples went unanswered" in "".join(caught.value.__notes__)
    assert scores(echo(failing), 6).mean == 1.0


@pytest.mark.parametrize("error", [KeyboardInterrupt, KeyError])
@pytest.mark.parametrize("call", ["evaluate", "fit"])
def test_what_is_interrupted_sends_nothing_more(
    monkeypatch: pytest.MonkeyPatch, error: type[BaseException], call: str
) -> None:
    """In a notebook the process goes on, and what was queued would be paid for and read by nobody."""
    monkeypatch.setattr(under_way, "GRACE", 0.1)  # what was sent comes only later here
    gate: Future[None] = Future()
    asked: list[str] = []

    class Gated:
        name = "gated"

        async def complete(self, request: Request) -> Completion:
            asked.append(word(request))
            await asyncio.wrap_future(gate)
            return Completion(text=word(request))

    class Program(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            system = nn.Parameter("Repeat.", role="system prompt")
            self.chat = nn.ChatCompletion("{word}", system=system, model=resolve(Gated(), max_in_flight=1, cache=False))

        def forward(self, word: str) -> Variable:
            if word == "5":
                raise error("the cell was interrupted")
            return self.chat(word=word)

    program = Program()
    calls: dict[str, Callable[[], Any]] = {
        "evaluate": lambda: evaluate(program, rows(6), nn.ExactMatch()),
        "fit": lambda: tg.Trainer().fit(program, nn.ExactMatch(), optim.TGD(program.parameters()), rows(6), rows(6)),
    }
    with pytest.raises(error, match="the cell was interrupted"):
        calls[call]()
    gate.set_result(None)
    assert program("the next cell").data == "the next cell"
    assert asked in (["0", "the next cell"], ["the next cell"])


@pytest.mark.parametrize(
    "error", [AuthenticationFailed("bad key", status=401), KeyError("a bug"), BudgetExceeded("no")]
)
def test_what_no_example_can_help_ends_it(error: Exception) -> None:
    """A wrong key, a spent budget and a bug are not some example's bad luck."""
    with pytest.raises(type(error)):
        scores(echo({"4": error}), 9)


def test_scores_are_in_dataset_order_whatever_ends_first() -> None:
    """The last answer comes first, and so on back to the first; scores and predictions stand where their row does."""
    done: dict[str, asyncio.Event] = {str(n): asyncio.Event() for n in range(6)}
    order: list[str] = []

    async def answer(request: Request) -> str:
        said = word(request)
        if said != "5":
            await done[str(int(said) + 1)].wait()
        order.append(said)
        done[said].set()
        return said if int(said) % 2 else "no"

    found = scores(FunctionModel(answer), 6)
    assert order == ["5", "4", "3", "2", "1", "0"]
    assert found.scores == (0.0, 1.0) * 3
    assert found.predictions == ("no", "1", "no", "3", "no", "5")


def test_of_several_failures_the_first_in_order_is_raised() -> None:
    """The last answer comes first, and so on back to the first: bugs, and answers that most examples lack."""

    def backwards(kind: Callable[[str], Exception], wrong: str) -> FunctionModel:
        done = {str(n): asyncio.Event() for n in range(6)}

        async def answer(request: Request) -> str:
            said = word(request)
            if said != "5":
                await done[str(int(said) + 1)].wait()
            done[said].set()
            if said in wrong:
                raise kind(f"no {said}")
            return said

        return FunctionModel(answer)

    with pytest.raises(KeyError, match="no 2"):
        scores(backwards(KeyError, "24"), 6)
    with pytest.raises(ContentFiltered, match="no 1"):
        scores(backwards(ContentFiltered, "12345"), 6)
    assert list(scores(backwards(ContentFiltered, "24"), 6).failures) == ["2", "4"]


def test_concurrency_bounds_the_examples_under_way() -> None:
    """Also for a program that only dispatches."""
    model = FunctionModel(lambda request: word(request), latency=0.001)
    assert scores(model, 9, concurrency=2).mean == 1.0
    assert model.peak <= 2


def test_all_examples_are_under_way_at_once() -> None:
    """No answer comes before the last question was asked: only a concurrent evaluation can end."""
    asked: list[str] = []
    everybody = asyncio.Event()

    async def answer(request: Request) -> str:
        asked.append(word(request))
        if len(asked) == 8:
            everybody.set()
        await everybody.wait()
        return word(request)

    assert scores(FunctionModel(answer), 8).mean == 1.0


def test_a_program_that_reads_its_answers_is_concurrent_too(main_waits: Any) -> None:
    """After the first example, which shows that it waits, all others meet at a barrier."""
    together = threading.Barrier(5, timeout=PATIENCE)

    async def answer(request: Request) -> str:
        if word(request) == "0":
            await main_waits()
        return word(request)

    chat = nn.ChatCompletion("{word}", model=FunctionModel(answer))

    def program(word: str) -> str:
        first = chat(word=word).data
        if first != "0":
            together.wait()
        return str(chat(word=first).data)

    assert evaluate(program, rows(6), nn.ExactMatch()).mean == 1.0


def test_nothing_is_recorded() -> None:
    """Evaluation keeps no graph, even of a trained program."""
    kept: list[Variable] = []

    class Keeping(nn.ExactMatch):
        def forward(self, prediction: Variable, target: Any) -> Variable:
            kept.append(super().forward(prediction, target))
            return kept[-1]

    program = nn.ChatCompletion("{word}", system=nn.Parameter("Echo."), model=echo())
    evaluate(program, rows(2), Keeping())
    assert [loss.requires_grad for loss in kept] == [False, False]
    assert tg.is_grad_enabled()


def test_every_score_is_told_once() -> None:
    """Failures too; a progress bar must come to its end."""
    told: list[int] = []
    scores(echo({"1": ContentFiltered("withheld")}), 5, on_score=told.append)
    assert sorted(told) == [0, 1, 2, 3, 4]


def scored(*values: float | None) -> Evaluation:
    return Evaluation(tuple(str(n) for n in range(len(values))), values, values, {})


def test_only_the_same_examples_can_be_compared() -> None:
    """Paired means paired."""
    with pytest.raises(ValueError, match="the same examples in the same order"):
        compare(scored(1.0, 0.0), scored(1.0))
    with pytest.raises(ValueError, match="no example has a score in both"):
        compare(scored(1.0, None), scored(None, 1.0))


def test_examples_without_a_score_are_left_out_of_both() -> None:
    """The seed is not blamed for what the other was spared."""
    found = compare(scored(0.0, None, 0.0, 0.0), scored(1.0, 1.0, None, 0.0))
    assert (found.n, found.difference) == (2, 0.5)


def test_a_small_difference_is_not_shown_and_a_large_one_has_a_direction() -> None:
    """Better, worse, or not shown; never more than the data say."""
    low, high = scored(*[0.0] * 20), scored(*[1.0] * 20)
    assert [compare(a, b).verdict for a, b in ((low, high), (high, low), (low, low))] == [
        "better",
        "worse",
        "not shown",
    ]
    assert compare(scored(0.0, 1.0, 0.0), scored(1.0, 1.0, 0.0)).verdict == "not shown"
    assert str(compare(low, high)).startswith("better: +1.000 [")


# repeats and clusters


def test_an_example_runs_at_least_once() -> None:
    """Before anything is asked."""
    model = ScriptedModel([])
    with pytest.raises(ValueError, match="repeats must be at least 1, got 0"):
        scores(model, 2, repeats=0)
    assert model.requests == []


def test_the_score_of_an_example_is_the_mean_of_its_samples() -> None:
    """Each example is run as often as asked for, and counts once."""
    said = {"0": ["0", "0", "0"], "1": ["1", "no", "1"], "2": ["no", "no", "no"]}
    found = scores(FunctionModel(lambda request: said[word(request)].pop(0)), 3, repeats=3)
    assert found.scores == pytest.approx((1.0, 2 / 3, 0.0))
    assert sorted(found.samples[1]) == [0.0, 1.0, 1.0]
    assert sorted(found.predictions[1]) == ["1", "1", "no"]
    assert (len(found), found.failures, found.unanswered) == (3, {}, 0)
    assert found.spread is not None


def test_a_lost_sample_leaves_the_others_their_score() -> None:
    """An example is unanswered when all of its samples are."""
    said: dict[str, list[Any]] = {
        "0": ["0", "0"],
        "1": [ContentFiltered("once"), "1"],
        "2": [ContentFiltered("always")] * 2,
        "3": ["no", "3"],
    }

    def answer(request: Request) -> str:
        given = said[word(request)].pop(0)
        if isinstance(given, Exception):
            raise given
        return str(given)

    found = scores(FunctionModel(answer), 4, repeats=2)
    assert found.scores == (1.0, 1.0, None, 0.5)
    assert found.failures == {"2": "ContentFiltered: always"}
    assert found.unanswered == 3
    assert found.bounds == ((1 + 0.5 + 0 + 0.5) / 4, (1 + 1 + 1 + 0.5) / 4)


def test_more_than_half_of_the_samples_lost_says_nothing() -> None:
    """Samples are what is counted."""
    with pytest.raises(ContentFiltered) as caught:
        scores(echo({"0": ContentFiltered("a"), "1": ContentFiltered("b")}), 3, repeats=2)
    assert "4 of 6 samples went unanswered" in "".join(caught.value.__notes__)


@pytest.mark.parametrize(("temperature", "asked"), [(1.0, 3), (None, 3), (0.0, 1)])
def test_a_program_that_asks_the_same_again_takes_another_sample_from_the_cache(
    tmp_path: Path, temperature: float | None, asked: int
) -> None:
    """A vote over three answers has three answers, and its second run is served from the disk; at 0 one is paid for."""

    class Vote(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.chat = nn.ChatCompletion("{word}", temperature=temperature, model=resolve(model, cache=tmp_path))

        def forward(self, word: str) -> tg.Variable:
            return ops.join([self.chat(word) for _ in range(3)], ",")

    model = FunctionModel(lambda request: str(len(model.requests)))
    model.cache_key = "voting"  # type: ignore[attr-defined]
    rows = [{"word": word, "target": ""} for word in ("a", "b")]
    found = [evaluate(Vote(), rows, nn.ExactMatch()).predictions for _ in range(2)]
    assert len(model.requests) == 2 * asked
    assert all(len(set(str(votes).split(","))) == asked for votes in found[0])
    assert found[1] == found[0]


def test_samples_are_samples_in_the_cache_too(tmp_path: Path) -> None:
    """Each is asked once and kept; the first is the one that an evaluation without repeats has."""
    counter = itertools.count()
    model = FunctionModel(lambda request: f"{word(request)} {next(counter)}")
    model.cache_key = "counting"  # type: ignore[attr-defined]

    def run(repeats: int) -> Evaluation:
        return scores(resolve(model, cache=tmp_path), 2, repeats=repeats)

    first, third = run(1), run(3)
    assert len(model.requests) == 6
    assert [row[0] for row in third.predictions] == list(first.predictions)
    assert len({said for row in third.predictions for said in row}) == 6
    assert run(3) == third
    assert len(model.requests) == 6


def test_a_program_that_samples_has_its_own_samples_in_each_repeat(tmp_path: Path) -> None:
    """Repeats nest: two repeats of a program that asks twice are four answers."""
    counter = itertools.count()
    model = FunctionModel(lambda request: str(next(counter)))
    model.cache_key = "nested"  # type: ignore[attr-defined]
    chat = nn.ChatCompletion("{word}", model=resolve(model, cache=tmp_path))

    def program(word: str) -> str:
        answers = []
        for index in range(2):
            with repeat(index):
                answers.append(chat(word=word))
        return " ".join(str(answer.data) for answer in answers)

    found = evaluate(program, rows(1), nn.ExactMatch(), repeats=2)
    again = evaluate(program, rows(1), nn.ExactMatch(), repeats=2)
    assert len(set(" ".join(found.predictions[0]).split())) == 4
    assert again == found


def test_every_sample_is_told_by_the_place_of_its_example() -> None:
    """A bar over examples times repeats comes to its end."""
    told: list[int] = []
    scores(echo(), 3, repeats=2, on_score=told.append)
    assert sorted(told) == [0, 0, 1, 1, 2, 2]


def test_clusters_are_a_field_of_the_data() -> None:
    """They are named before anything is asked, and go into interval and comparison."""
    model = ScriptedModel([])
    program = nn.ChatCompletion("{word}", model=model)
    with pytest.raises(DataError, match=r"example '1' has no field 'page'.*it has word, target"):
        evaluate(program, [*rows(1, page=1), *rows(1)], nn.ExactMatch(), clusters="page")
    assert model.requests == []
    data = [{**row, "page": 1 + n // 2} for n, row in enumerate(rows(6))]
    found = evaluate(
        nn.ChatCompletion("{word}", model=echo(wrong=("0", "1", "4"))), data, nn.ExactMatch(), clusters="page"
    )
    assert found.clusters == ("1", "1", "2", "2", "3", "3")
    better = evaluate(nn.ChatCompletion("{word}", model=echo()), data, nn.ExactMatch(), clusters="page")
    assert compare(found, better).clusters == 3


@pytest.mark.parametrize("scale", [(1, 5), (0.0, 10.0), None, "1-5", 0.5])
def test_the_scale_is_that_of_the_loss(scale: Any) -> None:
    """A judge's scale bounds what is missing; what only has that name is not taken for one."""

    def loss(prediction: Any, target: Any) -> Any:
        return nn.Metric(lambda said, target: 3.0, "a number")(prediction, target)

    loss.scale = scale  # type: ignore[attr-defined]
    found = evaluate(nn.ChatCompletion("{word}", model=echo()), rows(2), loss)
    assert found.scale == (tuple(map(float, scale)) if scale in ((1, 5), (0.0, 10.0)) else None)


def test_the_largest_number_there_is_stands_for_no_end_of_a_scale() -> None:
    """What is added to the scores at their limits would be all that counts."""
    loss = nn.Metric(lambda said, target: 3.0 + len(said), "a number", scale=(0, sys.float_info.max))
    found = evaluate(nn.ChatCompletion("{word}", model=echo()), rows(11), loss)
    assert found.scale == (0.0, math.inf)
    assert found.interval == (pytest.approx(3.89, abs=0.01), pytest.approx(4.29, abs=0.01))


def test_a_judge_is_shown_what_the_program_was_given() -> None:
    """Whether an answer is right depends on the question; fields that the program does not name are not shown."""
    judge = ScriptedModel([{"score": 1, "explanation": ""}] * 2)
    program = nn.ChatCompletion("{word}", model=echo())
    data = [{"word": "Rome", "note": "secret"}, {"word": "Bonn", "note": "secret"}]
    evaluate(program, data, nn.Judge("Is it a capital?", model=judge))
    shown = sorted(request.messages[-1].text for request in judge.requests)
    for text, name in zip(shown, ("Bonn", "Rome")):
        assert re.search(rf"word:\n<input-\w+>\n{name}\n</input-", text)
        assert "secret" not in text
        assert '{"explanation": "...", "score": a number from 0 to 1}' in text


def test_an_aevaluate_whose_wait_is_cancelled_sends_nothing_more() -> None:
    """What is in flight may end; what is queued is not sent."""
    asked, gate = threading.Event(), threading.Event()

    async def answer(request: Request) -> str:
        asked.set()
        while not gate.is_set():
            await asyncio.sleep(0)
        return "yes"

    model = FunctionModel(answer)
    program = nn.ChatCompletion("{word}", model=resolve(model, max_in_flight=1))

    async def main() -> None:
        waiting = asyncio.ensure_future(aevaluate(program, rows(9), nn.ExactMatch()))
        assert await asyncio.to_thread(asked.wait, 60)
        waiting.cancel()
        asyncio.get_running_loop().call_soon(lambda: asyncio.get_running_loop().call_soon(gate.set))
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await waiting
        assert isinstance(cancelled.value.__cause__, Stopped)

    asyncio.run(main())
    assert len(model.requests) == 1


def test_a_failure_that_is_kept_holds_no_request() -> None:
    """A document that is too long fails with each text of a search: each time 1 MB stayed in memory until its end."""

    class Document(str):
        __slots__ = ("__weakref__",)

    held = []

    def refuse(request: Request) -> str:
        document = Document(word(request))
        held.append(weakref.ref(document))
        if document == "0":
            raise ContextOverflow("too long")
        return document

    objective = Objective(nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.")), nn.ExactMatch(), rows(4))
    model = FunctionModel(refuse)
    with tg.use_models(forward=model):
        assert objective.scores(("Repeat.",), [0, 1, 2, 3], "train") == [None, 1.0, 1.0, 1.0]
    gc.collect()  # what is left is held by the objective
    assert [ref() for ref in held] == [None] * 4
