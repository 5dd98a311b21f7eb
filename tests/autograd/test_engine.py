import asyncio
import gc
import itertools
import sys
import weakref
from concurrent.futures import Future

import pytest

import textgrad_engine as tg
from textgrad_engine import dispatch, ops
from textgrad_engine.autograd import Layer, grad
from textgrad_engine.autograd.write import write
from textgrad_engine.errors import AutogradError
from textgrad_engine.testing import FunctionModel

from ..pressing import press_ctrl_c
from ..values import leaf, texts


class Critic:
    """What a rule answers, by the name of its node; keeps the names of the nodes that it was asked about, in order."""

    def __init__(self):
        self.asked, self.finished = [], []
        self.down = set()
        self.order = None
        self.silent = set()

    async def answer(self, name, said):
        self.asked.append(name)
        if self.order is not None and name in self.order:
            await self._turn(name)
        self.finished.append(name)
        if name in self.down:
            raise ConnectionError(f"{name} is down")
        return "" if name in self.silent else f"{name}({said})"

    async def _turn(self, name):
        """All must have been asked before one answers, and they answer in the order given."""
        turns = self.turns
        if all(other in self.asked for other in self.order):
            turns[self.order[0]].set()
        async with asyncio.timeout(60):
            await turns[name].wait()
        after = self.order.index(name) + 1
        if after < len(self.order):
            turns[self.order[after]].set()

    def finish_in(self, order):
        self.order = list(order)
        self.turns = {name: asyncio.Event() for name in self.order}


@pytest.fixture
def critic():
    return Critic()


@pytest.fixture
def ask(critic):
    """A function `ask(name, *inputs)`: an operation whose feedback comes from the critic, asynchronously."""

    class Ask(tg.Function):
        @staticmethod
        async def forward(ctx, name, *inputs):
            ctx.name = name
            return tg.Variable(name, role=name)

        @staticmethod
        async def backward(ctx, grad_out):
            said = await critic.answer(ctx.name, grad_out.data)
            return (None, *[said for _ in ctx.needs_input_grad[1:]])

    return Ask.apply


# each once, concurrently, in order


def test_each_node_of_a_diamond_is_asked_once(critic, ask):
    """After all feedback on its outputs has arrived; n diamonds in a row cost 3n questions, not 2**n."""
    prompt = leaf()
    top = prompt
    for number in range(12):
        shared = ask(f"s{number}", top)
        top = ops.join([ask(f"l{number}", shared), ask(f"r{number}", shared)], " ")
    top.backward("f")
    assert len(critic.asked) == 36
    assert len(set(critic.asked)) == 36
    assert len(prompt.grad) == 1
    assert critic.asked[-1] == "s0"


@pytest.mark.parametrize("order", list(itertools.permutations("abc")))
def test_the_order_of_feedback_is_that_of_the_graph(critic, ask, order):
    """Whoever answers first, and everything that is ready is asked at once."""
    prompt = leaf()
    outs = [ask(name, prompt) for name in "abc"]
    critic.finish_in(order)
    ops.sum(outs).backward("f")
    assert critic.finished == list(order)
    assert texts(prompt.grad) == ["a(f)", "b(f)", "c(f)"]


def test_a_leaf_used_twice_by_one_node_hears_twice_in_the_order_of_the_arguments():
    """Positions break the tie."""

    class Two(tg.Function):
        @staticmethod
        def forward(ctx, a, b):
            return tg.Variable("x")

        @staticmethod
        def backward(ctx, grad_out):
            return "as a", ["as b", "and again"]

    prompt = leaf()
    Two.apply(prompt, prompt).backward("f")
    assert texts(prompt.grad) == ["as a", "as b", "and again"]


def test_feedback_on_a_result_is_joined_in_order_and_keeps_its_items():
    """The rule sees one Variable: the texts, and the list of items."""
    seen = []

    class Look(tg.Function):
        @staticmethod
        def forward(ctx, a):
            return tg.Variable(a.data)

        @staticmethod
        def backward(ctx, grad_out):
            seen.append((grad_out.data, texts(grad_out.grad)))
            return grad_out

    prompt = leaf()
    middle = Look.apply(prompt)
    tg.backward([middle + "1", middle + "2"], ["one", "two"])
    assert seen == [("one\ntwo", ["one", "two"])]
    assert texts(prompt.grad) == ["one", "two"]


# zeros


def test_true_zeros_cost_no_questions(critic, ask):
    """Behind a critic with nothing to say nobody is asked, and no leaf hears an empty text."""
    one, two = leaf(), leaf()
    critic.silent = {"top"}
    ask("top", ask("left", one), ask("right", two)).backward("f")
    assert critic.asked == ["top"]
    assert one.grad == two.grad == []


def test_one_zero_among_others_leaves_the_rest(critic, ask):
    """The shared node is asked for what was said."""
    prompt = leaf()
    shared = ask("shared", prompt)
    critic.silent = {"b"}
    ops.sum([ask(name, shared) for name in "abc"]).backward("f")
    assert texts(prompt.grad) == ["shared(a(f)\nc(f))"]


def test_what_no_wanted_gradient_passes_through_costs_nothing(critic, ask):
    """Constants have no node, and a node's constant inputs get no feedback."""
    prompt, constant = leaf(), tg.Variable("c")
    aside = ask("aside", constant)
    ask("top", aside, prompt).backward("f")
    assert aside.is_leaf
    assert critic.asked == ["top"]
    assert constant.grad == aside.grad == []


# failing half-way


def test_a_pass_that_fails_leaves_nothing_behind_and_can_be_repeated(critic, ask):
    """Retried, each piece of feedback counts once; also on retained results."""
    one, two = leaf(), leaf()
    left, right = ask("left", one), ask("right", two)
    left.retain_grad()
    top = ask("top", left, right)
    critic.down = {"right"}
    for _ in range(2):
        with pytest.raises(ConnectionError, match="right is down"):
            top.backward("f")
        assert one.grad == two.grad == left.grad == []
    critic.down.clear()
    top.backward("f")
    assert [texts(v.grad) for v in (one, two, left)] == [["left(top(f))"], ["right(top(f))"], ["top(f)"]]


def test_a_failure_after_a_neighbours_success(critic, ask):
    """The neighbour's leaf is complete by then, and stays untouched."""
    one, two = leaf(), leaf()
    total = ops.sum([ask("good", one), ask("bad", two)])
    critic.finish_in(["good", "bad"])
    critic.down = {"bad"}
    with pytest.raises(ConnectionError):
        total.backward("f")
    assert critic.finished == ["good", "bad"]
    assert one.grad == []


@pytest.mark.parametrize("order", list(itertools.permutations(["a", "b", "c"])))
def test_of_several_rules_that_fail_the_first_in_order_is_blamed(critic, ask, order):
    """Whoever answers first: of losses that of the first one, of the inputs of a value the first one's."""
    prompt = leaf()
    critic.down = {"b", "c"}
    for roots in ([ask(name, prompt) for name in "abc"], [ops.sum([ask(name, prompt) for name in "abc"])]):
        critic.asked.clear()
        critic.finish_in(order)
        with pytest.raises(ConnectionError, match="b is down"):
            tg.backward(roots, ["f"] * len(roots))
    assert prompt.grad == []


def test_what_comes_behind_a_failure_is_not_asked_about(critic, ask):
    """And what comes before it is, as it may fail, too, and would be the first."""
    one, two = leaf(), leaf()
    before, behind = ask("first", ask("under the first", one)), ask("last", ask("under the last", two))
    critic.finish_in(["middle", "last", "first"])
    critic.down = {"middle", "under the first"}
    with pytest.raises(ConnectionError, match="under the first is down"):
        tg.backward([before, ask("middle", leaf()), behind], ["f"] * 3)
    assert "under the last" not in critic.asked


def test_rules_that_share_a_call_are_not_asked_when_something_has_failed(critic, ask):
    """They wait for all others, of which one has ended the pass."""
    prompt = leaf()
    critic.down = {"down"}
    with pytest.raises(ConnectionError, match="down is down"):
        tg.backward([Grouped.apply("a1", prompt), ask("down", prompt)], ["f", "f"])
    assert Grouped.together == []


@pytest.mark.parametrize("order", list(itertools.permutations("abc")))
def test_of_several_losses_that_failed_the_first_is_blamed(critic, order):
    """Whoever failed first, and whatever rules say that had begun by then."""

    class Later(tg.Function):
        @staticmethod
        async def forward(ctx, name, text):
            return tg.Variable(await critic.answer(name, text.data))

        @staticmethod
        def backward(ctx, grad_out):
            raise LookupError("said of the first")

    prompt = leaf()
    critic.down = {"b", "c"}
    critic.finish_in(order)
    with pytest.raises(ConnectionError, match="b is down"):
        tg.backward([Later.apply(name, prompt) for name in "abc"], ["f"] * 3)
    assert prompt.grad == []


def test_a_loss_that_failed_has_no_rule_begin(critic, ask):
    """It would be paid for, and nobody would hear what it says."""

    class Broken(tg.Function):
        @staticmethod
        async def forward(ctx, text):
            raise ConnectionError("down")

    prompt = leaf()
    failed = Broken.apply(prompt)
    for roots in ([ask("a", prompt), failed], [failed, ask("b", prompt)]):
        assert failed._call.wait(60)
        with pytest.raises(ConnectionError, match="down"):
            tg.backward(roots, ["f", "f"])
    assert critic.asked == []


def test_a_failed_forward_is_what_backward_raises():
    """There is nothing to give feedback on."""

    class Broken(tg.Function):
        @staticmethod
        async def forward(ctx, text):
            raise ConnectionError("down")

    prompt = leaf()
    for root in (Broken.apply(prompt), Broken.apply(prompt) + "!"):
        with pytest.raises(ConnectionError, match="down"):
            root.backward("f")
    assert prompt.grad == []


def test_a_failure_in_pending_feedback_is_what_backward_raises():
    """A rule may return what is still being computed."""

    class Later(tg.Function):
        @staticmethod
        async def forward(ctx, gate):
            return await asyncio.wrap_future(gate)

    class Rule(tg.Function):
        @staticmethod
        def forward(ctx, text, gate):
            ctx.gate = gate
            return tg.Variable("x")

        @staticmethod
        def backward(ctx, grad_out):
            return [Later.apply(ctx.gate), "at once"], None

    prompt, gate = leaf(), Future()
    result = Rule.apply(prompt, gate)
    gate.set_exception(ConnectionError("down"))
    with pytest.raises(ConnectionError, match="down"):
        result.backward("f")
    assert prompt.grad == []
    gate = Future()
    result = Rule.apply(prompt, gate)
    gate.set_result("later")
    result.backward("f")
    assert texts(prompt.grad) == ["later", "at once"]


def test_feedback_that_no_endpoint_would_accept_is_refused():
    """A lone surrogate in a rule's answer is found where it comes from."""

    class Rule(tg.Function):
        @staticmethod
        def forward(ctx, text):
            return tg.Variable("x")

        @staticmethod
        def backward(ctx, grad_out):
            return "bad \ud800"

    prompt = leaf()
    with pytest.raises(ValueError, match="lone surrogate"):
        Rule.apply(prompt).backward("f")
    with pytest.raises(ValueError, match="lone surrogate"):
        (prompt + "").backward("bad \ud800")
    assert prompt.grad == []


def test_ctrl_c_during_a_pass(ask, critic):
    """It stops waiting, leaves nothing, and the pass can be repeated."""
    prompt = leaf()
    result = ask("top", prompt)
    assert result.data == "top"
    answer = critic.answer
    hold = Future()

    async def interrupted(name, said):
        press_ctrl_c()
        await asyncio.wrap_future(hold)

    critic.answer = interrupted
    with pytest.raises(KeyboardInterrupt):
        result.backward("f")
    hold.set_result(None)
    critic.answer = answer
    result.backward("f")
    assert texts(prompt.grad) == ["top(f)"]


def interrupting(code, number):
    """A trace function that interrupts a function before one of the lines that it runs."""
    left = itertools.count(number, -1)

    def in_it(frame, event, arg):
        if event == "line" and next(left) == 0:
            raise KeyboardInterrupt
        return in_it

    return lambda frame, event, arg: in_it if frame.f_code is code else None


def test_ctrl_c_while_a_pass_is_written_leaves_nothing_or_all_of_it():
    """Before any line that it runs; tried again, each piece of feedback counts once."""
    seen = set()
    for line in itertools.count():
        one, two = leaf(), leaf()
        middle = one + two
        middle.retain_grad()
        result = middle + "!"
        tracing = sys.gettrace()
        sys.settrace(interrupting(write.__code__, line))
        try:
            result.backward("f")
            break
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(tracing)
        written = tuple(len(variable.grad) for variable in (one, two, middle))
        seen.add(written)
        if written == (0, 0, 0):
            result.backward("f")
        assert [texts(variable.grad) for variable in (one, two, middle)] == [["f"]] * 3
        with pytest.raises(AutogradError, match="freed"):
            result.backward("f")
    assert line > 20
    assert (0, 0, 0) in seen


def test_the_grad_mode_and_the_layers_come_back_after_a_failure(critic, ask):
    """A failed pass changes nothing about the caller's surroundings."""
    critic.down = {"top"}
    result = ask("top", leaf())
    for create_graph in (False, True):
        with pytest.raises(ConnectionError):
            result.backward("f", create_graph=create_graph)
        assert tg.is_grad_enabled()
    with tg.no_grad():
        with pytest.raises(ConnectionError):
            result.backward("f", create_graph=True)
        assert not tg.is_grad_enabled()
    with Layer(), pytest.raises(ConnectionError):
        result.backward("f")
    assert (leaf() + "!").requires_grad


# freeing


def test_a_second_pass_through_a_freed_graph_raises(ask):
    """It names the node and the repair; retain_graph allows it."""
    prompt = leaf()
    result = ask("top", prompt)
    result.backward("one", retain_graph=True)
    result.backward("two")
    with pytest.raises(
        AutogradError, match=r"AskBackward: this graph was freed.*in forward, not once in __init__.*retain_graph=True"
    ):
        result.backward("three")
    assert texts(prompt.grad) == ["top(one)", "top(two)"]


def test_two_losses_share_what_the_first_one_frees(critic, ask):
    """The second pass fails as a whole: its own part adds nothing either."""
    prompt, own = leaf(), leaf()
    shared = ask("shared", prompt)
    first, second = ask("first", shared), ask("second", shared, own)
    first.backward("f")
    with pytest.raises(AutogradError, match="freed"):
        second.backward("f")
    assert own.grad == []
    assert len(prompt.grad) == 1


def test_a_pass_for_some_inputs_frees_only_its_path(critic, ask):
    """What it did not go through can be gone through later."""
    one, two = leaf(), leaf()
    left, right = ask("left", one), ask("right", two)
    total = ops.sum([left, right])
    total.backward("f", inputs=one)
    right.backward("g")
    assert texts(two.grad) == ["right(g)"]
    with pytest.raises(AutogradError, match="freed"):
        left.backward("g")


def weak(variable):
    return weakref.ref(variable.grad_fn)


def let_go():
    """Wait until the loop thread has left the calls that are done, and with them their arguments."""
    dispatch.run(_nothing)


async def _nothing():
    pass


@pytest.fixture
def no_collector():
    """Only reference counts give memory back while this is in use."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_no_cycle_keeps_a_graph_alive(no_collector, ask):
    """Neither nodes nor values wait for the garbage collector: after backward, and without one."""
    for backward in (True, False):
        prompt = leaf()
        middle = ask("middle", prompt)
        middle.retain_grad()
        middle.register_hook(lambda feedback: None)
        prompt.register_hook(lambda feedback: None)
        top = ops.join([middle + "!", ask("other", middle, prompt)])
        assert top.data
        if backward:
            top.backward("f", retain_graph=True)
            top.backward("f")
            assert len(middle.grad) == 4
        nodes, value = [weak(middle), weak(top)], weakref.ref(middle)
        del middle, top
        let_go()
        assert [node() for node in nodes] == [None, None]
        assert value() is None


def test_a_leaf_and_its_node_are_no_cycle(no_collector):
    """A parameter goes when its owner does; also with hooks on its node."""
    prompt = leaf()
    result = prompt + "!"
    accumulate = prompt._gradient_edge().node
    accumulate.register_prehook(lambda grads: None)
    accumulate.register_hook(lambda *grads: None)
    result.backward("f")
    node, value = weakref.ref(accumulate), weakref.ref(prompt)
    del prompt, result, accumulate
    assert node() is None
    assert value() is None


def test_a_failed_pass_keeps_nothing_alive(no_collector, critic, ask):
    """Once its exception is gone."""
    critic.down = {"top"}
    result = ask("top", leaf())
    with pytest.raises(ConnectionError) as caught:
        result.backward("f")
    node = weak(result)
    del result, caught
    let_go()
    gc.collect()  # the traceback's frames form cycles of their own
    assert node() is None


# size


def test_a_chain_of_fifty_thousand_nodes(no_collector):
    """Forward, backward and freeing without recursion, at once deep and linear."""
    prompt = leaf()
    result = prompt
    for _ in range(50_000):
        result = result + ""
    first = weakref.ref(result.grad_fn)
    result.backward("f", retain_graph=True)
    assert texts(prompt.grad) == ["f"]
    del result
    assert first() is None


def test_a_fan_in_of_a_hundred_thousand_leaves(no_collector):
    """One node with as many edges, each leaf with its one piece of feedback."""
    prompts = [leaf(0) for _ in range(100_000)]
    total = ops.sum(prompts)
    node = weak(total)
    total.backward("f")
    assert all(texts(prompt.grad) == ["f"] for prompt in prompts)
    del total, prompts
    assert node() is None


def test_an_operation_with_fifty_thousand_outputs(no_collector):
    """Feedback on every one of them, each in its place."""

    class Letters(tg.Function):
        @staticmethod
        def forward(ctx, text):
            return tuple([tg.Variable(letter) for letter in text.data])

        @staticmethod
        def backward(ctx, *grads_out):
            return ",".join([grad.data for grad in grads_out])

    prompt = leaf("x" * 50_000)
    letters = Letters.apply(prompt)
    tg.backward(letters, [str(number) for number in range(50_000)])
    assert texts(prompt.grad) == [",".join(map(str, range(50_000)))]


def test_a_long_chain_of_dispatched_calls(ask):
    """5,000 answers, each asked about the one before, and feedback all the way back."""
    prompt = leaf()

    class Pass(tg.Function):
        @staticmethod
        async def forward(ctx, text):
            return tg.Variable(text.data)

        @staticmethod
        async def backward(ctx, grad_out):
            return grad_out

    result = prompt
    for _ in range(5_000):
        result = Pass.apply(result)
    result.backward("f")
    assert result.data == "p"
    assert texts(prompt.grad) == ["f"]


# hooks and retained gradients


def test_hooks_on_leaves_and_results_see_and_rewrite():
    """In the order of registration, each with what the one before made of it."""
    prompt, seen = leaf(), []
    middle = prompt + "!"

    def look(feedback):
        seen.append((feedback.data, texts(feedback.grad)))

    middle.register_hook(look)
    middle.register_hook(lambda feedback: tg.Variable(f"[{feedback.data}]"))
    middle.register_hook(lambda feedback: [*feedback.grad, tg.Variable("more")])
    prompt.register_hook(look)
    tg.backward([middle + "1", middle + "2"], ["one", "two"])
    assert seen == [("one\ntwo", ["one", "two"]), ("[one\ntwo]\nmore", ["[one\ntwo]", "more"])]
    assert texts(prompt.grad) == ["[one\ntwo]", "more"]


def test_a_hook_may_make_a_zero(critic, ask):
    """What is behind it is not asked; later hooks are not called with nothing."""
    prompt, seen = leaf(), []
    middle = ask("middle", prompt)
    middle.register_hook(lambda feedback: "")
    prompt.register_hook(seen.append)
    ask("top", middle).backward("f")
    assert critic.asked == ["top"]
    assert (prompt.grad, seen) == ([], [])


def test_a_hook_that_fails_or_returns_nonsense_fails_the_pass(ask):
    """And leaves nothing behind."""
    prompt = leaf()
    result = ask("top", prompt)
    with prompt.register_hook(lambda feedback: 3), pytest.raises(TypeError, match="a hook gave int"):
        result.backward("f")
    with prompt.register_hook(lambda feedback: 1 / 0), pytest.raises(ZeroDivisionError):
        result.backward("f")
    result.backward("f")
    assert texts(prompt.grad) == ["top(f)"]


def test_a_removed_hook_is_not_called():
    """Removing twice is harmless; other hooks stay."""
    prompt, seen = leaf(), []
    first = prompt.register_hook(lambda feedback: seen.append("first"))
    prompt.register_hook(lambda feedback: seen.append("second"))
    first.remove()
    first.remove()
    (prompt + "!").backward("f")
    assert seen == ["second"]


def test_a_hook_may_remove_itself():
    """The hooks of a pass are those that it began with."""
    prompt, seen = leaf(), []

    def once(feedback):
        seen.append("once")
        handle.remove()

    handle = prompt.register_hook(once)
    prompt.register_hook(lambda feedback: seen.append("always"))
    for _ in range(2):
        (prompt + "!").backward("f")
    assert seen == ["once", "always", "always"]


def test_hooks_belong_to_one_output_and_to_pending_results_too():
    """Each output of a node has its own."""

    class Halves(tg.Function):
        num_outputs = 2

        @staticmethod
        async def forward(ctx, text):
            return "a", "b"

        @staticmethod
        def backward(ctx, first, second):
            return f"{first.data}|{second.data}"

    prompt = leaf()
    first, second = Halves.apply(prompt)
    second.register_hook(lambda feedback: f"[{feedback.data}]")
    tg.backward([first, second], ["x", "y"])
    assert texts(prompt.grad) == ["x|[y]"]


def test_no_hook_where_no_feedback_comes_by():
    """A constant has none; the message says so."""
    with pytest.raises(AutogradError, match="no feedback will come by"):
        tg.Variable("c").register_hook(print)
    with pytest.raises(AutogradError, match="none to retain"):
        tg.Variable("c").retain_grad()


def test_results_keep_their_feedback_when_asked_to(ask):
    """After hooks, once however often it is asked for; other results have none."""
    prompt = leaf()
    middle = ask("middle", prompt)
    top = ask("top", middle)
    middle.retain_grad()
    middle.retain_grad()
    prompt.retain_grad()
    middle.register_hook(lambda feedback: f"[{feedback.data}]")
    top.backward("f", retain_graph=True)
    assert (texts(middle.grad), top.grad, texts(prompt.grad)) == (["[top(f)]"], [], ["middle([top(f)])"])
    grad(top, prompt, "f")
    assert len(prompt.grad) == 1


class Shout(tg.Function):
    @staticmethod
    def forward(ctx, text):
        return tg.Variable(text.data.upper())

    @staticmethod
    def backward(ctx, grad_out):
        return f"(before shouting) {grad_out.data}"


@pytest.mark.parametrize("change", ["copy_", "+="])
def test_what_is_retained_follows_a_change_in_place(change):
    """It is the feedback on the value that the variable has now, once."""
    prompt = leaf()
    result = prompt + "?"
    result.retain_grad()
    if change == "copy_":
        result.copy_(Shout.apply(result))
    else:
        result = Shout.apply(result)
        result.retain_grad()
        result += "!"
    result.backward("too loud")
    assert texts(result.grad) == ["too loud"]
    assert texts(prompt.grad) == ["(before shouting) too loud"]


def test_what_became_another_value_retains_the_feedback_on_that():
    """Also where that does not depend on the old one; a plain text retains nothing more."""
    old, new = leaf(), leaf()
    result = old + "?"
    result.retain_grad()
    before = result + "."
    result.copy_(new + "!")
    tg.backward([result, before], ["on the new", "on the old"])
    assert texts(result.grad) == ["on the new"]
    assert texts(old.grad) == ["on the old"]
    result.copy_("plain text")
    (result + new).backward("later")
    assert texts(result.grad) == ["on the new"]


# groups


class Grouped(tg.Function):
    """Answers for several nodes at once; keeps which ones were taken together."""

    together = []  # noqa: RUF012

    @staticmethod
    def forward(ctx, name, *inputs):
        ctx.name = name
        return tg.Variable(name)

    @staticmethod
    def backward_group(ctx):
        return ctx.name[0] if ctx.name[0] != "-" else None

    @staticmethod
    def backward(ctx, grad_out):
        Grouped.together.append(ctx.name)
        return (None, *[f"{ctx.name}({grad_out.data})"] * (len(ctx.needs_input_grad) - 1))

    @staticmethod
    def backward_many(ctxs, grad_outputs):
        Grouped.together.append([ctx.name for ctx in ctxs])
        return [
            (None, *[f"{ctx.name}({grad_out.data})"] * (len(ctx.needs_input_grad) - 1))
            for ctx, (grad_out,) in zip(ctxs, grad_outputs, strict=True)
        ]


@pytest.fixture(autouse=True)
def together():
    Grouped.together = []
    return Grouped.together


@pytest.mark.parametrize("order", list(itertools.permutations(["t1", "t2", "t3"])))
def test_groups_are_made_in_graph_order(critic, ask, order):
    """Whatever finished first; each group with its own key; satisfied nodes take no place."""
    prompt = leaf()
    names = ["a1", "a2", "b1", "a3", "-alone", "a4"]
    nodes = [Grouped.apply(name, prompt) for name in names]
    tops = [ask("t1", *nodes[:2]), ask("t2", nodes[2], nodes[4]), ask("t3", nodes[3])]
    critic.finish_in(order)
    tg.backward([*tops, nodes[5]], ["f", "f", "f", ""])
    assert Grouped.together[0] == "-alone"
    assert Grouped.together[1:] == [["a1", "a2", "a3"], ["b1"]]
    assert texts(prompt.grad) == ["a1(t1(f))", "a2(t1(f))", "b1(t2(f))", "-alone(t2(f))", "a3(t3(f))"]


def test_a_group_waits_for_all_of_its_wave_only():
    """Nodes behind others of their group come in a later one."""
    prompt = leaf()
    inner = Grouped.apply("a1", prompt)
    outer = [Grouped.apply("a2", inner), Grouped.apply("a3", inner)]
    ops.sum(outer).backward("f")
    assert Grouped.together == [["a2", "a3"], ["a1"]]
    assert texts(prompt.grad) == ["a1(a2(f)\na3(f))"]


def test_a_group_rule_that_fails_leaves_nothing(monkeypatch):
    """Also when it answers for fewer nodes than it was asked about."""
    one, two = leaf(), leaf()
    total = ops.sum([Grouped.apply("a1", one), Grouped.apply("a2", two)])
    monkeypatch.setattr(Grouped, "backward_many", staticmethod(lambda ctxs, grads: [(None, "only one")]))
    with pytest.raises(ValueError, match="shorter"):
        total.backward("f")
    assert one.grad == two.grad == []
    monkeypatch.undo()
    total.backward("f")
    assert (texts(one.grad), texts(two.grad)) == (["a1(f)"], ["a2(f)"])


class AtOnce(Grouped):
    """Shares no call and waits for nobody."""

    @staticmethod
    def backward_group(ctx):
        return ()


class Other(AtOnce):
    """The same, and another Function."""


def test_rules_that_wait_for_nobody_are_run_some_at_a_time():
    """However many there are, few of their objects exist at once; feedback is in the order of the graph."""
    prompt = leaf()
    answers = [AtOnce.apply(f"a{number}", prompt) for number in range(100)]
    tg.backward(answers, ["f"] * 100)
    assert [len(names) for names in Grouped.together] == [32, 32, 32, 4]
    assert texts(prompt.grad) == [f"a{number}(f)" for number in range(100)]


def test_rules_of_two_functions_are_not_mixed():
    """Each is asked about nodes of its own, and those behind others come later."""
    prompt = leaf()
    inner = AtOnce.apply("a1", prompt)
    outer = [AtOnce.apply("a2", inner), Other.apply("b1", inner), Other.apply("b2", inner), AtOnce.apply("a3", inner)]
    ops.sum(outer).backward("f")
    assert Grouped.together == [["a3"], ["b2", "b1"], ["a2"], ["a1"]]
    assert texts(prompt.grad) == ["a1(a2(f)\nb1(f)\nb2(f)\na3(f))"]


def test_a_rule_that_waits_for_nobody_and_fails_leaves_nothing(monkeypatch):
    """Nor do those that were run with it; the next pass counts once."""
    prompt = leaf()
    answers = [AtOnce.apply(f"a{number}", prompt) for number in range(40)]
    with monkeypatch.context() as broken:
        broken.setattr(
            AtOnce, "backward_many", staticmethod(lambda ctxs, grads: [(None, "f")] * (len(ctxs) // 32 * 32))
        )
        with pytest.raises(ValueError, match="shorter"):
            tg.backward(answers, ["f"] * 40)
    assert prompt.grad == []
    tg.backward(answers, ["f"] * 40)
    assert texts(prompt.grad) == [f"a{number}(f)" for number in range(40)]


# feedback on feedback


class Instructed(tg.Function):
    """A critic with instructions of its own, written with plain operations."""

    instructions = None

    @staticmethod
    def forward(ctx, text):
        ctx.save_for_backward(text)
        return tg.Variable(f"<{text.data}>")

    @staticmethod
    def backward(ctx, grad_out):
        (text,) = ctx.saved_variables
        return ops.join([Instructed.instructions, text, grad_out], " / ")


@pytest.fixture
def instructions(monkeypatch):
    monkeypatch.setattr(Instructed, "instructions", leaf("be kind", role="instructions of the critic"))
    return Instructed.instructions


def test_with_create_graph_feedback_has_a_graph(instructions):
    """A second pass goes through it to the critic's instructions and to the prompt; the graph is retained."""
    prompt = leaf()
    top = Instructed.apply(Instructed.apply(prompt))
    top.backward("f", create_graph=True)
    (feedback,) = prompt.grad
    assert feedback.data == "be kind / p / be kind / <p> / f"
    assert feedback.grad_fn.name() == "JoinBackward"
    feedback.backward("too kind", inputs=[instructions], retain_graph=True)
    assert texts(instructions.grad) == ["too kind"] * 2
    prompt.grad = None
    feedback.backward("again", retain_graph=True)
    # once as the input of the first call, once through the second call's input, which that call computed
    assert sorted(texts(prompt.grad)) == ["again", "be kind / p / again"]
    top.backward("f")


def test_without_create_graph_feedback_has_none(instructions):
    """Whatever the rule computes with."""
    prompt = leaf()
    Instructed.apply(prompt).backward("f")
    assert prompt.grad[0].is_leaf
    assert not prompt.grad[0].requires_grad
    result = Instructed.apply(prompt)
    with tg.no_grad():
        (found,) = grad(result, prompt, "f", create_graph=True)
    assert found[0].requires_grad


def test_the_first_feedback_can_be_a_variable_that_wants_feedback_itself(instructions):
    """Each gradient's own share is found again behind the pass."""
    one, two, prompt = leaf("one"), leaf("two"), leaf()
    middle = ops.join([prompt, "!"])
    tg.backward([Instructed.apply(middle), Instructed.apply(middle)], [one, two], create_graph=True)
    assert len(prompt.grad) == 2
    tg.backward(prompt.grad, ["on one", "on two"], inputs=[one, two])
    assert (texts(one.grad), texts(two.grad)) == (["on one"], ["on two"])


def test_several_items_as_one_text_send_feedback_to_each(instructions):
    """A rule that used the joined text is criticized for all of it."""
    one, two, prompt = leaf("one"), leaf("two"), leaf()
    middle = Instructed.apply(prompt)
    tg.backward([middle, middle], [one, two], create_graph=True)
    (feedback,) = prompt.grad
    assert feedback.data == "be kind / p / one\ntwo"
    feedback.backward("vague", inputs=[one, two])
    assert (texts(one.grad), texts(two.grad)) == (["vague"], ["vague"])


def test_a_rule_waits_for_a_forward_that_nobody_has_read():
    """A value that a plain operation ignored may still be on its way when feedback reaches it."""
    gate, prompt = Future(), leaf()

    class Slow(tg.Function):
        @staticmethod
        async def forward(ctx, gate, text):
            ctx.answer = await asyncio.wrap_future(gate)
            return ctx.answer

        @staticmethod
        def backward(ctx, grad_out):
            return None, f"{ctx.answer}: {grad_out.data}"

    class First(tg.Function):
        @staticmethod
        def forward(ctx, a, b):
            return tg.Variable(a.data)

        @staticmethod
        def backward(ctx, grad_out):
            gate.set_result("slow answer")
            return None, grad_out

    First.apply(tg.Variable("a"), Slow.apply(gate, prompt)).backward("f")
    assert texts(prompt.grad) == ["slow answer: f"]


def test_an_input_that_wants_feedback_is_heard_where_the_call_before_had_one_that_wanted_none():
    """Two calls in a row that have the rest of their inputs in common."""
    prompt = tg.Variable("prompt", requires_grad=True)
    word = tg.Variable("two", requires_grad=True)
    before = prompt + tg.Variable("one")
    after = prompt + word
    tg.backward([before, after], ["x", "y"])
    assert [item.data for item in word.grad] == ["y"]
    assert [item.data for item in prompt.grad] == ["x", "y"]


def test_of_several_critics_that_fail_the_first_in_order_is_named():
    """A rule asks one for each input; the error of the pass depends on no order of answers."""

    class Pair(tg.Function):
        @staticmethod
        def forward(ctx, one, two):
            return tg.Variable(one.data + two.data)

        @staticmethod
        def backward(ctx, grad_out):
            return tuple([ops.chat_completion(None, [{"role": "user", "content": word}]) for word in ("one", "two")])

    def fail(request):
        raise LookupError(f"about {request.messages[-1].text}")

    with tg.use_models(forward=FunctionModel(fail)), pytest.raises(LookupError, match="about one"):
        Pair.apply(leaf("a"), leaf("b")).backward("x")


def test_feedback_made_of_several_items_has_the_score_of_the_first():
    """In the order of the losses."""
    text = tg.Variable("a", requires_grad=True)
    shouted = Shout.apply(text)
    tg.backward([ops.deterministic_evaluator(shouted, None, lambda _, s=s: s, "worth")[0] for s in (0.25, 0.5)])
    (item,) = text.grad
    assert item.source.score == 0.25
    assert [piece.source.score for piece in item.source.because] == [0.25, 0.5]
