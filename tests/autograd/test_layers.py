import asyncio
import threading

import pytest

import textgrad_engine as tg
from textgrad_engine import ops
from textgrad_engine.autograd import Layer
from textgrad_engine.autograd.layers import LAYERS


class Log(Layer):
    def __init__(self, name, seen):
        self.name, self.seen = name, seen

    def process(self, function, args):
        self.seen.append((self.name, function.__name__))
        return super().process(function, args)


@pytest.fixture(autouse=True)
def stack_is_left_alone():
    """No test leaks a layer."""
    assert LAYERS.get() == ()
    yield
    assert LAYERS.get() == ()


def test_the_stack_comes_back_when_a_layer_or_a_forward_fails():
    """The next call passes through the same layers."""

    class Broken(Layer):
        def process(self, function, args):
            raise KeyError("layer")

    seen = []
    with Log("outer", seen):
        with pytest.raises(KeyError), Broken():
            ops.add("a", "b")
        with pytest.raises(TypeError, match="do not add up"):
            ops.add("a", 1)
        assert len(LAYERS.get()) == 1
        ops.add("a", "b")
    assert seen == [("outer", "Add")] * 2


def test_the_stack_comes_back_when_the_block_fails():
    """Leaving a block by an exception takes its layer away."""
    with pytest.raises(KeyError), Log("a", []), Log("b", []):
        raise KeyError


def test_an_active_layer_cannot_be_entered_twice():
    """Nesting needs a second one; the first stays usable."""
    layer = Log("a", [])
    with layer:
        with pytest.raises(RuntimeError, match="active already"), layer:
            pass
        ops.add("a", "b")
    with layer:
        ops.add("a", "b")
    assert layer.seen == [("a", "Add")] * 2


def test_calls_pass_through_top_first():
    """The layer entered last sees a call first; each sees it once."""
    seen = []
    with Log("outer", seen), Log("middle", seen), Log("inner", seen):
        ops.add("a", "b")
    assert [name for name, _ in seen] == ["inner", "middle", "outer"]


def test_what_a_layer_computes_passes_through_the_layers_below_it_only():
    """So a transform written with library operations does not meet itself."""
    seen = []

    class Twice(Layer):
        def process(self, function, args):
            return ops.join([super().process(function, args), function.apply(*args)])

    with Log("below", seen), Twice(), Log("above", seen):
        assert ops.add("a", "b").data == "abab"
    assert seen == [("above", "Add"), ("below", "Add"), ("below", "Add"), ("below", "_Join")]


def test_a_layer_may_change_the_arguments_and_the_graph_is_still_recorded():
    """What the bottom sees is what the last layer passed on."""

    class Upper(Layer):
        def process(self, function, args):
            return function.apply(*[arg.upper() if isinstance(arg, str) else arg for arg in args])

    prompt = tg.Variable("p", requires_grad=True)
    with Upper():
        result = ops.add(prompt, "x")
    assert result.data == "pX"
    result.backward("f")
    assert [item.data for item in prompt.grad] == ["f"]


def test_threads_and_tasks_have_their_own_stack():
    """A layer is active for who entered it; a task keeps what it was started with."""
    seen, in_thread = [], []

    async def task(name):
        with Log(name, seen):
            await asyncio.sleep(0)
            ops.add("a", "b")
            await asyncio.sleep(0)
            assert len(LAYERS.get()) == 2

    async def main():
        await asyncio.gather(task("one"), task("two"))

    with Log("all", seen):
        thread = threading.Thread(target=lambda: in_thread.append(LAYERS.get()))
        thread.start()
        thread.join()
        asyncio.run(main())
    assert in_thread == [()]
    assert sorted(seen) == [("all", "Add"), ("all", "Add"), ("one", "Add"), ("two", "Add")]


def test_an_operation_inside_a_dispatched_forward_does_not_meet_the_layers_again():
    """The layers have handled the call already; its inside is its own business."""
    seen = []

    class Later(tg.Function):
        @staticmethod
        async def forward(ctx, text):
            return ops.add(text, "!")

    with Log("a", seen):
        assert Later.apply("x").data == "x!"
    assert seen == [("a", "Later")]


def test_rules_pass_through_the_layers_top_first_and_may_be_refused():
    """As calls do: a layer sees whose rule runs and what it computes; its error is that of the pass."""
    asked, seen = [], []

    class Asked(Log):
        def run_rule(self, rule, below):
            asked.append((self.name, rule.function.__name__))
            if rule.function.__name__ == "Refused":
                raise PermissionError(self.name)
            return super().run_rule(rule, below)

    class Says(tg.Function):
        @staticmethod
        def forward(text):
            return tg.Variable(text.data)

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, grad_out):
            return ops.join(["on it: ", grad_out])

    prompt = tg.Variable("p", requires_grad=True)
    said, refused = Says.apply(prompt), type("Refused", (Says,), {}).apply(prompt)
    with Asked("below", seen), Asked("above", seen):
        said.backward("f")
        assert asked == [("above", "Says"), ("below", "Says")]
        assert seen == [("above", "_Join"), ("below", "_Join")]
        with pytest.raises(PermissionError, match="above"):
            refused.backward("f")
    assert [item.data for item in prompt.grad] == ["on it: f"]
