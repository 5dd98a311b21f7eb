"""Answers of the critic or the optimizer that are not to be had: noted, passed over, and in the end fatal."""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import llm, nn, optim
from textgrad_engine.errors import BadRequest, ConnectionFailed, ModelError
from textgrad_engine.optim.proposers import Rewrite
from textgrad_engine.testing import FunctionModel, simulated_task
from textgrad_engine.train.events import PhaseStarted

ROWS = [{"id": word, "word": word, "target": word.upper()} for word in ("one", "two", "three", "four")]


def fit(respond: Any, **settings: Any) -> tg.TrainResult:
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    with tg.use_models(forward=FunctionModel(respond)):
        trainer = tg.Trainer(**{"batch_size": 2, **settings})
        return trainer.fit(program, nn.ExactMatch(), optim.TGD(program.parameters()), ROWS, ROWS)


def answer(request: llm.Request) -> Any:
    if request.purpose == "backward":
        schema = request.config.response_format
        assert schema is not None
        return {case: {"system": "Say to shout."} for case in schema.json_schema["properties"]}
    if request.purpose == "optimizer":
        return {"edits": [{"op": "add", "line": 1, "text": "Shout.", "reason": "asked", "feedback": [1]}]}
    text = request.messages[-1].text
    return text.upper() if "Shout" in request.messages[0].text else text


def test_one_lost_feedback_is_noted_and_the_step_goes_on() -> None:
    """A filtered ticket costs its own feedback, not the run."""

    def respond(request: llm.Request) -> Any:
        if request.purpose == "backward" and "two" in request.messages[-1].text:
            raise BadRequest("filtered", status=400)
        return answer(request)

    result = fit(respond, max_epochs=1)
    assert result.best_val is not None
    assert result.best_val.mean == 1.0
    problems = [problem for step in result.steps for problem in step.problems]
    assert len(problems) == 1
    assert "ChatCompletionBackward" in problems[0]
    assert "filtered" in problems[0]


def test_a_search_names_the_examples_that_had_no_answer() -> None:
    """Which contract is too long is wanted to be known, whatever optimizes."""

    def respond(request: llm.Request) -> Any:
        if request.purpose == "forward" and request.messages[-1].text == "two":
            raise BadRequest("too long", status=400)
        return answer(request)

    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    with tg.use_models(forward=FunctionModel(respond)):
        result = tg.Trainer(max_steps=4).fit(
            program, nn.ExactMatch(), optim.PatchSearch(program.parameters()), ROWS, ROWS
        )
    lost = [(step.unanswered, step.lost) for step in result.steps if step.unanswered]
    assert lost
    assert set(lost) == {(1, ("two",))}


@pytest.mark.parametrize("order", list(itertools.permutations(("one", "three", "four"))))
def test_lost_feedback_is_noted_in_the_order_of_the_examples(order: tuple[str, ...]) -> None:
    """Whichever was lost first: events are the same in every run."""
    turns = {word: asyncio.Event() for word in order}
    turns[order[0]].set()

    async def respond(request: llm.Request) -> Any:
        if request.purpose == "backward":
            (word,) = [word for word in ("one", "two", "three", "four") if word in request.messages[-1].text.split()]
            if word in turns:
                async with asyncio.timeout(60):
                    await turns[word].wait()
                if (after := order.index(word) + 1) < len(order):
                    turns[order[after]].set()
                raise BadRequest(f"filtered: {word}", status=400)
        return answer(request)

    result = fit(respond, max_epochs=1, batch_size=4)
    (step,) = result.steps
    lost = [name for name in step.examples if name != "two"]
    assert [problem.rpartition(" ")[2] for problem in step.problems] == lost


def test_a_lost_proposal_leaves_the_texts_and_is_noted() -> None:
    """An optimizer that gives no answer once costs one step."""
    asked = []

    def respond(request: llm.Request) -> Any:
        if request.purpose == "optimizer":
            asked.append(request)
            if len(asked) == 1:
                raise BadRequest("too hot", status=400)
        return answer(request)

    result = fit(respond, max_epochs=1)
    assert result.steps[0].changes == ()
    assert "the optimizer gave no answer: BadRequest: too hot" in result.steps[0].problems[0]
    assert result.best["system"] == "Repeat.\nShout."


def test_a_critic_that_never_answers_ends_the_run() -> None:
    """Paying for evaluations that can change nothing is worse than an error."""

    def respond(request: llm.Request) -> Any:
        if request.purpose == "backward":
            raise BadRequest("no such model", status=404)
        return answer(request)

    with pytest.raises(ModelError, match=r"3 steps in a row came to nothing.*no such model"):
        fit(respond, max_epochs=9)


@pytest.mark.parametrize("purpose", ["optimizer", "backward"])
@pytest.mark.parametrize("most", [2, 1000])
def test_lost_proposals_of_a_patch_search_are_no_tries(purpose: str, most: int) -> None:
    """A minibatch that takes all that fails: two lost answers are got over, and one after the other ends the run."""
    lost = []

    def respond(request: llm.Request) -> Any:
        if request.purpose == purpose and len(lost) < most:
            lost.append(request)
            raise BadRequest("too hot", status=400)
        return answer(request)

    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    search = optim.PatchSearch(program.parameters())
    with tg.use_models(forward=FunctionModel(respond)):
        if most > 2:
            with pytest.raises(ModelError, match="3 steps in a row came to nothing"):
                tg.Trainer().fit(program, nn.ExactMatch(), search, ROWS, ROWS)
            return
        result = tg.Trainer().fit(program, nn.ExactMatch(), search, ROWS, ROWS)
    assert [step.kept for step in result.steps[:3]] == [False, False, True]
    assert result.best["system"] == "Repeat.\nShout."


@pytest.mark.parametrize("lost", ["one round", "the critic", "the optimizer"])
def test_answers_that_are_lost_at_one_moment_count_once(lost: str) -> None:
    """A beam's round is many steps, of requests that were sent together; one round lost is no search at its end."""
    asked = {"backward": 0, "optimizer": 0}

    def respond(request: llm.Request) -> Any:
        if request.purpose in asked:
            asked[request.purpose] += 1
            first = request.purpose == "backward" and asked["backward"] <= 4
            if first if lost == "one round" else request.purpose == {"the critic": "backward"}.get(lost, "optimizer"):
                raise BadRequest("too hot", status=400)
        schema = {} if request.config.response_format is None else request.config.response_format.json_schema
        if request.purpose == "optimizer":
            texts = {name: f"Repeat. {sum(asked.values())}" for name in schema["properties"]}
            return texts | ({"reason": "asked"} if "reason" in texts else {})
        return answer(request)

    rows = [{"word": f"w{n}", "target": f"W{n}"} for n in range(16)]
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    search = optim.BeamSearch(program.parameters(), beam=1, errors=1)
    with tg.use_models(forward=FunctionModel(respond)):
        if lost == "one round":
            result = tg.Trainer().fit(program, nn.ExactMatch(), search, rows, rows)
            first = [step for step in result.steps if step.problems]
            assert len(first) > 3
            assert result.status == "finished"
        else:
            with pytest.raises(ModelError, match=r"3 rounds of steps in a row came to nothing.*too hot"):
                tg.Trainer().fit(program, nn.ExactMatch(), search, rows, rows)


@pytest.mark.parametrize(("lanes", "most", "ends"), [(4, 4, False), (4, 1000, True), (1, 1000, True)])
def test_lanes_that_lose_their_answers_at_one_moment_count_once(lanes: int, most: int, ends: bool) -> None:
    """As a beam's round does; of a search with one lane each step is a round."""
    task = tg.testing.simulated_task(rules=12, train=100, val=100, test=1, seed=3)
    lost = []

    async def respond(request: llm.Request) -> Any:
        if request.purpose == "optimizer" and len(lost) < most:
            lost.append(request)
            raise BadRequest("too hot", status=400)
        return await task.model.complete(request)

    program = task.program()
    search = optim.PatchSearch(program.parameters(), lanes=lanes)
    with tg.use_models(forward=FunctionModel(respond)):
        if ends:
            with pytest.raises(ModelError, match=r"3 (rounds of )?steps in a row came to nothing.*too hot"):
                tg.Trainer().fit(program, task.loss, search, task.train, task.val)
            return
        result = tg.Trainer(max_steps=12).fit(program, task.loss, search, task.train, task.val)
    assert [bool(step.problems) for step in result.steps[:3]] == [True] * 3
    assert result.status == "finished"
    assert result.best != result.seed


def refusing(setting: str) -> BadRequest:
    """What an endpoint says of a setting that it does not take."""
    error = BadRequest(f"Unsupported parameter: {setting}", status=400)
    error.setting = setting
    return error


@pytest.mark.parametrize("purpose", ["backward", "optimizer"])
@pytest.mark.parametrize("name", ["TGD", "PatchSearch", "ParetoSearch", "BeamSearch"])
def test_a_setting_that_is_refused_amid_a_run_ends_it_at_once(name: str, purpose: str, tmp_path: Path) -> None:
    """Each further round would be refused alike; resumed with the setting left out, it is a whole run."""
    task = simulated_task(rules=6, train=24, val=12, seed=3)
    refused: list[Any] = []

    def model(taken: bool) -> llm.Model:
        async def respond(request: llm.Request) -> Any:
            if request.purpose == purpose and not taken:
                refused.append(request)
                raise refusing("seed")
            return await task.model.complete(request)

        return FunctionModel(respond, name=task.model.name)

    def run(taken: bool, **settings: Any) -> tg.TrainResult:
        program = task.program()
        length = {"max_epochs": 1, "batch_size": 6} if name == "TGD" else {"max_steps": 6}
        short = {"errors": 1, "gradients": 1, "paraphrases": 1} if name == "BeamSearch" else {}
        with tg.use_models(forward=model(taken)):
            search = getattr(optim, name)(program.parameters(), **short)
            trainer = tg.Trainer(**length, **settings)
            return trainer.fit(program, task.loss, search, task.train, task.val)

    whole = run(True)
    with pytest.raises(BadRequest, match="Unsupported parameter: seed") as caught:
        run(False, run_dir=tmp_path)
    assert caught.value.setting == "seed"
    assert any("this made step 1 fail, as it would each later one" in note for note in caught.value.__notes__)
    assert tg.store.read_run(tmp_path).steps == ()
    again = run(True, run_dir=tmp_path, resume=True)
    assert (again.best, again.best_val, again.status) == (whole.best, whole.best_val, "finished")


def test_a_setting_that_one_request_alone_may_have_wrong_counts_as_any_lost_answer() -> None:
    """The form of an answer differs from request to request, so that another one may be taken."""
    asked = []

    def respond(request: llm.Request) -> Any:
        if request.purpose == "optimizer":
            asked.append(request)
            if len(asked) == 1:
                raise refusing("response_format")
        return answer(request)

    result = fit(respond, max_epochs=1)
    assert "response_format" in result.steps[0].problems[0]
    assert result.best["system"] == "Repeat.\nShout."


SEARCHES: dict[str, Callable[..., optim.Searcher]] = {
    "OPRO": functools.partial(optim.OPRO, per_round=1),
    "ParetoSearch": optim.ParetoSearch,
}


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_whose_texts_never_get_an_answer_ends_the_run(name: str) -> None:
    """One text that breaks the program is a proposal lost; one after the other is no search any more."""
    asked = []

    def respond(request: llm.Request) -> Any:
        if request.purpose == "forward" and "BREAK" in request.messages[0].text:
            raise BadRequest("filtered", status=400)
        if request.purpose == "backward":
            return {case: {"system": "Shout."} for case in request.config.response_format.json_schema["properties"]}
        if request.purpose == "optimizer":
            asked.append(request)
            return {"text": f"BREAK {len(asked)}", "reason": "asked"}
        return request.messages[-1].text

    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    search = SEARCHES[name](program.parameters())
    with (
        tg.use_models(forward=FunctionModel(respond)),
        pytest.raises(ModelError, match=r"3 steps in a row came to nothing.*filtered"),
    ):
        tg.Trainer(max_steps=9).fit(program, nn.ExactMatch(), search, ROWS, ROWS)
    assert len(asked) == 3


@pytest.mark.parametrize("name", ["OPRO", "RandomSearch"])
def test_a_search_without_a_critic_goes_on_where_its_optimizer_gives_no_answer_now_and_then(name: str) -> None:
    """What it was answered before counts, as what a critic says does."""
    asked = []

    def respond(request: llm.Request) -> Any:
        if request.purpose != "optimizer":
            return request.messages[-1].text
        asked.append(request)
        if len(asked) in (2, 3, 4):
            raise BadRequest("filtered", status=400)
        return {"text": f"Repeat {len(asked)}.", "reason": "asked"}

    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    made = {"OPRO": SEARCHES["OPRO"], "RandomSearch": functools.partial(optim.RandomSearch, proposer=Rewrite())}
    with tg.use_models(forward=FunctionModel(respond)):
        search = made[name](program.parameters())
        result = tg.Trainer(max_steps=6).fit(program, nn.ExactMatch(), search, ROWS, ROWS)
    assert [bool(step.problems) for step in result.steps] == [False, True, True, True, False, False]


def is_gone() -> ModelError:
    """What an endpoint says of a model that was taken away from it."""
    error = BadRequest("no such model: the network is down to none", status=404)
    error.setting = "model"
    return error


@pytest.mark.parametrize("failure", [lambda: ConnectionFailed("the network is down"), is_gone])
@pytest.mark.parametrize("name", ["TGD", "PatchSearch", "ParetoSearch", "BeamSearch", "OPRO", "BootstrapDemos"])
def test_an_endpoint_that_goes_down_ends_a_run_which_is_resumed_then(
    name: str, failure: Callable[[], ModelError], tmp_path: Path
) -> None:
    """Were its steps lost one after the other, it would be finished, and nothing would ever ask for them again."""
    down = {"BeamSearch": 80, "BootstrapDemos": 80}.get(name, 45)
    task = simulated_task(rules=6, train=24, val=12, seed=3)
    most = {"BeamSearch": 24, "OPRO": 10}
    short = {  # so that three rounds that are lost are within those steps
        "BeamSearch": {"errors": 1, "gradients": 1, "paraphrases": 1},
        "OPRO": {"per_round": 2},
    }

    def dropping() -> llm.Model:
        asked = 0

        async def answer(request: llm.Request) -> llm.Completion:
            nonlocal asked
            asked += 1
            if asked > down:
                raise failure()
            return await task.model.complete(request)

        once = llm.RetryPolicy(max_attempts=1)
        return llm.resolve(FunctionModel(answer, name=task.model.name), policy=once)

    def run(model: Any, **settings: Any) -> tg.TrainResult:
        program = task.program()
        length = {"max_epochs": 3, "batch_size": 6} if name == "TGD" else {"max_steps": most.get(name, 14)}
        with tg.use_models(forward=model):
            trainer = tg.Trainer(**length, **settings)
            search = getattr(optim, name)(program.parameters(), **short.get(name, {}))
            return trainer.fit(program, task.loss, search, task.train, task.val)

    whole = run(task.model)
    with pytest.raises(ModelError, match=r"the network is down|no answer was to be had"):
        run(dropping(), run_dir=tmp_path)
    again = run(task.model, run_dir=tmp_path, resume=True)
    assert (again.best, again.best_val, again.status) == (whole.best, whole.best_val, "finished")
    assert whole.total.calls > down


class Phases(tg.train.Callback):
    """Notes which phase a run is in."""

    now: tuple[str, int] = ("", 0)

    def on_event(self, event: Any) -> None:
        if isinstance(event, PhaseStarted):
            self.now = event.phase, event.step


def is_nowhere() -> ModelError:
    """What a gateway says of any address while it is restarted."""
    error = BadRequest("no such model", status=404)
    error.unserved = True
    return error


@pytest.mark.parametrize("failure", [lambda: ConnectionFailed("no such model"), is_gone, is_nowhere])
@pytest.mark.parametrize(("name", "phase"), [("TGD", "test"), ("PatchSearch", "test"), ("PatchSearch", "validate")])
def test_a_model_that_is_gone_at_the_end_of_a_run_leaves_its_end_to_be_resumed(
    name: str, phase: str, failure: Callable[[], ModelError], tmp_path: Path
) -> None:
    """It says nothing of the texts that were found; the run was finished without scores, or with the seed texts."""
    task = simulated_task(rules=6, train=24, val=96, test=12, seed=3)

    def run(gone: bool, folder: Path, **settings: Any) -> tg.TrainResult:
        program, phases = task.program(), Phases()

        async def answer(request: llm.Request) -> llm.Completion:
            if gone and phases.now[0] == phase and phases.now[1] > (0 if phase == "validate" else -1):
                raise failure()
            return await task.model.complete(request)

        model = llm.resolve(FunctionModel(answer, name=task.model.name), policy=llm.RetryPolicy(max_attempts=1))
        with tg.use_models(forward=model):
            trainer = tg.Trainer(max_steps=3, callbacks=[phases], run_dir=folder, **settings)
            search = getattr(optim, name)(program.parameters())
            return trainer.fit(program, task.loss, search, task.train, task.val, task.test)

    whole = run(False, tmp_path / "whole")
    with pytest.raises(type(failure()), match="no such model"):
        run(True, tmp_path / "cut")
    again = run(False, tmp_path / "cut", resume=True)
    assert (again.best, again.best_val, again.best_test) == (whole.best, whole.best_val, whole.best_test)
    assert again.best_test is not None
