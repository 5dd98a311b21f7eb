"""What a program is as plain data, and how it takes that over."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest

from textgrad_engine import Variable, nn, no_grad

from .conftest import Leaf, Pair, Tree


def test_load_state_dict_names_every_key_that_does_not_fit() -> None:
    """Strict loading names all missing and unexpected keys and changes nothing."""
    tree = Tree()
    state = tree.state_dict()
    state["wrong"] = state.pop("left.prompt")
    state["head"] = {**state["head"], "data": "changed"}
    with pytest.raises(KeyError, match=r"missing \['left.prompt'\], unexpected \['wrong'\].*strict=False"):
        tree.load_state_dict(state)
    assert tree.head.data == "head"
    with pytest.raises(TypeError, match="strict is True or False, got str 'no'"):
        tree.load_state_dict(state, strict="no")  # type: ignore[arg-type]
    not_loaded = tree.load_state_dict(state, strict=False)
    assert (tree.head.data, tree.left.prompt.data) == ("changed", "left")
    assert not_loaded == (["left.prompt"], ["wrong"]) == (not_loaded.missing_keys, not_loaded.unexpected_keys)
    assert tree.load_state_dict(tree.state_dict()) == ([], [])


def test_a_state_of_which_nothing_fits_is_not_said_to_load_in_part() -> None:
    """`strict=False` would load nothing of it, and say nothing."""
    tree = Tree()
    with pytest.raises(KeyError, match=r"unexpected \['hed'\]\. None fits; rename them"):
        tree.load_state_dict({"hed": "changed"})


def test_who_gives_a_result_is_told_what_of_it_is_the_state() -> None:
    """A run, and what `fit` gave, have the best texts by name."""

    class Result:
        best: ClassVar = {"head": "changed"}

    tree = Tree()
    with pytest.raises(TypeError, match=r"takes what state_dict gave, got Result; give its \.best$"):
        tree.load_state_dict(Result())  # type: ignore[arg-type]
    tree.load_state_dict(Result().best, strict=False)
    assert tree.head.data == "changed"


@pytest.mark.parametrize("broken", [{"data": object(), "role": "", "requires_grad": True}, {"data": "x"}, 5, None])
def test_a_broken_state_changes_nothing(broken: Any) -> None:
    """All entries are read before the first is used; one of another form is named."""
    tree = Tree()
    state = {"head": {"data": "changed", "role": "", "requires_grad": True}, "left.prompt": broken}
    with pytest.raises(TypeError, match=r"a Variable holds|'left.prompt' has the entry .*expected {'data'"):
        tree.load_state_dict(state, strict=False)
    with pytest.raises(TypeError, match="takes what state_dict gave, got list"):
        tree.load_state_dict(list(state.items()), strict=False)
    assert (tree.head.data, tree.head.requires_grad) == ("head", False)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"role": 5}, "'role' of 'left.prompt' is int 5; expected str"),
        ({"requires_grad": "no"}, "'requires_grad' of 'left.prompt' is str 'no'; expected bool"),
    ],
)
def test_an_entry_of_a_state_with_a_field_of_another_type_is_refused(entry: Any, message: str) -> None:
    """It is named, and nothing changes."""
    tree = Tree()
    before = tree.state_dict()
    broken = {**before, "head": {**before["head"], "data": "changed"}}
    broken["left.prompt"] = {**before["left.prompt"], **entry}
    with pytest.raises(TypeError, match=message):
        tree.load_state_dict(broken)
    assert tree.state_dict() == before


def test_state_dict_round_trip_does_not_freeze() -> None:
    """Defect of section 9: load_state_dict that freezes parameters. Text, role and requires_grad come back."""
    tree, other = Tree(), Tree()
    with no_grad():
        tree.left.prompt.data = "changed\n{slot}"
    tree.right.prompt.requires_grad = False
    tree.head.requires_grad = True
    state = tree.state_dict()
    assert list(state) == ["head", "memory", "left.prompt", "right.prompt"]
    assert state["left.prompt"] == {"data": "changed\n{slot}", "role": "prompt", "requires_grad": True}
    parameter = other.left.prompt
    other.load_state_dict(state)
    assert other.left.prompt is parameter
    assert other.state_dict() == state
    assert [p.requires_grad for p in other.parameters()] == [True, True, False]


def test_texts_by_name_leave_role_and_requires_grad_as_they_are() -> None:
    """What a run folder keeps of a program (`store.read_run(path).best`) loads as it is, checked like a state."""
    tree = Tree()
    tree.left.prompt.requires_grad = False
    before = tree.state_dict()
    with pytest.raises(KeyError, match=r"missing .*'head'"):
        tree.load_state_dict({"left.prompt": "found"})
    with pytest.raises(TypeError, match="'head' has the entry None"):
        tree.load_state_dict({"left.prompt": "found", "head": None}, strict=False)  # type: ignore[dict-item]
    assert tree.state_dict() == before
    tree.load_state_dict({"left.prompt": "found"}, strict=False)
    assert tree.state_dict() == {**before, "left.prompt": {**before["left.prompt"], "data": "found"}}


def test_a_state_does_not_follow_later_changes() -> None:
    """A state is a copy, or going back to it would go nowhere."""
    leaf = Leaf()
    state = leaf.state_dict()
    with no_grad():
        leaf.prompt.data = "changed"
    assert state["prompt"]["data"] == "text"


def test_a_state_shares_no_list_with_the_batch_it_was_taken_of_or_given_to() -> None:
    """Neither side follows what happens to the other's list."""
    leaf = Leaf(["one", "two"])  # type: ignore[arg-type]
    state = leaf.state_dict()
    leaf.prompt.data[0] = "changed"
    assert state["prompt"]["data"] == ["one", "two"]
    leaf.load_state_dict(state)
    leaf.prompt.data[0] = "changed"
    assert state["prompt"]["data"] == ["one", "two"]
    state["prompt"]["data"][1] = "changed"
    assert leaf.prompt.data == ["changed", "two"]


def test_names_that_hold_none_are_in_no_state() -> None:
    """As in PyTorch: the name is kept, for a parameter or buffer that there is not yet."""
    tree = Tree()
    tree.register_parameter("tail", None)
    tree.register_buffer("notes", None)
    names = ["head", "memory", "left.prompt", "right.prompt"]
    assert list(tree.state_dict()) == names
    assert tree.tail is None
    assert tree.notes is None
    assert [name for name, _ in tree.named_parameters()] == ["head", "left.prompt", "right.prompt"]
    assert [name for name, _ in tree.named_buffers()] == ["memory"]
    tree.load_state_dict(Tree().state_dict())
    tree.zero_grad()
    tree.tail, tree.notes = nn.Parameter("tail"), Variable("noted")
    assert sorted(tree.state_dict()) == sorted([*names, "tail", "notes"])
    tree.register_parameter("tail", None)
    del tree.tail
    with pytest.raises(AttributeError, match="Tree has no attribute 'tail'"):
        _ = tree.tail


def test_a_part_with_two_names_has_both_in_the_state() -> None:
    """As in PyTorch: states of the program with two parts fit; where these differ, nobody could tell what counts."""
    tied, two = Pair(tied=True), Pair(tied=False)
    assert list(tied.state_dict()) == ["a.prompt", "b.prompt"]
    assert [name for name, _ in tied.named_parameters()] == ["a.prompt"]
    assert [name for name, _ in tied.named_modules()] == ["", "a"]
    assert [name for name, _ in tied.named_modules(remove_duplicate=False)] == ["", "a", "b"]
    with no_grad():
        two.a.prompt.data = two.b.prompt.data = "changed"
    tied.load_state_dict(two.state_dict())
    assert tied.a.prompt.data == "changed"
    with no_grad():
        two.b.prompt.data = "another"
    with pytest.raises(KeyError, match=r"Pair: 'a.prompt' and 'b.prompt' are one, and the state has different values"):
        tied.load_state_dict(two.state_dict())
    assert tied.a.prompt.data == "changed"
    two.load_state_dict(tied.state_dict())
    assert two.b.prompt.data == "changed"


def test_one_name_of_a_part_with_two_is_enough() -> None:
    """A run folder has each trained text once, under its first name; strict loading takes it, and misses no other."""

    class Program(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.instructions = nn.Parameter("Sort.", role="system prompt")
            self.chat = nn.ChatCompletion("{ticket}", system=self.instructions)

    program = Program()
    assert sorted(program.state_dict()) == ["chat.system", "instructions"]
    best = {name: "Sort it." for name, _ in program.named_parameters()}  # as `store.read_run(path).best` has them
    assert program.load_state_dict(best) == ([], [])
    assert program.instructions.data == "Sort it."
    assert program.load_state_dict({"chat.system": "Sort them."}) == ([], [])
    assert program.instructions.data == "Sort them."
    with pytest.raises(KeyError, match=r"missing \['instructions', 'chat.system'\], unexpected \['system'\]"):
        program.load_state_dict({"system": "Sort all."})


def test_named_buffers_are_in_the_state_dict_and_not_among_the_parameters() -> None:
    """They round-trip with the rest, under their dotted names, and no optimizer finds them."""

    class Part(nn.Module):
        def __init__(self, text: str) -> None:
            super().__init__()
            self.prompt = nn.Parameter("p", role="prompt")
            self.register_buffer("examples", Variable(text, role="examples"))

    def whole(text: str) -> nn.Module:
        return nn.Sequential(Part(text), Part(text + "!"))

    source, target = whole("one"), whole("other")
    assert [name for name, _ in source.named_buffers()] == ["0.examples", "1.examples"]
    assert [name for name, _ in source.named_parameters()] == ["0.prompt", "1.prompt"]
    state = source.state_dict()
    assert state["1.examples"] == {"data": "one!", "role": "examples", "requires_grad": False}
    target.load_state_dict(state)
    assert [value.data for _, value in target.named_buffers()] == ["one", "one!"]
    assert not any(value.requires_grad for _, value in target.named_buffers())
    with pytest.raises(KeyError, match=r"missing \['0.examples', '1.examples'\]"):
        target.load_state_dict({name: entry for name, entry in state.items() if "prompt" in name})


class Remembers(nn.Module):
    """Its memory is made of what it was told so far, and of its prompt."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("memory", Variable("nothing", role="memory"))
        self.prompt = nn.Parameter("Go.", role="prompt")

    def forward(self, text: str) -> Variable:
        self.memory = self.memory + " " + self.prompt + text
        return self.memory


def test_a_buffer_that_was_computed_is_saved_as_a_value_that_wants_no_feedback() -> None:
    """Loaded as a leaf that does, it would be asked about in each pass, paid for, and trained by nobody."""
    source, target = Remembers(), Remembers()
    source("One.")
    state = json.loads(json.dumps(source.state_dict()))
    assert (state["memory"]["data"], state["memory"]["requires_grad"]) == ("nothing Go.One.", False)
    target.load_state_dict(state)
    assert (target.memory.data, target.memory.requires_grad) == ("nothing Go.One.", False)
    assert target.prompt.requires_grad


@pytest.mark.parametrize("plain", [False, True])
def test_a_state_is_loaded_over_a_buffer_that_was_computed(plain: bool) -> None:
    """As where an agent's memory is set back between two episodes; what it was made of hears nothing any more."""
    program = Remembers()
    first = {name: entry["data"] if plain else entry for name, entry in program.state_dict().items()}
    program("One.")
    program.load_state_dict(first)
    assert (program.memory.data, program.memory.is_leaf, program.memory.requires_grad) == ("nothing", True, False)
    program("Two.").backward("too long")
    assert (program.memory.data, [item.data for item in program.prompt.grad]) == ("nothing Go.Two.", ["too long"])


def test_a_buffer_is_replaced_by_assignment_and_stays_a_buffer() -> None:
    """Assigning a Variable to its name keeps it in the state; anything else takes the name away."""
    module = nn.Module()
    module.register_buffer("seen", Variable("a", role="seen"))
    module.seen = Variable("b", role="seen")
    assert [(name, value.data) for name, value in module.named_buffers()] == [("seen", "b")]
    module.seen = "plain"
    assert module.state_dict() == {}
