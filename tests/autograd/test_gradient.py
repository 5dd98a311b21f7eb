import pytest
from hypothesis import given
from hypothesis import strategies as st

import textgrad_engine as tg
from textgrad_engine.autograd.gradient import SEED, as_items, combine, is_seed, without_zeros

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
    assert without_zeros([SEED]) == [SEED]
    assert is_seed(SEED)
    assert is_seed(combine([SEED, SEED]))
    assert not is_seed(combine([SEED, *items("word")]))
    assert not is_seed(combine([]))
    assert not is_seed(tg.Variable(""))
    assert combine([SEED, *items("word")]).data == "word"


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
