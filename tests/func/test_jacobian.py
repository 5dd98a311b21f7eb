from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any, NamedTuple

import pytest

import textgrad_engine as tg
from textgrad_engine import func, nn, ops, templates
from textgrad_engine.errors import AutogradError, ServerFailed
from textgrad_engine.llm import RetryPolicy, resolve
from textgrad_engine.testing import FunctionModel


class Pair(NamedTuple):
    word: Any
    end: Any = None


def matches(text: Any, target: Any = "right") -> tg.Variable:
    return ops.exact_match_evaluator(text, target)[0]


def data(tree: Any) -> Any:
    """The texts of a table."""
    if isinstance(tree, dict):
        return {key: data(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [data(value) for value in tree]
    return tree.data if isinstance(tree, tg.Variable) else tree


def test_a_result_that_is_no_variable_is_refused() -> None:
    """Each of several is looked at; the call is quoted."""
    with pytest.raises(AutogradError, match=r"jacrev\(<lambda>\)\(<inputs>\): expected Variables .* got int 3"):
        func.jacrev(lambda text: [matches(text), 3])("x")


@pytest.mark.parametrize("transform", [func.jacrev, func.jacfwd, func.hessian])
def test_argnums_beyond_the_arguments_quote_the_call(transform: Any) -> None:
    """The message names the user's function."""
    with pytest.raises(AutogradError, match=r"argnums names argument 2, and the call has 1"):
        transform(matches, argnums=(0, 2))("x")


def test_text_outputs_need_words(model: FunctionModel, chat: Any) -> None:
    """`feedback` is what is said of each of them."""
    program = lambda p: (chat(p, "a"), chat(p, "b"))  # noqa: E731
    with pytest.raises(AutogradError, match=r"begins with words.*jacrev\(f, feedback='too long'\)"):
        func.jacrev(program)("P")
    first, second = data(func.jacrev(program, feedback="too long")("P"))
    assert first.startswith("system ")
    assert first != second


@pytest.mark.parametrize(
    ("argument", "edit", "problem"),
    [
        ("x", 3, "an edit is a text or a Variable, got int 3"),
        ("x", ["y"], "an edit is a text or a Variable, got list"),
        (["x", "z"], ["y"], r"the edits have the shape \['y'\], and the argument is \['x', 'z'\]"),
        ({"a": "x"}, {"b": "y"}, r"the edits have the shape \{'b': 'y'\}"),
        (tg.Variable(["x", "z"]), ["y"], r"it is a batch of 2, so its edit is one text .* got a list of 1: \['y'\]"),
        (tg.Variable(["x", "z"]), ["y", 6], r"an edit is a text or a Variable, got int 6"),
        (tg.Variable(["x", "z"]), ["y", ["w"]], r"it is no batch, so an edit is a text or a Variable, got list"),
        (None, "y", "hold no text or Variable to edit"),
    ],
)
def test_edits_that_do_not_fit_quote_the_call(argument: Any, edit: Any, problem: str) -> None:
    """Before anything runs."""

    def program(argument: Any) -> Any:
        raise AssertionError("it must not run")

    with pytest.raises(AutogradError, match=rf"^jacfwd\(program\)\(<inputs>\).*: .*{problem}"):
        func.jacfwd(program, edit=edit)(argument)


def test_the_first_pass_that_fails_fails_the_whole(loss: Any) -> None:
    """No table with holes, and the stack is as it was (see the fixture)."""

    def answer(request: Any) -> Any:
        if request.purpose == "backward":
            raise ServerFailed("the critic is down", status=500)
        return "wrong"

    with (
        tg.use_models(forward=resolve(FunctionModel(answer), policy=RetryPolicy(max_attempts=1))),
        pytest.raises(ServerFailed),
    ):
        func.jacrev(lambda p: [loss(p, text, "y") for text in "abc"])("P")


def test_each_output_says_what_it_alone_wants(model: FunctionModel, loss: Any) -> None:
    """In the shape of the outputs; what grad gives for each by itself, from one run of the function."""
    alone = [func.grad(loss)("P", text, "B").data for text in "abc"]
    assert (alone[1], len(set(alone))) == ("", 3)
    model.requests.clear()
    table = func.jacrev(lambda p: {"a": loss(p, "a", "B"), "rest": [loss(p, "b", "B"), loss(p, "c", "B")]})("P")
    assert data(table) == {"a": alone[0], "rest": alone[1:]}
    assert sorted(request.purpose for request in model.requests) == ["backward"] * 2 + ["forward"] * 3


def test_the_passes_run_together(loss: Any) -> None:
    """Thirty-two outputs do not wait for each other's critics."""

    everybody = asyncio.Event()

    async def answer(request: Any) -> Any:
        if len(model.requests) == 32:
            everybody.set()
        await everybody.wait()
        return {"case_1": {"system": "better"}}

    model = FunctionModel(answer)
    with tg.use_models(backward=model, forward=FunctionModel(lambda request: "wrong")):
        func.jacrev(lambda p: [loss(p, str(number), "y") for number in range(32)])("P")
    assert model.peak == 32


def test_outputs_by_arguments() -> None:
    """Inside each output the shape of the arguments; an argument that it does not depend on is a zero."""
    table = func.jacrev(lambda a, b: (matches(a), matches(a + b["x"])), argnums=(0, 1))("p", {"x": "q"})
    (first_a, first_b), (second_a, second_b) = table
    assert first_a.data.startswith("The answer is wrong")
    assert first_b["x"].data == ""
    assert second_a.data == second_b["x"].data != first_a.data


def test_a_batch_of_losses_counts_entry_by_entry() -> None:
    """From vmap, also of vmap, and when they are computed with; a list stands in the place of a batch. Where all of a
    batch is silent, its gradient is the empty text, as everywhere.
    """
    texts = tg.Variable(["right", "a", "b"])
    wrong = [func.grad(matches)(text).data for text in ("right", "a", "b")]

    rows = data(func.jacrev(func.vmap(matches))(texts))
    assert rows == ["", ["", wrong[1], ""], ["", "", wrong[2]]]
    assert data(func.jacrev(lambda v: func.vmap(matches)(v) + 1)(texts)) == rows
    again = func.jacrev(lambda v: func.vmap(lambda score: score + 1)(func.vmap(matches)(v)))(texts)
    assert data(again) == rows
    nested = func.jacrev(func.vmap(func.vmap(matches)))(tg.Variable([["a", "right"], ["right", "b"]]))
    assert data(nested) == [[[[wrong[1], ""], ""], ""], ["", ["", ["", wrong[2]]]]]


def test_a_batch_of_texts_takes_the_words_entry_by_entry() -> None:
    """One place after the other hears them."""
    rows = func.jacrev(func.vmap(lambda text: text + "!"), feedback="louder")(tg.Variable(["a", "b"]))
    assert data(rows) == [["louder", ""], ["", "louder"]]
    nested = func.jacrev(func.vmap(func.vmap(lambda text: text + "!")), feedback="no")(tg.Variable([["a"], ["b"]]))
    assert data(nested) == [[[["no"], ""]], [["", ["no"]]]]


def test_criticisms_begin_by_themselves(model: FunctionModel) -> None:
    """A batch of them too, though they are texts."""
    rows = data(func.jacrev(func.vmap(lambda text: ops.text_loss(text, "be kind")))(tg.Variable(["a", "b"])))
    assert [[bool(text) for text in row] for row in rows] == [[True, False], [False, True]]


def test_aux_is_handed_through(model: FunctionModel, chat: Any) -> None:
    """Beside both kinds of table."""
    table, aux = func.jacrev(lambda text: ([matches(text)], text + "!"), has_aux=True)("x")
    assert (len(table), aux.data) == (1, "x!")
    table, aux = func.jacfwd(lambda text: ([chat("P", text)], text + "!"), has_aux=True)("x")
    assert (len(table), aux.data) == (1, "x!")


def test_the_unit_edit_is_that_a_part_is_left_out(model: FunctionModel, chat: Any) -> None:
    """So the table says which part matters: one question a part, and the program runs once."""
    documents = ["one", "two", "three"]
    changes = func.jacfwd(lambda parts: chat("P", ops.join(parts, "\n")))(documents)
    assert all(text.startswith("change ") for text in data(changes))
    assert len(set(data(changes))) == 3
    asked = [r.messages[1].text for r in model.requests if r.config.response_format]
    assert len(model.requests) == 1 + len(asked) == 4
    for number in (1, 2, 3):
        assert sum(f"In part {number} of 3: {templates.load('unit_edit').user}" in text for text in asked) == 1


def test_edits_of_ones_own_for_each_part() -> None:
    """One for all, or in the shape of the argument, or of several; only one part is edited at a time."""
    program = lambda parts, end: (ops.join(parts), parts[0] + end)  # noqa: E731
    whole, first = data(func.jacfwd(program, edit=["A", "B"])(["a", "b"], "!"))
    assert whole == ["In part 1 of 2: A", "In part 2 of 2: B"]
    assert first == ["In part 1 of 2: A", ""]
    both = func.jacfwd(program, argnums=(0, 1), edit=([tg.Variable("A"), "B"], "C"))(["a", "b"], "!")
    assert data(both[1]) == [["In part 1 of 2: A", ""], "In part 2 of 2: C"]
    mixed = func.jacfwd(lambda d: ops.format("{x}", x=d["x"]), edit="E")({"x": "a", "n": None})
    assert data(mixed) == {"x": "In {x}: E", "n": None}


def test_a_batch_is_edited_entry_by_entry() -> None:
    """With one edit for all of them or a list."""
    program = func.vmap(lambda text: text + "!")
    rows = func.jacfwd(program, edit="E")(tg.Variable(["a", "b"]))
    assert data(rows) == [["In part 1 of 2: E", ""], ["", "In part 1 of 2: E"]]
    rows = func.jacfwd(program, edit=["E", "F"])(nn.Parameter(["a", "b"]))
    assert data(rows)[1] == ["", "In part 1 of 2: F"]


def test_a_rule_is_told_of_the_one_argument_that_is_edited() -> None:
    """None for the others, as when each is edited by itself."""

    class Which(tg.Function):
        @staticmethod
        def forward(parts: Any, end: Any) -> tg.Variable:
            return tg.Variable("x")

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ...

        @staticmethod
        def jvp(ctx: Any, parts: Any, end: Any) -> str:
            return f"{parts and data(parts)} {end and end.data} {ctx.needs_input_grad}"

    changes = func.jacfwd(Which.apply, argnums=(0, 1), edit="E")({"a": "x", "b": "y"}, "z")
    assert data(changes) == [
        {"a": "{'a': 'E', 'b': None} None (True, False)", "b": "{'a': None, 'b': 'E'} None (True, False)"},
        "None E (False, True)",
    ]


def test_special_containers_are_kept() -> None:
    """Ordered dicts and named tuples are made again as what they are."""
    both = func.jacfwd(lambda parts: parts["a"].word + "!", edit="E")(OrderedDict(a=Pair("x")))
    assert (type(both), type(both["a"]), both["a"].word.data) == (OrderedDict, Pair, "In part 1 of 2: E")


def test_an_output_that_depends_on_nothing_edited_is_a_zero() -> None:
    """Empty for every part."""
    assert data(func.jacfwd(lambda parts: tg.Variable("constant"), edit="E")(["a", "b"])) == ["", ""]


def test_a_program_that_samples_is_run_once_all_the_same(model: FunctionModel) -> None:
    """The questions are about one and the same answer."""
    ask = lambda text: ops.chat_completion(None, [{"role": "user", "content": text}], temperature=1.0)  # noqa: E731
    assert len(data(func.jacfwd(lambda parts: ask(ops.join(parts)))(["a", "b"]))) == 2
    assert sum(request.purpose == "forward" for request in model.requests) == 1


def test_keyword_arguments_reach_the_function() -> None:
    """They are not differentiated."""
    program = lambda text, end="": (text + end,)  # noqa: E731
    assert data(func.jacfwd(program, edit="E")("x", end="!")) == ["In part 1 of 2: E"]
    assert data(func.jacrev(program, feedback="no")("x", end="!")) == ["no"]


def test_within_vmap_each_example_has_its_table(model: FunctionModel, loss: Any, chat: Any) -> None:
    """The same as one at a time."""
    rev = func.jacrev(lambda p, x: [loss(p, x, "A"), loss(p, "c", "y")])
    apart = [data(rev("P", x)) for x in ("a", "b")]
    together = func.vmap(rev, in_dims=(None, 0))("P", ["a", "b"])
    assert [list(row) for row in zip(*data(together))] == apart
    fwd = func.jacfwd(lambda x: chat("P", x))
    assert func.vmap(fwd)(["a", "b"]).data == [fwd(x).data for x in ("a", "b")]


def test_the_feedback_on_a_table_goes_back(model: FunctionModel, loss: Any) -> None:
    """grad of something made of a jacobian: the passes are recorded although they ran in threads."""

    def criticism(p: Any) -> tg.Variable:
        first, second = func.jacrev(lambda q: [loss(q, "a", "y"), loss(q, "b", "y")])(p)
        return ops.text_loss(ops.join([first, second], "\n"), "is it kind?")

    gradient = func.grad(criticism)("P")
    assert gradient.data
    assert gradient.data == func.grad(criticism)("P").data


def test_the_hessian_is_how_the_feedback_would_change(model: FunctionModel, loss: Any) -> None:
    """Forward over reverse, as in torch.func; a satisfied loss says nothing about edits either."""
    change = func.hessian(lambda p: loss(p, "a", "y"), edit="becomes kinder")("P")
    expected = func.jacfwd(func.jacrev(lambda p: loss(p, "a", "y")), edit="becomes kinder")("P")
    assert change.data == expected.data
    assert change.data.startswith("change ")
    assert any("becomes kinder" in request.messages[1].text for request in model.requests)
    assert func.hessian(lambda p: loss(p, "a", "A"))("P").data == ""


def test_the_hessian_of_several_arguments_is_a_table() -> None:
    """Outputs, then whose feedback, then which edit; a complaint that names both parts changes with both."""
    table = func.hessian(lambda a, b: matches(a + b), argnums=(0, 1), edit="E", feedback=None)
    with tg.use_models(forward=FunctionModel(lambda request: {"text": "right"})):
        (aa, ab), (ba, bb) = data(table("x", "y"))
    assert aa == ba != ""
    assert ab == bb != ""


def test_the_explanations_of_a_batch_are_one_row() -> None:
    """They are feedback on a batch, which has its entries already; the list of scores has a row for each."""
    drafts = tg.Variable(["a", "b"])

    def explained(drafts: Any) -> Any:
        return ops.exact_match_evaluator(drafts, ["x", "b"], reduction_fn=None)[1]

    row = func.jacrev(explained)(drafts)
    assert [bool(text) for text in row.data] == [True, False]
