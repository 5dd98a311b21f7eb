from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

from textgrad_engine import Variable, nn
from textgrad_engine.testing import FunctionModel


class Add(nn.Module):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = nn.Parameter(text, role=text)

    def forward(self, value: Variable | str) -> Variable:
        return self.text + value


def names(module: nn.Module) -> list[str]:
    return [name for name, _ in module.named_parameters()]


def test_a_place_that_is_not_there_raises() -> None:
    """Containers fail as lists and dicts do."""
    with pytest.raises(IndexError):
        nn.Sequential(Add("a"))[1]
    with pytest.raises(IndexError):
        nn.ModuleList()[0]
    with pytest.raises(KeyError):
        nn.ModuleDict({"a": Add("a")})["b"]


def test_a_part_is_replaced_in_its_place_and_deleted_by_its_name() -> None:
    """As parameters are in a ParameterList and a ParameterDict; a test puts a step of its own in, say."""
    for steps in (nn.ModuleList([Add("a"), Add("b")]), nn.Sequential({"first": Add("a"), "then": Add("b")})):
        before = list(steps.state_dict())
        steps[-1], steps[0] = Add("d"), Add("c")
        assert ([step.text.data for step in steps], list(steps.state_dict())) == (["c", "d"], before)
        with pytest.raises(IndexError):
            steps[2] = Add("e")
        with pytest.raises(TypeError, match=r"takes modules, and .* is str 'e'"):
            steps[0] = "e"  # type: ignore[assignment]
    desks = nn.ModuleDict({"a": Add("a"), "b": Add("b")})
    del desks["a"]
    assert names(desks) == ["b.text"]
    with pytest.raises(KeyError):
        del desks["a"]


@pytest.mark.parametrize("kind", [nn.ModuleList, lambda modules: nn.Sequential(*modules)])
def test_steps_come_and_go_as_in_a_list(kind: Any) -> None:
    """As in torch: what is behind is counted anew, so that the state has no holes."""
    steps = kind([Add("b"), Add("d")])
    assert steps.insert(0, Add("a")).insert(-1, Add("c")).append(Add("e")).extend([Add("f")]) is steps
    steps += [Add("g")]
    assert [step.text.data for step in steps] == list("abcdefg")
    assert names(steps) == [f"{number}.text" for number in range(7)]
    assert (steps.pop().text.data, steps.pop(0).text.data) == ("g", "a")
    del steps[0], steps[1:]
    assert ([step.text.data for step in steps], names(steps)) == (["c"], ["0.text"])
    for gone in (lambda: steps.pop(1), lambda: steps.__delitem__(1)):
        with pytest.raises(IndexError):
            gone()
    with pytest.raises(TypeError, match=r"takes modules, and '0' is str 'x'"):
        steps.insert(0, "x")
    steps.extend(steps)
    assert len(steps) == 2


def test_names_of_steps_stay_when_others_come_and_go() -> None:
    """A step that a state knows by name is found again."""
    steps = nn.Sequential({"draft": Add("a"), "check": Add("b")})
    steps.insert(1, Add("c")).append(Add("d"))
    assert names(steps) == ["draft.text", "1.text", "check.text", "3.text"]
    del steps[0]
    assert names(steps) == ["0.text", "check.text", "2.text"]


def test_what_is_appended_takes_no_name_that_another_has() -> None:
    """A slice of a Sequential keeps its names, so its length may be one of them."""
    rest = nn.Sequential(Add("a"), Add("b"), Add("c"))[1:]
    rest.append(Add("d"))
    assert [step.text.data for step in rest] == ["b", "c", "d"]
    steps = nn.ModuleList([Add("a"), Add("b")])
    delattr(steps, "0")
    assert [step.text.data for step in steps.append(Add("c"))] == ["b", "c"]


def test_parts_come_and_go_as_in_a_dict() -> None:
    """By name; what is there already is replaced in its place."""
    desks = nn.ModuleDict({"a": Add("a"), "b": Add("b")})
    desks.update({"a": Add("A"), "c": Add("c")})
    desks.update([("d", Add("d"))])
    assert (list(desks), list(reversed(desks)), desks["a"].text.data) == (list("abcd"), list("dcba"), "A")
    assert (desks.pop("b").text.data, desks.get("b"), desks.get("b", 1), desks.get("c").text.data) == (
        "b",
        None,
        1,
        "c",
    )
    with pytest.raises(KeyError):
        desks.pop("b")
    desks.clear()
    assert names(desks) == []


def test_sequential_passes_on_and_feedback_comes_back_through_all() -> None:
    """The first module is called first; each hears of the end result once."""
    chain = nn.Sequential(Add("b"), Add("a"))
    result = chain("c")
    assert (result.data, len(chain), names(chain)) == ("abc", 2, ["0.text", "1.text"])
    result.backward("longer")
    assert [[item.data for item in p.grad] for p in chain.parameters()] == [["longer"], ["longer"]]
    assert chain[-1] is list(chain)[1]


def test_the_same_module_twice_is_called_twice() -> None:
    """Repeating a step is no mistake; its parameter is still one."""
    step = Add("a")
    chain = nn.Sequential(step, step)
    assert (chain("").data, names(chain)) == ("aa", ["0.text"])


def test_a_list_registers_what_it_holds() -> None:
    """Parameters in a ModuleList belong to the module that holds it, those in a plain list do not."""

    class Program(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.steps = nn.ModuleList([Add("a")])
            self.hidden = [Add("x")]

    program = Program()
    assert program.steps.append(Add("b")).extend([Add("c")]) is program.steps
    assert names(program) == ["steps.0.text", "steps.1.text", "steps.2.text"]
    assert [step.text.data for step in program.steps] == ["a", "b", "c"]
    assert program.steps[2].text.data == "c"


def test_a_dict_registers_by_name() -> None:
    """Names are paths; iteration is over names, as of a dict."""
    parts = nn.ModuleDict({"draft": Add("a")})
    parts["check"] = Add("b")
    assert names(parts) == ["draft.text", "check.text"]
    assert (list(parts), len(parts), "check" in parts, "x" in parts) == (["draft", "check"], 2, True, False)
    assert [name for name, _ in parts.items()] == list(parts.keys())
    assert [module.text.data for module in parts.values()] == ["a", "b"]


def test_states_of_containers_round_trip() -> None:
    """A program of containers can be saved and loaded."""
    program = nn.Sequential(nn.Sequential(Add("a")), Add("b"))
    other = nn.Sequential(nn.Sequential(Add("x")), Add("y"))
    other.load_state_dict(program.state_dict())
    assert other("").data == "ba"


def test_sequential_takes_modules_by_name() -> None:
    """PyTorch's idiom; they are called in the order of the dict."""
    chain = nn.Sequential(OrderedDict(first=Add("b"), second=Add("a")))
    assert (chain("c").data, names(chain)) == ("abc", ["first.text", "second.text"])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Sequential(len), "Sequential takes modules, and '0' is builtin_function_or_method"),  # type: ignore[call-overload]
        (lambda: nn.ModuleList([Add("a"), 3]), "ModuleList takes modules, and '1' is int 3"),  # type: ignore[list-item]
        (lambda: nn.ModuleList().append(None), "ModuleList takes modules, and '0' is NoneType"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_module_is_refused(make: Any, message: str) -> None:
    """Where it is given, by its name, and not at the first walk."""
    with pytest.raises(TypeError, match=f"{message}.*Make it an nn.Module whose forward does it"):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Sequential([Add("a")]), r"Give the modules in it one by one, as in nn\.Sequential\(\*modules\)"),  # type: ignore[call-overload]
        (lambda: nn.ModuleList([Add("a")])("b"), "holds modules and is not called itself; call them, or take nn.Sequ"),
        (lambda: nn.ModuleList(Add("a")), r"modules must be a sequence .*; write \[\.\.\.\]$"),  # type: ignore[arg-type]
        (lambda: nn.ModuleDict({"a": Add}), r"'a' is type .*Give an instance of it: Add\(\.\.\.\)"),  # type: ignore[dict-item]
    ],
)
def test_the_repair_goes_with_what_was_meant(make: Any, message: str) -> None:
    """A class is not wrapped in a module, nor a list that was to be unpacked."""
    with pytest.raises(TypeError, match=message):
        make()


@pytest.mark.parametrize("name", ["a.b", "", 3])
def test_names_that_dotted_paths_cannot_hold_are_refused(name: Any) -> None:
    """Two parts could have one path."""
    with pytest.raises(KeyError, match="ModuleDict: the name of a part must be a text, non-empty and without dots"):
        nn.ModuleDict({name: Add("a")})
    with pytest.raises(KeyError, match="Sequential: the name of a part"):
        nn.Sequential({name: Add("a")})


def test_a_part_may_be_called_as_an_attribute_of_the_container() -> None:
    """It is found by its key, and the attribute stays what it is."""
    parts = nn.ModuleDict({"training": Add("a"), "keys": Add("b")})
    assert (parts.training, list(parts.keys()), names(parts)) == (
        True, ["training", "keys"], ["training.text", "keys.text"]
    )  # fmt: skip


@pytest.mark.parametrize("kind", [nn.Sequential, nn.ModuleList])
def test_a_slice_of_a_subclass_needs_nothing_of_its_init(kind: Any) -> None:
    """It may take what it likes; what the subclass has, the slice has, but not the hooks, which are the whole's."""

    class Steps(kind):
        def __init__(self, words: str) -> None:
            steps = [Add(word) for word in words]
            super().__init__(*([steps] if kind is nn.ModuleList else steps))
            self.words, self.style = words, nn.Parameter("kind", role="style")

    every = Steps("abc").eval()
    every.register_forward_hook(lambda *_: None)
    tail = every[1:]
    assert (type(tail), tail.words, tail.training, len(tail), len(every)) == (Steps, "abc", False, 2, 3)
    assert (tail.style, tail[0], tail._forward_hooks) == (every.style, every[1], {})
    tail.style = nn.Parameter("other")
    assert every.style.data == "kind"


def test_a_slice_is_a_container_of_the_same_class() -> None:
    """Or a program that keeps one would train nothing."""

    class Mine(nn.ModuleList):
        pass

    every = Mine([Add("a"), Add("b"), Add("c")])
    tail = every[1:]
    assert (type(tail), names(tail), tail[0]) == (Mine, ["0.text", "1.text"], every[1])
    assert names(tail.append(Add("d"))) == ["0.text", "1.text", "2.text"]
    assert len(every) == 3
    chain = nn.Sequential(Add("a"), Add("b"), Add("c"))[1:]
    assert (type(chain), chain("").data, names(chain)) == (nn.Sequential, "cb", ["1.text", "2.text"])
    program = nn.Module()
    program.steps = every[:2]
    assert names(program) == ["steps.0.text", "steps.1.text"]


def test_sequential_of_chat_completions_takes_the_slots_of_the_first() -> None:
    """The library's own layer may stand in every place."""
    model = FunctionModel(lambda request: request.messages[-1].text)
    draft, check = (
        nn.ChatCompletion("Draft of {topic}", model=model),
        nn.ChatCompletion("Checked: {draft}", model=model),
    )
    chain = nn.Sequential(draft, check)
    assert chain(topic="cats").data == chain("cats").data == "Checked: Draft of cats"


def test_sequential_without_modules_gives_back_its_value() -> None:
    """As in torch."""
    assert nn.Sequential()("a") == "a"
    with pytest.raises(TypeError, match="holds no modules, and is then called with one value"):
        nn.Sequential()(topic="a")
