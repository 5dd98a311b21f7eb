"""A patch with one edit that breaks what must not break: the others are not lost with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from textgrad_engine import nn, optim, use_models
from textgrad_engine.errors import BadRequest
from textgrad_engine.llm import Request
from textgrad_engine.testing import FunctionModel, feedback_for
from textgrad_engine.train import Guards, Trainer, TrainResult

WORDS = [f"w{n}" for n in range(36)]
KEPT = ("w20", "w21")
"""Right without shouting."""

GUARDS = Guards(KEPT, reruns=0)


@pytest.fixture(autouse=True)
def nothing_is_trimmed(monkeypatch: pytest.MonkeyPatch) -> None:
    """In worlds as small as these the guarded examples are among those that a patch is looked at on first."""
    monkeypatch.setattr("textgrad_engine.optim.search.proving.trimmed", lambda *arguments: None)


def rows(*words: str) -> list[dict[str, Any]]:
    return [{"id": word, "word": word, "target": word if word in KEPT else word.upper()} for word in words]


def said_by(prompt: str, word: str) -> str:
    """Some lines are right; "all" shouts the quiet words, and so do "this" and "that" together."""
    quiet = "all" in prompt or ("this" in prompt and "that" in prompt)
    return word.upper() if (quiet if word in KEPT else "Shout" in prompt) else word


def fit(
    *lines: str, said: Callable[[str, str], str] = said_by, guards: Guards | None = GUARDS
) -> tuple[TrainResult, dict[str, list[str]]]:
    """Two steps of a search whose proposer always has these lines; which words each prompt was run on."""
    ran: dict[str, list[str]] = {}

    def answer(request: Request) -> Any:
        if request.purpose == "backward":
            return feedback_for(request, "Say to shout.")
        if request.purpose == "optimizer":
            edits = [{"op": "add", "line": 1, "text": line, "reason": "asked", "feedback": [1]} for line in lines]
            return {"edits": edits}
        prompt, word = request.messages[0].text, request.messages[-1].text
        ran.setdefault(prompt, []).append(word)
        return said(prompt, word)

    model = FunctionModel(answer)
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    with use_models(forward=model):
        search = optim.PatchSearch(program.parameters(), lanes=1, batch_size=6)
        result = Trainer(max_steps=1, guards=guards).fit(
            program, nn.ExactMatch(), search, rows(*WORDS[:12]), rows(*WORDS[12:])
        )
    return result, ran


def test_no_edit_is_kept_when_all_of_them_break_it() -> None:
    """The patch is refused as ever, and nothing is raced for it."""
    result, ran = fit("Shout all.", "Shout at all.")
    assert result.best == result.seed
    assert result.steps[0].why == "refused: w20 must never break: 1.000 -> 0.000; w21 must never break: 1.000 -> 0.000"
    assert all(set(ran[f"Repeat.\n{line}"]) == set(KEPT) for line in ("Shout all.", "Shout at all."))


def test_what_is_left_must_win_by_itself() -> None:
    """The edit that helped is the one that broke it: the other one is raced, and is no better."""
    result, _ = fit("Shout all.", "Be kind.")
    assert result.best == result.seed
    assert result.steps[0].why.startswith("refused: w20 must never break")


def test_the_edits_that_break_nothing_are_kept() -> None:
    """Found on the broken examples alone; the step says what it goes without, and why."""
    result, ran = fit("Shout.", "Mind all of them.")
    assert result.best["system"] == "Repeat.\nShout."
    (step,) = result.steps
    assert step.kept
    assert step.why == (
        "better; without 1 of its edits, refused: w20 must never break: 1.000 -> 0.000; "
        "w21 must never break: 1.000 -> 0.000"
    )
    assert [edit.text for change in step.changes for edit in change.edits] == ["Shout."]
    assert step.race is not None
    assert not step.race.lost
    assert sorted(ran["Repeat.\nMind all of them."]) == sorted(KEPT)


def test_the_ids_of_edits_stay() -> None:
    """Whoever looks for where a line comes from finds the edit by its number in the patch."""
    result, _ = fit("Mind all of them.", "Shout.")
    (origin,) = [origin for origin in result.origins["system"] if origin is not None]
    assert (origin.edit, origin.reason) == ("1.2", "asked")


def test_edits_that_break_it_together_only() -> None:
    """The last of them goes."""
    result, _ = fit("Shout, and this.", "Shout, and that.", "Shout.")
    assert result.best["system"] == "Repeat.\nShout, and this.\nShout."


def test_edits_that_break_one_example_each_go_both() -> None:
    """Neither does worse on all that the patch broke, and one is enough."""

    def said(prompt: str, word: str) -> str:
        quiet = ("one" if word == KEPT[0] else "another") in prompt
        return word.upper() if (quiet if word in KEPT else "Shout" in prompt) else word

    result, _ = fit("Shout.", "Mind one.", "Mind another.", said=said)
    assert result.best["system"] == "Repeat.\nShout."


def test_the_refused_edit_is_told_to_the_proposer() -> None:
    """It is in the history, with what it broke; the one that was kept is not."""

    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    search = optim.PatchSearch(program.parameters(), lanes=1, batch_size=6)
    asked: list[str] = []

    def answer(request: Request) -> Any:
        if request.purpose == "backward":
            return feedback_for(request, "Say to shout.")
        if request.purpose == "optimizer":
            asked.append(request.messages[-1].text)
            lines = ("Shout.", "Mind all of them.") if len(asked) == 1 else ()
            return {"edits": [{"op": "add", "line": 1, "text": t, "reason": "", "feedback": [1]} for t in lines]}
        return said_by(request.messages[0].text, request.messages[-1].text)

    with use_models(forward=FunctionModel(answer)):
        Trainer(max_steps=4, guards=GUARDS).fit(program, nn.ExactMatch(), search, rows(*WORDS[:12]), rows(*WORDS[12:]))
    told = "\n".join(entry.said() for entry in search.board.history)
    assert "Mind all of them." in told
    assert "refused: w20 must never break" in told


def test_each_edit_is_run_on_the_broken_examples_only() -> None:
    """That is what makes it cheap: two of the twenty-four, for each edit of the patch."""
    _, ran = fit("Shout.", "Mind all of them.", "Be kind.")
    for line in ("Shout.", "Mind all of them.", "Be kind."):
        assert sorted(ran[f"Repeat.\n{line}"]) == sorted(KEPT)


def test_without_guards_nothing_more_is_run() -> None:
    """Who guards nothing pays nothing: no edit is run by itself."""
    _, ran = fit("Shout.", "Mind all of them.", guards=None)
    assert [prompt for prompt in ran if prompt.count("\n") == 1] == []


def test_an_answer_that_is_lost_on_the_way_loses_no_more_than_the_patch() -> None:
    """The single edits could not be run on the guarded examples: the patch is refused, and the search goes on."""

    def refusing(prompt: str, word: str) -> str:
        if word in KEPT and prompt.count("\n") == 1:
            raise BadRequest("no", status=400)
        return said_by(prompt, word)

    result, _ = fit("Shout.", "Mind all of them.", said=refusing)
    assert result.status == "finished"
    assert result.best == result.seed


def test_what_is_left_is_not_raced_when_it_breaks_something_itself() -> None:
    """The two that harm together only are left once the third is gone: they are run on the guarded examples alone."""
    result, ran = fit("Shout, and this.", "Shout, and that.", "Mind all of them.")
    assert result.best == result.seed
    assert result.steps[0].why.startswith("refused: w20 must never break")
    assert set(ran["Repeat.\nShout, and this.\nShout, and that."]) == set(KEPT)
