"""A run ends where every validation example has the best score: nothing better could be shown, and all is paid for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import Trainer, nn, optim, report
from textgrad_engine.autograd import no_grad
from textgrad_engine.errors import RunError
from textgrad_engine.llm import Request
from textgrad_engine.optim.search.marks import nothing_to_show
from textgrad_engine.store import read_run
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train import Guards, Objective, TrainResult
from textgrad_engine.train.estimate import estimate
from textgrad_engine.train.settings import TO_THE_END

ENDED = "validation examples have the best score, 1, so it ended; harder ones would tell more"


def rows(*words: str) -> list[dict[str, str]]:
    return [{"id": word, "word": word, "target": word.upper()} for word in words]


TRAIN = rows(*(f"{word}{n}" for n in range(4) for word in ("yes-a", "no-a")))
VAL, TEST = rows(*(f"yes{n}" for n in range(8))), rows("yes-x", "yes-y")

SEARCHES: dict[str, Callable[[Any], optim.Optimizer]] = {
    "TGD": optim.TGD,
    "PatchSearch": lambda params: optim.PatchSearch(params, lanes=2),
    "ParetoSearch": lambda params: optim.ParetoSearch(params, proposals=12),
    "BeamSearch": lambda params: optim.BeamSearch(params, rounds=2),
    "OPRO": lambda params: optim.OPRO(params, rounds=3, per_round=2),
    "RandomSearch": lambda params: optim.RandomSearch(params, optim.RandomEdits(0), proposals=12),
    "BootstrapDemos": lambda params: optim.BootstrapDemos(params, sets=2),
}


def answer(request: Request) -> Any:
    """Shouts what begins with "yes" when it is told to, or shown how; no text helps with "no"."""
    if request.purpose == "backward":
        cases = request.config.response_format.json_schema["properties"]  # type: ignore[union-attr]
        return {case: {"system": "Say to shout."} for case in cases}
    if request.purpose == "optimizer" and "edits" not in request.config.response_format.json_schema["properties"]:  # type: ignore[union-attr]
        return {"text": "Repeat. Shout.", "reason": "asked for"}
    if request.purpose == "optimizer":
        edits = [{"op": "add", "line": 1, "text": "Shout.", "reason": "asked for", "feedback": [1]}]
        return {"edits": [] if "Shout." in request.messages[-1].text.split("</text-")[0] else edits}
    system, word = request.messages[0].text, request.messages[-1].text
    shouts = "Shout" in system or "Right answer" in system
    return word.upper() if shouts and word.startswith("yes") else word


class World:
    """A program that shouts, or is to learn it."""

    def __init__(self, name: str = "TGD", seed: str = "Repeat. Shout.") -> None:
        self.program = nn.ChatCompletion("{word}", system=nn.Parameter(seed, role="system prompt"))
        self.optimizer = SEARCHES[name](self.program.parameters())
        self.model = FunctionModel(answer)

    def fit(self, *, test: Any = None, val: Any = VAL, loss: Any = None, **settings: Any) -> TrainResult:
        with tg.use_models(forward=self.model):
            trainer = Trainer(**{"max_epochs": 3, "batch_size": 4, **settings})
            return trainer.fit(self.program, loss or nn.ExactMatch(), self.optimizer, TRAIN, val, test)


@pytest.mark.parametrize("name", SEARCHES)
def test_a_seed_prompt_with_full_marks_asks_nobody_for_another(name: str) -> None:
    """It is validated, and said to have them; neither critic nor optimizer is asked, though training examples fail."""
    here = World(name)
    result = here.fit()
    assert (result.status, result.idle) == ("finished", f"all 8 {ENDED}")
    assert result.best == result.seed
    assert not any(request.purpose in ("backward", "optimizer") for request in here.model.requests)
    assert result.idle in str(result)
    assert report.render(result, width=200).count("harder ones would tell more.") == 1


@pytest.mark.parametrize("name", ["TGD", "PatchSearch", "ParetoSearch", "BeamSearch", "OPRO", "BootstrapDemos"])
def test_it_ends_with_the_first_text_that_has_full_marks(name: str) -> None:
    """With the same score as a run that went on, and fewer calls; half of the training examples fail in both."""
    here, there = World(name, "Repeat."), World(name, "Repeat.")
    there.optimizer.to_the_end = True
    ended, went_on = here.fit(test=TEST), there.fit(test=TEST)
    for result in (ended, went_on):
        assert result.best_val is not None
        assert result.best_val.mean == 1.0
        assert result.best_test is not None
    assert (ended.status, ended.idle) == ("finished", f"all 8 {ENDED}")
    assert ENDED not in went_on.idle
    assert ended.best == went_on.best
    assert len(ended.steps) < len(went_on.steps)
    assert ended.total.calls < went_on.total.calls


@pytest.mark.parametrize("name", ["TGD", "PatchSearch"])
def test_full_marks_of_weights_that_add_up_to_a_little_less_are_full_marks(name: str) -> None:
    """0.6 + 0.3 + 0.1 is less than 1 in floats; so no step is paid for, and scores that are 0 or 1 count as such."""

    class Three(nn.Module):
        def forward(self, prediction: Any, target: str) -> Any:
            first, second, third = (weight * nn.ExactMatch()(prediction, target) for weight in (0.6, 0.3, 0.1))
            return first + second + third

    here, plain = World(name), World(name)
    result = here.fit(loss=Three(), test=[*TEST, *TRAIN])
    assert (result.idle, result.steps) == (f"all 8 {ENDED}", ())
    assert result.best_test is not None
    assert result.best_test == plain.fit(test=[*TEST, *TRAIN]).best_test


def test_a_search_still_tries_without_the_edits_that_it_kept() -> None:
    """So a line that came with a good one, and does nothing, goes; only patches are not asked for any more."""

    def two(request: Request) -> Any:
        if request.purpose == "optimizer":
            lines = ("Shout.", "Be kind.")
            edits = [{"op": "add", "line": 1, "text": each, "reason": "asked", "feedback": [1]} for each in lines]
            return {"edits": edits}
        return answer(request)

    here = World("PatchSearch", "Repeat.")
    here.model = FunctionModel(two)
    result = here.fit()
    assert result.best["system"] == "Repeat.\nShout."
    assert "ablation" in {step.kind for step in result.steps}
    assert sum(step.kind == "patch" for step in result.steps) == 1
    assert result.idle == f"all 8 {ENDED}"


@pytest.mark.parametrize("settings", [{"tokens_weight": 0.1}, {"latency_weight": 0.1}])
@pytest.mark.parametrize("name", ["TGD", "PatchSearch", "ParetoSearch"])
def test_where_tokens_or_time_count_it_goes_on(name: str, settings: dict[str, Any]) -> None:
    """A shorter or quicker text would be better."""
    here = World(name)
    result = here.fit(**settings)
    assert result.idle == "" or result.idle.startswith("the last ")
    assert result.steps
    assert "backward" in {request.purpose for request in here.model.requests}


def test_it_goes_on_below_full_marks() -> None:
    """One answer short of them, and one graded a little lower."""
    for val, loss in (
        ([*VAL[1:], *rows("no")], None),
        (VAL, nn.Metric(lambda said, target: 1.0 if said == target and said != "YES0" else 0.9, "nearly")),
    ):
        result = World().fit(val=val, loss=loss)
        assert (len(result.steps), result.idle) == (6, "")


def test_scores_that_nobody_knows_the_best_of_end_nothing() -> None:
    """All have 2, and a loss that is a function does not say whether there is a 3; with a scale it does."""

    def twice(said: Any, target: str) -> Any:
        return nn.ExactMatch()(said, target) * 2

    objective = Objective(World().program, twice, TRAIN, VAL)
    assert nothing_to_show(objective, [2.0, 2.0]) == ""
    assert nothing_to_show(objective, [1.0, 1.0], beside=[2.0]) == ""
    assert nothing_to_show(objective, [1.0] * 8) == f"all 8 {ENDED}"
    assert nothing_to_show(objective, []) == ""
    judge = nn.Metric(lambda said, target: 5, "stars", scale=(1, 5))
    rated = Objective(World().program, judge, TRAIN, VAL[:1])
    assert nothing_to_show(rated, [5.0]).startswith("the only validation example has the best score, 5, so it ended")
    assert nothing_to_show(rated, [1.0]) == ""


@pytest.mark.usefixtures("no_backoff")
def test_what_went_unanswered_is_no_hope() -> None:
    """No race counts an example that the best text has no answer for, and it is not told as one of all."""
    here = World()
    here.model = FunctionModel(lambda request: "" if request.messages[-1].text == "yes3" else answer(request))
    result = here.fit()
    assert result.seed_val is not None
    assert result.seed_val.unanswered == 1
    assert (result.steps, result.idle) == ((), f"all 7 answered {ENDED}")


def test_guards_callbacks_and_budgets_do_not_mind() -> None:
    """What ends is the run, not what it was to mind: the guards hold, callbacks hear of the end."""
    heard: list[str] = []

    class Listener:
        def on_event(self, event: Any) -> None:
            heard.append(type(event).__name__)

    here = World(seed="Repeat.")
    with tg.budget(calls=500):
        result = here.fit(guards=Guards(never_break=("yes1",)), callbacks=[Listener()], test=TEST, patience=5)
    assert (result.status, result.compared_on, heard[-1]) == ("finished", "test", "RunEnded")
    assert heard.count("StepEnded") == len(result.steps) == 1


@pytest.mark.parametrize("name", ["TGD", "PatchSearch", "ParetoSearch"])
def test_a_budget_that_ends_it_before_all_were_run_is_what_ended_it(name: str) -> None:
    """That all have the best score is said where all were run, and of no part of them."""
    ended = set()
    for calls in range(8, 60, 6):
        with tg.budget(calls=calls):
            result = World(name, "Repeat.").fit()
        assert result.best_val is not None
        if ENDED in result.idle:
            assert (result.idle, result.best_val.mean, result.best_val.not_run) == (f"all 8 {ENDED}", 1.0, ())
        ended.add((result.status, ENDED in result.idle))
    assert {("budget", False), ("finished", True)} <= ended


def test_controls_end_there_as_well() -> None:
    """A control that has full marks asks for nothing more, so it may use less than the optimizer had."""
    ended = World(seed="Repeat.").fit(controls=True)
    there = World(seed="Repeat.")
    there.optimizer.to_the_end = True
    went_on = there.fit(controls=True)
    assert ended.controls is not None
    assert went_on.controls is not None
    rewrites = (ended.controls.each[0], went_on.controls.each[0])
    assert [each.best["system"] for each in rewrites] == ["Repeat. Shout."] * 2
    assert rewrites[0].usage.calls < rewrites[1].usage.calls


def test_an_estimate_takes_its_step_all_the_same() -> None:
    """A metric that likes what stands for an answer to these examples would hide what critic and optimizer cost."""
    here = World()
    likes = nn.Metric(lambda said, target: float(target[0] == "Y"), "yes is well")
    found = estimate(Trainer(batch_size=4), here.program, likes, here.optimizer, TRAIN, VAL)
    assert found.calls["optimizer"].high > 0
    assert found.calls["forward"].low == len(VAL)
    assert here.optimizer.to_the_end is False


@pytest.mark.parametrize("name", ["TGD", "PatchSearch", "ParetoSearch"])
def test_a_run_of_before_is_played_back_to_its_end(name: str, tmp_path: Path) -> None:
    """Runs went on there; one that is finished has to come to what it came to, and one that was cut goes on so."""
    path = tmp_path / "run"
    here = World(name, "Repeat.")
    here.optimizer.to_the_end = True
    went_on = here.fit(run_dir=path)
    as_of_before(path)
    again = World(name, "Repeat.")
    result = again.fit(run_dir=path, resume=True)
    assert again.model.requests == []
    assert (result.steps, result.best) == (went_on.steps, went_on.best)
    (path / "result.json").unlink()
    lines = (path / "events.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (path / "events.jsonl").write_text("".join(lines[:-1]), encoding="utf-8")
    cut = World(name, "Repeat.")
    result = cut.fit(run_dir=path, resume=True)
    assert cut.model.requests == []
    assert [step.kept for step in result.steps] == [step.kept for step in went_on.steps]
    begun = next(event for event in read_run(path).events if event["event"] == "RunStarted")
    assert begun["settings"][TO_THE_END] is True
    assert cut.optimizer.to_the_end is False


def test_a_new_run_that_ended_there_is_played_back_to_there(tmp_path: Path) -> None:
    """Also by whoever asks for the end now: what it was set to is known, and another setting is told."""
    path = tmp_path / "run"
    ended = World(seed="Repeat.").fit(run_dir=path)
    again = World(seed="Repeat.")
    assert again.fit(run_dir=path, resume=True).steps == ended.steps
    assert again.model.requests == []
    there = World(seed="Repeat.")
    there.optimizer.to_the_end = True
    with pytest.raises(RunError, match="to_the_end=True instead of to_the_end=False"):
        there.fit(run_dir=path, resume=True)


def as_of_before(path: Path) -> None:
    """Takes from a run folder what folders of before lack."""
    file = path / "events.jsonl"
    events = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for event in events:
        if event["event"] == "RunStarted":
            del event["settings"][TO_THE_END]
    file.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")


def test_a_shorter_text_is_looked_for_where_somebody_asks_for_it() -> None:
    """An optimizer that only shortens sets `to_the_end`: of equal scores the shorter text is kept."""

    class Shorten(optim.Optimizer):
        to_the_end = True
        reads_feedback = False

        def _step(self) -> None:
            (variable,) = self.variables()
            with no_grad():
                variable.data = str(variable.data).replace(" please", "")

    here = World(seed="Repeat please. Shout.")
    here.optimizer = Shorten(here.program.parameters(), {})
    result = here.fit(max_steps=1)
    assert result.best["system"] == "Repeat. Shout."
    assert result.idle == ""
