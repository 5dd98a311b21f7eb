import asyncio
import gc
import weakref
from concurrent.futures import Future

import pytest

import textgrad_engine as tg
from textgrad_engine import dispatch, func, ops
from textgrad_engine.errors import AutogradError

from ..values import leaf, texts


def function(forward, backward=lambda ctx, *grads: grads[0], outputs=1):
    """A Function of these two rules."""
    body = {"forward": staticmethod(forward), "backward": staticmethod(backward), "num_outputs": outputs}
    return type("Rule", (tg.Function,), body)


@pytest.mark.parametrize("value", [["a"], {"a": 1}, {1}, bytearray(b"a"), object()])
def test_what_could_change_in_between_is_not_saved(value):
    """The message names the type and the way out."""

    def forward(ctx, text):
        ctx.save_for_backward(text, value)

    with pytest.raises(TypeError, match=rf"got {type(value).__name__}: set it as an attribute of ctx"):
        function(forward).apply(leaf())


def test_variables_and_plain_values_are_saved_in_order():
    """Strings, numbers and None as in afnio; attributes of any kind."""
    seen = []

    def forward(ctx, text):
        out = tg.Variable(text.data * 2, role="doubled")
        ctx.save_for_backward(text, "text", 3, 0.5, None, True, out)
        ctx.anything = ["a", {"b": 1}]
        return out

    def backward(ctx, grad_out):
        text, *plain, out = ctx.saved_variables
        seen.append((text.data, plain, out.data, out.role, ctx.anything))
        return grad_out

    function(forward, backward).apply(leaf()).backward("f")
    assert seen == [("p", ["text", 3, 0.5, None, True], "pp", "doubled", ["a", {"b": 1}])]


def test_saved_variables_are_stand_ins():
    """A rule that writes to their grad or their data changes no leaf."""

    def forward(ctx, text):
        ctx.save_for_backward(text)
        return tg.Variable(text.data)

    def backward(ctx, grad_out):
        (text,) = ctx.saved_variables
        assert text.requires_grad
        text.grad = tg.Variable("written")
        text.data = "overwritten"
        return "returned"

    prompt = leaf()
    result = function(forward, backward).apply(prompt)
    result.backward("f", retain_graph=True)
    result.backward("f")
    assert texts(prompt.grad) == ["returned"] * 2
    assert prompt.data == "p"


def test_saving_again_replaces():
    """The last call counts, as in PyTorch."""

    def forward(ctx, text):
        ctx.save_for_backward(text)
        ctx.save_for_backward("only")
        return tg.Variable("x")

    prompt = leaf()
    function(forward, lambda ctx, grad_out: str(ctx.saved_variables)).apply(prompt).backward("f")
    assert texts(prompt.grad) == ["('only',)"]


async def _nothing():
    pass


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_saved_output_makes_no_cycle(asynchronous):
    """The graph goes when the last result goes, without the garbage collector."""

    def forward(ctx, text):
        out = tg.Variable(text.data)
        ctx.save_for_backward(text, out)
        return out

    async def later(ctx, text):
        return forward(ctx, text)

    gc.disable()
    try:
        result = function(later if asynchronous else forward).apply(leaf())
        assert result.data == "p"
        node = weakref.ref(result.grad_fn)
        del result
        dispatch.run(_nothing)  # the loop thread has left the call by then
        assert node() is None
    finally:
        gc.enable()


def test_a_saved_output_has_its_place_in_the_graph():
    """With create_graph a rule may compute with it."""
    seen = []

    def forward(ctx, text):
        out = tg.Variable(text.data)
        ctx.save_for_backward(out)
        return out

    def backward(ctx, grad_out):
        (out,) = ctx.saved_variables
        seen.append(out.grad_fn)
        return grad_out

    result = function(forward, backward).apply(leaf())
    node = result.grad_fn
    result.backward("f")
    assert seen == [node]


def test_an_edit_under_no_grad_is_found_too():
    """An optimizer's step between forward and backward, for one."""

    def forward(ctx, text):
        ctx.save_for_backward(text)
        return tg.Variable(text.data)

    prompt = leaf(role="prompt")
    result = function(forward, lambda ctx, grad_out: ctx.saved_variables[0]).apply(prompt)
    with tg.no_grad():
        prompt += "!"
    with pytest.raises(AutogradError, match="'prompt' was changed"):
        result.backward("f")


def saving_ctx(ctx, text):
    out = tg.Variable(text.data + "!", role="answer")
    ctx.save_for_backward(out)
    return out


async def saving_ctx_later(ctx, text):
    await asyncio.sleep(0)
    return saving_ctx(ctx, text)


class Saving(tg.Function):
    @staticmethod
    def forward(text):
        return tg.Variable(text.data + "!", role="answer")

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad_out):
        return ctx.saved_variables[0].data


class SavingLater(Saving):
    @staticmethod
    async def forward(text):
        await asyncio.sleep(0)
        return Saving.forward(text)


SAVING = pytest.mark.parametrize(
    "rule",
    [function(saving_ctx, Saving.backward), function(saving_ctx_later, Saving.backward), Saving, SavingLater],
    ids=["ctx", "ctx async", "setup", "setup async"],
)


@SAVING
@pytest.mark.parametrize("when", ["at once", "later"])
def test_an_edit_of_a_saved_output_is_found(rule, when):
    """Feedback on what was computed says nothing about what stands there now; also while it was still computed."""
    prompt = leaf()
    result = rule.apply(prompt)
    if when == "later":
        assert result.data == "p!"
    result.data = "edited"
    assert result.data == "edited"
    with pytest.raises(AutogradError, match=r"'answer' was changed after it was used \(version 1, used at version 0\)"):
        result.backward("f")
    assert prompt.grad == []


@SAVING
def test_an_output_that_is_only_read_or_copied_is_no_edit(rule):
    """Nor is a change of what was made from it."""
    prompt = leaf()
    result = rule.apply(prompt)
    copy, sum_of_both = result.clone(), result + "?"
    assert (result.data, result.role) == ("p!", "answer")
    copy.data = "edited"
    sum_of_both += "more"
    result.backward("f")
    assert texts(prompt.grad) == ["p!"]


def test_an_edit_of_an_input_that_is_an_output_too_is_found():
    """A forward may hand its input back, and save it."""

    def forward(ctx, text):
        ctx.save_for_backward(text)
        return text

    prompt = leaf(role="prompt")
    result = function(forward, Saving.backward).apply(prompt)
    prompt.data = "edited"
    with pytest.raises(AutogradError, match="'prompt' was changed"):
        result.backward("f")


class SavingBatch(Saving):
    @staticmethod
    def forward(text):
        return tg.Variable([text.data, "!"], role="answers")


class SavingBatchLater(Saving):
    @staticmethod
    async def forward(text):
        await asyncio.sleep(0)
        return SavingBatch.forward(text)


@pytest.mark.parametrize("rule", [SavingBatch, SavingBatchLater])
@pytest.mark.parametrize("read", [
    lambda ctx: ctx.saved_variables[0], lambda ctx: ctx.saved_for_reading()[0], lambda ctx: ctx.saved_data(0),
])  # fmt: skip
def test_an_edit_in_the_list_of_a_saved_output_is_found(rule, read):
    """As another value is; to read the list is no edit."""
    reading = type("Reading", (rule,), {"backward": staticmethod(lambda ctx, grad_out: str(read(ctx)))})
    prompt = leaf()
    result = reading.apply(prompt)
    assert result.data == ["p", "!"]
    result.backward(["f", "g"], retain_graph=True)
    result.data[0] = "edited"
    with pytest.raises(AutogradError, match="the list of Variable 'answers' was edited after it was used"):
        result.backward(["f", "g"])
    assert len(prompt.grad) == 1


def test_an_edit_in_the_list_of_an_input_that_is_an_output_too_is_found():
    """A forward may hand its input back, and save it."""

    def forward(ctx, texts):
        ctx.save_for_backward(texts)
        return texts

    prompts = leaf(["p", "q"], role="prompts")
    result = function(forward, lambda ctx, grad_out: ctx.saved_variables[0]).apply(prompts)
    prompts.data.reverse()
    with pytest.raises(AutogradError, match="the list of Variable 'prompts' was edited"):
        result.backward(["f", "g"])


class Joined(tg.Function):
    @staticmethod
    def forward(texts):
        return tg.Variable(" ".join(texts.data))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_out):
        return tg.Variable([f"{text}: {grad_out.data}" for text in ctx.saved_variables[0].data])


class JoinedLater(Joined):
    @staticmethod
    async def forward(texts):
        return Joined.forward(texts)


@pytest.mark.parametrize("edited", [False, True])
@pytest.mark.parametrize("rule", [Joined, JoinedLater])
def test_an_edit_of_a_batch_that_was_still_computed_at_its_use_is_found(rule, edited):
    """Whether it was there already when it was used, nobody can tell who only reads the program."""
    gate, prompt = Future(), leaf()

    class Two(tg.Function):
        @staticmethod
        async def forward(ctx, text):
            await asyncio.wrap_future(gate)
            return tg.Variable([f"{text.data}1", f"{text.data}2"], role="batch")

        @staticmethod
        def backward(ctx, grad_out):
            return " ".join(grad_out.data)

    batch = Two.apply(prompt)
    if rule is Joined:
        gate.set_result(None)  # it waits for it
    joined = rule.apply(batch)
    if rule is JoinedLater:
        gate.set_result(None)
    assert joined.data == "p1 p2"
    assert batch.data == ["p1", "p2"]
    if not edited:
        joined.backward("f")
        assert texts(prompt.grad) == ["p1: f p2: f"]
        return
    batch.data[0] = "edited"
    with pytest.raises(AutogradError, match="the list of Variable 'batch' was edited after it was used"):
        joined.backward("f")
    assert prompt.grad == []


def test_needs_input_grad_per_argument():
    """A rule can spare itself what nobody wants; nothing is wanted under no_grad."""
    seen = []

    def forward(ctx, *args):
        seen.append(ctx.needs_input_grad)
        return tg.Variable("x")

    rule = function(forward)
    rule.apply(leaf(), tg.Variable("constant"), "text", [tg.Variable("a"), leaf()], {"a": 1})
    with tg.no_grad():
        rule.apply(leaf(), "text")
    assert seen == [(True, False, False, True, False), (False, False)]


def test_a_pass_for_some_inputs_says_so_in_needs_input_grad():
    """What `inputs=` leaves out is not asked for; the next pass asks for all again."""
    seen = []

    def backward(ctx, grad_out):
        seen.append(ctx.needs_input_grad)
        return "a", "b"

    a, b = leaf(), leaf()
    result = function(lambda ctx, a, b: tg.Variable("x"), backward).apply(a, b)
    result.backward("f", inputs=b, retain_graph=True)
    result.backward("f")
    assert seen == [(False, True), (True, True)]
    assert (texts(a.grad), texts(b.grad)) == (["a"], ["b", "b"])


def marking(ctx, text):
    score, explanation = tg.Variable(1.0), tg.Variable("because")
    ctx.mark_non_differentiable(explanation)
    return score, explanation


class Scored(tg.Function):
    num_outputs = 2

    @staticmethod
    def forward(text):
        return tg.Variable(1.0), tg.Variable("because")

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, score, explanation):
        return f"{score.data}/{explanation.data}"


class ScoredLater(Scored):
    @staticmethod
    async def forward(text):
        return Scored.forward(text)


@pytest.mark.parametrize(
    "rule", [function(marking, Scored.backward, 2), Scored, ScoredLater], ids=["ctx", "setup", "async"]
)
def test_an_output_marked_non_differentiable_has_no_history(rule):
    """It does not require grad; what is computed from it costs nothing."""
    prompt = leaf()
    score, explanation = rule.apply(prompt)
    assert (score.requires_grad, explanation.requires_grad, explanation.is_leaf) == (True, False, True)
    assert not (explanation + "!").requires_grad
    with pytest.raises(AutogradError, match="does not require grad"):
        explanation.backward("f")
    score.backward("f")
    assert explanation.data == "because"
    assert texts(prompt.grad) == ["f/"]


def test_only_variables_are_marked():
    """A name or a number instead of the output would mark nothing."""

    def forward(ctx, text):
        ctx.mark_non_differentiable("explanation")
        return tg.Variable(text.data)

    with pytest.raises(TypeError, match="mark_non_differentiable takes Variables, got str 'explanation'"):
        function(forward, Scored.backward).apply(leaf())


def test_marking_too_late_is_an_error():
    """A dispatched forward cannot take back what was recorded at dispatch; it is not ignored either."""

    async def forward(ctx, text):
        await asyncio.sleep(0)
        return marking(ctx, text)

    score, explanation = function(forward, Scored.backward, 2).apply(leaf())
    for out in (score, explanation):
        with pytest.raises(AutogradError, match=r"Rule\.forward called mark_non_differentiable.*setup_context"):
            _ = out.data


@pytest.mark.parametrize(("materialize", "expected"), [(True, "''"), (False, "None")])
def test_materialize_grads(materialize, expected):
    """An output without feedback gives an empty Variable or None."""

    def forward(ctx, text):
        ctx.set_materialize_grads(materialize)
        return tg.Variable("a"), tg.Variable("b")

    def backward(ctx, first, second):
        return f"{first.data} {None if second is None else repr(second.data)}"

    prompt = leaf()
    function(forward, backward).apply(prompt)[0].backward("f")
    assert texts(prompt.grad) == [f"f {expected}"]


def test_a_freed_context_says_how_to_keep_it():
    """A ctx that somebody kept does not give half of what it had."""
    kept = []

    def forward(ctx, text):
        ctx.save_for_backward(text)
        kept.append(ctx)
        return tg.Variable("x")

    function(forward).apply(leaf()).backward("f")
    with pytest.raises(AutogradError, match="retain_graph=True"):
        _ = kept[0].saved_variables


def test_attributes_set_on_ctx_are_there_in_backward():
    """Anything that is no Variable may be kept so, in both styles; a second pass finds it, too."""

    def forward(ctx, text):
        ctx.table, ctx.length = {"a": [1]}, len(text.data)
        return tg.Variable(text.data)

    result = function(forward, lambda ctx, grad_out: f"{ctx.table} {ctx.length}").apply(prompt := leaf("four"))
    result.backward("f", retain_graph=True)
    result.backward("f")
    assert texts(prompt.grad) == ["{'a': [1]} 4"] * 2


def test_of_an_output_that_is_no_variable_backward_is_given_none():
    """As in PyTorch and afnio, and inside transforms, too; a Variable without feedback is an empty one."""
    given = []

    class Counted(tg.Function):
        @staticmethod
        def forward(text):
            return tg.Variable(text.data), len(text.data), None, tg.Variable("beside")

        @staticmethod
        def setup_context(ctx, inputs, output):
            assert output[2] is None

        @staticmethod
        def backward(ctx, *grads):
            given.append([None if grad is None else grad.data for grad in grads])
            return grads[0]

    def right(text):
        return ops.exact_match_evaluator(Counted.apply(text)[0], "b")[1]

    prompt = leaf("a")
    right(prompt).backward()
    func.grad(right)("a")
    func.vmap(func.grad(right))(["a", "c"])
    func.vmap(lambda text: right(prompt + text))(["x", "y"]).backward()
    assert all(each[0].startswith("The answer is wrong.") for each in given)
    assert all(each[1:] == [None, None, ""] for each in given)
    assert len(given) == 6
