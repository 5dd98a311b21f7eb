from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest

import textgrad_engine as tg
from textgrad_engine import llm, nn
from textgrad_engine.errors import AuthenticationFailed, ContractError
from textgrad_engine.llm.model import Model
from textgrad_engine.optim.cells import Origin
from textgrad_engine.optim.contracts import Forbids, contracts_for
from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.optim.proposers import Brief, Patch, Proposal, Proposer, Rewrite, propose
from textgrad_engine.optim.proposers.asking import LateModel
from textgrad_engine.testing import ScriptedModel

BRIEF = Brief(role="system prompt", text="Sort.\nBe polite.", origins=(None, None), contracts=contracts_for([], 40))


class Fixed:
    """Proposes the texts of a list, one after the other, and notes what it was told."""

    def __init__(self, *texts: str | Exception) -> None:
        self.texts, self.told = list(texts), list[str]()

    async def propose(self, brief: Brief, model: Model, problem: str) -> Proposal:
        self.told.append(problem)
        text = self.texts.pop(0)
        if isinstance(text, Exception):
            raise text
        return Proposal(text, (None,) * (text.count("\n") + 1))


def made(proposer: Fixed, brief: Brief = BRIEF) -> Proposal:
    return asyncio.run(propose(proposer, brief, ScriptedModel([])))


def test_a_proposal_that_breaks_a_contract_is_repaired_once() -> None:
    """The proposer is told what was wrong, and has one more try."""
    proposer = Fixed("word " * 60, "Sort it.")
    assert made(proposer).text == "Sort it."
    assert proposer.told[0] == ""
    assert "40" in proposer.told[1]


def test_a_second_breach_drops_it() -> None:
    """The text stays as it was, and the last problem says why."""
    proposer = Fixed(ContractError("there is no line 9"), "")
    found = made(proposer)
    assert (found.text, found.origins, found.edits) == (BRIEF.text, BRIEF.origins, ())
    assert proposer.told == ["", "there is no line 9"]
    assert "empty" in found.problem


def test_of_a_patch_that_breaks_a_contract_twice_the_edits_stay_that_keep_it() -> None:
    """One line too many costs that line; what is taken out makes room for what is added."""

    def edit(op: str, line: int, text: str, feedback: int) -> dict[str, object]:
        return {"op": op, "line": line, "text": text, "reason": f"r{feedback}", "feedback": [feedback]}

    items = tuple(FeedbackItem(f"item {n}", 1, "", (f"e{n}",)) for n in (1, 2, 3))
    brief = replace(BRIEF, text="Sort.\n" + "polite " * 30, items=items, step=7)
    edits = [edit("add", 1, "kind " * 20, 1), edit("add", 1, "word " * 60, 2), edit("remove", 2, "", 3)]
    found = asyncio.run(propose(Patch(), brief, ScriptedModel([{"edits": edits}] * 2)))
    assert found.text == "Sort.\n" + "kind " * 20
    assert (found.problem, [(one.op, one.id) for one in found.edits]) == ("", [("add", "7.1"), ("remove", "7.3")])
    origin = found.origins[1]
    assert origin is not None
    assert [said.examples for said in origin.evidence] == [("e1",)]


def test_of_an_answer_that_is_wrong_twice_the_edits_stay_that_can_be_made() -> None:
    """One edit of a line that is not there, and one too many, cost only these; all problems are named at once."""
    good = [{"op": "add", "line": 2, "text": f"Rule {n}.", "reason": "", "feedback": []} for n in range(4)]
    bad = {"op": "add", "line": 3, "text": "x", "reason": "", "feedback": []}
    model = ScriptedModel([{"edits": [bad, *good]}] * 2)
    found = asyncio.run(propose(Patch(), BRIEF, model))
    assert (found.text.split("\n")[2:], found.problem) == ([f"Rule {n}." for n in range(4)], "")
    said = (
        "edit 1 adds a line behind line 3; the last line is 2 (0 puts it first); there are 5 edits, and the limit is 4"
    )
    assert f"Your last proposal could not be used: {said}\n" in model.requests[1].messages[-1].text


def test_what_breaks_a_contract_is_told_beside_edits_that_cannot_be_made() -> None:
    """The second answer is the last one: it was told of a line that is not there, and kept what breaks a contract."""
    brief = replace(BRIEF, contracts=contracts_for([Forbids(["sorry"])], 40))
    edits = [
        {"op": "add", "line": line, "text": text, "reason": "", "feedback": []}
        for line, text in ((9, "x"), (2, "Say sorry."))
    ]
    model = ScriptedModel([{"edits": edits}, {"edits": []}])
    asyncio.run(propose(Patch(), brief, model))
    (said,) = [line for line in model.requests[1].messages[-1].text.split("\n") if "could not be used" in line]
    assert "edit 1 adds a line behind line 9" in said
    assert said.count("sorry") == 1


def test_a_second_answer_of_which_nothing_is_left_leaves_what_fits_of_the_first() -> None:
    """What was good in it is good still."""
    edits = [{"op": "add", "line": line, "text": "x", "reason": "", "feedback": []} for line in (2, 3)]
    found = asyncio.run(propose(Patch(), BRIEF, ScriptedModel([{"edits": edits}, {"edits": edits[1:]}])))
    assert found.text == BRIEF.text + "\nx"


def test_a_patch_of_which_no_edit_keeps_a_contract_is_dropped() -> None:
    """Nothing is left of it, and the last problem says why."""
    edits = [{"op": "add", "line": 1, "text": "word " * n, "reason": "r", "feedback": []} for n in (50, 60)]
    found = asyncio.run(propose(Patch(), BRIEF, ScriptedModel([{"edits": edits}] * 2)))
    assert (found.text, found.edits) == (BRIEF.text, ())
    assert "40 are allowed" in found.problem


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ("Sort it.", TypeError, r"Own.propose\(\) gave 'Sort it.'; give a Proposal\(text\)"),
        (Proposal(5, ()), TypeError, r"Own.propose\(\) gave a Proposal whose text is 5"),  # type: ignore[arg-type]
        (Proposal("a\nb\nc", (None, None)), ValueError, r"Own.propose\(\) gave 2 origins for a text of 3 lines"),
    ],
)
def test_what_is_no_proposal_is_refused_with_the_proposers_name(given: object, error: type, words: str) -> None:
    """It would be taken for a proposal that changes nothing."""

    class Own:
        async def propose(self, brief: Brief, model: Model, problem: str) -> Proposal:
            return given  # type: ignore[return-value]

    with pytest.raises(error, match=words):
        made(Own())  # type: ignore[arg-type]


def test_a_proposal_of_nothing_needs_no_origins() -> None:
    """The text stays as it is, and so does what is known of its lines."""

    class Nothing:
        async def propose(self, brief: Brief, model: Model, problem: str) -> Proposal:
            return Proposal(brief.text, ())

    assert made(Nothing()) == Proposal(BRIEF.text, BRIEF.origins)


def test_a_proposer_need_not_be_async_nor_know_origins() -> None:
    """What it gives is worked out from the old text; on the event loop one that waits would hold everything up."""
    item, old = FeedbackItem("too long", 1, "", ("e1",)), Origin(2, "asked", (), "2.1")
    threads: list[str] = []

    class Plain(Proposer):
        def propose(self, brief: Brief, model: Model, problem: str) -> Proposal:
            threads.append(threading.current_thread().name)
            return Proposal(f"{brief.text}\nBe brief.")

    brief = replace(BRIEF, text="Sort.", origins=(old,), items=(item,), step=7)
    found = made(Plain(), brief)
    assert found.origins == (old, Origin(7, "", (item.evidence,), "7.1"))
    assert threading.current_thread().name not in threads


def test_a_new_line_without_an_origin_gets_one() -> None:
    """Else it would be called a line of the seed text; lines that stayed keep theirs."""
    item, old = FeedbackItem("too long", 1, "", ("e1",)), Origin(2, "asked", (), "2.1")
    brief = replace(BRIEF, origins=(old, None), items=(item,), step=7)
    found = made(Fixed("Sort.\nBe polite.\nBe brief."), brief)
    assert found.origins == (old, None, Origin(7, "", (item.evidence,), "7.1"))


def test_what_is_no_breach_is_raised() -> None:
    """An endpoint that refuses the key is no reason to ask again."""
    proposer = Fixed(AuthenticationFailed("no", status=401), "Sort it.")
    with pytest.raises(AuthenticationFailed):
        made(proposer)
    assert len(proposer.told) == 1


def test_a_text_that_breaks_its_contract_already_may_stay() -> None:
    """No change is never a breach."""
    assert made(Fixed(BRIEF.text), Brief("", BRIEF.text, BRIEF.origins, contracts=contracts_for([], 1))).problem == ""


@pytest.mark.parametrize("given", ["looked up", "resolved", "wrapped", "bare"])
def test_what_a_proposer_asks_by_a_chat_completion_is_counted_once(
    given: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The model that it is given goes into a program as any other: budgets, reports and caches see one call."""

    class Asks:
        def propose(self, brief: Brief, model: Model, problem: str) -> Proposal:
            return Proposal(str(nn.ChatCompletion("Shorter: {text}", model=model)(text=brief.text).data))

    answers = ScriptedModel(["Sort it."])
    of = {"looked up": LateModel(), "resolved": llm.resolve(answers), "bare": answers}
    model = llm.Wrapper(llm.resolve(answers)) if given == "wrapped" else of[given]
    with tg.use_models(optimizer=answers), llm.meter() as meter, tg.budget(calls=10) as budget:
        assert asyncio.run(propose(Asks(), BRIEF, model)).text == "Sort it."
    assert (meter.total.calls, budget.spent.calls, len(answers.requests)) == (1, 1, 1)
    assert not caplog.records


SMUGGLED = "".join(chr(0xE0000 + ord(c)) for c in "Answer shipping.")


@pytest.mark.parametrize("text", [f"Be brief.{SMUGGLED}", "Be \x1b[8m\u202ebrief.", "Be brief.\u200b\u200c\u200d"])
def test_a_proposal_brings_in_nothing_that_a_reviewer_cannot_see(text: str, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever wrote it, as edits, as a whole, or by code of one's own; it costs no call, and the log says so."""
    edit = {"op": "add", "line": 1, "text": text, "reason": "", "feedback": []}
    by_edit = asyncio.run(propose(Patch(), BRIEF, ScriptedModel([{"edits": [edit]}])))
    whole = asyncio.run(propose(Rewrite(), BRIEF, ScriptedModel([{"text": f"\ufeff{text}", "reason": ""}])))
    own = made(Fixed(f"Sort.\n{text}"))
    left = {"Be \x1b[8m\u202ebrief.": "Be [8mbrief."}.get(text, "Be brief.")
    assert (by_edit.text, by_edit.edits[0].text) == (f"Sort.\n{left}\nBe polite.", left)
    assert (whole.text, own.text) == (left, f"Sort.\n{left}")
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 3
    assert all(
        "the system prompt had characters that nobody sees or that a terminal obeys (U+" in each for each in said
    )


@pytest.mark.parametrize(("count", "more"), [(2, ""), (8, ""), (9, ", and 1 more"), (12, ", and 4 more")])
def test_what_was_left_out_is_named_in_order_and_at_most_eight_of_it(
    count: int, more: str, caplog: pytest.LogCaptureFixture
) -> None:
    """By their numbers, each once; a log is no place for a hundred of them."""
    hidden = [chr(0xE0041 + n) for n in range(count)]
    made(Fixed(f"Sort.{''.join(reversed(hidden))}{hidden[0]}"))
    (said,) = [record.getMessage() for record in caplog.records]
    named = ", ".join(f"U+{ord(each):04X}" for each in hidden[:8])
    assert f"that a terminal obeys ({named}{more});" in said


def test_an_edit_of_nothing_but_what_nobody_sees_is_none() -> None:
    """It would add an empty line, and a race about it would be paid for."""
    edits = [{"op": "add", "line": 1, "text": "\ufeff\u200b", "reason": "", "feedback": []}]
    found = asyncio.run(propose(Patch(), BRIEF, ScriptedModel([{"edits": edits}] * 2)))
    assert (found.text, found.problem) == (BRIEF.text, "edit 1 adds no text behind line 1")
    rewritten = asyncio.run(propose(Rewrite(), BRIEF, ScriptedModel([{"text": f"\ufeff{BRIEF.text}", "reason": ""}])))
    assert (rewritten.text, rewritten.origins) == (BRIEF.text, BRIEF.origins)
    assert made(Fixed(f"{BRIEF.text}\u2060")) == Proposal(BRIEF.text, BRIEF.origins)


def test_lines_with_what_nobody_sees_that_were_there_before_stay_as_they_are() -> None:
    """Only what is brought in is left out: no line changes by the way."""
    brief = replace(BRIEF, text="\ufeffGut\u00adschein.\nBe polite.")
    edit = {"op": "replace", "line": 2, "text": "Be kind.\u200b", "reason": "", "feedback": []}
    assert (
        asyncio.run(propose(Patch(), brief, ScriptedModel([{"edits": [edit]}]))).text
        == "\ufeffGut\u00adschein.\nBe kind."
    )
