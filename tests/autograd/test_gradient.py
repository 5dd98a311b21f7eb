import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import textgrad_engine as tg
from textgrad_engine import func, ops
from textgrad_engine.autograd import grad
from textgrad_engine.autograd.gradient import as_items, combine, is_seed, start, without_zeros

texts = st.lists(st.text(max_size=5), max_size=5)


def items(*texts):
    return [tg.Variable(text, role="feedback") for text in texts]


@pytest.mark.parametrize("value", [3, {"a": "b"}, b"bytes", object(), [3]])
def test_what_is_no_gradient_is_named_with_its_giver(value):
    """A rule that returns a number by mistake is found at once."""
    with pytest.raises(TypeError, match=r"Critic\.backward gave (int|dict|bytes|object) as a gradient"):
        as_items(value, "Critic.backward")


@pytest.mark.parametrize("zero", ["", [], ["", ""]])
def test_empty_feedback_is_a_zero(zero):
    """Also for a batch: nothing is said about any entry."""
    assert without_zeros(items(zero)) == []


@pytest.mark.parametrize("said", [" ", "0", 0, 0.0, ["", "x"], [0]])
def test_what_says_something_is_no_zero(said):
    """A number is feedback too."""
    (item,) = items(said)
    assert without_zeros([item]) == [item]


def test_the_seed_says_nothing_and_is_no_zero():
    """A loss begins with it; combined it still counts as the start, together with words it does not."""
    assert len(without_zeros([start(), start(["", start().data])])) == 2
    assert is_seed(start())
    assert is_seed(combine([start(), start()]))
    assert not is_seed(combine([start(), *items("word")]))
    assert not is_seed(combine([]))
    assert not is_seed(tg.Variable(""))
    assert combine([start(), *items("word")]).data == "word"


@given(texts)
def test_a_combined_gradient_gives_its_items_back(parts):
    """Passing a gradient on does not merge, drop or reorder its items."""
    given_items = items(*parts)
    whole = combine(given_items)
    assert as_items(whole, "test") == given_items
    assert as_items([whole, None, [whole]], "test") == given_items * 2
    assert whole.data == "\n".join(part for part in parts if part) or len(parts) == 1
    assert whole.grad == given_items


def test_batches_are_joined_entry_by_entry():
    """The feedback on each entry of a batch stays with that entry."""
    whole = combine(items(["a", ""], ["b", "c"]))
    assert whole.data == ["a\nb", "c"]


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ([["a", ""], "both"], ["a\nboth", "both"]),
        (["both", ["a", "b"], "again"], ["both\na\nagain", "both\nb\nagain"]),
        ([[["a", "b"], ["c"]], ["row", ""], "all"], [["a\nrow\nall", "b\nrow\nall"], ["c\nall"]]),
        (["one", [], "two"], "one\ntwo"),
    ],
)
def test_lists_and_texts_about_one_batch_are_joined_entry_by_entry(said, wanted):
    """A single text is about every entry; also in batches of batches."""
    assert combine(items(*said)).data == wanted


def test_a_single_item_keeps_its_role():
    """Several have a general one."""
    (item,) = items("x")
    item.role = "feedback to the draft"
    assert combine([item]).role == "feedback to the draft"
    assert combine([item, *items("y")]).role == "feedback"


def test_a_combined_gradient_is_recorded_only_where_that_is_wanted():
    """With create_graph feedback on the whole is feedback on each item; else there is no graph."""
    one, two = items("one", "two")
    one.requires_grad_()
    with tg.no_grad():
        assert not combine([one, two]).requires_grad
    whole = combine([one, two])
    assert whole.requires_grad
    whole.backward("be kinder")
    assert [item.data for item in one.grad] == ["be kinder"]
    assert two.grad == []


def test_plain_text_becomes_one_item():
    """A rule may return a string."""
    (item,) = as_items("shorter", "test")
    assert (item.data, item.role) == ("shorter", "feedback")
    assert as_items(None, "test") == []


COPIES = {
    "clone": lambda gradient: gradient.clone(),
    "detach": lambda gradient: gradient.detach(),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


class Passed(tg.Function):
    """Its rule makes of the gradient what `how` makes."""

    @staticmethod
    def forward(ctx, value, how):
        ctx.how = how
        return tg.Variable(value.data, role=value.role)

    @staticmethod
    def backward(ctx, grad_out):
        return ctx.how(grad_out), None


@pytest.mark.parametrize("how", COPIES.values(), ids=COPIES)
def test_a_copy_of_a_gradient_is_that_gradient(how):
    """It keeps the items apart, each with where it came from; and they are objects of its own."""
    prompt, outs = tg.Variable("p", requires_grad=True), []
    middle = Passed.apply(prompt, how)
    for name in ("t1", "t2"):
        with tg.autograd.example(name):
            outs.append(middle + "!")
    tg.backward(outs, ["one", "two"])
    assert [(item.data, item.source.example) for item in prompt.grad] == [("one", "t1"), ("two", "t2")]

    whole = combine(items("one", "two"))
    other = how(whole)
    assert (other.data, other.role) == (whole.data, whole.role)
    other.grad[0].data = "changed"
    assert whole.grad[0].data == "one"


@pytest.mark.parametrize("how", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("create_graph", [False, True])
def test_a_gradient_that_a_dispatched_function_is_given_is_that_gradient(how, create_graph):
    """It is taken by value, and a copy of what is taken still has the items."""
    heard = []

    class Later(tg.Function):
        @staticmethod
        async def forward(ctx, gradient):
            heard.append([item.data for item in gradient.grad])
            return tg.Variable(how(gradient.detach()).data)

        @staticmethod
        def backward(ctx, grad_out):
            return grad_out

    prompt = tg.Variable("p", requires_grad=True)
    middle = Passed.apply(prompt, Later.apply)
    tg.backward([middle + "!", middle + "?"], ["one", "two"], create_graph=create_graph)
    assert (heard, [item.data for item in prompt.grad]) == ([["one", "two"]], ["one\ntwo"])


class Product(tg.Function):
    """Feedback on one factor is the other factor, or with feedback on it, `Product` again."""

    @staticmethod
    def forward(ctx, first, second):
        ctx.save_for_backward(first, second)
        return tg.Variable(first.data + second.data)

    @staticmethod
    def backward(ctx, grad_out):
        first, second = ctx.saved_variables
        return (second, first) if grad_out.data == "again" else (Product.apply(grad_out, second), None)


def test_a_gradient_that_was_saved_is_that_gradient():
    """A rule of feedback on feedback hands it on."""
    first, second = tg.Variable("a", requires_grad=True), tg.Variable("b", requires_grad=True)
    (feedback,) = grad(Product.apply(first, second), first, "said", create_graph=True)
    (on_second,) = grad(feedback[0], second, "again")
    assert ([item.data for item in feedback], [item.data for item in on_second]) == (["saidb"], ["said"])


class Remark(tg.Variable):
    """Feedback with an attribute."""

    def __init__(self, data, severity):
        super().__init__(data, role="remark")
        self.severity = severity


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("giver", ["caller", "rule", "hook", *COPIES])
def test_feedback_of_a_subclass_keeps_class_and_attributes(giver, create_graph):
    """Whoever gives it, and whether or not the pass is recorded."""
    prompt, remark = tg.Variable("p", requires_grad=True), Remark("shorter", 3)
    how = {"rule": lambda gradient: remark, **COPIES}.get(giver, lambda gradient: gradient)
    if giver == "hook":
        prompt.register_hook(lambda gradient: remark)
    out = Passed.apply(prompt, how)
    out.backward("words" if giver in ("rule", "hook") else remark, create_graph=create_graph)
    (item,) = prompt.grad
    assert (type(item), item.data, item.severity, item is remark) == (Remark, "shorter", 3, False)


def test_a_gradient_that_was_edited_is_a_plain_text():
    """It has no items of its own, also where the pass is recorded."""
    prompt = tg.Variable("p", requires_grad=True)

    def edit(gradient):
        gradient.data += "!"

    prompt.register_hook(edit)
    Passed.apply(prompt, lambda gradient: gradient).backward("words", create_graph=True)
    (item,) = prompt.grad
    assert (type(item), item.data, item.grad) == (tg.Variable, "words!", [])


def test_a_pickled_gradient_has_its_items():
    """A text that it was edited to is one item."""
    whole = combine(items("one", "two"))
    assert [item.data for item in as_items(pickle.loads(pickle.dumps(whole)), "test")] == ["one", "two"]
    whole.data = "edited"
    for other in (pickle.loads(pickle.dumps(whole)), copy.copy(whole), whole.clone(), whole.detach()):
        assert [item.data for item in as_items(other, "test")] == ["edited"]


START = {
    **COPIES,
    "pickled": lambda gradient: pickle.loads(pickle.dumps(gradient)),
    "its text": lambda gradient: gradient.data,
    "a variable of its text": lambda gradient: tg.Variable(gradient.data, role=gradient.role),
    "copies of its items": lambda gradient: [item.clone() for item in gradient.grad],
}


@pytest.mark.parametrize("how", START.values(), ids=START)
def test_a_copy_of_the_start_of_a_pass_is_the_start(how):
    """Else a loss behind it would look satisfied; in a rule and in a hook, for one loss and for a batch of them."""
    for said, wanted, apart in (("no", "yes", False), (["no", "yes"], ["yes", "yes"], True)):
        prompt = tg.Variable(said, requires_grad=True)
        score, _ = ops.exact_match_evaluator(prompt, wanted, reduction_fn=None)
        score.register_hook(how)
        Passed.apply(score, how).backward()
        (item,) = prompt.grad
        assert ([bool(text) for text in item.data] == [True, False]) if apart else "Expected exactly" in item.data


def test_the_start_of_a_pass_at_some_entries_of_a_batch_is_no_zero_there():
    """It is taken apart and put together as words are."""
    losses = [ops.exact_match_evaluator(tg.Variable(text, requires_grad=True), "yes")[0] for text in ("no", "nay")]
    whole = combine([start(["", start().data])])
    assert is_seed(whole)
    assert is_seed(whole.clone())
    one, two = grad(ops.sum(losses), losses)
    assert is_seed(combine(one))
    assert is_seed(combine(two))


def added(gradient):
    gradient += " (politely)"
    return gradient


def assigned(gradient):
    gradient.data = f"{gradient.data} (politely)"
    return gradient


def taken_over(gradient):
    return gradient.copy_(f"{gradient.data} (politely)")


def of_the_item(gradient):
    gradient.grad[0].data += " (politely)"
    return gradient


@pytest.mark.parametrize("edit", [added, assigned, taken_over, of_the_item])
@pytest.mark.parametrize("create_graph", [False, True])
def test_an_edit_of_a_gradient_in_place_goes_on(edit, create_graph):
    """In a rule, in a hook, and in a hook that returns nothing."""
    prompt = tg.Variable("p", requires_grad=True)
    Passed.apply(prompt, edit).backward("shorter", create_graph=create_graph)
    for hook in (edit, lambda gradient: edit(gradient) and None):
        with prompt.register_hook(hook):
            (prompt + "!").backward("shorter", create_graph=create_graph)
    node = (out := prompt + "!").grad_fn
    node.register_prehook(lambda arrived: edit(arrived[0]) and None)
    node.register_hook(lambda returned, arrived: edit(returned[0]) and None)
    out.backward("shorter", create_graph=create_graph)
    once, twice = "shorter (politely)", "shorter (politely) (politely)"
    assert [item.data for item in prompt.grad] == [once, once, once, twice]


def test_what_a_hook_does_to_the_list_that_it_sees_is_not_done_to_the_pass():
    """A hook that only looks may empty its list for itself; one that takes items away changes what goes on."""
    one, two, seen = tg.Variable("1", requires_grad=True), tg.Variable("2", requires_grad=True), []
    tg.autograd.register_multi_grad_hook([one, two], lambda grads: [seen.append(g.grad.pop().data) for g in grads])
    (one + two).backward("f")
    assert seen == ["f", "f"]
    assert [item.data for item in (*one.grad, *two.grad)] == ["f", "f"]
    one.register_hook(lambda gradient: gradient.grad.pop() and None)
    (one + two).backward("g")
    assert [item.data for item in one.grad] == ["f"]
    assert [item.data for item in two.grad] == ["f", "g"]


class Number(tg.Function):
    """A batch in, a batch out; its rule goes through the feedback entry by entry."""

    @staticmethod
    def forward(texts):
        return tg.Variable([f"{n}. {text}" for n, text in enumerate(texts.data)])

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad_out):
        return tg.Variable([f"(line) {text}" for text in grad_out.data])


class NumberLater(Number):
    """The same, dispatched."""

    @staticmethod
    async def forward(texts):
        return Number.forward(texts)


class Page(tg.Function):
    """A batch in, a text out; its rule speaks of the batch as a whole."""

    @staticmethod
    def forward(ctx, texts):
        return tg.Variable("/".join(texts.data))

    @staticmethod
    def backward(ctx, grad_out):
        return f"page {grad_out.data}"


@pytest.mark.parametrize("number", [Number, NumberLater])
@pytest.mark.parametrize("create_graph", [False, True])
def test_a_rule_gets_a_text_for_each_entry_of_a_batch(number, create_graph):
    """Whether it was said of the batch at the start, by a rule behind it, or both; also where feedback is recorded."""
    batch = tg.Variable(["one", "two"], requires_grad=True)
    begin = tg.Variable("shorter", requires_grad=create_graph)
    number.apply(batch).backward(begin, create_graph=create_graph)
    Page.apply(number.apply(batch)).backward("long", create_graph=create_graph)
    both = number.apply(batch)
    tg.backward([both, Page.apply(both)], [["a", "b"], "long"], create_graph=create_graph)
    assert [item.data for item in batch.grad] == [
        ["(line) shorter"] * 2,
        ["(line) page long"] * 2,
        ["(line) a\npage long", "(line) b\npage long"],
    ]


def test_what_a_rule_gets_for_each_entry_has_a_graph():
    """Feedback on the list is feedback on the text that was said of the whole."""

    class Passing(Number):
        @staticmethod
        def backward(ctx, grad_out):
            return grad_out + "!"

    batch, said = tg.Variable(["one", "two"], requires_grad=True), tg.Variable("shorter", requires_grad=True)
    Passing.apply(batch).backward(said, create_graph=True)
    (item,) = batch.grad
    assert item.data == ["shorter!", "shorter!"]
    item.backward("be kinder")
    assert [feedback.data for feedback in said.grad] == ["be kinder"]


def test_a_rule_inside_a_transform_gets_a_text_for_each_entry():
    """As outside."""
    _, feedback = func.vjp(Number.apply, tg.Variable(["one", "two"]))
    assert feedback("shorter")[0].data == ["(line) shorter"] * 2
