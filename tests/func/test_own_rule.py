from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import dispatch, func, nn, ops
from textgrad_engine.testing import FunctionModel

TEXTS = ["a", "Pb", "c"]


def matches(text: Any, target: Any = "zz") -> tg.Variable:
    return ops.exact_match_evaluator(text, target)[0]


class Generated(tg.Function):
    """Reads data everywhere; what begins with P marks its last output."""

    @staticmethod
    def forward(texts: dict[str, Any], end: Any) -> Any:
        text = texts["text"].data
        return tg.Variable(text[::-1] + str(end)), tg.Variable("n"), tg.Variable(text)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        text = inputs[0]["text"]
        ctx.save_for_backward(text, output[0])
        ctx.mark_non_differentiable(*output[1 : 3 if text.data.startswith("P") else 2])

    @staticmethod
    def backward(ctx: Any, first: Any, second: Any, third: Any) -> Any:
        text, made = ctx.saved_variables
        said = tg.Variable(f"{text.data} became {made.data}: {first.data} / {third.data}")
        return {"text": [said, "and more"]}, f"end of {text.data}" if ctx.needs_input_grad[1] else None

    @staticmethod
    def jvp(ctx: Any, texts: Any, end: Any) -> Any:
        text, _ = ctx.saved_variables
        return f"{text.data}: {texts and texts['text'].data} {end and end.data}", None, None


class Own(Generated):
    """The same with a rule for whole batches, which reads data too."""

    @staticmethod
    def vmap(info: func.VmapInfo, in_dims: Any, texts: dict[str, Any], end: Any) -> Any:
        entries = texts["text"].data if in_dims[0] else [texts["text"].data] * info.batch_size
        ends = end.data if in_dims[1] == 0 else [str(end)] * info.batch_size
        reversed_ = tg.Variable([text[::-1] + end for text, end in zip(entries, ends)])
        return (reversed_, tg.Variable(["n"] * info.batch_size), tg.Variable(list(entries))), 0


class OwnLater(Own):
    """Its backward rule is asynchronous."""

    @staticmethod
    async def backward(ctx: Any, *grads: Any) -> Any:
        await asyncio.sleep(0)
        return Generated.backward(ctx, *grads)


def scored(function: type[tg.Function]) -> Any:
    """A loss of a prompt, a text and an end."""

    def score(prompt: Any, text: Any, end: Any) -> tg.Variable:
        return matches(ops.join(list(function.apply({"text": prompt + text}, end)), "|"))

    return score


OWN = pytest.mark.parametrize("function", [Own, OwnLater])
ENDS = pytest.mark.parametrize(("end", "dim"), [(["1", "2", "3"], 0), ("e", None)])


def heard(gradients: Any) -> Any:
    return [[(item.data, item.source.example) for item in gradient.grad] for gradient in gradients]


@OWN
@ENDS
def test_grad_of_vmap_is_grad_of_vmap_with_a_generated_rule(function: type[tg.Function], end: Any, dim: Any) -> None:
    """A level below records the batch, and the Function's own backward runs once per example."""

    def gradients(function: type[tg.Function]) -> Any:
        each = func.vmap(scored(function), in_dims=(None, 0, dim))
        found = func.grad(lambda prompt, end: ops.sum([each(prompt, TEXTS, end)]), (0, 1))("q", tg.Variable(end))
        prompt, last = nn.Parameter("q"), nn.Parameter(end)
        each(prompt, TEXTS, last).backward()
        nested = func.grad(lambda prompt: matches(func.grad(lambda p: ops.sum([each(p, TEXTS, end)]))(prompt), ""))("q")
        return heard(found), heard([prompt, last, nested])

    assert gradients(function) == gradients(Generated)


@OWN
def test_grad_of_vmap_is_grad_of_the_loop(function: type[tg.Function]) -> None:
    """Text for text, also where only one example has anything to hear."""
    score = scored(function)

    def together(prompt: Any) -> tg.Variable:
        return ops.sum([func.vmap(score, in_dims=(None, 0, None))(prompt, TEXTS, "e")])

    def loop(prompt: Any) -> tg.Variable:
        return ops.sum([score(prompt, text, "e") for text in TEXTS])

    assert [item.data for item in func.grad(together)("q").grad] == [item.data for item in func.grad(loop)("q").grad]
    outs = func.vmap(lambda text: function.apply({"text": text}, "e")[0])
    assert func.vjp(outs, tg.Variable(TEXTS))[1](["", "words", ""])[0].data == [
        "",
        "Pb became bPe: words / \nand more",
        "",
    ]


@OWN
@ENDS
def test_in_a_batch_of_batches_the_rule_runs_for_each_outer_example(
    function: type[tg.Function], end: Any, dim: Any
) -> None:
    """It sees the texts of one, and so do the rules for feedback."""

    def everything(function: type[tg.Function]) -> Any:
        inner = func.vmap(scored(function), in_dims=(None, 0, dim))
        each = func.vmap(inner, in_dims=(0, None, None))
        feedback = func.grad(lambda prompts: ops.sum([each(prompts, TEXTS, end)]))(tg.Variable(["q", "P"]))
        rows = func.vmap(func.grad(lambda prompt: ops.sum([inner(prompt, TEXTS, end)])))(["q", "P"])
        return each(["q", "P"], TEXTS, end).data, feedback.data, rows.data

    assert everything(function) == everything(Generated)


@ENDS
def test_an_edit_of_a_batch_goes_through_the_functions_own_jvp(end: Any, dim: Any) -> None:
    """Once for each example that anything is edited in."""

    def change(function: type[tg.Function]) -> Any:
        each = func.vmap(lambda text, end: function.apply({"text": text}, end)[0], in_dims=(0, dim))
        edits = (["", "shorter", ""], None if dim is None else ["longer", "", ""])
        return func.jvp(each, (tg.Variable(TEXTS), tg.Variable(end)), edits)[1].data

    assert change(Own) == change(Generated)
    assert change(Own)[1] == "Pb: shorter None"


def test_feedback_on_an_output_that_is_the_same_for_all_is_told_once() -> None:
    """As a call that is not batched is made once, and so is its backward."""

    class Shared(Own):
        @staticmethod
        def vmap(info: Any, in_dims: Any, texts: Any, end: Any) -> Any:
            outs, _ = Own.vmap(info, in_dims, texts, end)
            return (outs[0], tg.Variable("n"), tg.Variable("shared")), (0, None, None)

    def last(prompt: Any) -> tg.Variable:
        return func.vmap(lambda end: Shared.apply({"text": prompt}, end)[2] + "!", out_dims=None)(["1", "2"])

    assert [item.data for item in func.vjp(last, "q")[1]("words")[0].grad] == ["q became q1:  / words", "and more"]


def test_rules_that_may_share_a_call_do() -> None:
    """The examples are handed to backward_many together."""
    ran = []

    class Many(Own):
        @staticmethod
        def backward_group(ctx: Any) -> Any:
            return "all"

        @staticmethod
        def backward_many(ctxs: list[Any], grads: list[list[Any]]) -> list[Any]:
            ran.append(len(ctxs))
            return [Generated.backward(ctx, *given) for ctx, given in zip(ctxs, grads)]

    gradient = func.grad(lambda p, f: ops.sum([func.vmap(scored(f), in_dims=(None, 0, None))(p, TEXTS, "e")]))
    assert gradient("q", Many).data == gradient("q", Own).data
    assert ran == [3]


def test_an_own_rule_that_samples_does_so_for_each_outer_example() -> None:
    """The outer batch asks the Function whether it samples, and for arguments of another sample."""

    class Sampled(tg.Function):
        @staticmethod
        def forward(text: Any, seed: int) -> tg.Variable:
            return tg.Variable(f"{text.data}{seed}")

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ...

        @staticmethod
        def vmap(info: Any, in_dims: Any, text: Any, seed: int) -> Any:
            return [f"{entry}{seed}" for entry in text.data], 0

        @classmethod
        def is_random(cls, *args: Any) -> bool:
            return True

        @classmethod
        def resample(cls, args: Any, number: int) -> Any:
            return args[0], args[1] + number

    inner = func.vmap(lambda text: Sampled.apply(text, 0), randomness="same")
    assert func.vmap(inner, randomness="different")([["a", "b"], ["a", "b"]]).data == [["a0", "b0"], ["a1", "b1"]]
    with pytest.raises(tg.errors.AutogradError, match="Sampled samples its answers, and randomness='error'"):
        func.vmap(inner)([["a"]])


def test_a_rule_whose_answers_are_pending() -> None:
    """What the rule asks is not waited for, neither forward nor backward."""

    class Asks(Generated):
        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs, output)

        @staticmethod
        def backward(ctx: Any, grad_out: Any) -> Any:
            text, output = ctx.saved_variables
            return f"{text.data} {output.data} {grad_out.data}"

        @staticmethod
        def vmap(info: Any, in_dims: Any, text: Any) -> Any:
            return ops.chat_completion(None, [{"role": "user", "content": "{x}"}], {"x": text}), 0

    gate = asyncio.Event()

    async def answer(request: tg.llm.Request) -> str:
        await gate.wait()
        return request.messages[-1].text.upper()

    with tg.use_models(forward=FunctionModel(answer)):
        out, pull = func.vjp(func.vmap(lambda text: Asks.apply(text)), tg.Variable(["a", "b"]))
        assert not out.done()
        dispatch.call_soon(gate.set)
        assert pull(["x", "y"])[0].data == ["a A x", "b B y"]


def test_a_function_without_backward_or_jvp_is_named_as_in_the_loop() -> None:
    """An own rule does not stand in for the rules that are missing."""

    class Silent(tg.Function):
        @staticmethod
        def forward(text: Any) -> tg.Variable:
            return tg.Variable(text.data)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ...

        @staticmethod
        def vmap(info: Any, in_dims: Any, text: Any) -> Any:
            return list(text.data), 0

    each = func.vmap(lambda text: Silent.apply(text))
    with pytest.raises(NotImplementedError, match="this Function has no `backward`") as caught:
        func.vjp(each, tg.Variable(["a", "b"]))[1]("words")
    assert caught.value.__notes__ == ["Feedback was to pass through Silent."]
    with pytest.raises(tg.errors.AutogradError, match=r"func\.jvp met Silent, which has no rule"):
        func.jvp(each, (tg.Variable(["a", "b"]),), ("louder",))


def test_no_cycle_keeps_a_recorded_batch_alive() -> None:
    """Saved outputs are kept without their history, as those of a single call."""
    gc.disable()
    try:
        result = func.vmap(lambda text: Own.apply({"text": text}, "e")[0])(nn.Parameter(["a", "b"]))
        node = result.grad_fn.next_functions[0][0]
        assert node.name() == "OwnBackward"
        gone = weakref.ref(node)
        del result, node
        assert gone() is None
    finally:
        gc.enable()
