import asyncio
import itertools
from collections import OrderedDict, UserList, defaultdict, deque, namedtuple
from concurrent.futures import Future
from dataclasses import dataclass
from types import MappingProxyType

import pytest

import textgrad_engine as tg
from textgrad_engine import func, ops
from textgrad_engine.errors import AutogradError

from ..values import leaf, texts


class Both(tg.Function):
    """Two texts, each with feedback of its own."""

    @staticmethod
    def forward(ctx, a, b):
        return tg.Variable(f"{getattr(a, 'data', a)}{getattr(b, 'data', b)}")

    @staticmethod
    def backward(ctx, grad_out):
        return tuple(f"{n}: {grad_out.data}" if need else None for n, need in enumerate(ctx.needs_input_grad))


# misuse


def test_a_function_is_not_instantiated():
    """The message says what to call instead."""
    with pytest.raises(AutogradError, match=r"Both\.apply"):
        Both()


def test_a_function_without_forward():
    """It says that one is needed."""

    class Empty(tg.Function):
        pass

    with pytest.raises(NotImplementedError, match="needs a `forward`") as caught:
        Empty.apply("x")
    assert "Empty.apply" in caught.value.__notes__[0]


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_forward_in_the_other_style_is_told_both_repairs(kind):
    """Python's own message counts arguments and says nothing of a ctx."""

    def without(text):
        return tg.Variable(text.data)

    async def without_later(text):
        return tg.Variable(text.data)

    def with_ctx(ctx, text):
        return tg.Variable(text.data)

    async def with_ctx_later(ctx, text):
        return tg.Variable(text.data)

    first, second = (without, with_ctx) if kind == "plain" else (without_later, with_ctx_later)
    bare = type("Bare", (tg.Function,), {"forward": staticmethod(first)})
    both = type("Twice", (Both,), {"forward": staticmethod(second), "setup_context": staticmethod(print)})
    for function, note in ((bare, "Bare has no setup_context"), (both, "Twice has a setup_context")):
        with pytest.raises(TypeError) as caught:
            _ = function.apply(tg.Variable("x")).data
        assert any(line.startswith(note) for line in caught.value.__notes__)
    with pytest.raises(TypeError) as caught:
        _ = bare.apply("x", "too", "many").data
    assert not any("setup_context" in line for line in getattr(caught.value, "__notes__", ()))


@pytest.mark.parametrize("kind", ["plain", "async"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_a_backward_that_does_not_take_what_it_is_given_is_told_what_that_is(kind, outputs):
    """Python's own message counts arguments of a function, and names neither the Function nor its outputs."""

    def rule(ctx, one, two, three):
        return one

    async def rule_later(ctx, one, two, three):
        return one

    def forward(ctx, text):
        made = tuple(tg.Variable(text.data) for _ in range(outputs))
        return made if outputs > 1 else made[0]

    backward = staticmethod(rule if kind == "plain" else rule_later)
    wrong = type("Wrong", (tg.Function,), {"forward": staticmethod(forward), "backward": backward})
    made = wrong.apply(leaf())
    with pytest.raises(TypeError) as caught:
        (made[0] if outputs > 1 else made).backward("longer")
    each, names = ("its output", "ctx, grad_0") if outputs == 1 else ("each of its 2 outputs", "ctx, grad_0, grad_1")
    assert caught.value.__notes__[0] == (
        "Wrong.backward takes (ctx, one, two, three), and is called with the ctx and a gradient for "
        f"{each}; write a static method backward({names})"
    )


def test_what_a_function_says_wrongly_of_itself_is_told_when_its_class_is_made():
    """A dispatched call failed amid the library, when its inputs were paid for."""
    with pytest.raises(
        TypeError, match=r"Short\.setup_context takes \(ctx, inputs\), and is called with \(ctx, inputs, o"
    ):

        class Short(Both):
            @staticmethod
            def setup_context(ctx, inputs):
                """Saves nothing."""

    with pytest.raises(TypeError, match=r"Named\.num_outputs must be a whole number, got '2'"):

        class Named(Both):
            num_outputs = "2"

    with pytest.raises(ValueError, match=r"Silent\.num_outputs must be at least 1, got 0"):

        class Silent(Both):
            num_outputs = 0


def test_a_setup_context_written_anew_runs_without_grad_whatever_the_parent_says():
    """What a library class says of its own must not make a user's computation part of the graph."""
    modes = []

    class Saves(tg.Function):
        only_saves = True

        @staticmethod
        async def forward(text):
            return tg.Variable(text.data)

        @staticmethod
        def setup_context(ctx, inputs, output):
            modes.append(tg.is_grad_enabled())

        @staticmethod
        def backward(ctx, grad_out):
            return grad_out

    class Own(Saves):
        @staticmethod
        def setup_context(ctx, inputs, output):
            modes.append(tg.is_grad_enabled())

    assert (type("Heir", (Saves,), {}).only_saves, Own.only_saves) == (True, False)
    for function in (Saves, Own):
        assert function.apply(leaf()).data == "p"
    assert modes == [True, False]


def test_a_setup_context_that_nobody_would_wait_for_is_refused():
    """When the class is made."""
    with pytest.raises(TypeError, match=r"Late\.setup_context is an `async def`"):

        class Late(Both):
            @staticmethod
            async def setup_context(ctx, inputs, output):
                pass


def test_outputs_that_no_feedback_would_reach_are_refused():
    """Variables in a list or dict are no outputs, and a coroutine computes nothing; neither passes in silence."""

    async def later():
        raise AssertionError

    for output, problem in (
        ([tg.Variable("a")], "returned a Variable inside a list.*as a tuple of Variables"),
        ((tg.Variable("a"), {"b": [tg.Variable("c")]}), "returned a Variable inside a dict"),
        (Record(tg.Variable("a")), "returned a Variable inside a Record"),
        ((tg.Variable("a"), Record("b", [tg.Variable("c")])), "returned a Variable inside a Record"),
        ([{"a": Texts([tg.Variable("b")])}], "returned a Variable inside a Texts"),
        ({tg.Variable("a")}, "returned a Variable inside a set"),
        (deque([tg.Variable("a")]), "returned a Variable inside a deque"),
        (UserList([tg.Variable("a")]), "returned a Variable inside a UserList"),
        (defaultdict(list, a=tg.Variable("a")), "returned a Variable inside a defaultdict"),
        ((each for each in [tg.Variable("a")]), "returned a generator, where feedback cannot find the Variables"),
        (later(), "returned a coroutine.*async def forward"),
    ):
        wrong = type("Wrong", (Both,), {"forward": staticmethod(lambda ctx, a, output=output: output)})
        with pytest.raises(TypeError, match=rf"Wrong\.forward.*{problem}"):
            wrong.apply(leaf())


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_forward_that_yields_is_refused(kind):
    """When the class is made; a call of it would give a generator, and no output."""

    def plain(ctx, text):
        yield tg.Variable("x")

    async def dispatched(ctx, text):
        yield tg.Variable("x")

    with pytest.raises(TypeError, match=r"Yields\.forward has a `yield`.*Return the outputs"):
        type("Yields", (Both,), {"forward": staticmethod(plain if kind == "plain" else dispatched)})


def test_a_function_without_backward_computes_and_says_why_feedback_stops():
    """Forward alone is fine, and so is a graph that no feedback has to pass."""

    class OneWay(tg.Function):
        @staticmethod
        def forward(ctx, text):
            return tg.Variable(text.data)

    prompt = leaf()
    result = OneWay.apply(prompt)
    assert result.data == "p"
    with pytest.raises(NotImplementedError, match="no `backward`") as caught:
        result.backward("f")
    assert "OneWay" in caught.value.__notes__[0]
    assert prompt.grad == []
    OneWay.apply(prompt).backward("")  # nothing to pass on


@pytest.mark.parametrize("returned", [("f",), "f", None, ("f", None, "g"), [None, None]])
def test_a_wrong_number_of_gradients_names_expected_and_got(returned):
    """Feedback that went to the wrong argument would be worse than none."""

    class Wrong(Both):
        @staticmethod
        def backward(ctx, grad_out):
            return returned

    a, b = leaf(), leaf()
    count = len(returned) if isinstance(returned, tuple) else 1
    hint = "several are a tuple" if isinstance(returned, list) else "None for those that need none"
    with pytest.raises(AutogradError, match=rf"Wrong\.backward returned {count} gradients, expected 2: .*{hint}$"):
        Wrong.apply(a, b).backward("f")
    assert a.grad == b.grad == []


@pytest.mark.parametrize("call", [
    lambda text: Ends.apply(text), lambda text: Ends.apply(text, "?"), lambda text: Ends.apply(text=text),
    lambda text: Ends.apply(text, ending="?"),
])  # fmt: skip
def test_an_argument_with_a_default_may_have_a_gradient_in_every_call(call):
    """As in PyTorch, None at the end may stand for what this call did not give."""
    text = leaf()
    call(text).backward("f")
    assert texts(text.grad) == ["f"]


class Ends(tg.Function):
    @staticmethod
    def forward(ctx, text, ending="!"):
        return tg.Variable(text.data + ending)

    @staticmethod
    def backward(ctx, grad_out):
        return grad_out, None


def test_a_gradient_that_is_none_of_ours_names_the_function():
    """A number, say, where feedback belongs."""

    class Wrong(Both):
        @staticmethod
        def backward(ctx, grad_out):
            return 3, None

    with pytest.raises(TypeError, match=r"Wrong\.backward gave int"):
        Wrong.apply(leaf(), "x").backward("f")


def test_an_error_in_backward_is_the_callers():
    """Raised where backward was called, whichever thread the rule ran on."""

    class Broken(Both):
        @staticmethod
        async def backward(ctx, grad_out):
            raise ZeroDivisionError("in the rule")

    with pytest.raises(ZeroDivisionError) as caught:
        Broken.apply(leaf(), "x").backward("f")
    assert caught.value.__notes__ == ["while computing BrokenBackward"]


@pytest.mark.parametrize(("returned", "count"), [(("a", "b"), 2), ("a", 1), ((), 0)])
def test_a_dispatched_function_returns_what_it_declared(returned, count):
    """num_outputs and forward disagree: an error for every output, with both numbers."""

    class Three(tg.Function):
        num_outputs = 3

        @staticmethod
        async def forward(ctx):
            return returned

    for out in Three.apply():
        with pytest.raises(AutogradError, match=rf"Three\.forward returned {count} values.*num_outputs = 3"):
            _ = out.data


def test_keyword_arguments_are_bound_to_forward():
    """Each has its place among the gradients; unknown and keyword-only ones are errors."""
    a, b = leaf("a"), leaf("b")
    Both.apply(b=b, a=a).backward("f")
    assert (texts(a.grad), texts(b.grad)) == (["0: f"], ["1: f"])
    with pytest.raises(TypeError, match="unexpected keyword argument 'c'"):
        Both.apply(a, b, c=b)

    class Only(tg.Function):
        @staticmethod
        def forward(text, *, style):
            return tg.Variable(text.data)

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

    with pytest.raises(TypeError, match="style must not be keyword-only"):
        Only.apply(a, style="x")


# both styles


class WithCtx(tg.Function):
    @staticmethod
    def forward(ctx, text, suffix):
        ctx.save_for_backward(text, suffix)
        ctx.note = "kept"
        return tg.Variable(text.data + suffix)

    @staticmethod
    def backward(ctx, grad_out):
        text, suffix = ctx.saved_variables
        return f"{ctx.note} {text.data}{suffix}: {grad_out.data}", None


class WithSetup(tg.Function):
    @staticmethod
    def forward(text, suffix):
        return tg.Variable(text.data + suffix)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.note = "kept"

    backward = WithCtx.backward


class WithCtxLater(WithCtx):
    @staticmethod
    async def forward(ctx, text, suffix):
        await asyncio.sleep(0)
        return WithCtx.forward(ctx, text, suffix)


class WithSetupLater(WithSetup):
    @staticmethod
    async def forward(text, suffix):
        await asyncio.sleep(0)
        return WithSetup.forward(text, suffix)

    @staticmethod
    async def backward(ctx, grad_out):
        await asyncio.sleep(0)
        return WithCtx.backward(ctx, grad_out)


@pytest.mark.parametrize("function", [WithCtx, WithSetup, WithCtxLater, WithSetupLater])
def test_both_styles_of_forward_run_at_once_or_dispatched(function):
    """One meaning, whichever way a Function is written."""
    prompt = leaf()
    result = function.apply(prompt, "!")
    assert result.requires_grad
    assert result.grad_fn.name() == f"{function.__name__}Backward"
    result.backward("f")
    assert result.data == "p!"
    assert texts(prompt.grad) == ["kept p!: f"]


def test_a_plain_forward_runs_in_the_callers_thread_at_once():
    """Its exceptions are the caller's, and nothing is pending."""

    class Now(tg.Function):
        @staticmethod
        def forward(ctx, text):
            raise KeyError(text.data)

    with pytest.raises(KeyError, match="p"):
        Now.apply(leaf())


def test_a_result_is_a_new_variable_even_when_forward_returns_its_input():
    """The input stays a leaf, and what forward made itself has no history."""

    class Same(tg.Function):
        @staticmethod
        def forward(ctx, text):
            return text

        @staticmethod
        def backward(ctx, grad_out):
            return grad_out

    prompt = leaf(role="prompt")
    result = Same.apply(prompt)
    assert result is not prompt
    assert prompt.is_leaf
    assert result.role == "prompt"
    result.backward("f")
    assert texts(prompt.grad) == ["f"]


def test_operations_inside_forward_are_not_recorded():
    """The Function's own rule stands for all of them; also where the forward is dispatched."""
    recorded = []

    class Inner(Both):
        @staticmethod
        def forward(ctx, a, b):
            result = ops.add(a, b)
            recorded.append((tg.is_grad_enabled(), result.requires_grad))
            return result

    class Later(Inner):
        @staticmethod
        async def forward(ctx, a, b):
            return Inner.forward(ctx, a, b)

    assert Later.apply(leaf("a"), leaf("b")).data == "ab"
    assert Inner.apply(leaf("a"), leaf("b")).data == "ab"
    assert recorded == [(False, False)] * 2

    a, b = leaf("a"), leaf("b")
    result = Inner.apply(a, b)
    assert [node.name() for node, _ in result.grad_fn.next_functions] == ["AccumulateGrad"] * 2
    result.backward("f")
    assert texts(a.grad) == ["0: f"]


def test_the_reverse_the_string_example_of_afnios_documentation():
    """With only its import changed; `backward` assigns and returns the gradient, which counts once."""
    afnio, Function = tg, tg.Function

    class Func(Function):
        @staticmethod
        def forward(ctx, x: afnio.Variable):
            reverse = x.data[::-1]
            out = afnio.Variable(data=reverse, role=x.role, requires_grad=True)
            ctx.save_for_backward(x, reverse, out)
            return out

        @staticmethod
        def backward(ctx, grad_out):
            x, reverse, out = ctx.saved_variables  # noqa: RUF059
            grad = f"Here is the feedback for {x.role} (reversed): {grad_out.grad}"
            role = f"Feedback to {x.role}"
            x.grad = afnio.Variable(data=grad, role=role)
            return x.grad

    a = afnio.Variable(data="This is a string", role="Input string", requires_grad=True)
    c = Func.apply(a)
    assert c.data == "gnirts a si sihT"
    c.backward("Say more.")
    assert len(a.grad) == 1
    assert a.grad[0].role == "Feedback to Input string"
    assert a.grad[0].data.startswith("Here is the feedback for Input string (reversed): [Variable('Say more.'")


# containers

Pair = namedtuple("Pair", "left right")  # noqa: PYI024


class Nested(tg.Function):
    """Feedback for each variable inside nested messages, in their shape."""

    @staticmethod
    def forward(ctx, messages, extra):
        ctx.shape = messages
        return tg.Variable("out")

    @staticmethod
    def backward(ctx, grad_out):
        def walk(tree, path):
            if isinstance(tree, dict):
                return {key: walk(value, f"{path}/{key}") for key, value in reversed(tree.items())}
            if isinstance(tree, Pair):
                return Pair(*[walk(value, f"{path}/{n}") for n, value in enumerate(tree)])
            if isinstance(tree, list | tuple):
                return [walk(value, f"{path}/{n}") for n, value in enumerate(tree)]
            return path

        return walk(ctx.shape, ""), None


class Texts(list):
    pass


class Fields(dict):
    pass


@dataclass
class Record:
    text: object
    more: object = ()


@pytest.mark.parametrize("wrap", [
    Texts, lambda vs: Fields(a=vs[0]), lambda vs: defaultdict(list, a=vs[0]), set, frozenset, deque,
    lambda vs: MappingProxyType({"a": vs[0]}), lambda vs: Record(vs[0]), lambda vs: Record("x", vs),
    lambda vs: [{"deep": Texts(vs)}], UserList, lambda vs: dict(enumerate(vs)).values(),
    lambda vs: dict(enumerate(vs)).items(), lambda vs: dict.fromkeys(vs).keys(),
])  # fmt: skip
@pytest.mark.parametrize("transform", [lambda f: f, lambda f: lambda v: func.vmap(f)([v])])
def test_variables_where_no_feedback_would_find_them_are_refused(wrap, transform):
    """A silent constant would be worse: the message names the class, and what to pass instead."""
    with pytest.raises(
        TypeError, match=r"argument 0 of the call holds a Variable inside a \w+, where .* Pass Variables in a list"
    ):
        transform(lambda text: Nested.apply(wrap([text]), None))(leaf())


@pytest.mark.parametrize("make", [
    iter, reversed, enumerate, itertools.chain, lambda vs: map(str, vs), lambda vs: (v for v in vs),
    lambda vs: iter({"a": vs[0]}.values()), lambda vs: [iter(vs)],
])  # fmt: skip
def test_an_iterator_is_refused_as_it_can_be_looked_into_only_once(make):
    """Whoever looked for Variables in it would leave none to the forward."""
    given = make([leaf()])
    with pytest.raises(TypeError, match=r"holds an? \w+, where feedback cannot find the Variables that it may give"):
        Nested.apply(given, None)
    assert list(given)


def test_containers_of_other_classes_without_variables_are_passed_as_they_are():
    """They are nobody's business."""
    seen = []

    class Looks(tg.Function):
        @staticmethod
        def forward(ctx, *values):
            seen.extend(values)
            return tg.Variable("x")

    with open(__file__, encoding="utf-8") as file:
        values = (
            Texts("ab"), Fields(a=1), Record("x"), Record, {1}, range(3), UserList("ab"), {"a": 1}.items(), {}.keys(),
            b"ab", file,
        )  # fmt: skip
        Looks.apply(*values)
    assert all(got is given for got, given in zip(seen, values))


def test_variables_in_nested_containers_are_tracked():
    """Lists, tuples, named tuples and dicts, ordered ones too; a dict of gradients may come in another order."""
    a, b, c, d, constant = leaf("a"), leaf("b"), leaf("c"), leaf("d"), tg.Variable("constant")
    rest = OrderedDict(x=d, y=constant, z=a)
    messages = [{"role": "system", "content": [a, "text", (b, 3)]}, Pair(c, rest), OrderedDict()]
    result = Nested.apply(messages, None)
    assert [node and node.name() for node, _ in result.grad_fn.next_functions] == [
        *["AccumulateGrad"] * 4, None, "AccumulateGrad"
    ]  # fmt: skip
    assert result.grad_fn.ctx.needs_input_grad == (True, False)
    result.backward("f")
    assert [texts(v.grad) for v in (a, b, c, d, constant)] == [
        ["/0/content/0", "/1/1/z"], ["/0/content/2/0"], ["/1/0"], ["/1/1/x"], []
    ]  # fmt: skip


@pytest.mark.parametrize(
    "gradient", [["f"], ["f", "g", "h"], "fg", {"a": "f"}, [["f", "g"]], ["f", ["g", "h"]], ["f", {"other": "g"}]]
)
def test_a_gradient_of_another_shape_is_refused(gradient):
    """It names the argument's position and what came; no leaf has feedback."""

    class Wrong(Nested):
        @staticmethod
        def backward(ctx, grad_out):
            return gradient, None

    a, b = leaf(), leaf()
    with pytest.raises(AutogradError, match=r"Wrong\.backward: the gradient for argument 0 must have .* shape"):
        Wrong.apply([a, {"b": b}], None).backward("f")
    assert a.grad == b.grad == []


def test_parts_of_a_containers_gradient_may_be_missing_or_several():
    """None for the whole or for a part; a list of items for one variable."""

    class Some(Nested):
        @staticmethod
        def backward(ctx, grad_out):
            return [["one", "two"], None], None

    a, b = leaf(), leaf()
    Some.apply([a, {"b": b}], leaf()).backward("f")
    assert (texts(a.grad), b.grad) == (["one", "two"], [])

    class Nothing(Nested):
        @staticmethod
        def backward(ctx, grad_out):
            return None, None

    Nothing.apply([a, b], None).backward("f")
    assert len(a.grad) == 2


# several outputs


class Halves(tg.Function):
    num_outputs = 2

    @staticmethod
    def forward(ctx, text):
        middle = len(text.data) // 2
        return tg.Variable(text.data[:middle], role="head"), tg.Variable(text.data[middle:], role="tail")

    @staticmethod
    def backward(ctx, head, tail):
        return f"{head.data}|{tail.data}"


class HalvesLater(Halves):
    @staticmethod
    async def forward(ctx, text):
        return Halves.forward(ctx, text)


@pytest.mark.parametrize("function", [Halves, HalvesLater])
def test_several_outputs_are_one_node_with_one_call(function):
    """Its rule gets one gradient for each output, after both have arrived."""
    prompt = leaf("abcd")
    head, tail = function.apply(prompt)
    assert head.grad_fn is tail.grad_fn
    assert (head.output_nr, tail.output_nr) == (0, 1)
    tg.backward([tail, head], ["t", "h"])
    assert (head.data, tail.data, head.role, tail.role) == ("ab", "cd", "head", "tail")
    assert texts(prompt.grad) == ["h|t"]


@pytest.mark.parametrize("function", [Halves, HalvesLater])
def test_an_output_without_feedback_has_an_empty_gradient(function):
    """Empty text, unless the Function asked for None."""
    prompt = leaf("abcd")
    function.apply(prompt)[1].backward("t")
    assert texts(prompt.grad) == ["|t"]


def test_outputs_that_are_no_variables_pass_through():
    """A plain forward may return, say, a count beside its text; there is no feedback on it."""

    class Counted(tg.Function):
        @staticmethod
        def forward(ctx, text):
            return tg.Variable(text.data), len(text.data)

        @staticmethod
        def backward(ctx, grad_out, nothing):
            assert nothing is None
            return grad_out

    prompt = leaf("abc")
    text, count = Counted.apply(prompt)
    assert count == 3
    text.backward("f")
    assert texts(prompt.grad) == ["f"]


def test_a_text_alone_is_refused_where_feedback_was_to_reach_what_it_is_made_of():
    """It has no way back, and what is made of it trains nothing; with a value that wants no feedback it is a result."""

    class Shout(tg.Function):
        @staticmethod
        def forward(ctx, text):
            return text.data.upper()

        @staticmethod
        def backward(ctx, grad_out):
            return grad_out

    with pytest.raises(TypeError, match=r"Shout\.forward returned 'ABC', .*return Variable\(text, role=\.\.\.\)"):
        Shout.apply(leaf("abc"))
    assert Shout.apply(leaf("abc").detach()) == "ABC"
    with tg.no_grad():
        assert Shout.apply(leaf("abc")) == "ABC"


def test_an_answer_in_plain_text_becomes_a_variable_when_dispatched():
    """A dispatched forward may return strings and numbers."""

    class Count(tg.Function):
        @staticmethod
        async def forward(ctx, text):
            return len(text.data)

    assert Count.apply(leaf("abc")).data == 3


def test_a_dispatched_forward_may_return_what_is_pending_itself():
    """Its value is waited for, and what that failed with is what this one fails with."""

    class Inner(tg.Function):
        @staticmethod
        async def forward(ctx, text):
            await asyncio.sleep(0)
            return tg.Variable(str(1 // len(text.data)), role="inner")

    class Outer(tg.Function):
        @staticmethod
        async def forward(ctx, text):
            return Inner.apply(text)

    result = Outer.apply(leaf("a"))
    assert (result.data, result.role) == ("1", "inner")
    with pytest.raises(ZeroDivisionError):
        _ = Outer.apply(leaf("")).data


def test_the_roles_of_a_dispatched_function_are_known_at_once_where_it_says_them():
    """And a wrong number of them is found before anything is sent."""
    started = []

    class Wrong(tg.Function):
        num_outputs = 2

        @staticmethod
        async def forward(ctx):
            started.append(1)

        @staticmethod
        def output_role():
            return "only one"

    with pytest.raises(AutogradError, match=r"Wrong\.output_role gave 1 roles for 2 outputs: 'only one'"):
        Wrong.apply()
    assert started == []
    gate = Future()

    class Named(tg.Function):
        @staticmethod
        async def forward(ctx):
            await asyncio.wrap_future(gate)
            return tg.Variable("x", role="another")

        @staticmethod
        def output_role():
            return "answer"

    result = Named.apply()
    assert result.role == "answer"
    gate.set_result(None)
    assert (result.data, result.role) == ("x", "answer")


class Once(tg.Function):
    """One argument, without a ctx."""

    @staticmethod
    def forward(text):
        return text

    @staticmethod
    def setup_context(ctx, inputs, output): ...


class OnceWithContext(tg.Function):
    """One argument beside the ctx."""

    @staticmethod
    def forward(ctx, text):
        return text


@pytest.mark.parametrize(("function", "given"), [(Once, ()), (OnceWithContext, ("a", "b"))])
def test_an_argument_too_few_or_too_many_is_no_matter_of_the_style(function, given):
    """Its forward would fit the other style by its number of parameters, though it is written in its own."""
    with pytest.raises(TypeError, match="positional argument") as caught:
        function.apply(*given)
    assert not hasattr(caught.value, "__notes__")


def test_arguments_by_name_that_do_not_fit_name_the_function():
    """`missing a required argument: 'text'` alone told nothing of whose."""
    with pytest.raises(TypeError, match=r"^Once\.apply: missing a required argument: 'text'$"):
        Once.apply(word="a")
    with pytest.raises(TypeError, match=r"^Once\.apply: multiple values for argument 'text'$"):
        Once.apply("a", text="b")
