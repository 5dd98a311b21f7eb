"""`Guards(reruns=...)`: an example that must never break is run again before it counts as broken."""

from __future__ import annotations

import collections
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine import nn, optim, use_models
from textgrad_engine.data import DataLoader
from textgrad_engine.errors import BadRequest
from textgrad_engine.llm import Request
from textgrad_engine.optim import Optimizer
from textgrad_engine.testing import FunctionModel, feedback_for
from textgrad_engine.train import Guards, Objective, Trainer, TrainResult
from textgrad_engine.train.estimate import estimate
from textgrad_engine.train.reruns import most_of, still_worse
from textgrad_engine.train.settings import settings_of

from .shouting import improving
from .test_guards import KEPT, OPTIMIZERS, WORDS, answer, rows

Runs = Callable[[str, str, int], bool]
"""Whether a word is answered rightly with a prompt when it is run for the n-th time, from 0 on."""


class Moody:
    """Answers the word that must not break rightly or not, by how often it was run with the prompt before."""

    def __init__(self, right: Runs) -> None:
        self.right = right
        self.runs: collections.Counter[tuple[str, str]] = collections.Counter()
        self.model = FunctionModel(self.answer)

    def answer(self, request: Request) -> Any:
        if request.purpose != "forward":
            return answer(request)
        prompt, word = request.messages[0].text, request.messages[-1].text
        nth = self.runs[prompt, word]
        self.runs[prompt, word] += 1
        if word == KEPT:
            return word if self.right(prompt, word, nth) else word.upper()
        return answer(request)


def fit(
    moody: Moody, make: Callable[[Any], Optimizer], guards: Guards | None, steps: int = 4, **settings: Any
) -> TrainResult:
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    with use_models(forward=moody.model):
        return Trainer(batch_size=6, max_steps=steps, guards=guards, **settings).fit(
            program, nn.ExactMatch(), make(program.parameters()), rows(*WORDS[:12]), rows(*WORDS[12:])
        )


def wrong_first(prompt: str, word: str, nth: int) -> bool:
    return "Shout" not in prompt or nth > 0


def always_wrong(prompt: str, word: str, nth: int) -> bool:
    return "Shout" not in prompt


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_what_breaks_in_one_run_and_not_in_the_next_is_kept(name: str) -> None:
    """One run alone refuses it; the result says that it did worse once."""
    lanes = 2 if name == "PatchSearch" else 1  # which propose the same, and each runs it by itself
    each_first = Moody(lambda prompt, word, nth: "Shout" not in prompt or nth >= lanes)
    once = fit(each_first, OPTIMIZERS[name], Guards((KEPT,), reruns=0))
    assert once.best == once.seed
    again = fit(Moody(wrong_first), OPTIMIZERS[name], Guards((KEPT,), reruns=1))
    assert "Shout" in again.best["system"]
    said = f"of 1 that must never break, {KEPT} did worse than with the seed prompt in one run, but not in each"
    assert said in again.terms
    assert again.best in [point.texts for point in again.front]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_what_breaks_in_each_run_is_refused(name: str) -> None:
    """It is run so often and no more, by each lane for itself; the prompt of now is not run again for it."""
    moody = Moody(always_wrong)
    result = fit(moody, OPTIMIZERS[name], Guards((KEPT,), reruns=2))
    assert result.best == result.seed
    assert any(step.why == f"refused: {KEPT} must never break: 1.000 -> 0.000" for step in result.steps)
    tried = {prompt: count for (prompt, word), count in moody.runs.items() if word == KEPT and "Shout" in prompt}
    assert set(tried.values()) == {6 if name == "PatchSearch" else 3}
    assert not any("with the same texts" in each for each in result.terms)


@pytest.mark.parametrize("reruns", [0, 2])
@pytest.mark.parametrize("lanes", [1, 2])
def test_texts_that_one_proposal_was_refused_for_and_a_later_one_was_not_are_kept(reruns: int, lanes: int) -> None:
    """By the runs of the later one: the search went on from texts that the run had not kept, by those of the first."""
    moody = Moody(lambda prompt, word, nth: "Shout" not in prompt or nth > reruns)
    searches: list[optim.PatchSearch] = []

    def make(params: Any) -> Optimizer:
        searches.append(optim.PatchSearch(params, lanes=lanes))
        return searches[0]

    result = fit(moody, make, Guards((KEPT,), reruns=reruns), steps=2)
    assert [step.why.partition(":")[0] for step in result.steps][:1] == ["refused"]
    assert (result.steps[1].kept, tuple(result.best.values())) == (True, searches[0].texts())
    assert "Shout" in result.best["system"]
    assert moody.runs[result.best["system"], KEPT] == reruns + 2
    assert not any("did worse" in each for each in result.terms)


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("name", ["PatchSearch", "RandomSearch", "ParetoSearch"])
def test_what_won_its_race_is_not_lost_where_guards_are_interrupted(name: str, nth: int) -> None:
    """By a budget or Ctrl-C, in a loop of one's own: the next step decides about it, and nothing is asked again."""

    def decided(interrupted: int) -> tuple[list[Any], Any, int]:
        moody, looks = Moody(wrong_first), list[int]()
        program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
        search: Any = OPTIMIZERS[name](list(program.parameters()))
        found = Objective(program, nn.ExactMatch(), rows(*WORDS[:12]), rows(*WORDS[12:]), guards=Guards((KEPT,)))
        refusal, steps = found.refusal, list[Any]()

        def looking(*asked: Any) -> str:
            looks.append(len(looks) + 1)
            if looks[-1] == interrupted:
                raise KeyboardInterrupt
            return refusal(*asked)

        found.refusal = looking  # type: ignore[method-assign, assignment]
        with use_models(forward=moody.model):
            while True:
                try:
                    step = search.step(found)
                except KeyboardInterrupt:
                    continue
                if step is None:
                    return steps, search.texts(), len(moody.model.requests)
                steps.append((step.number, step.kind, step.kept, step.why))

    whole = decided(0)
    assert "Shout" in whole[1][0]
    assert decided(nth) == whole


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("right", [wrong_first, always_wrong])
def test_a_run_that_is_played_back_asks_nothing_again(name: str, right: Runs, tmp_path: Path) -> None:
    """Runs of one example with one text are equal requests, and each gets its own answer from the record."""
    before = fit(Moody(right), OPTIMIZERS[name], Guards((KEPT,)), run_dir=tmp_path)
    again = Moody(lambda *asked: pytest.fail(f"asked again: {asked}"))
    after = fit(again, OPTIMIZERS[name], Guards((KEPT,)), run_dir=tmp_path, resume=True)
    assert (after.best, after.total, after.terms) == (before.best, before.total, before.terms)
    assert not again.runs


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_what_is_run_again_belongs_to_its_step(name: str, tmp_path: Path) -> None:
    """Of a step with one edit, too: `calls` lists it there, and what is on record is counted by its phases."""
    fit(Moody(always_wrong), OPTIMIZERS[name], Guards((KEPT,)), run_dir=tmp_path)
    calls = [json.loads(line) for line in (tmp_path / "completions.jsonl").read_text(encoding="utf-8").splitlines()]
    shouting = [each for each in calls if each["example"] == KEPT and "Shout" in str(each["request"]["messages"][0])]
    assert {each["step"] for each in shouting} <= set(range(1, 5))


def objective(moody: Moody, guards: Guards) -> Objective:
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="p"), model=moody.model)
    return Objective(program, nn.ExactMatch(), rows(*WORDS[12:]), guards=guards)


def test_a_text_that_passed_in_its_second_run_is_held_to_that() -> None:
    """Else what passed by chance once would be free to break with the next text."""

    def right(prompt: str, word: str, nth: int) -> bool:
        return {"Repeat.": True, "Shout.": nth == 1}.get(prompt, False)

    moody = Moody(right)
    found = objective(moody, Guards((KEPT,), reruns=1))
    assert found.refusal(("Repeat.",), ("Shout.",)) == ""
    found.adopt(("Shout.",))
    assert found.refusal(("Shout.",), ("Shout more.",)) == f"{KEPT} must never break: 1.000 -> 0.000"
    assert found.broken(("Shout.",), ("Shout more.",)) == (1,)


def test_only_what_did_worse_is_run_again() -> None:
    """And only with the new text."""
    moody = Moody(wrong_first)
    objective(moody, Guards((KEPT, "w15"), reruns=2)).refusal(("Repeat.",), ("Shout.",))
    assert moody.runs == {("Repeat.", KEPT): 1, ("Repeat.", "w15"): 1, ("Shout.", KEPT): 2, ("Shout.", "w15"): 1}


@pytest.mark.parametrize(
    ("lost", "refusal"),
    [
        ((0,), ""),
        ((1,), f"{KEPT} must never break: 1.000 -> 0.000"),
        ((0, 1, 2), f"{KEPT} must never break: it could not be run"),
    ],
)
def test_a_run_that_is_lost_is_no_proof(lost: tuple[int, ...], refusal: str) -> None:
    """A lost answer is asked for again as a wrong one is; what is lost again leaves what is known."""

    def losing(request: Request) -> Any:
        prompt, word = request.messages[0].text, request.messages[-1].text
        if word == KEPT and "Shout" in prompt and moody.runs[prompt, word] in lost:
            moody.runs[prompt, word] += 1
            raise BadRequest("no", status=400)
        return moody.answer(request)

    moody = Moody(wrong_first)
    moody.model = FunctionModel(losing)
    found = objective(moody, Guards((KEPT, "w12", "w14"), reruns=1))
    assert found.refusal(("Repeat.",), ("Shout.",)) == refusal


@pytest.mark.parametrize("beside", [(), ("w12", "w14")])
def test_a_lost_run_does_not_stand_for_those_after_it(beside: tuple[str, ...]) -> None:
    """Whether one example is run again does not depend on how many others are; nor do its edits, one by one."""

    def losing(request: Request) -> Any:
        prompt, word = request.messages[0].text, request.messages[-1].text
        if "Shout" in prompt and moody.runs[prompt, word] == 1:
            moody.runs[prompt, word] += 1
            raise BadRequest("no", status=400)
        return moody.answer(request)

    moody = Moody(lambda prompt, word, nth: "Shout" not in prompt or nth > 1)
    moody.model = FunctionModel(losing)
    found = objective(moody, Guards((KEPT, *beside), reruns=2))
    assert found.breaking(("Repeat.",), [("Shout.",)], [1]) == [()]
    assert found.refusal(("Repeat.",), ("Shout.",)) == ""


def test_floors_go_by_the_first_run() -> None:
    """A floor is a mean of many; the better of two runs would flatter it."""
    guards = Guards((KEPT,), {("kind", "quiet"): 0.8}, reruns=1)
    found = objective(Moody(wrong_first), guards)
    assert found.refusal(("Repeat.",), ("Shout.",)) == "kind = 'quiet' (1 example) has a floor of 0.8: 1.000 -> 0.000"


@pytest.mark.parametrize(
    ("marks", "told"), [((0.6, 0.8, 0.4), True), ((0.6, 0.6, 0.4), False), ((1.0, 0.8, 0.4), False)]
)
def test_that_marks_below_the_best_vary_where_they_refuse_is_told(marks: tuple[float, ...], told: bool) -> None:
    """A mark that was high by luck is what new texts are held to, and more runs of these alone may not reach it."""
    first, second, new = marks

    def mark(said: str, target: str) -> float:
        prompt, word = asked[-1]
        runs[prompt, word] += 1
        if word != KEPT:
            return float(said == target)
        return new if "Shout" in prompt else second if runs[prompt, word] > 1 else first

    def said(request: Request) -> Any:
        if request.purpose == "forward":
            asked.append((request.messages[0].text, request.messages[-1].text))
        return answer(request)

    asked, runs = list[tuple[str, str]](), collections.Counter[tuple[str, str]]()
    moody = Moody(always_wrong)
    moody.model = FunctionModel(said)
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="p"))
    loss = nn.Metric(mark, "is right", scale=(0, 1))
    with use_models(forward=moody.model):
        trainer = Trainer(batch_size=6, max_steps=1, guards=Guards((KEPT,)), concurrency=1)
        optimizer = optim.TGD(program.parameters())
        result = trainer.fit(program, loss, optimizer, rows(*WORDS[:6]), rows(*WORDS[12:20]))
    assert result.steps[0].why.startswith(f"refused: {KEPT} must never break")
    said_of_it = (
        "examples that must never break refused changes for marks below the best one, but of 9 examples that were run "
        "twice with the same texts, 1 got another score, so they may have refused changes that are no worse; "
        "passing=... says which score is good enough, and a floor under their mean is steadier"
    )
    assert [each for each in result.terms if "with the same texts" in each] == [said_of_it] * told


def test_a_mark_that_could_not_be_run_again_is_not_said_to_be_below_the_best() -> None:
    """What refuses is that there was no answer; to set a floor would be no repair."""
    guarded = Guards(("a", "b")).on([{"id": "a"}, {"id": "b"}], scale=(0, 1))
    assert not guarded.breaks_below(1.0, {0: 0.5, 1: 1.0}, {0: None, 1: 0.5})
    assert guarded.breaks_below(1.0, {0: 0.5, 1: None}, {0: 0.4, 1: None})
    assert guarded.breaks_below(None, {0: 0.5, 1: 1.0}, {0: None, 1: 0.5})


def test_an_edit_that_breaks_in_one_run_alone_is_not_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused patch is tried edit by edit, by the same rule."""
    monkeypatch.setattr("textgrad_engine.optim.search.proving.trimmed", lambda *arguments: None)
    lines = ["Shout.", "Always loud.", "Go on."]

    def right(prompt: str, word: str, nth: int) -> bool:
        return "Always" not in prompt and ("Go on" not in prompt or nth > 0)

    def said(request: Request) -> Any:
        if request.purpose == "backward":
            return feedback_for(request, "Say to shout.")
        if request.purpose == "optimizer":
            return {
                "edits": [{"op": "add", "line": 1, "text": line, "reason": "asked", "feedback": [1]} for line in lines]
            }
        return moody.answer(request)

    def kept(guards: Guards) -> str:
        moody.runs.clear()
        result = fit(moody, lambda params: optim.PatchSearch(params, lanes=1), guards, steps=1)
        return str(result.best["system"])

    moody = Moody(right)
    moody.model = FunctionModel(said)
    assert kept(Guards((KEPT,), reruns=0)) == "Repeat.\nShout."
    assert kept(Guards((KEPT,), reruns=1)) == "Repeat.\nShout.\nGo on."


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_with_answers_that_do_not_vary_it_decides_as_without(name: str) -> None:
    """What is no worse costs nothing more, and what is worse stays so."""
    for guards in ((KEPT,), ("w15",)):
        one, other = Moody(always_wrong), Moody(always_wrong)
        before, after = (
            fit(one, OPTIMIZERS[name], Guards(guards, reruns=0)),
            fit(other, OPTIMIZERS[name], Guards(guards)),
        )
        assert before.best == after.best
        assert [step.kept for step in before.steps] == [step.kept for step in after.steps]
        assert (one.runs == other.runs) is (guards != (KEPT,))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_estimate_has_room_for_all_runs(name: str) -> None:
    """Its most is a bound, also where each new text breaks and is run again each time."""
    moody = Moody(always_wrong)
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"), model=moody.model)
    examples = rows(*WORDS[:12]), rows(*WORDS[12:])

    def most(guards: Guards) -> float:
        trainer = Trainer(batch_size=6, max_steps=4, guards=guards)
        optimizer = OPTIMIZERS[name](program.parameters())
        return estimate(trainer, program, nn.ExactMatch(), optimizer, *examples).calls["forward"].high

    moody.runs.clear()
    fit(moody, OPTIMIZERS[name], Guards((KEPT,), reruns=9))
    assert sum(moody.runs.values()) <= most(Guards((KEPT,), reruns=9))
    assert most(Guards((KEPT,), reruns=9)) > most(Guards((KEPT,), reruns=0))


def test_an_estimate_has_room_for_a_step_of_one_edit_that_breaks() -> None:
    """It is not tried without its edit, and what it breaks is run again all the same."""
    kept = WORDS[12:15]
    runs: list[str] = []

    def said(request: Request) -> Any:
        if request.purpose != "forward":
            return improving(request, f"Shout {len(runs)}.", "")
        runs.append(request.messages[-1].text)
        return runs[-1].upper() if "Shout" in request.messages[0].text else runs[-1]

    words = [{"id": n, "word": n, "target": n if n in kept else n.upper()} for n in WORDS]
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="p"), model=FunctionModel(said))
    given = program, nn.ExactMatch(), optim.TGD(program.parameters(), mode="patch", max_edits=1), words[:12], words[12:]
    trainer = Trainer(batch_size=6, max_steps=4, guards=Guards(kept, reruns=9))
    most = estimate(trainer, *given).calls["forward"].high
    runs.clear()
    with use_models(backward=program.model, optimizer=program.model):
        assert trainer.fit(*given).steps[-1].why.startswith("refused: w12 must never break")
    assert len(runs) <= most


def test_what_is_no_number_of_reruns_is_said() -> None:
    """Before anything is paid for."""
    with pytest.raises(ValueError, match="Guards: reruns must be at least 0, got -1"):
        Guards(("a",), reruns=-1)
    with pytest.raises(TypeError, match=r"Guards: reruns must be a whole number, got 0\.5"):
        Guards(("a",), reruns=0.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="reruns=1 is about examples of never_break, and it names none"):
        Guards(floors={("kind", "quiet"): 0.5}, reruns=1)


def test_a_run_that_goes_on_must_have_as_many_reruns() -> None:
    """They decide what is kept, as the other settings do."""
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    optimizer = optim.TGD(program.parameters())

    def told(reruns: int) -> Any:
        trainer = Trainer(guards=Guards((KEPT,), reruns=reruns))
        return settings_of(trainer, optimizer, DataLoader(rows(*WORDS)))["guards"]

    assert told(0) == f"never_break {KEPT}"
    assert told(2) == f"never_break {KEPT}; reruns 2"


@given(st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4), min_size=1, max_size=3), st.integers(0, 3))
def test_what_does_worse_is_what_reaches_its_level_in_no_run(texts: list[list[float]], reruns: int) -> None:
    """Runs end early, and the result is that of all of them."""
    level = {0: 0.5}

    def run(nth: int, worse: Any) -> list[list[float]]:
        return [[runs[nth]] * len(each) for runs, each in zip(texts, worse)]

    first = [[0] if runs[0] < 0.5 else [] for runs in texts]
    best = [most_of((0,), [(score,) for score in runs[: reruns + 1]])[0] for runs in texts]
    assert still_worse(level, first, reruns, run) == [[0] if most is None or most < 0.5 else [] for most in best]
