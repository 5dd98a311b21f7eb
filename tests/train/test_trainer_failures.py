from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn
from textgrad_engine.data import DataLoader, Sampler
from textgrad_engine.errors import (
    AuthenticationFailed,
    AutogradError,
    ContentFiltered,
    DataError,
    ModelError,
    TruncatedResponse,
)
from textgrad_engine.llm import Request
from textgrad_engine.llm.budget import DEFAULT_MAX_TOKENS
from textgrad_engine.llm.stop import stops_around
from textgrad_engine.optim import TGD, ParetoSearch, PatchSearch
from textgrad_engine.train import Trainer
from textgrad_engine.train.estimate import estimate
from textgrad_engine.train.events import (
    Callback,
    CallEnded,
    Event,
    PhaseAdvanced,
    PhaseStarted,
    RunEnded,
    StepEnded,
)
from textgrad_engine.train.interrupt import finishing_on_interrupt, stopping_on_interrupt

from ..pressing import press_ctrl_c

SEED = "Repeat the word."


# what is refused before anything is paid


@pytest.mark.parametrize(
    "setting", ["max_epochs", "batch_size", "max_steps", "patience", "feedback_batch_size", "concurrency"]
)
def test_numbers_must_be_positive(setting: str) -> None:
    """Zero of anything is a mistake that is named."""
    with pytest.raises(ValueError, match=f"{setting} must be at least 1, got 0"):
        Trainer(**{setting: 0})


@pytest.mark.parametrize("where", ["train", "val", "test"])
@pytest.mark.parametrize("flaw", ["empty", "no field", "no target"])
def test_data_errors_come_before_any_call(world: Any, rows: Any, where: str, flaw: str) -> None:
    """A bad last row of the test set is found before the first call, not after the last step."""
    here = world("SHOUT")
    good = rows("ant", "bee")
    bad = {"empty": [], "no field": [*good, {"target": "X"}], "no target": [*good, {"word": "cat"}]}[flaw]
    sets = {"train": good, "val": good, "test": good, where: bad}
    listener = world.listener()
    with pytest.raises(DataError):
        here.fit(**sets, callbacks=[listener])
    assert (here.model.requests, listener.events) == ([], [])


def test_examples_without_a_cluster_are_refused_before_any_call(world: Any, rows: Any) -> None:
    """And a set that is one cluster, of which nothing can be said."""
    here = world("SHOUT")
    val = [{**row, "doc": "d1"} for row in rows("bee", "cat")]
    with pytest.raises(DataError, match="all examples of the val set have the same 'doc'"):
        here.fit(rows("ant"), val, clusters="doc")
    val[1]["doc"] = "d2"
    with pytest.raises(DataError, match="example 'dog' has no field 'doc', which says which examples belong together"):
        here.fit(rows("ant"), val, rows("dog"), clusters="doc")
    val[1]["doc"] = float("nan")  # of pandas, where a field is empty: all of these would be one cluster
    with pytest.raises(
        DataError, match=r"example 'cat' has nan in the field 'doc', which says which .* as tables have"
    ):
        here.fit(rows("ant"), val, clusters="doc")
    assert here.model.requests == []


def test_a_program_with_nothing_to_train_is_refused(world: Any, rows: Any) -> None:
    """A whole run of forward calls could only end where it began."""
    here = world()
    here.program.requires_grad_(False)
    with pytest.raises(ValueError, match="nothing to train"):
        here.fit(rows("ant"), rows("bee"))
    assert here.model.requests == []


@pytest.mark.parametrize("frontier", ["objective", "hybrid", "cartesian"])
def test_a_frontier_of_metrics_is_refused_where_there_is_one(
    world: Any, rows: Any, tmp_path: Path, frontier: Any
) -> None:
    """Before a call, and before there is a run folder; an estimate of such a run is refused, too."""
    here = world("SHOUT")
    here.optimizer = ParetoSearch(here.program.parameters(), frontier=frontier)
    with pytest.raises(ValueError, match=r"give an nn\.Weighted of several as the loss"):
        here.fit(rows("ant"), rows("bee"), run_dir=tmp_path / "run")
    with pytest.raises(ValueError, match=r"give an nn\.Weighted of several as the loss"):
        estimate(tg.Trainer(), here.program, nn.ExactMatch(), here.optimizer, rows("ant"), rows("bee"))
    assert here.model.requests == []
    assert not (tmp_path / "run").exists()


class Silent:
    """A callback."""

    def on_event(self, event: Event) -> None: ...


class Waiting:
    """No callback: what it does would never be done."""

    async def on_event(self, event: Event) -> None: ...


class Misspelt(Callback):
    """No callback: what it is told of, nobody hears."""

    def on_events(self, event: Event) -> None: ...


class OnEnd(Callback):
    """A callback that minds the end only."""

    ends = 0

    def on_end(self) -> None:
        self.ends += 1


class Awaited(nn.Module):
    """A program, and a loss, that would have to be awaited."""

    async def forward(self, word: Any, wanted: Any = None) -> Any:
        return word


class Misnamed(nn.Module):
    """A program whose forward is called otherwise."""

    def Forward(self, word: str) -> str:
        return word


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"program": Awaited()}, "^a program returns a Variable, and this one a coroutine: write it as a plain def"),
        ({"program": Misnamed()}, r"^a value of type Misnamed has no `forward`; write def forward\(self, ticket\)"),
        ({"loss": Awaited()}, "^a loss gives a Variable, and this one a coroutine, which nobody awaits: write `def`"),
    ],
)
def test_a_module_whose_forward_cannot_be_used_is_told_how_to_write_it(
    world: Any, rows: Any, part: dict[str, Any], message: str
) -> None:
    """By a run as by an evaluation; a program before anything is asked. Nothing warns of what nobody awaited."""
    here = world()
    given = {"program": here.program, "loss": nn.ExactMatch()} | part
    given["program"].system = nn.Parameter("Repeat.", role="system prompt")
    with tg.use_models(forward=here.model):
        with pytest.raises(TypeError, match=message):
            Trainer().fit(**given, optimizer=TGD([given["program"].system]), train=rows("ant"), val=rows("bee"))
        with pytest.raises(TypeError, match=message):
            tg.evaluate(given["program"], rows("ant"), given["loss"])
    assert "loss" in part or here.model.requests == []


@pytest.mark.parametrize("place", ["val", "test"])
def test_a_loader_is_for_training_only(world: Any, rows: Any, place: str) -> None:
    """What is selected and tested on is no matter of minibatches."""
    here = world()
    loader = DataLoader(rows("dog", "eel"))
    sets = {"val": rows("bee"), "test": rows("cat")} | {place: loader}
    with pytest.raises(TypeError, match=f"fit: {place} should be .*, and is a DataLoader"):
        here.fit(loader, **sets)
    assert here.model.requests == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["dog"], "Own gave 'dog', and a position is a whole number"),
        ([[0, 1]], r"Own gave \[0, 1\], and a position is a whole number"),
        ([2], "the sampler gave position 2; the dataset has 2 examples"),
    ],
)
def test_what_a_sampler_gives_is_looked_at_before_anything_is_paid_for(
    world: Any, rows: Any, given: Any, message: str
) -> None:
    """The seed texts had been validated by then."""

    class Own(Sampler):
        def __iter__(self) -> Any:
            return iter(given)

        def __len__(self) -> int:
            return len(given)

    here = world()
    with pytest.raises((TypeError, IndexError), match=message):
        here.fit(DataLoader(rows("dog", "eel"), sampler=Own()), rows("bee"))
    assert here.model.requests == []


def test_a_loader_that_is_used_again_goes_on_with_the_epoch_after_it(world: Any, rows: Any) -> None:
    """Also after a run that ended before its first step, which has drawn an order and taken nothing of it."""
    loader = DataLoader(rows("dog", "eel", "fox", "gnu"), batch_size=2, shuffle=True, seed=1)
    fresh = DataLoader(rows("dog", "eel", "fox", "gnu"), batch_size=2, shuffle=True, seed=1)
    here = world()
    here.program.system.data = "SHOUT"
    result = here.fit(loader, rows("bee", "ant"))
    assert result.steps == ()
    assert [[*loader], [*loader]] == [[*fresh], [*fresh]]


def test_a_loader_without_minibatches_is_refused(world: Any, rows: Any) -> None:
    """A run could only end where it began."""
    here = world()
    with pytest.raises(DataError, match="no minibatch, of 2 examples with batch_size=3 and drop_last=True"):
        here.fit(DataLoader(rows("ant", "bee"), batch_size=3, drop_last=True), rows("cat"))
    assert here.model.requests == []


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("program", lambda word: word, "program should be an nn.Module.*; got the function <lambda>"),
        ("program", nn.ChatCompletion, "program should be .*; got the class ChatCompletion"),
        ("loss", None, r"loss should be .*nn\.ExactMatch\(\); got None"),
        ("loss", nn.ExactMatch, "loss should be .*; got the class ExactMatch"),
        ("optimizer", [], "optimizer should be one, as .*; got the list"),
        ("optimizer", TGD, "optimizer should be one, as .*; got the class TGD"),
    ],
)
def test_what_is_no_part_of_a_run_is_refused(world: Any, rows: Any, place: str, value: Any, message: str) -> None:
    """With the name of the argument, and what it should be."""
    here = world()
    given = {"program": here.program, "loss": nn.ExactMatch(), "optimizer": here.optimizer} | {place: value}
    with pytest.raises(TypeError, match=f"fit: {message}"):
        Trainer().fit(**given, train=rows("ant"), val=rows("bee"))


@pytest.mark.parametrize(
    ("callbacks", "message"),
    [
        ([print], r"callbacks\[0\] is the function print.*on_event\(event\); write a class"),
        ([Silent(), Silent], r"callbacks\[1\] is the class Silent.* an instance"),
        ([Waiting()], r"callbacks\[0\] \(Waiting\) has an `async def on_event`, .*write `def on_event`"),
        ([Misspelt()], r"callbacks\[0\] \(Misspelt\) would do nothing, .*; write `def on_event\(self, event\)`"),
        (print, r"callbacks should be a list of them, got the function .*; write callbacks=\[\.\.\.\]"),
    ],
)
def test_what_is_no_callback_is_refused(callbacks: Any, message: str) -> None:
    """When the Trainer is made, and not in the middle of a run's first event."""
    with pytest.raises(TypeError, match=message):
        Trainer(callbacks=callbacks)


def test_a_callback_may_mind_the_end_only(world: Any, rows: Any) -> None:
    """What it is told of beside that, the class that it is of hears."""
    here, callback = world(), OnEnd()
    here.fit(rows("ant"), rows("bee"), callbacks=[callback])
    assert callback.ends == 1


def test_an_optimizer_of_frozen_texts_is_refused(world: Any, rows: Any) -> None:
    """That other texts of the program could be trained helps nobody."""
    here = world()
    here.program.other = nn.Parameter("not trained", role="other prompt")
    here.program.system.requires_grad_(False)
    with pytest.raises(ValueError, match="the optimizer has no parameter that requires grad"):
        here.fit(rows("ant"), rows("bee"))
    assert here.model.requests == []


def test_an_optimizer_of_another_programs_texts_is_refused(world: Any, rows: Any) -> None:
    """Its changes would be neither validated nor taken back."""
    here = world()
    here.optimizer = TGD(world().program.parameters())
    with pytest.raises(ValueError, match="'system prompt', which is no parameter of the program"):
        here.fit(rows("ant"), rows("bee"))
    assert here.model.requests == []


@pytest.mark.parametrize("how", ["unfrozen", "added"])
def test_a_text_that_is_unfrozen_amid_a_run_is_refused_before_a_step_changes_it(
    world: Any, rows: Any, how: str
) -> None:
    """No race would be about it, and no record: the run's scores would be those of a text that it does not tell."""
    here = world("HALF")
    here.program = nn.Sequential(
        nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="first")), here.program
    )
    first, second = here.program.parameters()
    first.requires_grad_(False)
    here.optimizer = TGD([first, second] if how == "unfrozen" else [second])

    def then(event: Event) -> None:
        if isinstance(event, StepEnded) and event.step == 1:
            first.requires_grad_(True)
            if how == "added":
                here.optimizer.add_param_group({"params": [first]})

    with pytest.raises(ValueError, match=r"trains Parameter 'first' now, .* one fit after the other, and unfreeze it"):
        here.fit(rows("ant", "bee", "cat", "dog"), rows("eel", "fox", "gnu"), callbacks=[world.listener(then)])
    assert (first.data, second.data) == ("Repeat.", "Repeat the word.\nHALF")
    assert here.fit(rows("ant", "bee"), rows("eel", "fox")).best.keys() == {"0.system", "1.system"}


@pytest.mark.parametrize("kind", [TGD, PatchSearch])
@pytest.mark.parametrize("data", [["a", "b"], 3])
def test_a_parameter_that_is_no_text_is_refused(world: Any, rows: Any, kind: Any, data: Any) -> None:
    """A run writes texts, also those of the beginning: a batch would be what Python prints of it, from then on."""
    here = world("SHOUT")
    here.program.styles = nn.Parameter(data, role="styles")
    here.optimizer = kind(here.program.parameters())
    with pytest.raises(TypeError, match=r"'styles' holds .*, and a Trainer trains texts; leave it out"):
        here.fit(rows("ant"), rows("bee"))
    assert (here.model.requests, here.program.styles.data) == ([], data)
    here.program.styles.requires_grad_(False)
    here.optimizer = kind([here.program.system])
    assert here.fit(rows("ant"), rows("bee")).status == "finished"
    assert here.program.styles.data == data


# what goes wrong on the way


def failing_on(*bad: str) -> Any:
    def before(request: Request) -> None:
        if request.purpose == "forward" and request.messages[-1].text in bad:
            raise ContentFiltered(f"no answer to {request.messages[-1].text}")

    return before


def test_unanswered_examples_are_counted_apart_and_training_goes_on(world: Any, rows: Any) -> None:
    """The rest of the minibatch still gives its feedback."""
    here = world("SHOUT")
    here.before = failing_on("bee")
    result = here.fit(rows("ant", "bee", "cat"), rows("dog", "eel"), batch_size=3)
    (step,) = result.steps
    assert (step.unanswered, step.feedback, step.train_mean, step.kept) == (1, 2, 0.0, True)
    assert here.asked("backward") == 2


class Reads(nn.Module):
    """A program that waits for its first answer, and does what `then` says with it."""

    def __init__(self, system: nn.Parameter, then: Any) -> None:
        super().__init__()
        self.chat, self.then = nn.ChatCompletion("{word}", system=system), then

    def forward(self, word: str) -> Any:
        """The answer, unless it is none."""
        answer = self.chat(word=word)
        return self.then(answer) if answer.data else answer


@pytest.mark.parametrize("make", [TGD, PatchSearch])
def test_an_answer_that_the_program_waits_for_costs_its_example_alone(make: Any, world: Any, rows: Any) -> None:
    """As in a program that does not wait: in minibatches, in races and in validation."""
    here = world("SHOUT")
    here.program = Reads(here.program.system, lambda answer: answer)
    here.optimizer = make(here.program.parameters())
    here.before = failing_on("bee", "fox")
    result = here.fit(rows("ant", "bee", "cat"), rows("dog", "eel", "fox"), batch_size=3)
    assert result.steps[0].unanswered == 1
    assert (result.best_val.unanswered, result.best_val.scores[:2]) == (1, (1.0, 1.0))
    assert "no answer to fox" in result.best_val.failures["fox"]


def test_a_step_says_which_example_had_no_answer_and_why(world: Any, rows: Any) -> None:
    """Who looks for it need not search a log of requests."""
    here = world("SHOUT")
    here.before = failing_on("bee")
    (step,) = here.fit(rows("ant", "bee", "cat"), rows("dog", "eel"), batch_size=3).steps
    assert step.lost == ("bee: ContentFiltered: no answer to bee",)


@pytest.mark.parametrize("make", [TGD, PatchSearch])
@pytest.mark.parametrize("cut", ["data", "no_grad"])
def test_a_program_whose_answers_lead_nowhere_is_refused(make: Any, cut: str, world: Any, rows: Any) -> None:
    """No feedback would ever come: it ends when it has seen all examples, not after a run that learned nothing."""
    here = world("SHOUT")
    if cut == "data":
        here.program = Reads(here.program.system, lambda answer: answer.data)
    here.optimizer = make(here.program.parameters())
    with tg.no_grad() if cut == "no_grad" else contextlib.nullcontext(), pytest.raises(AutogradError) as caught:
        here.fit(rows("ant", "bee", "cat"), rows("dog", "eel"), batch_size=3)
    assert "none of the losses of the 3 training examples requires grad" in str(caught.value)
    assert here.asked("optimizer") == 0


def test_a_program_some_of_whose_answers_lead_nowhere_is_trained(world: Any, rows: Any) -> None:
    """What it says without a model is nobody's fault; of later minibatches, too, where nothing else was asked."""
    here = world("SHOUT")
    here.program = Reads(here.program.system, lambda answer: answer if answer.data == "ant" else answer.data)
    here.optimizer = TGD(here.program.parameters())
    result = here.fit(DataLoader(rows("ant", "bee"), batch_size=1), rows("cat"), max_epochs=1)
    assert [step.feedback for step in result.steps] == [1, 0]


@pytest.mark.parametrize("part", ["program", "metric"])
def test_an_error_in_ones_own_code_says_on_which_example(part: str, world: Any, rows: Any) -> None:
    """Of thousands, the one to look at; and what a metric was asked about."""
    here = world("SHOUT")

    def broken(*said: Any) -> Any:
        if str(said[0]) == "bee":
            raise KeyError("label")
        return said[0] if part == "program" else 0.0

    if part == "program":
        here.program = Reads(here.program.system, broken)
        here.optimizer = TGD(here.program.parameters())
    loss = nn.Metric(broken, "quality") if part == "metric" else nn.ExactMatch()
    with tg.use_models(forward=here.model), pytest.raises(KeyError) as caught:
        Trainer(batch_size=2).fit(here.program, loss, here.optimizer, rows("ant", "bee"), rows("dog"))
    notes = "\n".join(caught.value.__notes__)
    assert "on example 'bee'" in notes
    assert part == "program" or "in the metric 'quality'" in notes
    assert part == "program" or "the prediction 'bee' and the target 'BEE'" in notes


def test_a_minibatch_without_any_answer_changes_nothing(world: Any, rows: Any) -> None:
    """No feedback, no call of the optimizer, and the next step goes on."""
    here = world("SHOUT")
    here.before = failing_on("ant", "bee")
    result = here.fit(DataLoader(rows("ant", "bee", "cat", "dog"), batch_size=2), rows("eel"))
    assert [(step.unanswered, step.train_mean, step.feedback) for step in result.steps] == [(2, None, 0), (0, 0.0, 2)]
    assert here.asked("optimizer") == 1


def losing_all_with(text: str) -> Any:
    def before(request: Request) -> None:
        if request.purpose == "forward" and text in request.messages[0].text:
            raise ContentFiltered("withheld")

    return before


@pytest.mark.parametrize("make", [TGD, PatchSearch])
def test_texts_that_lose_answers_are_refused_and_the_run_goes_on(make: Any, world: Any, rows: Any) -> None:
    """What is left of the answers is all right, so without them they would win; and no service is down."""
    here = world(*["SHOUT"] * 4)
    here.optimizer = make(here.program.parameters())
    lost = ("dog", "eel", "fox", "gnu", "hen")

    def before(request: Request) -> None:
        if request.purpose == "forward" and "SHOUT" in request.messages[0].text and request.messages[1].text in lost:
            raise TruncatedResponse("ran into its length limit")

    here.before = before
    right_before = [{**row, "target": row["word"]} for row in rows(*lost)]
    others = rows("ant", "bee", "cat", "ibis", "jay", "kiwi", "lynx")
    result = here.fit(rows("ant", "bee", "cat"), [*right_before, *others], max_epochs=4)
    assert result.best["system"] == SEED
    assert result.steps[0].kept is False
    assert "had one before; that is more than chance" in " ".join([*result.steps[0].problems, result.steps[0].why])


@pytest.mark.parametrize("make", [TGD, PatchSearch])
def test_texts_that_lose_most_validation_answers_do_not_cost_the_run(make: Any, world: Any, rows: Any) -> None:
    """A race saw too few lost answers to tell them from chance; `resume` would ask for the same answers in vain."""
    here = world("SHOUT")
    here.optimizer = make(here.program.parameters())
    lost = [f"lost{n}" for n in range(8)]
    lost_with = [*lost, *(f"long{n}" for n in range(4))]

    def before(request: Request) -> None:
        if request.purpose == "forward" and request.messages[1].text in (
            lost_with if "SHOUT" in request.messages[0].text else lost
        ):
            raise TruncatedResponse("ran into its length limit")

    here.before = before
    result = here.fit(rows("ant", "bee"), rows(*lost_with, *(f"w{n}" for n in range(8))), rows("cat"), max_steps=1)
    assert (result.status, result.best["system"], result.best_val) == ("finished", SEED, result.seed_val)
    assert result.best_test is not None


@pytest.mark.parametrize("lost_with", ["SHOUT", SEED])
def test_test_answers_that_are_mostly_lost_do_not_cost_the_result(lost_with: str, world: Any, rows: Any) -> None:
    """All was paid for by then: the run says what it found, why there is no test score, and that it is at its end."""
    here = world("SHOUT")

    def before(request: Request) -> None:
        system, user = (message.text for message in request.messages[:2])
        if request.purpose == "forward" and user in ("cow", "dog") and ("SHOUT" in system) is (lost_with == "SHOUT"):
            raise TruncatedResponse("ran into its length limit")

    here.before = before
    val = rows(*(f"w{n}" for n in range(8)))
    result = here.fit(rows("ant", "bee"), val, rows("cow", "dog", "eel"), max_steps=1)
    assert (result.status, result.best["system"]) == ("finished", f"{SEED}\nSHOUT")
    assert (result.seed_test, result.best_test, result.compared_on, result.kept_short) == (None, None, "val", False)
    assert "the test set has no score, as most answers to it are lost: ran into its length limit" in str(result)


def test_a_test_set_that_both_prompts_answer_in_other_places_does_not_cost_the_result(world: Any, rows: Any) -> None:
    """Each lost half of its answers, and no example has two of them: there is nothing to compare, which is said."""
    here = world("SHOUT")

    def before(request: Request) -> None:
        system, user = (message.text for message in request.messages[:2])
        if request.purpose == "forward" and user == ("cow" if "SHOUT" in system else "dog"):
            raise TruncatedResponse("ran into its length limit")

    here.before = before
    val = rows(*(f"w{n}" for n in range(8)))
    result = here.fit(rows("ant", "bee"), val, rows("cow", "dog"), max_steps=1)
    assert (result.status, result.best["system"]) == ("finished", f"{SEED}\nSHOUT")
    assert (result.seed_test, result.best_test, result.compared_on) == (None, None, "val")
    assert "the test set has no score, as none of its examples has an answer with both prompts" in str(result)


def test_more_than_half_unanswered_in_validation_raises(world: Any, rows: Any) -> None:
    """Of the texts that everything is compared with nothing can be said then; the feedback is forgotten."""
    here = world("SHOUT")
    here.before = losing_all_with(SEED)
    with pytest.raises(ContentFiltered):
        here.fit(rows("ant"), rows("bee", "cat"))
    assert len(here.model.requests) == 2
    assert (here.program.system.data, here.program.system.grad) == (SEED, [])


def test_new_texts_that_break_the_program_are_taken_back(world: Any, rows: Any) -> None:
    """The race is given up as soon as most answers are lost; the next step begins with the best texts of before."""
    here = world("BROKEN", "SHOUT")
    here.before = losing_all_with("BROKEN")
    result = here.fit(rows("ant", "bee"), rows("cat", "dog"), batch_size=1)
    first, second = result.steps
    assert (first.kept, first.race, first.val_mean) == (False, None, None)
    assert "2 of 2 examples had no answer with the proposed texts" in first.problems[0]
    assert (second.kept, result.best["system"]) == (True, f"{SEED}\nSHOUT")


def test_three_broken_texts_in_a_row_end_the_run(world: Any, rows: Any) -> None:
    """Rather than trying to the end what cannot be run."""
    here = world("BROKEN", "BROKEN", "BROKEN", "SHOUT")
    here.before = losing_all_with("BROKEN")
    with pytest.raises(ModelError, match=r"3 steps in a row came to nothing, step 3.*the race was given up"):
        here.fit(rows("ant", "bee", "cat", "dog"), rows("eel", "fox"), batch_size=1)
    assert (here.program.system.data, here.program.system.grad) == (SEED, [])


def test_losing_the_hard_examples_to_errors_does_not_win(world: Any, rows: Any) -> None:
    """Old and new are compared on the examples that both have an answer for."""
    here = world("HALF", "worse")

    def before(request: Request) -> None:
        hard = request.messages[-1].text in ("bee", "dog")
        if request.purpose == "forward" and "worse" in request.messages[0].text and hard:
            raise ContentFiltered("withheld")

    here.before = before
    result = here.fit(rows("fox", "hen"), rows("ant", "bee", "cat", "dog"), batch_size=1)
    assert [(step.val_mean, step.kept) for step in result.steps] == [(0.5, True), (0.5, False)]
    assert "worse" not in result.best["system"]


def test_a_wrong_key_ends_it_at_once(world: Any, rows: Any) -> None:
    """Nobody is asked after that, and the program is as it was."""
    here = world("SHOUT")

    def before(request: Request) -> None:
        if request.purpose == "optimizer":
            raise AuthenticationFailed("the key is wrong", status=401)

    here.before = before
    with pytest.raises(AuthenticationFailed):
        here.fit(rows("ant", "bee", "cat"), rows("dog"), rows("eel"), batch_size=1)
    assert here.model.requests[-1].purpose == "optimizer"
    assert (here.asked("optimizer"), here.program.system.data) == (1, SEED)


def test_a_spent_budget_gives_the_result_so_far(world: Any, rows: Any) -> None:
    """Wherever it runs out, there is a result, the limit holds, and the program has the best texts found."""
    sets = rows("ant", "bee", "cat", "dog"), rows("eel", "fox"), rows("gnu")
    needed = world("HALF", None, "SHOUT").fit(*sets).total.calls
    for calls in range(1, needed + 3):
        here, listener = world("HALF", None, "SHOUT"), world.listener()
        with tg.budget(calls=calls) as spent:
            result = here.fit(*sets, callbacks=[listener])
        assert len(here.model.requests) <= calls
        assert spent.spent.calls == result.total.calls == len(here.model.requests)
        assert result.status == ("finished" if calls >= needed + 1 else "budget")  # the test of a second prompt is kept
        assert here.program.system.data == result.best["system"]
        assert here.program.system.grad == []
        assert (result.best_val is None) is (calls < 2)
        assert result.compared_on == (None if calls < 2 else "test" if calls >= 6 else "val")
        assert listener.events[-1] == RunEnded(result.status, result)


def test_a_budget_without_room_for_one_call_is_named_in_the_result(world: Any, rows: Any) -> None:
    """It was not spent, as nothing was asked; one that allowed a call was."""
    with tg.budget(tokens=100):
        result = world("SHOUT").fit(rows("ant"), rows("bee"))
    assert (result.status, result.total.calls) == ("budget", 0)
    assert result.shortage.startswith("the budget of 100 tokens does not allow a single call: the first one may need ")
    assert str(result).startswith(f"budget after 0 steps; {result.shortage}; 0 calls")
    with tg.budget(calls=1):
        assert world("SHOUT").fit(rows("ant"), rows("bee")).shortage == ""


@pytest.mark.parametrize("concurrency", [1, 64])
def test_a_budget_in_tokens_ends_a_run_with_the_result_so_far(world: Any, rows: Any, concurrency: int) -> None:
    """The worst case of a call is far above what it uses: the run ends when the next call could pass the limit."""
    sets = rows("ant", "bee", "cat", "dog"), rows("eel", "fox"), rows("gnu")
    used = world("HALF", None, "SHOUT").fit(*sets).total.total_tokens
    statuses = []
    for tokens in range(DEFAULT_MAX_TOKENS, DEFAULT_MAX_TOKENS + 2 * used + 1000, 400):
        here = world("HALF", None, "SHOUT")
        with tg.budget(tokens=tokens) as b:
            result = here.fit(*sets, concurrency=concurrency)
        assert b.spent.total_tokens == result.total.total_tokens <= tokens
        assert (b.unknown.total_tokens, b.reserved.total_tokens) == (0, 0)
        assert here.program.system.data == result.best["system"]
        assert result.status == ("finished" if result.total.total_tokens == used else "budget")
        statuses.append(result.status)
    assert statuses[0] == "budget"
    assert statuses[-1] == "finished"


def phase_of(event: Event, phase: str, step: int) -> bool:
    return isinstance(event, PhaseStarted) and (event.phase, event.step) == (phase, step)


@pytest.mark.parametrize(
    ("phase", "step", "best"),
    [("validate", 0, ""), ("forward", 1, ""), ("optimize", 1, ""), ("validate", 1, ""), ("forward", 2, "HALF")],
)
def test_an_interrupt_gives_the_result_so_far(world: Any, rows: Any, phase: str, step: int, best: str) -> None:
    """In whatever phase Ctrl-C comes, nothing more is sent and the best texts are kept."""
    here = world("HALF", "SHOUT")
    asked: list[int] = []

    def then(event: Event) -> None:
        if phase_of(event, phase, step):
            signal.raise_signal(signal.SIGINT)
            asked.append(len(here.model.requests))

    result = here.fit(
        rows("bee", "dog"), rows("ant", "cat", "fox"), rows("gnu"), batch_size=1, callbacks=[world.listener(then)]
    )
    assert result.status == "interrupted"
    assert asked == [len(here.model.requests)]
    assert here.program.system.data == result.best["system"] == (f"{SEED}\n{best}" if best else SEED)
    assert result.best_test is None
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("step", [1, 2])
def test_an_afit_whose_wait_is_cancelled_sends_nothing_more(world: Any, rows: Any, step: int) -> None:
    """It is to the run what Ctrl-C is: the wait is over when the result so far was told."""
    here = world("HALF", "SHOUT")
    asked: list[int] = []
    begun, cancelled = threading.Event(), threading.Event()

    def then(event: Event) -> None:
        if phase_of(event, "forward", step):
            begun.set()
            assert cancelled.wait(60)
            asked.append(len(here.model.requests))

    listener = world.listener(then)

    async def main() -> None:
        trainer = Trainer(batch_size=1, callbacks=[listener])
        waiting = asyncio.ensure_future(
            trainer.afit(here.program, nn.ExactMatch(), here.optimizer, rows("bee", "dog"), rows("ant", "cat", "fox"))
        )
        assert await asyncio.to_thread(begun.wait, 60)
        waiting.cancel()
        asyncio.get_running_loop().call_soon(lambda: asyncio.get_running_loop().call_soon(cancelled.set))
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert [event.status for event in listener.of(RunEnded)] == ["interrupted"]
        assert asked == [len(here.model.requests)]
        assert here.program.system.data == (SEED if step == 1 else f"{SEED}\nHALF")

    with tg.use_models(forward=here.model):
        asyncio.run(main())


def test_an_afit_that_is_cancelled_does_not_stop_another_one(world: Any, rows: Any) -> None:
    """Both in one program, under one Ctrl-C; that would stop both."""
    here, other = world("SHOUT"), world("SHOUT")
    begun, cancelled = threading.Event(), threading.Event()

    def then(event: Event) -> None:
        if phase_of(event, "forward", 1):
            begun.set()
            assert cancelled.wait(60)

    async def fit(one: Any, *callbacks: Any) -> Any:
        with tg.use_models(forward=one.model):
            trainer = Trainer(callbacks=callbacks)
            return await trainer.afit(one.program, nn.ExactMatch(), one.optimizer, rows("bee"), rows("ant", "cat"))

    async def main() -> Any:
        with finishing_on_interrupt(), stopping_on_interrupt():
            waiting = asyncio.ensure_future(fit(here, world.listener(then)))
            assert await asyncio.to_thread(begun.wait, 60)
            waiting.cancel()
            result = await fit(other)
            cancelled.set()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            return result

    assert asyncio.run(main()).status == "finished"


def test_answers_in_flight_at_an_interrupt_are_kept_and_counted(world: Any, rows: Any) -> None:
    """What has been sent may finish: it was paid for. What was not sent never is."""
    here = world("SHOUT")

    async def hold() -> None:
        while len(here.model.requests) < 4:  # the validation example and all of the minibatch
            await asyncio.sleep(0)
        press_ctrl_c()
        while not any(stop.is_set for stop in stops_around()):
            await asyncio.sleep(0)

    here.before = lambda request: hold() if request.messages[-1].text == "cat" else None
    listener = world.listener()
    result = here.fit(rows("ant", "bee", "cat"), rows("dog"), batch_size=3, callbacks=[listener])
    assert result.status == "interrupted"
    assert sum(usage.calls for usage in result.usage.values()) == len(here.model.requests)
    answered = [event.record for event in listener.of(CallEnded) if event.record.completion]
    assert {record.request.messages[-1].text for record in answered if record.purpose == "forward"} == {
        "ant", "bee", "cat", "dog",
    }  # fmt: skip


@pytest.mark.parametrize("error", [OSError, SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("kind", [PhaseStarted, PhaseAdvanced, CallEnded, StepEnded])
def test_an_error_of_a_callback_is_raised_from_fit(
    world: Any, rows: Any, kind: type, error: type[BaseException]
) -> None:
    """On whichever thread it came; it neither hangs the run nor is lost, also where it is no `Exception`."""

    def then(event: Event) -> None:
        if isinstance(event, kind):
            raise error("disk full")

    here = world("SHOUT")
    with pytest.raises(error, match="disk full"):
        here.fit(rows("ant", "bee"), rows("cat"), callbacks=[world.listener(then)])
    assert here.program.system.data in (SEED, f"{SEED}\nSHOUT")


def test_an_error_of_a_callback_at_the_end_does_not_take_the_result_with_it(world: Any, rows: Any) -> None:
    """A mistake in the last line of a tracker, when all is paid for: the error says what the run came to."""

    results = []

    def then(event: Event) -> None:
        if isinstance(event, RunEnded):
            results.append(event.result)
            raise KeyError("no such metric")

    here = world("SHOUT")
    with pytest.raises(KeyError) as caught:
        here.fit(rows("ant", "bee"), rows("cat"), callbacks=[world.listener(then)])
    (note,) = caught.value.__notes__
    assert note == (
        f"raised by the callback Listener, told of RunEnded; the program holds the best texts of the run: {results[0]}"
    )
    assert here.program.system.data == results[0].best["system"]


def test_an_optimizer_that_was_left_out_is_named() -> None:
    """And not the last argument, which Python misses when all have moved up."""
    with pytest.raises(
        TypeError, match=r"fit: there is no optimizer; write fit\(program, loss, optimizer, train, val\)"
    ):
        Trainer().fit(nn.ChatCompletion("{text}"), nn.ExactMatch(), [{"text": "a"}], [{"text": "a"}])  # type: ignore[call-arg, arg-type]


def test_validation_examples_that_were_left_out_are_asked_for() -> None:
    """What who has one list of examples types first."""
    program = nn.ChatCompletion("{text}", system=nn.Parameter("Sort.", role="system prompt"))
    made = (program, nn.ExactMatch(), TGD(program.parameters()))
    words = r"fit: there are no validation examples, .* data\.random_split\(.* tg\.cross_validate makes more"
    with pytest.raises(TypeError, match=words):
        Trainer().fit(*made, [{"text": "a"}])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=words):
        Trainer().fit(*made, train=[{"text": "a"}], test=[{"text": "b"}])  # type: ignore[call-arg]


def test_a_budget_that_ends_before_the_seed_texts_are_validated_opens_no_test_set(world: Any, rows: Any) -> None:
    """Nothing was selected, so there is nothing to test, also where a test example would be cheap."""
    here = world("SHOUT")
    long = [{"id": "long", "word": "ox" * 3000, "target": "OX" * 3000}]
    with tg.budget(tokens=10_000) as budget:  # a call takes up to 8,192 of output, and a token for each byte
        result = here.fit(rows("ant"), [*rows("bee"), *long], rows("cat"))
    assert (result.status, result.seed_val, result.best_test) == ("budget", None, None)
    assert here.asked("forward", "cat") == 0
    assert budget.spent.calls == here.asked("forward", "bee") == 1
