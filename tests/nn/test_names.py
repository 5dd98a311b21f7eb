"""The names of what a program is made of: dotted, without end nowhere, and each thing once."""

from __future__ import annotations

from typing import Any

import pytest

from textgrad_engine import Variable, func, nn

from .conftest import Leaf, Pair, Tree


@pytest.mark.parametrize("name", ["", "a.b"])
def test_names_that_dotted_paths_cannot_hold_are_refused(name: str) -> None:
    """Keys of a state are unique paths."""
    with pytest.raises(KeyError, match="without dots"):
        Leaf().register_parameter(name, nn.Parameter("x"))


@pytest.mark.parametrize("name", ["eval", "forward", "shown", "limit"])
@pytest.mark.parametrize("value", [nn.Parameter("x"), nn.Sequential()])
def test_what_the_class_would_hide_is_refused(name: str, value: Any) -> None:
    """`self.eval = nn.Parameter(...)` would be trained, and `self.eval` in `forward` still be the method."""

    class Program(Leaf):
        limit = None
        __slots__ = ("kept",)

        @property
        def shown(self) -> str:
            return "text"

    program = Program()
    with pytest.raises(KeyError, match=rf"Program\.{name} is what the class \w+ has .* give this one another name"):
        setattr(program, name, value)
    with pytest.raises(KeyError, match="another name"):
        program.register_buffer(name, Variable("x"))
    assert list(program.state_dict()) == ["prompt"]
    program.kept = value
    assert program.kept is value


@pytest.mark.parametrize(
    ("register", "name", "says"),
    [
        (lambda tree, name: tree.register_buffer(name, Variable("x")), "head", "a parameter"),
        (lambda tree, name: tree.register_buffer(name, Variable("x")), "left", "a part"),
        (lambda tree, name: tree.register_parameter(name, nn.Parameter("x")), "left", "a part"),
        (lambda tree, name: tree.register_parameter(name, None), "memory", "a buffer"),
    ],
)
def test_a_name_that_something_else_has_is_not_registered(register: Any, name: str, says: str) -> None:
    """As in PyTorch: a prompt that became a buffer would not be trained any more, and nothing would say so."""
    tree = Tree()
    before = tree.state_dict()
    with pytest.raises(KeyError, match=rf"Tree\.{name} is {says} already, .* or write `del module\.{name}` first"):
        register(tree, name)
    assert tree.state_dict() == before
    delattr(tree, name)
    register(tree, name)
    tree.note = "plain"
    tree.register_buffer("note", Variable("x"))
    tree.head = tree.left = nn.Parameter("assigned")  # an assignment is as in Python: what was there is gone
    assert "left" in dict(tree.named_parameters(remove_duplicate=False))


def test_a_module_that_holds_itself_is_walked_once() -> None:
    """A cycle is no endless loop."""
    leaf = Leaf()
    leaf.again = leaf
    assert [name for name, _ in leaf.named_parameters()] == ["prompt"]


def test_a_module_inside_itself_has_no_names_without_end() -> None:
    """Its state names each parameter up to where it comes round."""
    pair = Pair(tied=True)
    pair.a.whole = pair
    assert [name for name, _ in pair.named_modules(remove_duplicate=False)] == ["", "a", "b"]
    pair.load_state_dict(pair.state_dict())


def test_parts_that_know_each_other_have_a_name_for_each_holder_at_most() -> None:
    """There are more ways through a team of thirty than anybody could walk."""
    team = nn.ModuleList([Leaf(str(number)) for number in range(30)])
    for member in team:
        member.peers = nn.ModuleList([peer for peer in team if peer is not member])
    assert 30 < len(team.state_dict()) <= 30 * 30
    assert not any(team.load_state_dict(team.state_dict()))
    name = next(name for name, parameter in team.named_parameters() if parameter is team[7].prompt)
    assert func.functional_call(nn.Sequential(team[7]), {"0.prompt": "new"}, "!").data == "new!"
    assert name in team.state_dict()


def test_parameters_by_dotted_name_in_order() -> None:
    """Own ones first, then the parts', in order of assignment; buffers are none."""
    assert [name for name, _ in Tree().named_parameters()] == ["head", "left.prompt", "right.prompt"]
    assert [name for name, _ in Tree().named_parameters(recurse=False)] == ["head"]
    assert [name for name, _ in Tree().named_buffers()] == ["memory"]
    assert [name for name, _ in Tree().named_modules()] == ["", "left", "right"]


def test_a_shared_parameter_comes_once() -> None:
    """Or an optimizer would change one text twice. The state names it at each place."""
    tree = Tree()
    tree.right.prompt = tree.left.prompt
    assert [name for name, _ in tree.named_parameters()] == ["head", "left.prompt"]
    assert {"left.prompt", "right.prompt"} <= set(tree.state_dict())
    tree.load_state_dict(tree.state_dict())


def test_parts_that_know_each_other_are_shown_once() -> None:
    """The repr of a program that can be walked ends, and soon, also where each of thirty holds all others."""
    pair = Pair(tied=False)
    pair.a.whole = pair
    part = "Leaf(\n    (prompt): Parameter('text', role='prompt', requires_grad=True)"
    assert repr(pair) == f"Pair(\n  (a): {part}\n    (whole): Pair(…)\n  )\n  (b): {part}\n  )\n)"
    team = nn.ModuleList([Leaf(f"member {number}") for number in range(30)])
    for member in team:
        member.peers = nn.ModuleList([peer for peer in team if peer is not member])
    assert [repr(team).count(f"'member {number}'") for number in range(30)] == [1] * 30
    assert repr(Pair(tied=True)).count("Leaf(\n") == 2
