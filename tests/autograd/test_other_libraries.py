"""Attributes of other libraries' values: the error names ours."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from textgrad_engine import Function, Variable, nn
from textgrad_engine.autograd import Context


class Broken(Function):
    """Ends by an AttributeError of the user's own."""

    @staticmethod
    async def forward(ctx: Any, text: Variable) -> Variable:
        return text.data.no_such_method()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("value", "'Variable' object has no attribute 'value'; here it is .data"),
        ("role_description", "; here it is .role"),
        ("set_role_description", "; here it is .role"),
        ("gradients", "; here it is .grad"),
        ("reset_gradients", "; here it is .grad = None"),
        ("detach_", r"; here it is \.detach\(\)"),
        ("mean", r"; here it is ops\.sum\(losses\) / len\(losses\)$"),
        (
            "strip",
            r"; here it is \.data\.strip\(\), which ops\.straight_through\(result, answer\) joins to the answer$",
        ),
        ("tolist", r"; here it is \.data$"),
        ("sum", r"; here it is ops\.sum$"),
        ("size", r"; here it is len\(variable\)$"),
        ("shape", r"; here it is len\(variable\)$"),
        ("cuda", r"; here it is the variable itself, as a text is on no device$"),
        ("to", r"; here it is the variable itself"),
        ("split", r"; here it is ops\.split$"),
        ("final_output", r"; here it is \.data$"),
        (
            "tool_calls",
            r"; here it is json\.loads\(answer\.data\), as calls of tools that are only described are the a",
        ),
        ("answer", r"; here it is variable\[\"answer\"\], a field of an answer that is JSON$"),
        ("reasoning", r"; here it is variable\[\"reasoning\"\]"),
        ("parsed", r"; here it is json\.loads\(variable\.data\); variable\[\"field\"\] is a field with its graph$"),
        ("get", r"; here it is json\.loads\(variable\.data\)"),
        ("no_such", "'Variable' object has no attribute 'no_such'(?!;)"),
    ],
)
def test_an_attribute_that_is_not_there_names_ours(name: str, says: str) -> None:
    """Also of a Parameter, and to who assigns to it; for `hasattr` it is not there."""
    with pytest.raises(AttributeError, match=says):
        getattr(Variable("a"), name)
    with pytest.raises(AttributeError, match=says.replace("Variable", "Parameter")):
        getattr(nn.Parameter("a"), name)
    with pytest.raises(AttributeError, match=says):
        setattr(Variable("a"), name, "b")
    with pytest.raises(AttributeError, match=says):
        delattr(Variable("a"), name)
    assert not hasattr(Variable("a"), name)
    assert name not in dir(Variable("a"))


class Own(nn.Parameter):
    """A class of the user's, with attributes that have such names."""

    text = "of the class"

    def __init__(self, data: str) -> None:
        super().__init__(data)
        self.value = 3


def test_a_class_of_the_users_may_have_such_names() -> None:
    """They are nobody else's there."""
    own = copy.copy(Own("a"))
    assert (own.value, own.text, own.data) == (3, "of the class", "a")
    assert {"value", "text"} < set(dir(own))
    assert not {"content", "item"} & set(dir(own))
    del own.value
    with pytest.raises(AttributeError, match=r"'Own' object has no attribute 'value'; here it is .data"):
        own.value  # noqa: B018  reading is the test


@pytest.mark.parametrize("name", ["data", "role"])
def test_an_attribute_error_of_what_is_computed_is_told_as_it_is(name: str) -> None:
    """It is raised where the value is read, and nothing is said of the Variable's attributes."""
    with pytest.raises(AttributeError, match="'str' object has no attribute 'no_such_method'"):
        getattr(Broken.apply(Variable("a", requires_grad=True)), name)


@pytest.mark.parametrize("made", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_copies_are_made_as_ever(made: Any) -> None:
    """They ask for attributes of a value that has none yet."""
    assert made(Variable("a", role="b", requires_grad=True)).data == "a"


def test_what_a_context_saved_is_asked_for_by_our_name() -> None:
    """`ctx.saved_tensors` in a rule that came from PyTorch; who sets an attribute of that name has it."""

    class Ported(Function):
        """Its rule has another library's word."""

        @staticmethod
        def forward(ctx: Any, text: Variable) -> Variable:
            ctx.save_for_backward(text)
            return Variable(text.data)

        @staticmethod
        def backward(ctx: Any, grad_out: Variable) -> Any:
            (_,) = ctx.saved_tensors
            return grad_out

    with pytest.raises(AttributeError, match=r"no attribute 'saved_tensors'; here it is \.saved_variables"):
        Ported.apply(Variable("a", requires_grad=True)).backward("no")
    ctx = Context()
    ctx.saved_tensors = "mine"
    assert ctx.saved_tensors == "mine"


def test_a_forward_that_marks_its_input_as_changed_is_told_what_it_does_here() -> None:
    """In PyTorch it could give the input back, changed in place."""

    class Louder(Function):
        @staticmethod
        def forward(ctx: Any, text: Variable) -> Variable:
            ctx.mark_dirty(text)
            return text

    with pytest.raises(
        AttributeError, match=r"no attribute 'mark_dirty'; here it is `return Variable\(\.\.\.\)`, as a"
    ):
        Louder.apply(Variable("a"))
