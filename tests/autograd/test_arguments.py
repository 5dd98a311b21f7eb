from __future__ import annotations

import itertools

import pytest

import textgrad_engine as tg
from textgrad_engine.autograd.arguments import layout_of, needs_by_argument


class Needs(tg.Function):
    """Tells in its feedback which arguments want any."""

    @staticmethod
    def forward(*values):
        return tg.Variable("".join(str(value) for value in values))

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad_out):
        said = "".join("x" if need else "-" for need in ctx.needs_input_grad)
        return tuple(said if need else None for need in ctx.needs_input_grad)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_every_pattern_of_arguments_gets_its_own_feedback(count):
    """What is remembered of one call is not taken for another that looks alike: True is 1 to Python."""
    kinds = [lambda: "text", lambda: 1, lambda: tg.Variable("c"), lambda: tg.Variable("p", requires_grad=True)]
    for _ in range(2):
        for pattern in itertools.product(kinds, repeat=count):
            args = [make() for make in pattern]
            leaves = [isinstance(arg, tg.Variable) and arg.requires_grad for arg in args]
            result = Needs.apply(*args)
            assert result.requires_grad is any(leaves)
            if not any(leaves):
                continue
            result.backward("f")
            expected = "".join("x" if leaf else "-" for leaf in leaves)
            assert [[g.data for g in arg.grad] for arg, leaf in zip(args, leaves) if leaf] == [[expected]] * sum(leaves)


def test_equal_layouts_are_one_object():
    """A graph of many calls of one place holds one, whatever their values."""
    layouts = [layout_of((tg.Variable(str(n)), n, tg.Variable("b")))[1] for n in range(3)]
    assert layouts[0] == (0, None, 1)
    assert layouts[0] is layouts[1] is layouts[2]
    assert needs_by_argument(layouts[0], [False, True]) is needs_by_argument(layouts[1], [False, True])
    assert needs_by_argument((0, 1), [False, True]) == (False, True)
    assert [type(need) for need in needs_by_argument((0, 1), [False, True])] == [bool, bool]
    assert [type(place) for place in layout_of((tg.Variable("a"), tg.Variable("b")))[1]] == [int, int]
