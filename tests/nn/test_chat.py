from __future__ import annotations

import copy
import pickle
from typing import Any
from unittest import mock

import pydantic
import pytest

import textgrad_engine as tg
from textgrad_engine import nn
from textgrad_engine.llm import Request, ResponseFormat
from textgrad_engine.testing import FunctionModel, ScriptedModel, feedback_for


def test_a_missing_slot_is_named_before_anything_is_sent() -> None:
    """A call that leaves a slot out would send the braces."""
    model = ScriptedModel([])
    with pytest.raises(TypeError, match=r"the slot \{draft\}, and no value was given"):
        nn.ChatCompletion("{ticket}: {draft}", model=model)(ticket="x")
    assert model.requests == []


def test_an_unknown_slot_is_named() -> None:
    """A value that goes nowhere is a typo."""
    with pytest.raises(TypeError, match=r"'tickt', which is no slot.*\['ticket'\]"):
        nn.ChatCompletion("{ticket}", model=ScriptedModel([]))(ticket="x", tickt="y")


def test_a_slot_may_be_called_in_any_language() -> None:
    """Columns of data are, and nobody renames them for this."""
    model = ScriptedModel(["ok"])
    assert nn.ChatCompletion("{質問}", model=model)(質問="東京?").data == "ok"
    assert model.requests[0].messages[-1].text == "東京?"


def test_a_name_in_braces_that_no_slot_can_have_is_explained() -> None:
    """The template does have it, so that it is no slot is hard to believe."""
    why = r"the user template has none: '\{my text\}'; \{my text\} is text in it, as a slot's name is letters, digits "
    with pytest.raises(TypeError, match=why):
        nn.ChatCompletion("{my text}", model=ScriptedModel([]))(**{"my text": "a"})


def test_a_template_without_slots_that_gets_a_value_is_told_how_one_is_written() -> None:
    """As of somebody who writes a signature of DSPy there."""
    with pytest.raises(TypeError, match=r"has none: 'question -> answer'; write \{question\} where it belongs$"):
        nn.ChatCompletion("question -> answer")(question="Why?")


def test_a_template_of_jinja_is_told_to_have_its_braces_once() -> None:
    """Prompts of AdalFlow, promptfoo and others have {{ ticket }}, which is no slot here."""
    why = r"the user template has none: '\{\{ ticket \}\}'; \{\{ ticket \}\} is text in it, .*: \{ticket\}$"
    with pytest.raises(TypeError, match=why):
        nn.ChatCompletion("{{ ticket }}", model=ScriptedModel([]))(ticket="a")


def test_an_empty_field_of_a_table_is_not_sent_as_a_word() -> None:
    """Nobody means the text "None" or "nan"; numbers are sent as they are."""
    model = ScriptedModel(["ok"])
    chat = nn.ChatCompletion("{ticket}", model=model)
    with pytest.raises(TypeError, match=r"ChatCompletion: the value of \{ticket\} is None"):
        chat(ticket=None)
    with pytest.raises(ValueError, match=r"the value of \{ticket\} is nan"):
        chat(ticket=float("nan"))
    with pytest.raises(TypeError, match=r"entry 1 of the value of \{ticket\} is None"):
        chat(ticket=["x", None])
    assert model.requests == []
    assert chat(ticket=3.5).data == "ok"
    assert model.requests[0].messages[-1].text == "3.5"


def test_an_unknown_setting_raises_when_the_module_is_made() -> None:
    """Not at the hundredth call."""
    with pytest.raises(TypeError, match="unknown sampling setting 'max_token'"):
        nn.ChatCompletion("{x}", max_token=3)


def test_what_is_assigned_later_is_what_the_next_call_is_asked_with() -> None:
    """A test puts its own model into a part, and a schedule its temperature: neither goes for nothing."""
    first, second = ScriptedModel(["a"]), ScriptedModel(["b"])
    chat = nn.ChatCompletion("{word}", model=first, max_tokens=9)
    assert (chat("x").data, chat.model, chat.max_tokens, chat.temperature) == ("a", first, 9, None)
    chat.model, chat.temperature, chat.role = second, 0.5, "the word again"
    answer = chat("y")
    assert (answer.data, answer.role) == ("b", "the word again")
    assert (second.requests[0].config.temperature, second.requests[0].config.max_tokens) == (0.5, 9)
    assert copy.deepcopy(chat).temperature == 0.5
    assert pickle.loads(pickle.dumps(nn.ChatCompletion("", stop="."))).stop == (".",)
    chat.model = None
    with tg.use_models(forward=ScriptedModel(["c"])):
        assert chat("z").data == "c"


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("model", 3, TypeError, "ChatCompletion: model must be"),
        ("temperature", "hot", ValueError, "ChatCompletion: temperature"),
        ("role", 3, TypeError, "a role is a text"),
        ("tools", [len], AttributeError, r"tools is as it was made with; make a new one: nn.Ch.*, tools=…"),
        ("max_turns", 3, AttributeError, "max_turns is as it was made with"),
    ],
)
def test_what_is_assigned_later_is_checked_as_what_it_was_made_with(
    name: str, value: Any, error: type[Exception], message: str
) -> None:
    """At the line that is wrong, and what cannot be assigned is not taken for done."""
    chat = nn.ChatCompletion("{word}", model=ScriptedModel(["a"]))
    with pytest.raises(error, match=message):
        setattr(chat, name, value)
    assert chat("x").data == "a"


def test_what_is_assigned_later_is_what_is_read_where_a_subclass_kept_it_too() -> None:
    """Else the next call asks one model, and `chat.model` names another."""

    class Sorter(nn.ChatCompletion):
        def __init__(self, model: Any) -> None:
            self.model = model
            super().__init__("{word}", model=self.model)

    chat, second = Sorter(ScriptedModel(["a"])), ScriptedModel(["b"])
    chat.model = second
    assert chat("x").data == "b"
    assert chat.model is second


def test_a_setting_that_a_test_patches_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """By pytest and by unittest: or the next test asks the model of this one."""
    real, model = ScriptedModel(["a", "b"]), FunctionModel(lambda request: "c")
    chat = nn.ChatCompletion("{word}", model=real, temperature=0.5)
    assert chat("x").data == "a"
    with monkeypatch.context() as patch:
        for name, value in (("model", model), ("temperature", 0.1), ("max_tokens", 3), ("role", "patched")):
            patch.setattr(chat, name, value)
        assert (chat("x").data, chat("x").role) == ("c", "patched")
    with mock.patch.object(chat, "model", model), mock.patch.object(chat, "stop", "."):
        assert chat("x").data == "c"
    assert (chat.model, chat.temperature, chat.max_tokens, chat.role, chat.stop) == (real, 0.5, None, "", None)
    assert chat("x").data == "b"
    assert model.requests[0].config.max_tokens == 3
    assert real.requests[0] == real.requests[1]


def test_a_setting_that_is_deleted_is_not_there_until_it_is_assigned() -> None:
    """As any attribute; calls are made without it meanwhile."""
    model = ScriptedModel(["a", "b"])
    chat = nn.ChatCompletion("{word}", model=model, temperature=0.5)
    del chat.temperature
    assert not hasattr(chat, "temperature")
    with pytest.raises(AttributeError, match="temperature"):
        del chat.temperature
    assert chat("x").data == "a"
    chat.temperature = 0.3
    assert chat("x").data == "b"
    assert [request.config.temperature for request in model.requests] == [None, 0.3]


def test_a_subclass_may_keep_what_it_was_given_for_a_loop_of_its_own() -> None:
    """As an agent does that asks again and again: it is made, and says nothing to the calls."""

    class Agent(nn.ChatCompletion):
        def __init__(self, tools: Any, max_turns: int) -> None:
            super().__init__("{word}", model=ScriptedModel(["a"]), tools=tools)
            self.tools, self.max_turns = tools, max_turns

    def look(what: str) -> str:
        """Look it up."""
        return what

    agent = Agent([look], 3)
    assert (agent.tools, agent.max_turns, agent("x").data) == ([look], 3, "a")


def test_a_property_of_a_subclass_under_the_name_of_a_setting_is_set_by_its_own_code() -> None:
    """It is the subclass that says what is done with a value there, as for any other name."""

    class Careful(nn.ChatCompletion):
        @property
        def seed(self) -> Any:
            return self._drawn

        @seed.setter
        def seed(self, value: Any) -> None:
            self._drawn = value

    model = ScriptedModel(["a"])
    chat = Careful("{word}", model=model)
    chat.seed = "an egg"
    assert chat.seed == "an egg"
    assert (chat("x").data, model.requests[0].config.seed) == ("a", None)


def test_slots_of_both_templates_are_filled_once() -> None:
    """Values with braces, JSON in prompts and literal braces all survive."""
    model = ScriptedModel(["ok"])
    chat = nn.ChatCompletion('{a} {"id": {b}} {{a}}', system='Reply {"ok": true}, {tone}.', model=model)
    assert chat.slots == ("a", "b")
    assert chat(a="{b}", b="{a}", tone="kindly").data == "ok"
    assert [m.text for m in model.requests[0].messages] == ['Reply {"ok": true}, kindly.', '{b} {"id": {a}} {a}']


def test_without_a_system_prompt_none_is_sent() -> None:
    """An empty system message is no system message."""
    model = ScriptedModel(["ok"])
    nn.ChatCompletion("{a}", model=model, temperature=0.25)(a="x").data  # noqa: B018  waits for the call
    (request,) = model.requests
    assert ([m.role for m in request.messages], request.config.temperature) == (["user"], 0.25)


def test_a_pydantic_class_as_response_format() -> None:
    """The answer is JSON of that class."""

    class Queue(pydantic.BaseModel):
        queue: str

    model = ScriptedModel([{"queue": "billing"}])
    answer = nn.ChatCompletion("{a}", model=model, response_format=Queue)(a="x")
    assert Queue.model_validate_json(answer.data).queue == "billing"
    assert model.requests[0].config.response_format == ResponseFormat.of(Queue)


def test_a_json_schema_as_response_format() -> None:
    """For who has a schema and no class; a schema that describes no object is refused where the module is made."""
    schema = {"type": "object", "properties": {"queue": {"type": "string"}}, "required": ["queue"]}
    model = ScriptedModel([{"queue": "billing"}])
    answer = nn.ChatCompletion("{a}", model=model, response_format=schema)(a="x")
    assert answer.data == '{"queue": "billing"}'
    form = model.requests[0].config.response_format
    assert form is not None
    assert form.json_schema == schema
    with pytest.raises(ValueError, match="JSON schema of an object"):
        nn.ChatCompletion("{a}", model=model, response_format={"type": "array"})


def test_parameters_are_registered_and_hear_feedback() -> None:
    """System prompt and user template of one module, each its own feedback, from one call."""

    def answer(request: Request) -> Any:
        if request.purpose == "backward":
            return {"case_1": {"system": "for the system", "user": "for the template"}}
        return "an answer"

    chat = nn.ChatCompletion(nn.Parameter("Sort {x}."), system=nn.Parameter("Be quick."))
    assert [name for name, _ in chat.named_parameters()] == ["system", "user"]
    model = FunctionModel(answer)
    with tg.use_models(forward=model):
        chat(x="this").backward("wrong")
    assert [item.data for item in chat.system.grad] == ["for the system"]
    assert [item.data for item in chat.user.grad] == ["for the template"]
    assert len(model.requests) == 2


def test_the_module_of_the_api_page() -> None:
    """The nn.Module of API.md as it stands: one parameter, though it is reachable by two names."""

    class Triage(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.instructions = nn.Parameter(
                "Sort the ticket into one queue.", role="system prompt of the ticket sorter"
            )
            self.chat = nn.ChatCompletion(system=self.instructions, user="{ticket}", response_format=None)

        def forward(self, ticket: Any) -> Any:
            return self.chat(ticket=ticket)

    program = Triage()
    assert [name for name, _ in program.named_parameters()] == ["instructions"]
    with tg.use_models(forward=ScriptedModel(["billing"])):
        assert str(program("My bill is wrong.")) == "billing"


def test_a_changed_parameter_is_what_the_next_call_sends() -> None:
    """The module reads its texts when it is called."""
    model = FunctionModel(lambda request: request.messages[0].text)
    chat = nn.ChatCompletion("{x}", system=nn.Parameter("old"), model=model)
    before = chat(x="1")
    with tg.no_grad():
        chat.system.data = "new"
    assert (before.data, chat(x="1").data) == ("old", "new")


def test_a_value_without_a_name_fills_the_one_slot_that_is_left() -> None:
    """As in a Sequential; where it is not plain which slot that is, the call is written out."""
    echo = FunctionModel(lambda request: request.messages[-1].text)
    assert nn.ChatCompletion("Say {what}.", model=echo)("hello").data == "Say hello."
    assert nn.ChatCompletion("{a}, {b}", model=echo)("x", a="y").data == "y, x"
    call = r"chat\(question=…, context=…\)"
    two = nn.ChatCompletion("{question} {context}", model=echo)
    with pytest.raises(TypeError, match=f"str 'x' came without a name; call it with its slots: {call}"):
        two("x")
    with pytest.raises(TypeError, match=f"2 values came without a name; call it with its slots: {call}"):
        two("x", "y")
    with pytest.raises(TypeError, match=r"without a name; call it with its slots: chat\(a=…\); .* chat\(\*\*values\)"):
        nn.ChatCompletion("{a}", model=echo)({"a": "x"})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="its user template has no slots"):
        nn.ChatCompletion("Hello.", model=echo)("x")


@pytest.mark.parametrize("texts", [{"user": 3}, {"user": "{ticket}", "system": ["Sort."]}])
def test_what_is_no_text_is_refused_in_place_of_a_message(texts: dict[str, Any]) -> None:
    """The words that Python shows an object by would be sent, and nobody would see why answers are bad."""
    with pytest.raises(
        TypeError, match=rf"ChatCompletion: {list(texts)[-1]} is a text with {{slots}} or a Variable, got"
    ):
        nn.ChatCompletion(**texts)


def test_a_batch_of_batches_is_refused_where_it_is_given() -> None:
    """It was an error of what a graph may save."""
    with pytest.raises(
        TypeError, match=r"entry 1 of the value of {x} is a list, and a batch has one text for each call"
    ):
        nn.ChatCompletion("{x}", system=nn.Parameter("Sort."))(x=["a", ["b", "c"]])


@pytest.mark.parametrize("described", [{"type": "web_search"}, {"type": "function", "name": "web_search"}])
def test_repr_shows_tools_however_they_are_described(described: dict[str, str]) -> None:
    """Endpoints have forms of their own, and bring tools along."""
    assert repr(nn.ChatCompletion("{a}", tools=[described])) == "ChatCompletion(user='{a}', tools=[web_search])"


def test_repr_shows_what_it_asks() -> None:
    """Also the texts that are no parameters: half of a call is its user's message."""

    def look_up(word: str) -> str:
        """Looks a word up."""
        return word

    system = nn.Parameter("Sort it.", role="system prompt")
    chat = nn.ChatCompletion("{ticket}", system=system, model="simulated/tickets", tools=[look_up])
    assert repr(chat).startswith(
        "ChatCompletion(\n  user='{ticket}', model='simulated/tickets', tools=[look_up]\n  (sys"
    )
    form = {"type": "object", "properties": {"label": {"type": "string"}}}
    sampled = nn.ChatCompletion(
        "{a}", role="queue", temperature=0.5, stop=["."], tools=[look_up], max_turns=2, extra={"user": "sk-secret"}
    )
    assert repr(sampled) == (
        "ChatCompletion(user='{a}', role='queue', tools=[look_up], max_turns=2, temperature=0.5, stop=('.',), "
        "extra=[user])"
    )
    sampled.temperature = None
    assert "temperature" not in repr(sampled)
    plain = repr(nn.ChatCompletion("word " * 40, response_format=form))
    assert plain.startswith("ChatCompletion(user='word word")
    assert "… (200 characters), response_format='" in plain


SAID = [
    {"role": "user", "content": "Hello, my {what} is dark."},
    {"role": "assistant", "content": "Since when?"},
    {"role": "user", "content": "Since {day}."},
]


def test_a_conversation_stands_in_the_place_of_the_user_message() -> None:
    """As it was said, whatever braces are in it; slots of the system prompt are filled as ever."""
    model = ScriptedModel(["ok", "ok", "ok"])
    chat = nn.ChatCompletion("{said}", system="Help with {what}.", model=model)
    assert chat(said=SAID, what="lamps").data == "ok"
    assert [message.model_dump(include={"role", "content"}) for message in model.requests[0].messages] == [
        {"role": "system", "content": "Help with lamps."},
        *SAID,
    ]
    assert chat(SAID[:1]).data == "ok"
    assert [message.text for message in model.requests[1].messages] == ["Help with {what}.", SAID[0]["content"]]
    own = [{"role": "system", "content": "Be kind."}, SAID[0]]
    assert nn.ChatCompletion("{said}", model=model)(own).data == "ok"
    assert [message.role for message in model.requests[2].messages] == ["system", "user"]


def test_a_conversation_goes_on_with_answers_of_the_program() -> None:
    """So that a prompt hears what came of its earlier turns; an answer is sent as it is, whatever braces are in it."""

    def model(request: Request) -> Any:
        if request.purpose == "backward":
            return feedback_for(request, "Ask for the day.")
        return "{what} is dark?" if len(request.messages) == 2 else "I see."

    asked = FunctionModel(model)
    chat = nn.ChatCompletion("{said}", system=nn.Parameter("Help.", role="system prompt"), model=asked)
    first = chat(SAID[:1])
    last = chat([*SAID[:1], {"role": "assistant", "content": first}, {"role": "user", "content": "My lamp."}])
    with tg.use_models(backward=asked):
        last.backward("It should have asked since when.")
    assert asked.requests[1].messages[2].text == "{what} is dark?"
    later, earlier = [request.messages[-1].text for request in asked.requests if request.purpose == "backward"]
    assert "- `assistant`: answer of the model to the system prompt\n" in later
    assert "assistant message (contains `assistant`):\n" in later
    assert 'The model\'s answer: "{what} is dark?"\n\nFeedback on the answer: "Ask for the day."' in earlier
    assert [item.data for item in chat.system.grad] == ["Ask for the day.", "Ask for the day."]


@pytest.mark.parametrize(
    ("user", "said", "why"),
    [
        ("Chat: {said}", SAID, r"stands for whole messages, and the user template 'Chat: \{said\}' has more than"),
        ("{said}", SAID[:2], "a conversation that ends with an answer"),
        ("{said}", [{"role": "system", "content": "x"}, SAID[0]], "the program has a system prompt of its own"),
        ("{said}", [SAID, SAID], "entry 0 .* is a conversation, of which one is answered at a time"),
        ("{said}", ["Hello.", [*SAID]], "entry 1 .* is a conversation"),
    ],
)
def test_a_conversation_that_cannot_be_answered_is_refused_before_anything_is_sent(
    user: str, said: Any, why: str
) -> None:
    """With the repair."""
    with pytest.raises(TypeError, match=why):
        nn.ChatCompletion(user, system="Be kind.", model=ScriptedModel([]))(said=said)


def test_conversations_of_all_lengths_share_a_feedback_call() -> None:
    """The critic is shown each message by who said it."""

    def critic(request: Request) -> Any:
        assert request.config.response_format is not None
        return {case: {"system": f"of {case}"} for case in request.config.response_format.json_schema["properties"]}

    model = FunctionModel(lambda request: "no")
    asked = FunctionModel(critic)
    chat = nn.ChatCompletion("{said}", system=nn.Parameter("Be kind.", role="system prompt"), model=model)
    with tg.use_models(backward=asked), tg.ops.feedback_batch_size(2):
        tg.backward([nn.ExactMatch()(chat(said), "yes") for said in (SAID, SAID[2:])])
    (request,) = asked.requests
    first, second = request.messages[-1].text.split("## Case 2")
    assert [first.count(f"\n{role} message:\n") for role in ("user", "assistant")] == [2, 1]
    assert [second.count(f"\n{role} message:\n") for role in ("user", "assistant")] == [1, 0]
    assert "Hello, my {what} is dark." in first
    assert [item.data for item in chat.system.grad] == ["of case_1", "of case_2"]
