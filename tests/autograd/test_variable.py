import asyncio
import copy
import enum
import pickle
import threading
from concurrent.futures import Future

import pytest

import textgrad_engine as tg
from textgrad_engine import func, ops
from textgrad_engine.dispatch import Scope
from textgrad_engine.errors import AutogradError, CallCancelled, DispatchError

from ..values import texts


class Ask(tg.Function):
    """Answers when its gate opens, with all its texts."""

    @staticmethod
    async def forward(gate, *texts):
        await asyncio.wrap_future(gate)
        return tg.Variable(" ".join(text.data for text in texts), role="answer")

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad_out):
        return (None, *[grad_out for _ in ctx.needs_input_grad[1:]])


class Named(Ask):
    @staticmethod
    def output_role(gate, *texts):
        return "reply"


class Keep(tg.Function):
    """Saves its input, as most rules do."""

    @staticmethod
    def forward(ctx, text):
        ctx.save_for_backward(text)
        return tg.Variable(f"<{text.data}>")

    @staticmethod
    def backward(ctx, grad_out):
        (text,) = ctx.saved_variables
        return tg.Variable(f"{text.data}: {grad_out.data}")


# values


@pytest.mark.parametrize("data", [None, {"a": 1}, ("a",), b"bytes", object(), [("a",)], [["a", None]], {"a"}])
def test_what_is_no_value_is_refused(data):
    """The message says what a Variable holds and what came."""
    with pytest.raises(TypeError, match="holds"):
        tg.Variable(data)
    variable = tg.Variable("kept")
    with pytest.raises(TypeError, match="holds"):
        variable.data = data
    assert variable.data == "kept"


def test_a_variable_in_the_place_of_data_is_told_how_a_leaf_is_made_of_it():
    """As where the answer of a model is to be improved itself."""
    answer = tg.Variable("a", role="answer") + "!"
    with pytest.raises(
        TypeError, match=r"got Variable: .*; its value is its \.data, and nn\.Parameter\(\.\.\.\) of it is a leaf"
    ):
        tg.Variable(answer, role="solution", requires_grad=True)


class Queue(enum.StrEnum):
    BILLING = "billing"
    BROKEN = "bro\udcffken"


@pytest.mark.parametrize("data", ["ab\ud800c", ["fine", "ab\ud800c"], [["ab\ud800c"]], "ok \U0001f600 \udfff"])
def test_a_lone_surrogate_is_refused_with_its_position(data):
    """No endpoint accepts it, and the failure would come far from the cause."""
    with pytest.raises(ValueError, match=r"lone surrogate \(U\+D[8F][0-9A-F]{2}\) at position [25].*errors='replace'"):
        tg.Variable(data)


def test_a_surrogate_is_found_in_an_enum_and_in_an_answer_too():
    """Subclasses of str and results of calls are checked as literals are."""
    with pytest.raises(ValueError, match="position 3"):
        tg.Variable(Queue.BROKEN)

    class Broken(tg.Function):
        @staticmethod
        async def forward(ctx):
            return "x\udc00"

    with pytest.raises(ValueError, match="position 1"):
        _ = Broken.apply().data
    assert tg.Variable(Queue.BILLING).data == "billing"


def test_text_beyond_the_basic_plane_is_fine():
    """Emoji and right-to-left text are no surrogates."""
    assert tg.Variable("\U0001f600 שלום").data == "\U0001f600 שלום"


def test_a_batch_is_copied():
    """Editing the list that was given changes no variable."""
    given, nested = ["a", "b"], [["a"], ["b"]]
    variable, matrix = tg.Variable(given), tg.Variable(nested)
    given.append("c")
    nested[0].append("c")
    assert (variable.data, matrix.data) == (["a", "b"], [["a"], ["b"]])


def test_equality_and_hash_are_by_identity():
    """Two variables with one text are two variables."""
    one, two = tg.Variable("a"), tg.Variable("a")
    assert one != two
    assert len({one, two, one}) == 2


def test_a_plain_value_is_compared_with_the_data():
    """So `if answer == "yes"` and `match answer` do what they read as, instead of never."""
    answer, score, batch = tg.Variable("yes"), tg.Variable(1), tg.Variable(["a", "b"])
    assert answer == "yes"
    assert answer != "no"
    assert answer in ("no", "yes")
    assert score == 1.0
    assert batch == ["a", "b"]
    assert answer != 1
    assert answer is not None
    assert (answer == None) is False  # noqa: E711  what a slip asks
    match answer:
        case "yes":
            pass
        case _:
            pytest.fail("no case")


def test_comparing_waits_and_raises_what_the_computation_raised():
    """A comparison reads the value, so it is never decided before the value is there."""

    class Later(tg.Function):
        @staticmethod
        async def forward(text):
            await asyncio.sleep(0)
            if text.data == "bad":
                raise ValueError("no answer")
            return tg.Variable(text.data.upper())

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

    assert Later.apply(tg.Variable("yes")) == "YES"
    with pytest.raises(ValueError, match="no answer"):
        _ = Later.apply(tg.Variable("bad")) == "BAD"


def test_comparing_inside_vmap_is_refused_as_reading_is():
    """There a value is a different one for each example, so no branch could be right for all."""
    with pytest.raises(tg.errors.AutogradError, match="pmap"):
        func.vmap(lambda text: text + "!" if text == "yes" else text)(["yes", "no"])


def test_values_are_ordered_by_their_data():
    """So `if score < 0.5` and `max(scores)` read what is there, and wait for what is not."""

    class Later(tg.Function):
        @staticmethod
        async def forward(number):
            await asyncio.sleep(0)
            return tg.Variable(number.data)

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

    low, high = Later.apply(tg.Variable(0.25)), Later.apply(tg.Variable(1))
    assert (low < 0.5, low <= 0.25, low > high, low >= 0.5, low > 0.5) == (True, True, False, False, False)
    assert max([low, high]) is high
    assert tg.Variable("a") < "b"
    with pytest.raises(TypeError, match="'<' not supported between instances of 'str' and 'float'"):
        _ = tg.Variable("0.3") < 0.5
    with pytest.raises(AutogradError, match="reads the data of a value inside"):
        func.vmap(lambda score: score < 0.5)([0, 1])


def test_what_a_variable_has_in_it_is_asked_as_of_its_data():
    """The line that most tests of a prompt end with."""
    said = tg.Variable("Dear Ada, thank you.", role="letter")
    assert "Ada" in said
    assert tg.Variable("Ada") in said
    assert "Bob" not in said
    assert 2 in tg.Variable([1, 2])
    with pytest.raises(AutogradError, match="reads the data of a value inside"):
        func.vmap(lambda letter: "Ada" in letter)(["Ada", "Bob"])


def test_iterating_over_a_variable_that_is_no_batch_is_an_error():
    """Pieces of a text made by a for loop would have no graph."""
    with pytest.raises(TypeError, match=r"'draft' cannot be iterated over.*ops\.split"):
        list(tg.Variable("text", role="draft"))
    with pytest.raises(TypeError, match=r"'draft' cannot be iterated over.*ops\.split"):
        reversed(tg.Variable('["a", "b"]', role="draft"))


def test_conversions_read_the_value():
    """str, int, float, len, bool and format."""
    assert (int(tg.Variable("3")), float(tg.Variable(0.5)), len(tg.Variable(["a", "b"]))) == (3, 0.5, 2)
    assert not tg.Variable("")
    assert tg.Variable("no")
    assert f"{tg.Variable(0.256):.1f} {tg.Variable('x'):>3}" == "0.3   x"


@pytest.mark.parametrize(
    ("kind", "data", "error"), [(int, "three", ValueError), (float, "long " * 99, ValueError), (float, [1], TypeError)]
)
def test_what_is_no_number_is_told_by_its_role(kind, data, error):
    """Python's own words name neither, and show a text of any length."""
    with pytest.raises(error, match=rf"^Variable 'answer' holds .*, and {kind.__name__}\(\) makes no number") as caught:
        kind(tg.Variable(data, role="answer"))
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize("turned", [lambda v: 1 - v, lambda v: v - 1, lambda v: -v, lambda v: 1 / v])
def test_a_score_is_not_turned_round(turned):
    """As in `1 - loss`, which who comes from losses that fall writes."""
    with pytest.raises(TypeError, match=r"'score' takes no minus.* Let the loss itself give more"):
        turned(tg.Variable(0.5, role="score"))


def test_the_representation_never_waits_and_is_short():
    """A debugger may show a pending value, a failed one and a book."""
    gate = Future()
    pending = Named.apply(gate, tg.Variable("p", requires_grad=True))
    assert repr(pending) == "Variable(<pending>, role='reply', grad_fn=<NamedBackward>)"
    gate.set_exception(ValueError("down"))
    with pytest.raises(ValueError, match="down"):
        _ = pending.data
    assert repr(pending).startswith("Variable(<failed>")
    assert repr(tg.Variable("x" * 1_000_000)).endswith("… (1,000,000 characters))")


# pending values


def test_an_error_surfaces_at_first_read_with_role_function_and_line():
    """Also through what depends on it, as one exception with one note."""
    gate = Future()
    here = test_an_error_surfaces_at_first_read_with_role_function_and_line.__code__.co_firstlineno
    answer = Named.apply(gate, tg.Variable("p", role="prompt"))
    later = ops.join([answer, Ask.apply(Future(), answer), "x"])
    gate.set_exception(ValueError("the endpoint is down"))
    for value in (later, answer, later):
        with pytest.raises(ValueError, match="the endpoint is down") as caught:
            str(value)
        assert caught.value.__notes__ == [f"while computing 'reply' (Named), asked for at {__file__}:{here + 4}"]


@pytest.mark.parametrize("read", [str, int, float, len, bool, lambda v: v.data, lambda v: f"{v}", lambda v: v.role])
def test_every_way_of_reading_raises_the_error(read):
    """No conversion turns a failure into a value."""
    gate = Future()
    answer = Ask.apply(gate, tg.Variable("p"))
    gate.set_exception(ZeroDivisionError("inside"))
    with pytest.raises(ZeroDivisionError):
        read(answer)


def test_building_on_a_pending_value_does_not_wait():
    """Plain operations are deferred, also when the role of a result is only known at its end."""
    gate = Future()
    answer = Ask.apply(gate, tg.Variable("hello"))
    total = ops.join([answer + "!", answer], " ") + "?"
    loss = Ask.apply(gate, total)
    assert not answer.done()
    assert not loss.done()
    gate.set_result(None)
    assert total.data == "hello! hello?"
    assert total.role == "answer"
    assert loss.data == "hello! hello?"
    assert loss.done()


def test_inputs_are_taken_by_value_at_dispatch():
    """Changing a prompt, a batch or a container later never changes a call already made."""
    gate = Future()
    prompt, batch, container = tg.Variable("old"), tg.Variable([["old"]]), [tg.Variable("old")]

    class Look(tg.Function):
        @staticmethod
        async def forward(ctx, gate, prompt, batch, container):
            await asyncio.wrap_future(gate)
            return f"{prompt.data} {batch.data} {[item.data for item in container]}"

    result = Look.apply(gate, prompt, batch, container)
    prompt.data = "new"
    batch.data[0].append("new")
    batch.data.append("new")
    batch.data = ["new"]
    container[0].data = "new"
    container.append(tg.Variable("new"))
    gate.set_result(None)
    assert result.data == "old [['old']] ['old']"


@pytest.mark.parametrize("wrap", [list, lambda texts: {"deep": (texts, 1)}])
def test_a_container_of_plain_values_is_taken_by_value_too(wrap):
    """As a history of a conversation that goes on: also where no argument is a Variable."""
    gate, history = Future(), ["old"]

    class Look(tg.Function):
        @staticmethod
        async def forward(ctx, gate, container):
            await asyncio.wrap_future(gate)
            return str(container)

    given = wrap(history)
    expected = str(given)
    result = Look.apply(gate, given)
    for each in (history, given):
        if isinstance(each, list):
            each.append("new")
    gate.set_result(None)
    assert result.data == expected


def test_ten_thousand_pending_variables():
    """One prompt, all calls under way at once, feedback in the order of the calls."""
    gate, prompt = Future(), tg.Variable("p", requires_grad=True)
    answers = [Ask.apply(gate, prompt, tg.Variable(str(number))) for number in range(10_000)]
    assert not any(answer.done() for answer in answers)
    gate.set_result(None)
    assert [answer.data for answer in answers] == [f"p {number}" for number in range(10_000)]
    tg.backward(answers, [str(number) for number in range(10_000)])
    assert texts(prompt.grad) == [str(number) for number in range(10_000)]


def test_reading_on_the_loop_thread_raises_instead_of_hanging():
    """A forward that reads another call's value has to await it."""
    gate = Future()
    slow = Ask.apply(gate, tg.Variable("slow"))

    class Reads(tg.Function):
        @staticmethod
        async def forward(ctx):
            return slow.data

    class Awaits(tg.Function):
        @staticmethod
        async def forward(ctx):
            return (await slow).data

    with pytest.raises(DispatchError, match="await variable"):
        _ = Reads.apply().data
    patient = Awaits.apply()
    gate.set_result(None)
    assert patient.data == "slow"


def test_await_in_a_loop_of_the_users_gives_the_variable():
    """Several at once, next to other tasks."""
    gate = Future()
    answers = [Ask.apply(gate, tg.Variable(text)) for text in "abc"]

    async def wait(variable):
        return await variable

    async def main():
        waiting = asyncio.gather(*[wait(answer) for answer in answers])
        await asyncio.sleep(0)
        gate.set_result(None)
        return await waiting

    assert asyncio.run(main()) == answers
    assert texts(answers) == ["a", "b", "c"]

    async def settled():
        return await tg.Variable("x")

    assert asyncio.run(settled()).data == "x"


def test_a_notebook_reads_awaits_and_goes_backward_in_its_running_loop():
    """The user's loop is not ours, so blocking it for a moment hangs nothing."""
    prompt, gate = tg.Variable("p", requires_grad=True), Future()
    gate.set_result(None)

    async def cell():
        answer = Ask.apply(gate, prompt)
        first = answer.data
        await answer
        answer.backward("one")
        again = Ask.apply(gate, prompt)
        await again.abackward("two")
        return first

    assert asyncio.run(cell()) == "p"
    assert texts(prompt.grad) == ["one", "two"]


def test_threads_share_pending_values():
    """Each reads the same value, and feedback of their passes is kept."""
    gate, prompt, read = Future(), tg.Variable("p", requires_grad=True), []

    def work(number):
        own = Ask.apply(gate, shared, tg.Variable(str(number)))
        read.append(own.data)
        own.backward(str(number), retain_graph=True)

    shared = Ask.apply(gate, prompt)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    gate.set_result(None)
    for thread in threads:
        thread.join(60)
    assert sorted(read) == [f"p {number}" for number in range(8)]
    assert sorted(texts(prompt.grad)) == [str(number) for number in range(8)]


def test_cancelled_values_say_so():
    """Reading and going backward raise CallCancelled, and no leaf has feedback."""
    prompt = tg.Variable("p", requires_grad=True)
    with Scope() as scope:
        answer = Ask.apply(Future(), prompt)
        later = answer + "!"
    scope.cancel()
    for work in (lambda: later.data, lambda: answer.data, lambda: later.backward("f")):
        with pytest.raises(CallCancelled, match="Ask"):
            work()
    assert prompt.grad == []


def test_assigning_to_a_pending_variable_replaces_the_value():
    """The call's late answer does not come back."""
    gate = Future()
    answer = Named.apply(gate, tg.Variable("p"))
    answer.data = "mine"
    assert answer.done()
    gate.set_result(None)
    assert (answer.data, answer.role) == ("mine", "reply")


# leaves, results, versions


def test_a_result_cannot_stop_requiring_grad():
    """Detaching is the way; a leaf may change its mind."""
    leaf = tg.Variable("p", role="prompt", requires_grad=True)
    result = leaf + "!"
    with pytest.raises(AutogradError, match=r"'prompt' is a result.*detach"):
        result.requires_grad_(False)
    with pytest.raises(AutogradError, match="leaves only"):
        result.requires_grad = False
    assert leaf.requires_grad_(False) is leaf
    assert not (leaf + "!").requires_grad


def test_a_value_edited_since_its_forward_is_named():
    """Feedback on the old text must not be applied to the new one."""
    prompt = tg.Variable("old", role="prompt", requires_grad=True)
    result = Keep.apply(prompt)
    prompt.data = "new"
    with pytest.raises(AutogradError, match=r"'prompt' was changed after it was used \(version 1, .*version 0"):
        result.backward("f")
    assert prompt.grad == []


def test_an_edited_value_is_no_matter_where_nothing_was_saved():
    """Passing feedback on does not depend on the value."""
    prompt = tg.Variable("old", requires_grad=True)
    result = prompt + "!"
    prompt.data = "new"
    result.backward("f")
    assert texts(prompt.grad) == ["f"]


def test_an_edit_of_a_dispatched_input_is_found_too():
    """By the version of the variable that the user holds, though the call took a copy."""
    gate, prompt = Future(), tg.Variable("old", role="prompt", requires_grad=True)

    class Later(tg.Function):
        @staticmethod
        async def forward(ctx, gate, text):
            await asyncio.wrap_future(gate)
            ctx.save_for_backward(text)
            return text.data

        @staticmethod
        def backward(ctx, grad_out):
            return None, f"{ctx.saved_variables[0].data}: {grad_out.data}"

    fine, spoilt = Later.apply(gate, prompt), Later.apply(gate, prompt)
    gate.set_result(None)
    fine.backward("f")
    assert texts(prompt.grad) == ["old: f"]
    prompt.data = "new"
    with pytest.raises(AutogradError, match="'prompt' was changed"):
        spoilt.backward("f")


def test_a_detached_value_has_a_version_of_its_own():
    """Editing the original spoils nothing, editing the detached value does."""
    prompt, original = tg.Variable("p", requires_grad=True), tg.Variable("q", role="original")

    class Both(tg.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return tg.Variable(a.data + b.data)

        @staticmethod
        def backward(ctx, grad_out):
            _, b = ctx.saved_variables
            return f"{b.data}: {grad_out.data}", None

    detached = original.detach()
    result = Both.apply(prompt, detached)
    original.data = "changed"
    result.backward("f")
    assert texts(prompt.grad) == ["q: f"]
    result = Both.apply(prompt, detached)
    detached.data = "changed"
    with pytest.raises(AutogradError, match="'original' was changed"):
        result.backward("f")


def test_detach_cuts_the_graph_and_clone_does_not():
    """Both have the value, also a pending one."""
    gate, prompt = Future(), tg.Variable("p", requires_grad=True)
    answer = Ask.apply(gate, prompt)
    cut, copy = answer.detach(), answer.clone()
    assert not cut.done()
    assert (cut.is_leaf, cut.requires_grad, copy.requires_grad) == (True, False, True)
    gate.set_result(None)
    assert (cut.data, copy.data) == ("p", "p")
    copy.backward("f")
    assert texts(prompt.grad) == ["f"]


# in-place changes


@pytest.mark.parametrize("given", ["no", 1, None])
def test_requires_grad_is_true_or_false(given):
    """A text would count as True."""
    with pytest.raises(TypeError, match="requires_grad is True or False, got"):
        tg.Variable("x", requires_grad=given)
    leaf = tg.Variable("x")
    with pytest.raises(TypeError, match="requires_grad is True or False, got"):
        leaf.requires_grad = given
    assert leaf.requires_grad is False


def test_a_truth_value_of_numpy_is_a_flag():
    """It is what a comparison of numpy's gives; the Variable keeps Python's."""
    of_numpy = type("bool", (), {"__module__": "numpy", "__bool__": lambda self: True})()
    assert tg.Variable("x", requires_grad=of_numpy).requires_grad is True


def test_a_leaf_that_requires_grad_cannot_be_changed_in_place():
    """Unless nothing is recorded; then it stays the leaf that it was."""
    prompt = tg.Variable("p", role="prompt", requires_grad=True)
    same = prompt
    with pytest.raises(AutogradError, match=r"\+= on Variable 'prompt'.*no_grad"):
        prompt += "!"
    with pytest.raises(AutogradError, match="copy_ on Variable 'prompt'"):
        prompt.copy_("x")
    assert prompt.data == "p"
    with tg.no_grad():
        prompt += "!"
        assert prompt.data == "p!"
        prompt.copy_(tg.Variable("x", role="other"))
    assert prompt is same
    assert (prompt.data, prompt.role, prompt.is_leaf, prompt.requires_grad) == ("x", "prompt", True, True)
    (prompt + "").backward("f")
    assert texts(prompt.grad) == ["f"]


def test_in_place_on_a_result_is_recorded():
    """The object is the same, its history grows, and feedback reaches every part."""
    a, b, c = (tg.Variable(name, requires_grad=True) for name in "abc")
    result = same = a + ""
    result += b
    result += "!"
    assert result is same
    assert result.data == "ab!"
    result.backward("f")
    assert [texts(leaf.grad) for leaf in (a, b)] == [["f"], ["f"]]
    plain = tg.Variable("x")
    plain.copy_(c)
    assert plain.data == "c"
    assert not plain.is_leaf
    plain.backward("g")
    assert texts(c.grad) == ["g"]


def test_a_result_that_takes_over_a_plain_value_has_no_history_any_more():
    """It depends on nothing that wants feedback, so it does not pose as a leaf that does."""
    prompt = tg.Variable("p", requires_grad=True)
    result = prompt + "!"
    result.copy_("constant")
    assert (result.data, result.is_leaf, result.requires_grad) == ("constant", True, False)


def test_under_no_grad_a_result_keeps_its_history():
    """Only the value changes, as in PyTorch."""
    prompt = tg.Variable("p", requires_grad=True)
    result = prompt + "!"
    with tg.no_grad():
        result += "?"
        result.copy_(f"{result.data}.")
    assert result.data == "p!?."
    assert result.requires_grad
    result.backward("f")
    assert texts(prompt.grad) == ["f"]


def test_an_in_place_change_counts_as_an_edit():
    """What saved the old value refuses."""
    prompt = tg.Variable("p", requires_grad=True)
    middle = prompt + ""
    result = Keep.apply(middle)
    middle += "!"
    with pytest.raises(AutogradError, match="was changed after it was used"):
        result.backward("f")


# .grad


def test_grad_is_an_ordered_list_that_can_be_set():
    """To a Variable, a list or None; anything else is refused and changes nothing."""
    leaf, one, two = tg.Variable("p", requires_grad=True), tg.Variable("1"), tg.Variable("2")
    assert leaf.grad == []
    leaf.grad = one
    assert leaf.grad == [one]
    leaf.grad = (item for item in (two, one))
    assert leaf.grad == [two, one]
    for wrong, named in ((["text"], "str: 'text'"), ("text", "str: 'text'"), (5, "int: 5")):
        with pytest.raises(TypeError, match=f"grad holds Variables, got {named}"):
            leaf.grad = wrong
    assert leaf.grad == [two, one]
    leaf.grad = None
    assert leaf.grad == []


def test_the_list_that_was_given_is_copied():
    """Accumulating does not write into somebody else's list."""
    given = [tg.Variable("1")]
    leaf = tg.Variable("p", requires_grad=True)
    leaf.grad = given
    (leaf + "").backward("2")
    assert len(given) == 1
    assert texts(leaf.grad) == ["1", "2"]


# copies


class Tagged(tg.Variable):
    """A subclass with attributes of its own."""

    def __init__(self, data, tags):
        super().__init__(data, role="tagged", requires_grad=True)
        self.tags = tags


COPIES = [copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))]


@pytest.mark.parametrize("copied", COPIES)
def test_results_and_values_of_transforms_are_not_copied(copied):
    """A copy would drag the graph along, or belong to no level; the message names what does what is wanted."""
    result = tg.Variable("a", role="draft", requires_grad=True) + "!"
    with pytest.raises(AutogradError, match=r"'draft' is a result.*only leaves .* v\.detach\(\)"):
        copied(result)
    with pytest.raises(AutogradError, match="only leaves are copied"):
        func.vmap(copied)(["a", "b"])
    assert copied(result.detach()).data == "a!"


@pytest.mark.parametrize("copied", COPIES)
def test_feedback_on_a_copy_is_the_copys_alone(copied):
    """Also while a graph of the original is alive: what it is in there belongs to the original."""
    original = tg.Variable(["a"], role="draft", requires_grad=True)
    original.register_hook(lambda feedback: "rewritten")
    held = original + "!"
    original.data = ["b"]
    other = copied(original)
    assert (other.data, other.role, other.requires_grad, other.is_leaf) == (["b"], "draft", True, True)
    (other + "?").backward(["on the copy"])
    assert (original.grad, [item.data for item in other.grad]) == ([], [["on the copy"]])
    held.backward("f")
    assert (texts(original.grad), len(other.grad)) == (["rewritten"], 1)


def test_a_deep_copy_has_the_feedback_so_far_in_a_list_of_its_own():
    """As in PyTorch; a pickle has none."""
    original = tg.Variable("a", requires_grad=True)
    original.grad = tg.Variable("f")
    other = copy.deepcopy({"a": original, "b": original})
    assert other["a"] is other["b"]
    other["a"].grad.append(tg.Variable("g"))
    assert (texts(original.grad), texts(other["a"].grad)) == (["f"], ["f", "g"])
    assert pickle.loads(pickle.dumps(original)).grad == []


class Doc(tg.Variable):
    """With an attribute."""

    def __init__(self, text, lang):
        super().__init__(text, requires_grad=True)
        self.lang = lang


class SlotDoc(tg.Variable):
    """With slots, one of them private."""

    __slots__ = ("__hidden", "lang")

    def __init__(self, text, lang):
        super().__init__(text, requires_grad=True)
        self.lang, self.__hidden = lang, "hidden"

    @property
    def hidden(self):
        return self.__hidden


class Mixed(tg.nn.Parameter, Doc):
    """One whose own body adds nothing."""

    __slots__ = ()

    def __init__(self, text, lang):
        Doc.__init__(self, text, lang)


@pytest.mark.parametrize("kind", [Doc, SlotDoc, Mixed])
@pytest.mark.parametrize("style", ["plain", "async"])
def test_a_function_is_given_a_subclass_as_it_is(kind, style):
    """By value or not, in the forward and as a saved variable; what is computed, or cut off, is a plain Variable."""

    def forward(ctx, text):
        ctx.save_for_backward(text)
        return tg.Variable(f"{text.data} in {text.lang}")

    async def dispatched(ctx, text):
        return forward(ctx, text)

    def backward(ctx, grad_out):
        (text,) = ctx.saved_variables
        return f"{type(text).__name__} {text.lang}: {grad_out.data}"

    body = {"forward": forward if style == "plain" else dispatched, "backward": backward}
    rule = type("Rule", (tg.Function,), {name: staticmethod(each) for name, each in body.items()})
    text = kind("bonjour", "fr")
    result = rule.apply(text)
    assert result.data == "bonjour in fr"
    result.backward("no")
    assert [item.data for item in text.grad] == [f"{kind.__name__} fr: no"]
    assert type(result) is type(text.detach()) is tg.Variable


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_of_a_subclass_with_slots_keeps_what_is_in_them(copied):
    """Also what has a private name."""
    other = copied(SlotDoc("bonjour", "fr"))
    assert (type(other), other.data, other.lang, other.hidden) == (SlotDoc, "bonjour", "fr", "hidden")


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_of_feedback_knows_where_it_came_from(copied):
    """Also where that was recorded, whose graph is not copied."""
    prompt = tg.Variable("p", requires_grad=True)
    said = tg.Variable("said", requires_grad=True)
    with tg.autograd.example("first"):
        Ends.apply(prompt).backward(said + "!", create_graph=True)
    (feedback,) = prompt.grad
    assert (feedback.is_leaf, feedback.source.because[0].is_leaf) == (True, False)
    source = copied(feedback).source
    assert (source.example, source.node) == ("first", "EndsBackward")
    assert [item.data for item in source.because] == ["said!"]


class Ends(tg.Function):
    @staticmethod
    def forward(ctx, text):
        return tg.Variable(text.data + "!")

    @staticmethod
    def backward(ctx, grad_out):
        return f"heard {grad_out.data}"


def test_a_copy_of_a_subclass_keeps_class_and_attributes():
    """A parameter stays a parameter."""
    original = Tagged("a", ["x"])
    for other, same in ((copy.copy(original), True), (copy.deepcopy(original), False)):
        assert (type(other), other.tags, other.tags is original.tags) == (Tagged, ["x"], same)


def test_a_pending_leaf_is_copied_when_its_value_is_there():
    """A copy is a plain value: it waits, and raises what the computation raised."""
    gate = Future()
    with tg.no_grad():
        answer = Ask.apply(gate, tg.Variable("a"))
    threading.Timer(0, gate.set_result, (None,)).start()
    other = copy.deepcopy(answer)
    assert (other.data, other.role, other.done()) == ("a", "answer", True)


def test_a_value_may_be_set_to_that_of_another_variable():
    """Its data is taken, not its graph."""
    v, other = tg.Variable("a"), tg.Variable("b", requires_grad=True) + "c"
    v.data = other
    assert (v.data, v.requires_grad, v.is_leaf) == ("bc", False, True)


def test_a_copy_of_feedback_knows_where_it_came_from_and_the_step_before():
    """Not the whole of its history, which no pickle could hold where it is long."""
    prompt = tg.Variable("P", role="prompt", requires_grad=True)
    value = prompt
    for _ in range(2000):
        value = Renamed.apply(value)
    value.backward("too loud")
    for made in (copy.copy, copy.deepcopy, lambda item: pickle.loads(pickle.dumps(item))):
        (item,) = prompt.grad
        own = made(item)
        assert own.data == item.data
        assert [one.data for one in own.source.because] == [one.data for one in item.source.because] != []
        assert own.source.because[0].source.because == ()
    assert item.source.because[0].source.because != ()


class Renamed(tg.Function):
    @staticmethod
    def forward(text):
        return tg.Variable(text.data, role=text.role)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad_out):
        return tg.Variable(f"{grad_out.data}", role="feedback")


def test_a_long_role_is_cut_in_a_repr() -> None:
    """That of a text joined of a hundred parts names them all, and would fill the screen of a notebook."""
    long = tg.Variable("a", role="the answer to question " * 100)
    assert len(repr(long)) < 200
    assert "… (2,300 characters)" in repr(long)
    assert repr(tg.Variable("a", role="it's a role")) == "Variable('a', role=\"it's a role\")"
