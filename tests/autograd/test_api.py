import asyncio
import gc
import threading
import weakref

import pytest

import textgrad_engine as tg
from textgrad_engine import dispatch, func, nn, ops
from textgrad_engine.autograd import AccumulateGrad, GradientEdge, get_gradient_edge, grad
from textgrad_engine.dispatch import Scope
from textgrad_engine.errors import AutogradError, CallCancelled, DispatchError

from ..values import leaf, texts


class Ask(tg.Function):
    """A rule that counts its calls by the name that it was given."""

    calls = []  # noqa: RUF012

    @staticmethod
    def forward(ctx, name, *args):
        ctx.name = name
        return tg.Variable(name)

    @staticmethod
    def backward(ctx, grad_out):
        Ask.calls.append(ctx.name)
        return (None, *[f"{ctx.name}({grad_out.data})" for _ in ctx.needs_input_grad[1:]])


class Loss(tg.Function):
    """An evaluator: it starts by itself, and has nothing to say where nothing is wrong."""

    starts_backward = True

    @staticmethod
    def forward(ctx, text, target):
        ctx.satisfied = text.data == target
        return tg.Variable(int(ctx.satisfied), role="score")

    @staticmethod
    def backward(ctx, grad_out):
        return "" if ctx.satisfied else "wrong", None


@pytest.fixture(autouse=True)
def calls():
    """The names of the rules that ran."""
    Ask.calls.clear()
    return Ask.calls


# where a pass cannot begin


def test_text_needs_feedback_to_begin_with():
    """The message says how to give it."""
    prompt = leaf(role="draft")
    for root in (prompt, prompt + "!", Ask.apply("a", prompt)):
        with pytest.raises(AutogradError, match=r"needs feedback to begin with.*v\.backward\("):
            root.backward()
    assert prompt.grad == []


def test_what_does_not_require_grad_has_no_backward():
    """Nothing that led to it wants feedback; the repair is named."""
    for root in (tg.Variable("x", role="answer"), tg.Variable("x", role="answer") + "!"):
        with pytest.raises(AutogradError, match=r"'answer' does not require grad.*= nn\.Parameter\(answer\)"):
            root.backward("f")


def test_where_grad_is_off_a_pass_names_the_block_that_switches_it_on():
    """As in a program that improves its answer while it is evaluated: it knows of no `no_grad` of its own."""
    with tg.no_grad(), pytest.raises(AutogradError, match=r"Grad is off here.*`with tg\.enable_grad\(\):`"):
        (leaf(role="solution") + "!").backward("f")

    def improved(text):
        with tg.enable_grad():
            solution = leaf(text, role="solution")
            (solution + "!").backward("shorter")
        return tg.Variable(solution.grad[0].data)

    assert tg.evaluate(improved, [{"text": "a", "target": "shorter"}], nn.ExactMatch()).mean == 1


def test_a_loss_on_the_data_of_an_answer_is_told_that_data_leads_nowhere():
    """The likeliest cause in a loop of one's own, as a value is read by that name."""
    answer = leaf("late") + "!"
    for cut in (answer.data, str(answer), answer.detach()):
        with pytest.raises(AutogradError, match=r"pass on the answer itself: \.data, str\(\) and \.detach\(\) cut the"):
            nn.ExactMatch()(cut, "soon").backward()
    nn.ExactMatch()(answer, "soon").backward()


@pytest.mark.parametrize("gradients", [["f"], ["f", "g", "h"], [], "f"])
def test_each_root_has_one_gradient(gradients):
    """The numbers are compared before anything is visited."""
    prompt = leaf()
    with pytest.raises(AutogradError, match=r"got \d gradients for 2 variables"):
        tg.backward([prompt + "1", prompt + "2"], gradients)
    assert prompt.grad == []


def test_a_root_that_is_no_variable_is_named_with_its_position():
    """A text among the roots, say."""
    with pytest.raises(TypeError, match="got str at position 1"):
        tg.backward([leaf() + "!", "text"], ["f", "g"])
    edge = tg.autograd.get_gradient_edge(leaf() + "!")
    for roots, gradients in ((edge, "f"), ([edge], ["f"])):
        with pytest.raises(TypeError, match="got GradientEdge at position 0; give the Variable that it is the edge of"):
            tg.autograd.grad(roots, leaf(), gradients)


@pytest.mark.parametrize("roots", [3, None, "text", {"a": leaf()}])
def test_what_holds_no_roots_is_refused(roots):
    """A dict of losses, too, of which Python would go through the names."""
    with pytest.raises(TypeError, match=r"begins at a Variable, or at a list of them, got (int|NoneType|str|dict)"):
        tg.backward(roots)


def test_losses_may_come_from_a_generator():
    """It computes them where the pass lists them, and they are recorded there."""
    prompt = leaf()
    tg.backward((ops.exact_match_evaluator(prompt, word)[0] for word in ("one", "two")), (None for _ in range(2)))
    assert len(prompt.grad) == 2
    losses = (ops.exact_match_evaluator(prompt, word)[0] for word in ("one", "two"))
    assert [len(items) for items in tg.autograd.grad(losses, [prompt])] == [2]


def test_no_roots_are_refused():
    """A pass from nowhere would end as if all had been well."""
    for go in (lambda: tg.backward([]), lambda: tg.autograd.grad([], leaf(), allow_unused=True)):
        with pytest.raises(AutogradError, match="nothing to begin at: the list of losses is empty"):
            go()


def test_texts_in_a_list_are_no_feedback_on_a_single_value():
    """They are meant for the entries of a batch, which this is not; several pieces of feedback are Variables."""
    prompt = leaf(role="draft")
    with pytest.raises(AutogradError, match=r"'draft'.*a single value where a list of 2 texts.*a list of Variables"):
        (prompt + "!").backward(["one", "two"])
    (prompt + "!").backward([tg.Variable("one"), tg.Variable("two")])
    assert texts(prompt.grad) == ["one", "two"]


@pytest.mark.parametrize("second", [tg.Variable("two"), "two"])
def test_as_many_variables_as_a_batch_has_entries_may_mean_two_things(second):
    """One for each entry, or all of them for every entry; the message has the words for both, and other numbers go."""
    batch = tg.Variable(["a", "b"], role="answers", requires_grad=True)
    one = tg.Variable("one")
    with pytest.raises(AutogradError, match=r"'answers'.*one thing to each entry, or 2 things to every.*Variable\(\["):
        (batch + "!").backward([one, second])
    (batch + "!").backward([one, second, "three"])
    (batch + "!").backward([tg.Variable(["one", ""]), tg.Variable(["", "two"])])
    assert [item.data for item in batch.grad] == ["one", "two", "three", ["one", ""], ["", "two"]]


def test_a_gradient_that_is_no_gradient_is_refused():
    """Before the pass begins."""
    with pytest.raises(TypeError, match="the caller gave int"):
        (leaf() + "!").backward(3)


def test_a_number_is_no_gradient_such_as_the_loss_that_was_meant_to_be_one_of_two():
    """The second loss would be heard by nobody, and the first prompt told "0"."""
    first, second = leaf("a"), leaf("b")
    losses = [ops.exact_match_evaluator(each, "c")[0] for each in (first, second)]
    with pytest.raises(TypeError, match=r"which is a number, and feedback is words\. .* tg\.backward\(\[first, sec"):
        tg.backward(*losses)
    for wrong in (tg.Variable(3), [tg.Variable("longer"), tg.Variable(0.5)]):
        with pytest.raises(TypeError, match="which is a number"):
            (first + "!").backward(wrong)
    assert first.grad == second.grad == []
    tg.backward(losses)
    assert len(first.grad) == len(second.grad) == 1


def test_backward_on_the_event_loop_raises_instead_of_hanging():
    """Inside an async forward, abackward is the way."""

    class Later(tg.Function):
        @staticmethod
        async def forward(ctx, text):
            await asyncio.sleep(0)
            return tg.Variable(text.data)

        @staticmethod
        def backward(ctx, grad_out):
            return grad_out

    class Program(tg.Function):
        @staticmethod
        async def forward(ctx, asynchronous):
            inner = leaf()
            with tg.enable_grad():
                result = Later.apply(inner)
            if asynchronous:
                await result.abackward("f")
            else:
                result.backward("f")
            return texts(inner.grad)

    with pytest.raises(DispatchError, match="abackward"):
        _ = Program.apply(False).data
    assert Program.apply(True).data == ["f"]


# roots and their gradients


def test_several_roots_are_one_pass():
    """What they share is asked once, with the feedback of all in their order."""
    prompt = leaf()
    shared = Ask.apply("shared", prompt)
    tg.backward([shared + "1", shared + "2", shared], ["one", tg.Variable("two"), "three"])
    assert Ask.calls == ["shared"]
    assert texts(prompt.grad) == ["shared(three\none\ntwo)"]


def test_one_variable_given_twice_counts_twice():
    """Both gradients arrive, in order."""
    prompt = leaf()
    tg.backward([prompt, prompt], ["one", "two"])
    assert texts(prompt.grad) == ["one", "two"]


def test_a_root_behind_another_root_waits_for_it():
    """Its own gradient comes first, what flows from the other after it."""
    prompt = leaf()
    first = Ask.apply("first", prompt)
    second = Ask.apply("second", first)
    tg.backward([second, first], ["s", "f"])
    assert Ask.calls == ["second", "first"]
    assert texts(prompt.grad) == ["first(f\nsecond(s))"]


def test_losses_begin_by_themselves_and_so_do_numbers():
    """Also added up; what is satisfied sends nothing."""
    prompt = leaf()
    answers = [Ask.apply(name, prompt) for name in "abc"]
    ops.sum([Loss.apply(answer, "b") for answer in answers]).backward()
    assert texts(prompt.grad) == ["a(wrong)", "c(wrong)"]
    assert Ask.calls.count("b") == 0


def test_mixed_roots_losses_and_texts():
    """None stands for a loss."""
    prompt = leaf()
    tg.backward([Loss.apply(prompt, "x"), prompt + "!"], [None, "f"])
    assert texts(prompt.grad) == ["wrong", "f"]


@pytest.mark.parametrize("gradient", ["", [], tg.Variable("")])
def test_an_empty_gradient_is_a_true_zero(gradient):
    """No rule is called; the graph is freed all the same."""
    prompt = leaf()
    result = Ask.apply("a", prompt)
    result.backward(gradient)
    assert (Ask.calls, prompt.grad) == ([], [])
    with pytest.raises(AutogradError, match="freed"):
        result.backward("f")


def test_a_gradient_may_be_several_items():
    """A list of Variables, or a leaf's whole gradient."""
    prompt, other = leaf(), leaf()
    other.grad = [tg.Variable("one"), tg.Variable("two")]
    (prompt + "").backward(other.grad)
    assert texts(prompt.grad) == ["one", "two"]


def test_passes_accumulate():
    """Appending, in the order of the passes; earlier lists are not changed."""
    prompt = leaf()
    for text in ("one", "two"):
        (prompt + "").backward(text)
        before = prompt.grad
    (prompt + "").backward("three")
    assert texts(prompt.grad) == ["one", "two", "three"]
    assert texts(before) == ["one", "two"]


# inputs=


def test_inputs_prune_what_does_not_lead_to_them():
    """Rules off the path are not asked; other leaves stay without feedback."""
    a, b = leaf("a"), leaf("b")
    left, right = Ask.apply("left", a), Ask.apply("right", b)
    top = Ask.apply("top", left, right)
    top.backward("f", inputs=[a])
    assert Ask.calls == ["top", "left"]
    assert (texts(a.grad), b.grad) == (["left(top(f))"], [])


def test_an_input_that_is_no_leaf_is_refused():
    """RuntimeError, as PyTorch's, before anything is asked."""
    prompt = leaf()
    middle = Ask.apply("middle", prompt)
    top = Ask.apply("top", middle)
    for wrong in (middle, [prompt, middle], get_gradient_edge(middle)):
        with pytest.raises(RuntimeError, match=r"takes leaves, and .* is a result.*autograd\.grad"):
            top.backward("f", inputs=wrong)
    with pytest.raises(AutogradError, match="does not require grad"):
        top.backward("f", inputs=tg.Variable("constant"))
    with pytest.raises(AutogradError, match="asks for nothing"):
        top.backward("f", inputs=[])
    assert Ask.calls == []
    top.backward("f")
    assert len(prompt.grad) == 1


@pytest.mark.parametrize("wrong", [3, "a text", ["a", "b"], [None]])
def test_what_no_gradient_can_be_asked_for_is_named(wrong):
    """In both calls, with its position; a text is one thing, not a sequence of characters."""
    top = leaf() + "!"
    with pytest.raises(TypeError, match=r"backward\(inputs=…\) takes Variables and GradientEdges, got .* position 0"):
        top.backward("f", inputs=wrong)
    with pytest.raises(TypeError, match=r"grad takes Variables and GradientEdges, got .* position 0"):
        grad(top, wrong, "f")


def test_inputs_may_be_edges_of_leaves():
    """An edge stands for its leaf."""
    a, b = leaf(), leaf()
    Ask.apply("top", a, b).backward("f", inputs=get_gradient_edge(b))
    assert (a.grad, texts(b.grad)) == ([], ["top(f)"])


def test_an_input_that_was_not_used_gets_nothing():
    """And nothing is asked on its behalf."""
    a, unused = leaf(), leaf()
    Ask.apply("top", a).backward("f", inputs=unused)
    assert (a.grad, unused.grad, Ask.calls) == ([], [], [])


# autograd.grad


def test_grad_leaves_every_grad_alone():
    """Also retained ones of leaves; results may be asked about."""
    a, b = leaf(), leaf()
    middle = Ask.apply("middle", a)
    top = Ask.apply("top", middle, b)
    of_a, of_middle, again = grad(top, [a, middle, a], "f")
    assert (texts(of_a), texts(of_middle), texts(again)) == (["middle(top(f))"], ["top(f)"], ["middle(top(f))"])
    assert a.grad == b.grad == []


def test_grad_stops_at_what_was_asked_for():
    """The rules behind a result that is an input are not called."""
    prompt = leaf()
    middle = Ask.apply("middle", prompt)
    (found,) = grad(Ask.apply("top", middle), middle, "f")
    assert texts(found) == ["top(f)"]
    assert Ask.calls == ["top"]


def test_grad_leaves_what_is_retained_alone_too():
    """`retain_grad` asks for what `backward` brings."""
    prompt = leaf()
    middle = Ask.apply("middle", prompt)
    middle.retain_grad()
    top = Ask.apply("top", middle)
    (found,) = grad(top, middle, "f", retain_graph=True)
    assert (texts(found), middle.grad) == (["top(f)"], [])
    top.backward("g")
    assert texts(middle.grad) == ["top(g)"]


def test_no_pass_begins_at_a_value_inside_vmap():
    """It stands for one value per example; the message says where the pass can begin."""
    with pytest.raises(AutogradError, match=r"inside vmap, where no pass begins\. Return it .* func\.grad inside"):
        func.vmap(lambda text: (text + "!").backward("f"))(["a", "b"])


def test_an_unused_input_is_an_error_unless_it_is_allowed():
    """Its position and role are named; a true zero is [], which is something else than None."""
    used, unused = leaf(), leaf(role="style guide")
    top = Ask.apply("top", used)
    with pytest.raises(AutogradError, match=r"input 1 \(Variable 'style guide'\) was not used.*allow_unused=True"):
        grad(top, [used, unused], "f")
    assert Ask.calls == []
    of_used, of_unused = grad(top, [used, unused], "f", allow_unused=True, retain_graph=True)
    assert (texts(of_used), of_unused) == (["top(f)"], None)
    assert grad(top, used, "") == ([],)


def test_grad_of_an_edge_and_of_one_output_among_several():
    """A GradientEdge names an output without holding its variable."""

    class Halves(tg.Function):
        @staticmethod
        def forward(ctx, text):
            return tg.Variable("a"), tg.Variable("b")

        @staticmethod
        def backward(ctx, *grads):
            return "|".join(grad.data for grad in grads)

    prompt = leaf()
    first, second = Halves.apply(prompt)
    edge = get_gradient_edge(second)
    assert edge == GradientEdge(first.grad_fn, 1)
    top = Ask.apply("top", first, second)
    of_second, of_first = grad(top, [edge, first], "f")
    assert (texts(of_second), texts(of_first)) == (["top(f)"], ["top(f)"])
    with pytest.raises(AutogradError, match=r"output 1 of HalvesBackward\) was not used"):
        grad(Ask.apply("other", prompt), edge, "f")


def test_grad_of_the_output_itself():
    """It is the gradient that was given."""
    prompt = leaf()
    assert texts(grad(prompt, prompt, "f")[0]) == ["f"]
    top = Ask.apply("top", prompt)
    assert texts(grad(top, top, "f")[0]) == ["f"]


# the graph as users see it


def test_nodes_edges_and_names():
    """Leaves end in AccumulateGrad, one each; what wants no grad is None."""
    prompt, constant = leaf(), tg.Variable("c")
    result = Ask.apply("top", prompt, constant, prompt + "!")
    node = result.grad_fn
    assert node.name() == "AskBackward"
    assert repr(node) == "<AskBackward>"
    (first, number), nothing, (add, _) = node.next_functions
    assert isinstance(first, AccumulateGrad)
    assert (first.variable, number, nothing) == (prompt, 0, (None, 0))
    assert add.name() == "AddBackward"
    assert add.next_functions[0][0] is first
    assert first.next_functions == ()
    assert get_gradient_edge(prompt) == GradientEdge(first, 0)
    with pytest.raises(AutogradError, match="does not require grad"):
        get_gradient_edge(constant)


def test_feedback_says_where_it_came_from():
    """The example, the node, and what it was made of, back to the loss."""
    prompt = leaf()
    with tg.autograd.example("t017"):
        answer = Ask.apply("top", prompt)
        loss = Loss.apply(answer, "x")
    loss.backward()
    (item,) = prompt.grad
    assert (item.source.example, item.source.node) == ("t017", "AskBackward")
    (cause,) = item.source.because
    assert (cause.data, cause.source.node) == ("wrong", "LossBackward")


def test_the_start_of_a_pass_carries_nothing_from_pass_to_pass():
    """A hook that writes on it in one pass changes nothing in the next."""
    prompt, seen = leaf(), []

    def rewrite(gradient):
        seen.append((gradient.data, gradient.role, [(item.data, item.source) for item in gradient.grad]))
        for item in gradient.grad:
            item.data, item.role = "[checked]", "checked"

    for name in ("first", "second"):
        with tg.autograd.example(name):
            total = ops.sum([Loss.apply(prompt, "x")])
        total.register_hook(rewrite)
        total.backward()
    assert seen[0] == seen[1] == ("", "the start of a backward pass", [("", None)])


def test_the_start_of_a_pass_is_no_feedback_on_a_retained_result():
    """It has no words; what is said about the result has."""
    loss = Loss.apply(leaf(), "x")
    loss.retain_grad()
    loss.backward(retain_graph=True)
    assert loss.grad == []
    loss.backward("too strict")
    assert texts(loss.grad) == ["too strict"]


def test_abackward_does_not_block_the_users_loop():
    """It takes what backward takes, in the same grad mode."""
    prompt, other = leaf(), leaf()
    top = Ask.apply("top", prompt, other)

    async def main():
        with tg.no_grad():
            await asyncio.gather(
                top.abackward("one", retain_graph=True, inputs=prompt), top.abackward("two", retain_graph=True)
            )

    asyncio.run(main())
    assert sorted(texts(prompt.grad)) == ["top(one)", "top(two)"]
    assert texts(other.grad) == ["top(two)"]


def test_one_awaited_pass_goes_through_several_results():
    """With a gradient for each, as backward does; agrad gives what grad gives, and writes nothing."""
    prompt = leaf()
    one, two = Ask.apply("one", prompt), Ask.apply("two", prompt)

    async def main():
        await tg.abackward([one, two], ["a", "b"], retain_graph=True)
        return await tg.autograd.agrad([one, two], [prompt], ["c", "d"], allow_unused=True)

    (found,) = asyncio.run(main())
    assert texts(prompt.grad) == ["one(a)", "two(b)"]
    assert texts(found) == ["one(c)", "two(d)"]


@pytest.mark.parametrize("again", ["at once", "later"])
def test_an_abackward_whose_wait_is_cancelled_leaves_nothing_behind(again):
    """Its calls are cancelled; the next one counts once, whether the first has noticed by then or not."""
    begun, ended = threading.Event(), threading.Event()

    class Held(Ask):
        """Whose critic never answers the first question."""

        @staticmethod
        async def backward(ctx, grad_out):
            if grad_out.data == "one":
                begun.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    ended.set()
            return Ask.backward(ctx, grad_out)

    prompt = leaf()
    top = Held.apply("top", prompt)

    async def main():
        waiting = asyncio.ensure_future(top.abackward("one"))
        assert await asyncio.to_thread(begun.wait, 60)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        if again == "later":
            assert await asyncio.to_thread(ended.wait, 60)
        await top.abackward("two")

    asyncio.run(main())
    assert ended.wait(60)
    assert texts(prompt.grad) == ["top(two)"]


def test_a_backward_that_was_cancelled_before_its_end_writes_nothing():
    """Also where all its feedback was there in time."""
    prompt = leaf()
    top = Ask.apply("top", prompt)
    with Scope() as scope:
        prompt.register_hook(lambda gradient: scope.cancel())
        with pytest.raises(CallCancelled, match="leaves no feedback behind"):
            top.backward("one", retain_graph=True)
    assert prompt.grad == []
    top.backward("two")
    assert texts(prompt.grad) == ["top(two)"]


def test_as_many_abackwards_go_on_at_a_time_as_are_awaited():
    """None waits for a thread that another one has."""
    prompts = [leaf() for _ in range(80)]
    tops = [Ask.apply("top", prompt) for prompt in prompts]
    barrier = threading.Barrier(80, timeout=60)
    for top in tops:
        top.register_hook(lambda gradient: None if barrier.wait() >= 0 else "")

    async def main():
        await asyncio.gather(*[top.abackward("f") for top in tops])

    asyncio.run(main())
    assert [texts(prompt.grad) for prompt in prompts] == [["top(f)"]] * 80


def test_a_leaf_that_wants_no_feedback_any_longer_gets_none():
    """As in PyTorch; and what leads only to it is not asked about."""
    one, two = leaf(), leaf()
    alone, both = Ask.apply("alone", one), Ask.apply("both", one, two)
    one.requires_grad_(False)
    tg.backward([alone, both], ["f", "f"])
    assert (one.grad, texts(two.grad)) == ([], ["both(f)"])


def test_threads_that_use_one_leaf_find_one_node(monkeypatch):
    """Whoever waited while another one made it takes that, or feedback on one of two would be lost."""
    prompt, made = leaf(), []

    class Busy:
        def __enter__(self):
            made.append(AccumulateGrad(prompt))
            prompt._accumulator = weakref.ref(made[0])

        def __exit__(self, *exc):
            pass

    monkeypatch.setattr("textgrad_engine.autograd.graph._making", Busy())
    one, two = Ask.apply("one", prompt), Ask.apply("two", prompt)
    assert [top.grad_fn.next_functions[0][0] for top in (one, two)] == [made[0]] * 2
    assert len(made) == 1


def test_a_call_whose_context_cannot_be_set_up_is_not_made():
    """Nobody has its output, and it would be paid for."""
    ran, hold, held = [], threading.Event(), threading.Event()

    class Broken(tg.Function):
        @staticmethod
        async def forward(text):
            ran.append(text.data)
            return tg.Variable("never")

        @staticmethod
        def setup_context(ctx, inputs, output):
            raise KeyError("no such name")

    dispatch.call_soon(lambda: (held.set(), hold.wait(60)))
    assert held.wait(60)
    with pytest.raises(KeyError):
        Broken.apply(leaf())
    hold.set()
    dispatch.run(_nothing)
    assert ran == []


async def _nothing():
    pass


@pytest.mark.parametrize("words", [["one"], ["one", "two", "three"], [["one", "two"], "three"], []])
def test_feedback_on_a_batch_has_a_text_for_each_entry(words):
    """One too many would go nowhere; the message shows both sizes."""
    batch = tg.Variable(["a", "b"], role="answers", requires_grad=True)
    with pytest.raises(AutogradError, match=r"feedback on Variable 'answers.*Give one text"):
        (batch + "!").backward(words)
    assert batch.grad == []


@pytest.mark.parametrize("gradient", [tg.Variable(["one"]), [tg.Variable("all"), tg.Variable(["1", "2", "3"])]])
def test_a_variable_that_is_feedback_on_a_batch_has_as_many_entries(gradient):
    """As a plain list has."""
    batch = tg.Variable(["a", "b"], role="answers", requires_grad=True)
    with pytest.raises(AutogradError, match=r"feedback on Variable 'answers.*Give one text for each entry"):
        (batch + "!").backward(gradient)
    assert batch.grad == []


def test_feedback_on_batches_of_batches_has_their_shape():
    """Rows of texts; one text for a row is about every entry of it."""
    batch = tg.Variable([["a", "b"], ["c", "d"]], requires_grad=True)
    (batch + "!").backward([["one", ""], "row"])
    assert batch.grad[0].data == [["one", ""], ["row", "row"]]


class Same(tg.Function):
    """A rule that always says the same: one Variable, or a list or tuple of it."""

    said = tg.Variable("Say it clearly.", role="feedback")

    @staticmethod
    def forward(ctx, text, form):
        ctx.form = form
        return tg.Variable(text.data)

    @staticmethod
    def backward(ctx, grad_out):
        return ctx.form(Same.said), None


@pytest.mark.parametrize(
    "form", [lambda said: said, lambda said: [said], lambda said: tg.autograd.gradient.combine([said])]
)
def test_a_rule_may_return_the_same_variable_again_and_again(form):
    """Each piece of feedback names its own example, and is an object of its own."""
    prompt, top = leaf(), []
    for name in ("t1", "t2"):
        with tg.autograd.example(name):
            top.append(Same.apply(prompt, form))
    tg.backward(top, ["one", "two"])
    with tg.autograd.example("t3"):
        Same.apply(prompt, form).backward("three")
    assert [item.source.example for item in prompt.grad] == ["t1", "t2", "t3"]
    assert [cause.data for item in prompt.grad for cause in item.source.because] == ["one", "two", "three"]
    prompt.grad[0].data = "edited"
    assert texts(prompt.grad[1:]) == [Same.said.data] * 2 == ["Say it clearly."] * 2
    assert Same.said.source is None


@pytest.mark.parametrize("form", [lambda said: said, lambda said: [said]])
def test_feedback_may_be_given_to_several_passes(form):
    """What a pass writes on it is written on an item of its own; also where the feedback is a prompt itself."""
    said, prompt = leaf("be brief"), leaf()
    for name in ("t1", "t2"):
        with tg.autograd.example(name):
            (prompt + "!").backward(form(said))
    assert [(item.data, item.source.example) for item in prompt.grad] == [("be brief", "t1"), ("be brief", "t2")]
    assert said.source is None
    assert not any(item.requires_grad for item in prompt.grad)


def test_feedback_that_is_a_result_keeps_its_graph_only_where_that_is_recorded():
    """As with tensors: without create_graph what lands in `.grad` has no history."""
    prompt, critic = leaf(), leaf("shorter")
    (prompt + "!").backward(critic + ", please")
    (prompt + "!").backward(critic + ", please", create_graph=True)
    plain, recorded = prompt.grad
    assert plain.data == recorded.data == "shorter, please"
    assert plain.is_leaf
    assert not plain.requires_grad
    recorded.backward("be kind")
    assert texts(critic.grad) == ["be kind"]


def test_feedback_that_reaches_several_places_is_an_item_of_its_own_at_each():
    """Whoever edits one of them changes no other."""
    a, b = leaf("a"), leaf("b")
    top = a + b + a
    top.retain_grad()
    top.backward("x", retain_graph=True)
    found = [*a.grad, *b.grad, *top.grad, *(item for gradient in grad(top, [a, b, top, top], "x") for item in gradient)]
    assert len(set(map(id, found))) == len(found) == 9
    assert {item.data for item in found} == {"x"}


def test_feedback_that_is_handed_through_was_not_made_of_itself():
    """Who walks the provenance comes to an end, and nothing is left to the garbage collector."""
    prompt = leaf()
    (ops.sum([prompt, prompt]) + "!").backward("too short")
    assert [(item.source.node, item.source.because) for item in prompt.grad] == [("AddBackward", ())] * 2
    gone = weakref.ref(prompt.grad[0])
    gc.disable()
    try:
        prompt.grad = None
        assert gone() is None
    finally:
        gc.enable()


def test_what_is_new_beside_feedback_that_is_handed_through_was_made_of_it():
    """A rule may do both."""

    class Both(tg.Function):
        @staticmethod
        def forward(ctx, text):
            return tg.Variable(text.data)

        @staticmethod
        def backward(ctx, grad_out):
            return [*grad_out.grad, f"so {grad_out.data}"]

    prompt = leaf()
    Both.apply(prompt).backward("shorter")
    through, new = prompt.grad
    assert (through.data, through.source.because) == ("shorter", ())
    assert (new.data, new.source.because) == ("so shorter", (through,))


def test_one_text_in_a_list_is_about_the_only_entry_of_a_batch():
    """As in the method's form; for one text it is that text's gradient, as for each root of several."""
    batch, single = tg.Variable(["one"], requires_grad=True), leaf()
    tg.backward(batch + "!", ["shorter"])
    (batch + "!").backward(["shorter"])
    tg.backward([batch + "!"], [["shorter"]])
    assert texts(batch.grad) == [["shorter"]] * 3
    tg.backward(single + "!", ["shorter"])
    assert texts(single.grad) == ["shorter"]
