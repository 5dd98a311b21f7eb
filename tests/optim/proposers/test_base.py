from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest

import textgrad_engine as tg
from textgrad_engine import llm, nn
from textgrad_engine.errors import AuthenticationFailed, ContractError, NoModelError
from textgrad_engine.fences import fence, nonce_for
from textgrad_engine.llm import Message, Request
from textgrad_engine.llm.model import Model
from textgrad_engine.optim.cells import Origin
from textgrad_engine.optim.contracts import contracts_for
from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.optim.proposers import Brief, Crossover, Patch, Proposal, Proposer, Rewrite, propose
from textgrad_engine.optim.proposers.base import LateModel, second_parent
from textgrad_engine.optim.proposers.unaided import Unaided
from textgrad_engine.optim.search.by_scores import ByScores
from textgrad_engine.optim.search.paraphrase import Paraphrase
from textgrad_engine.optim.showing import numbered
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


def test_a_second_answer_of_which_nothing_is_left_leaves_what_fits_of_the_first() -> None:
    """What was good in it is good still."""
    edits = [{"op": "add", "line": line, "text": "x", "reason": "", "feedback": []} for line in (2, 3)]
    found = asyncio.run(propose(Patch(), BRIEF, ScriptedModel([{"edits": edits}, {"edits": edits[1:]}])))
    assert found.text == BRIEF.text + "\nx"


@pytest.mark.parametrize(
    "answer",
    [
        fence(BRIEF.text).replace(BRIEF.text, "Sort it.\nBe brief."),
        "```\nSort it.\nBe brief.\n```",
        "```markdown\nSort it.\nBe brief.\n```\n",
    ],
)
def test_a_rewrite_loses_what_it_was_put_between_as_a_whole(answer: str) -> None:
    """The tags that the text was shown between, or a code fence, would become a part of the prompt."""
    found = asyncio.run(propose(Rewrite(), BRIEF, ScriptedModel([{"text": answer, "reason": ""}])))
    assert found.text == "Sort it.\nBe brief."


def test_a_code_fence_that_the_text_had_or_that_is_not_one_stays() -> None:
    """It is a part of the prompt."""
    fenced = replace(BRIEF, text="```\nSort.\n```", origins=(None,) * 3)
    for brief, answer in ((fenced, "```\nSort it.\n```"), (BRIEF, "```\na\n```\nSort it.\n```\nb\n```")):
        assert asyncio.run(propose(Rewrite(), brief, ScriptedModel([{"text": answer, "reason": ""}]))).text == answer


def test_a_rewrite_with_numbers_of_lines_or_a_lone_tag_is_asked_for_once_more() -> None:
    """Where the text has such numbers itself, they are a part of it."""
    lone = f"<text-{nonce_for(BRIEF.text, 'text')}>"
    script = [{"text": text, "reason": ""} for text in ("1| Sort it.", f"{lone}\nSort it.")]
    model = ScriptedModel(script)
    found = asyncio.run(propose(Rewrite(), BRIEF, model))
    assert (found.text, lone in found.problem) == (BRIEF.text, True)
    assert "the text has `1| `" in model.requests[1].messages[-1].text
    counted = replace(BRIEF, text="1| Sort.", origins=(None,))
    assert asyncio.run(propose(Rewrite(), counted, ScriptedModel(script[:1]))).text == "1| Sort it."


@pytest.mark.parametrize("proposer", [Unaided(), Paraphrase(), ByScores()])
def test_who_asks_for_another_text_in_any_case_does_not_take_an_empty_one(
    proposer: Unaided | Paraphrase | ByScores,
) -> None:
    """A control that may leave all as it is would be none."""
    model = ScriptedModel([{"text": "", "reason": "fine as it is"}, {"text": "Sort it.", "reason": ""}])
    assert asyncio.run(propose(proposer, BRIEF, model)).text == "Sort it."
    assert "Your last proposal could not be used: the new text is empty" in model.requests[1].messages[-1].text


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


def test_a_proposer_that_cannot_propose_is_not_made() -> None:
    """A subclass that spells it otherwise would have the protocol's, which gives None."""

    class Other(Proposer):
        def suggest(self, brief: Brief) -> Proposal:
            return Proposal(brief.text)

    with pytest.raises(TypeError, match=r"abstract method '?propose"):
        Other()  # type: ignore[abstract]


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


def test_max_edits_of_a_proposer_goes_before_the_briefs() -> None:
    """And it is at least one."""
    model = ScriptedModel([{"edits": []}] * 2)
    for proposer in (Patch(), Patch(max_edits=2)):
        asyncio.run(propose(proposer, BRIEF, model))
    assert ["at most 4 edits" in r.messages[-1].text for r in model.requests] == [True, False]
    assert "at most 2 edits" in model.requests[1].messages[-1].text
    with pytest.raises(ValueError, match="max_edits must be at least 1"):
        Patch(max_edits=0)


@pytest.mark.parametrize(("count", "numbers"), [(0, "[]"), (1, "[1]"), (2, "[1, 2]"), (3, "[1, 2]")])
def test_the_form_of_a_patch_names_only_feedback_that_there_is(count: int, numbers: str) -> None:
    """Models copy what they are shown. One edit is one edit."""
    items = tuple(FeedbackItem(f"item {n}", 1, "", ()) for n in range(count))
    model = ScriptedModel([{"edits": []}])
    asyncio.run(propose(Patch(1), replace(BRIEF, items=items), model))
    *_, limit, form = model.requests[0].messages[-1].text.splitlines()
    assert limit == "Give at most 1 edit, as a JSON object:"
    assert form.endswith(f'"feedback": {numbers}}}]}}')


@pytest.mark.parametrize("proposer", [Patch(), Rewrite()])
def test_examples_are_shown_whole_and_fenced(proposer: Patch | Rewrite) -> None:
    """Good texts of other programs, which may hold anything."""
    brief = Brief("prompt", "Sort.", (None,), examples=("You grade.\n</example>", "You route."))
    model = ScriptedModel([{"edits": []} if isinstance(proposer, Patch) else {"text": "Sort.", "reason": ""}])
    asyncio.run(propose(proposer, brief, model))
    shown = model.requests[0].messages[-1].text
    assert shown.count("<example-") == 2
    assert "\nYou grade.\n</example>\n</example-" in shown


@pytest.mark.parametrize("proposer", [Patch(), Rewrite(), Crossover()])
def test_a_text_that_is_empty_is_said_to_be(proposer: Patch | Rewrite | Crossover) -> None:
    """Instead of tags with nothing, or the number of a line that is none, between them."""
    edit = {"op": "replace", "line": 1, "text": "Sort.", "reason": "r", "feedback": []}
    model = ScriptedModel([{"text": "Sort.", "reason": "r"} if isinstance(proposer, Rewrite) else {"edits": [edit]}])
    brief = Brief("prompt", "", (None,), others=(("Be brief.", 0.5),), step=7)
    found = asyncio.run(propose(proposer, brief, model))
    assert (found.text, [each and each.edit for each in found.origins]) == ("Sort.", ["7.1"])
    asked = model.requests[0].messages[-1].text
    assert " empty so far" in asked.split("\n")[0]
    assert "<text-" not in asked


def test_edits_are_named_by_their_step() -> None:
    """So that each line can be found, and taken back, later."""
    edit = {"op": "add", "line": 2, "text": "x", "reason": "r", "feedback": []}
    brief = Brief("prompt", BRIEF.text, BRIEF.origins, step=7)
    found = asyncio.run(propose(Patch(), brief, ScriptedModel([{"edits": [edit, edit]}])))
    assert [each.id for each in found.edits] == ["7.1", "7.2"]
    assert [origin and origin.edit for origin in found.origins] == [None, None, "7.1", "7.2"]


def test_a_late_model_is_looked_up_when_it_is_asked() -> None:
    """A proposer that asks nobody works where no model was named; one that does says that none was."""
    late = LateModel()
    request = Request(messages=(Message(role="user", content="?"),))
    with pytest.raises(NoModelError):
        asyncio.run(late.complete(request))
    with tg.use_models(optimizer=ScriptedModel(["yes"], name="other")):
        assert late.name == "other"
        assert asyncio.run(late.complete(request)).text == "yes"


def test_the_second_parent_is_the_best_other() -> None:
    """Of equals the first; those that were not scored come last; without any there is nothing to merge."""
    origin = Origin(1, "r", ())
    others = (("a", None), ("b", 0.5), ("c\nd", 0.9), ("e", 0.9))
    brief = Brief("prompt", "x", (None,), others=others)
    assert second_parent(brief) == ("c\nd", (None, None))
    known = Brief("prompt", "x", (None,), others=others, other_origins=((), (), (origin, None), ()))
    assert second_parent(known) == ("c\nd", (origin, None))
    with pytest.raises(ValueError, match="has none in `others`"):
        second_parent(BRIEF)


def test_blank_lines_are_numbered_too() -> None:
    """The numbers are those of `text.split`, or edits would go astray."""
    assert numbered("a\n\nb\n").split("\n") == ["1| a", "2| ", "3| b", "4| "]


def test_the_example_of_an_edit_names_a_line_that_the_text_has() -> None:
    """An example that breaks the rule above it teaches to break it."""
    for count in (1, 2, 5):
        model = ScriptedModel([{"edits": []}])
        text = "\n".join("abcde"[:count])
        asyncio.run(propose(Patch(), Brief("prompt", text, (None,) * count), model))
        assert f'"op": "add", "line": {min(3, count)}, ' in model.requests[0].messages[-1].text


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


def test_a_brief_is_made_of_feedback() -> None:
    """What an objective gave for a text that the parameter does not hold; each example is remembered once."""
    prompt = tg.Variable("Sort.", role="system prompt", requires_grad=True)
    (prompt + "").backward("Be brief.")
    brief = Brief.of(prompt, [*prompt.grad, tg.Variable("be  brief."), tg.Variable(" ")], "Sort.\nBe kind.", step=3)
    assert (brief.role, brief.text, brief.origins, brief.step) == ("system prompt", "Sort.\nBe kind.", (None, None), 3)
    assert [(item.text, item.times) for item in brief.items] == [("Be brief.", 2)]
    made = asyncio.run(propose(Rewrite(), brief, ScriptedModel([{"text": "Sort. Be brief.", "reason": "asked"}])))
    assert made.text == "Sort. Be brief."
    assert made.origins[0] is not None
    assert made.origins[0].evidence == (brief.items[0].evidence,)


def test_a_brief_of_feedback_as_it_is_names_what_makes_items_of_it() -> None:
    """It would fail far from here, when a prompt is filled with it."""
    with pytest.raises(TypeError, match=r"items of a Brief are FeedbackItems, got Variable; Brief\.of\("):
        Brief("prompt", "Sort.", (None,), items=(tg.Variable("Be brief."),))  # type: ignore[arg-type]
