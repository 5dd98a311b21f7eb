"""A program that a run trains is called only from where the run is known; elsewhere such calls are noticed."""

from __future__ import annotations

import contextvars
import copy
import dataclasses
import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from textgrad_engine import func, nn, optim, use_models
from textgrad_engine.errors import DispatchError
from textgrad_engine.nn.trained import TRAINED, WATCHED, trained, watched
from textgrad_engine.testing import FunctionModel, feedback_for
from textgrad_engine.train import Trainer, evaluate

ROWS = [{"word": word, "target": word.upper()} for word in ("ant", "bee", "cat", "dog")]

Ask = Callable[[nn.Module, str], Any]


def in_a_pool(chat: nn.Module, word: str) -> Any:
    with ThreadPoolExecutor(2) as pool:
        return pool.submit(lambda: chat(word=word)).result()


def in_a_pool_that_is_told(chat: nn.Module, word: str) -> Any:
    with ThreadPoolExecutor(2) as pool:
        return pool.submit(contextvars.copy_context().run, lambda: chat(word=word)).result()


def in_pmap(chat: nn.Module, word: str) -> Any:
    (answer,) = func.pmap(lambda each: chat(word=each))([word])
    return answer


class Program(nn.Module):
    def __init__(self, ask: Ask, model: FunctionModel | None = None) -> None:
        super().__init__()
        system = nn.Parameter("Repeat.", role="system prompt")
        self.chat = nn.ChatCompletion("{word}", system=system, model=model)
        self._ask = ask

    def forward(self, word: str) -> Any:
        return self._ask(self.chat, word)


@pytest.fixture
def model() -> FunctionModel:
    """A program that says again what it is told, and a critic that finds nothing wrong with that."""
    nothing = {"case_1": {"system": ""}}
    return FunctionModel(lambda request: request.messages[-1].text if request.purpose == "forward" else nothing)


@pytest.mark.parametrize("kind", ["TGD", "PatchSearch"])
def test_a_pool_that_was_not_told_of_the_run_is_refused(model: FunctionModel, kind: str) -> None:
    """At the first example, with the repair; such a pool would spend without limit, and see no candidate."""
    program = Program(in_a_pool, model)  # with use_models alone the pool would not even know the model
    with use_models(forward=model), pytest.raises(DispatchError, match=r"ChatCompletion was called .* func\.pmap\("):
        Trainer().fit(program, nn.ExactMatch(), getattr(optim, kind)(program.parameters()), ROWS[:2], ROWS[2:])
    assert model.requests == []
    assert TRAINED == {}
    assert in_a_pool(nn.ChatCompletion("{word}", model=model), "ant").data == "ant"


FORKS = """
import contextvars, os
from textgrad_engine import nn
from textgrad_engine.errors import DispatchError
from textgrad_engine.nn.trained import trained
from textgrad_engine.testing import FunctionModel

chat = nn.ChatCompletion("{word}", model=FunctionModel(lambda request: request.messages[-1].text))

def told(call):
    try:
        return call()
    except DispatchError as error:
        return str(error)

def child(ask):
    pid = os.fork()
    if not pid:
        print(ask(), flush=True)
        os._exit(0)
    os.waitpid(pid, 0)

def train():
    with trained(chat):
        return "trained"

outside = contextvars.copy_context()
with trained(chat):
    child(lambda: told(lambda: chat(word="a").data))
    outside.run(child, lambda: told(lambda: chat(word="b").data) + " " + told(train))
    print(chat(word="c").data)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_in_a_process_that_the_program_forks_its_calls_are_refused() -> None:
    """They would be outside of the run's budget, and wait for locks of its threads; who serves it beside may go on."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKS], capture_output=True, text=True, timeout=60)
    refused, *others = done.stdout.splitlines()
    assert refused.startswith("ChatCompletion was called in a process that was forked in the run that trains it"), done
    assert "use func.pmap(part)(items)" in refused
    assert others == ["b trained", "c"]


@pytest.mark.parametrize("ask", [in_a_pool_that_is_told, in_pmap])
def test_threads_that_inherit_the_context_may_call_it(model: FunctionModel, ask: Ask) -> None:
    """They are counted, and see the texts that are tried."""
    seen = set()

    def answer(request: Any) -> Any:
        if request.purpose == "forward":
            seen.add(request.messages[0].text)
            return request.messages[-1].text
        if request.purpose == "backward":
            return feedback_for(request, "Say to shout.")
        return {"edits": [{"op": "add", "line": 1, "text": "SHOUT", "reason": "asked for", "feedback": [1]}]}

    program = Program(ask)
    with use_models(forward=FunctionModel(answer)):
        result = Trainer(max_steps=2).fit(
            program, nn.ExactMatch(), optim.PatchSearch(program.parameters()), ROWS[:2], ROWS[2:]
        )
    assert result.usage["forward"].calls >= 4
    assert "Repeat.\nSHOUT" in seen


def test_beside_a_run_a_copy_may_be_called_and_the_program_looked_at(model: FunctionModel) -> None:
    """Another thread, such as one that serves the program: its texts change under it while they are trained."""
    program = Program(lambda chat, word: chat(word=word), model)
    own = copy.deepcopy(program)
    found: list[Any] = []

    def beside() -> None:
        try:
            found.append(program("ant").data)
        except DispatchError as error:
            found.append(str(error))
        found.extend([own("ant").data, str(program.chat.system.data), len(list(program.parameters()))])

    with trained(program), trained(program):
        thread = threading.Thread(target=beside)
        thread.start()
        thread.join()
        assert program("ant").data == "ant"
    assert "copy.deepcopy(program)" in found[0]
    assert found[1:] == ["ant", "Repeat.", 1]
    beside()
    assert found[4] == "ant"
    assert TRAINED == {}


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "textgrad_engine.nn.trained"]


def test_two_runs_do_not_train_one_program_at_once(model: FunctionModel) -> None:
    """Each would score texts that the other has written; runs after each other, and inside of each other, may."""
    program, part = Program(in_pmap), nn.Sequential()
    with trained(program), ThreadPoolExecutor(1) as pool:

        def fit() -> Any:
            with use_models(forward=model):
                return Trainer().fit(program, nn.ExactMatch(), optim.TGD(program.parameters()), ROWS[:2], ROWS[2:])

        with pytest.raises(DispatchError, match="another run trains this Program now; wait for its end"):
            pool.submit(fit).result()
        assert fit().status == "finished"

    def of_another_program() -> None:
        with trained(nn.Sequential(part)):
            pass

    with trained(nn.Sequential(part)), ThreadPoolExecutor(1) as pool:  # they may have one part
        pool.submit(of_another_program).result()


def test_of_two_runs_that_begin_at_the_same_moment_one_is_refused() -> None:
    """As by two threads that are started in a loop: neither is there yet when the other one looks."""
    both = threading.Barrier(2, timeout=60)

    class Slow(nn.Module):
        def modules(self) -> Any:
            both.wait()
            return super().modules()

    program, refused = Slow(), list[DispatchError]()

    def run(_: int) -> None:
        try:
            with trained(program):
                both.wait()
        except DispatchError as error:
            refused.append(error)
            both.wait()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run, range(2)))
    assert len(refused) == 1
    assert not TRAINED


def test_a_pool_inside_an_evaluation_is_told_of_once(model: FunctionModel, caplog: pytest.LogCaptureFixture) -> None:
    """It goes on, as a service may be evaluated while it serves, and the log says what does not reach the pool."""
    program = Program(in_a_pool, model)
    for _ in range(2):
        assert evaluate(program, ROWS, nn.ExactMatch()).mean == 0.0
    (said,) = warnings_of(caplog)
    assert said.startswith("evaluate(Program): parts of the program were called in threads that do not belong to it (")
    assert "(ChatCompletion: 4)" in said
    assert "func.pmap(part)(items)" in said
    assert WATCHED == {}


def test_a_pool_inside_is_told_of_where_that_is_why_it_failed(caplog: pytest.LogCaptureFixture) -> None:
    """The pool knows nothing of `use_models`, and the error alone does not say why."""
    with use_models(forward=FunctionModel(lambda request: "x")), pytest.raises(Exception, match="model"):
        evaluate(Program(in_a_pool), ROWS, nn.ExactMatch())
    assert len(warnings_of(caplog)) == 1


def test_a_pool_sees_none_of_the_texts_of_a_functional_call(
    model: FunctionModel, caplog: pytest.LogCaptureFixture
) -> None:
    """It would be measured with the same old texts."""
    program = Program(in_a_pool, model)
    for _ in range(2):
        assert func.functional_call(program, {"chat.system": "Shout."}, word="ant").data == "ant"
    assert {request.messages[0].text for request in model.requests} == {"Repeat."}
    (said,) = warnings_of(caplog)
    assert said.startswith("functional_call(Program): ")


@pytest.mark.parametrize("ask", [in_a_pool_that_is_told, in_pmap, lambda chat, word: chat(word=word)])
def test_what_inherits_the_context_is_no_stranger(
    model: FunctionModel, caplog: pytest.LogCaptureFixture, ask: Ask
) -> None:
    """Nor is what is asked of a copy, or of other modules."""
    program = Program(ask, model)
    evaluate(program, ROWS, nn.ExactMatch())
    func.functional_call(program, {"chat.system": "Shout."}, word="ant")
    evaluate(lambda word: program(word), ROWS, nn.ExactMatch())
    assert warnings_of(caplog) == []


def test_whoever_uses_the_program_as_a_whole_beside_an_evaluation_is_no_stranger(
    model: FunctionModel, caplog: pytest.LogCaptureFixture
) -> None:
    """The threads of a server, that of another evaluation, and what they start; whichever ends first."""
    program = Program(in_pmap, model)

    def serve() -> None:
        for _ in range(3):
            program(word="ant")
        evaluate(program, ROWS, nn.ExactMatch())

    with watched(program, "evaluate"), ThreadPoolExecutor(1) as server:
        server.submit(serve).result()
        with watched(program, "evaluate"):
            server.submit(serve).result()
            server.submit(program, word="bee").result()
        server.submit(program, word="cat").result()
    server = ThreadPoolExecutor(1)
    server.submit(program, word="dog").result()
    with watched(program, "evaluate"):
        server.submit(program, word="dog").result()
    server.shutdown()
    assert warnings_of(caplog) == []
    assert WATCHED == {}


def test_a_run_refuses_what_an_evaluation_tells_of(model: FunctionModel, caplog: pytest.LogCaptureFixture) -> None:
    """And says it once."""
    program = Program(in_a_pool, model)
    with trained(program), pytest.raises(DispatchError, match="knows nothing of the run"):
        evaluate(program, ROWS, nn.ExactMatch())
    assert warnings_of(caplog) == []


def test_a_call_of_the_program_that_was_under_way_before_is_no_stranger(
    model: FunctionModel, caplog: pytest.LogCaptureFixture
) -> None:
    """A server answers a request while an evaluation begins, and asks a part after that."""
    begun, goes_on = threading.Event(), threading.Event()

    def wait_and_ask(chat: nn.Module, word: str) -> Any:
        begun.set()
        assert goes_on.wait(10)
        return chat(word=word)

    program = Program(wait_and_ask, model)
    with ThreadPoolExecutor(1) as server:
        answer = server.submit(program, word="ant")
        assert begun.wait(10)
        with watched(program, "evaluate"):
            goes_on.set()
            assert answer.result().data == "ant"
    assert warnings_of(caplog) == []


def test_evaluations_at_once_of_a_pool_are_told_of_once(model: FunctionModel, caplog: pytest.LogCaptureFixture) -> None:
    program = Program(in_a_pool, model)
    with watched(program, "evaluate"), watched(program, "evaluate"):
        program(word="ant")
    assert len(warnings_of(caplog)) == 1


def test_a_program_that_cannot_be_hashed_is_watched_too(model: FunctionModel, caplog: pytest.LogCaptureFixture) -> None:
    """As a dataclass is."""

    @dataclasses.dataclass
    class Repeat(nn.Module):
        model: FunctionModel

        def __post_init__(self) -> None:
            nn.Module.__init__(self)
            self.chat = nn.ChatCompletion("{word}", model=self.model)

        def forward(self, word: str) -> Any:
            return in_a_pool(self.chat, word)

    program = Repeat(model)
    for _ in range(2):
        assert evaluate(program, ROWS, nn.ExactMatch()).mean == 0.0
    assert len(warnings_of(caplog)) == 1


def test_a_thread_that_served_an_evaluated_program_does_not_keep_it(model: FunctionModel) -> None:
    program = Program(in_pmap, model)
    gone = weakref.ref(program)
    with ThreadPoolExecutor(1) as server:
        with watched(program, "evaluate"):
            server.submit(program, word="ant").result()
        del program
        gc.collect()
        assert gone() is None
