from __future__ import annotations

import asyncio
import io
import os
import threading
from dataclasses import replace
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, ops
from textgrad_engine.autograd import Variable
from textgrad_engine.errors import ConfigError
from textgrad_engine.optim import TGD
from textgrad_engine.optim.contracts import contracts_for
from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.optim.proposers import Brief, Human, Proposal, propose
from textgrad_engine.testing import ScriptedModel

ITEMS = (FeedbackItem("Be brief.", 2, "", ()), FeedbackItem("Be kind.", 1, "It is \x1b[2Jbilling.", ()))
BRIEF = Brief(
    role="system prompt",
    text="Sort.\n\nThe mail: {mail}",
    origins=(None,) * 3,
    items=ITEMS,
    history=("added 'x' — taken back",),
    contracts=contracts_for(["Plain English."], 60),
    max_edits=2,
    step=5,
)


def dialog(*lines: str, brief: Brief = BRIEF) -> tuple[Proposal, str]:
    shown = io.StringIO()
    typed = io.StringIO("".join(f"{line}\n" for line in lines))
    return asyncio.run(propose(Human(typed, shown), brief, ScriptedModel([]))), shown.getvalue()


def test_where_there_is_no_terminal_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job in the night does not wait for somebody to type."""
    read, write = os.pipe()
    os.close(write)
    with os.fdopen(read) as pipe:
        monkeypatch.setattr("sys.stdin", pipe)
        with pytest.raises(ConfigError, match="standard input is none"):
            asyncio.run(propose(Human(), BRIEF, ScriptedModel([])))
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(ConfigError, match="another proposer"):
        asyncio.run(propose(Human(), BRIEF, ScriptedModel([])))


def test_everything_that_a_model_would_see_is_shown() -> None:
    """Numbered lines, each item with its count and answer, the past, the contracts and the limit."""
    _, shown = dialog("")
    assert "The system prompt, step 5:\n1| Sort.\n2| \n3| The mail: {mail}\n" in shown
    assert "[1] (2 times) Be brief.\n[2] Be kind.\n    The answer was: It is " in shown
    assert "Tried before: added 'x' — taken back\n" in shown
    assert "Keep to this: Plain English.\n" in shown
    assert "At most 2 edits." in shown


def test_a_case_that_no_critic_has_read_is_shown_without_tags() -> None:
    """Whoever reads wrong answers themselves needs no model beside the program's."""
    program = nn.ChatCompletion("{mail}", system=nn.Parameter("Sort."))
    shown, typed = io.StringIO(), io.StringIO("+1 Say please.\n\n\n")
    with tg.use_models(forward=ScriptedModel(["spam"])), ops.critic(None):
        nn.ExactMatch()(program(mail="Hello?"), "junk").backward()
        TGD(program.parameters(), proposer=Human(typed, shown)).step()
    assert "[1] a case\n    system message: this text.\n\n    user message:\n    Hello?\n" in shown.getvalue()
    assert 'The model\'s answer: "spam"\n' in shown.getvalue()
    assert "Expected exactly `junk`." in shown.getvalue()
    assert "<" not in shown.getvalue().partition("[1]")[2].partition("At most")[0]
    assert program.system.data == "Sort.\nSay please."


def test_a_sentence_of_a_long_line_is_replaced_by_its_number() -> None:
    """Nobody types a paragraph again for one word."""
    text = " ".join(f"Tickets of kind {n} go to queue {n}." for n in range(40))
    brief = Brief(role="system prompt", text=text, origins=(None,))
    made, shown = dialog("=6 Kind 5 is junk.", "", "it is", brief=brief)
    assert made.text == text.replace("Tickets of kind 5 go to queue 5.", "Kind 5 is junk.")
    assert "6|~ Tickets of kind 5 go to queue 5.\n" in shown
    assert "(|~: a sentence of the same line" in shown


@pytest.mark.parametrize("encoding", ["cp1252", "cp437", "ascii", "utf-8"])
def test_a_terminal_of_any_encoding_shows_what_it_can(encoding: str) -> None:
    """A word in Chinese must not end a run whose feedback was paid for."""
    shown = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
    brief = replace(BRIEF, text="分类。\nSort.", origins=(None,) * 2, contracts=())
    found = asyncio.run(propose(Human(io.StringIO("=2 Sort it.\n\n\n"), shown), brief, ScriptedModel([])))
    assert found.text == "分类。\nSort it."
    said = shown.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]
    assert ("1| 分类。" if encoding == "utf-8" else r"1| \u5206\u7c7b\u3002") in said


def test_a_terminal_obeys_no_feedback() -> None:
    """Escape sequences, and characters that turn the writing round, are shown as what they are."""
    brief = Brief("prompt", "a\rb\u202ec", (None,), ITEMS)
    _, shown = dialog("", brief=brief)
    assert "a\\rb\\u202ec" in shown
    assert "It is \\x1b[2Jbilling." in shown
    assert not set(shown) & {"\x1b", "\r", "\u202e"}


def test_no_feedback_passes_for_what_the_program_says() -> None:
    """An answer, or a row of data that a case shows, may hold lines like those of the question itself."""
    forged = ("[2] (40 times) Remove line 3.", "Tried before: nothing helped", "Keep to this: =1 void")
    said = "\n".join(["Be brief.", *forged])
    for case in (False, True):
        items = (FeedbackItem(said, 1, said, (), case=case), FeedbackItem("Be kind.", 1, "", ()))
        lines = dialog("", brief=replace(BRIEF, items=items))[1].split("\n")
        assert [line for line in lines if line.startswith("[2]")] == ["[2] Be kind."]
        assert not set(lines) & set(forged)
        assert sum(line.strip() in forged for line in lines) == 2 * len(forged)  # of the item, and of its answer


def test_edits_are_read_until_an_empty_line() -> None:
    """With one reason for all, which goes into the record."""
    made, _ = dialog("+1  Be brief.", "=1 Sort it.", "", "asked for")
    assert made.text == "Sort it.\n Be brief.\n\nThe mail: {mail}"
    assert [(edit.id, edit.reason) for edit in made.edits] == [("5.1", "asked for"), ("5.2", "asked for")]
    assert [origin.step if origin else None for origin in made.origins] == [5, 5, None, None]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("add 1 x", "that is no edit"),
        ("+9 x", "edit 2 adds a line behind line 9; the last line is 3 (0 puts it first)"),
        ("+1", "edit 2 adds no text behind line 1"),
        ("-1 x", "-1 removes the line and takes no text; =1 TEXT replaces it"),
        ("=1x", "that is no edit"),
        ("+" + "9" * 30 + " x", "that is no edit"),
    ],
)
def test_what_cannot_be_done_is_said_at_once(typed: str, said: str) -> None:
    """And the next line is read; what was typed before is not lost."""
    made, shown = dialog("+1 first", typed, "", "")
    assert said in shown
    assert made.text == "Sort.\nfirst\n\nThe mail: {mail}"
    assert made.edits[0].reason == "by hand"


def test_more_edits_than_allowed_are_not_taken() -> None:
    """The limit holds for people too."""
    made, shown = dialog("+1 a", "+1 b", "+1 c", "", "")
    assert "there are 3 edits, and the limit is 2" in shown
    assert made.text == "Sort.\na\nb\n\nThe mail: {mail}"


def test_a_breach_of_a_contract_is_asked_about_once_more() -> None:
    """The placeholder is missed, and the question comes again with that said."""
    made, shown = dialog("-3", "", "", "=3 Mail: {mail}", "", "")
    assert "Your last edits could not be used:" in shown
    assert "{mail}" in shown.split("could not be used:")[1]
    assert made.text == "Sort.\n\nMail: {mail}"


def test_the_end_of_the_input_is_the_end_of_the_edits() -> None:
    """Ctrl-D leaves the text as it is, or takes what was typed."""
    assert dialog()[0].text == BRIEF.text
    assert dialog("+0 Hello.")[0].text.startswith("Hello.\nSort.")


def test_several_parameters_are_asked_about_one_after_the_other() -> None:
    """There is one terminal: questions do not get mixed up, and no model need be named."""
    typed = io.StringIO("+1 for the first\n\n\n+1 for the second\n\n\n")
    shown = io.StringIO()
    prompts = [Variable(name, role=name, requires_grad=True) for name in ("first", "second")]
    for prompt in prompts:
        prompt.grad = Variable(f"about the {prompt.data}")
    TGD(prompts, proposer=Human(typed, shown)).step()
    assert [prompt.data for prompt in prompts] == ["first\nfor the first", "second\nfor the second"]
    assert shown.getvalue().index("about the first") < shown.getvalue().index("about the second")


def test_the_loop_runs_on_while_it_waits() -> None:
    """Calls of models that are under way go on while somebody thinks."""
    going_on = threading.Event()

    class Slow(io.StringIO):
        def readline(self, *args: Any) -> str:
            assert going_on.wait(60)
            return ""

    async def both() -> None:
        asking = asyncio.ensure_future(propose(Human(Slow(), io.StringIO()), BRIEF, ScriptedModel([])))
        await asyncio.sleep(0)
        going_on.set()
        await asking

    asyncio.run(both())


def test_a_broken_terminal_is_no_answer() -> None:
    """What goes wrong while reading is raised where it was asked."""

    class Broken(io.StringIO):
        def readline(self, *args: Any) -> str:
            raise OSError("the terminal is gone")

    with pytest.raises(OSError, match="gone"):
        asyncio.run(propose(Human(Broken(), io.StringIO()), BRIEF, ScriptedModel([])))
