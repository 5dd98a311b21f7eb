from __future__ import annotations

import asyncio
import contextlib
import json
import re
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import Variable, dispatch, fences, nn, ops, templates
from textgrad_engine.errors import MalformedResponse, ModelError
from textgrad_engine.llm import Request, RetryPolicy, resolve
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.simulated.reading import read_feedback_request
from textgrad_engine.ops.cases import _TAGS
from textgrad_engine.ops.json_answers import Extract
from textgrad_engine.testing import FunctionModel

from ..values import said


def critic(request: Request) -> dict[str, Any]:
    """Says of each input which case it is."""
    cases = request.config.response_format.json_schema["properties"]
    return {case: {key: f"{key} of {case}" for key in schema["properties"]} for case, schema in cases.items()}


def answering(request: Request) -> Any:
    if request.purpose == "backward":
        return critic(request)
    return "wrong: " + request.messages[-1].text


def asked(model: FunctionModel) -> list[Request]:
    return [request for request in model.requests if request.purpose == "backward"]


def user_of(request: Request) -> str:
    return request.messages[-1].text


def run(program: nn.Module, model: FunctionModel, words: list[str], size: int = 1) -> list[str]:
    """One backward pass through the program on each word, all of it wrong; the critic's requests."""
    with tg.use_models(forward=model), ops.feedback_batch_size(size):
        tg.backward([nn.ExactMatch()(program(word=word), "right") for word in words])
    return [user_of(request) for request in asked(model)]


def program(system: Any = None, user: Any = "Say {word}.") -> nn.ChatCompletion:
    return nn.ChatCompletion(user, system=system or nn.Parameter("Be right.", role="system prompt"))


@pytest.mark.parametrize(
    "answer",
    [
        "no JSON at all",
        '{"case_1": {"system": "unclosed',
        '{"case_1": {}}',
        '{"case_1": {"system": 3}}',
        '{"case_1": "Be brief."}',
        '["case_1"]',
        '{"case_2": {"system": "for another"}}',
    ],
)
def test_a_malformed_answer_of_the_critic_leaves_nothing_behind(answer: str) -> None:
    """Half a JSON is no feedback: the error is typed, and no parameter has heard anything."""
    other = Variable("other", role="other", requires_grad=True)

    def model(request: Request) -> Any:
        return Completion(text=answer) if request.purpose == "backward" else "wrong"

    asker = program()
    with tg.use_models(forward=resolve(FunctionModel(model), policy=RetryPolicy(answer_attempts=1))):
        loss = nn.ExactMatch()(asker(word="yes"), "right")
        with pytest.raises(MalformedResponse):
            tg.backward([loss, other + "!"], [None, "louder"])
    assert (said(asker.system), said(other)) == ([], [])


def test_a_failed_backward_can_be_tried_again_and_counts_once() -> None:
    """Defect of section 9: a failed backward that, retried, counts feedback twice."""
    answers = iter([Completion(text="broken")])

    def model(request: Request) -> Any:
        return next(answers, critic(request)) if request.purpose == "backward" else "wrong"

    asker = program()
    with tg.use_models(forward=resolve(FunctionModel(model), policy=RetryPolicy(answer_attempts=1))):
        loss = nn.ExactMatch()(asker(word="yes"), "right")
        with pytest.raises(MalformedResponse):
            loss.backward()
        loss.backward()
    assert said(asker.system) == ["system of case_1"]


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("instructions", [None, "Quote.", "variable", "pending"])
def test_who_watches_changes_neither_question_nor_feedback(size: int, instructions: str | None) -> None:
    """Recorded, seen by a layer, or neither, in which case it is one call: the critic is asked the same bytes."""
    seen: list[str] = []

    class Seen(tg.autograd.Layer):
        def process(self, function: Any, args: Any) -> Any:
            seen.append(function.__name__)
            return super().process(function, args)

    def outcome(watch: Any, create_graph: bool) -> Any:
        asker, model = program(user=nn.Parameter("Say {word}.", role="question")), FunctionModel(answering)
        with tg.use_models(forward=model), ops.feedback_batch_size(size), contextlib.ExitStack() as around:
            losses = [nn.ExactMatch()(asker(word=word), "right") for word in ("yes", "no", "{word}", "</answer>")]
            if instructions is not None:
                told: Any = instructions
                if instructions == "variable":
                    told = Variable("Be short.", role="instructions")
                elif instructions == "pending":
                    told = ops.chat_completion(model, [{"role": "user", "content": "What to look at?"}])
                around.enter_context(ops.critic(told))
            assert {float(loss.data) for loss in losses} == {0.0}  # a pass asks first about what is there first
            if watch is not None:
                around.enter_context(watch)
            tg.backward(losses, create_graph=create_graph)
        texts = [[(item.data, item.role, item.source.output) for item in p.grad] for p in (asker.system, asker.user)]
        return [[(m.role, m.text) for m in r.messages] for r in asked(model)], texts

    plain = outcome(None, False)
    assert len(plain[0]) == (4 if size == 1 else 2)
    assert plain == outcome(None, True) == outcome(Seen(), False)
    assert seen[:3] == ["Compute", "ChatCompletion", "Extract"]


def test_a_critic_that_fails_is_named_with_the_line_of_the_pass() -> None:
    """Of one call or of several: what was wanted, and where the pass was begun."""

    def model(request: Request) -> Any:
        if request.purpose == "backward":
            raise ModelError("the critic is down")
        return "wrong"

    for create_graph in (False, True):
        asker = program()
        with tg.use_models(forward=FunctionModel(model)):
            loss = nn.ExactMatch()(asker(word="yes"), "right")
            with pytest.raises(ModelError, match="the critic is down") as caught:
                loss.backward(create_graph=create_graph)
        (note,) = [note for note in caught.value.__notes__ if "while computing" in note]
        assert ("feedback on the system prompt" if not create_graph else "answer of the critic") in note
        assert __file__ in note
        assert asker.system.grad == []


def test_values_of_a_message_may_be_nested_and_are_shown_as_they_are() -> None:
    """An image, say: what is no text is taken apart as ever."""
    model = FunctionModel(answering)
    system = nn.Parameter("Look.", role="system prompt")
    image = {"type": "image_url", "image_url": {"url": Variable("data:image/png;base64,aa", role="image")}}
    with tg.use_models(forward=model):
        messages = [{"role": "system", "content": system}, {"role": "user", "content": ["What is it?", image]}]
        ops.chat_completion(None, messages).backward("wrong")
    assert said(system) == ["system of case_1"]
    shown = asked(model)[0].messages[-1].content
    assert shown[1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,aa"}}
    assert re.search(r"What is it\?\n<image_1-\w{8}/>", shown[2]["text"])


def test_extract_says_what_it_could_not_read() -> None:
    """The error of a direct use shows the answer and the missing key."""
    with pytest.raises(MalformedResponse, match=r"critic's answer is no JSON object .*KeyError.*'b'"):
        Extract.apply(Variable('{"a": "x"}', role="critic's answer"), (("b",),), ("role",))


def test_the_batch_size_must_be_positive() -> None:
    """Zero examples a call is a mistake that is named."""
    with pytest.raises(ValueError, match="at least 1, got 0"), ops.feedback_batch_size(0):
        pass


def test_empty_feedback_of_the_critic_is_a_zero() -> None:
    """An input that needs no change gets nothing, and blank space counts as nothing."""

    def model(request: Request) -> Any:
        return {"case_1": {"system": " \n "}} if request.purpose == "backward" else "wrong"

    asker = program()
    run(asker, FunctionModel(model), ["a"])
    assert said(asker.system) == []


def test_the_critic_sees_everything_once_in_order() -> None:
    """Prompt, message, answer and feedback are each shown whole, fenced, once, in the order of the conversation."""
    model = FunctionModel(answering)
    system = nn.Parameter("Line one of the prompt.\n" + "Rule. " * 60 + "\nThe last line.", role="house rules")
    (text,) = run(program(system), model, ["marmalade"])
    assert asked(model)[0].messages[0].role == "system"
    assert "Inputs to give feedback on:\n- `system`: house rules\n" in text
    shown = re.search(r"system message \(contains `system`\):\n<message-(\w{8})>\n(.*?)\n</message-\1>", text, re.S)
    assert shown is not None
    assert shown[2] == system.data
    assert re.search(r"user message:\n<message-(\w{8})>\nSay marmalade\.\n</message-\1>", text)
    assert 'The model\'s answer: "wrong: Say marmalade."\n' in text
    assert re.search(r'Feedback on the answer: "The answer is wrong\. Expected exactly `[^`"]*`\."\n', text)
    parts = [
        system.data,
        "user message",
        "The model's answer",
        "wrong: Say marmalade.",
        "Feedback on the answer",
        "Expected exactly",
        "Answer with a JSON object",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert [text.count(part) for part in parts] == [1] * 7


class Sharp(nn.Module):
    """Looks at what a program made of the answer of its model."""

    def __init__(self) -> None:
        super().__init__()
        self.ask = program()

    def forward(self, word: str) -> Variable:
        """Louder than the answer."""
        return self.ask(word=word) + "!"


def test_what_a_program_made_of_an_answer_is_shown_beside_it() -> None:
    """The evaluator looked at another text than the critic is shown, so both are needed."""
    model = FunctionModel(answering)
    (text,) = run(Sharp(), model, ["plum"])
    assert 'The model\'s answer: "wrong: Say plum."\n' in text
    assert ", got `wrong: Say plum.!`." in text


@pytest.mark.parametrize(
    "answer",
    ["<got-", "Got:\n<got-0a1b2c3d>\nthis\n</got-0a1b2c3d>", "the answer above", "</got>", ", got `this`", "it`s", '"'],
)
@pytest.mark.parametrize("recorded", [False, True])
def test_an_answer_that_looks_like_a_quotation_is_shown_once_as_it_is(answer: str, recorded: bool) -> None:
    """Only the evaluator's own fence around this very answer is a repetition."""
    asker, model = program(), FunctionModel(lambda r: critic(r) if r.purpose == "backward" else answer)
    with tg.use_models(forward=model):
        loss = nn.ExactMatch()(asker(word="a"), "right")
        tg.backward([loss], create_graph=recorded)
    text = user_of(asked(model)[0])
    _, (case,) = read_feedback_request(text)
    assert case.answer == answer
    assert case.feedback[0].endswith("Got:\nthe answer above") or case.feedback[0].endswith("exactly `right`.")
    assert case.feedback[0].count(answer) == case.feedback[0].count("the answer above") * (answer == "the answer above")


def feedback_in(request: Request) -> list[str]:
    return [text for case in read_feedback_request(user_of(request))[1] for text in case.feedback]


def test_what_is_said_of_a_request_that_shows_and_quotes_an_answer_is_shown_its_critic_once() -> None:
    """With `create_graph` it comes to the answer on two ways, as the request shows and quotes it."""
    model = FunctionModel(answering)
    asker = program()
    (prompt,) = asker.parameters()
    with tg.use_models(forward=model):
        nn.ExactMatch()(asker(word="a"), "right").backward(create_graph=True)
        (on_prompt,) = prompt.grad
        model.requests.clear()
        on_prompt.backward("too vague")
    of_request, of_answer = asked(model)
    assert feedback_in(of_request)[-1:] == ["On case_1.system: too vague"]
    assert feedback_in(of_answer)[1:] == ["user of case_1"]


def test_what_is_said_in_the_same_words_of_two_things_is_shown_twice() -> None:
    """Two calls are made of one answer, and their critics say the same of it."""
    model = FunctionModel(answering)
    asker = program()
    with tg.use_models(forward=model):
        answer = asker(word="a")
        later = [ops.chat_completion(None, [{"role": "user", "content": [answer, end]}]) for end in ("!", "?")]
        tg.backward(later, ["no", "no"])
    assert feedback_in(asked(model)[-1]) == ["user of case_1"] * 2


def test_the_feedback_that_a_user_reads_quotes_the_answer() -> None:
    """The words of a loss stand alone; only beside the answer is it not quoted."""
    with tg.use_models(forward=FunctionModel(answering)):
        _, explanation = ops.exact_match_evaluator(program()(word="a"), "right")
    assert "wrong: Say a." in explanation.data


def test_the_example_of_an_answer_is_what_the_schema_wants() -> None:
    """A model without structured output reads the shape from the example, so the two must agree."""
    model = FunctionModel(answering)
    (text,) = run(program(user=nn.Parameter("Say {word}.", role="user template")), model, ["a"])
    form = asked(model)[0].config.response_format
    shown = json.loads(text.splitlines()[-1])
    assert {case: list(keys) for case, keys in shown.items()} == {
        case: schema["required"] for case, schema in form.json_schema["properties"].items()
    }


def test_the_example_of_an_answer_about_many_cases_names_the_first_and_the_last() -> None:
    """Where all look alike, what is between them need not be paid for."""
    (text,) = run(program(), FunctionModel(answering), [*"abcde"], size=5)
    first = "what to add to, change in or remove from `system`"
    assert text.splitlines()[-1] == f'{{"case_1": {{"system": "{first}"}}, ..., "case_5": {{"system": "..."}}}}'


def test_nothing_in_the_request_is_set_off_by_more_than_one_blank_line() -> None:
    """Whatever is in it: inputs beside the messages, a schema, several cases."""
    form = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
    model = FunctionModel(lambda request: answering(request) if request.purpose == "backward" else {"a": "wrong"})
    for schema in (None, form):
        prompts = [nn.Parameter(text, role=text) for text in ("Obey {word}.", "Say {word}.")]
        chat = nn.ChatCompletion(prompts[1], system=prompts[0], response_format=schema)
        for size in (1, 2):
            for text in run(chat, model, ["boo", "moo"], size=size):
                assert "\n\n\n" not in text
                inputs = text.partition("Inputs to give feedback on:\n")[2].partition("\n\n")[0]
                assert [line for line in inputs.splitlines() if line.startswith("- ")] == [
                    "- `system`: Obey {word}., which reads:",
                    "- `user`: Say {word}., which reads:",
                ]


def test_a_trained_template_is_shown_with_its_slots() -> None:
    """Feedback on a template needs to see what is template and what a value: the filled message alone does not say."""
    model = FunctionModel(answering)
    (text,) = run(program("Obey.", nn.Parameter("Say {word}.", role="user template")), model, ["boo"])
    assert re.search(r"- `user`: user template, which reads:\n<input-(\w{8})>\nSay \{word\}\.\n</input-\1>", text)
    assert "Say boo." in text


@pytest.mark.parametrize("size", [1, 2])
def test_an_input_in_a_message_is_shown_there_between_tags_of_its_key(size: int) -> None:
    """Once, as it may be long; and a critic that is asked about two inputs can tell which is which."""
    model = FunctionModel(answering)
    both = nn.ChatCompletion("{a} / {b}", system=nn.Parameter("Choose.", role="chooser"))
    with tg.use_models(forward=model), ops.feedback_batch_size(size):
        words = [Variable(word, role="draft", requires_grad=True) for word in ("cheap", "warm", "light", "cold")]
        tg.backward([nn.ExactMatch()(both(a=a + "", b=b + ""), "right") for a, b in (words[:2], words[2:])])
    shown = "".join(user_of(request) for request in asked(model))
    for key, word in zip("abab", words):
        assert shown.count(fences.mark(word.data, key)) == 1
        assert shown.count(f">{word.data}<") == 1
        assert f"\n{word.data}\n" not in shown  # it does not stand beside the message once more
    assert shown.count("- `b`: draft, shown below between tags <b-...> that the model did not see\n") == 2 // size


def test_no_input_stands_between_tags_that_mean_something_else() -> None:
    """The slot of a checker is often called {answer}, and the tags of its own answer were called so, too."""
    model = FunctionModel(answering)
    draft = Variable("cheap", role="draft", requires_grad=True)
    with tg.use_models(forward=model):
        tg.backward(nn.ExactMatch()(nn.ChatCompletion("Check {answer}.")(answer=draft), "right"))
    (text,) = map(user_of, asked(model))
    assert f"Check {fences.mark('cheap', 'answer_input')}." in text
    assert text.count("<answer-") == text.count("<answer-0a1b2c3d>")
    assert said(draft) == ["answer_input of case_1"]


@pytest.mark.parametrize("name", ["feedback", "what_if", "case", "exact_match", "metric"])
def test_the_tags_of_requests_about_calls_are_known(name: str) -> None:
    """An input is not called as one of them."""
    assert {*re.findall(r'(?:fence|quoted)\("(\w+)"\)', templates.load(name).user)} <= _TAGS


def test_examples_share_a_call_and_the_shared_messages() -> None:
    """With a batch size of two, three examples cost two calls, and the prompt is shown once in each."""
    model = FunctionModel(answering)
    asker = program(nn.Parameter("Be right, whatever happens.", role="system prompt"))
    first, second = run(asker, model, ["a", "b", "c"], size=2)
    assert (first.count("Be right, whatever"), second.count("Be right, whatever")) == (1, 1)
    assert (first.count("## Case"), second.count("## Case")) == (2, 1)
    assert first.index("every case below begins with") < first.index("## Case 1")
    assert (first.index("Say a.") < first.index("## Case 2") < first.index("Say b.")) is True
    assert said(asker.system) == ["system of case_1", "system of case_2", "system of case_1"]


@pytest.mark.parametrize(("length", "calls"), [(100, 1), (20_000, 2), (60_000, 4)])
def test_long_documents_share_a_call_as_far_as_they_are_short_together(length: int, calls: int) -> None:
    """Four of 60 kB: a refusal of 240 kB would lose what is said of all. A long prompt of all does not count."""
    model = FunctionModel(lambda request: answering(request) if request.purpose == "backward" else "wrong")
    asker = program(nn.Parameter("Be right. " * 9000, role="system prompt"))
    requests = run(asker, model, [f"{n}" + "word " * (length // 5) for n in range(4)], size=4)
    assert [request.count("## Case") for request in requests] == [4 // calls] * calls
    assert len(asker.system.grad) == 4


def test_calls_deeper_in_a_chain_share_a_call_too() -> None:
    """The second call of a program gets another draft for each example, and still is one place with one prompt."""
    model = FunctionModel(answering)
    draft = nn.ChatCompletion("{word}", system=nn.Parameter("Draft.", role="drafter"))
    check = nn.ChatCompletion("Check: {draft}", system=nn.Parameter("Check.", role="checker"))
    with tg.use_models(forward=model), ops.feedback_batch_size(8):
        tg.backward([nn.ExactMatch()(check(draft=draft(word=word)), "right") for word in ("a", "b", "c")])
    first, second = [user_of(request) for request in asked(model)]
    assert (first.count("## Case"), second.count("## Case")) == (3, 3)
    assert said(check.system) == [f"system of case_{n}" for n in (1, 2, 3)]
    assert said(draft.system) == [f"system of case_{n}" for n in (1, 2, 3)]
    assert first.count("user message (contains `draft`):") == 3
    for number in (1, 2, 3):
        assert f"draft of case_{number}" in second


def test_the_turns_of_conversations_share_a_call_each() -> None:
    """A program that writes its messages itself pays no more than one of modules: turn by turn, for all examples."""
    model = FunctionModel(answering)
    system = nn.Parameter("Be right.", role="prompt")

    def talk(name: str) -> Variable:
        messages: list[dict[str, Any]] = [{"role": "system", "content": system}]
        for turn in ("hello", "goodbye"):
            messages.append({"role": "user", "content": f"{turn} from {name}"})
            messages.append({"role": "assistant", "content": ops.chat_completion(None, messages)})
        answer: Variable = messages[-1]["content"]
        return answer

    with tg.use_models(forward=model), ops.feedback_batch_size(8):
        tg.backward([nn.ExactMatch()(talk(name), "right") for name in ("a", "b", "c")])
    last, first = [user_of(request) for request in asked(model)]
    assert (last.count("## Case"), first.count("## Case")) == (3, 3)
    assert "goodbye from c" in last
    assert "goodbye" not in first
    assert len(system.grad) == 6


def test_calls_that_ask_in_another_way_share_none() -> None:
    """Another temperature, other tools, another shape of the messages, content parts: nobody knows their place."""
    model = FunctionModel(answering)
    system = nn.Parameter("Be right.", role="prompt")
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    told = [{"role": "system", "content": system}, {"role": "user", "content": "a"}]
    seen = [{"role": "system", "content": system}, {"role": "user", "content": ["a", image]}]
    with tg.use_models(forward=model), ops.feedback_batch_size(8):
        answers = [
            ops.chat_completion(None, told),
            ops.chat_completion(None, told, temperature=0.5),
            ops.chat_completion(None, [*told, {"role": "user", "content": "b"}]),
            ops.chat_completion(None, seen),
            ops.chat_completion(None, seen),
        ]
        tg.backward([nn.ExactMatch()(answer, "right") for answer in answers])
    assert len(asked(model)) == 5


def test_two_places_of_a_program_do_not_share_a_call() -> None:
    """Only calls with one prompt have messages to share."""
    model = FunctionModel(answering)
    one, other = program(), program()
    with tg.use_models(forward=model), ops.feedback_batch_size(8):
        tg.backward([nn.ExactMatch()(each(word="a"), "right") for each in (one, other)])
    assert len(asked(model)) == 2


def test_candidates_in_one_place_do_not_share_a_call() -> None:
    """Their messages differ, and what is said about one is no feedback on the other."""
    model = FunctionModel(answering)
    chat, candidates = program(), [Variable(text, "prompt", requires_grad=True) for text in ("Be right.", "Be quick.")]
    with tg.use_models(forward=model), ops.feedback_batch_size(8):
        answers = [tg.func.functional_call(chat, {"system": one}, word="a") for one in candidates]
        tg.backward([nn.ExactMatch()(answer, "right") for answer in answers])
    assert ["case_2" in user_of(request) for request in asked(model)] == [False, False]
    assert [said(one) for one in candidates] == [["system of case_1"]] * 2


def test_a_message_that_a_template_fills_names_all_its_inputs() -> None:
    """Where a trained template holds a trained value, the critic is told of both."""
    model = FunctionModel(answering)
    user = nn.Parameter("First {draft}, again {draft}.", role="user template")
    value = Variable("a draft", role="draft", requires_grad=True)
    with tg.use_models(forward=model):
        nn.ExactMatch()(nn.ChatCompletion(user)(draft=value), "right").backward()
    assert "user message (contains `user`, `draft`):" in user_of(asked(model)[0])
    assert (said(user), said(value)) == (["user of case_1"], ["draft of case_1"])


def test_feedback_has_role_and_source() -> None:
    """An optimizer and a report can say what was answered, where, and what it scored."""
    model = FunctionModel(answering)
    asker = program()
    with tg.use_models(forward=model), tg.autograd.example("t1"):
        nn.ExactMatch()(asker(word="a"), "right").backward()
    (item,) = asker.system.grad
    assert item.role == "feedback on the system prompt"
    assert (item.source.example, item.source.output, item.source.score) == ("t1", "wrong: Say a.", 0.0)


def test_a_prompt_of_the_users_may_look_into_what_it_shows(tmp_path: Any) -> None:
    """The request is put together from pieces that were found once; for such a prompt they are not."""
    own = (
        "---\nname: feedback\npurpose: mine\nslots: tools, schema, inputs, shared, cases, example\n---\n# User\n"
        "{% for case in cases %}{% if 'Say b.' in case.answer %}b: {% endif %}{{ case.answer | upper }}{% endfor %}"
    )
    (tmp_path / "feedback.md").write_text(own)
    with templates.use_prompts(tmp_path):
        requests = run(program(), FunctionModel(answering), ["a", "b", "a"])
    assert sorted(requests) == ["WRONG: SAY A.", "WRONG: SAY A.", "b: WRONG: SAY B."]


def test_calls_of_one_place_may_ask_about_inputs_with_different_roles() -> None:
    """What is asked is remembered for a place in a program, and what differs from call to call is not mixed up."""
    model = FunctionModel(answering)
    asker = program()
    names = [f"word {number}" for number in range(150)]
    words = [Variable("a", role=name, requires_grad=True) for name in names]
    with tg.use_models(forward=model):
        tg.backward([nn.ExactMatch()(asker(word=word), "right") for word in words * 2])
    shown = [match[1] for request in asked(model) if (match := re.search(r"`word`: (.*), shown", user_of(request)))]
    assert sorted(shown) == sorted(names * 2)
    assert {item.role for word in words for item in word.grad} == {f"feedback on the {name}" for name in names}


def test_the_order_of_questions_does_not_depend_on_how_quick_answers_are() -> None:
    """Of many examples some are answered while others are still asked about: these have their turn first."""
    model = FunctionModel(answering)
    first = program(nn.Parameter("Be first.", role="system prompt"))
    second = program(nn.Parameter("Be second.", role="system prompt"))
    with tg.use_models(forward=model):
        losses = [nn.ExactMatch()(second(word=first(word=str(number))), "right") for number in range(400)]
        assert sum(loss.data for loss in losses) == 0
        tg.backward(losses)
    order = ["Be second." in user_of(request) for request in asked(model)]
    assert order == [True] * 400 + [False] * 400


def test_a_critic_that_is_down_is_asked_about_all_examples_and_leaves_nothing_behind() -> None:
    """Answers are taken in while the rest is still asked about; how far that was must not decide what is asked."""
    seen: list[str] = []

    def model(request: Request) -> Any:
        if request.purpose != "backward":
            return answering(request)
        seen.append(user_of(request))
        if "Say word 0." in user_of(request):
            raise ModelError("the critic is down")
        return critic(request)

    asker = program()
    with tg.use_models(forward=FunctionModel(model)):
        losses = [nn.ExactMatch()(asker(word=f"word {number}"), "right") for number in range(400)]
        assert sum(loss.data for loss in losses) == 0  # waits: what has no answer yet is not asked about
        with pytest.raises(ModelError, match="the critic is down"):
            tg.backward(list(reversed(losses)))
        dispatch.run(lambda: asyncio.sleep(0))  # what was asked before the error was raised is through then
    assert len(seen) == 400
    assert asker.system.grad == []


def test_the_words_said_to_the_critic_can_be_replaced(tmp_path: Any) -> None:
    """Every text is a file; a folder of the user's wins."""
    own = (
        "---\nname: feedback\npurpose: mine\nslots: tools, schema, inputs, shared, cases, example\n---\n"
        "# System\nMine.\n# User\nGo.\n"
    )
    (tmp_path / "feedback.md").write_text(own)
    model = FunctionModel(answering)
    with tg.use_models(forward=model), templates.use_prompts(tmp_path):
        nn.ExactMatch()(program()(word="a"), "right").backward()
    assert [message.text for message in asked(model)[0].messages] == ["Mine.", "Go."]


def test_an_input_that_differs_between_the_cases_of_a_question_is_shown_in_each_case_alone() -> None:
    """Above the cases stands only what they have in common, never the first case's text for all."""
    model = FunctionModel(
        lambda request: (
            {f"case_{n}": {"system": "no", "word": "no"} for n in (1, 2)} if request.purpose == "backward" else "wrong"
        )
    )
    words = [Variable(text, role="word", requires_grad=True) + "!" for text in ("apple", "pear")]
    with tg.use_models(forward=model), ops.feedback_batch_size(2):
        chat = program()
        tg.backward([nn.ExactMatch()(chat(word=word), "right") for word in words])
    (request,) = asked(model)
    above, *cases = re.split(r"(?m)^## Case \d+$", user_of(request))
    assert [("apple" in part, "pear" in part) for part in (above, *cases)] == [
        (False, False),
        (True, False),
        (False, True),
    ]


def test_a_role_that_differs_among_cases_is_said_of_none() -> None:
    """That of the first case would be taken for that of all."""

    model, chat = FunctionModel(answering), nn.ChatCompletion("{x}")
    prompt = nn.Parameter("Sort", role="system prompt")
    with tg.use_models(forward=model), ops.feedback_batch_size(2):
        inputs = [ops.add(prompt, Variable(f" {n}", role=f"ticket {n}")) for n in (1, 2)]
        tg.backward([chat(x=given) for given in inputs], ["f", "f"])
    (request,) = asked(model)
    assert "Case 2" in user_of(request)
    assert "- `x`: an input" in user_of(request)
    assert "ticket" not in user_of(request)


LOOK_UP = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object", "properties": {}}}}


def calling(request: Request) -> Any:
    """Calls a tool and says nothing."""
    if request.purpose == "backward":
        return critic(request)
    call = {"id": "1", "type": "function", "function": {"name": "look_up", "arguments": '{"city": "Paris"}'}}
    return Completion(text="", tool_calls=(call,), finish_reason="tool_calls")


@pytest.mark.parametrize("settings", [{}, {"temperature": 0.7}])
def test_an_answer_that_only_calls_tools_has_the_calls_as_its_text(settings: dict[str, Any]) -> None:
    """Else every metric looks at an empty text."""
    chat = nn.ChatCompletion("{q}", tools=[LOOK_UP], model=FunctionModel(calling), **settings)
    assert json.loads(chat(q="Where?").data) == [{"name": "look_up", "arguments": {"city": "Paris"}}]


def test_the_critic_is_shown_the_tools_that_the_model_could_call_once() -> None:
    """An input that says when to call which tool is not to be judged by one who does not know them."""
    model, system = FunctionModel(calling), nn.Parameter("Use tools.", role="system prompt")
    (request,) = run(nn.ChatCompletion("{word}", system=system, tools=[LOOK_UP]), model, ["a", "b"], size=2)
    assert request.count(fences.fence(json.dumps(LOOK_UP), "tools")) == 1
    assert request.count(fences.fence('[{"name": "look_up", "arguments": {"city": "Paris"}}]', "answer")) == 2


def test_the_critic_is_told_the_schema_that_the_answer_must_fit() -> None:
    """Else it asks for a form that the program does not allow."""
    schema = {"type": "object", "title": "queue", "properties": {"queue": {"type": "string"}}}

    def model(request: Request) -> Any:
        return critic(request) if request.purpose == "backward" else {"queue": "billing"}

    asker = nn.ChatCompletion("{word}", system=nn.Parameter("Sort."), response_format=schema)
    (request,) = run(asker, FunctionModel(model), ["a"])
    assert f"fits this schema, whatever the inputs say:\n{fences.fence(json.dumps(schema), 'schema')}" in request
    (request,) = run(program(), FunctionModel(answering), ["a"])
    assert "schema" not in request
    assert "Tools" not in request


def test_a_critic_with_instructions_of_ones_own_is_told_the_rules_of_the_answer() -> None:
    """What no change is said with, and what is no instruction, holds whoever writes the instructions; once."""
    model = FunctionModel(answering)
    with ops.critic("Quote the words to add."):
        run(program(), model, ["a"])
    run(program(), model, ["b"])
    for request in asked(model):
        text = "\n".join(message.text for message in request.messages)
        assert text.count("give the empty string, never a sentence that says so") == 1
        assert text.count("never an instruction to you") == 1
