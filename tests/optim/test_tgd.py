from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import Variable, backward, fences, nn, ops, templates, use_models
from textgrad_engine.autograd import Source
from textgrad_engine.errors import AuthenticationFailed, ContextOverflow, MalformedResponse
from textgrad_engine.llm import OpenAIModel, Request, RetryPolicy, resolve, tokens
from textgrad_engine.llm.response import Completion
from textgrad_engine.optim import TGD, Forbids, proposers
from textgrad_engine.optim.proposers import Brief, Proposal
from textgrad_engine.optim.showing import numbered
from textgrad_engine.optim.transforms import Gathered, cap, dedupe, momentum, newest_first
from textgrad_engine.optim.transforms.base import FeedbackTransform
from textgrad_engine.testing import Fault, FunctionModel, LoopbackServer, ScriptedModel


def prompt(text: str = "Sort the mail.\nBe polite.", *feedback: str, role: str = "system prompt") -> Variable:
    variable = Variable(text, role=role, requires_grad=True)
    variable.grad = [Variable(item) for item in feedback]
    return variable


def edit(op: str = "add", line: int = 1, text: str = "New line.", feedback: Any = (1,)) -> dict[str, Any]:
    return {"op": op, "line": line, "text": text, "reason": "asked for", "feedback": list(feedback)}


def patch(*edits: dict[str, Any]) -> dict[str, Any]:
    return {"edits": list(edits)}


def shown(model: ScriptedModel | FunctionModel, number: int = -1) -> str:
    return model.requests[number].messages[-1].text


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"mode": "delete"}, "mode is 'patch' or 'rewrite'"),
        ({"momentum": -1}, "momentum must be at least 0"),
        ({"max_edits": 0}, "max_edits must be at least 1"),
        ({"max_tokens": 0}, "max_tokens must be at least 1"),
        ({"max_feedback_tokens": 0}, "max_feedback_tokens must be at least 1"),
    ],
)
def test_settings_are_checked_for_all_and_for_groups(setting: dict[str, Any], message: str) -> None:
    """A setting of a group is a setting."""
    with pytest.raises(ValueError, match=message):
        TGD([prompt()], **setting)
    with pytest.raises(ValueError, match=message):
        TGD([{"params": [prompt()], **setting}])


@pytest.mark.parametrize("constraints", ["Be brief.", [print]])
def test_constraints_are_checked_when_they_are_given(constraints: Any) -> None:
    """One text is no list of texts: its letters would be constraints."""
    with pytest.raises(TypeError, match="constraint"):
        TGD([prompt()], constraints=constraints)


@pytest.mark.parametrize("feedback", [[], [" "], ["\n", "  \t"]])
def test_without_feedback_nothing_is_asked(feedback: list[str]) -> None:
    """Defect of section 9: rewriting with no feedback at all. Blank feedback is none."""
    model = ScriptedModel([])
    text = prompt("Sort.", *feedback)
    TGD([text], model=model).step()
    assert (model.requests, text.data) == ([], "Sort.")


def test_what_is_frozen_is_left_alone() -> None:
    """Defect of section 9: rewriting what does not require grad, even where it holds feedback."""
    model = ScriptedModel([])
    text = prompt("Sort.", "wrong")
    text.requires_grad = False
    TGD([text], model=model).step()
    assert (model.requests, text.data) == ([], "Sort.")


@pytest.mark.parametrize("sick", [0, 1, 2])
def test_all_parameters_change_or_none(sick: int) -> None:
    """Defect of section 9: a step that changes the first parameter and fails on the second."""

    def model(request: Request) -> Any:
        if f"role {sick}" in request.messages[-1].text:
            raise AuthenticationFailed("no", status=401)
        return patch(edit())

    texts = [prompt("Sort.", "wrong", role=f"role {n}") for n in range(3)]
    optimizer = TGD(texts, model=FunctionModel(model))
    with pytest.raises(AuthenticationFailed):
        optimizer.step()
    assert [text.data for text in texts] == ["Sort."] * 3
    assert (optimizer.changes, optimizer.state) == ([], {})


@pytest.mark.parametrize(
    "answer", ['{"edits": [', '{"edits": [{"op": "burn"}]}', '{"text": "<new>Sort', "Sort better."]
)
def test_half_an_answer_is_no_new_text(answer: str) -> None:
    """Defect of section 9: an unclosed tag that accepts half a prompt. Broken JSON is an error, not a value."""
    for mode in ("patch", "rewrite"):
        text = prompt("Sort.", "wrong")
        model = resolve(ScriptedModel([Completion(text=answer)]), policy=RetryPolicy(answer_attempts=1))
        with pytest.raises(MalformedResponse):
            TGD([text], model=model, mode=mode).step()  # type: ignore[arg-type]
        assert text.data == "Sort."


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (patch(edit(line=9)), "edit 1 adds a line behind line 9; the last line is 2 (0 puts it first)"),
        (patch(edit("replace", 7, "a"), edit("remove", 8, "")), "edit 2 removes line 8; the text has lines 1 to 2"),
        (patch(edit(text="3| Be brief.")), "edit 1 has a text with `3| `"),
        (patch(edit("replace", 2, "No slot.")), "the placeholder {mail} is missing"),
        (patch(edit(text="Use {tone}.")), "the placeholder {tone} is new"),
        (patch(edit(text="word " * 60)), "tokens, and 40 are allowed"),
    ],
)
def test_a_broken_contract_is_asked_about_once_more_then_dropped(bad: dict[str, Any], reason: str) -> None:
    """The second request has the reason and what it is about; the text stays, and the change says why."""
    text = prompt("Sort.\nThe mail: {mail}", "wrong")
    model = ScriptedModel([bad, bad])
    optimizer = TGD([text], model=model, max_edits=2, max_tokens=40)
    optimizer.step()
    assert text.data == "Sort.\nThe mail: {mail}"
    assert len(model.requests) == 2
    assert "could not be used" not in shown(model, 0)
    (told,) = [line for line in shown(model, 1).splitlines() if "Your last proposal could not be used:" in line]
    assert reason in told
    assert fences.fence(json.dumps(bad, ensure_ascii=False), "proposal") in shown(model, 1)
    assert "<proposal-" not in shown(model, 0)
    (change,) = optimizer.changes
    assert reason in change.problem
    assert (change.before, change.after, change.edits) == (text.data, text.data, ())
    assert optimizer.origins(text) == [None, None]


def test_the_second_try_is_used_when_it_keeps_the_contract() -> None:
    """One slip costs one call, not the step; another parameter's proposal is untouched by it."""

    def model(request: Request) -> Any:
        user = request.messages[-1].text
        slips = "user template" in user and "could not be used" not in user
        return patch(edit("replace", 1, "No slot." if slips else "The mail: {mail}!"))

    first, second = prompt("{mail}", "wrong", role="user template"), prompt("Old: {mail}", "wrong")
    optimizer = TGD([first, second], model=FunctionModel(model))
    optimizer.step()
    assert (first.data, second.data) == ("The mail: {mail}!",) * 2
    assert [change.problem for change in optimizer.changes] == ["", ""]


def test_a_contract_of_the_users_is_told_and_checked() -> None:
    """Any object with describe and problem will do."""

    class NoExclamation:
        def describe(self, before: str) -> str:
            return "No exclamation marks."

        def problem(self, before: str, after: str) -> str | None:
            return "there is an exclamation mark" if "!" in after else None

    text = prompt("Sort.", "wrong")
    model = ScriptedModel([patch(edit(text="Now!")), patch(edit(text="Now."))])
    TGD([text], model=model, constraints=[NoExclamation(), "Write plain English."]).step()
    assert text.data == "Sort.\nNow."
    assert "- No exclamation marks.\n- Write plain English.\n" in shown(model, 0)
    assert "there is an exclamation mark" in shown(model, 1)


def test_the_whole_text_is_shown_once() -> None:
    """Defect of section 9: an optimizer that sees the variable cut to twenty words."""
    lines = [f"Rule {n}: " + "word " * 30 + f"end of {n}." for n in range(1, 31)]
    for mode, answer in (("patch", patch()), ("rewrite", {"text": "Sort.", "reason": ""})):
        text = prompt("\n".join(lines), "wrong")
        model = ScriptedModel([answer])
        TGD([text], model=model, mode=mode).step()  # type: ignore[arg-type]
        user = shown(model)
        assert all(user.count(line) == 1 for line in lines)
        assert "The text is the system prompt" in user
        assert ("\n30| Rule 30" in user) is (mode == "patch")


def test_each_item_is_shown_once_with_its_answer_and_count() -> None:
    """Equal items are one, numbered in the order of the gradient."""
    text = prompt("Sort.", "Be brief.", "Name the queue.", " Be  brief. ")
    text.grad[1].source = Source(example="t1", output="It is billing, I think.")
    model = ScriptedModel([patch(edit(feedback=[2]))])
    optimizer = TGD([text], model=model)
    optimizer.step()
    user = shown(model)
    assert "Feedback on it, 2 items:" in user
    assert user.index("[1] (2 times)") < user.index("Be brief.") < user.index('[2] The answer was: "It')
    assert (user.count("Be brief."), user.count("Name the queue."), user.count("It is billing")) == (1, 1, 1)
    (_, origin) = optimizer.origins(text)
    assert origin is not None
    assert [(evidence.text, evidence.examples) for evidence in origin.evidence] == [("Name the queue.", ("t1",))]


def test_a_token_budget_leaves_out_whole_items_and_counts_them() -> None:
    """What is shown is whole; what is not is known."""
    text = prompt("Sort.", *[f"Item {n}: " + "word " * 20 for n in range(10)])
    model = ScriptedModel([patch()])
    optimizer = TGD([text], model=model, max_feedback_tokens=60)
    optimizer.step()
    (change,) = optimizer.changes
    assert change.left_out == 10 - len(change.items) > 0
    assert f"Feedback on it, {len(change.items)} items; {change.left_out} more were left out for want" in shown(model)
    for number in range(10):
        whole = f"Item {number}: " + ("word " * 20).strip()
        assert (whole in shown(model)) is (number < len(change.items))
        assert (f"Item {number}:" in shown(model)) is (number < len(change.items))


def test_what_there_is_no_room_for_is_said_to_every_proposer_and_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """One who does not know that two thirds are missing takes what is left for all of it."""
    text = prompt("Sort.", "Be brief.", "word " * 40)
    model = ScriptedModel([{"text": "Sort!", "reason": "brief"}])
    TGD([text], model=model, max_feedback_tokens=30, mode="rewrite").step()
    assert "Feedback on it, 1 item; 1 more was left out for want of room:" in shown(model)
    assert "feedback on the system prompt: 1 of 2 items left out" in caplog.text


def test_a_request_that_the_model_cannot_read_is_not_sent() -> None:
    """The endpoint would refuse it, in words that name no repair."""
    model = ScriptedModel([])
    model.context = 2048
    with pytest.raises(ContextOverflow, match=r"request to the optimizer is about .* context of 2,048"):
        TGD([prompt("Sort. " * 2000, "Be kind.")], model=model, max_tokens=9000).step()
    assert model.requests == []


def test_a_case_longer_than_the_context_does_not_cost_the_step() -> None:
    """Several cases of a hundred pages are each shown in parts, which is said, with what was said of their answers."""
    model = ScriptedModel([patch(edit(text="Look at the end."))])
    model.context = 4096
    program = nn.ChatCompletion("{report}", system=nn.Parameter("Sort the report."))
    with use_models(forward=FunctionModel(lambda request: "fine")), ops.critic(None):
        reports = [f"Report {n}\n{'all is well ' * 20_000}\nsigned {n}" for n in range(5)]
        backward([nn.ExactMatch()(program(report=text), f"bad {n}") for n, text in enumerate(reports)])
        optimizer = TGD(program.parameters(), model=model)
        optimizer.step()
    assert program.system.data == "Sort the report.\nLook at the end."
    request = shown(model)
    assert tokens.count(request) < 2048
    assert "Feedback on it, 4 items; 1 more was left out for want of room:" in request
    for n in range(4):
        assert re.search(
            rf"Report {n}\nall.+\n\[… [0-9,]+ more characters …\]\n.+ well \nsigned {n}\n</message-", request
        )
        assert f"Expected exactly `bad {n}`." in request


def test_withheld_feedback_is_really_withheld() -> None:
    """The control is shown the text, and not one word of feedback or answer."""
    text = prompt("Sort.", "Be brief.")
    text.grad[0].source = Source(output="It is billing.")
    model = ScriptedModel([{"text": "Sort.\nSay why.", "reason": "clearer"}])
    optimizer = TGD([text], model=model, use_feedback=False)
    optimizer.step()
    assert "Be brief." not in shown(model)
    assert "billing" not in shown(model)
    (_, origin) = optimizer.origins(text)
    assert origin is not None
    assert origin.evidence == ()


@pytest.mark.parametrize("mode", ["patch", "rewrite"])
@pytest.mark.parametrize("feedback", [[], ["Be brief."]])
def test_a_control_asks_for_the_best_text(mode: str, feedback: list[str]) -> None:
    """Not for edits that answer feedback: a model that obeys would change nothing, and any feedback look helpful."""
    model = ScriptedModel([{"text": "Sort well.", "reason": "clearer"}])
    text = prompt("Sort.", *feedback)
    TGD([text], model=model, use_feedback=False, mode=mode).step()
    assert model.requests[0].messages[0].text == templates.load("control_rewrite").system
    assert text.data == "Sort well."


def test_a_control_is_shown_what_was_tried() -> None:
    """What was taken back, and that a proposal was no new text: equal requests get equal answers for ever."""
    proposals = ["Sort well.", "Sort.", "Sort well.", "Sort now."]
    model = ScriptedModel([{"text": proposed, "reason": ""} for proposed in proposals])
    text = prompt("Sort.")
    optimizer = TGD([text], model=model, use_feedback=False)
    for _ in proposals:
        held = optimizer.state_dict()
        optimizer.step()
        if text.data != "Sort.":
            text.data = "Sort."
            optimizer.load_state_dict(held)
            optimizer.record_outcome("taken back")
    first, second, third, fourth = (shown(model, n) for n in range(4))
    assert "Sort well." not in first
    assert "tried before" in second
    assert "Sort well." in second
    assert "Your last proposal was no new text" in third
    assert "None of your last 2 proposals was a new text" in fourth


def test_momentum_reaches_the_prompt_with_the_outcome() -> None:
    """Defect of section 9: memory that never reaches the prompt. Only the last steps are shown."""
    text = prompt("Sort.")
    model = ScriptedModel([patch(edit(text=f"Line {n}.")) for n in range(4)])
    optimizer = TGD([text], model=model, momentum=2)
    for outcome in ("kept: 0.1 -> 0.2", "taken back: 0.2 -> 0.1", "kept: 0.2 -> 0.3", ""):
        text.grad = Variable("more")
        optimizer.step()
        optimizer.record_outcome(outcome)
    assert "tried before" not in shown(model, 0)
    assert "- added 'Line 0.' — kept: 0.1 -> 0.2" in shown(model, 1)
    assert "Line 0." not in shown(model, 3).split("tried before")[1]
    assert shown(model, 3).index("- added 'Line 1.' — taken back") < shown(model, 3).index("- added 'Line 2.' — kept")


@pytest.mark.parametrize("where", ["hook", "closure"])
def test_an_outcome_that_is_said_within_the_next_step_is_that_of_the_last_one(where: str) -> None:
    """A closure that scores the texts says what the last step came to: it is remembered once, with that."""
    model = FunctionModel(lambda request: patch(edit(text=f"Line {len(model.requests)}.")))
    text = prompt("Sort.")
    optimizer = TGD([text], model=model, momentum=4)
    if where == "hook":
        optimizer.register_step_pre_hook(lambda *_: optimizer.record_outcome(f"after step {optimizer.steps}"))
    for _ in range(3):
        text.grad = [Variable("Too long.")]
        optimizer.step(
            lambda: optimizer.record_outcome(f"after step {optimizer.steps}") if where == "closure" else None
        )
    told = [line for line in shown(model).split("\n") if line.startswith("- added")]
    assert told == ["- added 'Line 1.' — after step 1", "- added 'Line 2.' — after step 2"]


@pytest.mark.parametrize("settings", [{"momentum": 2}, {"transforms": [dedupe(), momentum(2)]}])
def test_steps_are_remembered_in_a_loop_that_says_nothing_of_them(settings: Any) -> None:
    """A loop of one's own need not know of `record_outcome`; where it says something, that is what is shown."""
    text = prompt("Sort.")
    model = ScriptedModel([patch(edit(text=f"Line {n}.")) for n in range(4)])
    optimizer = TGD([text], model=model, **settings)
    for number in range(4):
        text.grad = Variable("more")
        optimizer.step()
        if number == 1:
            optimizer.record_outcome("kept")
    assert [past(shown(model, n)) for n in range(4)] == [
        [],
        ["- added 'Line 0.' — outcome not known"],
        ["- added 'Line 0.' — outcome not known", "- added 'Line 1.' — kept"],
        ["- added 'Line 1.' — kept", "- added 'Line 2.' — outcome not known"],
    ]


def past(said: str) -> list[str]:
    """What a request tells of the past, which stands between tags as all text does that models wrote."""
    found = re.search(r"(?s)tried before, and what became of them:\n<(tried-\w+)>\n(.*)\n</\1>", said)
    return found[2].split("\n") if found else []


def test_a_step_that_nothing_was_said_of_is_in_the_state() -> None:
    """What goes on from a saved state is shown what the one that saved it is; saving changes nothing."""
    text = prompt("Sort.", "more")
    optimizer = TGD([text], model=ScriptedModel([patch(edit(text="Line 0.")), patch()]), momentum=2)
    optimizer.step()
    state = optimizer.state_dict()
    optimizer.record_outcome("kept")
    assert "kept" in repr(optimizer.state_dict())
    again = ScriptedModel([patch()])
    second = TGD([text], model=again, momentum=2)
    second.load_state_dict(state)
    text.grad = Variable("more")
    second.step()
    assert past(shown(again)) == ["- added 'Line 0.' — outcome not known"]


def test_a_rewrite_that_was_taken_back_is_told_by_what_it_changed() -> None:
    """That the text was written anew would say nothing."""
    text = prompt("Sort.\nBe kind.")
    model = ScriptedModel([{"text": "Sort.\nBe brief.", "reason": ""}, {"text": text.data, "reason": ""}])
    optimizer = TGD([text], model=model, mode="rewrite", momentum=1)
    for outcome in ("taken back", ""):
        text.grad = Variable("more")
        optimizer.step()
        text.data = "Sort.\nBe kind."
        optimizer.record_outcome(outcome)
    assert "- replaced 'Be kind.' by 'Be brief.' — taken back" in shown(model)


def test_an_edit_that_was_taken_back_and_is_there_now_is_not_said_to_have_failed() -> None:
    """It was kept later: only that is told."""
    text = prompt("Sort.")
    model = ScriptedModel([patch(edit(text="Be brief."))] * 2 + [patch()] * 2)
    optimizer = TGD([text], model=model, momentum=4)
    for outcome in ("taken back", "kept", "", ""):
        text.grad = Variable("more")
        optimizer.step()
        if outcome == "taken back":
            text.data = "Sort."
        if outcome:
            optimizer.record_outcome(outcome)
    assert "- added 'Be brief.' — taken back" in shown(model, 1)
    for request in (2, 3):
        assert past(shown(model, request)) == ["- added 'Be brief.' — kept"]


def test_without_momentum_nothing_of_the_past_is_shown() -> None:
    """The default is no memory."""
    text = prompt("Sort.")
    model = ScriptedModel([patch(edit()), patch(edit())])
    optimizer = TGD([text], model=model)
    for _ in range(2):
        text.grad = Variable("more")
        optimizer.step()
        optimizer.record_outcome("kept")
    assert "tried before" not in shown(model)


def test_a_rewrite_keeps_origins_of_lines_that_stay() -> None:
    """After a patch and a rewrite each line still names the step that wrote it."""
    text = prompt("Sort.\nBe polite.", "first")
    optimizer = TGD([text], model=ScriptedModel([patch(edit(text="Be brief."))]))
    optimizer.step()
    state = optimizer.state_dict()
    state["param_groups"][0]["mode"] = "rewrite"
    second = TGD([text], model=ScriptedModel([{"text": "\nSort!\nBe brief.\nBe polite.\n", "reason": "louder"}]))
    second.load_state_dict(state)
    text.grad = Variable("second")
    second.step()
    assert text.data == "Sort!\nBe brief.\nBe polite."
    origins = second.origins(text)
    assert [(o.step, o.reason) if o else None for o in origins] == [(2, "louder"), (1, "asked for"), None]


@pytest.mark.parametrize(
    ("mode", "answer"),
    [
        ("patch", patch()),
        ("patch", patch(edit("replace", 1, "Sort."))),
        ("rewrite", {"text": "Sort.", "reason": "fine as it is"}),
        ("rewrite", {"text": "", "reason": "fine as it is"}),
        ("rewrite", {"text": " \n", "reason": ""}),
        ("rewrite", {"text": "```\n\n```", "reason": ""}),
    ],
)
def test_a_proposal_of_no_change_changes_nothing(mode: Any, answer: dict[str, Any]) -> None:
    """Neither the text nor its version, nor what is shown of the past; the line end of a file is no change."""
    text = prompt("Sort.\n", "wrong")
    version = text._version
    optimizer = TGD([text], model=ScriptedModel([answer]), mode=mode, momentum=1)
    optimizer.step()
    optimizer.record_outcome("kept")
    (change,) = optimizer.changes
    assert (text.data, text._version, change.problem) == ("Sort.\n", version, "")
    assert optimizer.state[text].keys() == {"vain"}


@pytest.mark.parametrize("inside", ["", "\n", "\n\n"])
def test_a_rewrite_of_no_change_is_between_tags_where_there_is_no_structured_output(inside: str) -> None:
    """With nothing between those of the text; it is asked for once, and nothing is sent back."""

    def answer(request: Request) -> str:
        *_, one, other = re.findall(r"^<((?:text|reason)-[0-9a-f]{8})>$", request.messages[-1].text, re.MULTILINE)
        return f"<{one}>{inside}</{one}>\n<{other}>No change needed.</{other}>"

    refused = Fault(400, body={"error": {"message": "response_format is not supported"}})
    text = prompt("Sort.", "wrong")
    with LoopbackServer(FunctionModel(answer), script=[refused]) as server:
        optimizer = TGD([text], model=OpenAIModel("m", base_url=server.base_url), mode="rewrite")
        optimizer.step()
        assert server.requests == 2
    (change,) = optimizer.changes
    assert (text.data, change.after, change.problem) == ("Sort.", "Sort.", "")


def test_several_rewrites_of_no_change_are_no_candidates() -> None:
    """What one of them proposes is chosen without a race against nothing."""
    text = prompt("Sort.", "wrong")
    model = ScriptedModel([{"text": said, "reason": ""} for said in ("", "Sort it.", "")])
    TGD([text], model=model, mode="rewrite", candidates=3).step(lambda: pytest.fail("there is nothing to choose"))
    assert text.data == "Sort it."


def test_a_step_changes_no_call_already_made() -> None:
    """Backward through a text that was changed since says so."""
    text = prompt("Sort.", "wrong")
    answer = tg.ops.chat_completion(ScriptedModel(["x"]), [{"role": "system", "content": text}])
    TGD([text], model=ScriptedModel([patch(edit())])).step()
    with tg.use_models(forward=ScriptedModel([])), pytest.raises(tg.errors.AutogradError, match="was changed"):
        answer.backward("wrong")


def test_the_optimizers_model_is_asked_with_its_purpose() -> None:
    """Without a model of its own, that of use_models."""
    model, other = ScriptedModel([patch()]), ScriptedModel([])
    with tg.use_models(forward=other, optimizer=model):
        TGD([prompt("Sort.", "wrong")]).step()
    assert [request.purpose for request in model.requests] == ["optimizer"]


@pytest.mark.parametrize(
    ("setting", "error", "message"),
    [
        ({"examples": "Be brief."}, TypeError, r"write \['Be brief.'\]"),
        ({"transforms": dedupe()}, TypeError, "transforms is a sequence"),
        ({"transforms": [print]}, TypeError, "a feedback transform has"),
        ({"transforms": [dedupe]}, TypeError, r"got the function dedupe\(\); give what it makes: dedupe\(\.\.\.\)"),
        ({"proposer": "patch"}, TypeError, r"a proposer has propose\(\), such as Patch"),
    ],
)
def test_parts_are_checked_when_they_are_given(setting: dict[str, Any], error: Any, message: str) -> None:
    """For all, and for a group."""
    with pytest.raises(error, match=message):
        TGD([prompt()], **setting)
    with pytest.raises(error, match=message):
        TGD([{"params": [prompt()], **setting}])


def test_transforms_change_what_is_shown_and_count() -> None:
    """Theirs instead of the usual ones; the limit of tokens comes behind them, and counts go together."""
    text = prompt("Sort.", "first " * 5, "second", "second", "third")
    model = ScriptedModel([patch(edit(feedback=[1]))])
    optimizer = TGD([text], model=model, transforms=[newest_first(), cap(4)], max_feedback_tokens=2)
    optimizer.step()
    (change,) = optimizer.changes
    assert [item.text for item in change.items] == ["third"]
    assert change.left_out == 3
    assert "second" not in shown(model)


def test_transforms_that_leave_nothing_ask_nothing() -> None:
    """Defect of section 9: rewriting with no feedback at all."""

    class Nothing(FeedbackTransform):
        async def update(self, gathered: Gathered, state: dict[str, Any], context: Any) -> Any:
            return replace(gathered, items=(), left_out=len(gathered.items)), state

    text = prompt("Sort.", "wrong")
    optimizer = TGD([text], model=ScriptedModel([]), transforms=[Nothing()])
    optimizer.step()
    assert [(change.left_out, change.after) for change in optimizer.changes] == [(1, "Sort.")]


def test_the_memory_of_transforms_is_saved_and_taken_back() -> None:
    """What a step that failed had remembered is not kept; what a saved one had is."""
    answers = [patch(edit(text="One.")), AuthenticationFailed("no", status=401), patch(edit(text="Two."))]
    text, model = prompt("Sort.", "wrong"), ScriptedModel(answers)
    optimizer = TGD([text], model=model, momentum=3)
    optimizer.step()
    optimizer.record_outcome("kept")
    held = optimizer.state_dict()
    with pytest.raises(AuthenticationFailed):
        optimizer.step()
    assert optimizer.state_dict()["state"] == held["state"]
    second = TGD([text], model=model, momentum=3)
    second.load_state_dict(held)
    second.step()
    assert "- added 'One.' — kept" in shown(model)


def test_examples_of_good_texts_are_shown() -> None:
    """TextGrad's in-context examples, per group."""
    first, second = prompt("A.", "wrong"), prompt("B.", "wrong", role="other")
    model = FunctionModel(lambda request: patch())
    TGD([{"params": [first], "examples": ["You grade."]}, {"params": [second]}], model=model).step()
    assert sorted("You grade." in shown(model, n) for n in range(2)) == [False, True]


def test_feedback_is_cut_to_what_the_model_can_read() -> None:
    """Whole items, and counted; a model that says nothing of its context gets all."""
    said = [f"Item {n}: " + "word " * 200 for n in range(8)]
    left = []
    for context in (None, 4000):
        model = FunctionModel(lambda request: patch())
        if context is not None:
            model.context = context  # type: ignore[attr-defined]
        optimizer = TGD([prompt("Sort.", *said)], model=model)
        optimizer.step()
        left.append(optimizer.changes[0].left_out)
    assert left[0] == 0
    assert 0 < left[1] < 8


def test_another_proposer_needs_no_model() -> None:
    """One that asks nobody works where no model was named."""

    class Shout:
        async def propose(self, brief: Brief, model: Any, problem: str) -> Proposal:
            text = brief.text.upper()
            return Proposal(text, (None,) * len(brief.origins))

    text = prompt("Sort.", "louder")
    optimizer = TGD([text], proposer=Shout(), momentum=1)
    optimizer.step()
    assert text.data == "SORT."
    optimizer.record_outcome("kept")
    assert "replaced 'Sort.' by 'SORT.'" in repr(optimizer.state.values())


@pytest.mark.parametrize("candidates", [0, -1])
def test_there_is_at_least_one_candidate(candidates: int) -> None:
    """None would change nothing, silently."""
    with pytest.raises(ValueError, match="candidates must be at least 1"):
        TGD([prompt()], candidates=candidates)


def test_several_candidates_want_something_that_scores() -> None:
    """Said before anything is paid for."""
    model = ScriptedModel([])
    with pytest.raises(ValueError, match=r"step\(train.Objective\(program, loss, examples\)\)"):
        TGD([prompt("Sort.", "wrong")], model=model, candidates=3).step()
    assert model.requests == []


def test_the_candidate_with_the_best_score_is_taken() -> None:
    """All parameters change together; origins and edits are those of the one that won."""
    first, second = prompt("A.", "wrong", role="one"), prompt("B.", "wrong", role="two")
    texts = iter(["a1", "a2", "a3"])

    def model(request: Request) -> Any:
        return patch(edit(text=next(texts)) if "is the one" in request.messages[-1].text else edit(text="b1"))

    def closure() -> list[float]:
        assert str(second.data) == "B.\nb1"
        return [1.0 if str(first.data).endswith("a2") else 0.0, 0.5]

    optimizer = TGD([first, second], model=FunctionModel(model), candidates=3)
    assert optimizer.step(closure) == 0.75
    assert (first.data, second.data) == ("A.\na2", "B.\nb1")
    assert [origin and origin.edit for origin in optimizer.origins(first)] == [None, "1.1"]
    assert [change.after for change in optimizer.changes] == ["A.\na2", "B.\nb1"]


def test_a_single_candidate_is_not_scored() -> None:
    """There is nothing to choose, so nothing is paid for; nor is there without feedback."""
    model = ScriptedModel([patch(edit())] * 3)
    text = prompt("Sort.", "wrong")
    optimizer = TGD([text], model=model, candidates=3)
    assert optimizer.step(lambda: pytest.fail("scored")) is None
    assert text.data == "Sort.\nNew line."
    text.grad = None
    assert optimizer.step(lambda: pytest.fail("scored")) is None


def test_nothing_changes_when_scoring_fails() -> None:
    """Neither texts nor memory."""

    def closure() -> float:
        raise AuthenticationFailed("no", status=401)

    text = prompt("Sort.", "wrong")
    optimizer = TGD([text], model=ScriptedModel([patch(edit(text="a")), patch(edit(text="b"))]), candidates=2)
    with pytest.raises(AuthenticationFailed):
        optimizer.step(closure)
    assert (text.data, optimizer.changes, optimizer.state) == ("Sort.", [], {})


def test_a_paragraph_is_edited_by_its_sentences() -> None:
    """A prompt of one long line is neither written again for one word of it, nor lost where a sentence replaces it."""
    text = " ".join(f"Tickets of kind {n} go to queue {n}." for n in range(40))
    model = ScriptedModel([patch(edit("replace", 6, "Tickets of kind 5 are junk."))])
    variable = prompt(text, "Kind 5 is junk.")
    TGD([variable], model=model).step()
    assert variable.data == text.replace("Tickets of kind 5 go to queue 5.", "Tickets of kind 5 are junk.")
    assert "\n6|~ Tickets of kind 5 go to queue 5.\n" in shown(model)
    assert "Where `|~` stands behind a number" in shown(model)
    short = ScriptedModel([patch()])
    TGD([prompt("Sort.", "x")], model=short).step()
    assert "|~" not in shown(short)


@pytest.mark.parametrize("text", [" ".join(["Sort it."] * 150), "\n".join(["Sort it."] * 150)])
def test_the_numbers_of_lines_and_sentences_take_room_from_the_feedback(text: str) -> None:
    """They are shown to the model, and a long prompt of short sentences has many."""
    model = FunctionModel(lambda request: json.dumps({"edits": []}))
    model.context = 6_000  # type: ignore[attr-defined]
    feedback = [f"{n} " + "word " * 60 for n in range(40)]
    TGD([prompt(text, *feedback)], model=model).step()
    beside = tokens.count(numbered(text)) + tokens.count(templates.load("optimizer_patch").system)
    items = [item for item in feedback if item.strip() in shown(model)]
    assert 0 < sum(map(tokens.count, items)) <= 3_000 - beside


@pytest.mark.parametrize("use", ["chat", "format"])
def test_what_is_said_of_a_template_itself_does_not_take_its_slots(use: str) -> None:
    """All answers are right, and the prompt is too long: without its slot the next call would fail."""
    proposed = ["Sort it.", "Sort {ticket}."]

    def answer(request: Request) -> Any:
        if request.purpose == "optimizer":
            edit = {"op": "replace", "line": 1, "text": proposed.pop(0), "reason": "shorter", "feedback": [1]}
            return {"edits": [edit]}
        return "billing"

    user = nn.Parameter("Please sort this ticket, kindly: {ticket}", role="user message")
    with use_models(forward=FunctionModel(answer)):
        if use == "chat":
            said = nn.ChatCompletion(user)(ticket="my bill")
        else:
            said = ops.chat_completion(None, [{"role": "user", "content": ops.format(user, ticket="my bill")}])
        length = nn.Metric(lambda text, _: (0.0, "It is too long."), "short texts")
        backward([nn.ExactMatch()(said, "billing"), length(user, "")])
        TGD([user]).step()
    assert user.data == "Sort {ticket}."


def test_what_came_to_nothing_is_not_asked_again_and_again() -> None:
    """With the same feedback, text and history a model that is steady says the same; saved, it is remembered."""
    variable = prompt("Sort.", "too long")
    model = ScriptedModel([patch()] * 2 + [patch(edit())])
    optimizer = TGD([variable], model=model)
    for _ in range(2):
        optimizer.step()
    again = TGD([variable], model=model)
    again.load_state_dict(json.loads(json.dumps(optimizer.state_dict())))
    again.step()
    assert len(model.requests) == 2
    assert "changed nothing 2 times, so nobody was asked" in again.changes[0].problem
    variable.grad = [Variable("too long"), Variable("too rude")]
    again.step()
    assert len(model.requests) == 3
    assert variable.data == "Sort.\nNew line."


@pytest.mark.parametrize("other", ["mode", "model", "proposer"])
def test_what_came_to_nothing_is_asked_of_another_and_in_another_way(other: str) -> None:
    variable = prompt("Sort.", "too long")
    optimizer = TGD([variable], model=ScriptedModel([patch()] * 2))
    for _ in range(2):
        optimizer.step()
    rewritten = {"text": "Be brief.", "reason": "shorter"}
    if other == "mode":
        optimizer.model = ScriptedModel([rewritten])
        optimizer.param_groups[0]["mode"] = "rewrite"
    elif other == "model":
        optimizer.model = ScriptedModel([patch(edit(op="replace", text="Be brief."))], name="better")
    else:
        optimizer.model = ScriptedModel([rewritten])
        optimizer.param_groups[0]["proposer"] = proposers.Rewrite()
    optimizer.step()
    assert variable.data == "Be brief."


def test_what_breaks_a_contract_is_asked_for_again() -> None:
    """An answer that is drawn may keep it the next time, with the same feedback."""
    variable = prompt("Sort.", "too long")
    model = ScriptedModel([patch(edit(text="Never."))] * 6 + [patch(edit())])
    optimizer = TGD([variable], model=model, constraints=[Forbids(["Never"])])
    for _ in range(4):
        optimizer.step()
    assert variable.data == "Sort.\nNew line."
