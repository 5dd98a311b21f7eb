"""A tool as a module: which texts it has, what a model is told of them, and what is run."""

from __future__ import annotations

import copy
import json
import pickle
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from pydantic import Field

import textgrad_engine as tg
from textgrad_engine import Variable, nn, ops, optim
from textgrad_engine.llm import Completion, Request
from textgrad_engine.testing import FunctionModel, feedback_for

LISTED = {
    "name": "find.it",
    "description": "Finds.",
    "inputSchema": {"type": "object", "properties": {"what": {"type": "string", "description": "a word"}, "how": {}}},
}


def order(number: Annotated[int, Field(description="of the order")], fast: bool = False) -> str:
    """Looks something up."""
    return f"{number} is shipped" + (", fast" if fast else "")


def greet() -> str:
    """Greets."""
    return "hello"


def calls_order(request: Request) -> Any:
    """Calls the tool where its description says orders, once; then says what it gave."""
    if request.purpose == "backward":
        return feedback_for(request, "Say that it knows orders.")
    if request.purpose == "optimizer":
        return {"edits": [{"op": "add", "line": 1, "text": "It knows orders.", "reason": "asked for", "feedback": [1]}]}
    if request.messages[-1].role == "tool":
        return request.messages[-1].text
    if "knows orders" not in request.config.tools[0]["function"]["description"]:
        return "I do not know."
    function = {"name": "order", "arguments": '{"number": 7}'}
    called = ({"id": "call_1", "type": "function", "function": function},)
    return Completion(text="", finish_reason="tool_calls", tool_calls=called)


def test_a_wrong_call_is_repaired_by_the_description() -> None:
    """The loop of any Parameter: feedback, a step, and the tool is called, which is run."""
    desk = nn.ChatCompletion("{question}", system="Answer.", tools=[nn.Tool(order)])
    loss = nn.ExactMatch()
    optimizer = optim.TGD(desk.parameters())
    with tg.use_models(forward=FunctionModel(calls_order)):
        loss(desk("Where is order 7?"), "7 is shipped").backward()
        optimizer.step()
        assert desk.tools["order"].description.data == "Looks something up.\nIt knows orders."
        assert loss(desk("Where is order 7?"), "7 is shipped").data == 1


def test_the_texts_are_parameters_by_the_names_of_the_tools() -> None:
    """Those about arguments are trained where they are named; what is given replaces what there is."""
    told = Variable("a number, fixed", role="of all")
    tools = [
        nn.Tool(order, arguments=["number", "fast"]),
        nn.Tool(LISTED, "Finds a word.", {"what": "a word, no more", "how": told}),
    ]
    desks = nn.ModuleList([nn.ChatCompletion("{question}", tools=[tool]) for tool in tools])
    assert {name: parameter.data for name, parameter in desks.named_parameters()} == {
        "0.tools.order.description": "Looks something up.",
        "0.tools.order.arguments.number": "of the order",
        "0.tools.order.arguments.fast": "",
        "1.tools.find_it.description": "Finds a word.",
        "1.tools.find_it.arguments.what": "a word, no more",
    }
    assert tools[0].arguments["fast"].role == (
        "description of the argument fast of the tool order, by which a model decides what to give for it"
    )
    found = tools[1].described()["function"]
    assert found["name"] == "find.it"
    assert found["parameters"]["properties"]["how"]["description"] is told
    assert (tools[0].name, tools[0].takes, tools[1].function) == ("order", ("number", "fast"), None)


def test_what_the_model_is_told_is_else_what_it_is_told_of_the_plain_tool() -> None:
    """A tool that nobody has trained changes no request, so that nothing is paid for again."""
    model = FunctionModel(lambda request: "said")
    for tools in ([order], [nn.Tool(order, arguments=["number"])]):
        assert str(nn.ChatCompletion("{question}", model=model, tools=tools)("Where?")) == "said"
        assert str(ops.chat_completion(model, [{"role": "user", "content": "Where?"}], tools=tools)) == "said"
    assert len({request.model_dump_json() for request in model.requests}) == 1


def test_an_empty_text_about_an_argument_is_told_as_one() -> None:
    """It is filled by training."""
    (told,) = (nn.Tool(order, arguments=["fast"]).described()["function"]["parameters"]["properties"]["fast"],)
    assert told["description"].data == ""


def test_frozen_texts_hear_nothing() -> None:
    """As of any module."""
    tool = nn.Tool(order).requires_grad_(False)
    desk = nn.ChatCompletion("{question}", system=nn.Parameter("Answer.", role="system prompt"), tools=[tool])
    model = FunctionModel(calls_order)
    with tg.use_models(forward=model):
        nn.ExactMatch()(desk("Where?"), "7 is shipped").backward()
    assert len(desk.system.grad) == 1
    assert not tool.description.grad
    assert "order_description" not in model.requests[-1].messages[-1].text


def test_copies_and_what_is_pickled_have_texts_of_their_own() -> None:
    """And ask with these; the function is the same."""
    model = FunctionModel(lambda request: request.config.tools[0]["function"]["description"])
    desk = nn.ChatCompletion("{question}", tools=[nn.Tool(order)])
    copies = [copy.deepcopy(desk), pickle.loads(pickle.dumps(desk))]
    for number, other in enumerate(copies):
        other.tools["order"].description.data = f"copy {number}"
    with tg.use_models(forward=model):
        assert [each("?").data for each in (desk, *copies)] == ["Looks something up.", "copy 0", "copy 1"]
    assert all(other.tools["order"].function is order for other in copies)
    desk.load_state_dict(copies[0].state_dict())
    assert desk.tools["order"].description.data == "copy 0"
    assert isinstance(copies[1].tools["order"].description, nn.Parameter)


class Desk(nn.Module):
    """An agent whose tool is a method of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.greeting = "hello"
        self.chat = nn.ChatCompletion("{question}", tools=[nn.Tool(self.greet)])

    def greet(self) -> str:
        """Greets."""
        return self.greeting

    def forward(self, question: str) -> Variable:
        return self.chat(question=question)


def test_a_method_of_a_copy_is_the_copys() -> None:
    """As of a plain method as a tool."""
    desk = Desk()
    other = copy.deepcopy(desk)
    other.greeting = "good day"
    assert (desk.chat.tools["greet"](), other.chat.tools["greet"]()) == ("hello", "good day")


def test_a_conversation_is_asked_with_it_too() -> None:
    """Messages in the place of the user's text, calls of tools among them."""
    model = FunctionModel(calls_order)
    desk = nn.ChatCompletion("{said}", system="Answer.", tools=[nn.Tool(order)])
    called = {"id": "c", "type": "function", "function": {"name": "order", "arguments": "{}"}}
    said: list[dict[str, Any]] = [
        {"role": "user", "content": "Order 7?"},
        {"role": "assistant", "content": "", "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "c", "content": "lost"},
        {"role": "user", "content": "Really?"},
    ]
    with tg.use_models(forward=model):
        nn.ExactMatch()(desk(said), "7 is shipped").backward()
        nn.ExactMatch()(desk("Order 7?"), "7 is shipped").backward()
    assert [item.data for item in desk.tools["order"].description.grad] == ["Say that it knows orders."] * 2
    asked = [request for request in model.requests if request.purpose == "forward"]
    assert [message.role for message in asked[0].messages] == ["system", "user", "assistant", "tool", "user"]
    assert asked[0].config.tools == asked[1].config.tools


def test_new_texts_are_short_and_have_no_slots() -> None:
    """OpenAI's API refuses requests with a description of more than 1,024 characters; braces are what they are."""
    seen: list[str] = []

    def model(request: Request) -> Any:
        if request.purpose == "optimizer":
            seen.append(request.messages[-1].text)
            text = "x" * 1100 if len(seen) == 1 else 'It knows orders {"number": 7}.'
            return {"edits": [{"op": "replace", "line": 1, "text": text, "reason": "asked for", "feedback": [1]}]}
        return calls_order(request)

    def lookup(number: int) -> str:
        """Looks {something} up."""
        return ""

    desk = nn.ChatCompletion("{question}", tools=[nn.Tool(lookup)])
    with tg.use_models(forward=FunctionModel(model)):
        nn.ExactMatch()(desk("Where?"), "7 is shipped").backward()
        optim.TGD(desk.parameters()).step()
    assert "- At most 1024 characters; the text in use has 21." in seen[0]
    assert "the new text has 1100 characters, and 1024 are allowed" in seen[1]
    assert "placeholder" not in seen[0].split("must keep to this")[1]
    assert desk.tools["lookup"].description.data == 'It knows orders {"number": 7}.'


def test_one_tool_of_two_agents_hears_of_both() -> None:
    """It is one module, and one Parameter."""
    tool = nn.Tool(order)
    agents = nn.ModuleList([nn.ChatCompletion("{question}", tools=[tool]) for _ in range(2)])
    assert len(list(agents.parameters())) == 1
    with tg.use_models(forward=FunctionModel(calls_order)):
        tg.backward([nn.ExactMatch()(agent("Where?"), "7 is shipped") for agent in agents])
    assert len(tool.description.grad) == 2


def test_tools_of_the_endpoint_and_plain_ones_stand_beside_it() -> None:
    """In the order in which they were given."""
    model = FunctionModel(lambda request: json.dumps([tool["type"] for tool in request.config.tools]))
    plain = {"type": "function", "function": {"name": "plain"}}
    desk = nn.ChatCompletion("{q}", model=model, tools=[{"type": "web_search"}, nn.Tool(LISTED), plain])
    assert desk("?").data == '["web_search", "function", "function"]'
    assert "tools=[web_search, find.it, plain]" in repr(desk)


def told_by(desk: nn.ChatCompletion) -> list[Any]:
    """What a model is told that each tool does."""
    model = FunctionModel(lambda request: "said")
    with tg.use_models(forward=model):
        assert desk("Where?").data == "said"
    return [tool["function"].get("description") for tool in model.requests[0].config.tools]


def test_tools_may_come_one_by_one() -> None:
    """Those of a generator are gone through once, and their texts told as those of a list."""
    desk = nn.ChatCompletion("{question}", tools=(nn.Tool(tool) for tool in [order]))
    assert told_by(desk) == ["Looks something up."]
    assert [name for name, _ in desk.named_parameters()] == ["tools.order.description"]


def test_tools_may_stand_in_a_list_of_modules() -> None:
    """As where a program has them for itself, and for several of its calls."""
    tools = nn.ModuleList([nn.Tool(order), nn.Tool(greet)])
    assert told_by(nn.ChatCompletion("{question}", tools=tools)) == ["Looks something up.", "Greets."]


def test_names_that_no_path_could_hold_have_others_in_it() -> None:
    """Two of which only the dots differ are told apart; the model is told the names that they have."""
    schema = {"type": "object", "properties": {"a.b": {"type": "string"}, "a_b": True, "": {"description": "none"}}}
    tools = [{**LISTED, "name": name, "inputSchema": schema} for name in ("find.it", "find_it")]
    desk = nn.ChatCompletion("{question}", tools=[nn.Tool(tool, arguments=["a.b", "a_b", ""]) for tool in tools])
    assert [name for name, _ in desk.named_parameters()] == [
        f"tools.{tool}.{text}"
        for tool in ("find_it_2", "find_it")
        for text in ("description", "arguments.a_b_2", "arguments.a_b", "arguments._")
    ]
    with tg.no_grad():
        desk.tools["find_it_2"].arguments["a_b_2"].data = "with a dot"
    properties = desk.tools["find_it_2"].described()["function"]["parameters"]["properties"]
    assert {name: told["description"].data for name, told in properties.items()} == {
        "a.b": "with a dot",
        "a_b": "",
        "": "none",
    }


def test_texts_and_tools_that_are_replaced_are_told_from_the_next_call_on() -> None:
    """None is no text; what was told before is of no effect."""
    desk = nn.ChatCompletion("{question}", tools=[nn.Tool(order), nn.Tool(greet)])
    assert told_by(desk) == ["Looks something up.", "Greets."]
    desk.tools["order"].description = nn.Parameter("Finds orders.", role="text")
    assert told_by(desk) == ["Finds orders.", "Greets."]
    desk.tools["order"].description = desk.tools["greet"].description = None
    assert told_by(desk) == [None, None]
    assert told_by(copy.deepcopy(desk)) == [None, None]
    desk.tools["order"] = nn.Tool(order, "Is another one.")
    assert told_by(desk) == ["Is another one.", None]


def another_order() -> Any:
    """A function of the same name."""

    def order(number: int) -> str:
        """Looks elsewhere."""
        return str(number)

    return order


@pytest.mark.parametrize(
    ("change", "now"),
    [
        (lambda tools: tools.__setitem__("greet", nn.Tool(greet)), "order, greet"),
        (lambda tools: tools.__setitem__("order", nn.Tool(greet)), "greet"),
        (lambda tools: tools.__setitem__("order", nn.Tool(another_order())), "order"),
        (lambda tools: tools.__setitem__("order", nn.Module()), "order"),
        (lambda tools: tools.__delattr__("order"), "none"),
    ],
)
def test_tools_that_are_put_there_later_are_refused(change: Any, now: str) -> None:
    """The model would not be told of them, or calls of them would not be run."""
    desk = nn.ChatCompletion("{question}", tools=[nn.Tool(order)])
    change(desk.tools)
    with pytest.raises(ValueError, match=rf"made with the tools order, and has texts of {now} now.*make a new one"):
        desk("Where?")


def test_a_text_about_an_argument_that_there_is_not_is_refused() -> None:
    """Put there later, where the call is made."""
    desk = nn.ChatCompletion("{question}", tools=[nn.Tool(order)])
    desk.tools["order"].arguments["nubmer"] = nn.Parameter("of the order", role="text")
    with pytest.raises(ValueError, match=r"'order' has no argument 'nubmer'.* names number, fast"):
        desk("Where?")


def test_what_a_client_of_mcp_makes_of_a_description_is_one() -> None:
    """An object with the same fields."""
    made = SimpleNamespace(**LISTED, annotations=None)
    for tool in (nn.Tool(made), made):
        assert told_by(nn.ChatCompletion("{question}", tools=[tool])) == ["Finds."]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: nn.Tool(3), "function is a function, or what a model is told of a tool, got"),
        (lambda: nn.Tool(nn.Tool(order)), "it is one already"),
        (lambda: nn.Tool(order, 3), "description is a text or a Parameter, got"),
        (lambda: nn.Tool(order, arguments={"number": 3}), "the text about 'number' is a text or a Parameter, got"),
        (lambda: nn.Tool(order, arguments="number"), "arguments are names of arguments, or a dict"),
        (lambda: nn.Tool(order, arguments=[["number"]]), "arguments are names of arguments, or a dict"),
        (lambda: nn.Tool(order, arguments=["none"]), "'order' has no argument 'none'; it has number, fast"),
        (lambda: nn.Tool({"type": "web_search"}), "'web_search' is a tool of the endpoint's own"),
        (lambda: nn.Tool({"name": "x"}), "the description has no type; write"),
        (
            lambda: nn.Tool({**LISTED, "description": Variable("x", role="r")}),
            r"is no JSON \(.*Tool\(described, de",
        ),
        (lambda: nn.Tool(lambda *_: 1), "has no name for the model"),
        (lambda: nn.Tool(print), r"the tool 'print' takes \*args"),
        (lambda: nn.Tool(LISTED)("x"), "nothing is run when a model calls 'find.it'"),
        (lambda: nn.ChatCompletion("{q}", tools=[nn.Tool(order), order]), "two tools are called 'order'"),
        (lambda: nn.ChatCompletion("{q}", tools=[nn.Tool(LISTED), nn.Tool(LISTED)]), "two tools are called 'find.it'"),
        (lambda: nn.ChatCompletion("{q}", tools=[nn.Tool(order), nn.Tool(LISTED)]), "tools are functions, which are"),
        (lambda: nn.ChatCompletion("{q}", tools=nn.Tool(order)), r"tools is a list of functions, tools=\["),
        (lambda: nn.ChatCompletion("{q}", tools=[SimpleNamespace(name="x")]), "tools are functions, which are"),
        (
            lambda: nn.ChatCompletion("{q}", tools=[{**LISTED, "description": Variable("x", role="r")}]),
            r"the description of 'find.it' has Variables in it.*give nn\.Tool",
        ),
    ],
)
def test_what_is_no_tool_is_refused_with_the_repair(make: Any, said: str) -> None:
    """When it is made, or called, and not by an endpoint."""
    with pytest.raises((TypeError, ValueError), match=said):
        make()
