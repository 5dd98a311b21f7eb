from __future__ import annotations

import copy
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import Variable, func, nn, ops, optim


class Shown(nn.Module):
    """A program that shows examples, of which each is a parameter; `also` stand under names that are no attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.examples = nn.ParameterList([nn.Parameter("a", role="an example"), nn.Parameter("b", role="an example")])
        self.also = nn.ParameterDict({"keys": nn.Parameter("c", role="the keys")})

    def forward(self, value: Any) -> Variable:
        return ops.join([*self.examples, self.also["keys"], value], "")


def names(module: nn.Module) -> list[str]:
    return [name for name, _ in module.named_parameters()]


def test_each_is_a_parameter_of_the_module_that_holds_it() -> None:
    """It hears feedback, is trained, and stands in the state."""
    program = Shown()
    assert names(program) == ["examples.0", "examples.1", "also.keys"]
    program("!").backward("shorter")
    assert [len(parameter.grad) for parameter in program.parameters()] == [1, 1, 1]
    assert len(optim.TGD(program.parameters()).param_groups[0]["params"]) == 3
    other = Shown()
    with tg.no_grad():
        for parameter in other.parameters():
            parameter.data += "2"
    program.load_state_dict(other.state_dict())
    assert program("!").data == copy.deepcopy(other)("!").data == "a2b2c2!"


def test_a_functional_call_puts_others_in_their_place() -> None:
    """One by one, and as a batch; the module's own stay as they are."""
    program = Shown()
    tried = func.vmap(lambda text: func.functional_call(program, {"examples.1": text, "also.keys": text}, "!"))
    assert tried(["x", "y"]).data == ["axx!", "ayy!"]
    assert func.functional_call(program, {"also.keys": "z"}, "!").data == "abz!"
    assert program("!").data == "abc!"
    values = func.functional_call(Items(program.also), {"held.keys": "z"})
    assert values == ["z", "z"]


class Items(nn.Module):
    def __init__(self, held: nn.ParameterDict) -> None:
        super().__init__()
        self.held = held

    def forward(self) -> list[Any]:
        return [self.held.values()[0].data, self.held.items()[0][1].data]


def test_a_slice_is_a_list_also_of_what_stands_for_them() -> None:
    """A program that shows the first few is searched with the texts that are tried, not with its own."""

    class First(Shown):
        def forward(self, value: Any) -> Variable:
            return ops.join([*self.examples[:1], *self.examples[-1:], value], "")

    program = First()
    assert program.examples[1:] == [program.examples[1]]
    assert func.functional_call(program, {"examples.0": "x"}, "!").data == "xb!"
    with pytest.raises(TypeError, match="slice"):
        program.examples[:1] = nn.Parameter("c")  # type: ignore[index]


def test_they_are_used_as_lists_and_dicts_are() -> None:
    """Places, names, lengths and loops."""
    first, second = nn.Parameter("a"), nn.Parameter("b")
    several = nn.ParameterList().append(first).extend([second])
    assert (len(several), several[0], several[-1], list(several)) == (2, first, second, [first, second])
    several[-1] = first
    assert several[1] is first
    with pytest.raises(IndexError):
        several[2]
    with pytest.raises(IndexError):
        several[2] = first
    named = nn.ParameterDict({"a": first})
    named["training"] = second  # an attribute of that name stays what it is
    assert (list(named), named["training"], named.training, "b" in named) == (["a", "training"], second, True, False)
    del named["a"]
    assert (list(named.keys()), len(named)) == (["training"], 1)
    with pytest.raises(KeyError):
        named["a"]


def test_they_come_and_go_as_in_lists_and_dicts() -> None:
    """As in torch; what is behind is counted anew, so that the state has no holes."""
    shown = Shown()
    texts = shown.examples
    shown.examples += [nn.Parameter("d")]
    texts.insert(2, nn.Parameter("c")).insert(0, nn.Parameter("0"))
    assert [text.data for text in texts] == ["0", "a", "b", "c", "d"]
    assert (texts.pop().data, texts.pop(0).data) == ("d", "0")
    del texts[0]
    assert (names(texts), [text.data for text in texts]) == (["0", "1"], ["b", "c"])
    with pytest.raises(IndexError):
        texts.pop(2)
    with pytest.raises(TypeError, match=r"takes parameters, and '0' is str 'x'"):
        texts.insert(0, "x")  # type: ignore[arg-type]
    also = shown.also
    also.update({"more": nn.Parameter("m"), "keys": nn.Parameter("k")})
    assert (list(also), list(reversed(also)), also["keys"].data) == (["keys", "more"], ["more", "keys"], "k")
    assert (also.pop("more").data, also.get("more"), also.get("more", 1), also.get("keys")) == (
        "m",
        None,
        1,
        also["keys"],
    )
    with pytest.raises(KeyError):
        also.pop("more")
    also.clear()
    assert names(shown) == ["examples.0", "examples.1"]


@pytest.mark.parametrize("wrong", ["text", Variable("text", role="r"), None, nn.Module()])
def test_what_is_no_parameter_is_refused_with_the_repair(wrong: Any) -> None:
    """It would never be trained."""
    for make in (lambda: nn.ParameterList([wrong]), lambda: nn.ParameterDict({"0": wrong})):
        with pytest.raises(TypeError, match=r"takes parameters, and '0' is .*nn\.Parameter\(text, role=\.\.\.\)"):
            make()
    with pytest.raises(TypeError, match=r"takes a sequence of parameters, got one; write \[parameter\]"):
        nn.ParameterList(nn.Parameter("x"))  # type: ignore[arg-type]
    with pytest.raises(KeyError, match="without dots"):
        nn.ParameterDict({"a.b": nn.Parameter("x")})
    with pytest.raises(TypeError, match=r"nn\.ParameterList or nn\.ParameterDict"):
        nn.ModuleList([nn.Parameter("x")])  # type: ignore[list-item]
