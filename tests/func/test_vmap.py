from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
from collections import OrderedDict, defaultdict
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pytest

import textgrad_engine as tg
from textgrad_engine import func, llm, nn, ops
from textgrad_engine.autograd import example
from textgrad_engine.errors import AutogradError
from textgrad_engine.testing import FunctionModel, feedback_for


def matches(text: Any, target: Any) -> tg.Variable:
    return ops.exact_match_evaluator(text, target)[0]


def shout(text: Any) -> tg.Variable:
    return text + "!"


class Pair(NamedTuple):
    x: Any
    y: Any


class Plain(tg.Function):
    """Counts how often its forward runs; the base of the Functions below."""

    runs: ClassVar[list[Any]] = []

    @staticmethod
    def forward(text: Any, end: Any) -> tg.Variable:
        Plain.runs.append(text.data)
        return tg.Variable(text.data + str(end), role="result")

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.inputs = inputs

    @staticmethod
    def backward(ctx: Any, grad_out: tg.Variable) -> Any:
        return grad_out, grad_out


class Ruled(Plain):
    """Its own rule sees whole batches."""

    asked: ClassVar[list[Any]] = []

    @staticmethod
    def vmap(info: func.VmapInfo, in_dims: Any, text: Any, end: Any) -> Any:
        Ruled.asked.append((info.batch_size, info.randomness, in_dims))
        return tg.Variable([f"{entry}{end} by rule" for entry in text.data], role="result"), 0


class Refusing(Plain):
    generate_vmap_rule = False


class Contradicting(Ruled):
    generate_vmap_rule = True


class OldStyle(tg.Function):
    @staticmethod
    def forward(ctx: Any, text: Any) -> tg.Variable:
        return tg.Variable(str(text))


@pytest.fixture(autouse=True)
def nothing_has_run() -> None:
    Plain.runs.clear()
    Ruled.asked.clear()


@pytest.mark.parametrize(
    ("in_dims", "args", "problem"),
    [
        ((0,), (["a"], ["b"]), r"in_dims names 1 arguments, and the call has 2"),
        (1, (["a"],), r"argument 0: in_dims may be 0 or None \(text has one batch axis\), got 1"),
        (True, (["a"],), r"in_dims may be 0 or None"),
        (None, (["a"],), r"at least one batched argument, and in_dims names none"),
        (0, (["a", "b"], ["c"]), r"batches of one size, got sizes \[2, 1\]"),
        (0, ([],), r"the batch is empty"),
        (0, (tg.Variable([]),), r"the batch is empty"),
        (0, (tg.Variable([]), ["a"]), r"batches of one size, got sizes \[0, 1\]"),
        (0, ("text",), r"argument 0: in_dims says it is a batch, and it is str 'text'.*pass None in in_dims"),
        (0, (tg.Variable("text"),), r"argument 0: in_dims says it is a batch, and its data is str 'text'"),
        (({"a": 0},), ({"b": ["x"]},), r"argument 0: in_dims has the shape \{'a': 0\}, and the argument is \{'b'"),
        (0, ({"a": ["x", "y"], "b": ["z"]},), r"batches of one size, got sizes \[2, 1\]"),
        (0, ([{"a": "x"}, {"b": "y"}],), r"argument 0: the examples of a batch have one shape"),
        (0, ([Pair("x", "y"), ("x", "y")],), r"argument 0: the examples of a batch have one shape"),
        ((Pair(0, 0),), ((["x"], ["y"]),), r"argument 0: in_dims has the shape Pair\(x=0, y=0\)"),
        (((0,),), (Pair(["x"], ["y"]),), r"argument 0: in_dims has the shape \(0,\)"),
        (({"a": 0},), (defaultdict(list, a=["x"]),), r"argument 0: in_dims has the shape \{'a': 0\}"),
        (0, (defaultdict(list, a=["x"]),), r"argument 0: in_dims says it is a batch, and it is defaultdict"),
        (
            0,
            ([None],),
            r"argument 0: an entry of a batch is a text, a number or a Variable .* got NoneType None; func.pmap runs",
        ),
    ],
)
def test_arguments_that_do_not_fit_quote_the_call(in_dims: Any, args: Any, problem: str) -> None:
    """Everything is checked before anything runs; the message begins with what the user wrote."""
    call = f"vmap(shout, in_dims={in_dims!r})(<inputs>): "
    with pytest.raises(AutogradError, match=re.escape(call)) as caught:
        func.vmap(shout, in_dims)(*args)
    assert re.search(problem, str(caught.value))


@pytest.mark.parametrize("out_dims", [1, (0, 0), True])
def test_out_dims_that_do_not_fit_quote_the_call(out_dims: Any) -> None:
    """Also when it is the result that does not fit."""
    with pytest.raises(AutogradError, match=r"vmap\(shout, in_dims=0\)\(<inputs>\): out_dims"):
        func.vmap(shout, out_dims=out_dims)(["a"])


def test_an_output_that_differs_is_not_the_same_for_all() -> None:
    """out_dims=None for it would drop all examples but one."""
    with pytest.raises(AutogradError, match="out_dims is None for an output that differs between examples"):
        func.vmap(shout, out_dims=None)(["a", "b"])


def test_a_result_that_is_no_variable_is_refused() -> None:
    """It names what came."""
    with pytest.raises(AutogradError, match=r"expected Variables .* got int 3"):
        func.vmap(lambda text: 3)(["a"])


@pytest.mark.parametrize(
    "read", [lambda v: v.data, str, len, bool, lambda v: v.data if v else v, lambda v: f"{v}", lambda v: [*v.data]]
)
def test_reading_a_value_inside_says_what_to_do_instead(read: Any) -> None:
    """There is no one value: the call is quoted, and both ways out are named."""

    def looks(text: Any) -> Any:
        return tg.Variable(str(read(text)))

    with pytest.raises(AutogradError, match=r"vmap\(looks, in_dims=0\)\(<inputs>\): .* use func.pmap"):
        func.vmap(looks)(["a", "b"])


def test_settings_out_of_range_are_refused_at_once() -> None:
    """Before there is anything to run."""
    with pytest.raises(ValueError, match="must be 'error', 'same', 'different' or None, got 'maybe'"):
        func.vmap(shout, randomness="maybe")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="vmap: names must be a sequence of texts, or None, got 'ab'"):
        func.vmap(shout, names="ab")
    for size in ("2", 1.5, True):
        with pytest.raises(TypeError, match="vmap: chunk_size must be a whole number or None"):
            func.vmap(shout, chunk_size=size)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="chunk_size must be at least 1, got 0"):
        func.vmap(shout, chunk_size=0)


def test_a_function_that_refuses_a_rule_names_both_repairs() -> None:
    """Write one, or have it generated."""
    with pytest.raises(AutogradError, match=r"write a static method vmap\(info.*or set generate_vmap_rule = True"):
        func.vmap(lambda text: Refusing.apply(text, "!"))(["a"])


def test_a_function_with_a_rule_and_a_generated_one_is_refused() -> None:
    """Nobody could tell which runs."""
    with pytest.raises(AutogradError, match="has both a static method `vmap` and generate_vmap_rule = True"):
        func.vmap(lambda text: Contradicting.apply(text, "!"))(["a"])


def test_a_forward_that_takes_a_ctx_is_refused() -> None:
    """By the name of the repair; where nothing is batched, it may run."""
    with pytest.raises(AutogradError, match=r"OldStyle, which has no .*method setup_context\(ctx, inputs, output\)"):
        func.vmap(OldStyle.apply)(["a"])
    shared = tg.Variable("x")
    assert func.vmap(lambda text: text + OldStyle.apply(shared))(["a", "b"]).data == ["ax", "bx"]


@pytest.mark.parametrize("returned", ["no pair", (1, 2, 3)])
def test_a_rule_that_returns_no_pair_is_told_so(returned: Any) -> None:
    """The shape of the answer is named."""
    bad = type("Bad", (Plain,), {"vmap": staticmethod(lambda info, in_dims, *args: returned)})
    with pytest.raises(AutogradError, match=r"Bad.vmap returns a pair \(outputs, out_dims\)"):
        func.vmap(lambda text: bad.apply(text, "!"))(["a"])


@pytest.mark.parametrize(
    ("outputs", "dims", "problem"),
    [
        (1, (0,), r"has \(0,\) for it"),
        (1, 1, "has 1 for it"),
        (1, True, "has True for it"),
        (2, (0,), r"gave 2 outputs and out_dims \(0,\): expected 0, None, or a tuple"),
        (2, (0, None, 0), r"gave 2 outputs and out_dims \(0, None, 0\)"),
        (2, "00", "gave 2 outputs and out_dims '00'"),
        (2, (0, "x"), "has 'x' for it"),
    ],
)
def test_out_dims_of_a_rule_that_do_not_fit_are_named(outputs: int, dims: Any, problem: str) -> None:
    """A batch that was taken for one value would be wrong everywhere behind it."""

    def rule(info: Any, in_dims: Any, text: Any, end: Any) -> Any:
        return (text if outputs == 1 else (text,) * outputs), dims

    bad = type("Bad", (Plain,), {"vmap": staticmethod(rule)})
    with pytest.raises(AutogradError, match=rf"Bad\.vmap.*{problem}"):
        func.vmap(lambda text: bad.apply(text, "!"))(["a", "b"])


def test_out_dims_of_a_rule_may_stand_for_all_outputs_and_a_batch_may_be_a_list() -> None:
    """As in torch.func; None is one value for all."""

    def rule(dims: Any) -> Any:
        return staticmethod(lambda info, in_dims, text, end: (([f"{t}{end}" for t in text.data], text), dims))

    batched = type("Batched", (Plain,), {"vmap": rule(0)})
    first, second = func.vmap(lambda text: batched.apply(text, "!"))(["a", "b"])
    assert (first.data, second.data) == (["a!", "b!"], ["a", "b"])
    shared = type("Shared", (Plain,), {"vmap": staticmethod(lambda info, in_dims, *args: (tg.Variable("one"), None))})
    assert func.vmap(lambda text: shared.apply(text, "!"), out_dims=None)(["a", "b"]).data == "one"
    number = type("Number", (Plain,), {"vmap": staticmethod(lambda info, in_dims, *args: (3, 0))})
    with pytest.raises(AutogradError, match=r"Number\.vmap: expected a batch for an output, got int 3"):
        func.vmap(lambda text: number.apply(text, "!"))(["a"])


def test_a_number_of_outputs_that_differs_is_an_error() -> None:
    """Pieces of a text are as many as there are; a batch needs one number."""
    with pytest.raises(AutogradError, match=r"the number of outputs differs between examples: \[1, 2\]"):
        func.vmap(lambda text: ops.split(text, ","))(["a,b", "c"])


def test_a_value_kept_beyond_its_vmap_is_refused() -> None:
    """It is a batch of an operation that is over."""
    kept = []
    func.vmap(lambda text: kept.append(text) or shout(text))(["a"])
    with pytest.raises(AutogradError, match="inside vmap and was kept beyond it"):
        shout(kept[0])


def test_a_tool_that_meets_a_value_of_a_vmap_is_told_how_to_go_over_the_examples() -> None:
    """Texts of the agent behind a tool cannot be tried in a vmap: the tool is run below all transforms."""

    def answer(request: llm.Request) -> Any:
        if request.messages[0].role == "system" or request.messages[-1].role == "tool":
            return request.messages[0].text
        called = ({"id": "1", "type": "function", "function": {"name": "ask", "arguments": "{}"}},)
        return llm.Completion(text="", finish_reason="tool_calls", tool_calls=called)

    class Team(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = nn.ChatCompletion("{word}", system=nn.Parameter("Be kind."))
            self.chat = nn.ChatCompletion("{word}", tools=[self.ask])

        def ask(self) -> tg.Variable:
            """Ask it."""
            return self.part(word="a")

        def forward(self, text: Any) -> tg.Variable:
            return self.chat(word="b")

    def tried(text: Any) -> tg.Variable:
        return func.functional_call(Team(), {"part.system": text}, text)

    with (
        tg.use_models(forward=FunctionModel(answer)),
        pytest.raises(AutogradError, match=r"In a tool that a model calls .* func\.pmap"),
    ):
        func.vmap(tried)(["Be brief.", "Be long."]).data  # noqa: B018


def test_one_example_that_fails_fails_what_depends_on_it(loss: Any) -> None:
    """Reading raises what that call failed with."""

    def answer(request: Any) -> str:
        if request.messages[-1].text == "b":
            raise AssertionError("no answer for b")
        return "fine"

    with tg.use_models(forward=FunctionModel(answer)):
        scores = func.vmap(lambda text: loss("P", text, "fine"))(["a", "b"])
        with pytest.raises(AssertionError, match="no answer for b"):
            scores.data  # noqa: B018  reading is the test


@pytest.mark.parametrize("order", list(itertools.permutations("abcd")))
def test_of_several_examples_that_fail_the_first_is_told(loss: Any, order: tuple[str, ...]) -> None:
    """Whichever fails first; in values, and in the feedback of a pass."""
    ended: list[str] = []
    turns: dict[str, asyncio.Event] = {}

    async def answer(request: Any) -> str:
        text = request.messages[-1].text
        turns.setdefault(text, asyncio.Event())
        if len(turns) == len(order):
            turns[order[0]].set()
        async with asyncio.timeout(60):
            await turns[text].wait()
        ended.append(text)
        if (after := order.index(text) + 1) < len(order):
            turns[order[after]].set()
        if text in "bd":
            raise ConnectionError(f"no answer for {text}")
        return "fine"

    with tg.use_models(forward=FunctionModel(answer)):
        scores = func.vmap(lambda text: loss("P", text, "fine"))(list("abcd"))
        with pytest.raises(ConnectionError, match="no answer for b"):
            scores.data  # noqa: B018  reading is the test
        assert tuple(ended) == order[: len(ended)]
        turns.clear()
        told = func.vmap(func.grad(lambda prompt, text: loss(prompt, text, "fine")), (None, 0))
        with pytest.raises(ConnectionError, match="no answer for b"):
            told("P", list("abcd"))


def test_in_dims_for_all_for_each_and_for_parts() -> None:
    """One value, one for each argument, or a container in the shape of an argument."""
    assert func.vmap(lambda a, b: a + b)(["a", "b"], tg.Variable(["x", "y"])).data == ["ax", "by"]
    assert func.vmap(lambda a, b: a + b, in_dims=(None, 0))("a", ["x", "y"]).data == ["ax", "ay"]
    parts = {"each": ["a", "b"], "all": ("x", ["1", "2"])}
    dims = ({"each": 0, "all": (None, 0)},)
    joined = func.vmap(lambda p: ops.join([p["each"], p["all"][0], p["all"][1]]), in_dims=dims)(parts)
    assert joined.data == ["ax1", "bx2"]


def test_containers_of_batches_and_batches_of_containers() -> None:
    """A dict of lists and a list of dicts are the same examples; in the function they look alike."""

    def program(example: Any) -> tg.Variable:
        return ops.join([example["q"], example["more"][0]], "-")

    columns = {"q": ["a", "b"], "more": (["x", "y"],)}
    rows = [{"q": "a", "more": ("x",)}, {"q": "b", "more": ("y",)}]
    assert func.vmap(program)(columns).data == func.vmap(program)(rows).data == ["a-x", "b-y"]


@pytest.mark.parametrize(
    ("in_dims", "argument"),
    [
        (0, Pair(["a", "b"], ["c", "c"])),
        (0, [Pair("a", "c"), Pair("b", "c")]),
        ((Pair(0, None),), Pair(["a", "b"], "c")),
        (((0, None),), Pair(["a", "b"], "c")),
    ],
)
def test_named_tuples_stay_named_tuples(in_dims: Any, argument: Any) -> None:
    """Of batches and as examples; in_dims may be a plain tuple, which names no parts."""
    assert func.vmap(lambda p: p.x + p.y, in_dims)(argument).data == ["ac", "bc"]
    inner = func.vmap(lambda parts: parts["p"].x + parts["p"].y)({"p": Pair(["a"], ["c"])})
    assert inner.data == ["ac"]


@pytest.mark.parametrize("out_dims", [0, (0, 0), Pair(0, 0)])
def test_a_named_tuple_of_outputs_stays_one(out_dims: Any) -> None:
    """However out_dims says what is a batch."""
    result = func.vmap(lambda text: Pair(text + "!", text + "?"), out_dims=out_dims)(["a", "b"])
    assert (type(result), result.x.data, result.y.data) == (Pair, ["a!", "b!"], ["a?", "b?"])


@pytest.mark.parametrize(
    ("in_dims", "argument"),
    [
        (0, OrderedDict(z=["a", "b"], k=["c", "c"])),
        (0, [OrderedDict(z="a", k="c"), OrderedDict(k="c", z="b")]),
        (({"k": None, "z": 0},), OrderedDict(z=["a", "b"], k="c")),
        ((OrderedDict(k=None, z=0),), OrderedDict(z=["a", "b"], k="c")),
        (0, {"z": ["a", "b"], "k": ["c", "c"]}),
        (0, [{"z": "a", "k": "c"}, {"k": "c", "z": "b"}]),
        (({"k": None, "z": 0},), {"z": ["a", "b"], "k": "c"}),
    ],
)
def test_dicts_keep_their_class_and_the_order_of_their_keys(in_dims: Any, argument: Any) -> None:
    """Those of the argument (of the first example), whatever the order in in_dims."""
    seen = []

    def program(parts: Any) -> tg.Variable:
        seen.append((type(parts), list(parts)))
        return ops.join(list(parts.values()))

    assert func.vmap(program, in_dims)(argument).data == ["ac", "bc"]
    assert seen == [(type(argument[0] if isinstance(argument, list) else argument), ["z", "k"])]


def test_out_dims_and_containers_of_results() -> None:
    """Each output is a batch, or the same for all; the container is kept."""
    both = func.vmap(lambda text: (shout(text), tg.Variable("same")), out_dims=(0, None))(["a", "b"])
    assert (both[0].data, both[1].data) == (["a!", "b!"], "same")
    nested = func.vmap(lambda text: {"one": shout(text), "more": [text + "?", tg.Variable("x")]})(["a", "b"])
    assert nested["one"].data == ["a!", "b!"]
    assert [value.data for value in nested["more"]] == [["a?", "b?"], ["x", "x"]]


@pytest.mark.parametrize("chunk_size", [None, 1])
def test_out_dims_for_the_parts_of_a_result(chunk_size: int | None) -> None:
    """In the shape of the result, down to the parts that one value stands for, as in_dims."""

    def program(text: Any) -> Any:
        return {"each": [shout(text), {"deep": text + "?"}], "all": Pair(tg.Variable("same"), shout(text)), "x": text}

    out_dims = {"x": 0, "each": 0, "all": (None, 0)}
    result = func.vmap(program, out_dims=out_dims, chunk_size=chunk_size)(["a", "b"])
    assert list(result) == ["each", "all", "x"]
    assert (result["each"][0].data, result["each"][1]["deep"].data) == (["a!", "b!"], ["a?", "b?"])
    assert isinstance(result["all"], Pair)
    assert (result["all"].x.data, result["all"].y.data, result["x"].data) == ("same", ["a!", "b!"], ["a", "b"])
    listed = func.vmap(lambda text: [shout(text), tg.Variable("same")], out_dims=(0, None))(["a"])
    assert [value.data for value in listed] == [["a!"], "same"]
    with pytest.raises(AutogradError, match=r"out_dims has the shape \{'x': 0\}, and the function gave \{'each'"):
        func.vmap(program, out_dims={"x": 0})(["a"])


def test_what_is_not_batched_runs_once() -> None:
    """A call without a batched input is one call, for all examples."""
    shared = tg.Variable("x")
    result = func.vmap(lambda text: text + Plain.apply(shared, "!"))(["a", "b", "c"])
    assert result.data == ["ax!", "bx!", "cx!"]
    assert Plain.runs == ["x"]


def test_the_generated_rule_runs_forward_once_for_each_example() -> None:
    """With the values of each; what is the same for all is handed to each."""
    assert func.vmap(lambda text: Plain.apply(text, "!"))(["a", "b"]).data == ["a!", "b!"]
    assert Plain.runs == ["a", "b"]


def test_an_own_rule_gets_the_batch_and_says_what_is_one() -> None:
    """info tells the size and what the user wants of chance; in_dims which arguments are batches."""
    result = func.vmap(lambda text: Ruled.apply(text, "!"), randomness="same")(["a", "b"])
    assert result.data == ["a! by rule", "b! by rule"]
    assert Ruled.asked == [(2, "same", (0, None))]
    assert Plain.runs == []


def test_an_own_rule_may_give_several_outputs_and_shared_ones() -> None:
    """out_dims is a tuple then; None stands for an output that is the same for all."""

    class Two(Plain):
        @staticmethod
        def vmap(info: Any, in_dims: Any, text: Any, end: Any) -> Any:
            return (tg.Variable(list(text.data)), tg.Variable("shared")), (0, None)

    def program(text: Any) -> Any:
        entry, shared = Two.apply(text, "!")
        return entry + shared, shared

    entries, shared = func.vmap(program, out_dims=(0, None))(["a", "b"])
    assert (entries.data, shared.data) == (["ashared", "bshared"], "shared")


def test_feedback_on_a_batch_is_a_list_with_a_text_for_each(model: FunctionModel, chat: Any) -> None:
    """A shared prompt collects one feedback per example, in order; an empty one is a true zero and asks nobody."""
    prompt = nn.Parameter("P")
    answers = func.vmap(chat, in_dims=(None, 0))(prompt, ["a", "b", "c"])
    answers.backward(["first", "", "third"])
    asked = [request.messages[-1].text for request in model.requests if request.purpose == "backward"]
    assert len(asked) == 2
    assert ["first" in text for text in sorted(asked, key=lambda text: "first" not in text)] == [True, False]
    assert len(prompt.grad) == 2


def test_one_text_for_a_batch_is_about_every_entry() -> None:
    """As one number is for every entry of a tensor."""
    texts = tg.Variable(["a", "b"], requires_grad=True)
    func.vmap(shout)(texts).backward("shorter")
    assert texts.grad[0].data == ["shorter", "shorter"]


def test_a_batched_parameter_gets_a_batch_of_feedback(model: FunctionModel, loss: Any) -> None:
    """Many candidate prompts are one Variable; each entry gets what a candidate alone would get."""
    candidates = nn.Parameter(["P", "Q"], role="prompt")
    ops.sum([func.vmap(lambda prompt: loss(prompt, "x", "y"))(candidates)]).backward()
    alone = []
    for text in ("P", "Q"):
        prompt = nn.Parameter(text, role="prompt")
        loss(prompt, "x", "y").backward()
        alone.append(prompt.grad[0].data)
    assert [item.data for item in candidates.grad] == [alone]


def test_a_batch_of_scores_goes_through_another_vmap() -> None:
    """The start of a backward pass reaches every entry, or those entries that a loss was made of."""
    texts = nn.Parameter(["right", "wrong", "off"])
    scores = func.vmap(matches, in_dims=(0, None))(texts, "right")
    ops.sum([func.vmap(lambda score: score + 1)(scores)]).backward()
    assert [text != "" for text in texts.grad[0].data] == [False, True, True]


def test_a_backward_pass_begins_at_a_batch_of_losses_by_itself(model: FunctionModel) -> None:
    """Also at a batch of criticisms, which are texts."""
    texts = nn.Parameter(["a", "b"])
    func.vmap(lambda text: ops.text_loss(text, "be brief"))(texts).backward()
    assert [bool(text) for text in texts.grad[0].data] == [True, True]


def test_candidates_by_examples(model: FunctionModel, loss: Any) -> None:
    """Two levels of vmap give the matrix of scores, with one call for each pair."""

    def scored(prompt: Any, text: Any, target: Any) -> tg.Variable:
        return matches(ops.chat_completion(None, [{"role": "user", "content": [prompt, text]}]), target)

    by_example = func.vmap(scored, in_dims=(None, 0, 0))
    scores = func.vmap(by_example, in_dims=(0, None, None))(["p", "q"], ["a", "b", "c"], ["PA", "QB", "PC"])
    assert scores.data == [[1, 0, 1], [0, 1, 0]]
    assert len(model.requests) == 6


def test_a_batch_of_batches() -> None:
    """A list of lists, taken apart by two levels; the batch may also be of unequal lists one level further in."""
    assert func.vmap(func.vmap(shout))([["a", "b"], ["c", "d"]]).data == [["a!", "b!"], ["c!", "d!"]]
    texts = nn.Parameter([["a", "b"], ["c", "d"]])
    ops.sum([func.vmap(func.vmap(lambda text: matches(text, "c")))(texts)]).backward()
    assert [[text != "" for text in row] for row in texts.grad[0].data] == [[True, True], [False, True]]


def test_thirty_two_calls_run_together(chat: Any) -> None:
    """The examples do not wait for each other."""
    everybody = asyncio.Event()

    async def answer(request: Any) -> str:
        if len(model.requests) == 32:
            everybody.set()
        await everybody.wait()
        return str(request.messages[-1].text)

    model = FunctionModel(answer)
    with tg.use_models(forward=model):
        texts = [f"text {number}" for number in range(32)]
        assert func.vmap(chat, in_dims=(None, 0))("P", texts).data == texts
    assert model.peak == 32


def test_a_chunk_waits_for_the_one_before(chat: Any) -> None:
    """At most so many examples at once; the results are the same."""
    chunk = [asyncio.Event() for _ in range(4)]

    async def answer(request: Any) -> str:
        number = (len(model.requests) - 1) // 3
        if len(model.requests) in (3, 6, 9, 10):
            chunk[number].set()
        await chunk[number].wait()
        return str(request.messages[-1].text)

    model = FunctionModel(answer)
    with tg.use_models(forward=model):
        texts = [f"text {number}" for number in range(10)]
        assert func.vmap(chat, in_dims=(None, 0), chunk_size=3)("P", texts).data == texts
    assert model.peak == 3


def test_chunks_count_on(model: FunctionModel, chat: Any) -> None:
    """An example has the name, and the seed, that it would have without chunks."""
    prompt = nn.Parameter("P")
    func.vmap(chat, in_dims=(None, 0), chunk_size=2)(prompt, ["a", "b", "c"]).backward(["", "", "third"])
    assert [feedback.source.example for feedback in prompt.grad] == ["[2]"]
    model.requests.clear()
    func.vmap(sampled, randomness="different", chunk_size=2)(["a", "a", "a"])
    assert [request.config.seed for request in model.requests] == [7, 8, 9]


def sampled(text: Any, seed: int | None = 7) -> tg.Variable:
    return ops.chat_completion(None, [{"role": "user", "content": text}], temperature=1.0, seed=seed)


def test_sampling_needs_a_decision(model: FunctionModel) -> None:
    """The same prompt on the same text twice: one answer or two? The user says which."""
    with pytest.raises(AutogradError, match="ChatCompletion samples its answers, and randomness='error'"):
        func.vmap(sampled)(["a", "a"])
    with pytest.raises(AutogradError, match="randomness='error'"):
        func.vmap(lambda text: text + sampled("shared"))(["a"])
    assert model.requests == []


def test_different_samples_for_equal_examples(model: FunctionModel) -> None:
    """Each example has a seed of its own, also where the call does not depend on the example."""
    func.vmap(lambda text: text + sampled("shared"), randomness="different")(["a", "b", "c"]).data  # noqa: B018
    assert sorted(request.config.seed for request in model.requests) == [7, 8, 9]
    func.vmap(lambda text: sampled(text, None), randomness="different")(["a", "b"]).data  # noqa: B018
    assert [request.config.seed for request in model.requests[3:]] == [None, None]


@pytest.mark.parametrize("chunk_size", [None, 2])
def test_each_pair_of_two_batches_has_a_sample_of_its_own(model: FunctionModel, chunk_size: int | None) -> None:
    """Also where both numbers add up to the same; and the same one whatever the chunks."""

    def rows(text: Any) -> Any:
        return func.vmap(sampled, randomness="different", chunk_size=chunk_size)(text)

    func.vmap(rows, randomness="different")([["a", "b", "a"], ["a", "a", "b"]]).data  # noqa: B018
    seeds = {request.config.seed: request.messages[0].text for request in model.requests}
    assert seeds == dict(enumerate("abaaab", 7))


def test_the_same_sample_for_equal_examples(model: FunctionModel) -> None:
    """Equal requests share an answer, and what is not batched is asked once."""
    func.vmap(lambda text: text + sampled("shared"), randomness="same")(["a", "b", "c"]).data  # noqa: B018
    func.vmap(sampled, randomness="same")(["a", "a"]).data  # noqa: B018
    assert [request.config.seed for request in model.requests] == [7, 7]


def counting() -> FunctionModel:
    """A model whose every answer is another one."""
    numbers = itertools.count()
    model = FunctionModel(lambda request: f"{request.messages[-1].text}{next(numbers)}")
    model.cache_key, model.free = "counting", False
    return model


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("chunk_size", [None, 1])
def test_samples_without_a_seed(cached: bool, chunk_size: int | None, tmp_path: Path) -> None:
    """What is different stays so when answers are kept on disk, and what is the same is so when none are."""

    def answers(randomness: Any) -> Any:
        return func.vmap(lambda text: sampled(text, None), randomness=randomness, chunk_size=chunk_size)(list("aab"))

    with tg.use_models(forward=counting()), llm.caching(tmp_path) if cached else contextlib.nullcontext():
        different, same, again = (answers(kind).data for kind in ("different", "same", "different"))
    assert len(set(different)) == 3
    assert same[0] == same[1] != same[2]
    assert (again == different) is cached


def test_a_model_that_samples_by_itself_needs_the_same_decision(model: FunctionModel) -> None:
    """What `resolve(model, temperature=…)` fills in counts like a call's own setting, which has the say."""

    def plain(text: Any, **config: Any) -> tg.Variable:
        return ops.chat_completion(None, [{"role": "user", "content": text}], **config)

    def answers(randomness: Any) -> Any:
        with tg.use_models(forward=llm.resolve(counting(), temperature=1.0)):
            return func.vmap(plain, randomness=randomness)(list("aab")).data

    with pytest.raises(AutogradError, match="ChatCompletion samples its answers, and randomness='error'"):
        answers("error")
    same = answers("same")
    assert same[0] == same[1] != same[2]
    with tg.use_models(forward=llm.resolve(model, temperature=1.0, seed=7)):
        func.vmap(plain, randomness="different")(["a", "a"]).data  # noqa: B018
        func.vmap(lambda text: plain(text, temperature=0.0))(["a", "a"]).data  # noqa: B018
    assert [request.config.seed for request in model.requests] == [7, 8, 7, 7]


def test_each_example_has_a_sample_of_a_model_that_samples_by_itself(tmp_path: Path) -> None:
    """Also in the cache, and where the call does not depend on the example."""
    with tg.use_models(forward=llm.resolve(counting(), temperature=1.0)), llm.caching(tmp_path):
        ask = lambda text: ops.chat_completion(None, [{"role": "user", "content": text}])  # noqa: E731
        assert len(set(func.vmap(ask, randomness="different")(["a", "a", "a"]).data)) == 3
        assert len(set(func.vmap(lambda text: ask("shared") + text, randomness="different")(["", "", ""]).data)) == 3


def test_without_a_decision_examples_ask_as_in_a_loop(tmp_path: Path) -> None:
    """A cache knows what was asked before, in a batch or by itself; without one, nothing is shared."""

    def answers() -> Any:
        return func.vmap(lambda text: sampled(text, None), randomness=None)(list("aab")).data

    with tg.use_models(forward=counting()):
        assert len(set(answers())) == 3
    with tg.use_models(forward=counting()), llm.caching(tmp_path):
        known = [sampled(text, None).data for text in "ab"]
        assert answers() == [known[0], *known]


@pytest.mark.parametrize("chunk_size", [None, 1])
def test_the_same_sample_is_shared_by_examples_and_not_by_the_calls_of_one(chunk_size: int | None) -> None:
    """As a loop does it, an example that asks the same twice takes two samples; so it is in a batch of batches."""

    def two(text: Any) -> tg.Variable:
        return ops.join([sampled(text, None), sampled(text, None)], "|")

    with tg.use_models(forward=counting()):
        first, second, other = func.vmap(two, randomness="same", chunk_size=chunk_size)(["q", "q", "r"]).data
        assert first == second
        samples = [*first.split("|"), *other.split("|")]
        assert len(set(samples)) == 4
        assert [sample[0] for sample in samples] == list("qqrr")
        batch = func.vmap(func.vmap(two, randomness="same"), randomness="same", chunk_size=chunk_size)
        (one, also), (again, _) = batch([["a", "a"], ["a", "b"]]).data
        assert one == also == again
        assert len(set(one.split("|"))) == 2


def test_each_pair_of_two_batches_without_a_seed() -> None:
    """The inner batch shares what the outer one does not, and the other way round."""

    def rows(inner: Any, outer: Any) -> Any:
        one = lambda row: func.vmap(lambda text: sampled(text, None), randomness=inner)(row)  # noqa: E731
        with tg.use_models(forward=counting()):
            return func.vmap(one, randomness=outer)([["a", "a"], ["a", "a"]]).data

    assert rows("same", "different") == [["a0", "a0"], ["a1", "a1"]]
    assert rows("different", "same") == [["a0", "a1"], ["a0", "a1"]]
    assert len({text for row in rows("different", "different") for text in row}) == 4


def test_examples_with_samples_of_their_own_may_share_feedback_calls() -> None:
    """They are still calls of the same place in a program."""

    def answer(request: Any) -> Any:
        if request.purpose != "backward":
            return "answer"
        return feedback_for(request, "shorter")

    model, prompt = FunctionModel(answer), nn.Parameter("P", role="system prompt")

    def chat(text: Any) -> tg.Variable:
        messages = [{"role": "system", "content": [prompt]}, {"role": "user", "content": [text]}]
        return ops.chat_completion(None, messages, temperature=1.0)

    with tg.use_models(forward=model), ops.feedback_batch_size(3):
        func.vmap(chat, randomness="different")(["a", "b", "c"]).backward("too long")
    assert len([request for request in model.requests if request.purpose == "backward"]) == 1
    assert len(prompt.grad) == 3


def test_an_own_rule_is_told_of_the_randomness() -> None:
    """It decides itself what to do about it."""
    func.vmap(lambda text: Ruled.apply(text, "!"), randomness="different")(["a"])
    assert Ruled.asked[0][1] == "different"


@pytest.mark.parametrize("texts", [["a", "b"], ["b", "a"], ["a", "a"], ["b", "c", "a"]])
@pytest.mark.parametrize("shared", [False, True])
def test_what_is_made_of_feedback_that_is_a_zero_asks_as_in_a_loop(
    texts: list[str], shared: bool, model: FunctionModel, chat: Any
) -> None:
    """A call is made of feedback on each text, and "a" hears none: what is said of that call leads nowhere there.

    Where a prompt takes part in the call, its critic is asked about that alone.
    """

    def revised(prompt: Any, text: Any) -> tg.Variable:
        feedback = func.grad(lambda draft: matches(draft, "a"))(text)
        return ops.text_loss(chat(prompt, ops.join(["Revise: ", feedback])), "Is it concrete?")

    def both(text: Any) -> Any:
        if shared:
            gradients, value = func.grad_and_value(revised, argnums=(0, 1))("P", text)
            return *gradients, value
        return func.grad_and_value(lambda given: revised("P", given))(text)

    def made(work: Any) -> tuple[Any, set[Any]]:
        model.requests.clear()
        found = [[value.data for value in row] for row in work()]
        return found, {tuple([message.text for message in request.messages]) for request in model.requests}

    (columns,), asked = made(lambda: [func.vmap(both)(texts)])
    assert ([list(row) for row in zip(*columns)], asked) == made(lambda: [both(text) for text in texts])


def test_vmap_of_grad_gives_the_gradients_of_each(model: FunctionModel, loss: Any) -> None:
    """Text for text what grad gives for each example alone; where an example has nothing to say, nobody is asked."""
    texts, targets = ["a", "b", "c"], ["A", "y", "z"]
    together = func.vmap(func.grad(loss), in_dims=(None, 0, 0))("P", texts, targets).data
    asked = len(model.requests)
    assert together == [func.grad(loss)("P", text, target).data for text, target in zip(texts, targets)]
    assert (together[0], len(set(together))) == ("", 3)
    assert len(model.requests) == 2 * asked == 10


def test_grad_of_a_sum_within_vmap() -> None:
    """A loss that is computed from scores begins a pass at that level too."""

    def both(text: Any) -> tg.Variable:
        return ops.sum([matches(text, "a"), matches(text + "!", "a!")])

    assert [bool(text) for text in func.vmap(func.grad(both))(["a", "b"]).data] == [False, True]


def test_vjp_within_vmap_takes_feedback_that_is_batched_or_shared() -> None:
    """A cotangent may be a value of the batch."""

    def pulled(text: Any, words: Any) -> Any:
        return func.vjp(shout, text)[1](words)[0]

    assert func.vmap(pulled)(["a", "b"], ["one", ""]).data == ["one", ""]
    assert func.vmap(pulled, in_dims=(0, None))(["a", "b"], "all").data == ["all", "all"]


def test_each_example_is_named_in_the_order_of_the_batch(model: FunctionModel, loss: Any) -> None:
    """Feedback says which example it came from, through two levels."""
    prompt = nn.Parameter("P")
    rows = func.vmap(func.vmap(lambda text: loss(prompt, text, "none")))([["a", "b"], ["c", "d"]])
    ops.sum([rows]).backward()
    assert [item.source.example for item in prompt.grad] == ["[0][0]", "[0][1]", "[1][0]", "[1][1]"]
    prompt.grad = None
    with example("night[7]"):
        func.vmap(lambda text: loss(prompt, text, "none"))(["a"]).backward()
    assert [item.source.example for item in prompt.grad] == ["night[7][0]"]


def test_modules_run_in_a_batch(model: FunctionModel) -> None:
    """A program of modules needs no change."""
    program = nn.ChatCompletion("Say {what}.", system=nn.Parameter("Echo.", role="system prompt"))
    answers = func.vmap(lambda what: program(what=what))(["a", "b"])
    assert answers.data == ["SAY A.", "SAY B."]
    assert answers.role == "answer of the model to the system prompt"


def test_a_value_inside_can_be_shown() -> None:
    """A debugger or an f-string with !r asks for its repr, which reads nothing."""
    shown = []
    func.vmap(lambda text: shown.append(repr(text)) or text + "!")(tg.Variable(["a", "b"], role="word"))
    assert shown == ["Variable(<a value for each of 2 examples>, role='word')"]
    func.vmap(func.grad(lambda text: shown.append(repr(text)) or matches(text, "a")))(["a", "b"])
    assert shown[1] == "Variable(<a value for each of 2 examples>, requires_grad=True)"


def test_a_pending_batch_is_taken_apart_when_it_is_there(model: FunctionModel, chat: Any) -> None:
    """The result of one vmap is the argument of the next."""
    first = func.vmap(chat, in_dims=(None, 0))("P", ["a", "b"])
    assert func.vmap(chat, in_dims=(None, 0))("P", first).data == ["A", "B"]


def test_keyword_arguments_are_the_same_for_all() -> None:
    """As in torch.func; a shared prompt given by name collects one feedback for each example."""
    prompt = tg.Variable("P", requires_grad=True)
    joined = func.vmap(lambda text, *, system: ops.join([system, text]))(["a", "b"], system=prompt)
    joined.backward(["first", "second"])
    assert (joined.data, [item.data for item in prompt.grad]) == (["Pa", "Pb"], ["first", "second"])


@pytest.mark.parametrize(
    "wrap", [lambda f: f, lambda f: func.grad(f), lambda f: lambda t: func.jvp(f, (t,), ("x",))[0]]
)
def test_the_role_of_a_value_inside_is_there_at_every_level(wrap: Any) -> None:
    """Evaluators ask for it; it is read of the examples where only these can tell, and is no data of theirs."""

    class Named(tg.Function):
        @staticmethod
        async def forward(text: tg.Variable) -> tg.Variable:
            return tg.Variable(text.data, role=f"role {text.data[0]}")

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, grad_out: tg.Variable) -> Any:
            return grad_out

        @staticmethod
        def jvp(ctx: Any, edit: tg.Variable) -> tg.Variable:
            return edit

    roles = []

    def loss(text: Any) -> tg.Variable:
        named = Named.apply(text)
        roles.append(named.role)
        return ops.exact_match_evaluator(named, "z")[0]

    func.vmap(wrap(loss))(["aa", "ab"])
    func.vmap(wrap(loss))(["aa", "ba"])
    assert roles == ["role a", ""]


def test_batches_by_name_are_told_how_they_come_by_place():
    """What comes by name is the same for all; the words of the error are the call that was meant."""

    def greet(name, mood):
        return ops.join([mood, name])

    with pytest.raises(AutogradError) as told:
        func.vmap(greet)(name=["a", "b"], mood=["c", "d"])
    written = str(told.value).partition("; write ")[2]
    assert eval(written, {"vmap": func.vmap, "f": greet, "name": ["a", "b"], "mood": ["c", "d"]}).data == ["ca", "db"]
