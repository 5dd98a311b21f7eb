"""A finished run that is started again: its result once more, nothing asked, nothing written."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, ops, optim
from textgrad_engine.errors import ConnectionFailed, RunError, TruncatedResponse
from textgrad_engine.llm import Completion, RetryPolicy, Usage, resolve
from textgrad_engine.store import FinishedRun, RunFolder, read_run
from textgrad_engine.store.lock import Lock
from textgrad_engine.testing import FunctionModel, feedback_for, simulated_task
from textgrad_engine.train.events import CallEnded, StepEnded

from .conftest import ROWS, answer


def files(path: Path) -> dict[Path, bytes]:
    """Every file of a folder, to the byte."""
    return {file.relative_to(path): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def unasked(request: Any) -> Any:
    """A model that must not be asked."""
    raise AssertionError(f"was asked: {request.messages}")


class Told:
    """Notes the events that it is told of."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def on_event(self, event: Any) -> None:
        self.events.append(event)


def test_a_script_that_is_started_again_gets_the_result_again(tmp_path: Path, fit: Any) -> None:
    """The same result, to the second; the folder stays as it is; and callbacks hear of all of it."""
    path = tmp_path / "run"
    first = fit(None, run_dir=path, resume=True, max_steps=2)
    before = files(path)
    for _ in range(2):
        told = Told()
        again = fit(None, run_dir=path, resume=True, max_steps=2, model=unasked, callbacks=[told])
        assert again == first
        assert again.total.calls == first.total.calls > 0
        assert again.openings == 1
        assert [each.step for each in told.events if isinstance(each, StepEnded)] == [1, 2]
        assert files(path) == before


def test_the_program_holds_the_best_texts_again(tmp_path: Path, world: Any) -> None:
    """They are what the script goes on with, in its next line."""
    for model in (answer, unasked):
        program, run = world(model)
        result = run(tmp_path / "run")
        assert program.system.data == result.best["system"] != "Repeat."


def test_one_that_has_changed_since_is_taken_as_it_is_on_demand(tmp_path: Path) -> None:
    """Its result, its texts and its cost; nothing is asked or written."""

    def run(model: Any, seed_text: str, **settings: Any) -> Any:
        program = nn.ChatCompletion("{word}", system=nn.Parameter(seed_text, role="system prompt"))
        with tg.use_models(forward=FunctionModel(model)), tg.budget(calls=1000) as used:
            result = tg.Trainer(max_steps=1, batch_size=2, run_dir=tmp_path / "run", **settings).fit(
                program, nn.ExactMatch(), optim.TGD(program.parameters()), ROWS[:3], ROWS[3:5], ROWS[5:]
            )
        return program, result, used.spent.calls

    _, first, calls = run(answer, "Repeat.")
    before = files(tmp_path / "run")
    with pytest.raises(RunError, match=r'or take it as it is, by Trainer\(resume="anyway"\)'):
        run(unasked, "Say it again.", resume=True)
    program, again, charged = run(unasked, "Say it again.", resume="anyway")
    assert again == first
    assert program.system.data == first.best["system"] != "Repeat."
    assert charged == calls > 0
    assert files(tmp_path / "run") == before


def test_a_text_that_the_program_lacks_now_is_named(tmp_path: Path, world: Any) -> None:
    _, run = world(answer)
    run(tmp_path / "run")
    other = nn.Sequential(nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt")))
    optimizer, trainer = optim.TGD(other.parameters()), tg.Trainer(run_dir=tmp_path / "run", resume="anyway")
    with pytest.raises(RunError, match="the program has no parameter 'system', which it trained; put it back"):
        trainer.fit(other, nn.ExactMatch(), optimizer, ROWS[:3], ROWS[3:5])
    assert next(other.parameters()).data == "Repeat."


@pytest.fixture
def world() -> Any:
    """Makes a program and what trains it in a folder."""

    def make(model: Any) -> Any:
        program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))

        def run(path: Path) -> Any:
            with tg.use_models(forward=FunctionModel(model)):
                return tg.Trainer(max_steps=1, batch_size=2, run_dir=path, resume=True).fit(
                    program, nn.ExactMatch(), optim.TGD(program.parameters()), ROWS[:3], ROWS[3:5], ROWS[5:]
                )

        return program, run

    return make


def test_the_same_cell_with_the_program_of_before_is_told_what_to_do(tmp_path: Path, world: Any) -> None:
    """It holds the best texts already, which are no seed texts of this run."""
    _, run = world(answer)
    run(tmp_path / "run")
    before = files(tmp_path / "run")
    with pytest.raises(
        RunError, match=r"begins with the text system = 'Repeat\.\\nShout\.' instead of the text system = 'Repeat\.'"
    ) as caught:
        run(tmp_path / "run")
    assert "make it anew, if it was trained here already" in str(caught.value)
    assert files(tmp_path / "run") == before


@pytest.mark.parametrize("name", ["PatchSearch", "BeamSearch", "ParetoSearch", "OPRO", "BootstrapDemos"])
def test_a_search_is_played_back_in_all_of_its_lanes(tmp_path: Path, name: str) -> None:
    """Which of the answers comes first decides nothing, and patience may drop proposals that are under way."""
    results = []
    for asked in (True, False):
        task = simulated_task(rules=4, train=24, val=16, test=12, seed=1)
        program = task.program()
        searcher = getattr(optim, name)(program.parameters(), **({"lanes": 3} if name == "PatchSearch" else {}))
        model = task.model if asked else FunctionModel(unasked, name=task.model.name)
        with tg.use_models(forward=model):
            trainer = tg.Trainer(max_steps=6, patience=3, run_dir=tmp_path / "run", resume=True)
            results.append(trainer.fit(program, task.loss, searcher, task.train, task.val, task.test))
    assert results[0] == results[1]


@pytest.mark.parametrize("optimizer", [optim.TGD, optim.PatchSearch])
def test_controls_end_where_they_ended(tmp_path: Path, optimizer: Any) -> None:
    """They have a budget of their own, which ends in the midst of a race: what had no room in it is not on record."""
    results = []
    for asked in (True, False):
        task = simulated_task(rules=4, train=24, val=16, test=12, seed=1)
        program = task.program()
        with tg.use_models(forward=task.model if asked else FunctionModel(unasked, name=task.model.name)):
            trainer = tg.Trainer(max_steps=2, batch_size=8, controls=True, run_dir=tmp_path / "run", resume=True)
            fitted = (program, task.loss, optimizer(program.parameters()), task.train, task.val, task.test)
            results.append(trainer.fit(*fitted))
    assert results[0] == results[1]
    assert len(results[0].controls.each) == 2


class TwoCalls(nn.Module):
    """Asks, reads the answer, and asks about that."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.ChatCompletion("{word}", system=nn.Parameter("Copy it.", role="first prompt"))
        self.second = nn.ChatCompletion("Again: {said}", system=nn.Parameter("Say it.", role="second prompt"))

    def forward(self, word: str) -> tg.Variable:
        said = self.first(word=word)
        return self.second(said=ops.straight_through(said.data.strip(), said))


def shouts_if_told(request: Any) -> Any:
    """The model of `TwoCalls`, who has whatever text shout; each fifth answer is empty when it is first given."""
    system, user = request.messages[0].text, request.messages[1].text
    if request.purpose == "backward":
        return feedback_for(request, "Shout.")
    if request.purpose == "optimizer":
        text = re.findall(r"(?s)<(?:text|version)-\w+>\n(.*?)\n</", user)[0]
        if "edits" in request.config.response_format.json_schema["properties"]:
            return {"edits": [{"op": "add", "line": 1, "text": "Shout.", "reason": "so", "feedback": [1]}]}
        return {"text": f"{text}\nShout.", "reason": "so"}
    said = user.removeprefix("Again: ")
    return said.upper() if "Shout." in system and user != said else said


@pytest.mark.parametrize(("examples", "empty"), [(24, 0), (28, 0), (12, 5)])
def test_controls_of_a_program_of_several_calls_end_where_they_ended(tmp_path: Path, examples: int, empty: int) -> None:
    """What had no room in a race is asked once more of the text that won it: that is no answer which the race had."""
    given: Counter[str] = Counter()

    def say(request: Any) -> Any:
        asked = json.dumps([each.text for each in request.messages])
        given[asked] += 1
        if empty and given[asked] == 1 and hashlib.sha256(asked.encode()).digest()[0] % empty == 0:
            return Completion(text="", usage=Usage(input_tokens=1, calls=1))
        return shouts_if_told(request)

    rows = [{"word": f"{first}{second}"} for first in "abcdefgh" for second in "vwxyz"]
    rows = [{**row, "target": row["word"].upper()} for row in rows]
    results = []
    for model in (say, unasked):
        program = TwoCalls()
        with tg.use_models(forward=FunctionModel(model)):
            trainer = tg.Trainer(max_steps=1, batch_size=4, controls=True, run_dir=tmp_path / "run", resume=True)
            optimizer = optim.TGD(program.parameters())
            fitted = program, nn.ExactMatch(), optimizer, rows[:8], rows[8 : 8 + examples], rows[36:]
            results.append(trainer.fit(*fitted))
    assert results[0] == results[1]
    assert results[0].controls.each[0].kept


def once(model: Any) -> Any:
    """The model without further attempts."""
    return resolve(FunctionModel(model), policy=RetryPolicy(max_attempts=1))


def test_what_was_lost_then_is_lost_again(tmp_path: Path, fit: Any) -> None:
    """Also what the endpoint is to blame for: the result is about the examples that had an answer."""
    failures = {"four": TruncatedResponse("too long"), "six": ConnectionFailed("it broke")}

    def failing(request: Any) -> Any:
        if request.purpose == "forward" and (error := failures.get(request.messages[-1].text)):
            raise error
        return answer(request)

    first = fit(None, run_dir=tmp_path / "run", resume=True, model=once(failing))
    again = fit(None, run_dir=tmp_path / "run", resume=True, model=unasked)
    assert again == first
    assert again.seed_test.failures == {"six": "ConnectionFailed: it broke"}


def test_a_run_that_was_resumed_is_played_back_with_what_it_had_counted(tmp_path: Path, fit: Any) -> None:
    """A call that failed before, was counted, and was answered later: its cost once more, and the answer."""
    broken = iter([True])

    def failing(request: Any) -> Any:
        if request.messages[-1].text == "four" and next(broken, False):
            error = ConnectionFailed("it broke behind the answer")
            error.usage = Usage(input_tokens=100, calls=1)
            raise error
        return answer(request)

    path = tmp_path / "run"
    with tg.budget(calls=5):
        assert fit(None, run_dir=path, resume=True, model=once(failing)).status == "budget"
    with tg.budget(calls=90) as then:
        first = fit(None, run_dir=path, resume=True)
    with tg.budget(calls=90) as now:
        assert fit(None, run_dir=path, resume=True, model=unasked) == first
    assert now.spent == then.spent


def test_a_budget_that_has_no_room_for_it_is_told(tmp_path: Path, fit: Any) -> None:
    """What was paid for counts in the budget around it, as it did."""
    fit(None, run_dir=tmp_path / "run", resume=True)
    before = files(tmp_path / "run")
    with (
        tg.budget(calls=8),
        pytest.raises(RunError, match=r"no room for what it took \(\d+ calls, \d+ tokens\); raise"),
    ):
        fit(None, run_dir=tmp_path / "run", resume=True, model=unasked)
    assert files(tmp_path / "run") == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"prompt": "Repeat it."},
            r"begins with the text system = 'Repeat it\.' instead of the text system = 'Repeat\.'",
        ),
        ({"max_steps": 2}, "begins with 2 steps at most instead of 1 steps at most"),
        (
            {"kind": optim.PatchSearch, "max_steps": None},
            "begins with optimizer='PatchSearch' instead of optimizer='TGD'",
        ),
        ({"batch_size": 1}, "begins with batch_size=1 instead of batch_size=2"),
        ({"feedback_batch_size": 2}, "begins with feedback_batch_size=2 instead of feedback_batch_size=1"),
    ],
)
def test_what_has_changed_is_told_before_anything_is_paid(
    tmp_path: Path, fit: Any, change: dict[str, Any], said: str
) -> None:
    """Program, data, settings: whoever wants a new run has to say so."""
    fit(None, run_dir=tmp_path / "run", resume=True)
    before = files(tmp_path / "run")
    with pytest.raises(RunError, match=f"(?s)the run is finished, and is played back .* but it ({said}).*Put back"):
        fit(None, run_dir=tmp_path / "run", resume=True, model=unasked, **change)
    assert files(tmp_path / "run") == before


def test_a_run_of_before_settings_were_written_down_tells_what_it_asks(tmp_path: Path, fit: Any) -> None:
    """Then only the requests show that it is another one."""
    fit(None, run_dir=tmp_path / "run")
    events = [json.loads(line) for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    assert events[0].pop("settings")
    (tmp_path / "run" / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    with pytest.raises(RunError, match="asks for something that is not on record: a backward request"):
        fit(None, run_dir=tmp_path / "run", resume=True, model=unasked, feedback_batch_size=2)


def test_answers_that_are_scored_otherwise_are_another_result(tmp_path: Path, fit: Any) -> None:
    """The same requests, and another target in the test set: it is not what the folder says."""
    fit(None, run_dir=tmp_path / "run", resume=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ROWS[-1], "target", "other")
        with pytest.raises(RunError, match=r"but it comes to another result: .*best_test.* differ"):
            fit(None, run_dir=tmp_path / "run", resume=True, model=unasked)


def test_answers_that_are_gone_are_told(tmp_path: Path, fit: Any) -> None:
    """A file that was cut off is no reason to pay."""
    path = tmp_path / "run"
    fit(None, run_dir=path, resume=True)
    lines = (path / "completions.jsonl").read_bytes().splitlines(True)
    (path / "completions.jsonl").write_bytes(b"".join(lines[:-3]))
    with pytest.raises(RunError, match=r"completions\.jsonl: 3 calls that were paid for can no longer be found"):
        fit(None, run_dir=path, resume=True, model=unasked)
    (path / "completions.jsonl").unlink()
    with pytest.raises(RunError, match=r"completions\.jsonl: the file is missing"):
        fit(None, run_dir=path, resume=True, model=unasked)


def test_an_interruption_while_it_is_played_back_changes_nothing(tmp_path: Path, fit: Any) -> None:
    """Ctrl-C gives what there is so far; the folder still has all."""
    first = fit(None, run_dir=tmp_path / "run", resume=True)
    before = files(tmp_path / "run")

    class Press:
        def on_event(self, event: Any) -> None:
            if isinstance(event, CallEnded):
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(None, run_dir=tmp_path / "run", resume=True, callbacks=[Press()])
    assert files(tmp_path / "run") == before
    assert fit(None, run_dir=tmp_path / "run", resume=True, model=unasked) == first


def test_while_somebody_writes_it_is_not_played_back(tmp_path: Path, fit: Any) -> None:
    """A run has its result a moment before its journal is in order."""
    fit(None, run_dir=tmp_path / "run", resume=True)
    held = Lock(tmp_path / "run")
    try:
        with pytest.raises(RunError, match=f"process {os.getpid()} is at work on this run"):
            fit(None, run_dir=tmp_path / "run", resume=True, model=unasked)
    finally:
        held.release()
    assert isinstance(FinishedRun(read_run(tmp_path / "run")), FinishedRun)


def test_it_needs_nothing_but_to_read(tmp_path: Path, fit: Any, monkeypatch: Any) -> None:
    """A folder of a colleague's, or on a disk that is full."""
    first = fit(None, run_dir=tmp_path / "run", resume=True)
    real = os.open

    def reading(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if str(path).startswith(str(tmp_path)) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", reading)
    assert fit(None, run_dir=tmp_path / "run", resume=True, model=unasked) == first


def test_secrets_that_were_taken_out_make_no_other_run(tmp_path: Path, fit: Any, monkeypatch: Any) -> None:
    """The folder has not got them, and the program has."""
    monkeypatch.setenv("SOME_API_KEY", "swordfish-42")
    first = fit(None, run_dir=tmp_path / "run", resume=True, prompt="Repeat, by swordfish-42.")
    assert fit(None, run_dir=tmp_path / "run", resume=True, prompt="Repeat, by swordfish-42.", model=unasked) == first


def test_what_looks_otherwise_in_each_process_makes_no_other_run(tmp_path: Path) -> None:
    """A program may give objects beside its answer."""

    class Program(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.chat = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))

        def forward(self, word: str) -> Any:
            return {"answer": self.chat(word=word), "beside": object()}

    class Exact(nn.Module):
        def forward(self, prediction: Any, target: str) -> Any:
            return nn.ExactMatch()(prediction["answer"], target)

    results = []
    for model in (answer, unasked):
        program = Program()
        with tg.use_models(forward=FunctionModel(model)):
            trainer = tg.Trainer(max_steps=1, batch_size=2, run_dir=tmp_path / "run", resume=True)
            optimizer = optim.TGD(program.parameters())
            results.append(trainer.fit(program, Exact(), optimizer, ROWS[:3], ROWS[3:5], ROWS[5:]))
    assert results[1].best == results[0].best
    assert "<object object at 0x" in (tmp_path / "run" / "result.json").read_text(encoding="utf-8")


def test_words_of_another_version_make_no_other_run(tmp_path: Path) -> None:
    """Nor does what it did not keep: what tokens cost in a race, and on what terms texts were compared."""

    def run(model: Any) -> Any:
        program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
        with tg.use_models(forward=FunctionModel(model)):
            trainer = tg.Trainer(max_steps=1, batch_size=2, tokens_weight=0.1, run_dir=tmp_path / "run", resume=True)
            return trainer.fit(program, nn.ExactMatch(), optim.TGD(program.parameters()), ROWS[:3], ROWS[3:5])

    first = run(answer)
    file = tmp_path / "run" / "result.json"
    body = json.loads(file.read_text(encoding="utf-8"))
    (step,) = body["steps"]
    assert body.pop("terms")
    assert body.pop("floors") == []
    assert step["race"].pop("handicap")
    body["steps"] = [{**step, "why": "in other words", "problems": ["told otherwise"], "lost": ["named otherwise"]}]
    file.write_text(json.dumps({**body, "idle": "nothing was proposed"}), encoding="utf-8")
    assert run(unasked) == first


def test_examples_without_ids_and_controls_of_a_folder_of_before_are_the_same(tmp_path: Path) -> None:
    """It has no digests of examples, and says of no controls that there was no room for them."""

    task = simulated_task(rules=4, train=12, val=8, test=6, seed=1)
    sets = [[{n: v for n, v in row.items() if n != "id"} for row in rows] for rows in (task.train, task.val, task.test)]

    def run(model: Any) -> Any:
        program = task.program()
        with tg.use_models(forward=model):
            trainer = tg.Trainer(max_steps=1, batch_size=2, controls=True, run_dir=tmp_path / "run", resume=True)
            return trainer.fit(program, task.loss, optim.TGD(program.parameters()), *sets)

    def of_before(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: of_before(each) for name, each in value.items() if name != "contents"}
        return [of_before(each) for each in value] if isinstance(value, list) else value

    first = run(task.model)
    file = tmp_path / "run" / "result.json"
    body = of_before(json.loads(file.read_text(encoding="utf-8")))
    assert body["controls"].pop("problem") == ""
    file.write_text(json.dumps(body), encoding="utf-8")
    assert run(FunctionModel(unasked, name=task.model.name)) == first


def test_what_the_same_scores_show_may_be_another_in_another_version(tmp_path: Path, fit: Any) -> None:
    """P-values and verdicts are worked out from scores, which are compared; the folder's own is given again."""
    path = tmp_path / "run"
    first = fit(None, run_dir=path, resume=True)
    body = json.loads((path / "result.json").read_text(encoding="utf-8"))
    assert first.comparison.p_value != 0.0123
    body["comparison"] |= {"p_value": 0.0123, "adjusted": 0.04}
    (path / "result.json").write_text(json.dumps(body), encoding="utf-8")
    again = fit(None, run_dir=path, resume=True, model=unasked)
    assert again == replace(first, comparison=replace(first.comparison, p_value=0.0123, adjusted=0.04))


def test_looks_of_before_stay_counted(tmp_path: Path, fit: Any) -> None:
    """A run that opened the test set for other texts before it was resumed."""
    path = tmp_path / "run"
    fit(None, run_dir=path, resume=True)
    body = json.loads((path / "result.json").read_text(encoding="utf-8"))
    (path / "result.json").write_text(json.dumps({**body, "openings": 2}), encoding="utf-8")
    assert fit(None, run_dir=path, resume=True, model=unasked).openings == 2


def test_the_class_for_anyway_says_that_there_is_nothing_to_resume(tmp_path: Path, fit: Any) -> None:
    """It writes, and this run is over."""
    fit(RunFolder(tmp_path / "run"))
    shutil.copytree(tmp_path / "run", tmp_path / "other")
    with pytest.raises(RunError, match="the run is finished, so there is nothing to resume"):
        RunFolder(tmp_path / "run", resume=True, anyway=True)
    assert files(tmp_path / "run") == files(tmp_path / "other")


def test_who_is_fast_enough_for_the_front_may_be_another_in_another_version(tmp_path: Path, fit: Any) -> None:
    """Whether a text is shown to be faster goes by an interval, which is drawn otherwise now; all else is compared."""

    def timed(request: Any) -> Any:
        said = answer(request)
        return Completion(text=said, latency=0.5) if isinstance(said, str) else said

    path = tmp_path / "run"
    first = fit(None, run_dir=path, model=timed, latency_weight=0.0)
    body = json.loads((path / "result.json").read_text(encoding="utf-8"))
    assert all(point["latency"] for point in body["front"])
    (path / "result.json").write_text(json.dumps(body | {"front": body["front"][:0]}), encoding="utf-8")
    again = fit(None, run_dir=path, resume=True, model=unasked, latency_weight=0.0)
    assert again.best == first.best
    plain = tmp_path / "plain"
    fit(None, run_dir=plain)
    body = json.loads((plain / "result.json").read_text(encoding="utf-8"))
    (plain / "result.json").write_text(json.dumps(body | {"front": body["front"][:0]}), encoding="utf-8")
    with pytest.raises(RunError, match="comes to another result: front differ"):
        fit(None, run_dir=plain, resume=True, model=unasked)
