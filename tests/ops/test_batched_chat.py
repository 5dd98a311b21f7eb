from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import Variable, dispatch, func, nn, ops
from textgrad_engine.errors import AutogradError, BadRequest
from textgrad_engine.llm import Request
from textgrad_engine.testing import FunctionModel, ScriptedModel

from ..values import said, wanting

MESSAGES = [{"role": "user", "content": "Sort {ticket}."}]


def critic(request: Request) -> Any:
    """For each input its key and the number of the ticket."""
    cases = request.config.response_format.json_schema["properties"]
    number = re.findall(r"Sort (?:<\w+-\w+>)?(\d)", request.messages[-1].text)[0]
    return {case: {key: f"{key}:{number}" for key in schema["properties"]} for case, schema in cases.items()}


def program(request: Request) -> Any:
    return critic(request) if request.purpose == "backward" else request.messages[-1].text[5:-1].upper()


def asked(model: FunctionModel, purpose: str) -> list[Request]:
    return [request for request in model.requests if request.purpose == purpose]


# what does not fit


def test_batches_of_different_sizes_are_refused_and_both_are_named() -> None:
    """Nothing is sent: which entry belongs to which cannot be guessed."""
    model = ScriptedModel([])
    messages = [{"role": "user", "content": "{ticket} {queue}"}]
    for queue in (["x", "y", "z"], Variable(["x", "y", "z"])):
        with pytest.raises(ValueError, match=r"the value of \{ticket\} has 2 entries, the value of \{queue\} has 3"):
            ops.chat_completion(model, messages, {"ticket": Variable(["a", "b"]), "queue": queue})
    with pytest.raises(ValueError, match=r"\{ticket\} has 2 entries, the system message has 3"):
        ops.chat_completion(
            model, [{"role": "system", "content": Variable(["x", "y", "z"])}, *MESSAGES], {"ticket": ["a", "b"]}
        )
    chat = nn.ChatCompletion("{ticket} {queue}", model=model)
    with pytest.raises(ValueError, match=r"ChatCompletion: .* 2 entries, .* 1"):
        chat(ticket=["a", "b"], queue=["x"])
    assert model.requests == []


def test_a_batch_that_only_shows_when_it_is_there_is_refused() -> None:
    """A list must never be put into a prompt as Python prints it; the message says the repair."""

    gate = asyncio.Event()

    class Later(tg.Function):
        @staticmethod
        async def forward(ctx: Any) -> Any:
            await gate.wait()
            return Variable(["a", "b"], role="tickets")

    model = ScriptedModel([])
    answer = ops.chat_completion(model, MESSAGES, {"ticket": Later.apply()})
    dispatch.call_soon(gate.set)
    with pytest.raises(ValueError, match=r"the value of \{ticket\} is a batch of 2 entries, and that was not known"):
        _ = answer.data
    tickets = Later.apply()
    assert tickets.data == ["a", "b"]
    model = FunctionModel(program)
    assert ops.chat_completion(model, MESSAGES, {"ticket": tickets}).data == ["A", "B"]


def test_a_batch_inside_a_batch_is_refused() -> None:
    """There is one batch axis; a nested one is for vmap."""
    model = ScriptedModel([])
    answer = ops.chat_completion(model, MESSAGES, {"ticket": Variable([["a", "b"], ["c", "d"]])})
    with pytest.raises(ValueError, match="is a batch of 2 entries"):
        _ = answer.data
    assert model.requests == []


def test_one_entry_that_fails_fails_the_batch_with_its_error() -> None:
    """What is read is the endpoint's error, and a pass through the batch leaves nothing behind."""

    def answer(request: Request) -> Any:
        if "b" in request.messages[-1].text:
            raise BadRequest("no such thing", status=400)
        return "fine"

    prompt = wanting("Sort.", "prompt")
    batch = ops.chat_completion(
        FunctionModel(answer), [{"role": "system", "content": prompt}, *MESSAGES], {"ticket": ["a", "b", "c"]}
    )
    with pytest.raises(BadRequest, match="no such thing"):
        _ = batch.data
    with pytest.raises(BadRequest, match="no such thing"):
        batch.backward("wrong")
    assert prompt.grad == []


# forward


@pytest.mark.parametrize("tickets", [["a", "b", "c"], Variable(["a", "b", "c"]), [Variable("a"), "b", Variable("c")]])
def test_one_call_for_each_entry_run_together_in_order(tickets: Any) -> None:
    """The answers stand in the order of the entries, whichever comes first."""
    order: list[str] = []
    turns = {text: asyncio.Event() for text in "ABC"}

    async def answer(request: Request) -> str:
        text = program(request)
        if model.in_flight == 3:
            turns["C"].set()
        await turns[text].wait()
        order.append(text)
        if text != "A":
            turns[chr(ord(text) - 1)].set()
        return text

    model = FunctionModel(answer)
    batch = ops.chat_completion(model, MESSAGES, {"ticket": tickets}, role="queue")
    assert (batch.data, batch.role) == (["A", "B", "C"], "queue")
    assert order == ["C", "B", "A"]
    assert model.peak == 3


def test_a_batch_of_one_is_a_batch_and_an_empty_one_costs_nothing() -> None:
    """The shape of the answer is that of the input."""
    assert ops.chat_completion(ScriptedModel(["x"]), MESSAGES, {"ticket": ["a"]}).data == ["x"]
    assert ops.chat_completion(ScriptedModel(["x"]), MESSAGES, {"ticket": wanting(["a"])}).data == ["x"]
    assert ops.chat_completion(ScriptedModel([]), MESSAGES, {"ticket": []}).data == []
    assert ops.chat_completion(ScriptedModel([]), MESSAGES, {"ticket": wanting([])}).data == []


def test_single_values_are_the_same_for_all_entries() -> None:
    """Beside a batch, a text goes into every call; a Variable in a message may be the batch."""
    model = FunctionModel(lambda request: " ".join(message.text for message in request.messages))
    answer = ops.chat_completion(
        model,
        [{"role": "system", "content": ["Be ", Variable(["kind", "brief"]), "."]}, *MESSAGES],
        {"ticket": Variable("it")},
    )
    assert answer.data == ["Be kind. Sort it.", "Be brief. Sort it."]


def test_calls_on_batches_in_a_row_do_not_wait_for_each_other() -> None:
    """The second is made while the first is under way, also with an addition in between."""
    gate = asyncio.Event()

    async def answer(request: Request) -> str:
        await gate.wait()
        return program(request)

    model = FunctionModel(answer)
    first = ops.chat_completion(model, MESSAGES, {"ticket": ["a", "b"]})
    second = ops.chat_completion(model, MESSAGES, {"ticket": first + "!"})
    assert not first.done()
    assert not second.done()

    dispatch.call_soon(gate.set)
    assert second.data == ["A!", "B!"]


# backward


def test_feedback_is_a_list_and_empty_entries_cost_no_call() -> None:
    """The prompt gets one feedback an entry, in order; the batch gets one list, with "" for a zero."""
    model = FunctionModel(program)
    with tg.use_models(forward=model):
        prompt, tickets = wanting("Sort {ticket}.", "prompt"), wanting(["1", "2", "3"], "tickets")
        answer = ops.chat_completion(None, [{"role": "user", "content": prompt}], {"ticket": tickets})
        answer.backward(["wrong", "", "too long"])
    assert said(prompt) == ["user:1", "user:3"]
    assert said(tickets) == [["ticket:1", "", "ticket:3"]]
    first, second = sorted(asked(model, "backward"), key=lambda request: "wrong" not in request.messages[-1].text)
    assert "wrong" in first.messages[-1].text
    assert "too long" not in first.messages[-1].text
    assert "too long" in second.messages[-1].text


def test_feedback_of_nothing_costs_nothing() -> None:
    """A list of empty texts is a true zero."""
    model = FunctionModel(program)
    with tg.use_models(forward=model):
        prompt = wanting("Sort {ticket}.", "prompt")
        answer = ops.chat_completion(None, [{"role": "user", "content": prompt}], {"ticket": ["1", "2"]})
        answer.backward(["", ""])
    assert (prompt.grad, asked(model, "backward")) == ([], [])


def test_one_text_as_feedback_is_about_every_entry() -> None:
    """What is said about the batch is said about each."""
    model = FunctionModel(program)
    with tg.use_models(forward=model):
        prompt = wanting("Sort {ticket}.", "prompt")
        ops.chat_completion(None, [{"role": "user", "content": prompt}], {"ticket": ["1", "2"]}).backward("rude")
    assert said(prompt) == ["user:1", "user:2"]


def test_a_variable_in_two_places_is_asked_about_once() -> None:
    """As without a batch: it is one input."""
    model = FunctionModel(program)
    with tg.use_models(forward=model):
        tickets = wanting(["1", "2"], "tickets")
        answer = ops.chat_completion(
            None, [{"role": "system", "content": tickets}, {"role": "user", "content": "Sort {a}{b}"}],
            {"a": tickets, "b": tickets},
        )  # fmt: skip
        answer.backward(["x", "y"])
    assert said(tickets) == [["a:1", "a:2"]]


def test_it_is_the_loop_request_by_request_and_feedback_by_feedback() -> None:
    """The law of all batches."""
    tickets = ["1", "2", "3"]
    results = []
    for batched in (True, False):
        model = FunctionModel(program)
        with tg.use_models(forward=model):
            prompt = nn.Parameter("Sort {ticket}.", role="prompt")
            chat = nn.ChatCompletion(prompt)
            if batched:
                chat(ticket=tickets).backward(["f", "", "g"])
            else:
                tg.backward([chat(ticket=ticket) for ticket in tickets], ["f", "", "g"])
        results.append((said(prompt), sorted(request.model_dump_json() for request in model.requests)))
    assert results[0] == results[1]


def test_entries_may_share_feedback_calls() -> None:
    """`feedback_batch_size` counts entries, as it counts examples of a loop."""
    model = FunctionModel(program)
    with tg.use_models(forward=model), ops.feedback_batch_size(2):
        prompt = wanting("Sort {ticket}.", "prompt")
        answer = ops.chat_completion(None, [{"role": "user", "content": prompt}], {"ticket": ["1", "2", "3"]})
        answer.backward(["f", "g", "h"])
    assert len(asked(model, "backward")) == 2
    assert len(prompt.grad) == 3


# together with evaluators and transforms


def test_evaluators_take_the_batch_and_send_feedback_to_what_is_wrong() -> None:
    """Only the wrong entries cost a critic call."""
    losses = (
        lambda answer: ops.exact_match_evaluator(answer, ["1", "9", "3"])[0],
        lambda answer: ops.deterministic_evaluator(answer, ["1", "9", "3"], lambda a, b: a == b, "equality")[0],
        lambda answer: nn.Metric(lambda a, b: float(a == b), "equality")(answer, ["1", "9", "3"]),
    )
    for loss in losses:
        model = FunctionModel(program)
        with tg.use_models(forward=model):
            prompt = nn.Parameter("Sort {ticket}.", role="prompt")
            score = loss(nn.ChatCompletion(prompt)(ticket=["1", "2", "3"]))
            assert score.data == 2
            score.backward()
        assert said(prompt) == ["user:2"]
        assert len(asked(model, "backward")) == 1


def test_func_grad_goes_through_a_batch() -> None:
    """With a tape of its own; the prompt's gradient joins the entries."""
    model = FunctionModel(program)
    with tg.use_models(forward=model):

        def loss(prompt: Variable) -> Variable:
            answer = ops.chat_completion(None, [{"role": "user", "content": prompt}], {"ticket": ["1", "2", "3"]})
            return ops.exact_match_evaluator(answer, ["1", "x", "y"])[0]

        assert func.grad(loss)("Sort {ticket}.").data == "user:2\nuser:3"


def test_batches_in_a_row_inside_transforms_are_known_before_they_are_there() -> None:
    """A value of a transform stands for a batch that is still computed."""
    model = FunctionModel(program)
    with tg.use_models(forward=model):

        def answers(prompt: Variable) -> Variable:
            first = ops.chat_completion(None, [{"role": "user", "content": prompt}], {"ticket": ["1", "2"]})
            return ops.chat_completion(None, [{"role": "user", "content": prompt}], {"ticket": first + ""})

        def loss(prompt: Variable) -> Variable:
            return ops.exact_match_evaluator(answers(prompt), ["1", "x"])[0]

        assert func.grad(loss)("Sort {ticket}.").data.startswith("user:2")
        assert func.vmap(answers)(["Sort {ticket}.", "Sort {ticket}!"]).data == [["1", "2"], ["1", "2"]]


def test_vmap_over_prompts_with_a_batch_inside() -> None:
    """Candidates by examples: each prompt meets every entry."""
    model = FunctionModel(lambda request: request.messages[-1].text)
    with tg.use_models(forward=model):

        def answers(prompt: Variable, tickets: Variable) -> Variable:
            return ops.chat_completion(None, [{"role": "user", "content": prompt}], {"ticket": tickets})

        both = func.vmap(answers, in_dims=(0, None))(["Sort {ticket}", "File {ticket}"], Variable(["1", "2"]))
        assert both.data == [["Sort 1", "Sort 2"], ["File 1", "File 2"]]
        own = func.vmap(answers)(["Sort {ticket}", "File {ticket}"], [["1", "2"], ["3", "4"]])
        assert own.data == [["Sort 1", "Sort 2"], ["File 3", "File 4"]]


def assigned(batch: Variable) -> None:
    with tg.no_grad():
        batch.data = ["3", "4"]


@pytest.mark.parametrize(
    "use",
    [
        lambda batch: ops.chat_completion(None, MESSAGES, {"ticket": batch}),
        lambda batch: func.vmap(lambda one: ops.chat_completion(None, MESSAGES, {"ticket": one}))(batch),
        lambda batch: func.vmap(lambda one: ops.add(one, "!"))(batch),
        lambda batch: func.vmap(func.vmap(lambda one: ops.add(one, "!")))([batch]),
    ],
)
@pytest.mark.parametrize("edit", [assigned, lambda batch: batch.data.append("3"), lambda batch: batch.data.reverse()])
def test_a_batch_that_was_edited_after_its_use_is_refused(use: Any, edit: Any) -> None:
    """As a single text is: the feedback would be about texts that are no longer there."""
    with tg.use_models(forward=FunctionModel(program)):
        batch = wanting(["1", "2"], "tickets")
        result = use(batch)
        assert result.data
        edit(batch)
        with pytest.raises(AutogradError, match=r"'tickets' was (changed|edited) after it was used"):
            result.backward("too short")
        assert batch.grad == []
