"""A step of `TGD` with one edit that breaks what must not break: the others are not lost with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from textgrad_engine import nn, use_models
from textgrad_engine.autograd import no_grad
from textgrad_engine.errors import BadRequest
from textgrad_engine.llm import Request
from textgrad_engine.optim import TGD, Optimizer, Requires
from textgrad_engine.optim.change import Change
from textgrad_engine.optim.patch import Edit
from textgrad_engine.report.lineage import lineage_of
from textgrad_engine.testing import FunctionModel, feedback_for
from textgrad_engine.train import Guards, Trainer, TrainResult, proving
from textgrad_engine.train.estimate import estimate


@pytest.fixture(autouse=True)
def nothing_is_trimmed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines that break what is guarded do harm, too; here they are to win their race."""
    monkeypatch.setattr("textgrad_engine.optim.search.proving.trimmed", lambda *arguments: None)


WORDS = [f"w{n}" for n in range(36)]
KEPT = ("w20", "w21")
"""Right without shouting."""

GUARDS = Guards(KEPT, reruns=0)
REFUSED = "refused: w20 must never break: 1.000 -> 0.000; w21 must never break: 1.000 -> 0.000"


def rows(*words: str) -> list[dict[str, Any]]:
    return [{"id": word, "word": word, "target": word if word in KEPT else word.upper()} for word in words]


def said_by(prompt: str, word: str) -> str:
    """Some lines are right; "all" shouts the quiet words, and so do "this" and "that" together."""
    quiet = "all" in prompt or ("this" in prompt and "that" in prompt)
    return word.upper() if (quiet if word in KEPT else "Shout" in prompt) else word


class World:
    """A program of which `TGD` makes a step: its lines are added, or with a text all is written anew."""

    def __init__(
        self, *lines: str, text: str = "", seed: str = "Repeat.", said: Callable[[str, str], str] = said_by, **how: Any
    ) -> None:
        self.lines, self.text, self.said = lines, text, said
        self.ran: dict[str, list[str]] = {}
        self.model = FunctionModel(self.answer)
        self.program = nn.ChatCompletion("{word}", system=nn.Parameter(seed, role="system prompt"))
        mode = "rewrite" if text else "patch"
        self.optimizer: Optimizer = TGD(self.program.parameters(), mode=mode, **how)  # type: ignore[arg-type]

    def answer(self, request: Request) -> Any:
        if request.purpose == "backward":
            return feedback_for(request, "Say to shout.")
        if request.purpose == "optimizer":
            if self.text:
                return {"text": self.text, "reason": "asked"}
            edit = {"op": "add", "line": 1, "reason": "asked", "feedback": [1]}
            return {"edits": [{**edit, "text": line} for line in self.lines]}
        prompt, word = request.messages[0].text, request.messages[-1].text
        self.ran.setdefault(prompt, []).append(word)
        return self.said(prompt, word)

    def fit(self, steps: int = 1, guards: Guards | None = GUARDS) -> TrainResult:
        with use_models(forward=self.model):
            return Trainer(5, batch_size=12, max_steps=steps, guards=guards, feedback_batch_size=12).fit(
                self.program, nn.ExactMatch(), self.optimizer, rows(*WORDS[:12]), rows(*WORDS[12:])
            )


def test_no_edit_is_kept_when_all_of_them_break_it() -> None:
    """The step is refused as ever: nothing is raced for it, and the parameter and what is known of it are as before."""
    here = World("Shout all.", "Shout at all.")
    result = here.fit()
    assert result.best == result.seed
    assert result.steps[0].why == REFUSED
    assert here.program.system.data == "Repeat."
    assert all(set(here.ran[f"Repeat.\n{line}"]) == set(KEPT) for line in here.lines)


def test_what_is_left_must_win_by_itself() -> None:
    """The edit that helped is the one that broke it: the other one is raced, and is no better."""
    here = World("Shout all.", "Be kind.")
    result = here.fit()
    assert (result.best, result.steps[0].why) == (result.seed, REFUSED)
    assert len(here.ran["Repeat.\nBe kind."]) > len(KEPT)


def test_an_answer_that_is_lost_on_the_way_loses_no_more_than_the_step() -> None:
    """The single edits could not be run on the guarded examples, or what is left not on the others."""

    def refusing(prompt: str, word: str) -> str:
        if word in KEPT and prompt.count("\n") == 1:
            raise BadRequest("no", status=400)
        return said_by(prompt, word)

    def down(prompt: str, word: str) -> str:
        if word not in KEPT and prompt == "Repeat.\nShout.":
            raise BadRequest("no", status=400)
        return said_by(prompt, word)

    for said in (refusing, down):
        result = World("Shout.", "Mind all of them.", said=said).fit()
        assert (result.status, result.best) == ("finished", result.seed)
        assert result.steps[0].why == REFUSED


def test_a_part_that_breaks_the_contract_is_not_kept() -> None:
    """The whole step kept it; the word that must be there is in the line that is refused."""
    here = World("Shout.", "Mind all of them.", seed="Repeat.", constraints=[Requires(["them"])])
    result = here.fit()
    assert (result.best, result.steps[0].why) == (result.seed, REFUSED)
    assert set(here.ran["Repeat.\nShout."]) == set(KEPT)  # it was tried by itself, and not raced


def test_a_text_of_too_many_changes_is_refused_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them would be run."""
    monkeypatch.setattr(proving, "MOST_EDITS", 1)
    here = World("Shout.", "Mind all of them.")
    assert here.fit().steps[0].why == REFUSED
    assert "Repeat.\nShout." not in here.ran


def test_without_guards_nothing_more_is_run() -> None:
    """Who guards nothing pays nothing: no edit is run by itself."""
    here = World("Shout.", "Mind all of them.")
    result = here.fit(guards=None)
    assert result.steps[0].kept
    assert [prompt for prompt in here.ran if prompt.count("\n") == 1] == []


def test_the_edits_that_break_nothing_are_kept() -> None:
    """Found on the broken examples alone; the step says what it goes without, and why."""
    here = World("Shout.", "Mind all of them.")
    result = here.fit()
    assert result.best["system"] == here.program.system.data == "Repeat.\nShout."
    (step,) = result.steps
    assert step.kept
    assert step.why == f"better; without 1 of its edits, {REFUSED}"
    (change,) = step.changes
    assert [edit.text for edit in change.edits] == ["Shout."]
    assert (change.before, change.after) == ("Repeat.", "Repeat.\nShout.")
    assert step.race is not None
    assert not step.race.lost
    assert step.val_mean == result.best_val.mean == 1.0  # type: ignore[union-attr]
    assert sorted(here.ran["Repeat.\nMind all of them."]) == sorted(KEPT)


def test_a_line_that_is_left_can_be_traced() -> None:
    """Its edit keeps the number that it has in the patch; the race is the one that it won without the others."""
    result = World("Mind all of them.", "Shout.").fit()
    found = lineage_of(result, 2)
    assert (found.text, found.edit, found.reason) == ("Shout.", "1.2", "asked")
    assert found.evidence[0].text == "Say to shout."
    assert found.accepted is not None
    assert found.accepted.why == f"better; without 1 of its edits, {REFUSED}"
    assert found.accepted.race == result.steps[0].race


def test_edits_that_break_it_together_only() -> None:
    """The last of them goes."""
    result = World("Shout, and this.", "Shout, and that.", "Shout.").fit()
    assert result.best["system"] == "Repeat.\nShout, and this.\nShout."


def test_a_text_that_was_written_as_a_whole_is_taken_for_its_edits() -> None:
    """The lines that changed are tried by themselves; each that is left keeps the feedback that was shown."""
    here = World(text="Shout.\nRepeat.\nMind all of them.")
    result = here.fit()
    assert result.best["system"] == "Shout.\nRepeat."
    (change,) = result.steps[0].changes
    assert [(edit.op, edit.line, edit.text) for edit in change.edits] == [("add", 0, "Shout.")]
    found = lineage_of(result, 1)
    assert found.reason == "asked"
    assert found.evidence[0].text == "Say to shout."


def test_a_shorter_text_is_spared_too() -> None:
    """Removing two lines changes no score but that of a guarded example: the line that this needs stays."""

    def said(prompt: str, word: str) -> str:
        quiet = word == "w20" and "Whisper w20." not in prompt
        return word.upper() if quiet or word not in KEPT else word

    class Remove(Optimizer):
        def _step(self) -> None:
            (variable,) = self.variables()
            before, edits = str(variable.data), [Edit("remove", n, "", "") for n in (2, 3)]
            self.changes = [Change(variable, before, "Repeat.", tuple(edits), (), 0, "")]
            with no_grad():
                variable.data = "Repeat."

    here = World(seed="Repeat.\nBe kind.\nWhisper w20.", said=said)
    here.optimizer = Remove(here.program.parameters(), {})
    here.optimizer.to_the_end = True
    with use_models(forward=here.model):
        result = Trainer(batch_size=12, max_steps=1, guards=GUARDS).fit(
            here.program, nn.ExactMatch(), here.optimizer, rows(*WORDS[:12]), rows(*WORDS[12:])
        )
    assert result.best["system"] == "Repeat.\nWhisper w20."
    assert result.steps[0].why == (
        "no difference; without 1 of its edits, refused: w20 must never break: 1.000 -> 0.000"
    )


def test_the_optimizer_is_told_which_edits_were_refused_and_why() -> None:
    """Momentum shows both parts of the step; and of one that was refused as a whole, that it was."""
    here = World("Shout.", "Mind all of them.", momentum=5)
    here.fit(steps=2)
    told = [request.messages[-1].text for request in here.model.requests if request.purpose == "optimizer"]
    assert len(told) == 1  # nothing is left to do
    (state,) = here.optimizer.state.values()
    (past,) = [own["past"] for own in state["transforms"]["states"] if own]
    assert [(entry["lines"], entry["outcome"]) for entry in past] == [
        (["added 'Mind all of them.'"], REFUSED),
        (["added 'Shout.'"], "kept: validation score 0.083 -> 1.000"),
    ]
    whole = World("Shout all.", momentum=5)
    whole.fit(steps=2)
    told = [request.messages[-1].text for request in whole.model.requests if request.purpose == "optimizer"]
    assert f"- added 'Shout all.' — {REFUSED}\n" in told[1]


class Two(nn.Module):
    """Two prompts, one behind the other."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="first prompt"))
        self.two = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat again.", role="second prompt"))

    def forward(self, word: Any) -> Any:
        return self.two(word=self.one(word=word))


@pytest.mark.parametrize(("first", "second"), [("Shout.", "Mind all of them."), ("Mind all of them.", "Shout.")])
def test_of_two_texts_one_may_be_spared_as_a_whole(first: str, second: str) -> None:
    """It reads as before, with the origins it had, and the step speaks of the other one alone."""
    program = Two()
    loud: Sequence[str] = [word.upper() for word in KEPT]

    def answer(request: Request) -> Any:
        if request.purpose == "backward":
            return feedback_for(request, "Say to shout.")
        if request.purpose == "optimizer":
            line = second if "Repeat again." in request.messages[-1].text else first
            return {"edits": [{"op": "add", "line": 1, "text": line, "reason": "asked", "feedback": [1]}]}
        prompt, word = request.messages[0].text, request.messages[-1].text
        return word if word in loud else said_by(prompt, word) if word.lower() == word else word

    with use_models(forward=FunctionModel(answer)):
        result = Trainer(batch_size=12, max_steps=1, guards=GUARDS, feedback_batch_size=12).fit(
            program, nn.ExactMatch(), TGD(program.parameters()), rows(*WORDS[:12]), rows(*WORDS[12:])
        )
    (step,) = result.steps
    assert step.why == f"better; without 1 of its edits, {REFUSED}"
    changed = "one.system" if first == "Shout." else "two.system"
    assert [change.name for change in step.changes] == [changed]
    for name, seed in result.seed.items():
        assert result.best[name] == (f"{seed}\nShout." if name == changed else seed)
        assert result.origins[name][0] is None
        assert len(result.origins[name]) == (2 if name == changed else 1)


def test_the_estimate_holds() -> None:
    """What a refused step runs is in the most that it tells."""
    here = World("Shout.", "Mind all of them.", "Be kind.")
    most = estimate(
        Trainer(5, batch_size=12, max_steps=1, guards=GUARDS, feedback_batch_size=12),
        here.program,
        nn.ExactMatch(),
        here.optimizer,
        rows(*WORDS[:12]),
        rows(*WORDS[12:]),
    ).calls["forward"]
    plain = 12 + 24 + 24 + 8  # minibatch, seed, one text, noise
    trimmed = 2 * (16 + 12 * (16 + 18) + 24) + 24  # looked at, without each edit and with each alone, twice; checked
    assert most.high == plain + trimmed + 2 * 12 * len(KEPT) + 24 + trimmed
    here.fit()
    assert sum(map(len, here.ran.values())) <= most.high
