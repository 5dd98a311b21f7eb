"""Python functions as tools: a chat completion runs what the model calls, and its critic is shown every turn."""

from __future__ import annotations

import copy
import dataclasses
import functools
import json
import logging
import pickle
import sys
import traceback
from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest
from typing_extensions import TypedDict  # on Python 3.11 pydantic wants this one

import textgrad_engine as tg
from textgrad_engine import func, llm, nn, ops
from textgrad_engine.errors import BudgetExceeded, ReturnError
from textgrad_engine.llm import Completion, Request
from textgrad_engine.testing import FunctionModel, ScriptedModel, feedback_for

PRICES = {"hat": 7, "sock": 2}


def price(item: str, currency: Literal["euro", "dollar"] = "euro") -> dict[str, Any]:
    """What an item costs."""
    return {"item": item, "price": PRICES[item], "currency": currency}


def call(name: str = "price", text: str = "", number: int = 1, **arguments: Any) -> Completion:
    """An answer with one tool call."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    called = ({"id": f"call_{number}", "type": "function", "function": function},)
    return Completion(text=text, finish_reason="tool_calls", tool_calls=called)


def ask(model: Any, **more: Any) -> tg.Variable:
    prompt = tg.Variable("Use the tools.", role="system prompt", requires_grad=True)
    messages = [{"role": "system", "content": prompt}, {"role": "user", "content": "What is a hat?"}]
    return ops.chat_completion(model, messages, tools=more.pop("tools", [price]), **more)


def told(request: Request) -> str:
    return request.messages[-1].text


def test_a_model_of_ones_own_that_calls_in_another_shape_is_told_of_the_one_there_is() -> None:
    """The call came to nothing, as of a tool without a name, and only the model was told."""
    plain = Completion(text="", tool_calls=({"name": "price", "arguments": {"item": "hat"}},))
    for model in (ScriptedModel([plain, "7 euro"]), FunctionModel(lambda request: plain)):
        with pytest.raises(
            ReturnError, match=r"gave the tool call \{'name': 'price', .* OpenAI's shape, \{'id': 'call"
        ):
            _ = ask(model).data
        assert len(model.requests) == 1


def test_what_the_model_calls_is_run_and_told_to_it() -> None:
    """It is described by its signature and docstring; its result is JSON, and the call that it answers is named."""
    model = ScriptedModel([call(item="hat", text="Let me look."), "7 euro"])
    assert ask(model).data == "7 euro"
    first, second = model.requests
    (described,) = first.config.tools or ()
    assert described["function"]["description"] == "What an item costs."
    assert described["function"]["parameters"]["required"] == ["item"]
    assert described["function"]["parameters"]["properties"]["currency"]["enum"] == ["euro", "dollar"]
    assert [message.role for message in second.messages] == ["system", "user", "assistant", "tool"]
    assert second.messages[2].text == "Let me look."
    assert second.messages[3].tool_call_id == "call_1"
    assert json.loads(told(second)) == {"item": "hat", "price": 7, "currency": "euro"}


def test_several_calls_of_a_turn_are_answered_in_order() -> None:
    """Each by its id."""
    both = call(item="hat").tool_calls + call(item="sock", number=2).tool_calls
    model = ScriptedModel([Completion(text="", finish_reason="tool_calls", tool_calls=both), "9"])
    assert ask(model).data == "9"
    assert [message.tool_call_id for message in model.requests[1].messages[-2:]] == ["call_1", "call_2"]
    assert '"price":2' in told(model.requests[1])


async def later(item: str) -> str:
    """What an item costs, asked elsewhere."""
    return f"{PRICES[item]} euro"


def test_an_async_function_is_a_tool_too() -> None:
    """It is awaited; a text is told as it is."""
    model = ScriptedModel([call("later", item="sock"), "2"])
    assert ask(model, tools=[later]).data == "2"
    assert told(model.requests[1]) == "2 euro"


@pytest.mark.parametrize(
    ("called", "problem"),
    [
        (call(item="shoe"), "KeyError: 'shoe'"),
        (call(item="hat", currency="mark"), "currency: Input should be 'euro' or 'dollar'"),
        (call(item="hat", colour="red"), "colour: Extra inputs are not permitted"),
        (call("weather"), "there is no tool 'weather', there are ['price']"),
    ],
)
def test_a_call_that_comes_to_nothing_is_told_to_the_model(called: Completion, problem: str) -> None:
    """So that it can call otherwise; the run goes on."""
    model = ScriptedModel([called, call(item="hat"), "7"])
    assert ask(model).data == "7"
    assert told(model.requests[1]).startswith("The call came to nothing: ")
    assert problem in told(model.requests[1])


@pytest.mark.parametrize(
    ("called", "most", "end"),
    [
        (call(**{f"field{n}": 1 for n in range(5000)}), 600, "; and 4,991 more"),
        (call(**{"x" * 100_000: 1}), 400, "x: Extra inputs are not permitted"),
        (call("x" * 100_000), 400, ", there are ['price']"),
    ],
    ids=["fields", "field", "name"],
)
def test_a_call_without_end_costs_no_request_without_end(called: Completion, most: int, end: str) -> None:
    """A model that lost the thread is told enough to call otherwise, and what it is told is paid for once more."""
    model = ScriptedModel([called, "7"])
    assert ask(model).data == "7"
    assert len(told(model.requests[1])) < most
    assert told(model.requests[1]).endswith(end)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        ({"name": "later", "arguments": {"item": "hat"}}, "7 euro"),
        ({"name": ["later"], "arguments": "{}"}, "The call came to nothing: there is no tool \"['later']\""),
        ({"name": "later", "arguments": "[" * 100_000}, "The call came to nothing: arguments: Invalid JSON"),
        (None, "The call came to nothing: there is no tool ''"),
    ],
)
def test_a_call_that_is_not_in_openais_shape_costs_a_turn_at_most(function: Any, text: str) -> None:
    """Some endpoints give arguments as objects."""
    called = ({"id": "call_1", "type": "function", "function": function},)
    model = ScriptedModel([Completion(text="", finish_reason="tool_calls", tool_calls=called), "7"])
    assert ask(llm.resolve(model), tools=[later]).data == "7"
    assert told(model.requests[1]).startswith(text)


def test_the_first_failure_of_each_kind_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """It may be a mistake in the tool, which would else be seen in a low score only; in a loop once, too."""

    def size(item: str) -> int:
        """How large an item is."""
        return PRICES[item]

    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            answers = [call("size", item="shoe"), call("size", item="boot"), "none"]
            assert ask(ScriptedModel(answers), tools=[size]).data == "none"
    assert [record.getMessage() for record in caplog.records] == [
        "the tool size raised KeyError: \"'shoe'\"; the model is told, each time"
    ]


def test_the_log_obeys_nothing_that_a_failure_quotes(caplog: pytest.LogCaptureFixture) -> None:
    """A page that a tool has read could clear the screen, or write a line of the log."""

    def fetch(item: str) -> str:
        """What a page holds."""
        raise ValueError("\x1b[2J\nWARNING all is well " + 10_000 * "!")

    with caplog.at_level(logging.WARNING):
        assert ask(ScriptedModel([call("fetch", item="x"), "none"]), tools=[fetch]).data == "none"
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("the tool fetch raised ValueError: '\\x1b[2J\\nWARNING all is well !")
    assert said.isprintable()
    assert len(said) < 600


def test_what_ends_a_run_ends_it_in_a_tool_too() -> None:
    """A budget that is spent is not a problem of the model's."""

    def broke(item: str) -> str:
        raise BudgetExceeded("spent")

    with pytest.raises(BudgetExceeded):
        ask(ScriptedModel([call("broke", item="hat")]), tools=[broke]).data  # noqa: B018


def leaves(item: str) -> str:
    """Ends the program."""
    sys.exit(3)


async def leaves_later(item: str) -> str:
    """Ends the program, too."""
    sys.exit(3)


@pytest.mark.parametrize("tool", [leaves, leaves_later])
def test_a_tool_that_ends_the_program_does_not_end_the_event_loop(tool: Any) -> None:
    """Its error is that of the call; nobody would have come to anything any more."""
    with pytest.raises(SystemExit):
        ask(ScriptedModel([call(tool.__name__, item="hat")]), tools=[tool]).data  # noqa: B018
    assert ask(ScriptedModel(["7"])).data == "7"


def passed_on(function: Any) -> Any:
    @functools.wraps(function)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return decorated


def asks(item: str) -> tg.Variable:
    """Another model's answer."""
    return ops.chat_completion(ScriptedModel(["7"]), [{"role": "user", "content": item}])


async def asks_later(item: str) -> tg.Variable:
    """The same."""
    return asks(item)


def asks_among_others(item: str) -> dict[str, Any]:
    """The same, with its name."""
    return {item: asks(item)}


async def in_pieces(item: str) -> AsyncIterator[Any]:
    """What an item is, and what it costs."""
    yield item
    yield PRICES[item]


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        (passed_on(later), "7 euro"),
        (asks, "7"),
        (asks_later, "7"),
        (passed_on(asks_later), "7"),
        (asks_among_others, '{"hat":"7"}'),
        (in_pieces, '["hat",7]'),
        (passed_on(in_pieces), '["hat",7]'),
    ],
)
def test_what_a_tool_gives_is_waited_for(tool: Any, text: str) -> None:
    """A coroutine of what decorates an `async` function, and answers of models."""
    model = ScriptedModel([call(tool.__name__, item="hat"), "7"])
    assert ask(model, tools=[tool]).data == "7"
    assert told(model.requests[1]) == text


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({1: {b"\xff"}}, "The call came to nothing: PydanticSerializationError: "),
        ((n for n in ["one", 1 / 2, b"\xff"]), "The call came to nothing: "),
        ("x" * 5_000_001, "The call came to nothing: it gave 5,000,001 characters, and 5,000,000 are the most"),
        ("file \udcff", "file ?"),
        ({"files": ["a", "b\udcff"]}, '{"files":["a","b?"]}'),
        ([b"caf\xe9", bytearray(b"bar")], '["caf\ufffd","bar"]'),
    ],
)
def test_what_cannot_be_sent_is_told_to_the_model(given: Any, text: str) -> None:
    """It had ended the run; and a list of files came to nothing for half a character in one of their names."""

    def gives(item: str) -> Any:
        """Something."""
        return given

    model = ScriptedModel([call("gives", item="hat"), "7"])
    assert ask(model, tools=[gives]).data == "7"
    assert told(model.requests[1]).startswith(text)


def odd(schema: str, _json: int, model_config: str = "x", copy: str = "y") -> str:
    """Arguments called as what pydantic models have."""
    return f"{schema} {_json} {model_config} {copy}"


@pytest.mark.filterwarnings("error")
def test_arguments_may_have_any_name() -> None:
    """The model is told all of them, and problems name them."""
    model = ScriptedModel([call("odd", schema="a", _json="b"), call("odd", schema="a", _json=1, copy="c"), "7"])
    assert ask(model, tools=[odd]).data == "7"
    (described,) = model.requests[0].config.tools or ()
    assert list(described["function"]["parameters"]["properties"]) == ["schema", "_json", "model_config", "copy"]
    assert "_json: Input should be a valid integer" in told(model.requests[1])
    assert told(model.requests[2]) == "a 1 x c"


@dataclasses.dataclass
class Basket:
    item: str
    pieces: int = 1


class Buyer(TypedDict):
    name: str


def order(basket: Basket, buyer: Buyer, others: list[Basket]) -> str:
    """Order it."""
    return f"{basket.pieces} {basket.item} for {buyer['name']}, and {others}"


def test_an_argument_may_be_a_dataclass_or_a_typed_dict() -> None:
    """Its fields are described to the model, and the function is given one."""
    basket, other = {"item": "hat", "pieces": 2}, {"item": "sock"}
    good, bad = {"basket": basket, "buyer": {"name": "Ann"}, "others": [other]}, {"item": "hat", "piece": 2}
    model = ScriptedModel([call("order", **{**good, "basket": bad}), call("order", **good), "done"])
    assert ask(model, tools=[order]).data == "done"
    (described,) = model.requests[0].config.tools or ()
    assert described["function"]["parameters"]["$defs"]["Basket"]["required"] == ["item"]
    assert "basket.piece: " in told(model.requests[1])
    assert told(model.requests[2]) == "2 hat for Ann, and [Basket(item='sock', pieces=1)]"


def test_a_function_is_described_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call of `chat_completion` for each of thousands of examples would take longer over that than over the rest."""
    ask(ScriptedModel(["7"])).data  # noqa: B018
    monkeypatch.setattr("pydantic.BaseModel.model_json_schema", None)
    model = ScriptedModel(["7"])
    assert ask(model).data == "7"
    assert model.requests[0].config.tools


def test_descriptions_that_come_one_by_one_are_all_sent() -> None:
    """A generator is gone through once."""
    described = {"type": "function", "function": {"name": "price", "parameters": {"type": "object"}}}
    model = ScriptedModel(["7"])
    assert ask(model, tools=(each for each in [described])).data == "7"
    assert model.requests[0].config.tools == (described,)


def test_the_model_is_asked_so_often_at_most() -> None:
    """The calls of its last turn are its answer, and are not run."""
    model = ScriptedModel([call(item="hat")] * 3)
    assert ask(model, max_turns=3).data == '[{"name": "price", "arguments": {"item": "hat"}}]'
    assert model.left == 0


def test_a_tool_that_must_be_called_must_be_called_once() -> None:
    """Else no turn could be the answer."""
    model = ScriptedModel([call(item="hat"), "7"])
    assert ask(model, tool_choice="required").data == "7"
    assert [request.config.tool_choice for request in model.requests] == ["required", None]


@pytest.mark.parametrize("beside", ["", "Let me look."])
def test_descriptions_of_tools_are_the_users_to_run(beside: str) -> None:
    """What the model calls is its answer, whatever it says beside."""
    described = {"type": "function", "function": {"name": "price", "parameters": {"type": "object"}}}
    answer = ask(ScriptedModel([call(item="hat", text=beside)]), tools=[described])
    assert answer.data == '[{"name": "price", "arguments": {"item": "hat"}}]'


def critic(request: Request) -> Any:
    if request.purpose != "forward":
        return feedback_for(request, "Use lower case.")
    if request.messages[-1].role == "tool":
        return "not found"
    return call(item=told(request).upper())


def test_the_critic_is_shown_every_turn_and_asked_once() -> None:
    """What was called and what came of it is what a person would look at."""
    model = FunctionModel(critic)
    prompt = nn.Parameter("Use the tools.", role="system prompt")
    chat = nn.ChatCompletion("{item}", system=prompt, tools=[price])
    with tg.use_models(forward=model):
        nn.ExactMatch()(chat("hat"), "7").backward()
    assert [item.data for item in prompt.grad] == ["Use lower case."]
    assert prompt.grad[0].source is not None
    assert prompt.grad[0].source.output == "not found"
    (request,) = [each for each in model.requests if each.purpose == "backward"]
    shown = told(request)
    assert shown.index('price({"item": "HAT"})') < shown.index("KeyError: 'HAT'") < shown.index("not found")
    assert "assistant message:" in shown
    assert "tool message:" in shown


def pages(item: str) -> str:
    """Much."""
    return "page " * 10_000


def test_what_the_critic_has_no_room_for_is_left_out_of_the_turns() -> None:
    """The question is shown whole; what a tool gave may be longer than all that the critic reads, and has its ends."""
    model = FunctionModel(lambda request: call("pages", item="x") if told(request) == "hat" else critic(request))
    chat = nn.ChatCompletion("{item}", system=nn.Parameter("Use the tools.", role="system prompt"), tools=[pages])
    with tg.use_models(forward=model, backward=llm.resolve(model, context=4096)):
        nn.ExactMatch()(chat("hat"), "7").backward()
    shown = told(model.requests[-1])
    assert "\nhat\n" in shown
    assert "page page" in shown
    assert "more characters …]" in shown
    assert len(shown) < len(pages("x")) / 2


def echo(item: str) -> str:
    """The item, between braces."""
    return f"{{item}} is {item}"


def test_what_a_tool_gave_is_not_scanned_for_slots() -> None:
    """The critic is shown what the model was told."""
    model = FunctionModel(lambda request: call("echo", item="x") if told(request) == "hat" else critic(request))
    chat = nn.ChatCompletion("{item}", system=nn.Parameter("Use the tools.", role="system prompt"), tools=[echo])
    with tg.use_models(forward=model):
        nn.ExactMatch()(chat("hat"), "7").backward()
    assert told(model.requests[1]) == "{item} is x"
    assert "\n{item} is x\n" in told(model.requests[-1])


@pytest.mark.parametrize("size", [1, 4])
def test_it_goes_with_batches_transforms_and_shared_feedback_calls(size: int) -> None:
    """A loop, a batch and `vmap` give the same feedback."""
    prompt = nn.Parameter("Use the tools.", role="system prompt")
    chat = nn.ChatCompletion("{item}", system=prompt, tools=[price])
    items = ["hat", "sock"]

    def loss(item: Any) -> tg.Variable:
        return nn.ExactMatch()(chat(item), "7")

    found = []
    for way in (lambda: [loss(item) for item in items], lambda: loss(items), lambda: func.vmap(loss)(items)):
        prompt.grad = None
        with tg.use_models(forward=FunctionModel(critic)), ops.feedback_batch_size(size):
            tg.backward(way())
        found.append([item.data for item in prompt.grad])
    assert found == [["Use lower case."] * 2] * 3


def test_an_edit_goes_forward_through_it() -> None:
    """The model is shown the turns, and asked what would change in the answer."""

    def model(request: Request) -> Any:
        return {"change": "shorter"} if request.purpose == "backward" else critic(request)

    chat = nn.ChatCompletion("{item}", system="Use the tools.", tools=[price])
    asked = FunctionModel(model)
    with tg.use_models(forward=asked):
        _, change = func.jvp(chat, ("hat",), ("becomes sock",))
        assert change.data == "shorter"
    assert "KeyError: 'HAT'" in told(asked.requests[-1])


def test_a_program_with_tools_is_copied_and_pickled() -> None:
    """As any other: functions go by their names."""
    chat = nn.ChatCompletion("{item}", tools=[price])
    for other in (copy.deepcopy(chat), pickle.loads(pickle.dumps(chat))):
        with tg.use_models(forward=ScriptedModel([call(item="hat"), "7"])):
            assert other("hat").data == "7"


class Expert(nn.Module):
    """A program one of whose prompts is a tool of the other."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.ChatCompletion("{text}", system=nn.Parameter("Inner.", role="inner prompt"))
        self.outer = nn.ChatCompletion("{item}", tools=[self.expert])

    def expert(self, question: str) -> str:
        """What the expert says."""
        return str(self.inner(question))

    def forward(self, item: str) -> tg.Variable:
        return self.outer(item)


def test_a_method_as_a_tool_belongs_to_the_copy_of_its_program() -> None:
    """A copy with other texts asks with these, and the original with its own; so do the candidates of a search."""

    def answer(request: Request) -> Any:
        if request.messages[0].role == "system":
            return request.messages[0].text
        return told(request) if request.messages[-1].role == "tool" else call("expert", question="x")

    program = Expert()
    other = copy.deepcopy(program)
    with tg.no_grad():
        other.inner.system.data = "Copied."
    with tg.use_models(forward=FunctionModel(answer)):
        assert (other("hat").data, program("hat").data) == ("Copied.", "Inner.")
        tried = func.functional_call(program, {"inner.system": tg.Variable("Tried.")}, "hat")
        assert tried.data == "Tried."


class Consulting(nn.Module):
    """A program whose tool is a method of a part that it names only afterwards."""

    def __init__(self) -> None:
        super().__init__()
        expert = Expert()
        self.chat = nn.ChatCompletion("{item}", tools=[expert.expert])
        self.expert = expert

    def forward(self, item: str) -> tg.Variable:
        return self.chat(item)


def test_a_method_of_a_part_belongs_to_the_part_of_the_copy() -> None:
    """In whatever order the parts are named."""

    def answer(request: Request) -> Any:
        if request.messages[0].role == "system":
            return request.messages[0].text
        return told(request) if request.messages[-1].role == "tool" else call("expert", question="x")

    program = Consulting()
    other = copy.deepcopy(program)
    with tg.no_grad():
        other.expert.inner.system.data = "Copied."
    with tg.use_models(forward=FunctionModel(answer)):
        assert (other("hat").data, program("hat").data) == ("Copied.", "Inner.")


def untyped(item) -> str:  # type: ignore[no-untyped-def]
    """An item."""
    return str(item)


def misspelled(item: "list[str") -> str:  # type: ignore[syntax]  # noqa: F722
    """An item."""
    return str(item)


def spread(*items: str) -> str:
    """Items."""
    return str(items)


@pytest.mark.parametrize(
    ("tools", "error", "message"),
    [
        ([untyped], TypeError, "the tool 'untyped' does not say of what type 'item' is"),
        (
            [spread],
            TypeError,
            r"the tool 'spread' takes \*items, .*; write a function that names each with",
        ),
        (
            [Expert.expert],
            TypeError,
            r"is a method of Expert and .*; give that of one: Expert\(\.\.\.\)\.expert",
        ),
        (
            [nn.ChatCompletion("{topic}")],
            TypeError,
            r"'ChatCompletion' is a module, .* method of the program .* `return self\.part\(text\)`",
        ),
        ([lambda item: item], TypeError, "give a function made with def"),
        ([max], TypeError, "the tool 'max' does not say what its arguments are"),
        ([misspelled], TypeError, "the tool 'misspelled' has a type that is not known"),
        (price, TypeError, r"tools is a list of functions, tools=\[function, …\]"),
        ([price, price], ValueError, "two tools are called 'price'"),
        ([price, {"type": "function"}], TypeError, "got price and the dict with 'type'. Write a function for each"),
        ([{"type": "function"}, 3], TypeError, r"descriptions of tools \(dicts\), .*; got 3. Write a function"),
        (3, TypeError, "tools is a list of functions, .*; got 3"),
    ],
)
def test_what_no_model_could_call_is_refused_before_anything_is_asked(tools: Any, error: Any, message: str) -> None:
    """Also by the module, when it is made."""
    with pytest.raises(error, match=message):
        ask(ScriptedModel([]), tools=tools)
    with pytest.raises(error, match=message):
        nn.ChatCompletion("{item}", tools=tools)


@pytest.mark.parametrize("turns", [0, 2.5, "5", None])
def test_a_number_of_turns_that_is_none_is_refused(turns: Any) -> None:
    """At least one."""
    with pytest.raises(ValueError, match="max_turns is how often the model is asked at most"):
        ask(ScriptedModel([]), max_turns=turns)


def test_messages_of_tools_name_what_is_used_instead() -> None:
    """Who writes the loop by hand is told that there is one."""
    with pytest.raises(ValueError, match=r"tools=\[function, …\] has the tools run"):
        ops.chat_completion(None, [{"role": "tool", "content": "7", "tool_call_id": "1"}])


def times(item: str, most: int = 3, *, currency: str = "euro") -> str:
    """An item, several times."""
    return f"{item} {most} {currency}"


class Prices:
    """Knows what things cost."""

    def __init__(self, factor: int) -> None:
        self.factor = factor

    def __call__(self, item: str) -> int:
        return PRICES[item] * self.factor


def described_of(*tools: Any) -> list[dict[str, Any]]:
    model = ScriptedModel(["done"])
    assert ask(model, tools=tools).data == "done"
    return [each["function"] for each in model.requests[0].config.tools or ()]


def test_a_partial_is_told_by_the_name_of_its_function_without_what_it_settles() -> None:
    tool = functools.partial(functools.partial(times, most=2), currency="dollar")
    (described,) = described_of(tool)
    assert (described["name"], described["description"]) == ("times", "An item, several times.")
    assert list(described["parameters"]["properties"]) == ["item"]
    model = ScriptedModel([call("times", item="hat"), "done"])
    ask(model, tools=[tool]).data  # noqa: B018
    assert told(model.requests[1]) == "hat 2 dollar"
    model = ScriptedModel([call("times", item="hat", most=9), "done"])
    ask(model, tools=[tool]).data  # noqa: B018
    assert "most: Extra inputs are not permitted" in told(model.requests[1])


def test_what_an_inner_partial_settles_is_not_for_the_model_where_that_has_a_name_of_its_own() -> None:
    inner = functools.partial(times, currency="dollar")
    inner.__name__ = "in_dollars"  # type: ignore[attr-defined]
    (described,) = described_of(functools.partial(inner, most=2))
    assert (described["name"], [*described["parameters"]["properties"]]) == ("in_dollars", ["item"])


@pytest.mark.parametrize(
    "wrong", [functools.partial(times, token="swordfish"), functools.partial(lambda: 1, "swordfish")]
)
def test_what_a_partial_settles_stands_in_no_error(wrong: Any) -> None:
    """It may be a key, and Python's own words show it."""
    with pytest.raises(TypeError, match=r"does not say what its arguments are|has no name for the model") as caught:
        ask(ScriptedModel([]), tools=[wrong])
    assert "swordfish" not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(TypeError, match=r"tools is a list of functions.*; got a value of type partial") as caught:
        ask(ScriptedModel([]), tools=wrong)


def test_an_object_that_can_be_called_is_told_by_its_class_or_its_own_name() -> None:
    cheap, dear = Prices(1), Prices(100)
    with pytest.raises(ValueError, match=r"two tools are called 'Prices'.*tool.__name__ = "):
        described_of(cheap, dear)
    dear.__name__ = "dear_prices"  # type: ignore[attr-defined]
    described = described_of(cheap, dear)
    assert [each["name"] for each in described] == ["Prices", "dear_prices"]
    assert {each["description"] for each in described} == {"Knows what things cost."}
    model = ScriptedModel([call("dear_prices", item="hat"), "done"])
    ask(model, tools=[cheap, dear]).data  # noqa: B018
    assert told(model.requests[1]) == "700"


def test_an_object_without_a_hash_is_refused() -> None:
    class Unhashable(Prices):
        __hash__ = None  # type: ignore[assignment]

    with pytest.raises(TypeError, match=r"the tool 'Unhashable' is an object without a hash; .*eq=False"):
        described_of(Unhashable(1))


def test_a_partial_of_a_method_belongs_to_the_copy_of_its_program() -> None:
    class Asking(Expert):
        def __init__(self) -> None:
            super().__init__()
            self.outer = nn.ChatCompletion("{item}", tools=[functools.partial(self.expert, question="x")])

    def answer(request: Request) -> Any:
        if request.messages[0].role == "system":
            return request.messages[0].text
        return told(request) if request.messages[-1].role == "tool" else call("expert")

    program = Asking()
    with tg.use_models(forward=FunctionModel(answer)):
        assert func.functional_call(program, {"inner.system": tg.Variable("Tried.")}, "hat").data == "Tried."
        other = copy.deepcopy(program)
        with tg.no_grad():
            other.inner.system.data = "Copied."
        assert (other("hat").data, program("hat").data) == ("Copied.", "Inner.")
