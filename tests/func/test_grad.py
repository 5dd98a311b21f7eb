from __future__ import annotations

import threading
from typing import Any, NamedTuple

import pytest

import textgrad_engine as tg
from textgrad_engine import func, nn, ops
from textgrad_engine.autograd.gradient import combine
from textgrad_engine.autograd.layers import LAYERS
from textgrad_engine.errors import AutogradError, ServerFailed
from textgrad_engine.llm import RetryPolicy, resolve
from textgrad_engine.testing import FunctionModel


def matches(text: Any, target: Any = "right") -> tg.Variable:
    return ops.exact_match_evaluator(text, target)[0]


def said(gradient: tg.Variable) -> list[str]:
    return [item.data for item in gradient.grad]


class Reverse(tg.Function):
    """Has a rule of its own, which a transform must not replace."""

    @staticmethod
    def forward(text: Any) -> tg.Variable:
        return tg.Variable(str(text)[::-1], role=text.role)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad_out: tg.Variable) -> Any:
        (text,) = ctx.saved_variables
        return ops.join(["own rule on ", text, ": ", grad_out])


class OldStyle(tg.Function):
    @staticmethod
    def forward(ctx: Any, text: Any) -> tg.Variable:
        return tg.Variable(str(text))

    @staticmethod
    def backward(ctx: Any, grad_out: tg.Variable) -> Any:
        return grad_out


def test_a_forward_that_takes_a_ctx_is_refused_by_the_name_of_the_repair() -> None:
    """Transforms need the separate setup_context."""
    with pytest.raises(AutogradError, match=r"grad met OldStyle.*setup_context\(ctx, inputs, output\)"):
        func.grad(lambda text: matches(OldStyle.apply(text)))("wrong")


def test_what_no_level_records_may_have_any_style() -> None:
    """A Function that the argument does not pass through is none of the transform's business."""
    assert said(func.grad(lambda text: matches(text + OldStyle.apply(tg.Variable("!"))))("x"))[0].startswith(
        "The answer"
    )


@pytest.mark.parametrize("transform", [func.grad, func.grad_and_value, func.vjp, func.jacrev, func.jacfwd, func.vmap])
@pytest.mark.parametrize(("given", "hint"), [(None, ""), (tg.Variable("x"), r"; write func\.\w+\(f\)\(x\)")])
def test_what_is_no_function_is_refused(transform: Any, given: Any, hint: str) -> None:
    """The value of a function is taken for it easily."""
    with pytest.raises(TypeError, match=rf"func\.\w+ takes a function, got {type(given).__name__}.*{hint}"):
        transform(given)


@pytest.mark.parametrize("argnums", ["0", 1.0, True, (), (0, "1")])
@pytest.mark.parametrize("transform", [func.grad, func.jacrev, func.jacfwd])
def test_argnums_are_positions(transform: Any, argnums: Any) -> None:
    """Said when the function is made, before anything is run."""
    with pytest.raises(TypeError, match="argnums is the position of an argument, such as 0, or a tuple of positions"):
        transform(matches, argnums)


@pytest.mark.parametrize("argnums", [1, -2, (0, 3)])
def test_argnums_beyond_the_arguments_quote_the_call(argnums: Any) -> None:
    """The message names the user's function and which argument is missing."""
    with pytest.raises(AutogradError, match=r"grad\(matches\)\(<inputs>\): argnums names argument -?\d, .* has 1"):
        func.grad(matches, argnums)("x")


def test_an_argument_without_text_is_an_error() -> None:
    """Feedback on None would be silence without a reason."""
    with pytest.raises(AutogradError, match="argument 0 holds no text or Variable"):
        func.grad(lambda nothing, text: matches(text))(None, "x")


@pytest.mark.parametrize("result", ["plain", 3, (1, 2), None])
def test_a_function_that_returns_no_variable_is_refused(result: Any) -> None:
    """It names the type that came."""
    with pytest.raises(AutogradError, match=f"one Variable, got {type(result).__name__}"):
        func.grad(lambda text: result)("x")


def test_text_is_no_loss() -> None:
    """A pass from text needs words to begin with; they are what vjp takes."""
    with pytest.raises(AutogradError, match=r"needs feedback to begin with.*func\.vjp\(f, x\)"):
        func.grad(lambda text: text + "!")("x")
    _, feedback = func.vjp(lambda text: text + "!", "x")
    assert feedback("louder")[0].data == "louder"


def test_feedback_on_several_outputs_may_be_one_tuple() -> None:
    """The structure of the outputs, as `torch.func.vjp` takes it."""
    _, feedback = func.vjp(lambda text: (text + "!", text + "?"), "x")
    assert feedback(("louder", "surer"))[0].data == feedback("louder", "surer")[0].data == "louder\nsurer"
    with pytest.raises(AutogradError, match="has 2 outputs, got feedback on 3"):
        feedback(("louder", "surer", "both"))


def test_vjp_takes_any_structure_of_outputs_and_feedback_of_that_structure() -> None:
    """As `torch.func.vjp`, and as `jvp` and `jacrev` here: a program may give its answers by name."""

    def program(draft: Any, target: Any) -> dict[str, Any]:
        return {"answer": draft + "!", "checks": [matches(draft, target), (draft + "?",)]}

    outputs, feedback = func.vjp(program, "x", "y")
    assert (outputs["answer"].data, outputs["checks"][1][0].data) == ("x!", "x?")
    on_draft, on_target = feedback({"answer": "louder", "checks": [None, ("surer",)]})
    first, _, last = said(on_draft)
    assert (first, last) == ("louder", "surer")
    assert said(on_target) == []
    (_, both), feedback, aux = func.vjp(lambda text: ((text + "!", [text + "?"]), "aux"), "x", has_aux=True)
    assert (both[0].data, aux) == ("x?", "aux")
    assert said(feedback("louder", ["surer"])[0]) == said(feedback(("louder", ["surer"]))[0]) == ["louder", "surer"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("louder", r"the output is a dict with 'answer', 'checks', so the feedback on it is one too.* got 'louder'"),
        ({"answer": "louder"}, r"the output is a dict with 'answer', 'checks', so .*; got the dict with 'answer'"),
        ({"answer": "louder", "checks": ["surer"]}, r"output\['checks'\] is a list of 2, so .*; got the list"),
    ],
)
def test_feedback_of_another_structure_is_refused(given: Any, message: str) -> None:
    """It names the place and what belongs there."""
    _, feedback = func.vjp(lambda draft: {"answer": draft + "!", "checks": [draft + "?", draft + "."]}, "x")
    with pytest.raises(AutogradError, match=message):
        feedback(given)


def test_a_part_of_the_outputs_that_is_no_variable_is_named() -> None:
    """What cannot be given feedback on is no output."""
    with pytest.raises(AutogradError, match=r"Variables \(or tuples, lists, dicts of them\) from the"):
        func.vjp(lambda draft: {"answer": draft + "!", "length": 3}, "x")


def test_vjp_wants_feedback_for_each_output() -> None:
    """Two outputs take two."""
    _, feedback = func.vjp(lambda text: (text + "!", text + "?"), "x")
    with pytest.raises(AutogradError, match="has 2 outputs, got feedback on 1"):
        feedback("louder")


def test_an_exception_of_the_function_restores_the_stack() -> None:
    """The next call is at the level it was before, whatever the depth."""

    def broken(text: Any) -> Any:
        assert len(LAYERS.get()) == 2
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        func.grad(lambda text: func.grad(broken)(text))("x")
    assert LAYERS.get() == ()
    assert said(func.grad(matches)("x"))


def test_a_critic_that_is_down_raises_and_leaves_nothing_behind(loss: Any) -> None:
    """No half of a gradient, and the variable that was passed keeps its own."""
    down = True

    def answer(request: Any) -> Any:
        if request.purpose == "backward" and down:
            raise ServerFailed("the critic is down", status=500)
        return "wrong" if request.config.response_format is None else {"case_1": {"system": "better"}}

    prompt = nn.Parameter("P")
    with tg.use_models(forward=resolve(FunctionModel(answer), policy=RetryPolicy(max_attempts=1))):
        with pytest.raises(ServerFailed):
            func.grad(lambda p: loss(p, "x", "y"))(prompt)
        assert prompt.grad == []
        down = False
        assert said(func.grad(lambda p: loss(p, "x", "y"))(prompt)) == ["better"]


def test_the_argument_keeps_its_own_gradient() -> None:
    """`grad` is a function: it writes nowhere."""
    draft = nn.Parameter("wrong")
    gradient = func.grad(matches)(draft)
    assert gradient.data.startswith("The answer is wrong")
    assert draft.grad == []


def test_a_satisfied_loss_is_a_true_zero(model: FunctionModel, loss: Any) -> None:
    """The empty list, and no call to the critic."""
    gradient = func.grad(lambda p: loss(p, "right", "RIGHT"))("P")
    assert (gradient.data, gradient.grad) == ("", [])
    assert [request.purpose for request in model.requests] == ["forward"]


def test_several_argnums_give_a_tuple_in_their_order(model: FunctionModel, loss: Any) -> None:
    """One gradient each, also for an argument counted from the end; one critic's call for both."""
    on_text, on_prompt = func.grad(loss, argnums=(1, -3))("P", "x", "y")
    assert said(on_prompt)[0].startswith("system ")
    assert said(on_text)[0].startswith("user ")
    assert len(model.requests) == 2


class Pair(NamedTuple):
    first: Any
    second: Any


def test_containers_give_containers() -> None:
    """In the shape of the argument; what is no text has no gradient."""

    def program(parts: Any) -> tg.Variable:
        return matches(ops.join([parts["a"], parts["b"][0], parts["c"].first]))

    gradient = func.grad(program)({"a": "x", "b": ["y", None], "c": Pair("z", "unused")})
    assert gradient["a"].data == gradient["b"][0].data == gradient["c"].first.data != ""
    assert gradient["b"][1] is None
    assert isinstance(gradient["c"], Pair)
    assert gradient["c"].second.data == ""


def test_aux_is_handed_through_as_plain_values() -> None:
    """Values of the level come out as values that anybody can use."""
    gradient, aux = func.grad(lambda text: (matches(text), {"seen": text + "!"}), has_aux=True)("x")
    assert gradient.data
    assert (aux["seen"] + "?").data == "x!?"
    again, (value, seen) = func.grad_and_value(lambda text: (matches(text), text + "!"), has_aux=True)("x")
    assert (again.data, value.data, seen.data) == (gradient.data, 0, "x!")


@pytest.mark.parametrize(
    ("given", "said"),
    [(lambda text: matches(text), "got Variable"), (lambda text: (matches(text), 1, 2), "got 3 values")],
)
@pytest.mark.parametrize(
    "transform",
    [
        lambda f: func.grad(f, has_aux=True)("x"),
        lambda f: func.vjp(f, "x", has_aux=True),
        lambda f: func.jacrev(f, has_aux=True)("x"),
        lambda f: func.jacfwd(f, has_aux=True)("x"),
        lambda f: func.jvp(f, ("x",), ("y",), has_aux=True),
    ],
)
def test_aux_that_a_function_does_not_return_is_named(transform: Any, given: Any, said: str) -> None:
    """Not what unpacking a Variable, or too many values, happens to say."""
    with pytest.raises(AutogradError, match=rf"has_aux=True the function returns a pair \(output, aux\), {said}"):
        transform(given)


def test_grad_and_value_give_both() -> None:
    """The value is a plain Variable."""
    gradient, value = func.grad_and_value(matches)("right")
    assert (gradient.data, value.data, value.grad_fn) == ("", 1, None)


def test_a_closed_over_parameter_is_no_argument(model: FunctionModel) -> None:
    """Only the argument gets feedback, and nobody pays for the other."""
    other = nn.Parameter("frozen for this", role="other")
    gradient = func.grad(lambda text: matches(ops.join([other, text])))("x")
    assert said(gradient)
    assert other.grad == []
    assert model.requests == []


def test_the_value_still_belongs_to_the_graph_below() -> None:
    """What comes out of a transform of a Parameter can be gone backward through."""
    draft = nn.Parameter("wrong")
    _, value = func.grad_and_value(matches)(draft)
    value.backward()
    assert len(draft.grad) == 1


def test_vjp_may_be_called_again_and_with_words_for_each_output() -> None:
    """The tape of a level is kept as long as its function is."""
    (first, second), feedback = func.vjp(lambda a, b: (a + b, ops.join([b])), "x", "y")
    assert (first.data, second.data) == ("xy", "y")
    assert [gradient.data for gradient in feedback("one", "two")] == ["one", "one\ntwo"]
    assert [gradient.data for gradient in feedback("", "three")] == ["", "three"]
    out, _, aux = func.vjp(lambda a: (a + "!", a + "?"), "x", has_aux=True)
    assert (out.data, aux.data) == ("x!", "x?")


def test_a_loss_among_the_outputs_needs_no_words() -> None:
    """None begins a loss by itself; a batch takes a list with a text for each entry."""
    _, feedback = func.vjp(lambda text: (matches(text), text + "!"), "x")
    on_loss, on_both = feedback(None, "")[0], feedback(None, "shorter")[0]
    assert len(said(on_loss)) == 1
    assert said(on_both)[1] == "shorter"
    _, feedback = func.vjp(func.vmap(lambda text: text + "!"), tg.Variable(["a", "b"]))
    assert feedback(["first", ""])[0].data == ["first", ""]


def test_a_level_has_a_tape_of_its_own() -> None:
    """The inner grad gives feedback on its own argument only; the outer one on both uses of its."""

    def outer(text: Any) -> Any:
        inner = func.grad(lambda draft: matches(ops.join([draft, text])))("x")
        assert len(said(inner)) == 1
        return matches(inner, "")

    gradient = func.grad(outer)("y")
    assert "Got:" in gradient.data
    assert func.grad(lambda text: matches(func.grad(matches)("constant"), ""))("y").data == ""


def second_order_of_transforms(f: Any, prompt: Any, critic: Any) -> Any:
    def criticism(critic: Any, prompt: Any) -> tg.Variable:
        with ops.critic(critic):
            gradient = func.grad(f)(prompt)
        return ops.text_loss(gradient, "Is it concrete?")

    return [said(gradient) for gradient in func.grad(criticism, argnums=(0, 1))(critic, prompt)]


def second_order_of_one_tape(f: Any, prompt: Any, critic: Any) -> Any:
    with ops.critic(critic):
        (items,) = tg.autograd.grad(f(prompt), prompt, create_graph=True)
    assert all(item.grad_fn is not None for item in items)
    gradient = items[0] if len(items) == 1 else combine(items)
    ops.text_loss(gradient, "Is it concrete?").backward()
    return [[item.data for item in variable.grad] for variable in (critic, prompt)]


@pytest.mark.parametrize("examples", [["x"], ["x", "z"]])
def test_grad_of_grad_and_create_graph_give_the_same_feedback_on_feedback(
    examples: list[str], model: FunctionModel, loss: Any
) -> None:
    """A tape per level, or one shared tape: the same questions are asked, and the same feedback arrives, item by item,
    at the prompt and at the critic's own instructions.
    """

    def f(prompt: Any) -> tg.Variable:
        return ops.sum([loss(prompt, text, "y") for text in examples])

    by_levels = second_order_of_transforms(f, "P", "C")
    asked = sorted(request.messages[-1].text for request in model.requests)
    model.requests.clear()
    by_one_tape = second_order_of_one_tape(f, nn.Parameter("P"), nn.Parameter("C"))
    assert by_levels == by_one_tape
    assert all(by_levels)
    assert sorted(request.messages[-1].text for request in model.requests) == asked


def test_the_critic_is_the_packaged_one_outside_of_its_block(model: FunctionModel, loss: Any) -> None:
    """Who wants no critic of his own notices nothing; blocks nest and end, also by an exception."""

    def critic_of(prompt: Any) -> str:
        func.grad(lambda p: loss(p, "x", "y"))(prompt)
        return model.requests[-1].messages[0].text

    packaged = critic_of("P")
    assert "You review the inputs" in packaged
    with ops.critic("mine"):
        assert critic_of("Q") == "mine"
        with pytest.raises(KeyError), ops.critic(tg.Variable("inner")):
            raise KeyError(critic_of("R"))
        assert model.requests[-1].messages[0].text == "inner"
        assert critic_of("S") == "mine"
    assert critic_of("T") == packaged


def test_many_critics_at_once(model: FunctionModel, loss: Any) -> None:
    """A batch of instructions gives the feedback that each of them would."""

    def feedback(critic: Any) -> Any:
        with ops.critic(critic):
            return func.grad(lambda p: loss(p, "x", "y"))("P")

    apart = [feedback(critic).data for critic in ("C", "D")]
    assert func.vmap(feedback)(["C", "D"]).data == apart
    assert len(set(apart)) == 2


def test_an_own_rule_survives_nesting_and_vmap() -> None:
    """It is the rule that was written that runs, at every level, and its own operations are recorded below."""

    def f(text: Any) -> tg.Variable:
        return matches(Reverse.apply(text), "cba")

    wrong = func.grad(f)("xyz")
    assert wrong.data.startswith("own rule on xyz: The answer is wrong")
    batch = func.vmap(func.grad(f))(["xyz", "abc"])
    assert batch.data == [wrong.data, ""]
    assert func.grad(lambda texts: ops.sum([func.vmap(f)(texts)]))(tg.Variable(["xyz", "abc"])).data == batch.data
    second = func.grad(lambda text: matches(func.grad(f)(text), ""))("xyz")
    by_rule, as_saved = said(second)  # through the rule of the inner level's Reverse; and as the text it quotes
    assert by_rule.startswith("own rule on xyz: The answer is wrong")
    assert as_saved.startswith("The answer is wrong. Expected exactly:")


def test_the_data_of_a_value_inside_is_not_set() -> None:
    """It would be an edit that the levels below do not see."""

    def f(text: Any) -> tg.Variable:
        value = text + "!"
        value.data = "right"
        return matches(value)

    for transform in (func.grad, lambda f: lambda text: func.vmap(f)([text])):
        with pytest.raises(AutogradError, match=r"cannot be set inside a transform of func.*v\.copy_"):
            transform(f)("x")


def test_an_edit_in_place_inside_is_seen_by_all_levels() -> None:
    """`+=` and `copy_` on a result give a new value; the leaf itself is refused, as without a transform."""

    def added(text: Any) -> tg.Variable:
        value = text + "gh"
        value += "t"
        return value

    def copied(text: Any) -> tg.Variable:
        value = text + "?"
        value.copy_(added(text))
        return value

    def constant(text: Any) -> tg.Variable:
        value = text + "?"
        return value.copy_("right")

    def frozen(text: Any) -> tg.Variable:
        with tg.no_grad():
            text += "ght"
        return text + ""

    for edit in (added, copied, constant, frozen):
        assert func.grad_and_value(lambda t: matches(edit(t)))("ri")[1].data == 1  # noqa: B023
        assert func.vmap(lambda t: matches(edit(t)))(["ri", "x"]).data == [1, int(edit is constant)]  # noqa: B023
        nested = func.vmap(func.grad_and_value(lambda t: matches(edit(t))))(["ri", "x"])  # noqa: B023
        assert nested[1].data == [1, int(edit is constant)]
        assert [bool(text) for text in nested[0].data] == [False, edit is not constant]

    def on_a_leaf(text: Any) -> tg.Variable:
        text += "!"
        return matches(text)

    with pytest.raises(AutogradError, match="a leaf that requires grad cannot be changed in place"):
        func.grad(on_a_leaf)("x")


def test_under_no_grad_nothing_is_recorded() -> None:
    """The grad mode counts at a level too."""

    def f(text: Any) -> tg.Variable:
        with tg.no_grad():
            return matches(text)

    assert func.grad(f)("x").data == ""


def test_no_grad_around_a_transform_holds_for_the_levels_below() -> None:
    """As in torch.func: the transform itself goes on, and what it computes is not recorded."""

    def second(text: Any) -> tg.Variable:
        return matches(func.grad(lambda draft: matches(draft + "!"))(text), "short")

    known = func.grad(matches)("x").data, func.grad(second)("x").data
    leaf = tg.Variable("x", requires_grad=True)
    with tg.no_grad():
        first = func.grad(matches)(leaf)
        assert (first.data, func.grad(second)("x").data) == known
        assert func.vjp(lambda text: text + "!", "x")[1]("loud")[0].data == "loud"
        outputs, back = func.vjp(lambda text: text + "!", leaf)
        assert [value.requires_grad for value in (first, outputs, *back("loud"))] == [False] * 3
    assert known[0]
    assert func.grad(matches)(leaf).data == known[0]
    with pytest.raises(ZeroDivisionError), tg.no_grad():
        func.grad(lambda text: 1 / 0)("x")
    assert tg.is_grad_enabled()


def test_a_rule_may_use_a_transform() -> None:
    """Its code runs without recording, and the transform inside works as anywhere."""

    class Improved(tg.Function):
        @staticmethod
        def forward(text: Any) -> tg.Variable:
            return func.grad(matches)(text)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, grad_out: tg.Variable) -> tg.Variable:
            return grad_out

    assert Improved.apply("x").data == func.grad(matches)("x").data != ""


def test_a_value_kept_beyond_its_level_is_its_plain_value() -> None:
    """It can still be used, without the level that is over."""
    kept = []

    def f(text: Any) -> tg.Variable:
        kept.append(text + "!")
        return matches(text)

    func.grad(f)("x")
    assert (kept[0] + "?").data == "x!?"


def test_threads_have_their_own_levels() -> None:
    """Two transforms at the same time do not see each other."""
    barrier = threading.Barrier(2, timeout=60)
    found: dict[str, str] = {}

    def run(name: str) -> None:
        def f(text: Any) -> tg.Variable:
            barrier.wait()
            assert len(LAYERS.get()) == 1
            return matches(text, name)

        found[name] = func.grad(f)("x").data

    threads = [threading.Thread(target=run, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(f"exactly `{name}`" in text for name, text in found.items())
    assert set(found) == {"a", "b"}


def test_the_start_of_a_pass_is_no_feedback() -> None:
    """Nothing was said about a function that returns its argument."""
    gradient = func.grad(lambda score: score)(3)
    assert (gradient.data, gradient.grad) == ("", [])


def by_key(request: Any) -> Any:
    """An answer; and feedback that names the input it is on."""
    wanted = request.config.response_format
    if wanted is None:
        return "an answer"
    cases = wanted.json_schema["properties"]
    return {case: {key: f"on {key}" for key in schema["properties"]} for case, schema in cases.items()}


def two_messages(system: Any, user: Any) -> tg.Variable:
    return ops.chat_completion(None, [{"role": "system", "content": system}, {"role": "user", "content": user}])


def test_one_variable_for_two_arguments_of_a_chat_gets_feedback_on_each() -> None:
    """The arguments are leaves of their own, whatever they are given; also in a batch, and through `vjp`."""
    prompt = tg.Variable("same", role="prompt")

    def loss(a: Any, b: Any) -> tg.Variable:
        return matches(two_messages(a, b))

    with tg.use_models(forward=FunctionModel(by_key)):
        both = func.grad(loss, argnums=(0, 1))(prompt, prompt)
        assert [said(gradient) for gradient in both] == [["on system"], ["on user"]]
        _, back = func.vjp(two_messages, prompt, prompt)
        assert [gradient.data for gradient in back("bad")] == ["on system", "on user"]
        batch = func.vmap(lambda each: func.grad(loss, argnums=(0, 1))(each, each))(tg.Variable(["x", "y"]))
        assert [gradient.data for gradient in batch] == [["on system"] * 2, ["on user"] * 2]


def test_one_argument_in_two_messages_is_asked_about_once() -> None:
    """It is one leaf, as one prompt is outside a transform; several such arguments are told apart all the same."""
    prompt = tg.Variable("same", role="prompt", requires_grad=True)

    def loss(a: Any, b: Any) -> tg.Variable:
        return matches(ops.chat_completion(None, [{"role": "user", "content": [a, b, b, a]}]))

    model = FunctionModel(by_key)
    with tg.use_models(forward=model):
        both = func.grad(loss, argnums=(0, 1))(prompt, prompt)
        loss(prompt, prompt).backward()
    assert [gradient.data for gradient in both] == ["on user", "on user_2"]
    assert said(prompt) == ["on user"]
    assert "user message (contains `user`, `user_2`)" in model.requests[1].messages[-1].text
