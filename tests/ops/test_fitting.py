"""What a critic is shown is fitted to what it reads."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import textgrad_engine as tg
from textgrad_engine import Variable, func, nn, ops
from textgrad_engine.autograd import Source, example
from textgrad_engine.errors import ContextOverflow
from textgrad_engine.llm import Request
from textgrad_engine.llm.context import LeftOut, Room, on_left_out
from textgrad_engine.llm.simulated.reading import read_feedback_request
from textgrad_engine.llm.tokens import count
from textgrad_engine.ops.fitting import View, fitted
from textgrad_engine.testing import FunctionModel


def answering(request: Request) -> Any:
    if request.purpose != "backward":
        return "wrong"
    schema = request.config.response_format.json_schema["properties"]
    if "change" in schema:
        return {"change": "it would be longer"}
    return {case: {key: f"{key} of {case}" for key in part["properties"]} for case, part in schema.items()}


def small(context: int | None) -> FunctionModel:
    """A critic with a context of so many tokens."""
    model = FunctionModel(answering, name="small")
    model.context = context
    return model


def users(model: FunctionModel) -> list[str]:
    return [request.messages[-1].text for request in model.requests if request.purpose == "backward"]


def chat(turns: list[str], prompt: Any = "Be kind.") -> tuple[Variable, Variable]:
    """The answer to a conversation that begins with a trained prompt, and the prompt."""
    system = Variable(prompt, role="system prompt", requires_grad=True)
    roles = ["user", "assistant"] * len(turns)
    said = [{"role": role, "content": text} for role, text in zip(roles, turns)]
    return ops.chat_completion(None, [{"role": "system", "content": system}, *said]), system


def scored(text: str, score: float | None) -> Variable:
    item = Variable(text, role="feedback")
    item.source = Source(score=score)
    return item


def test_what_cannot_be_fitted_is_an_error_that_names_the_example() -> None:
    """A template that is shown beside its message is needed whole; nothing is sent and nothing is left behind."""
    model = small(2000)
    prompt = Variable("A rule that is long. " * 500 + "{q}", role="user prompt", requires_grad=True)
    with tg.use_models(forward=model), example("train/17"):
        answer = nn.ChatCompletion(prompt)(q="Hello.")
        with pytest.raises(ContextOverflow, match=r"feedback on train/17 is about 3,\d\d\d tokens long .* of 2,000"):
            answer.backward("too cold")
    assert users(model) == []
    assert prompt.grad == []


def test_a_prompt_is_cut_only_where_nothing_else_is_long() -> None:
    """Half of it would be judged as if it were the whole; but a run is not ended by it."""
    model, prompt = small(2000), "A rule. " * 200
    with tg.use_models(forward=model):
        for page, whole in (("word " * 4000, True), ("Hello.", True), ("Hello.", False)):
            text = prompt if whole else prompt * 5
            answer, system = chat([page], prompt=text)
            answer.backward("too cold")
            assert (text in users(model)[-1]) is whole
            assert ("more characters …]" in users(model)[-1]) is (page != "Hello." or not whole)
            assert [item.data for item in system.grad] == ["system of case_1"]


def test_old_messages_are_left_out_first_and_the_request_and_the_log_say_so(caplog: Any) -> None:
    """Of a long conversation the critic sees the newest; trained prompt, last message and answer are whole."""
    model = small(2600)
    turns = [f"turn {n} " + "word " * 200 for n in range(9)]
    told: list[LeftOut] = []
    logged = caplog.at_level(logging.WARNING, logger="textgrad_engine")
    with tg.use_models(forward=model), example("train/3"), on_left_out(told.append), logged:
        answer, system = chat(turns)
        answer.backward("too cold")
    (user,) = users(model)
    _, (case,) = read_feedback_request(user)
    assert [text.split(" word")[0] for _, _, text in case.messages] == ["Be kind.", "turn 6", "turn 7", "turn 8"]
    assert [text for _, _, text in case.messages[1:]] == turns[6:]
    assert (case.answer, case.feedback) == ("wrong", ["too cold"])
    assert "Messages left out here, for want of room: 6." in user
    assert told == [LeftOut("feedback on train/3", "small", 6, 0)]
    assert [record.getMessage() for record in caplog.records] == [
        "feedback on train/3: 6 messages left out, for which the context of 'small' (2600 tokens) has no room"
    ]
    assert [item.data for item in system.grad] == ["system of case_1"]


def test_long_messages_are_shown_without_their_middle_in_the_room_that_is_left(caplog: Any) -> None:
    """What tools give is often longer than all that a small critic reads; its ends tell what it was about."""
    model = small(4000)
    pages = [f"page {n} begins. " + "word " * (4000 * n) + f"page {n} ends." for n in (1, 2)]
    told: list[LeftOut] = []
    with tg.use_models(forward=model), on_left_out(told.append):
        answer, _ = chat(["old", pages[0], "between", pages[1], "new"])
        answer.backward("too cold")
    (user,) = users(model)
    _, (case,) = read_feedback_request(user)
    shown = [text for _, _, text in case.messages]
    assert [shown[n] for n in (0, 1, 3, 5)] == ["Be kind.", "old", "between", "new"]
    for n, text in ((1, shown[2]), (2, shown[4])):
        assert text.startswith(f"page {n} begins.")
        assert text.endswith(f"page {n} ends.")
        assert "more characters …]" in text
    assert 1500 < count(user) <= 2000
    assert told == [LeftOut("feedback on an answer", "small", 0, 0, 2)]


def test_a_page_that_is_longer_than_the_context_is_shown_without_its_middle(caplog: Any) -> None:
    """One such example would end a run; its ends are shown, half of the context is filled, and all else is whole."""
    model = small(2000)
    told: list[LeftOut] = []
    logged = caplog.at_level(logging.WARNING, logger="textgrad_engine")
    page = "It begins. " + "word " * 4000 + "It ends."
    with tg.use_models(forward=model), example("train/3"), on_left_out(told.append), logged:
        answer, system = chat(["Hello.", "Good day.", page])
        answer.backward("too cold")
    (user,) = users(model)
    _, (case,) = read_feedback_request(user)
    assert [text for _, _, text in case.messages[:-1]] == ["Be kind."]
    assert "Messages left out here, for want of room: 2." in user
    (shown,) = [text for _, _, text in case.messages[-1:]]
    begin, gap, end = shown.split("\n")
    assert page.startswith(begin) and page.endswith(end) and abs(len(begin) - len(end)) < 6  # noqa: PT018
    assert gap == f"[… {len(page) - len(begin) - len(end):,} more characters …]"
    assert (case.answer, case.feedback) == ("wrong", ["too cold"])
    assert 800 < count(user) <= 1000
    assert told == [LeftOut("feedback on train/3", "small", 2, 0, 1)]
    assert "2 messages and 1 middle of a long text left out, for which the context of 'small'" in caplog.text
    assert [item.data for item in system.grad] == ["system of case_1"]


def test_beside_a_prompt_that_takes_half_of_the_context_a_page_is_shown_in_half_of_the_rest() -> None:
    """Not in its first and last words alone."""
    model, prompt = small(4000), "A rule. " * 1100
    with tg.use_models(forward=model):
        answer, _ = chat(["word " * 8000], prompt=prompt)
        answer.backward("too cold")
    request = model.requests[-1]
    assert prompt.strip() in request.messages[-1].text
    assert request.messages[-1].text.count("word ") > 100
    assert 2900 < sum(count(message.text) for message in request.messages) <= 3000


def test_what_was_said_at_length_loses_its_middle_and_the_tags_of_an_input_stay() -> None:
    """A log of a thousand lines is what a metric may give, and the answer of a call before a page."""
    model = small(2000)
    page = Variable("It begins. " + "word " * 4000 + "It ends.", role="page", requires_grad=True)
    with tg.use_models(forward=model):
        answer = nn.ChatCompletion("{page} Sum it up.")(page=page)
        answer.backward("line of a log\n" * 3000 + "the last line")
    (user,) = users(model)
    _, (case,) = read_feedback_request(user)
    (_, _, shown) = case.messages[-1]
    assert shown.count("more characters …]") == 1
    assert user.index("<page-") < user.index("It begins.") < user.index("It ends.") < user.index("</page-")
    assert "Sum it up." in shown
    (said,) = case.feedback
    assert said.startswith("line of a log\n")
    assert said.count("more characters …]") == 1
    assert said.endswith("the last line")
    assert [item.data for item in page.grad] == ["page of case_1"]


@pytest.mark.parametrize("long", ["answer", "page", "what was said"])
def test_beside_what_is_too_long_by_itself_short_feedback_stays(long: str) -> None:
    """What is too long loses its middle anyway; a note, and the words of a second metric, had been left out for it."""
    texts = {name: "word " * (4000 if name == long else 4) for name in ("answer", "page", "what was said")}
    model = FunctionModel(lambda request: answering(request) if request.purpose == "backward" else texts["answer"])
    model.context = 3000
    program = nn.ChatCompletion("{page}", system=nn.Parameter("Sum it up.", role="system prompt"))
    with tg.use_models(forward=model), ops.notes({"m1": "She means May."}), example("m1"):
        answer = program(page=texts["page"])
        said = [scored(texts["what was said"], 0.0), scored("too dry", 0.5), scored("and on. " * 400, 0.75)]
        tg.backward([answer] * 3, said)
    (user,) = users(model)
    assert user.count("more characters …]") == 1
    assert ["too dry" in user, "She means May." in user, "and on." in user] == [True, True, False]
    assert "Pieces of feedback left out here, for want of room: 1." in user
    assert count(user) < 1500


def test_of_much_feedback_the_worst_and_newest_is_shown() -> None:
    """Whole pieces, in their order; the number of the others is said."""
    model = small(2600)
    pad = " word" * 100
    with tg.use_models(forward=model):
        answer, _ = chat(["Hello."])
        items = [scored(f"{name}{pad}", score) for name, score in zip("abcdefghij", [1, 0, 0, 1, None, 0, 0, 1, 0, 0])]
        for item in items[:-1]:
            answer.backward(item, retain_graph=True)
        tg.backward([answer] * len(items), items)
    user = users(model)[-1]
    _, (case,) = read_feedback_request(user)
    assert [piece[0] for piece in case.feedback] == ["c", "f", "g", "i", "j"]
    assert "Pieces of feedback left out here, for want of room: 5." in user


def test_an_unknown_context_shows_everything() -> None:
    """Nothing is left out on a guess."""
    model = small(None)
    turns = ["word " * 5000] * 5
    with tg.use_models(forward=model):
        answer, _ = chat(turns)
        answer.backward("too cold")
    (user,) = users(model)
    assert user.count("word") == 25_000
    assert "left out" not in user


def test_examples_that_do_not_fit_together_are_asked_about_apart() -> None:
    """Sharing a call saves tokens; where there is no room for it, no example may lose its feedback."""
    model = small(3000)
    program = nn.ChatCompletion("{text}", system=nn.Parameter("Be kind.", role="system prompt"))
    told: list[LeftOut] = []
    with tg.use_models(forward=model), ops.feedback_batch_size(4), on_left_out(told.append):
        losses = []
        for n in range(4):
            with example(f"train/{n}"):
                losses.append(nn.ExactMatch()(program(text=f"{n} " + "word " * 400), "right"))
        tg.backward(losses)
    requests = [request for request in model.requests if request.purpose == "backward"]
    shown = [[case.last_user[0] for case in read_feedback_request(user)[1]] for user in users(model)]
    assert shown == [["0", "1"], ["2", "3"]]
    assert all(count(text) <= 1500 for text in users(model))
    assert [item.data for item in program.system.grad] == ["system of case_1", "system of case_2"] * 2
    assert [item.source.example for item in program.system.grad] == [f"train/{n}" for n in range(4)]
    assert told == []
    assert len(requests) == 2


def test_a_critic_of_ones_own_counts_too() -> None:
    """Its instructions take room from what it is shown."""
    instructions = Variable("Quote the words to add. " * 300, role="critic", requires_grad=True)
    told: list[LeftOut] = []
    for size in (5000, 6000):
        model = small(size)
        with tg.use_models(forward=model), ops.critic(instructions), on_left_out(told.append):
            answer, _ = chat(["old " * 700, "newer " * 50, "new"])
            answer.backward("too cold")
        assert model.requests[-1].messages[0].text == instructions.data
    assert [left.items for left in told] == [1]


def test_a_question_about_an_edit_is_fitted_too() -> None:
    """Forward mode asks with the same messages."""
    model = small(2600)
    turns = [f"turn {n} " + "word " * 200 for n in range(9)]
    told: list[LeftOut] = []

    def program(prompt: Variable) -> Variable:
        roles = ["user", "assistant"] * 5
        said = [{"role": role, "content": text} for role, text in zip(roles, turns)]
        return ops.chat_completion(None, [{"role": "system", "content": prompt}, *said])

    with tg.use_models(forward=model), on_left_out(told.append):
        prompt = Variable("Be kind.", role="system prompt")
        _, change = func.jvp(program, (prompt,), (Variable("add: and brief"),))
        assert change.data == "it would be longer"
    (user,) = users(model)
    assert "turn 8" in user
    assert "turn 1 " not in user
    assert [(left.what, left.messages) for left in told] == [("a question about an edit", 6)]


WORDS = st.integers(0, 60).map(lambda n: "word " * n)
HEAD = st.tuples(st.sampled_from(["user", "assistant"]), st.sampled_from(["", "", "`system`"]))
SCORED = st.lists(st.tuples(WORDS, st.none() | st.floats(0, 1)), min_size=1, max_size=5)
VIEW = st.builds(
    lambda messages, answer, said: View(
        tuple(head for head, _ in messages),
        [text for _, text in messages],
        answer,
        [text for text, _ in said],
        [score for _, score in said],
    ),
    st.lists(st.tuples(HEAD, WORDS), min_size=1, max_size=6),
    WORDS,
    SCORED,
)


@settings(deadline=None)
@given(st.lists(VIEW, min_size=1, max_size=3), st.integers(60, 2000))
def test_what_is_shown_is_whole_in_order_and_as_much_as_fits(views: list[View], tokens: int) -> None:
    """Law: what is left out is counted, what must be shown is, and only what is too long is touched."""
    seen: list[list[View]] = []

    def render(views: Any) -> str:
        seen.append(list(views))
        texts = [text for v in views for text in (*v.texts, v.answer, *v.feedback)]
        return "\n".join(texts)

    room = Room("small", 2 * tokens, tokens, 2 * tokens)
    before = count(render(views))
    seen.clear()
    try:
        text = fitted(views, render, room, 10, "a test")
    except ContextOverflow:
        assert count(render(seen[-1])) + 10 > room.most
        return
    assert count(text) + 10 <= room.most
    shown = seen[-1]
    if before + 10 <= tokens:
        assert shown == views
    for old, new in zip(views, shown):
        assert new.answer == old.answer
        before_it, after_it = list(zip(old.heads, old.texts)), list(zip(new.heads, new.texts))
        assert after_it[-1] == before_it[-1]
        assert [m for m in after_it if m[0][1]] == [m for m in before_it if m[0][1]]
        assert len(after_it) + new.left_out_messages == len(before_it)
        assert len(new.feedback) + new.left_out_feedback == len(old.feedback)
        assert new.feedback
        rest = iter(before_it)
        assert all(message in rest for message in after_it)
    droppable = any(len(v.feedback) > 1 or any(not keys for _, keys in v.heads[:-1]) for v in shown)
    assert count(text) + 10 <= room.tokens or not droppable
