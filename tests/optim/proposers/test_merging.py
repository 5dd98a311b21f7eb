"""Two candidates made one: by rule (`Merge`) and by a model (`Crossover`)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from textgrad_engine.llm.simulated import TicketsModel
from textgrad_engine.optim.cells import Evidence, Origin
from textgrad_engine.optim.contracts import contracts_for
from textgrad_engine.optim.patch import Edit, apply_patch
from textgrad_engine.optim.proposers import Brief, Crossover, Merge, Proposal, propose
from textgrad_engine.optim.revert import edits_in, revert
from textgrad_engine.testing import ScriptedModel

BASE = "Sort.\nBe brief.\nBe polite."
Held = tuple[str, list[Origin | None]]


def grown(step: int, *edits: Edit) -> Held:
    return apply_patch(BASE, [None] * 3, edits, [Evidence(f"asked in {step}", (f"t{step}",))], step)


def brief_of(ours: Held, theirs: Held) -> Brief:
    return Brief(
        role="prompt",
        text=ours[0],
        origins=tuple(ours[1]),
        others=((theirs[0], 0.5),),
        other_origins=(tuple(theirs[1]),),
        step=9,
        contracts=contracts_for([], 60),
    )


def merged(ours: Held, theirs: Held) -> Proposal:
    return asyncio.run(propose(Merge(BASE), brief_of(ours, theirs), ScriptedModel([])))


OURS = grown(1, Edit("replace", 2, "One word.", "ours", (1,)), Edit("add", 3, "Gift cards: account.", "ours", (1,)))
THEIRS = grown(2, Edit("remove", 3, "", "theirs"), Edit("add", 3, "Customs: billing.", "theirs", (1,)))


@pytest.mark.parametrize("proposer", [Merge(BASE), Crossover()])
def test_there_must_be_another_candidate(proposer: Merge | Crossover) -> None:
    """A mistake of the caller, not of the model."""
    with pytest.raises(ValueError, match="has none in `others`"):
        asyncio.run(propose(proposer, Brief("prompt", "x", (None,)), ScriptedModel([])))


def test_a_merge_has_what_both_have_done() -> None:
    """Each line says who asked for it, and each edit can be taken back."""
    found = merged(OURS, THEIRS)
    assert found.text == "Sort.\nOne word.\nCustoms: billing.\nGift cards: account."
    origin = found.origins[2]
    assert origin is not None
    asked = (Evidence("asked in 2", ("t2",)),)
    assert (origin.edit, origin.step, origin.reason, origin.evidence) == ("2.2", 2, "theirs", asked)
    assert edits_in(found.text, found.origins) == ("1.1", "1.2", "2.2")
    assert revert(found.text, found.origins, "2.2")[0] == OURS[0]
    assert "Be brief." in revert(found.text, found.origins, "1.1")[0]


def test_the_edits_of_a_merge_make_it() -> None:
    """As the journal keeps them; they name no feedback of this step, as there was none."""
    found = merged(OURS, THEIRS)
    assert apply_patch(*OURS, found.edits, [], 9)[0] == found.text
    assert all(edit.feedback == () for edit in found.edits)


def test_where_both_changed_a_line_ours_stays() -> None:
    """And what they did elsewhere is taken."""
    theirs = grown(2, Edit("replace", 2, "Ten words.", ""), Edit("add", 0, "Hello.", ""))
    assert merged(OURS, theirs).text == "Hello.\nSort.\nOne word.\nBe polite.\nGift cards: account."


def test_different_sentences_of_one_long_line_are_merged() -> None:
    """A prompt of one paragraph has no other lines; each side's edit can still be taken back."""
    kinds = [f"Tickets of kind {n} go to queue {n}." for n in range(30)]
    base = " ".join(kinds)

    def changed(step: int, number: int) -> Held:
        edit = Edit("replace", 1, base.replace(kinds[number], f"Kind {number} is junk."), "")
        return apply_patch(base, [None], [edit], [], step)

    found = asyncio.run(propose(Merge(base), brief_of(changed(1, 3), changed(2, 20)), ScriptedModel([])))
    assert found.text == changed(1, 3)[0].replace(kinds[20], "Kind 20 is junk.")
    assert revert(found.text, found.origins, "2.1")[0] == changed(1, 3)[0]


def test_merging_with_oneself_changes_nothing() -> None:
    """Nothing is there twice."""
    assert merged(OURS, OURS).text == OURS[0]


def entry(op: str, line: int, text: str) -> dict[str, Any]:
    return {"op": op, "line": line, "text": text, "reason": "B has it", "feedback": []}


def crossed(model: ScriptedModel | TicketsModel, theirs: Held = THEIRS, **more: Any) -> Proposal:
    return asyncio.run(propose(Crossover(**more), brief_of(OURS, theirs), model))


def test_a_crossover_shows_both_and_marks_what_is_lacking() -> None:
    """The text with its numbers, the other with a sign; as many edits as there are lines that differ."""
    model = ScriptedModel([{"edits": []}])
    assert crossed(model).text == OURS[0]
    shown = model.requests[0].messages[-1].text
    assert "1| Sort.\n2| One word.\n3| Be polite.\n4| Gift cards: account.\n" in shown
    assert " | Sort.\n+| Be brief.\n+| Customs: billing.\n" in shown
    assert "at most 5 edits" in shown


def test_a_crossover_shows_the_other_as_it_is() -> None:
    """In Markdown two spaces at the end of a line end it."""
    model = ScriptedModel([{"edits": []}])
    crossed(model, theirs=grown(2, Edit("replace", 2, "Be brief.  ", "")))
    assert "\n+| Be brief.  \n" in model.requests[0].messages[-1].text


def test_the_sign_of_a_line_that_is_lacking_does_not_come_into_the_text() -> None:
    """The model is told once to leave it out, as often as it is seen again the edit is."""
    good, bad = entry("add", 4, "Customs: billing."), entry("add", 0, "+| Be brief.")
    model = ScriptedModel([{"edits": [good, bad]}] * 2)
    assert crossed(model).text == OURS[0] + "\nCustoms: billing."
    assert "edit 2 has a text with `+| `" in model.requests[1].messages[-1].text


def test_a_crossover_makes_edits_that_can_be_traced_and_taken_back() -> None:
    """A line that is taken over word for word keeps the feedback that had asked for it."""
    edits = [entry("add", 4, "- customs: billing"), entry("remove", 3, ""), entry("add", 0, "Hello.")]
    found = crossed(ScriptedModel([{"edits": edits}]))
    assert found.text == "Hello.\nSort.\nOne word.\nGift cards: account.\n- customs: billing"
    hello, *_, customs = found.origins
    assert hello is not None
    assert customs is not None
    assert (hello.evidence, customs.evidence) == ((), (Evidence("asked in 2", ("t2",)),))
    assert customs.edit == "9.1"
    assert revert(found.text, found.origins, "9.2")[0].split("\n")[3] == "Be polite."


def test_a_crossover_keeps_to_its_limit() -> None:
    """One's own goes before the number of differing lines; it is checked."""
    two = {"edits": [entry("add", 0, "x"), entry("add", 0, "y")]}
    found = crossed(ScriptedModel([two, two]), max_edits=1)
    assert [edit.text for edit in found.edits] == ["x"]
    with pytest.raises(ValueError, match="max_edits must be at least 1"):
        Crossover(max_edits=0)


def test_the_simulated_model_can_be_asked() -> None:
    """The request is one that it understands: rules about other things are taken over."""
    head = "Queues: billing, account or technical. Answer with the name only."
    ours, theirs = f"{head}\nGift cards go to account.", f"{head}\nCustoms duties go to billing."
    brief = Brief("prompt", ours, (None, None), others=((theirs, 0.5),))
    found = asyncio.run(propose(Crossover(), brief, TicketsModel()))
    assert found.text == f"{ours}\nCustoms duties go to billing."


def test_a_crossover_says_what_had_asked_for_the_lines_that_it_takes_over() -> None:
    """Its own lines keep what they answer, also where the other candidate has one of them, asked for by others."""
    theirs = grown(2, Edit("add", 3, "gift cards: account", "theirs", (1,)), Edit("add", 3, "Customs.", "theirs", (1,)))
    edit = {"op": "add", "line": 4, "text": "Customs.", "reason": "theirs has it", "feedback": []}
    brief = brief_of(grown(1, Edit("add", 3, "Gift cards: account.", "ours", (1,))), theirs)
    found = asyncio.run(propose(Crossover(), brief, ScriptedModel([{"edits": [edit]}])))
    assert found.text.split("\n")[3:] == ["Gift cards: account.", "Customs."]
    mine, taken = found.origins[3:]
    assert mine is not None
    assert taken is not None
    assert (mine.step, mine.evidence) == (1, (Evidence("asked in 1", ("t1",)),))
    assert (taken.step, taken.evidence) == (9, (Evidence("asked in 2", ("t2",)),))
