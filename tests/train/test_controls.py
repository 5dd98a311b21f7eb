"""`Trainer(controls=True)`: what trying out alone is worth, at no more calls, beside what the optimizer found."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from textgrad_engine import budget, nn, templates, use_models
from textgrad_engine.errors import BadRequest, TruncatedResponse
from textgrad_engine.llm import Completion, Request, resolve
from textgrad_engine.llm.cache import Cache
from textgrad_engine.optim import TGD, PatchSearch
from textgrad_engine.optim.contracts import Requires
from textgrad_engine.report import as_json, render
from textgrad_engine.store import read_run
from textgrad_engine.testing import FunctionModel, feedback_for, simulated_task
from textgrad_engine.train import Trainer, TrainResult
from textgrad_engine.train.events import CallEnded, Evaluated, PhaseStarted, StepEnded

SEED = "Agree never."


class Contrary:
    """Answers yes unless told never; its critic says nothing of use, and a rewrite without feedback hits on it."""

    def __init__(self, rewrite: str = "Agree.") -> None:
        self.rewrite = rewrite
        self.model = FunctionModel(self.answer)
        self.program = nn.ChatCompletion("{question}", system=nn.Parameter(SEED, role="system prompt"))
        self.refusing = False

    def answer(self, request: Request) -> Any:
        if request.purpose == "backward":
            return feedback_for(request, "Be nice.")
        if request.purpose == "optimizer":
            if "edits" not in request.config.response_format.json_schema["properties"]:
                if self.refusing:
                    raise BadRequest("refused", status=400)
                return {"text": self.rewrite, "reason": "at a guess"}
            return {"edits": [{"op": "add", "line": 1, "text": "Be nice.", "reason": "asked", "feedback": [1]}]}
        return "no" if "never" in request.messages[0].text else "yes"

    def fit(self, optimizer: Any = None, **settings: Any) -> TrainResult:
        rows = [{"id": f"q{n}", "question": str(n), "target": "yes"} for n in range(36)]
        with use_models(forward=self.model):
            return Trainer(**{"batch_size": 6, "controls": True, **settings}).fit(
                self.program,
                nn.ExactMatch(),
                optimizer or TGD(self.program.parameters()),
                rows[:12],
                rows[12:24],
                rows[24:],
            )


class Listener:
    def __init__(self) -> None:
        self.events: list[Any] = []

    def on_event(self, event: Any) -> None:
        self.events.append(event)


def test_the_optimizer_is_worse_than_a_control() -> None:
    """It says so, and the result stays the optimizer's: a control is there to compare with, not to choose from."""
    contrary = Contrary()
    result = contrary.fit()
    assert result.controls is not None
    rewrites, edits = result.controls.each
    assert result.best == result.seed == {"system": SEED}
    assert str(contrary.program.system.data) == SEED
    assert rewrites.best == {"system": "Agree."}
    assert rewrites.test is not None
    assert rewrites.test.mean == 1.0
    assert rewrites.comparison is not None
    assert (rewrites.comparison.verdict, rewrites.compared_on) == ("worse", "test")
    assert (edits.name, rewrites.name) == ("random edits", "rewrites without feedback")


def test_equal_calls_and_no_feedback() -> None:
    """No control's search makes more calls than the optimizer's run before the test, and none goes backward."""
    heard = Listener()
    task = simulated_task(rules=5, seed=4, train=32, val=32, test=16)
    program = task.program()
    with use_models(forward=task.model):
        result = Trainer(controls=True, callbacks=[heard]).fit(
            program, task.loss, PatchSearch(program.parameters(), lanes=2), task.train, task.val, task.test
        )
    phases = {event.number: event.phase for event in heard.events if isinstance(event, PhaseStarted)}
    ended = [event for event in heard.events if isinstance(event, CallEnded) and event.record.completion]
    calls = [(phases[event.phase], event.record.purpose) for event in ended]
    counted = Counter(phase for phase, _ in calls)
    assert result.controls is not None
    assert result.controls.optimizer == "PatchSearch"
    assert result.controls.calls == len(calls) - counted["test"] - counted["control"]
    assert all(0 < made.usage.calls <= result.controls.calls for made in result.controls.each)
    assert "backward" not in {purpose for phase, purpose in calls if phase == "control"}
    assert len(calls) == result.total.calls


def test_the_rewrite_has_a_prompt_of_its_own() -> None:
    """One that asks for the best text; the optimizer's asks to keep what no feedback speaks against."""
    contrary = Contrary()
    contrary.fit()
    asked = [request.messages[0].text for request in contrary.model.requests if request.purpose == "optimizer"]
    assert templates.load("control_rewrite").system in asked
    assert templates.load("optimizer_rewrite").system not in asked


def test_the_test_set_is_opened_once_more_for_texts_that_are_new() -> None:
    """Each opening is counted; a control that kept the seed prompt needs none."""
    assert Contrary().fit().openings == 2
    result = Contrary(rewrite="Agree never, ever.").fit(max_steps=1)
    assert result.controls is not None
    changed = [made for made in result.controls.each if made.best != result.seed]
    assert result.openings == 1 + bool(changed)


def test_where_time_counts_the_test_answers_of_controls_are_timed() -> None:
    """As those of the optimizer's texts are, so that they can stand beside each other."""
    contrary = Contrary()
    contrary.model = FunctionModel(
        lambda request: (
            Completion(text=contrary.answer(request), latency=0.5)
            if request.purpose == "forward"
            else contrary.answer(request)
        )
    )
    result = contrary.fit(latency_weight=0)
    assert result.best_test is not None
    assert result.controls is not None
    rewrites = result.controls.each[0]
    assert rewrites.best != result.best
    assert rewrites.test is not None
    assert rewrites.test.latency == result.best_test.latency == (0.5,) * 12


def test_without_a_test_set_validation_compares() -> None:
    """And it is said that validation chose both."""
    result = _without_test()
    assert result.controls is not None
    assert [made.compared_on for made in result.controls.each] == ["val", "val"]
    assert "on validation only, which chose both" in " ".join(render(result).split())


def _without_test() -> TrainResult:
    contrary = Contrary()
    rows = [{"question": str(n), "target": "yes"} for n in range(24)]
    with use_models(forward=contrary.model):
        return Trainer(batch_size=6, controls=True).fit(
            contrary.program, nn.ExactMatch(), TGD(contrary.program.parameters()), rows[:12], rows[12:]
        )


def test_a_budget_that_ends_among_the_controls_leaves_the_result() -> None:
    """The optimizer's test score is there, and the run says that the budget was spent."""
    used = Contrary().fit(controls=False).total.calls
    contrary = Contrary()
    with budget(calls=used + 14) as limit:
        result = contrary.fit()
    assert limit.remaining.calls == 0
    assert result.status == "budget"
    assert result.best_test is not None
    assert result.controls is not None
    assert len(result.controls.each) < 2
    assert str(contrary.program.system.data) == SEED


def test_an_optimizer_that_is_down_ends_that_control_only() -> None:
    """The other one is made, and the report says what ended the first."""
    contrary = Contrary()
    contrary.refusing = True
    result = contrary.fit()
    assert result.controls is not None
    rewrites, edits = result.controls.each
    assert rewrites.best == {"system": SEED}
    assert edits.val is not None


def test_controls_keep_the_contracts() -> None:
    """What the optimizer may not write, a control may not either."""
    contrary = Contrary()
    result = contrary.fit(TGD(contrary.program.parameters(), constraints=[Requires(["never"])]))
    assert result.controls is not None
    assert all("never" in made.best["system"] for made in result.controls.each)


def test_only_what_the_optimizer_trains_is_changed() -> None:
    """A parameter that it was not given stays as it is in the controls, too."""

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.ChatCompletion("{question}", system=nn.Parameter(SEED, role="first"))
            self.second = nn.ChatCompletion("{said}", system=nn.Parameter("Pass on never.", role="second"))

        def forward(self, question: str) -> Any:
            self.second(said=self.first(question=question))
            return self.first(question=question)

    contrary = Contrary()
    contrary.program = Two()  # type: ignore[assignment]
    result = contrary.fit(TGD(contrary.program.first.parameters()), max_steps=1)
    assert result.controls is not None
    assert all(made.best["second.system"] == "Pass on never." for made in result.controls.each)


def test_the_run_folder_keeps_them(tmp_path: Path) -> None:
    """Read back they are equal; the events of a control are no steps, and do not touch the best texts."""
    heard = Listener()
    result = Contrary().fit(run_dir=tmp_path / "run", callbacks=[heard])
    found = read_run(tmp_path / "run")
    assert found.result is not None
    assert found.result.controls == result.controls
    assert (tmp_path / "run" / "best_prompt.txt").read_text() == SEED
    assert sum(isinstance(event, StepEnded) for event in heard.events) == len(result.steps)
    assert {event.phase for event in heard.events if isinstance(event, Evaluated)} <= {"validate", "test"}


def test_the_report_puts_them_beside_the_result() -> None:
    """A row for each, the verdict against each, the openings, in eighty columns; and the same as JSON."""
    result = Contrary().fit()
    shown = render(result, width=80)
    assert max(map(len, shown.split("\n"))) <= 80
    flat = " ".join(shown.split())
    assert result.controls is not None
    assert f"Beside controls, which got no feedback and up to {result.controls.calls} calls each" in flat
    for word in ("seed prompt", "rewrites without feedback", "random edits", "TGD"):
        assert f"\n  {word}  " in shown
    assert "TGD against rewrites without feedback: worse: -1.000" in flat
    body = as_json(result)["controls"]
    assert body["calls"] == result.controls.calls
    assert body["each"][0]["comparison"]["on"] == "test"
    assert body["each"][0]["test"]["mean"] == 1.0
    assert as_json(Contrary().fit(controls=False, max_steps=1))["controls"] is None


def test_a_text_that_gets_no_answers_does_not_end_a_control() -> None:
    """The first rewrite is kept, though it loses an example; each second one after it breaks the program."""
    contrary, asked = Contrary(), list[Request]()
    real = contrary.model._fn

    def answer(request: Request) -> Any:
        system, question = request.messages[0].text, request.messages[-1].text
        if request.purpose == "forward" and ("BREAK" in system or (question, "never" in system) == ("13", False)):
            raise BadRequest("filtered", status=400)
        if request.purpose == "optimizer" and "edits" not in request.config.response_format.json_schema["properties"]:
            asked.append(request)
            line = "Agree." if len(asked) == 1 else "BREAK" if len(asked) % 2 else "Agree never."
            return {"text": f"{line} {len(asked)}", "reason": "at a guess"}
        return real(request)

    contrary.model._fn = answer
    result = contrary.fit()
    assert result.controls is not None
    rewrites, _ = result.controls.each
    assert (rewrites.problem, rewrites.kept) == ("", 1)
    assert rewrites.tried > 1
    assert len(asked) > 3


def test_answers_from_the_cache_count_as_calls(tmp_path: Path) -> None:
    """A run that is repeated with a full cache grants its controls as many calls, and they come as far with these."""
    cache = Cache(tmp_path)

    def controls() -> Any:
        task = simulated_task(rules=5, seed=4, train=16, val=16, test=8)
        program, model = task.program(), FunctionModel(task.model.complete)
        model.cache_key = "parcels"  # type: ignore[attr-defined]
        with use_models(forward=resolve(model, cache=cache)):
            return (
                Trainer(controls=True, max_steps=4)
                .fit(program, task.loss, PatchSearch(program.parameters(), lanes=1), task.train, task.val, task.test)
                .controls
            )

    paid, repeated = controls(), controls()
    assert sum(made.usage.calls for made in repeated.each) == 0
    assert repeated.calls == paid.calls > 0
    assert [(made.tried, made.kept) for made in repeated.each] == [(made.tried, made.kept) for made in paid.each]


def test_an_optimizer_that_is_told_nothing_is_a_control_by_itself() -> None:
    """`TGD(use_feedback=False)` asks for the best text, runs no backward pass, and goes on after a lost proposal."""
    contrary = Contrary()
    result = contrary.fit(TGD(contrary.program.parameters(), use_feedback=False), controls=False, max_epochs=2)
    assert "backward" not in {request.purpose for request in contrary.model.requests}
    assert result.best == {"system": "Agree."}
    assert [step.feedback for step in result.steps] == [0] * len(result.steps)


def test_a_control_that_answers_other_test_examples_is_compared_on_validation() -> None:
    """Each loses half of the answers, and no example has one with both."""
    task = Contrary()
    answer = task.answer

    def half(request: Request) -> Any:
        number = request.messages[-1].text
        tests_it = request.purpose == "forward" and int(number) >= 24
        if tests_it and ("never" in request.messages[0].text) is (int(number) % 2 == 0):
            raise TruncatedResponse("ran into its length limit")
        return answer(request)

    task.model = FunctionModel(half)
    result = task.fit()
    assert result.controls is not None
    rewrites = result.controls.each[0]
    assert (rewrites.best, result.best) == ({"system": "Agree."}, {"system": SEED})
    assert rewrites.comparison is not None
    assert (rewrites.compared_on, rewrites.comparison.verdict) == ("val", "worse")
