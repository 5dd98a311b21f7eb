from __future__ import annotations

import asyncio
import weakref
from concurrent.futures import Future
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import textgrad_engine as tg
from textgrad_engine import Variable, func, nn, ops
from textgrad_engine.testing import FunctionModel

from ..values import said, wanting

OPERATIONS: dict[str, Any] = {
    "add": ops.add,
    "sum": lambda a, b: ops.sum([a, b]),
    "join": lambda a, b: ops.join([a, b], "+"),
    "separator": lambda a, b: ops.join(["<", a, ">"], b),
    "format": lambda a, b: ops.format("{x} of {y}", x=a, y=b),
}
EVERY = pytest.mark.parametrize("name", sorted(OPERATIONS))


@EVERY
def test_batches_of_different_sizes_are_refused_by_name(name: str) -> None:
    """Entries are never dropped, and never stand for one another."""
    operation = {"separator": "join"}.get(name, name)
    with pytest.raises(ValueError, match=rf"{operation}: batches of \d and \d entries do not fit together"):
        OPERATIONS[name](Variable(["a", "b"]), Variable(["x", "y", "z"]))


def test_a_batch_is_not_split() -> None:
    """Its entries may have different numbers of pieces; the message says what to do."""
    with pytest.raises(TypeError, match=r"split: got a batch of 2 entries.*func\.vmap"):
        ops.split(Variable(["a b", "c"]))
    assert [part.data for part in func.vmap(ops.split)(["a b", "c d"])] == [["a", "c"], ["b", "d"]]


def test_an_entry_that_the_template_has_no_slot_for_is_an_error() -> None:
    """Also where only one of the templates lacks it."""
    with pytest.raises(ValueError, match=r"format: the template has no \{x\}"):
        ops.format(Variable(["{x}", "{y}"]), x="1")


@EVERY
def test_a_batch_goes_entry_by_entry(name: str) -> None:
    """As a loop over the entries would; a list is never written out as text."""
    operation = OPERATIONS[name]
    loop = [operation(Variable(x), Variable(y)).data for x, y in zip(["a", "b"], ["x", "y"])]
    assert operation(Variable(["a", "b"]), Variable(["x", "y"])).data == loop
    assert operation(Variable(["a", "b"]), "y").data == [operation(x, "y").data for x in ("a", "b")]
    assert operation("a", Variable(["x", "y"])).data == [operation("a", y).data for y in ("x", "y")]


@EVERY
def test_batches_of_batches_go_entry_by_entry_too(name: str) -> None:
    """A row goes together with each row, a text with each text."""
    operation, rows = OPERATIONS[name], [["a", "b"], ["c", "d"]]
    assert operation(Variable(rows), "!").data == [[operation(x, "!").data for x in row] for row in rows]
    both = [[operation(x, y).data for x in row] for row, y in zip(rows, "xy")]
    assert operation(Variable(rows), Variable(["x", "y"])).data == both


def test_numbers_of_batches_add_up_entry_by_entry() -> None:
    """A matrix of scores and a row of them."""
    assert ops.sum([Variable([[1, 2], [3, 4]]), Variable([10, 20]), 100]).data == [[111, 112], [123, 124]]


@EVERY
def test_feedback_on_a_batch_is_the_batchs_own(name: str) -> None:
    """A batch hears the list; what is the same for all hears each text, in order, and no empty ones."""
    batch, shared = wanting(["a", "b", "c"]), wanting("x")
    OPERATIONS[name](batch, shared).backward(["first", "", "third"])
    assert said(batch) == [["first", "", "third"]]
    assert said(shared) == ["first", "third"]


@EVERY
def test_feedback_through_an_operation_on_batches_is_that_of_vmap(name: str) -> None:
    """A batch, and a function of one example mapped over it, are two ways to say one thing."""
    operation = OPERATIONS[name]

    def feedback(work: Any) -> Any:
        shared, batch = wanting("p"), wanting(["a", "b", "c"])
        result = work(shared, batch)
        result.backward(["first", "", "third"])
        return result.data, said(shared), said(batch)

    assert feedback(operation) == feedback(func.vmap(operation, in_dims=(None, 0)))


def test_one_text_for_a_batch_is_about_every_entry() -> None:
    """What is the same for all hears it as often as there are entries, as from a loop."""
    batch, shared = wanting(["a", "b"]), wanting("x")
    (batch + shared).backward("shorter")
    assert (said(batch), said(shared)) == (["shorter"], ["shorter", "shorter"])


def test_feedback_on_rows_reaches_a_row_and_a_single_value() -> None:
    """Each hears what is said about the entries that it went into."""
    matrix, row, single = wanting([["a", "b"], ["c", "d"]]), wanting(["x", "y"]), wanting("!")
    ops.join([matrix, row, single]).backward([["1", "2"], ["", "4"]])
    assert said(matrix) == [[["1", "2"], ["", "4"]]]
    assert said(row) == [["1\n2", "4"]]
    assert said(single) == ["1", "2", "4"]


def test_losses_of_some_entries_begin_a_pass_at_these() -> None:
    """The start of a pass goes the way of words."""
    texts, offset = wanting(["right", "wrong"]), wanting(1)
    scores = ops.exact_match_evaluator(texts, "right", reduction_fn=None)[0]
    ops.sum([scores + offset]).backward()
    assert [bool(text) for text in said(texts)[0]] == [False, True]
    assert said(offset) == []


def test_a_batch_that_is_still_computed_goes_the_same_way() -> None:
    """Whether a value is there already makes no difference to what is said to whom."""
    gate: Future[None] = Future()

    class Later(tg.Function):
        @staticmethod
        async def forward(text: Any) -> Variable:
            await asyncio.wrap_future(gate)
            return Variable(["a", "b"])

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, grad_out: Variable) -> Any:
            return f"{grad_out.data}"

    batch, shared = wanting("x"), wanting("p")
    whole = ops.join([shared, Later.apply(batch)])
    assert not whole.done()
    gate.set_result(None)
    whole.backward(["first", "second"])
    assert whole.data == ["pa", "pb"]
    assert said(shared) == ["first", "second"]


def test_a_result_that_is_still_computed_is_known_to_be_a_batch() -> None:
    """So that a model is asked once for each entry of it."""
    with tg.use_models(forward=FunctionModel(lambda request: request.messages[-1].text.upper())):
        answers = ops.chat_completion(None, [{"role": "user", "content": Variable(["a", "b"])}])
        prompt = ops.format("{x}{y}", x=ops.join([answers, "-"]), y=ops.sum([answers]))
        again = ops.chat_completion(None, [{"role": "user", "content": prompt}])
        assert again.data == ["A-A", "B-B"]


def test_additions_keep_nothing_of_what_they_added() -> None:
    """A long chain of growing texts would hold them all."""
    first = nn.Parameter("a") + "b"
    held = weakref.ref(first)
    second = first + "c"
    del first
    assert held() is None
    second.backward("f")


batches = st.lists(st.text("ab", max_size=2), min_size=1, max_size=3)


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(sorted(OPERATIONS)), batches, st.text("xy", max_size=2), st.data())
def test_a_batch_is_the_loop_over_its_entries(name: str, entries: list[str], single: str, data: Any) -> None:
    """Values and feedback, on the batch and on what is the same for all."""
    words = data.draw(st.lists(st.sampled_from(["", "one", "two"]), min_size=len(entries), max_size=len(entries)))
    batch, shared = wanting(entries), wanting(single)
    whole = OPERATIONS[name](batch, shared)
    whole.backward(words)
    leaves, one = [wanting(entry) for entry in entries], wanting(single)
    loop = [OPERATIONS[name](leaf, one) for leaf in leaves]
    tg.backward(loop, words)
    assert whole.data == [value.data for value in loop]
    assert said(shared) == said(one)
    assert [text for item in said(batch) for text in item if text] == [text for leaf in leaves for text in said(leaf)]
