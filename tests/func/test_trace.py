from __future__ import annotations

import importlib
import threading
import unicodedata
from types import SimpleNamespace
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import func, nn, ops
from textgrad_engine.autograd import Layer
from textgrad_engine.errors import ServerFailed
from textgrad_engine.llm import RetryPolicy, meter, resolve
from textgrad_engine.testing import FunctionModel


class Logger(Layer):
    """A layer of a user's."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def process(self, function: type[tg.Function], args: tuple[Any, ...]) -> Any:
        self.seen.append(function.__name__)
        return super().process(function, args)


def names(log: func.Trace) -> list[str]:
    return [record.function for record in log.records]


def test_an_operation_that_fails_is_in_the_log() -> None:
    """With its error; the exception goes on as it would."""
    with func.trace() as log:
        with pytest.raises(TypeError, match="do not add up"):
            ops.add("a", 1)
        ops.add("a", "b")
    failed, fine = log.records
    assert failed.error.startswith("TypeError: add: text and number")
    assert (failed.outputs, failed.inputs, fine.error, fine.outputs) == ((), ("a",), "", ("ab",))


def test_a_call_that_fails_later_is_in_the_log_and_what_depends_on_it(chat: Any) -> None:
    """Reading the records raises nothing."""

    def answer(request: Any) -> str:
        raise ServerFailed("the model is down", status=500)

    with (
        tg.use_models(forward=resolve(FunctionModel(answer), policy=RetryPolicy(max_attempts=1))),
        func.trace() as log,
    ):
        result = chat("P", "x") + "!"
    asked, added = log.records
    assert (asked.error, asked.calls) == ("ServerFailed: the model is down", 1)
    assert (added.inputs, added.outputs, added.error) == (("<failed>", "!"), (), asked.error)
    assert "the model is down" in str(log)
    with pytest.raises(ServerFailed):
        result.data  # noqa: B018


def test_the_log_ends_with_its_block_also_by_an_exception() -> None:
    """What ran is kept; what comes after is not seen."""
    log = func.trace()
    with pytest.raises(KeyError), log:
        raise KeyError(ops.add("a", "b"))
    ops.add("c", "d")
    assert [record.outputs for record in log.records] == [("ab",)]


def test_what_ran_is_written_down_in_order(model: FunctionModel, chat: Any) -> None:
    """Name, role, what went in and came out, calls and tokens, as far as it is known when it is there."""
    with func.trace() as log, meter() as used:
        answer = chat(nn.Parameter("Echo.", role="system prompt"), "hello")
        ops.exact_match_evaluator(answer, "HELLO")
    asked, scored = log.records
    assert (asked.function, asked.role) == ("ChatCompletion", "answer of the model to the system prompt")
    assert (asked.inputs, asked.outputs) == (("Echo.", "hello"), ("HELLO",))
    assert (asked.calls, asked.tokens) == (1, used.total.total_tokens)
    assert asked.tokens > 0
    assert asked.seconds >= 0
    assert scored.role.split(", ")[0] == "score of the answer of the model to the system prompt"
    assert (scored.inputs, scored.outputs, scored.calls, scored.tokens) == (("HELLO", "HELLO"), ("1", ""), 0, 0)


def test_inputs_are_shown_as_they_were() -> None:
    """A value that is edited later is logged with what it was."""
    draft = tg.Variable("before")
    with func.trace() as log:
        draft + "!"
        draft.data = "after"
    assert log.records[0].inputs == ("before", "!")


def test_an_operation_does_not_count_the_time_it_waits_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds run from when the inputs are there, on a clock that the models move on."""
    now = [0.0]
    clock = SimpleNamespace(perf_counter=lambda: now[0])
    monkeypatch.setattr(importlib.import_module("textgrad_engine.func.trace"), "time", clock)

    def taking(seconds: float) -> FunctionModel:
        def answer(request: Any) -> str:
            now[0] += seconds
            return "fine"

        return FunctionModel(answer)

    with func.trace() as log:
        first = ops.chat_completion(taking(5.0), [{"role": "user", "content": "x"}])
        ops.chat_completion(taking(2.0), [{"role": "user", "content": first}])
    assert [record.seconds for record in log.records] == [5.0, 2.0]


def test_reading_waits_for_what_is_pending() -> None:
    """The records are complete whenever they are read."""
    released = threading.Event()

    class Later(tg.Function):
        @staticmethod
        async def forward() -> tg.Variable:
            return tg.Variable("there", role="late")

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ...

    with func.trace() as log:
        Later.apply()
        released.set()
        assert log.records[0].outputs == ("there",)
        assert log.records[0].role == "late"


def test_a_backward_pass_inside_the_block_is_shown(model: FunctionModel, loss: Any) -> None:
    """What it asks the critic, with its cost."""
    prompt = nn.Parameter("P", role="prompt")
    value = loss(prompt, "x", "y")
    with func.trace() as log:
        value.backward()
    assert names(log) == ["Compute", "ChatCompletion", "Extract"]
    assert [record.calls for record in log.records] == [0, 1, 0]
    assert log.records[-1].outputs == (prompt.grad[0].data,)


def test_the_place_on_the_stack_decides_what_is_seen(model: FunctionModel, loss: Any) -> None:
    """Around vmap: each example. Inside: one operation for the batch, with the calls of all of them."""
    with func.trace() as around:
        inside = func.trace()

        def traced(text: Any) -> Any:
            with inside:
                return loss("P", text, "A")

        func.vmap(traced)(["a", "b"])
    assert names(around) == ["ChatCompletion"] * 2 + ["_ExactMatch"] * 2 + ["Stack"]
    assert names(inside) == ["ChatCompletion", "_ExactMatch"]
    batch = inside.records[0]
    assert (batch.inputs, batch.outputs, batch.calls) == (("P", "['a', 'b']"), ("['A', 'B']",), 2)
    assert inside.records[1].outputs == ("[1, 0]", inside.records[1].outputs[1])
    assert batch.tokens == sum(record.tokens for record in around.records)


def test_every_level_shows_plain_values(model: FunctionModel, chat: Any) -> None:
    """Inside grad, jvp and both; the log changes nothing about the results."""
    log = func.trace()

    def program(text: Any) -> Any:
        with log:
            return ops.exact_match_evaluator(chat("P", text), "y")[0]

    plain = func.grad(lambda text: ops.exact_match_evaluator(chat("P", text), "y")[0])("x")
    _, change = func.jvp(lambda text: func.grad(program)(text), ("x",), ("z",))
    assert change.data
    assert names(log)[:2] == ["ChatCompletion", "_ExactMatch"]
    assert log.records[0].inputs == ("P", "x")
    assert func.grad(program)("x").data == plain.data


def test_a_layer_in_the_middle_sees_exactly_what_passes_its_level(model: FunctionModel, loss: Any) -> None:
    """Above it: what the program calls. Below it: what the level above made of it. Not what the one below does."""
    logger, above, below = Logger(), func.trace(), func.trace()

    def program(text: Any) -> Any:
        with above:
            return loss("P", text, "A") + 0

    with below:
        with logger:
            func.vmap(program)(["a", "b"])
        mapped = func.vmap(lambda text: logged(logger, text))
        seen = list(logger.seen)
        mapped(["c", "d"])
    assert names(above) == ["ChatCompletion", "_ExactMatch", "Add"]
    assert seen == [name for name in names(above) for _ in range(2)] + ["Stack"]
    assert names(below)[: len(seen)] == seen
    assert logger.seen[len(seen) :] == ["Add"]
    assert names(below)[len(seen) :] == ["Add", "Add", "Stack"]


def logged(logger: Logger, text: Any) -> Any:
    with logger:
        return text + "!"


def test_an_active_trace_is_not_entered_twice() -> None:
    """One that is over may be: it goes on where it was."""
    log = func.trace()
    with log:
        with pytest.raises(RuntimeError, match="active already"), log:
            pass
        ops.add("a", "b")
    with log:
        ops.add("c", "d")
    assert [record.outputs for record in log.records] == [("ab",), ("cd",)]


def test_traces_around_each_other_count_the_same_calls(model: FunctionModel, chat: Any) -> None:
    """Each for itself."""
    with func.trace() as outer, func.trace() as inner:
        chat("P", "x")
    chat("Q", "y")
    assert [record.calls for record in outer.records] == [record.calls for record in inner.records] == [1]


def test_threads_of_pmap_write_to_the_log(model: FunctionModel, chat: Any) -> None:
    """They have the caller's layers; each operation counts its own calls."""
    with func.trace() as log:
        func.pmap(lambda text: chat("P", text).data)([f"text {number}" for number in range(8)])
    assert {record.outputs for record in log.records} == {(f"TEXT {number}",) for number in range(8)}
    assert [record.calls for record in log.records] == [1] * 8


def test_what_runs_at_the_same_time_is_in_the_log_item_by_item() -> None:
    """Whichever thread was first; and between what came before and what comes after."""
    second = threading.Barrier(3, timeout=60)

    def inner(text: str) -> None:
        ops.add(text, "!")

    def work(number: int) -> None:
        for turn in reversed(range(3)):
            if turn == number:
                func.pmap(inner, concurrency=1)([f"{number}a", f"{number}b"])
                ops.add(str(number), ".")
            second.wait()

    with func.trace() as log:
        ops.add("before", "!")
        func.pmap(work)(range(3))
        ops.add("after", "!")
        func.pmap(work)(range(3))
    items = [text for number in range(3) for text in (f"{number}a!", f"{number}b!", f"{number}.")]
    assert [record.outputs[0] for record in log.records] == ["before!", *items, "after!", *items]


def test_the_passes_of_a_jacrev_are_in_the_log_output_by_output() -> None:
    """They go at the same time; the log is that of one after the other."""
    may_go = [threading.Event() for _ in range(4)]
    may_go[-1].set()

    class LastFirst(tg.Function):
        @staticmethod
        def forward(text: Any, number: int) -> tg.Variable:
            return tg.Variable(f"{text.data} {number}")

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.number = inputs[1]

        @staticmethod
        def backward(ctx: Any, grad_out: tg.Variable) -> Any:
            assert may_go[ctx.number].wait(60)
            said = ops.add(grad_out, f" of {ctx.number}")
            may_go[ctx.number - 1].set()
            return said, None

    def losses(prompt: Any) -> list[Any]:
        return [ops.exact_match_evaluator(LastFirst.apply(prompt, number), "z")[0] for number in range(4)]

    with func.trace() as log:
        func.jacrev(losses)("P")
    said = [record.inputs[1] for record in log.records if record.inputs[1:] and record.inputs[1].startswith(" of ")]
    assert said == [" of 0", " of 1", " of 2", " of 3"]


def cells(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else not unicodedata.combining(c) for c in line)


TEXTS = ["x", "a long text " * 200, "寿司" * 300, "e\u0301" * 100, "\x1b[31mred\n\n\t\0\u202e", ""]


@pytest.mark.usefixtures("no_backoff")  # an empty text is answered with nothing
@pytest.mark.parametrize("text", TEXTS)
def test_the_table_fits_eighty_columns(text: str, model: FunctionModel, chat: Any) -> None:
    """Whatever is in it: three plain lines an operation, between a head and a total."""
    with func.trace() as log:
        chat(tg.Variable(text, role=text[:500]), text)
        ops.join([text, text, text, text])
    lines = str(log).split("\n")
    assert len(lines) == 1 + 2 * 3 + 1
    assert max(map(cells, lines)) <= 80
    assert all(character.isprintable() for line in lines for character in line)
    assert lines[0].split() == ["#", "function", "result", "calls", "tokens", "seconds"]
    assert lines[-1].split()[:3] == ["total", "2", "operations"]
    assert repr(log) == "<Trace of 2 operations>"


def test_excerpts_are_bounded() -> None:
    """A log of a long run does not keep every document."""
    with func.trace() as log:
        ops.add("x" * 10_000, "")
    assert log.records[0].outputs[0] == "x" * 500 + "… (9,500 more characters)"


def test_an_empty_log() -> None:
    """A table all the same."""
    with func.trace() as log:
        pass
    assert log.records == []
    assert len(str(log).split("\n")) == 2
