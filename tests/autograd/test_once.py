import pytest

import textgrad_engine as tg
from textgrad_engine import func, ops
from textgrad_engine.autograd import grad, once_differentiable
from textgrad_engine.errors import AutogradError


def leaf(text="p", role="prompt"):
    return tg.Variable(text, role=role, requires_grad=True)


class Once(tg.Function):
    """Its feedback names what the input was."""

    @staticmethod
    def forward(text):
        return tg.Variable(text.data.upper(), role=text.role)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        (text,) = ctx.saved_variables
        return tg.Variable(f"{text.data}: {grad_out.data}", role="said")


class OnceLater(Once):
    """The same, with a rule that waits."""

    @staticmethod
    @once_differentiable
    async def backward(ctx, grad_out):
        (text,) = ctx.saved_variables
        return ops.join([text, ": ", grad_out])


REFUSED = r"the feedback of {}\.backward cannot be differentiated: the rule is marked @once_differentiable"


@pytest.mark.parametrize("function", [Once, OnceLater])
def test_differentiating_the_feedback_raises_and_names_function_and_cause(function):
    """On the tape of create_graph, with respect to the input and to what was said."""
    prompt, said = leaf(), leaf("too loud", "criticism")
    (feedback,) = grad(function.apply(prompt), prompt, said, create_graph=True)
    for target in (prompt, said):
        with pytest.raises(AutogradError, match=REFUSED.format(function.__name__)):
            grad(feedback[0], target, "second", retain_graph=True)
    with pytest.raises(AutogradError, match=REFUSED.format(function.__name__)):
        feedback[0].backward("second")
    assert prompt.grad == said.grad == []


@pytest.mark.parametrize("function", [Once, OnceLater])
def test_nested_func_grad_raises_and_names_the_cause(function):
    """A tape a level does not get around it."""

    def loss(text):
        return ops.exact_match_evaluator(function.apply(text), "HELLO")[0]

    def critic_of(text):
        return ops.exact_match_evaluator(func.grad(loss)(text), "nothing to say")[0]

    assert func.grad(loss)("hallo").data.startswith("hallo: The answer is wrong")
    with pytest.raises(AutogradError, match=REFUSED.format(function.__name__)):
        func.grad(critic_of)("hallo")


@pytest.mark.parametrize("function", [Once, OnceLater])
def test_without_create_graph_it_changes_nothing(function):
    """The feedback is what the rule gave: plain, with its source."""
    prompt = leaf("hello")
    function.apply(prompt).backward("too loud")
    (item,) = prompt.grad
    assert (item.data, item.requires_grad, item.grad_fn) == ("hello: too loud", False, None)
    assert item.source.node == f"{function.__name__}Backward"


def test_nothing_inside_the_rule_is_recorded():
    """Its operations leave no graph that a second pass could go through, and the grad mode comes back."""
    modes = []

    class Watching(Once):
        @staticmethod
        @once_differentiable
        def backward(ctx, grad_out):
            modes.append(tg.is_grad_enabled())
            return ctx.saved_variables[0] + grad_out

    prompt = leaf()
    (feedback,) = grad(Watching.apply(prompt), prompt, "f", create_graph=True)
    modes.append(tg.is_grad_enabled())
    assert modes == [False, True]
    assert [node.name() for node, _ in feedback[0].grad_fn.next_functions if node] == ["AccumulateGrad"]


def test_feedback_handed_through_unchanged_is_marked_too():
    """Else a second pass would go around the rule."""

    class Through(Once):
        @staticmethod
        @once_differentiable
        def backward(ctx, grad_out):
            return grad_out

    prompt, said = leaf(), leaf("s", "said")
    tg.backward(Through.apply(prompt), [[said, tg.Variable("t")]], create_graph=True)
    assert [item.data for item in prompt.grad] == ["s", "t"]
    for item in prompt.grad:
        with pytest.raises(AutogradError, match=REFUSED.format("Through")):
            item.backward("x", retain_graph=True)
    assert said.grad == []


def test_containers_texts_and_none_keep_their_shape():
    """A rule may give text, lists of items, None, and a gradient the shape of its argument."""

    class Shapes(tg.Function):
        @staticmethod
        def forward(parts, other, number):
            return tg.Variable("out")

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        @once_differentiable
        def backward(ctx, grad_out):
            return {"a": "text", "b": [tg.Variable("one"), tg.Variable("two")]}, None, None

    a, b, said = leaf("a"), leaf("b"), leaf("s")
    Shapes.apply({"a": a, "b": b}, leaf("c"), 3).backward(said, create_graph=True)
    assert [[item.data for item in v.grad] for v in (a, b)] == [["text"], ["one", "two"]]
    assert all(item.requires_grad for item in [*a.grad, *b.grad])


def test_feedback_that_depends_on_nothing_trainable_is_a_constant():
    """Nothing to refuse: it requires no grad, as without the decorator."""

    class Fixed(tg.Function):
        @staticmethod
        def forward(text):
            return tg.Variable("out")

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        @once_differentiable
        def backward(ctx, grad_out):
            return "always the same"

    prompt = leaf()
    Fixed.apply(prompt).backward("f", create_graph=True)
    assert not prompt.grad[0].requires_grad


def test_it_may_stand_above_staticmethod():
    """Both orders of the decorators mean the same."""

    class Above(Once):
        @once_differentiable
        @staticmethod
        def backward(ctx, grad_out):
            return grad_out

    prompt, said = leaf(), leaf("s")
    Above.apply(prompt).backward(said, create_graph=True)
    with pytest.raises(AutogradError, match=REFUSED.format("Above")):
        prompt.grad[0].backward("x")


def test_a_rule_that_is_inherited_is_named_after_the_class_that_ran():
    """The message points at the Function in the graph, not at where its rule was written."""

    class Child(Once):
        pass

    prompt = leaf()
    (feedback,) = grad(Child.apply(prompt), prompt, "f", create_graph=True)
    with pytest.raises(AutogradError, match=REFUSED.format("Child")):
        feedback[0].backward("x")


def test_it_works_under_vmap():
    """With a rule that computes with operations; a second derivative is refused there too."""

    class Batched(Once):
        @staticmethod
        @once_differentiable
        def backward(ctx, grad_out):
            return ops.join([*ctx.saved_variables, ": ", grad_out])

    def loss(text, target):
        return ops.exact_match_evaluator(Batched.apply(text), target)[0]

    def critic_of(text):
        return ops.exact_match_evaluator(func.grad(loss)(text, "HELLO"), "nothing to say")[0]

    gradients = func.vmap(func.grad(loss))(["hallo", "hello"], ["HELLO", "HELLO"])
    assert gradients.data[0].startswith("hallo: The answer is wrong")
    with pytest.raises(AutogradError, match=REFUSED.format("Batched")):
        func.vmap(func.grad(critic_of))(["hallo", "hello"])
