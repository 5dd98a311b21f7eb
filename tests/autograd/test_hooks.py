import gc

import pytest

import textgrad_engine as tg
from textgrad_engine import func, nn, ops, optim
from textgrad_engine.autograd import get_gradient_edge, grad, register_multi_grad_hook
from textgrad_engine.errors import AutogradError
from textgrad_engine.testing import FunctionModel

from ..values import leaf, texts


def shown(gradients):
    return [None if gradient is None else gradient.data for gradient in gradients]


class Pair(tg.Function):
    """Two inputs, two outputs; the rule names what it was given."""

    num_outputs = 2

    @staticmethod
    def forward(ctx, a, b):
        return tg.Variable("x"), tg.Variable("y")

    @staticmethod
    def backward(ctx, first, second):
        return f"a({first.data}|{second.data})", f"b({first.data}|{second.data})"


# when a leaf has been written


def test_a_post_accumulate_hook_wants_a_leaf_that_wants_feedback():
    """On anything else it would never be called; the message says what to use."""
    with pytest.raises(AutogradError, match="does not require grad: no feedback will be written"):
        tg.Variable("c").register_post_accumulate_grad_hook(print)
    with pytest.raises(AutogradError, match="is a result, and feedback is written to leaves only"):
        (leaf() + "!").register_post_accumulate_grad_hook(print)


def test_a_post_accumulate_hook_that_fails_leaves_all_leaves_written_and_lets_the_others_run():
    """The pass has succeeded by then: it is not undone, and one leaf's hook does not decide about another's."""
    first, second, third, seen = leaf("1", "first"), leaf("2", "second"), leaf("3"), []
    first.register_post_accumulate_grad_hook(lambda leaf: 1 / 0)
    second.register_post_accumulate_grad_hook(lambda leaf: {}["no"])
    third.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf))
    result = first + second + third
    with pytest.raises(ZeroDivisionError) as caught:
        result.backward("f")
    assert caught.value.__notes__ == [
        "in a hook that runs after feedback was written to Variable 'first'",
        "another such hook failed too: KeyError: 'no'",
    ]
    assert [texts(v.grad) for v in (first, second, third)] == [["f"]] * 3
    assert seen == [third]
    with pytest.raises(AutogradError, match="freed"):
        result.backward("f")


def test_post_accumulate_hooks_run_when_all_leaves_are_written_in_graph_order():
    """What a hook sees does not depend on which leaf is its own."""
    prompt, other, seen = leaf("p"), leaf("o"), []
    for variable, name in ((other, "other"), (prompt, "prompt")):
        variable.register_post_accumulate_grad_hook(
            lambda got, name=name, variable=variable: seen.append(
                (name, got is variable, texts(prompt.grad), texts(other.grad))
            )
        )
    (prompt + other).backward("f")
    assert seen == [("prompt", True, ["f"], ["f"]), ("other", True, ["f"], ["f"])]


def test_post_accumulate_hooks_run_only_where_something_was_written():
    """Not for a true zero, not for `autograd.grad`, not for a leaf that `inputs=` leaves out, not in a failed pass."""
    prompt, other, seen = leaf(), leaf(), []
    prompt.register_post_accumulate_grad_hook(seen.append)
    (prompt + "!").backward("")
    grad(prompt + "!", prompt, "f")
    (prompt + other).backward("f", inputs=[other])
    with other.register_hook(lambda feedback: 1 / 0), pytest.raises(ZeroDivisionError):
        (prompt + other).backward("f")
    assert seen == []
    assert prompt.grad == []


def test_hooks_of_a_leafs_node_run_one_after_the_other():
    """The second one that is registered does not take the place of the first, and each goes by its own handle."""
    prompt, seen = leaf(), []
    node = get_gradient_edge(prompt).node
    handle, _ = (node.register_hook(lambda *given, name=name: seen.append(name)) for name in ("first", "second"))
    for _ in range(2):
        (prompt + "!").backward("say more")
        handle.remove()
    assert seen == ["first", "second", "second"]


def test_a_post_accumulate_hook_may_use_up_the_feedback_and_change_the_leaf():
    """An optimizer's step in the backward pass; the graph is freed, so nothing complains about the edit."""
    prompt = nn.Parameter("Be brief.", role="prompt")

    def step(parameter):
        with tg.no_grad():
            parameter.data = f"{parameter.data} ({parameter.grad[0].data})"
        parameter.grad = None

    handle = prompt.register_post_accumulate_grad_hook(step)
    (prompt + "!").backward("politer")
    assert (prompt.data, prompt.grad) == ("Be brief. (politer)", [])
    handle.remove()
    handle.remove()
    (prompt + "!").backward("again")
    assert texts(prompt.grad) == ["again"]


# on a node


def test_a_node_hook_that_returns_the_wrong_number_fails_the_pass():
    """The message names the node, what was expected and what came; nothing is written."""
    a, b = leaf("a"), leaf("b")
    for register, what in (("register_prehook", "outputs"), ("register_hook", "inputs that are Variables")):
        for wrong, got in ((("1",), "1 of them"), ("text", "str 'text'")):
            x, _ = Pair.apply(a, b)
            getattr(x.grad_fn, register)(lambda *gradients, wrong=wrong: wrong)
            with pytest.raises(AutogradError, match=rf"hook of PairBackward must return .* 2 .*{what}; got {got}"):
                x.backward("f")
    assert a.grad == b.grad == []


def test_a_node_hook_that_raises_fails_the_pass():
    """Before or after the rule; retried without it, the feedback counts once."""
    prompt = leaf()
    result = prompt + "!"
    for register in (result.grad_fn.register_prehook, result.grad_fn.register_hook):
        with register(lambda *gradients: 1 / 0), pytest.raises(ZeroDivisionError):
            result.backward("f")
    result.backward("f")
    assert texts(prompt.grad) == ["f"]


def test_node_hooks_see_what_goes_in_and_what_comes_out():
    """One entry for each output and for each input; None where nothing is said."""
    a, b, seen = leaf("a"), tg.Variable("b"), []
    x, _ = Pair.apply(a, b)
    x.grad_fn.register_prehook(lambda outs: seen.append(("before", shown(outs))))
    x.grad_fn.register_hook(lambda ins, outs: seen.append(("after", shown(ins), shown(outs))))
    tg.backward(x, "f")
    assert seen == [("before", ["f", None]), ("after", ["a(f|)", None], ["f", None])]


def test_node_hooks_may_replace_in_the_order_of_registration():
    """Each gets what the one before made of it; None keeps what came, and a single gradient needs no tuple."""
    a, b = leaf("a"), leaf("b")
    x, y = Pair.apply(a, b)
    node = x.grad_fn
    node.register_prehook(lambda outs: (f"<{outs[0].data}>", None))
    node.register_prehook(lambda outs: (outs[0], "new"))
    node.register_hook(lambda ins, outs: (ins[0], None))
    node.register_hook(lambda ins, outs: (f"{ins[0].data}!", [tg.Variable("one"), tg.Variable("two")]))
    tg.backward([x, y], ["f", "g"])
    assert (texts(a.grad), texts(b.grad)) == (["a(<f>|new)!"], ["one", "two"])

    single = leaf()
    result = single + "!"
    result.grad_fn.register_prehook(lambda outs: f"({outs[0].data})")
    result.backward("f")
    assert texts(single.grad) == ["(f)"]


def test_a_prehook_does_not_change_what_is_retained_or_captured():
    """The gradient of a result is what reached it; the prehook belongs to the node behind."""
    prompt = leaf()
    result = prompt + "!"
    result.grad_fn.register_prehook(lambda outs: ("changed",))
    assert [texts(g) for g in grad(result, [result, prompt], "f", retain_graph=True)] == [["f"], ["changed"]]
    result.retain_grad()
    result.backward("f")
    assert (texts(result.grad), texts(prompt.grad)) == (["f"], ["changed"])


def test_node_hooks_are_not_called_for_a_zero_and_may_make_one():
    """No rule runs for it; what lies behind costs nothing."""
    critic = FunctionModel(lambda request: {"case_1": {"system": "shorter"}})
    with tg.use_models(forward=FunctionModel(lambda request: "answer"), backward=critic):
        prompt, seen = nn.Parameter("Answer.", role="prompt"), []
        answer = nn.ChatCompletion("{question}", system=prompt)(question="Why?")
        end = answer + "!"
        end.grad_fn.register_prehook(seen.append)
        end.backward("", retain_graph=True)
        assert seen == []
        answer.grad_fn.register_prehook(lambda outs: ("",))
        end.backward("wrong")
    assert len(seen) == 1
    assert (critic.requests, prompt.grad) == ([], [])


def test_a_node_hook_sees_feedback_that_a_model_wrote():
    """It is called when the answer is there, not when it was asked for."""
    critic = FunctionModel(lambda request: {"case_1": {"system": "shorter"}})
    with tg.use_models(forward=FunctionModel(lambda request: "answer"), backward=critic):
        prompt = nn.Parameter("Answer.", role="prompt")
        answer = nn.ChatCompletion("{question}", system=prompt)(question="Why?")
        answer.grad_fn.register_hook(lambda ins, outs: [gradient and f"{gradient.data}!" for gradient in ins] and None)
        answer.grad_fn.register_hook(lambda ins, outs: tuple(g and g.data.upper() for g in ins))
        answer.backward("wrong")
    assert texts(prompt.grad) == ["SHORTER"]


def test_what_a_node_hook_gives_carries_where_it_came_from_only_if_it_says_so():
    """Items that pass a hook unchanged keep their source."""
    prompt = leaf()
    result = prompt + "!"
    result.grad_fn.register_hook(lambda ins, outs: ins)
    result.backward("f")
    assert texts(prompt.grad) == ["f"]
    assert prompt.grad[0].source is not None


def test_the_node_of_a_leaf_has_hooks_that_outlive_it():
    """As the hooks of DDP: before and after the feedback is appended."""
    prompt, seen = leaf(), []
    node = get_gradient_edge(prompt).node
    node.register_prehook(lambda outs: (f"<{outs[0].data}>",))
    after = node.register_hook(lambda ins, outs: seen.append((ins, shown(outs), texts(prompt.grad))))
    del node
    gc.collect()
    (prompt + "!").backward("f")
    assert seen == [((), ["<f>"], ["<f>"])]
    after.remove()
    (prompt + "!").backward("g")
    assert len(seen) == 1


def test_a_prehook_of_a_leaf_returns_one_gradient_and_may_make_a_zero():
    """Two would be a mistake; None in the tuple is a zero."""
    prompt = leaf(role="prompt")
    node = get_gradient_edge(prompt).node
    with node.register_prehook(lambda outs: ("a", "b")), pytest.raises(AutogradError, match=r"'prompt' .* got 2"):
        (prompt + "!").backward("f")
    node.register_prehook(lambda outs: (None,))
    (prompt + "!").backward("f")
    assert prompt.grad == []


def test_a_removed_node_hook_is_not_called():
    """Before and after the rule."""
    prompt, seen = leaf(), []
    result = prompt + "!"
    for handle in (
        result.grad_fn.register_prehook(seen.append),
        result.grad_fn.register_hook(lambda *g: seen.append(g)),
    ):
        handle.remove()
    result.backward("f")
    assert seen == []


def test_node_hooks_run_in_transforms_too():
    """The tape of `func.grad` is made of nodes like any other."""
    seen = []

    def loss(draft):
        out = draft + "!"
        out.grad_fn.register_hook(lambda ins, outs: seen.append(shown(ins)))
        return ops.exact_match_evaluator(out, "hello!")[0]

    gradient = func.grad(loss)("hallo")
    assert seen == [[gradient.data]]


# on several gradients


def test_a_multi_grad_hook_says_what_it_needs():
    """A mode that does not exist, nothing to wait for, a constant."""
    with pytest.raises(ValueError, match="'all' or 'any', got 'some'"):
        register_multi_grad_hook([leaf()], print, mode="some")
    with pytest.raises(ValueError, match="no variables"):
        register_multi_grad_hook([], print)
    with pytest.raises(AutogradError, match="'c' does not require grad"):
        register_multi_grad_hook([leaf(), tg.Variable("c", role="c")], print)


def test_a_hook_on_several_takes_them_from_a_generator():
    """Which is gone through once."""
    one, two, seen = leaf(), leaf(), []
    register_multi_grad_hook((each for each in (one, two)), seen.append)
    (one + two).backward("shorter")
    assert [gradient.data for gradient in seen[0]] == ["shorter", "shorter"]


def test_a_multi_grad_hook_that_raises_fails_the_pass():
    """It runs while feedback flows, so nothing is written."""
    a, b = leaf(), leaf()
    handle = register_multi_grad_hook([a, b], lambda grads: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        (a + b).backward("f")
    handle.remove()
    (a + b).backward("f")
    assert texts(a.grad) == texts(b.grad) == ["f"]


def test_all_is_called_once_a_pass_with_every_gradient():
    """Leaves and results, in the order that was given, one of them twice; what it returns changes nothing."""
    a, b, seen = leaf("a"), leaf("b"), []
    middle = a + b
    register_multi_grad_hook([b, middle, a, b], lambda grads: seen.append(shown(grads)) or "ignored")
    end = tg.Variable("") + middle + a
    end.backward("f", retain_graph=True)
    end.backward("g")
    assert seen == [["f", "f", "f\nf", "f"], ["g", "g", "g\ng", "g"]]
    assert texts(a.grad) == ["f", "f", "g", "g"]


def test_all_does_not_wait_for_what_the_pass_does_not_reach():
    """None stands for another graph, for what `inputs=` leaves out, and for a true zero."""
    a, b, elsewhere, seen = leaf("a"), leaf("b"), leaf("c"), []
    register_multi_grad_hook([a, b, elsewhere], lambda grads: seen.append(shown(grads)))
    (a + b).backward("f")
    (a + b).backward("f", inputs=[b])
    with a.register_hook(lambda feedback: ""):
        (a + b).backward("f")
    assert seen[:2] == [["f", "f", None], [None, "f", None]]
    assert seen[2] == ["f", "f", None]  # registered later, the other hook makes its zero behind this one


def test_all_sees_a_zero_as_none_and_is_not_called_for_nothing():
    """A satisfied loss sends nothing; when no variable gets anything there is nothing to tell."""
    a, b, seen = leaf("a"), leaf("b"), []
    right = ops.exact_match_evaluator(a + "!", "a!")[0]
    wrong = ops.exact_match_evaluator(b + "!", "?")[0]
    register_multi_grad_hook([a, b], lambda grads: seen.append([gradient is None for gradient in grads]))
    right.backward(retain_graph=True)
    assert seen == []
    tg.backward([right, wrong])
    assert seen == [[True, False]]


def test_any_is_called_once_a_pass_with_the_first_gradient():
    """And again in the next pass."""
    a, b, seen = leaf("a"), leaf("b"), []
    register_multi_grad_hook([a, b], lambda gradient: seen.append(gradient.data), mode="any")
    (a + b).backward("f")
    (tg.Variable("") + b).backward("g")
    (tg.Variable("") + b).backward("")
    assert seen == ["f", "g"]


def test_a_removed_multi_grad_hook_is_gone_from_all_variables():
    """Removing twice is harmless; the handle is a context manager, too."""
    a, b, seen = leaf(), leaf(), []
    with register_multi_grad_hook([a, b], seen.append, mode="any") as handle:
        pass
    handle.remove()
    (a + b).backward("f")
    assert seen == []


def test_a_prehook_of_a_leaf_may_return_its_gradient_without_a_tuple():
    """As a hook of a node with one output may."""
    prompt = leaf()
    result = prompt + "!"
    result.grad_fn.next_functions[0][0].register_prehook(lambda gradients: f"changed {gradients[0].data}")
    result.backward("f")
    assert texts(prompt.grad) == ["changed f"]


def registrations():
    text, module = leaf(), nn.Sequential()
    result = text + "!"
    optimizer = optim.TGD([text])
    return [
        text.register_hook,
        text.register_post_accumulate_grad_hook,
        result.grad_fn.register_prehook,
        result.grad_fn.register_hook,
        get_gradient_edge(text).node.register_prehook,
        get_gradient_edge(text).node.register_hook,
        lambda hook: register_multi_grad_hook([text, result], hook),
        module.register_forward_pre_hook,
        lambda hook: module.register_forward_hook(hook, with_kwargs=True),
        optimizer.register_step_pre_hook,
        optimizer.register_step_post_hook,
    ]


@pytest.mark.parametrize("number", range(len(registrations())))
def test_what_can_not_be_called_or_would_not_be_awaited_is_no_hook(number):
    """It is said where it is registered; an `async def` whose result is ignored would never run, and say nothing."""

    async def waits(*_):
        pass

    with pytest.raises(TypeError, match="a function, got 'shorter'"):
        registrations()[number]("shorter")
    with pytest.raises(TypeError, match="nobody awaits it: write `def`"):
        registrations()[number](waits)


def test_a_hook_removed_by_another_is_not_called_any_more():
    """In the same pass it still is: who is called is decided when the feedback arrives; registering is as removing."""
    prompt, seen = leaf(), []

    def first(feedback):
        seen.append("first")
        second.remove()
        prompt.register_hook(lambda feedback: seen.append("third"))

    handle = prompt.register_hook(first)
    second = prompt.register_hook(lambda feedback: seen.append("second"))
    (prompt + "!").backward("f")
    assert seen == ["first", "second"]
    handle.remove()
    (prompt + "!").backward("f")
    assert seen == ["first", "second", "third"]


def test_a_hook_on_a_value_inside_vmap_is_called_for_each_example():
    """As it would be in a loop; also where a level below the batch records it."""
    seen = []

    def each(text):
        whole = ops.add(prompt, text)
        assert (whole.requires_grad, whole.is_leaf) == (True, False)
        handles.append(whole.register_hook(heard))
        return ops.add(whole, "!")

    def heard(feedback):
        seen.append(feedback.data)
        return tg.Variable(feedback.data.upper())

    handles = []
    prompt = tg.Variable("p", role="prompt", requires_grad=True)
    func.vmap(each)(["a", "b"]).backward(["short", "long"])
    assert sorted(seen) == ["long", "short"]
    assert [item.data for item in prompt.grad] == ["SHORT", "LONG"]
    result = func.vmap(each)(["a", "b"])
    handles[1].remove()
    result.backward(["short", "long"])
    assert [item.data for item in prompt.grad[2:]] == ["short", "long"]
    prompt.requires_grad_(False)
    with pytest.raises(AutogradError, match="does not require grad: no feedback will come by"):
        func.vmap(lambda text: each_of(prompt, text, heard))(["a"])
    _, back = func.vjp(lambda p: func.vmap(lambda text: each_of(p, text, heard))(["a", "b"]), "p")
    assert [item.data for item in back(["short", "long"])[0].grad] == ["SHORT", "LONG"]


def on_variable(value, note):
    value.register_hook(lambda feedback: [*note(feedback.data), f"heard {feedback.data}"])


def on_leaf_of(value, note):
    value.grad_fn.next_functions[0][0].register_prehook(lambda grads: ([*note(grads[0].data), "heard"],))


def before_node(value, note):
    value.grad_fn.register_prehook(lambda grads: ([*note(grads[0].data), f"heard {grads[0].data}"],))


def behind_node(value, note):
    def hook(grad_inputs, grad_outputs):
        note(grad_outputs[0].data)
        return tuple([None if grad is None else f"heard {grad.data}" for grad in grad_inputs])

    value.grad_fn.register_hook(hook)


def that_looks_on(value, note):
    value.grad_fn.register_prehook(lambda grads: note(grads[0].data) and None)
    value.register_hook(lambda feedback: note(feedback.data) and None)


def on_all(value, note):
    register_multi_grad_hook([value, value + "?"], lambda grads: note([grad and grad.data for grad in grads]))


def on_any(value, note):
    register_multi_grad_hook([value], lambda grad: note(grad.data), mode="any")


@pytest.mark.parametrize(
    "hooked",
    [on_variable, on_leaf_of, before_node, behind_node, that_looks_on, on_all, on_any],
    ids=lambda f: f.__name__,
)
def test_hooks_inside_vmap_of_grad_are_called_for_each_example(hooked):
    """As in the loop: with the words for one, which they may replace; where an example hears nothing, not at all."""
    seen = []

    def note(words):
        seen.append(words)
        return []

    def loss(text):
        value = text + "q"
        hooked(value, note)
        return ops.exact_match_evaluator(value, "zq")[0]

    texts = ["a", "z", "b"]
    alone = [func.grad(loss)(text).data for text in texts]
    in_loop, seen[:] = list(seen), []
    assert func.vmap(func.grad(loss))(texts).data == alone
    assert len(in_loop) >= 2
    assert seen == sorted(in_loop, key=seen.index)
    seen.clear()
    assert func.vmap(func.vmap(func.grad(loss)))([texts, texts]).data == [alone, alone]
    assert len(seen) == 2 * len(in_loop)


def test_the_first_of_several_gradients_is_told_to_each_example():
    """Which one is first may differ between them."""
    seen = []

    def loss(text, first, second):
        values = text + "1", text + "2"
        register_multi_grad_hook(values, lambda grad: seen.append(grad.data), mode="any")
        return ops.sum([ops.exact_match_evaluator(v, t)[0] for v, t in zip(values, (first, second))])

    args = (["a", "b", "c", "d"], ["a1", "-", "-", "d1"], ["-", "b2", "-", "d2"])
    func.vmap(func.grad(loss))(*args).data  # noqa: B018
    told = sorted(text for said in seen for text in ("a2", "b1", "c1", "c2") if f"`{text}`" in said)
    assert told in (["a2", "b1", "c1"], ["a2", "b1", "c2"])


def each_of(prompt, text, hook):
    whole = ops.add(prompt, text)
    whole.register_hook(hook)
    return whole


@pytest.mark.parametrize(
    "what",
    [
        lambda value: value.retain_grad(),
        lambda value: value.register_post_accumulate_grad_hook(print),
        lambda value: register_multi_grad_hook([value], print),
        get_gradient_edge,
    ],
)
def test_what_needs_one_place_in_the_graph_is_refused_inside_vmap(what):
    """The message says where it can be done."""
    prompt = tg.Variable("p", role="prompt", requires_grad=True)

    def each(text):
        whole = ops.add(prompt, text)
        what(whole)
        return whole

    with pytest.raises(AutogradError, match=r"a value for each example.*Return it from the function"):
        func.vmap(each)(["a", "b"])


def test_a_list_of_texts_from_a_hook_on_a_batch_is_one_item():
    """As in `backward`: a text for each entry. As items, each would be about all entries."""
    batch = tg.Variable(["x", "y"], requires_grad=True)
    batch.register_hook(lambda feedback: [text + "!" for text in feedback.data])
    ops.add(batch, "").backward(["short", "long"])
    assert [item.data for item in batch.grad] == [["short!", "long!"]]
    batch.register_hook(lambda feedback: ["one"])
    with pytest.raises(AutogradError, match="a batch of 2 entries where a list of 1 texts was given"):
        ops.add(batch, "").backward(["short", "long"])


def test_a_function_that_waits_is_no_function_to_transform():
    """The message says what to write instead."""

    async def program(text):
        return text

    for transform in (func.grad, func.vmap):
        with pytest.raises(AutogradError, match="Transforms and their twins take a plain def"):
            transform(program)(["x"] if transform is func.vmap else "x")


def test_what_a_hook_says_instead_comes_from_where_that_came_from():
    """A text of its own, an edit, or a Variable that it gives again and again: no example loses its credit."""
    constant = tg.Variable("politely", role="feedback")
    for hook in (lambda g: f"politely: {g.data}", lambda g: constant, lambda g: g.__iadd__("!")):
        prompt = leaf()
        for name in ("t1", "t2"):
            with tg.autograd.example(name):
                middle = Pair.apply(prompt, leaf("b"))[0]
            with prompt.register_hook(hook):
                middle.backward("f")
        assert [(item.source.example, item.source.node) for item in prompt.grad] == [
            ("t1", "PairBackward"),
            ("t2", "PairBackward"),
        ]
    assert constant.source is None


def test_what_a_hook_says_instead_of_several_pieces_of_feedback_names_them_all():
    """Their examples, and the pieces themselves."""
    prompt, outs = leaf(), []
    for name in ("t1", "t2"):
        with tg.autograd.example(name):
            outs.append(Pair.apply(prompt, leaf("b"))[0])
    prompt.register_hook(lambda feedback: "be brief")
    tg.backward(outs, ["f", "g"])
    (item,) = prompt.grad
    assert item.source.example == "t1, t2"
    assert texts(item.source.because) == ["a(f|)", "a(g|)"]
