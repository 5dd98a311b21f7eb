"""What a run will cost, told beforehand without asking anybody."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, field_validator

import textgrad_engine as tg
from textgrad_engine import data, llm, nn, ops, optim
from textgrad_engine.errors import DataError
from textgrad_engine.fences import fence
from textgrad_engine.llm.simulated import TicketsModel
from textgrad_engine.llm.tokens import count
from textgrad_engine.optim.search.volume import Range
from textgrad_engine.optim.transforms import dedupe, summarise
from textgrad_engine.testing import FunctionModel, ScriptedModel, simulated_task
from textgrad_engine.train.estimate import estimate, estimate_parts
from textgrad_engine.train.estimated import Estimate, a_case
from textgrad_engine.train.fold_parts import Part

TICKETS = Path(__file__).parent.parent.parent / "examples" / "tickets"
ROWS = [{"word": f"word {n}", "target": "yes"} for n in range(20)]


def parts(loss: Any = None) -> tuple[nn.Module, Any, optim.TGD]:
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Say yes.", role="system prompt"))
    return program, loss or nn.ExactMatch(), optim.TGD(program.parameters())


def test_a_field_that_lacks_is_an_error_as_in_fit() -> None:
    """What would end the run ends the estimate, in the same words."""
    program, loss, optimizer = parts()
    with pytest.raises(DataError, match="'word'"):
        estimate(tg.Trainer(), program, loss, optimizer, [{"target": "x"}], ROWS)


@pytest.mark.parametrize("search", [optim.TGD, optim.PatchSearch])
def test_tables_that_are_sorted_by_length_are_estimated_as_they_are(search: Any) -> None:
    """Of 60 contracts the first are ten times as long as the last, or the other way round: the run is the same."""
    program, loss, _ = parts()
    rows = [{"word": "word " * (1000 if n < 10 else 100), "target": "yes"} for n in range(60)]
    first, last = (
        estimate(tg.Trainer(), program, loss, search(program.parameters()), each, each[::3]).input_tokens
        for each in (rows, rows[::-1])
    )
    for purpose in ("forward", "backward"):
        assert last[purpose].usual == pytest.approx(first[purpose].usual, rel=0.1)


@pytest.mark.parametrize("optimizer", [optim.TGD, optim.PatchSearch])
def test_the_log_tells_nothing_of_the_few_examples_of_a_rehearsal(
    optimizer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Of 20 validation examples that are training examples, too, it said that there are 8; `fit` tells of all."""
    program, loss, _ = parts()
    estimate(tg.Trainer(), program, loss, optimizer(program.parameters()), [*ROWS], [*ROWS])
    assert caplog.messages == []


def test_what_is_no_set_is_refused_as_in_fit() -> None:
    """In the words of the call that was made; an empty set has none to be put through."""
    program, loss, optimizer = parts()
    with pytest.raises(TypeError, match=r"^estimate: train should be .*, and is the path 'train.jsonl'.*data\.load"):
        estimate(tg.Trainer(), program, loss, optimizer, "train.jsonl", ROWS)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^estimate: val should be .*, and is a DataLoader, which gives minibatches"):
        estimate(tg.Trainer(), program, loss, optimizer, ROWS, data.DataLoader(ROWS))  # type: ignore[arg-type]
    with pytest.raises(DataError, match="the test set is empty"):
        estimate(tg.Trainer(), program, loss, optimizer, ROWS, ROWS, [])
    loader = data.DataLoader(ROWS, batch_size=21, drop_last=True)
    with pytest.raises(DataError, match="the train loader gives no minibatch"):
        estimate(tg.Trainer(), program, loss, optimizer, loader, ROWS)
    loader = data.DataLoader(ROWS, sampler=[])
    with pytest.raises(DataError, match="no minibatch, as its sampler, a list, has a length of 0"):
        estimate(tg.Trainer(), program, loss, optimizer, loader, ROWS)


@pytest.mark.parametrize("make", [optim.TGD, optim.PatchSearch])
def test_a_loader_is_taken_as_in_fit(make: Any) -> None:
    """Its minibatches are those of the run, and it is not gone over."""
    program, loss, _ = parts()
    optimizer = make(program.parameters())
    loader = data.DataLoader(ROWS, batch_size=5, shuffle=True, seed=1)
    found = estimate(tg.Trainer(), program, loss, optimizer, loader, ROWS)
    assert found == estimate(tg.Trainer(batch_size=5), program, loss, optimizer, ROWS, ROWS)
    assert loader.epoch == 0
    assert loader.state_dict() == data.DataLoader(ROWS, batch_size=5, shuffle=True, seed=1).state_dict()


def look_up(word: str) -> str:
    """A word."""
    raise AssertionError(word)


@pytest.mark.parametrize("make", [optim.TGD, optim.PatchSearch])
def test_of_a_program_with_tools_it_says_what_it_rests_on(make: Any) -> None:
    """Nobody knows how many turns a model will take; no tool is run to find out."""
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Say yes.", role="system prompt"), tools=[look_up])
    for trainer in (tg.Trainer(max_steps=2), tg.Trainer()):
        found = estimate(trainer, program, nn.ExactMatch(), make(program.parameters()), ROWS, ROWS)
        assert found.assumed.startswith("no answer calls a tool that is run, as each turn that does is a request more")


@pytest.mark.parametrize("asks", ["a prompt of its own", "nothing that is trained"])
@pytest.mark.parametrize("make", [optim.TGD, optim.PatchSearch])
def test_an_agent_that_is_called_as_a_tool_is_not_said_to_hear_nothing(
    make: Any, asks: str, caplog: pytest.LogCaptureFixture
) -> None:
    """No tool is run here, so nobody knows; it was told that no feedback gets there, or the estimate was refused."""

    class Team(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.researcher = nn.ChatCompletion("{topic}", system=nn.Parameter("Find out.", role="researcher"))
            own = nn.Parameter("Answer.", role="boss") if asks == "a prompt of its own" else "Answer."
            self.boss = nn.ChatCompletion("{word}", system=own, tools=[self.research])

        def research(self, topic: str) -> tg.Variable:
            """Ask the researcher."""
            return self.researcher(topic=topic)

        def forward(self, word: str) -> tg.Variable:
            return self.boss(word=word)

    program = Team()
    found = estimate(tg.Trainer(max_steps=2), program, nn.ExactMatch(), make(program.parameters()), ROWS, ROWS)
    assert found.assumed.startswith("no answer calls a tool that is run")
    (said,) = [record.getMessage() for record in caplog.records]
    assert "researcher.system" in said or "requires grad" in said
    assert said.endswith(
        "an estimate puts '?' in the place of each answer, so no tool is called, and code that goes by "
        "an answer goes by that one; what is asked in other cases is not seen here"
    )


@pytest.mark.parametrize("make", [optim.TGD, optim.PatchSearch])
def test_of_a_program_that_goes_over_a_list_in_an_answer_it_takes_one_entry_and_says_so(make: Any) -> None:
    """As over the steps of a plan: of none nothing more would be asked, and there would be nothing to go back from."""

    class Plans(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.plan = nn.ChatCompletion("{word}", system=nn.Parameter("Plan.", role="planner"), response_format=Plan)
            self.act = nn.ChatCompletion("{step}", system=nn.Parameter("Act.", role="actor"))

        def forward(self, word: str) -> tg.Variable:
            steps = self.plan(word=word)["steps"]
            return ops.join([self.act(step=steps[n]) for n in range(len(json.loads(steps.data)))], " ")

    program = Plans()
    found = estimate(tg.Trainer(max_steps=2), program, nn.ExactMatch(), make(program.parameters()), ROWS, ROWS)
    assert found.calls["forward"].low % 2 == 0
    assert "a list in an answer of the program has one entry" in found.assumed


class Plan(BaseModel):
    steps: list[str]


def test_a_loader_that_leaves_out_examples_is_cheaper() -> None:
    """What it never gives is not trained on, and what it gives twice is."""
    program, loss, optimizer = parts()
    trainer = tg.Trainer(max_epochs=1, patience=None)

    def of(**settings: Any) -> Any:
        return estimate(trainer, program, loss, optimizer, data.DataLoader(ROWS, **settings), ROWS[:2])

    whole, dropped, twice = of(batch_size=15), of(batch_size=15, drop_last=True), of(batch_size=15, sampler=[0] * 30)
    assert (whole.steps, dropped.steps, twice.steps) == (2, 1, 2)
    assert dropped.calls["forward"].high < whole.calls["forward"].high < twice.calls["forward"].high


def test_nobody_is_asked_and_nothing_changes() -> None:
    """An estimate is free, and a run after it is the run it would have been."""
    program, loss, optimizer = parts()
    model = FunctionModel(lambda request: "yes")
    before = optimizer.state_dict()
    with tg.use_models(forward=model):
        estimate(tg.Trainer(), program, loss, optimizer, ROWS, ROWS)
    assert model.requests == []
    assert program.state_dict()["system"]["data"] == "Say yes."
    assert optimizer.state_dict() == before


def test_a_price_that_is_not_known_is_not_a_zero() -> None:
    """Unknown stays unknown."""
    program, loss, optimizer = parts()
    models = {"forward": llm.resolve("nobody-knows-it", base_url="http://127.0.0.1:9/v1")}
    assert estimate(tg.Trainer(), program, loss, optimizer, ROWS, ROWS, models=models).dollars is None


def test_a_service_tier_costs_what_it_does_there() -> None:
    """OpenAI's flex processing costs half; a limit in dollars counts by it, too."""
    program, loss, optimizer = parts()

    def least(**settings: Any) -> float:
        models = {"forward": llm.resolve("openai/gpt-5-mini", api_key="x", **settings)}
        found = estimate(tg.Trainer(), program, loss, optimizer, ROWS, ROWS, models=models).dollars
        assert found is not None
        return found.low

    assert least(extra={"service_tier": "flex"}) == pytest.approx(least() / 2)


def test_a_judge_is_counted_with_a_score_of_its_scale() -> None:
    """The rehearsal keeps to the judge's scale, and its calls are a purpose of their own."""
    program, loss, optimizer = parts(nn.Judge("Is it polite?", scale=(1, 5)))
    found = estimate(tg.Trainer(), program, loss, optimizer, ROWS, ROWS, lowest_score=1)
    assert found.calls["judge"] == found.calls["forward"]


def test_the_steps_are_those_of_the_trainer() -> None:
    """Epochs, minibatches and max_steps count as in fit."""
    program, loss, optimizer = parts()
    trainer = tg.Trainer(3, batch_size=8)
    assert estimate(trainer, program, loss, optimizer, ROWS, ROWS).steps == 9
    assert estimate(tg.Trainer(3, batch_size=8, max_steps=2), program, loss, optimizer, ROWS, ROWS).steps == 2


def test_a_run_that_may_stop_early_may_cost_little() -> None:
    """The least is that of a run whose seed prompt has full marks, patience or not."""
    program, loss, optimizer = parts()
    found = estimate(tg.Trainer(3, batch_size=8, patience=2), program, loss, optimizer, ROWS, ROWS)
    assert found.calls["forward"].low == 20
    # Each step of twelve edits, without each of them, and with each alone, twice; what is left is checked.
    looked = 2 * (16 + 12 * (16 + 18) + 20) + 20
    assert found.calls["forward"].high == 60 + 20 + 9 * (20 + looked) + 8  # eight are run twice to measure the noise


def test_candidates_are_counted_with_what_they_are_chosen_by() -> None:
    """Each of them is run on a few training examples, at each step."""
    program, loss, _ = parts()
    one, eight = (
        estimate(tg.Trainer(3, batch_size=8), program, loss, optimizer, ROWS, ROWS).calls["forward"]
        for optimizer in (optim.TGD(program.parameters(), candidates=count) for count in (1, 8))
    )
    assert (eight.low, eight.high) == (one.low, one.high + 9 * 8 * len(ROWS))


@pytest.mark.parametrize("most", [2, 8, 30])
def test_what_merges_feedback_is_counted_however_much_of_it_there_is(most: int) -> None:
    """Whole minibatches may have more of it than the few examples that are put through; the optimizer is as before."""
    program, loss, plain = parts()
    transforms = [dedupe(), summarise(most)]
    merging = optim.TGD(program.parameters(), transforms=transforms, momentum=2)
    before = merging.state_dict()
    one, more = (
        estimate(tg.Trainer(3, batch_size=10), program, loss, optimizer, ROWS, ROWS) for optimizer in (plain, merging)
    )
    assert (one.calls["optimizer"].high, more.calls["optimizer"].high) == (2 * 6, 2 * 6 + 2 * 6)
    assert one.calls["optimizer"].low == more.calls["optimizer"].low
    assert more.input_tokens["optimizer"].high > one.input_tokens["optimizer"].high
    assert merging.state_dict() == before


class Debate(nn.Module):
    """Merges what several calls say, and asks once more."""

    def __init__(self, said: list[str]) -> None:
        super().__init__()
        self.chat = nn.ChatCompletion("{word}", system=nn.Parameter("Say yes.", role="system prompt"))
        self.said = said

    def forward(self, word: str) -> tg.Variable:
        (merged,) = ops.reduce(self.said, max_items=1, purpose="forward")
        return self.chat(word=f"{word}: {merged.data}")


@pytest.mark.parametrize("said", [["too long", "too rude", "no date"], ["too\nlong", "no date", 'no "yes" in it']])
def test_a_program_that_merges_what_was_said_is_estimated(said: list[str]) -> None:
    """However short the pieces are: a request quotes these in their line. It ended with an error."""
    program = Debate(said)
    found = estimate(tg.Trainer(1), program, nn.ExactMatch(), optim.TGD(program.parameters()), ROWS, ROWS)
    assert found.calls["forward"].low == 2 * len(ROWS)


def test_a_last_minibatch_that_is_smaller_counts_with_what_it_has() -> None:
    """Twenty examples are twenty, in whatever minibatches."""
    program, loss, optimizer = parts()
    found = estimate(tg.Trainer(2, batch_size=8), program, loss, optimizer, ROWS, ROWS)
    assert found.calls["backward"].high == 40


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({"max_epochs": 2}, {}),
        ({"max_epochs": 1, "batch_size": 8}, {"momentum": 3}),
        ({"max_epochs": 1, "batch_size": 10, "feedback_batch_size": 4, "max_steps": 3}, {"max_edits": 1}),
        ({"max_epochs": 1, "batch_size": 16, "patience": 2}, {"mode": "rewrite", "momentum": 2}),
        ({"max_epochs": 4, "feedback_batch_size": 2}, {"momentum": 2}),
        ({"max_epochs": 1}, {"max_edits": 1, "candidates": 24}),
        ({"max_epochs": 1}, {"use_feedback": False}),
        ({"max_epochs": 2, "batch_size": 12}, {"transforms": [summarise(1)]}),
    ],
)
def test_what_a_real_run_uses_lies_in_the_range(settings: Any, options: Any) -> None:
    """The range is one that a run of the example keeps to: calls, input and output, by purpose, and in dollars."""
    sizes = {"train": 32, "val": 24, "test": 28}  # about a quarter of what there is
    sets = [[*data.load(TICKETS / f"{name}.jsonl")][:size] for name, size in sizes.items()]
    system = nn.Parameter("Sort into billing, shipping, returns, account, technical or trust.", role="system prompt")
    program = nn.ChatCompletion("{ticket}", system=system)
    optimizer = optim.TGD(program.parameters(), **options)
    trainer = tg.Trainer(target="queue", seed=3, **settings)
    model = Costly(seed=3)
    llm.set_price("costly", 1.0, 4.0)
    try:
        found = estimate(trainer, program, nn.ExactMatch(), optimizer, *sets, models={"forward": model})
        with tg.use_models(forward=model):
            result = trainer.fit(program, nn.ExactMatch(), optimizer, *sets)
    finally:
        llm.set_price("costly", None)
    for purpose, used in result.usage.items():
        assert found.calls[purpose].low <= used.calls <= found.calls[purpose].high
        assert found.input_tokens[purpose].low <= used.input_tokens <= found.input_tokens[purpose].high
        assert found.output_tokens[purpose].low <= used.output_tokens <= found.output_tokens[purpose].high
    assert found.dollars is not None
    paid = sum(used.dollars or 0 for used in result.usage.values())
    assert 0 < found.dollars.low <= paid <= found.dollars.high


class Costly(TicketsModel):
    """The embedded model at a price."""

    name = "costly"
    free = False


@pytest.mark.parametrize("make", [optim.TGD, optim.PatchSearch])
def test_a_program_with_structured_output_is_estimated_whatever_its_form(make: Any) -> None:
    """Nobody is asked, so no answer is refused: not for a pattern, nor for a rule that no schema tells of."""

    class Sorted(BaseModel):
        queue: Literal["billing", "shipping"]
        code: str = Field(pattern="^[A-Z]{3}$")
        note: str | None = None
        places: list[int] = Field(min_length=1)

        @field_validator("places")
        @classmethod
        def _in_order(cls, given: list[int]) -> list[int]:
            raise ValueError("never right")

    system = nn.Parameter("Sort.", role="system prompt")
    program = nn.ChatCompletion("{word}", system=system, response_format=Sorted)
    found = estimate(tg.Trainer(max_epochs=1), program, nn.ExactMatch(), make(program.parameters()), ROWS, ROWS)
    assert found.calls["forward"].low > 0


def task_of(**settings: Any) -> tuple[Any, Any]:
    """A simulated task, and what makes its program anew."""
    task = simulated_task(**{"rules": 4, "seed": 3, "train": 60, "val": 60, "test": 60, **settings})
    return task, task.program


def test_a_run_that_is_at_its_best_early_on_asks_the_optimizer_less_than_every_minibatch() -> None:
    """Nothing is wrong in most of them, so the least is no share of the steps."""
    task, program = task_of(noise=0.0)
    trainer = tg.Trainer(max_epochs=10, batch_size=20)
    one, other = program(), program()
    found = estimate(trainer, one, task.loss, optim.TGD(one.parameters(), max_edits=4), task.train, task.val, task.test)
    with tg.use_models(forward=task.model):
        result = trainer.fit(
            other, task.loss, optim.TGD(other.parameters(), max_edits=4), task.train, task.val, task.test
        )
    assert found.steps == 30
    assert found.calls["optimizer"].low <= result.usage["optimizer"].calls < 15


@pytest.mark.parametrize(
    ("settings", "options", "edits"),
    [
        *[({}, {}, edits) for edits in (4, 12)],
        ({"parameters": 2, "rules": 8}, {}, 12),
        ({}, {"controls": True}, 4),
        ({"train": 20, "val": 15, "test": 15}, {}, 12),
        ({}, {"batch_size": 8, "patience": 3}, 4),
        ({"seed": 8, "rules": 8}, {"feedback_batch_size": 4}, 12),
    ],
)
def test_what_is_usual_of_steps_is_of_the_right_size(settings: Any, options: Any, edits: int) -> None:
    """The most is many times what is used, which helps nobody who wants to know what it will cost."""
    task, program = task_of(**settings)
    trainer = tg.Trainer(max_epochs=3, **options)
    one, other = program(), program()
    first, second = (optim.TGD(each.parameters(), max_edits=edits) for each in (one, other))
    found = estimate(trainer, one, task.loss, first, task.train, task.val, task.test)
    with tg.use_models(forward=task.model):
        result = trainer.fit(other, task.loss, second, task.train, task.val, task.test)
    for part in (found.calls, found.input_tokens, found.output_tokens):
        for each in part.values():
            assert each.usual is not None
            assert each.low <= each.usual <= each.high
    usual = sum(each.usual or 0 for each in found.calls.values())
    assert usual / 2 < result.total.calls < usual * 2
    usual = sum(each.usual or 0 for each in found.input_tokens.values())
    assert usual / 3 < result.total.input_tokens < usual * 2


def test_a_case_is_taken_to_be_as_long_as_an_optimizer_is_shown_it() -> None:
    """Of a short answer, which is usual; with the tags that stood around it once it would be half more."""
    message, rules = "My lamp is dark.", nn.Parameter("Sort it.")
    chat = nn.ChatCompletion("{said}", system=rules, model=ScriptedModel(["billing"]))
    with ops.critic(None):
        nn.ExactMatch()(chat(said=message), "lamps").backward()
    (case,) = rules.grad
    shown = count(f"[1]\n\n{fence(case.data, 'feedback')}\n")
    assert shown * 0.8 < a_case(llm.Usage(calls=2, input_tokens=2 * (count(message) + 9)), texts=9) < shown * 1.2


def test_an_answer_in_a_chain_may_be_a_word_or_as_long_as_the_example() -> None:
    """Of neither is known which."""
    task, program = task_of(parameters=2, train=8, val=8, test=8)
    target = "a target of a good many words, which only the last answer has to match"
    rows = [{**row, "target": target} for row in task.train]
    made = program()
    for optimizer in (optim.TGD(made.parameters()), optim.PatchSearch(made.parameters())):
        found = estimate(tg.Trainer(), made, task.loss, optimizer, rows, rows)
        assert found.output_tokens["forward"].low <= 2 * found.calls["forward"].low
        assert found.output_tokens["forward"].high >= 13 * found.calls["forward"].high


def test_parts_of_the_same_sizes_are_estimated_once_and_added_up() -> None:
    """What is not known of one is not known of the sum."""
    of = Range(1.0, 3.0, 2.0)
    asked: list[str] = []

    def one(part: Part) -> Estimate:
        asked.append(part.name)
        dollars = None if part.test is None else of
        return Estimate({"forward": of}, {"forward": of}, {"forward": of}, dollars, 4, "counted", of, "assumed")

    folds = [Part("a", ROWS, ROWS, ROWS[:1]), Part("b", ROWS, ROWS, ROWS[1:2])]
    found = estimate_parts([[fold] for fold in folds], one)
    assert asked == ["a"]
    twice = Range(2.0, 6.0, 4.0)
    assert (found.calls, found.dollars, found.waits, found.steps) == ({"forward": twice}, twice, twice, 8)
    assert (found.counted, found.assumed) == ("counted", "assumed")
    assert estimate_parts([[*folds, Part("final", ROWS, ROWS, None)]], one).dollars is None


def test_runs_that_go_on_at_once_wait_as_long_as_the_one_that_waits_longest() -> None:
    """Their answers are waited for side by side; what they cost is added up all the same."""
    sizes = {"a": Range(1.0, 3.0, 2.0), "b": Range(0.0, 9.0, 4.0), "final": Range(2.0, 2.0, 2.0)}

    def one(part: Part) -> Estimate:
        size = sizes[part.name]
        return Estimate({"forward": size}, {}, {}, None, 1, "counted", size)

    parts = [Part("a", ROWS, ROWS, ROWS[:1]), Part("b", ROWS, ROWS, ROWS[:2]), Part("final", ROWS, ROWS, None)]
    found = estimate_parts([parts], one)
    assert (found.calls["forward"], found.waits) == (Range(3.0, 14.0, 8.0), Range(2.0, 9.0, 4.0))
    assert estimate_parts([parts[:2], parts[2:]], one).waits == Range(3.0, 11.0, 6.0)
