from collections import OrderedDict, defaultdict
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textgrad_engine import pytree


class Pair(NamedTuple):
    left: Any
    right: Any


trees = st.recursive(
    st.integers() | st.text() | st.none() | st.sets(st.integers()),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=3), inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.builds(Pair, inner, inner)
        | st.dictionaries(st.text(max_size=3), inner, max_size=4).map(OrderedDict)
    ),
    max_leaves=20,
)


@pytest.mark.parametrize(("values", "problem"), [([1], "too few"), ([1, 2, 3], "too many"), ([], "too few")])
def test_a_wrong_number_of_leaves_is_an_error(values, problem):
    """Nothing is dropped or made up in silence."""
    _, spec = pytree.flatten({"a": 1, "b": [2]})
    with pytest.raises(ValueError, match=problem):
        pytree.unflatten(spec, values)


def test_none_is_a_leaf_that_can_be_put_back():
    """A None among the values is not taken for the end of them."""
    leaves, spec = pytree.flatten([None, (None,)])
    assert leaves == [None, None]
    assert pytree.unflatten(spec, leaves) == [None, (None,)]


def test_a_container_of_another_class_is_a_leaf():
    """Only exact lists, tuples and dicts (and named tuples) can be put together again as they were."""

    class Strings(list):
        pass

    for value in (Strings("ab"), defaultdict(list, a=1), {1, 2}, "text", range(3)):
        assert not pytree.is_container(value)
        assert pytree.leaves(value) == [value]


def test_named_tuples_come_back_as_such():
    """Their class is part of the shape."""
    tree = {"pair": Pair(1, [2]), "plain": (3,)}
    again = pytree.map_leaves(lambda leaf: leaf * 10, tree)
    assert again == {"pair": Pair(10, [20]), "plain": (30,)}
    assert type(again["pair"]) is Pair
    assert type(again["plain"]) is tuple


def test_empty_containers_have_no_leaves_but_a_shape():
    """An empty list and an empty dict stay what they were."""
    for tree in ([], {}, (), [[], {}]):
        leaves, spec = pytree.flatten(tree)
        assert leaves == []
        assert pytree.unflatten(spec, []) == tree


def test_dicts_keep_their_order():
    """Leaves follow insertion, not the sorting of keys."""
    assert pytree.leaves({"b": 1, "a": 2}) == [1, 2]
    assert list(pytree.map_leaves(str, {"b": 1, "a": 2})) == ["b", "a"]


@settings(max_examples=50)
@given(trees)
def test_taking_apart_and_putting_together_gives_an_equal_tree(tree):
    """`unflatten` is the inverse of `flatten`."""
    leaves, spec = pytree.flatten(tree)
    assert pytree.unflatten(spec, leaves) == tree
    assert pytree.flatten(pytree.unflatten(spec, leaves))[1] == spec


@settings(max_examples=50)
@given(trees)
def test_mapping_visits_each_leaf_once_in_order(tree):
    """The order of `map_leaves` is that of `leaves`."""
    seen = []
    assert pytree.map_leaves(lambda leaf: seen.append(leaf) or leaf, tree) == tree
    assert seen == pytree.leaves(tree)


def test_the_input_is_not_changed():
    """Mapping makes new containers."""
    tree = {"a": [1]}
    other = pytree.map_leaves(lambda leaf: leaf, tree)
    other["a"].append(2)
    assert tree == {"a": [1]}
