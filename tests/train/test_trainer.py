from __future__ import annotations

import asyncio
import copy
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn
from textgrad_engine.data import DataLoader, load
from textgrad_engine.llm import Request
from textgrad_engine.llm.response import Usage
from textgrad_engine.llm.simulated import TicketsModel
from textgrad_engine.optim import TGD, Optimizer, PatchSearch, RandomSearch
from textgrad_engine.optim.proposers import Brief, Patch, Proposal
from textgrad_engine.optim.schedules import LinearEdits
from textgrad_engine.optim.search.race import AT_THE_END, AT_THE_END_LONGER
from textgrad_engine.testing import FunctionModel, feedback_for
from textgrad_engine.train import StopTraining, Trainer, TrainResult
from textgrad_engine.train.estimate import estimate
from textgrad_engine.train.events import (
    CallEnded,
    Evaluated,
    Event,
    PhaseStarted,
    RunEnded,
    StepEnded,
)

TICKETS = Path(__file__).parent.parent.parent / "examples" / "tickets"
SEED = "Repeat the word."
WORDS = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "ibis", "jay", "kiwi", "lynx")


# what it does


def test_it_keeps_the_best_and_takes_back_the_worse(world: Any, rows: Any) -> None:
    """Program, origins and the optimizer's memory are those of the best texts; what was taken back is remembered."""
    here = world("HALF", "makes no difference", "SHOUT", "more words")
    train, val = rows("bee", "dog", "fox"), rows("ant", "cat", "jay", "lynx")
    test = rows("kiwi", "ibis")
    result = here.fit(train, val, test, batch_size=1)
    assert [(step.val_mean, step.kept) for step in result.steps] == [
        (0.5, True),
        (0.5, False),
        (1.0, True),
    ]
    assert result.best["system"] == f"{SEED}\nSHOUT\nHALF" == here.program.system.data
    assert [origin.step if origin else None for origin in result.origins["system"]] == [None, 3, 1]
    assert (result.seed, result.status, result.candidates) == ({"system": SEED}, "finished", 3)
    assert result.seed_val is not None
    assert result.best_val is not None
    assert (result.seed_val.mean, result.best_val.mean) == (0.0, 1.0)
    assert result.seed_test is not None
    assert result.best_test is not None
    assert (result.seed_test.mean, result.best_test.mean, result.compared_on) == (0.0, 1.0, "test")
    third = [r for r in here.model.requests if r.purpose == "optimizer"][2].messages[-1].text
    assert "- added 'HALF' — kept: validation score 0.000 -> 0.500" in third
    assert "- added 'makes no difference' — taken back: no difference shown\n" in third
    assert "makes no difference" not in third.split("</text-")[0]
    assert here.program.system.grad == []


def test_a_step_that_is_taken_back_asks_for_two_states(world: Any, rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the optimizer knew before it, and its settings of now; a state is long where a run is."""
    here, real = world("no use", "nor this", "SHOUT"), TGD.state_dict
    asked: list[int] = []

    def counting(optimizer: TGD) -> dict[str, Any]:
        asked.append(optimizer.steps)
        return real(optimizer)

    monkeypatch.setattr(TGD, "state_dict", counting)
    result = here.fit(rows("bee", "dog", "fox"), rows("ant", "cat"), batch_size=1)
    assert [step.kept for step in result.steps] == [False, False, True]
    assert asked[-5:] == [0, 1, 1, 2, 2]


def test_a_prompt_may_begin_as_nothing(world: Any, rows: Any) -> None:
    """The optimizer is told so, and what it adds does not stand beside an empty line."""
    here = world("SHOUT")
    here.program.system.data = ""
    result = here.fit(rows("bee", "dog"), rows("ant", "cat"))
    assert (result.best["system"], here.program.system.data) == ("SHOUT", "SHOUT")
    asked = next(r for r in here.model.requests if r.purpose == "optimizer").messages[-1].text
    assert asked.startswith("The text is the system prompt. It is empty so far: lines are added behind line 0.\n\n")
    assert '"op": "add", "line": 0' in asked


def test_a_schedule_that_nobody_steps_is_told_of(world: Any, rows: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is said where it is attached, where a callback may step it, or of a run of one step."""
    for calls, told in ((lambda made: None, 1), (LinearEdits.attach, 0), (LinearEdits.step, 0)):
        here = world("SHOUT")
        calls(LinearEdits(here.optimizer, 4, 1, 3))
        here.fit(rows("bee", "dog"), rows("ant", "cat"))
        assert (
            caplog.text.count(
                "A LinearEdits was made for the optimizer and is not attached, so every step of this run may make 4"
            )
            == told
        )
        caplog.clear()
    for settings in ({"callbacks": [here.listener()]}, {"max_steps": 1}):
        here = world("SHOUT")
        LinearEdits(here.optimizer, 4, 1, 3)
        here.fit(rows("bee", "dog"), rows("ant", "cat"), **settings)
        assert not caplog.text


def test_what_a_notebook_shows_of_it_are_the_settings() -> None:
    """Those that are not the usual ones."""
    trainer = Trainer(2, target="queue", run_dir="runs/a")
    assert repr(trainer) == f"Trainer(max_epochs=2, target='queue', run_dir={trainer.run_dir!r})"


def test_of_equal_scores_the_shorter_text_is_kept(world: Any, rows: Any) -> None:
    """A line that helps nobody may go."""
    here = world()
    with tg.no_grad():
        here.program.system.data = "Repeat the word.\nUseless line."
    removal = {"op": "remove", "line": 2, "text": "", "reason": "useless", "feedback": [1]}
    here.optimizer = TGD(here.program.parameters(), model=FunctionModel(lambda request: {"edits": [removal]}))
    result = here.fit(rows("ant"), rows("bee"))
    assert (result.steps[0].kept, result.best["system"]) == (True, SEED)


def test_of_equal_scores_fewer_characters_in_more_lines_are_not_kept(world: Any, rows: Any) -> None:
    """What is shorter is the same for a step as for a search: it has no more lines."""
    here = world()
    with tg.no_grad():
        here.program.system.data = "Repeat the word, and nothing else at all."
    split = {"op": "replace", "line": 1, "text": "Repeat it.\nNo more.", "reason": "terse", "feedback": [1]}
    here.optimizer = TGD(here.program.parameters(), model=FunctionModel(lambda request: {"edits": [split]}))
    result = here.fit(rows("ant"), rows("bee"))
    assert (result.steps[0].kept, result.best) == (False, result.seed)


def test_a_shorter_text_that_is_probably_worse_is_not_kept(world: Any, rows: Any) -> None:
    """Two of twelve answers lost are no proof at the usual level; a tie they are not either."""
    here = world()
    with tg.no_grad():
        here.program.system.data = "Repeat the word.\nBe careful."
    removal = {"op": "remove", "line": 2, "text": "", "reason": "useless", "feedback": [1]}
    here.optimizer = TGD(here.program.parameters(), model=FunctionModel(lambda request: {"edits": [removal]}))

    def answer(request: Request) -> Any:
        if request.purpose == "backward":
            return {"case_1": {"system": "Shorter."}}
        system, word = request.messages[0].text, request.messages[-1].text
        return word.upper() if word not in ("cat", "dog", "zoo") or ("careful" in system and word != "zoo") else word

    here.model = FunctionModel(answer)
    here.optimizer.to_the_end = True
    result = here.fit(rows("zoo"), rows(*WORDS))
    (step,) = result.steps
    assert step.race is not None
    assert (len(step.race.lost), step.race.outcome, step.kept) == (2, "worse", False)
    assert 0.05 < step.race.probability < 0.25


def test_one_more_right_answer_is_no_proof(world: Any, rows: Any) -> None:
    """A text is not kept because one mean is above another: a single example that changed is luck."""
    here = world("HALF")
    result = here.fit(rows("bee"), rows("ant", "bee", "dog", "fox"))
    (step,) = result.steps
    assert (step.kept, step.val_mean, result.best["system"]) == (False, 0.25, SEED)
    assert step.race is not None
    assert (step.race.outcome, step.race.gained) == ("no difference", ("ant",))


def test_the_balance_of_many_examples_is_enough_for_another_line(world: Any, rows: Any) -> None:
    """Two of a hundred repaired and one broken are no proof, but nothing is left to run; a line more needs more."""

    def answer(request: Request) -> Any:
        if request.purpose == "backward":
            return {"case_1": {"system": "Say it otherwise."}}
        word = request.messages[-1].text
        number = int(word.removeprefix("word"))
        new = "With the utmost care." in request.messages[0].text
        return word.upper() if (number % 6 or (new and number < 12)) and not (new and number == 20) else word

    kept = {}
    for op in ("replace", "add"):
        here = world()
        with tg.no_grad():
            here.program.system.data = "Repeat the word.\nBe careful."
        edit = {"op": op, "line": 2, "text": "With the utmost care.", "reason": "", "feedback": [1]}
        here.optimizer = TGD(
            here.program.parameters(), model=FunctionModel(lambda request, edit=edit: {"edits": [edit]})
        )
        here.model = FunctionModel(answer)
        (step,) = here.fit(rows("word600"), rows(*[f"word{n}" for n in range(96)])).steps
        assert step.race is not None
        assert (len(step.race.examples), len(step.race.gained), len(step.race.lost)) == (96, 2, 1)
        assert AT_THE_END < step.race.probability < AT_THE_END_LONGER
        kept[op] = step.kept
    assert kept == {"replace": True, "add": False}


def test_validation_costs_what_the_decision_needs(world: Any, rows: Any) -> None:
    """A text that changes nothing is given up after a glance; one that wins is then scored on all examples."""
    val = rows(*[f"word{n}" for n in range(60)])
    for line, examples in (("Useless.", 16), ("SHOUT", 60)):
        here = world(line)
        result = here.fit(rows("bee"), val)
        assert here.asked("forward") == 60 + 1 + 8 + examples  # eight are run twice to measure the noise
        assert result.best_val is not None
        assert len(result.best_val.scores) == 60
        assert result.steps[0].race is not None
        assert len(result.steps[0].race.examples) == 16


def test_several_candidates_are_chosen_among_by_training_examples(world: Any, rows: Any) -> None:
    """`TGD(candidates=3)` gets its scores from the Trainer; the validation set sees the one that was chosen."""
    here = world("Useless.", "SHOUT", "HALF")
    here.optimizer = TGD(here.program.parameters(), candidates=3)
    listener = world.listener()
    result = here.fit(rows("ant", "bee", "dog"), rows("cat", "eel"), batch_size=3, callbacks=[listener])
    (step,) = result.steps
    assert (step.kept, result.best["system"]) == (True, f"{SEED}\nSHOUT")
    phases = {event.number: event.phase for event in listener.of(PhaseStarted)}
    asked = [(phases[call.phase], call.record.purpose) for call in listener.of(CallEnded)]
    assert asked.count(("optimize", "optimizer")) == 3
    assert asked.count(("optimize", "forward")) == 3 * 3
    assert here.asked("forward", "cat") == 3  # the seed, once more for the noise, the one that was chosen


def test_an_optimizer_of_ones_own_is_given_what_scores_its_candidates(world: Any, rows: Any) -> None:
    """Where it says that it chooses among several texts, and only there; estimates count its candidates, too."""

    class Choosing(Optimizer):
        def step(self, *closures: Any) -> None:
            self.given = closures

    here = world()
    here.optimizer = Choosing(here.program.parameters(), {})
    train, val = rows("ant", "bee", "dog"), rows("cat", "eel")
    here.fit(train, val)
    assert here.optimizer.given == ()
    alone = estimate(Trainer(), here.program, nn.ExactMatch(), here.optimizer, train, val).calls["forward"]
    here.optimizer.candidates = 2
    here.fit(train, val)
    (objective,) = here.optimizer.given
    with tg.use_models(forward=here.model):
        assert objective.scores(("SHOUT",), [0], "train") == [1.0]
    both = estimate(Trainer(), here.program, nn.ExactMatch(), here.optimizer, train, val).calls["forward"]
    assert (both.low, both.high) == (alone.low, alone.high + 2 * len(train))


def test_feedback_is_asked_for_failures_only(world: Any, rows: Any) -> None:
    """One forward call an example, one feedback call a failed one, one optimizer call; a perfect prompt costs none."""
    here = world("HALF", "SHOUT")
    here.optimizer.to_the_end = True
    result = here.fit(rows("ant", "bee", "cat", "dog"), rows("eel", "fox", "gnu", "hen"), batch_size=4, max_epochs=3)
    assert {name: usage.calls for name, usage in result.usage.items()} == {
        "forward": 3 * 4 + 4 * 4,  # of the validation set the seed, twice for the noise, and two texts
        "backward": 4 + 2,
        "optimizer": 2,
    }
    assert result.total == sum(result.usage.values(), Usage())
    assert [step.feedback for step in result.steps] == [4, 2, 0]


def test_examples_may_share_feedback_calls(world: Any, rows: Any) -> None:
    """The setting reaches the engine."""
    here = world("SHOUT")
    here.fit(rows("ant", "bee", "cat", "dog", "eel"), rows("fox"), batch_size=5, feedback_batch_size=2)
    assert here.asked("backward") == 3


def test_concurrency_bounds_training_too(world: Any, rows: Any) -> None:
    """Also for a program that only dispatches."""
    here = world()

    async def until_the_next_is_asked(own: int) -> None:
        while len(here.model.requests) < min(own + 1, 6):  # the validation example and the five of the minibatch
            await asyncio.sleep(0)

    def before(request: Request) -> Any:
        training = request.purpose == "forward" and request.messages[-1].text != "fox"
        return until_the_next_is_asked(len(here.model.requests)) if training else None

    here.before = before
    peaks: list[int] = []
    listener = world.listener(lambda event: peaks.append(here.model.peak) if isinstance(event, PhaseStarted) else None)
    here.fit(rows("ant", "bee", "cat", "dog", "eel"), rows("fox"), batch_size=5, concurrency=2, callbacks=[listener])
    assert peaks[2] == 2  # when the backward phase begins


def test_a_schedule_goes_on_where_steps_are_taken_back(world: Any, rows: Any) -> None:
    """Settings that a hook makes for the next step are no part of the step."""
    here = world("no use", "none either", "nor this")
    schedule = LinearEdits(here.optimizer, 7, 1, steps=3)
    here.optimizer.register_step_post_hook(lambda *_: schedule.step())
    result = here.fit(rows("bee", "dog", "fox"), rows("ant", "cat"), batch_size=1)
    assert [step.kept for step in result.steps] == [False] * 3
    asked = [request.messages[-1].text for request in here.model.requests if request.purpose == "optimizer"]
    assert [number for text in asked for number in re.findall(r"Give at most (\d) edit", text)] == ["7", "5", "3"]
    assert schedule.get_last_edits() == [1]


class Stops:
    """A callback that has seen enough."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.told: list[type] = []

    def on_event(self, event: Event) -> None:
        self.told.append(type(event))
        if isinstance(event, self.kind):
            raise StopTraining


@pytest.mark.parametrize("kind", [StepEnded, CallEnded, Evaluated])
@pytest.mark.parametrize("optimizer", [TGD, PatchSearch])
def test_a_callback_ends_the_training(world: Any, rows: Any, kind: type, optimizer: Any) -> None:
    """Behind the step that is under way; the run goes on to its end, and everybody is told of it."""
    here, first, other = world("HALF", "SHOUT", "more"), Stops(kind), Stops(type(None))
    if optimizer is PatchSearch:
        here.optimizer = PatchSearch(here.program.parameters(), lanes=1)
    result = here.fit(
        rows("bee", "dog"), rows("ant", "cat", "jay", "lynx"), rows("kiwi"), batch_size=1, callbacks=[first, other]
    )
    assert (result.status, len(result.steps)) == ("finished", 1 if kind is StepEnded else 0)
    assert result.best_test is not None
    assert first.told == other.told
    assert first.told[-1] is RunEnded


def test_patience_and_max_steps_end_it(world: Any, rows: Any) -> None:
    """Steps without a gain are counted in a row; a kept one starts the count anew."""
    here = world("no", "HALF", "no", "no", "SHOUT")
    val = rows("ant", "bee", "cat", "dog")
    result = here.fit(rows("bee", "dog"), val, batch_size=1, max_epochs=9, patience=2)
    assert [step.kept for step in result.steps] == [False, True, False, False]
    assert [step.epoch for step in result.steps] == [1, 1, 2, 2]
    assert len(world().fit(rows("bee", "dog"), rows("ant"), batch_size=1, max_epochs=9, max_steps=3).steps) == 3


def test_the_test_set_is_opened_at_the_end_only(world: Any, rows: Any) -> None:
    """Not one of its examples is asked about before the last step, and each text is tested once."""
    here = world("SHOUT")
    opened: list[int] = []

    def then(event: Event) -> None:
        if isinstance(event, StepEnded):
            opened.append(here.asked("forward", "jay"))

    listener = world.listener(then)
    here.optimizer.to_the_end = True
    here.fit(rows("ant", "bee", "cat"), rows("dog", "eel"), rows("jay"), batch_size=1, callbacks=[listener])
    assert (opened, here.asked("forward", "jay")) == ([0, 0, 0], 2)


def test_an_unchanged_program_is_tested_once(world: Any, rows: Any) -> None:
    """Seed and best are the same texts: one evaluation is both."""
    here = world(None)
    result = here.fit(rows("ant"), rows("dog"), rows("jay"))
    assert result.seed_test is result.best_test
    assert (here.asked("forward", "jay"), result.comparison.verdict) == (1, "not shown")  # type: ignore[union-attr]


def test_a_callback_may_read_a_value(world: Any, rows: Any) -> None:
    """A sample answer after each validation; the event of its call comes when the callback is through."""
    here = world("SHOUT")
    samples: list[str] = []

    def then(event: Event) -> None:
        if isinstance(event, Evaluated):
            samples.append(here.program(word="jay").data)

    listener = world.listener(then)
    here.fit(rows("bee"), rows("ant", "cat"), callbacks=[listener])
    assert samples == ["jay", "JAY"]
    told = [event.record.request.messages[-1].text for event in listener.of(CallEnded)]
    assert (told.count("jay"), len(told)) == (2, len(here.model.requests))


def test_afit_works_inside_a_running_loop(world: Any, rows: Any) -> None:
    """The twin for a notebook; the loop is not blocked."""
    here = world("SHOUT")

    async def main() -> TrainResult:
        with tg.use_models(forward=here.model):
            val = rows("bee", "cat")
            return await Trainer().afit(here.program, nn.ExactMatch(), here.optimizer, rows("ant"), val)

    assert asyncio.run(main()).best["system"] == f"{SEED}\nSHOUT"


# programs


class Chain(nn.Module):
    """Two calls, one after the other; the second looks at the answer of the first if it is told to."""

    def __init__(self, looks: bool = False) -> None:
        super().__init__()
        self.looks = looks
        self.draft = nn.ChatCompletion("{word}", system=nn.Parameter("Draft.", role="prompt of the drafter"))
        self.check = nn.ChatCompletion("Check {draft}", system=nn.Parameter("Check.", role="prompt of the checker"))

    def forward(self, word: str) -> Any:
        draft = self.draft(word=word)
        if self.looks and str(draft) == "stop":
            return draft
        return self.check(draft=draft)


def chained(request: Request) -> Any:
    if request.purpose == "backward":
        cases = request.config.response_format.json_schema["properties"]
        return {case: {key: f"change the {key}" for key in schema["properties"]} for case, schema in cases.items()}
    if request.purpose == "optimizer":
        role = "drafter" if "prompt of the drafter" in request.messages[-1].text else "checker"
        return {"edits": [{"op": "add", "line": 1, "text": f"Be a {role}.", "reason": "", "feedback": [1]}]}
    return f"{request.messages[0].text.splitlines()[-1]} {request.messages[-1].text}"


def test_feedback_reaches_every_prompt_of_a_chain(rows: Any) -> None:
    """Both prompts are changed in one step, each by its own feedback, named by its dotted name."""
    program, model = Chain(), FunctionModel(chained)
    loss = nn.Metric(lambda got, target: "checker" in got and "drafter" in got, "both parts")
    with tg.use_models(forward=model):
        train, val = rows("ant", "bee"), rows("cat", "dog")
        result = Trainer(batch_size=2).fit(program, loss, TGD(program.parameters()), train, val)
    (step,) = result.steps
    assert [(change.name, change.after) for change in step.changes] == [
        ("draft.system", "Draft.\nBe a drafter."),
        ("check.system", "Check.\nBe a checker."),
    ]
    assert (step.feedback, step.val_mean, step.kept) == (4, 1.0, True)
    assert [evidence.examples for evidence in step.changes[0].feedback] == [step.examples]


def test_a_program_that_reads_its_answers_is_trained_concurrently(rows: Any, main_waits: Any) -> None:
    """After the first example all others are under way at once: their answers wait for each other."""
    program = Chain(looks=True)
    drafts: list[str] = []
    everybody = asyncio.Event()

    async def answer(request: Request) -> Any:
        if request.purpose == "forward" and request.messages[0].text == "Draft.":
            drafts.append(request.messages[-1].text)
            if len(drafts) == 8:
                everybody.set()
            if len(drafts) == 3:  # the first of the minibatch, after two validation examples
                await main_waits()
            if 3 < len(drafts) <= 8:
                await everybody.wait()
        return chained(request)

    with tg.use_models(forward=FunctionModel(answer)):
        train = DataLoader(rows("ant", "bee", "cat", "dog", "eel", "fox"), batch_size=6)
        result = Trainer().fit(program, nn.ExactMatch(), TGD(program.parameters()), train, rows("gnu", "hen"))
    assert result.steps[0].unanswered == 0
    assert sorted(drafts[2:8]) == ["ant", "bee", "cat", "dog", "eel", "fox"]


# determinism


def tickets_run(order: int, concurrency: int | None = None, feedback_batch_size: int = 1) -> TrainResult:
    """A small run on the tickets in which answers overtake each other in an order of their own."""
    inner = TicketsModel(seed=1)
    turn = 0

    async def answer(request: Request) -> Any:
        nonlocal turn
        turn += 1
        for _ in range((turn * 7919 * order) % 23):
            await asyncio.sleep(0)
        return await inner.complete(request)

    system = (
        "Sort the ticket into one queue: billing, shipping, returns, account, technical or trust. "
        "Answer with the name of the queue."
    )
    program = nn.ChatCompletion("{ticket}", system=nn.Parameter(system, role="system prompt of the ticket sorter"))
    train, val = load(TICKETS / "train.jsonl"), load(TICKETS / "val.jsonl")
    column = "queue" if "queue" in train[0] else "target"
    with tg.use_models(forward=FunctionModel(answer)):
        return Trainer(
            batch_size=8, max_steps=3, target=column, concurrency=concurrency, feedback_batch_size=feedback_batch_size
        ).fit(program, nn.ExactMatch(), TGD(program.parameters(), momentum=2), list(train)[:24], list(val)[:12])


@pytest.mark.parametrize("feedback_batch_size", [1, 3])
def test_a_run_depends_on_its_seed_alone(feedback_batch_size: int) -> None:
    """In whatever order answers come, one at a time or all at once, the result is the same to the last line."""
    first = tickets_run(0, feedback_batch_size=feedback_batch_size)
    assert first.steps[0].changes
    for order, concurrency in ((1, None), (5, 1), (11, 4)):
        other = tickets_run(order, concurrency, feedback_batch_size)
        assert replace(other, seconds=first.seconds) == first


def test_another_seed_is_another_order(world: Any, rows: Any) -> None:
    """The minibatches of one seed are always the same ones."""
    train = rows("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen")

    def batches(seed: int) -> list[tuple[str, ...]]:
        return [step.examples for step in world().fit(train, rows("jay"), seed=seed, max_epochs=2).steps]

    assert batches(0) == batches(0) != batches(1)
    assert batches(0)[:4] != batches(0)[4:]


def test_a_path_is_no_set_of_examples(world: Any, rows: Any) -> None:
    """Each set is named, and nothing is asked."""
    here = world(None)
    for sets in (("train.jsonl", rows("a")), (rows("a"), "val.jsonl"), (rows("a"), rows("b"), "test.jsonl")):
        name = next(each for each in sets if isinstance(each, str))
        with pytest.raises(
            TypeError,
            match=f"fit: {name.removesuffix('.jsonl')} should be .*, and is the path '{name}'",
        ):
            here.fit(*sets)
    assert here.model.requests == []


@pytest.mark.parametrize("make", [TGD, PatchSearch])
@pytest.mark.parametrize("tested", [True, False])
def test_verdicts_take_examples_of_one_cluster_together(make: Any, tested: bool, world: Any, rows: Any) -> None:
    """On the validation set and on the test set."""
    here = world(*["SHOUT"] * 4)
    here.optimizer = make(here.program.parameters())
    words = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen")
    every = [{**row, "doc": number // 2} for number, row in enumerate(rows(*words))]
    result = here.fit(rows("kiwi"), every, every[:6] if tested else None, clusters="doc")
    assert result.comparison is not None
    assert (result.comparison.clusters, result.comparison.n) == ((3, 6) if tested else (4, 8))
    assert result.best_val is not None
    assert result.best_val.clusters == tuple("00112233")


def add_a_line(request: Request) -> Any:
    """Repeats words, or shouts those with a where a line says so; as critic and optimizer it asks for that line."""
    if request.purpose == "backward":
        return feedback_for(request, "Say to shout.")
    if request.purpose == "optimizer":
        return {"edits": [{"op": "add", "line": 1, "text": "a", "reason": "asked", "feedback": []}]}
    prompt, word = (message.text for message in request.messages)
    return word.upper() if "a" in prompt.split("\n") and word[0] == "a" else word


@pytest.mark.parametrize("docs", [1, 8])
@pytest.mark.parametrize(
    "make",
    [TGD, lambda params: PatchSearch(params, lanes=1), lambda params: RandomSearch(params, Patch(), proposals=2)],
    ids=["TGD", "PatchSearch", "RandomSearch"],
)
def test_races_take_examples_of_one_cluster_together(make: Any, docs: int) -> None:
    """Eight answers that get better show something where they are from several documents, and nothing from one."""
    words = [f"{letter}{n}" for letter in "ab" for n in range(8)]
    found = [
        {"id": each, "word": each, "target": each.upper(), "doc": f"{each[0]}{n % docs}"}
        for n, each in enumerate(words)
    ]
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    trainer = Trainer(1, batch_size=16, max_steps=2, clusters="doc")
    with tg.use_models(forward=FunctionModel(add_a_line)):
        result = trainer.fit(program, nn.ExactMatch(), make(program.parameters()), found, found)
    assert result.best["system"] == ("Repeat." if docs == 1 else "Repeat.\na")


@pytest.mark.parametrize("frozen", [False, True])
def test_feedback_on_texts_that_nobody_trains_is_not_paid_for(world: Any, rows: Any, frozen: bool) -> None:
    """It takes as many calls of the critic as if they were frozen, and leaves nothing in them."""

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.draft = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="first prompt"))
            self.final = nn.ChatCompletion("{draft}", system=nn.Parameter("Repeat.", role="second prompt"))

        def forward(self, word: str) -> tg.Variable:
            return self.final(draft=self.draft(word=word))

    here = world(None)
    here.program = program = Two()
    program.draft.requires_grad_(not frozen)
    program.draft.system.grad = old = [tg.Variable("from before", role="feedback")]
    here.optimizer = TGD(program.final.parameters())
    result = here.fit(rows("ant", "bee"), rows("cat"))
    assert (here.asked("backward"), program.draft.system.grad) == (2, old)
    assert result.steps[0].feedback == 2


def test_no_critic_is_asked_about_a_group_that_reads_no_feedback(world: Any, rows: Any) -> None:
    """A control beside a group that goes by feedback: what would be said about its texts is read by nobody."""
    here = world("SHOUT")
    here.program = nn.Sequential(
        nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="first")), here.program
    )
    first, second = here.program.parameters()
    silent = Rewritten()
    here.optimizer = TGD([{"params": [first], "use_feedback": False, "proposer": silent}, {"params": [second]}])
    result = here.fit(rows("ant", "bee"), rows("cat", "dog"))
    assert (here.asked("backward"), result.steps[0].feedback, silent.asked) == (2, 2, 1)


class Rewritten:
    """Changes nothing, and counts how often it is asked."""

    asked = 0

    async def propose(self, brief: Brief, model: Any, problem: str = "") -> Proposal:
        self.asked += 1
        return Proposal(brief.text, brief.origins)


def test_a_class_of_callbacks_is_to_be_made_one() -> None:
    """There is nothing to be written where it has the method."""

    class Quiet:
        def on_event(self, event: object) -> None: ...

    with pytest.raises(TypeError, match=r"is the class Quiet, .*; give an instance of it: Quiet\(\.\.\.\)$"):
        Trainer(callbacks=[Quiet])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("validate", r"; tg\.evaluate\(program, dataset, loss\) scores a program"),
        ("test", r"; tg\.evaluate\("),
        ("predict", r"; call the program in a plain loop"),
        ("save_checkpoint", r"; Trainer\(run_dir=\.\.\.\) keeps all of a run"),
        ("train", r"; here it is fit\(program, loss, optimizer, train, val, test\)"),
        ("no_such", "$"),
    ],
)
def test_a_method_of_another_trainer_is_told_by_what_there_is_here(name: str, says: str) -> None:
    """Lightning's and transformers' are what a script calls behind `fit`."""
    trainer = Trainer(max_epochs=2)
    with pytest.raises(AttributeError, match=rf"^'Trainer' object has no attribute '{name}'{says}"):
        getattr(trainer, name)
    assert not hasattr(trainer, name)
    assert repr(copy.deepcopy(trainer)) == "Trainer(max_epochs=2)"
