from __future__ import annotations

import asyncio
import copy
import json
import threading
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest

from textgrad_engine import Variable, dispatch, llm, no_grad, optim
from textgrad_engine.errors import BadRequest, CallCancelled, DispatchError
from textgrad_engine.optim import TGD
from textgrad_engine.optim.contracts import FrozenLines, Requires
from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.optim.optimizer import Optimizer
from textgrad_engine.testing import FunctionModel


def parameter(text: str = "text", role: str = "prompt") -> Variable:
    return Variable(text, role=role, requires_grad=True)


def adds() -> FunctionModel:
    """An optimizer model that adds one line at the end of the first."""
    edit = {"op": "add", "line": 1, "text": "more", "reason": "asked", "feedback": [1]}
    return FunctionModel(lambda request: {"edits": [edit]})


def test_a_phrase_that_only_some_texts_have_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing new is kept in the others; had by all or by none, or asked in a group of its own, it is meant."""

    def warned(*params: Any) -> list[str]:
        caplog.clear()
        optim.TGD(params, constraints=[Requires(["code", "JSON"])])
        return caplog.messages

    reader, sorter = parameter("Read the code.", "reader"), parameter("Name the code. JSON.", "sorter")
    (said,) = warned(reader, sorter)
    assert "TGD asks for Requires(phrases=('JSON',), match_case=False) in all texts of a group" in said
    assert "Variable 'sorter' keeps it, and Variable 'reader' does not" in said
    assert not warned(reader)
    assert not warned(reader, parameter("Say the code.", "other"))
    assert not warned({"params": [reader], "constraints": []}, {"params": [sorter]})


def test_a_limit_below_what_a_text_has_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """Only shorter texts are kept then, which is seldom what was meant; said of each text that is too long."""
    optim.TGD([parameter("Sort the mail.", "sorter"), parameter("Read", "reader")], max_tokens=1)
    (said,) = caplog.messages
    assert said.startswith("TGD allows 1 token in Variable 'sorter', which has 4: only texts that are shorter than")
    caplog.clear()
    optim.TGD([{"params": [parameter("Sort the mail.")], "max_tokens": 4}], constraints=[optim.MaxTokens(4)])
    assert not caplog.messages


@pytest.mark.parametrize(
    ("limit", "allowed", "repair"),
    [
        (
            optim.MaxTokens(1),
            "1 token in Variable 'sorter', which has 4: ",
            "raise MaxTokens(limit=1), or leave it out",
        ),
        (optim.MaxCharacters(9), "9 characters in Variable 'sorter', which has 14", "raise MaxCharacters(limit=9), or"),
    ],
)
def test_so_is_one_that_is_given_as_a_contract(
    limit: optim.Contract, allowed: str, repair: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Each new line was refused, and the run said that no proposal could be used."""
    optim.TGD([parameter("Sort the mail.", "sorter")], constraints=[limit])
    (said,) = caplog.messages
    assert said.startswith(f"TGD allows {allowed}")
    assert repair in said


def test_a_frozen_line_that_no_text_has_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """A slip of the pen protects nothing; what stands in one text of any group does, for all groups have it."""

    def warned(contract: FrozenLines) -> list[str]:
        caplog.clear()
        groups = [
            {"params": [parameter("Sort.\n Be kind.", "sorter")]},
            {"params": [parameter("<p>\nx\n</p>", "policy")]},
        ]
        optim.TGD(groups, constraints=[contract])
        return caplog.messages

    (said,) = warned(FrozenLines(["Be kind.", "Be kin."]))
    assert said.startswith("TGD is to freeze 'Be kin.', and none of its texts has that")
    assert "'<q>'" in warned(FrozenLines(between=("<q>", "</q>")))[0]
    assert not warned(FrozenLines(["Be kind."], between=("<p>", "</p>")))
    assert not warned(FrozenLines(lambda line: line.startswith("#")))


def test_what_a_property_lacks_is_named_and_not_the_property() -> None:
    """A search of one's own has several (`expected`, `reads_feedback`), and they are there."""

    class Own(optim.TGD):
        @property
        def reads_feedback(self) -> bool:
            return self.hears  # type: ignore[attr-defined, no-any-return]

    with pytest.raises(AttributeError, match="'Own' object has no attribute 'hears'"):
        _ = Own([Variable("x", requires_grad=True)]).reads_feedback


def test_a_forgotten_init_of_the_base_is_named() -> None:
    """As a Module says it; that there is no `param_groups` tells nobody what to do."""

    class Own(optim.Optimizer):
        def __init__(self, params: Any) -> None:
            self.own = list(params)

        def step(self, closure: Any = None) -> None:
            pass

    with pytest.raises(AttributeError, match=r"Own\.__init__ did not call super\(\)\.__init__\(params, defaults\)"):
        Own([parameter("Sort.", "sorter")]).step()
    with pytest.raises(AttributeError, match=r"'TGD' object has no attribute 'parameters'"):
        _ = optim.TGD([parameter("Sort.", "sorter")]).parameters  # type: ignore[attr-defined]


def test_no_parameters_says_why() -> None:
    """The usual reasons are a program without nn.Parameter, and modules where PyTorch does not look for them either."""
    with pytest.raises(
        ValueError, match=r"got no parameters: .*nn\.Parameter that __init__ assigns to self, also in nn\.ModuleList"
    ):
        TGD([])


def test_a_single_variable_is_refused() -> None:
    """Iterating over it would give characters."""
    with pytest.raises(TypeError, match="an iterable of Variables"):
        TGD(parameter())  # type: ignore[arg-type]


def test_names_with_parameters_are_refused() -> None:
    """`named_parameters()` is not `parameters()`."""
    with pytest.raises(TypeError, match="trains Variables, got tuple"):
        TGD([("name", parameter())])  # type: ignore[list-item]


def test_a_result_cannot_be_trained() -> None:
    """Only leaves hold text of their own."""
    with pytest.raises(TypeError, match="is a result, not a leaf"):
        TGD([parameter() + "x"])


def test_a_parameter_may_be_in_one_group_once() -> None:
    """Or it would be changed twice a step."""
    one, other = parameter(), parameter()
    with pytest.raises(ValueError, match="comes twice"):
        TGD([one, one])
    optimizer = TGD([one])
    with pytest.raises(ValueError, match="comes twice"):
        optimizer.add_param_group({"params": [other, one]})
    assert len(optimizer.param_groups) == 1


def test_an_unknown_setting_of_a_group_is_named() -> None:
    """Options are never accepted and ignored."""
    with pytest.raises(ValueError, match="TGD has no setting 'lr'; it has constraints, examples, max_edits"):
        TGD([{"params": [parameter()], "lr": 0.1}])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ([{"max_edits": 2}], r"param_groups\[0\] has no \"params\": write .*; it has only 'max_edits'"),
        ([{}], r'param_groups\[0\] has no "params": .*; it has nothing in it'),
    ],
)
def test_a_group_without_parameters_says_what_it_lacks(params: Any, message: str) -> None:
    """And what it has instead, as it may be a slip of the pen."""
    with pytest.raises(ValueError, match=message):
        TGD(params)


def test_groups_and_single_parameters_do_not_mix() -> None:
    """In either order; the one that is to become a group is named."""
    one, group = parameter(role="first prompt"), {"params": [parameter()]}
    with pytest.raises(
        TypeError, match=r"params\[1\] is Variable 'first prompt', and params\[0\] is a group.*makes a gro"
    ):
        TGD([group, one])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"params\[0\] is Variable 'first prompt', and params\[1\] is a group"):
        TGD([one, group])  # type: ignore[list-item]


def test_what_is_no_group_is_refused() -> None:
    """With the group that it may have been meant to be."""
    optimizer = TGD([parameter()])
    with pytest.raises(TypeError, match=r"param_groups\[1\]: a group is .*, got Variable 'second prompt'"):
        optimizer.add_param_group(parameter(role="second prompt"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r'param_groups\[1\]: "params" is a sequence of Variables, got 3'):
        optimizer.add_param_group({"params": 3})


def test_groups_have_settings_of_their_own() -> None:
    """Defaults fill in what a group does not name; one Variable is a group."""
    first, second = parameter(), parameter()
    optimizer = TGD([{"params": first}, {"params": [second], "max_edits": 1}], max_edits=3, momentum=2)
    assert [(group["params"], group["max_edits"], group["momentum"]) for group in optimizer.param_groups] == [
        ([first], 3, 2),
        ([second], 1, 2),
    ]


def test_what_it_does_not_train_has_no_group() -> None:
    """An equal text is another parameter; and one that is added later is found."""
    first, second, other = parameter(), parameter(), parameter(role="other prompt")
    optimizer = TGD([{"params": [first]}, {"params": [second], "max_edits": 1}])
    with pytest.raises(ValueError, match=r"'other prompt' is in no group of this TGD; add_param_group\(\) would"):
        optimizer.group_of(other)
    optimizer.add_param_group({"params": [other], "max_edits": 7})
    assert [optimizer.group_of(each)["max_edits"] for each in (second, other)] == [1, 7]
    assert [*map(id, optimizer.variables())] == [*map(id, (first, second, other))]
    optimizer.group_of(first)["max_edits"] = 9
    assert optimizer.param_groups[0]["max_edits"] == 9


def test_the_base_class_cannot_step() -> None:
    """A subclass without a `step` says so."""
    with pytest.raises(NotImplementedError, match="Optimizer needs a `step` that changes its parameters"):
        Optimizer([parameter()], {}).step()


def test_what_is_no_closure_is_refused() -> None:
    """Nothing has happened then, so hooks are not told of a step."""
    optimizer = Optimizer([parameter()], {})
    optimizer.register_step_pre_hook(lambda *_: pytest.fail("no step is begun"))
    with pytest.raises(TypeError, match=r"Optimizer calls what step\(\) is given, a function .*; got 0.5"):
        optimizer.step(0.5)  # type: ignore[arg-type]
    assert optimizer.steps == 0


def test_zero_grad_forgets_all_feedback() -> None:
    """In every group."""
    first, second = parameter(), parameter()
    optimizer = TGD([{"params": [first]}, {"params": [second]}])
    (first + second).backward("longer")
    optimizer.zero_grad()
    assert (first.grad, second.grad) == ([], [])


def test_step_runs_hooks_and_closure_in_order() -> None:
    """Pre hooks, closure, the change, post hooks; the closure's result is handed back."""
    prompt, seen = parameter(), []
    optimizer = TGD([prompt], model=adds())

    def closure() -> str:
        seen.append(("closure", prompt.data))
        (prompt + "").backward("more, please")
        return "loss"

    pre = optimizer.register_step_pre_hook(lambda it, args, kwargs: seen.append(("pre", it.steps, args, kwargs)))
    optimizer.register_step_post_hook(lambda it, *_: seen.append(("post", prompt.data)))
    assert optimizer.step(closure) == "loss"
    assert seen == [("pre", 0, (closure,), {}), ("closure", "text"), ("post", "text\nmore")]
    pre.remove()
    optimizer.step()
    assert [name for name, *_ in seen[3:]] == ["post"]


class Quotes(Optimizer):
    """As somebody writes one: `step` alone, which adds the last thing that was said."""

    def __init__(self, params: Any) -> None:
        super().__init__(params, {})

    def step(self, closure: Any = None) -> Any:
        loss = closure() if closure is not None else None
        for variable in self.variables():
            if variable.grad:
                variable.data = f"{variable.data}\n{variable.grad[-1].data}"
        return loss


def test_a_step_of_ones_own_is_a_step() -> None:
    """Hooks are called with what it was given, it is counted, and its changes are noted, which go with the next one."""
    first, second = parameter("one"), parameter("two")
    optimizer = Quotes([first, second])
    seen: list[Any] = []
    optimizer.register_step_pre_hook(lambda it, args, kwargs: seen.append((it.steps, args, kwargs)))
    optimizer.register_step_post_hook(lambda it, *_: seen.append([change.after for change in it.changes]))
    (first + "").backward("longer")
    assert optimizer.step(closure=lambda: "loss") == "loss"
    assert (seen[0][:2], list(seen[0][2]), seen[1]) == ((0, ()), ["closure"], ["one\nlonger"])
    (change,) = optimizer.changes
    assert (change.variable, change.before, [item.text for item in change.items]) == (first, "one", ["longer"])
    optimizer.zero_grad()
    optimizer.step()
    assert (optimizer.steps, optimizer.changes) == (2, [])


def test_a_line_of_ones_own_step_names_the_feedback_that_it_quotes() -> None:
    """Where it quotes none, it may answer any; lines that stayed keep their origins, through the state, too."""
    prompt = parameter("one")
    optimizer = Quotes([prompt])
    for said in ("Be brief.", "Be kind."):
        (prompt + "").backward(said)
    optimizer.step()
    kept, made = optimizer.origins(prompt)
    assert kept is None
    assert made is not None
    assert ([each.text for each in made.evidence], made.step) == (["Be kind."], 1)

    class Rewrites(Quotes):
        def step(self, closure: Any = None) -> Any:
            super().step(closure)
            self.variables()[0].data += "\nOther words."

    again = Rewrites([prompt])
    again.load_state_dict(optimizer.state_dict())
    again.step()
    assert again.steps == 2  # a step that calls that of its base is one
    _, old, quote, new = again.origins(prompt)
    assert old == made
    assert quote is not None
    assert new is not None
    assert [[each.text for each in line.evidence] for line in (quote, new)] == [["Be kind."], ["Be brief.", "Be kind."]]
    assert (quote.edit, new.edit) == ("2.1", "2.2")  # so that a Trainer may keep one of them


def test_what_a_step_of_ones_own_says_of_itself_stays() -> None:
    """Edits that it names are what its lines come from, each with its reason; those that were not made are not."""
    prompt = parameter("one")
    item = FeedbackItem("Be brief.", 1, "", ("e1",))

    class Says(Optimizer):
        def __init__(self, params: Any, line: int) -> None:
            super().__init__(params, {})
            self.line = line

        def step(self, closure: Any = None) -> None:
            (variable,) = self.variables()
            before, edit = variable.data, optim.Edit("add", self.line, "Shorter.", "it was asked for", (1,))
            variable.data = f"{before}\nShorter."
            self.changes = [optim.Change(variable, before, variable.data, (edit,), (item,))]

    for line, reason in ((1, "it was asked for"), (7, "")):
        prompt.data = "one"
        optimizer = Says([prompt], line)
        optimizer.step()
        origin = optimizer.origins(prompt)[-1]
        assert origin is not None
        assert (origin.reason, origin.evidence[0].examples) == (reason, ("e1",))


def test_a_step_that_fails_is_none() -> None:
    """Nothing is counted or noted, hooks behind it are not called, and the next step is a step again."""
    prompt, seen = parameter("one"), list[int]()

    class Fails(Quotes):
        fails = True

        def step(self, closure: Any = None) -> None:
            if self.fails:
                raise RuntimeError("no")
            super().step(closure)

    optimizer = Fails([prompt])
    optimizer.register_step_post_hook(lambda it, *_: seen.append(it.steps))
    with pytest.raises(RuntimeError, match="no"):
        optimizer.step()
    optimizer.fails = False
    optimizer.step()
    assert (optimizer.steps, seen) == (1, [1])


def test_a_step_of_ones_own_needs_no_closure() -> None:
    """Neither a Trainer nor `astep` gives it one that it does not want, and hooks are told of none."""
    prompt, seen = parameter("one"), list[Any]()

    class Bare(Optimizer):
        def step(self) -> None:  # type: ignore[override]
            self.variables()[0].data += "!"

    optimizer = Bare([prompt], {})
    optimizer.register_step_pre_hook(lambda it, args, kwargs: seen.append((args, kwargs)))
    asyncio.run(optimizer.astep())
    optimizer.step()
    assert (prompt.data, seen) == ("one!!", [((), {})] * 2)


def test_a_step_of_ones_own_leaves_what_is_frozen() -> None:
    """A Trainer neither races nor takes back what is not trained; so it is refused, and nothing has changed."""
    first, frozen = parameter("one"), Variable("two", role="frozen")

    class All(Quotes):
        def step(self, closure: Any = None) -> None:
            for variable in self.variables():
                variable.data += "!"

    optimizer = All([first, frozen])
    with pytest.raises(ValueError, match=r"All.step has changed Variable 'frozen', which does not require grad"):
        optimizer.step()
    assert (first.data, frozen.data, optimizer.steps) == ("one", "two", 0)


def test_a_step_of_ones_own_writes_texts() -> None:
    """A list would be raced as its `repr`."""
    prompt = parameter("one")

    class Lines(Quotes):
        def step(self, closure: Any = None) -> None:
            self.variables()[0].data = ["one", "two"]

    with pytest.raises(TypeError, match=r"Lines.step has made a list of Variable 'prompt'; a parameter is a text"):
        Lines([prompt]).step()
    assert prompt.data == "one"


def test_what_is_remembered_of_a_parameter_begins_as_an_empty_dict() -> None:
    """PyTorch's idiom: look whether there is a state, and begin one; it is saved, loaded and copied with the rest."""

    class Counting(optim.Optimizer):
        def __init__(self, params: Any) -> None:
            super().__init__(params, {})

        def step(self, closure: Any = None) -> None:
            for prompt in self.param_groups[0]["params"]:
                state = self.state[prompt]
                if len(state) == 0:
                    state["seen"] = 0
                state["seen"] += 1
                prompt.data += "!"

    prompt = parameter()
    optimizer, later = Counting([prompt]), Counting([parameter("other")])
    optimizer.step()
    optimizer.step()
    later.load_state_dict(json.loads(json.dumps(optimizer.state_dict())))
    later.step()
    again = copy.deepcopy(later)
    again.step()
    assert [each.state[each.variables()[0]]["seen"] for each in (optimizer, later, again)] == [2, 3, 4]
    assert later.state[parameter("new")] == {}


def test_a_step_that_nobody_would_await_is_refused() -> None:
    """When the class is made, as a run would go on without it."""
    with pytest.raises(TypeError, match=r"Later\.step is an `async def`, and nobody awaits a step: write `def step`"):

        class Later(Optimizer):
            async def step(self, closure: Any = None) -> None:
                """Nobody waits for it."""


def test_astep_works_inside_a_running_loop() -> None:
    """The twin for a notebook or a web handler."""
    prompt = parameter()
    optimizer = TGD([prompt], model=adds())

    async def main() -> None:
        await (prompt + "").abackward("more, please")
        await optimizer.astep()

    asyncio.run(main())
    assert prompt.data == "text\nmore"


def trained() -> tuple[Variable, TGD]:
    prompt = parameter()
    optimizer = TGD([prompt], model=adds(), momentum=1)
    (prompt + "").backward("more, please")
    optimizer.step()
    optimizer.record_outcome("kept: 0.1 -> 0.2")
    return prompt, optimizer


def test_state_round_trip() -> None:
    """Settings, memory, step count and origins come back; parameters are told apart by their order."""
    prompt, optimizer = trained()
    state = optimizer.state_dict()
    assert state["param_groups"][0]["params"] == [0]
    other_prompt = parameter(prompt.data)
    other = TGD([other_prompt], model=adds())
    other.load_state_dict(state)
    assert (other.steps, other.param_groups[0]["momentum"]) == (1, 1)
    assert other.origins(other_prompt) == optimizer.origins(prompt)
    assert other.state_dict() == state


def test_what_is_remembered_under_a_name_is_of_the_whole_optimizer() -> None:
    """As in PyTorch, where a subclass counts or keeps what is no parameter's own."""

    class Counting(optim.Optimizer):
        def step(self, closure: Any = None) -> None:
            self.state.setdefault("said", []).append("more")  # type: ignore[call-overload]

    one, other = (Counting([parameter("Sort.")], {}) for _ in range(2))
    one.step()
    saved = one.state_dict()
    one.step()
    assert saved["state"]["said"] == ["more"]
    other.load_state_dict(json.loads(json.dumps(saved)))
    other.step()
    assert other.state["said"] == one.state["said"] == ["more", "more"]  # type: ignore[index]
    for strange in (parameter("Count."), 3, "0"):
        one.state[strange] = {}  # type: ignore[index]
        with pytest.raises(TypeError, match=f"kept by its parameters, and by names .*; got {type(strange).__name__}"):
            one.state_dict()
        del one.state[strange]  # type: ignore[arg-type]


def test_the_state_goes_through_json() -> None:
    """A checkpoint is no pickle: the origins of lines, with what is gone beside them, come back from plain data."""
    prompt, optimizer = trained()
    prompt.grad = Variable("shorter")
    removal = {"op": "remove", "line": 1, "text": "", "reason": "", "feedback": []}
    optimizer.model = FunctionModel(lambda request: {"edits": [removal]})
    optimizer.step()
    state = json.loads(json.dumps(optimizer.state_dict()))
    other_prompt = parameter(prompt.data)
    other = TGD([other_prompt], model=adds())
    other.load_state_dict(state)
    assert other.origins(other_prompt) == optimizer.origins(prompt)
    assert any(origin is not None and (origin.gone or origin.gone_before) for origin in other.origins(other_prompt))


def test_what_is_gone_from_a_text_is_written_into_a_state_without_being_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """It grows with each step, for as long as a run goes on, and a run takes a state at each of them."""
    copies = []

    def counting(value: Any, *more: Any) -> Any:
        copies.append(value)
        return real(value, *more)

    real = copy.deepcopy
    prompt, count = parameter("a\nb"), 0

    def replacing(_: llm.Request) -> Any:
        return {"edits": [{"op": "replace", "line": 1, "text": f"a{count}", "reason": "asked", "feedback": [1]}]}

    optimizer = TGD([prompt], model=FunctionModel(replacing), momentum=2)
    monkeypatch.setattr(copy, "deepcopy", counting)
    made = []
    for count in range(1, 21):
        prompt.grad = Variable(f"wrong {count}")
        optimizer.step()
        optimizer.record_outcome("kept")
        copies.clear()
        state = optimizer.state_dict()
        optimizer.load_state_dict(state)
        made.append(len(copies))
    assert made[-1] == made[4]
    (first, _) = optimizer.origins(prompt)
    assert first is not None
    assert [gone.text for gone in (*first.gone_before, *first.gone)] == ["a", *(f"a{n}" for n in range(1, 20))]
    text, origins = state["state"][0]["origins"]
    assert (text, origins) == (
        prompt.data,
        [None if each is None else asdict(each) for each in optimizer.origins(prompt)],
    )


def test_loading_a_state_freezes_nothing() -> None:
    """Defect of section 9: load_state_dict that freezes parameters; texts stay as well."""
    prompt, optimizer = trained()
    state = optimizer.state_dict()
    with no_grad():
        prompt.data = "another"
    optimizer.load_state_dict(state)
    assert (prompt.data, prompt.requires_grad, prompt.is_leaf) == ("another", True, True)


def test_a_state_does_not_follow_later_steps() -> None:
    """What was saved is what is gone back to."""
    _, optimizer = trained()
    state = optimizer.state_dict()
    optimizer.record_outcome("again")
    optimizer.load_state_dict(state)
    assert optimizer.state_dict() == state
    assert "again" not in str(state)


def test_a_state_of_other_groups_is_refused() -> None:
    """And nothing of it is taken over."""
    _, optimizer = trained()
    other = TGD([parameter(), parameter()])
    with pytest.raises(ValueError, match=r"groups of \[1\] parameters; this optimizer has groups of \[2\]"):
        other.load_state_dict(optimizer.state_dict())
    assert (other.steps, other.state) == (0, {})


SEARCHES: dict[str, Callable[[list[Variable]], Optimizer]] = {
    "TGD": lambda params: TGD(params, max_tokens=99),
    "PatchSearch": lambda params: optim.PatchSearch(params, max_tokens=55),
    "ParetoSearch": lambda params: optim.ParetoSearch(params, max_tokens=56),
    "BeamSearch": lambda params: optim.BeamSearch(params, max_tokens=57),
    "OPRO": lambda params: optim.OPRO(params, max_tokens=58),
    "BootstrapDemos": lambda params: optim.BootstrapDemos(params, max_tokens=59),
    "RandomSearch": lambda params: optim.RandomSearch(params, optim.RandomEdits(), max_tokens=60),
}
PAIRS = [(own, other) for own in SEARCHES for other in SEARCHES if own != other]


@pytest.mark.parametrize(("own", "other"), PAIRS)
def test_the_state_of_another_optimizer_is_refused(own: str, other: str) -> None:
    """With both names, and nothing of it is taken over; one without a name is judged by its shape."""
    optimizer, state = SEARCHES[own]([parameter()]), SEARCHES[other]([parameter()]).state_dict()
    before = optimizer.state_dict()
    with pytest.raises(ValueError, match=f"the state is that of {other}, and this optimizer is {own};"):
        optimizer.load_state_dict(state)
    with pytest.raises(ValueError, match=f"the state .*, which that of {own} has"):
        optimizer.load_state_dict(nameless(state))
    assert optimizer.state_dict() == before


@pytest.mark.parametrize("own", SEARCHES)
def test_a_state_that_was_saved_before_it_had_a_name_is_taken(own: str) -> None:
    """It has the shape of the optimizer's."""
    optimizer, state = SEARCHES[own]([parameter()]), SEARCHES[own]([parameter()]).state_dict()
    optimizer.load_state_dict(nameless({**state, "steps": 7}))
    assert optimizer.state_dict() == {**state, "steps": 7}


def test_a_class_of_ones_own_takes_the_state_of_its_base() -> None:
    """The name is that of any class that the optimizer is; the other way round nobody knows what it adds."""

    class Own(TGD):
        pass

    Own([parameter()]).load_state_dict(TGD([parameter()]).state_dict())
    with pytest.raises(ValueError, match="the state is that of Own, and this optimizer is TGD"):
        TGD([parameter()]).load_state_dict(Own([parameter()]).state_dict())


@pytest.mark.parametrize("own", ["TGD", "PatchSearch", "RandomSearch"])
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            lambda state: state["param_groups"][0].update(max_tokens=0),
            ValueError,
            "of the state: max_tokens must be at",
        ),
        (lambda state: state["param_groups"][0].update(constraints="x"), TypeError, r"of the state: .*write \['x'\]"),
        (lambda state: state["param_groups"][0].update(lr=3), ValueError, r"of the state: \w+ has no setting 'lr'"),
        (lambda state: state.pop("steps"), ValueError, "the state lacks 'steps', which that of"),
        (lambda state: state.update(state={3: {}}), ValueError, "the state is of parameter 3, too; this opt"),
    ],
)
def test_a_state_that_cannot_be_used_changes_nothing(own: str, change: Any, error: Any, message: str) -> None:
    """All of it is read before any of it is taken over."""
    optimizer, state = SEARCHES[own]([parameter()]), SEARCHES[own]([parameter()]).state_dict()
    state["param_groups"][0]["max_tokens"] = 7
    change(state)
    before = optimizer.state_dict()
    with pytest.raises(error, match=message):
        optimizer.load_state_dict(state)
    assert optimizer.state_dict() == before


@pytest.mark.parametrize("own", ["PatchSearch", "RandomSearch"])
def test_a_board_that_cannot_be_read_changes_nothing(own: str) -> None:
    """Not even what is under way, which a state that is taken over ends."""
    search = SEARCHES[own]([parameter()])
    before, closed = search.state_dict(), []
    search.close = lambda: closed.append(own)  # type: ignore[attr-defined]
    state = search.state_dict()
    state["param_groups"][0]["max_tokens"] = 7
    for board, message in (({"texts": 3}, "texts"), (None, "the state lacks 'board', which that of")):
        with pytest.raises(ValueError, match=message):
            search.load_state_dict({**state, "board": board} if board else {k: state[k] for k in state if k != "board"})
    assert (search.state_dict(), closed) == (before, [])
    search.load_state_dict(state)
    assert closed == [own]


def test_what_is_no_state_is_refused() -> None:
    """Such as the name of the file that it is in."""
    with pytest.raises(TypeError, match="load_state_dict takes what state_dict gave, got str 'run/state"):
        TGD([parameter()]).load_state_dict("run/state.json")  # type: ignore[arg-type]


def nameless(state: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in state.items() if key != "optimizer"}


def test_origins_of_a_text_that_somebody_else_wrote_are_unknown() -> None:
    """A line is never put down to a step that did not write it."""
    prompt, optimizer = trained()
    assert [origin is None for origin in optimizer.origins(prompt)] == [True, False]
    with no_grad():
        prompt.data = "one\ntwo\nthree"
    assert optimizer.origins(prompt) == [None, None, None]


def test_groups_do_not_share_what_is_remembered() -> None:
    """State is by parameter, by identity: equal texts are two parameters."""
    first, second = parameter("same"), parameter("same")
    optimizer = TGD([first, second], model=adds(), momentum=1)
    (first + "").backward("more, please")
    optimizer.step()
    optimizer.record_outcome("kept")
    assert set(optimizer.state) == {first}
    assert second.data == "same"


@pytest.mark.parametrize("answers", ["never", "at once, too late"])
def test_an_astep_whose_wait_is_cancelled_leaves_the_parameters(answers: str) -> None:
    """Also a while later, and also where the proposal was there: nobody waits for it."""
    prompt = parameter("text")
    prompt.grad = Variable("be brief")
    asked = threading.Event()

    async def model(request: Any) -> Any:
        asked.set()
        if answers == "never":
            await asyncio.Event().wait()
        return {"edits": [{"op": "add", "line": 1, "text": "more", "reason": "asked", "feedback": [1]}]}

    class Late(TGD):
        """Whose step is cancelled when it has all that it writes."""

        def _chosen(self, found: Any) -> Any:
            scope = dispatch.current_scope()
            assert scope is not None
            loop.call_soon_threadsafe(waiting.cancel)
            while not scope.cancelled:
                pass
            return super()._chosen(found)

    optimizer = (TGD if answers == "never" else Late)([prompt], model=FunctionModel(model))

    async def main() -> None:
        nonlocal loop, waiting
        loop, waiting = asyncio.get_running_loop(), asyncio.ensure_future(optimizer.astep())
        assert await asyncio.to_thread(asked.wait, 60)
        if answers == "never":
            waiting.cancel()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await waiting
        assert isinstance(cancelled.value.__cause__, CallCancelled)  # the step has ended

    loop: Any = None
    waiting: Any = None
    asyncio.run(main())
    assert (prompt.data, optimizer.changes) == ("text", [])


def test_what_a_notebook_shows_of_it_are_the_groups_and_their_settings() -> None:
    """In the form that PyTorch gives them; a parameter goes by its role, as its text may be long."""
    first, second = (Variable(f"Be kind. {role}" * 9, role=role, requires_grad=True) for role in ("first", "second"))
    lines = repr(TGD([{"params": [first], "max_edits": 2}, {"params": [second]}], momentum=3)).splitlines()
    assert (lines[0], lines[1], lines[-1]) == ("TGD (", "Parameter Group 0", ")")
    other = lines.index("Parameter Group 1")
    assert {"    params: ['first']", "    max_edits: 2", "    momentum: 3"} <= set(lines[:other])
    assert {"    params: ['second']", "    max_edits: 12", "    momentum: 3"} <= set(lines[other:])
    assert max(map(len, lines)) < 120
    many = TGD([parameter(role=f"prompt of part {number}") for number in range(9)])
    assert repr(many).splitlines()[2].endswith("…")


def test_feedback_that_is_no_variable_is_refused_before_a_step() -> None:
    """A list takes anything; the step that reads it says what is wrong, and writes nothing."""
    prompt = parameter()
    prompt.grad.append("shorter")  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match=r"grad of Variable 'prompt' holds Variables, got str: 'shorter'; write Variable\(text\)"
    ):
        TGD([prompt], model=adds()).step()
    assert prompt.data == "text"


@pytest.mark.parametrize("then", ["more", "again", "back"])
def test_what_is_done_after_the_step_of_the_base_is_a_part_of_the_step(then: str) -> None:
    """A Trainer that leaves out edits begins with `changes`; what is not in them would be lost."""

    class GoesOn(TGD):
        def step(self, closure: Any = None) -> Any:
            (variable,) = self.variables()
            before = variable.data
            result = super().step(closure)
            if then == "more":
                variable.data = f"!{variable.data}"
            elif then == "again":
                super().step(closure)
            elif self.steps > 1:
                variable.data = before
            return result

    prompt = parameter("text\nlast")
    optimizer = GoesOn([prompt], model=adds())
    (prompt + "").backward("longer")
    for _ in range(2):
        before = prompt.data
        optimizer.step()
    (change,) = optimizer.changes
    assert (change.before, change.after) == (before, prompt.data)
    assert [item.text for item in change.items] == ["longer"]
    origins = dict(zip(prompt.data.split("\n"), optimizer.origins(prompt)))
    assert (origins["last"], bool(origins["more"])) == (None, True)


def test_a_copy_that_a_hook_makes_can_step() -> None:
    """It is made within a step, and is none itself."""
    for made in (copy.copy, copy.deepcopy):
        optimizer, copies = Quotes([parameter()]), list[Optimizer]()
        handle = optimizer.register_step_post_hook(lambda it, *_, made=made, copies=copies: copies.append(made(it)))
        optimizer.step()
        handle.remove()
        copies[0].step()
        assert copies[0].steps == 2


def test_a_number_may_be_trained_by_a_step_of_ones_own() -> None:
    """What is a text stays one; what was none never was."""

    class Writes(Optimizer):
        def step(self, closure: Any = None) -> None:
            self.variables()[0].data = 0.75

    threshold = Variable(0.5, role="threshold", requires_grad=True)
    Writes([threshold], {}).step()
    assert threshold.data == 0.75
    prompt = parameter()
    with pytest.raises(TypeError, match=r"Writes\.step has made a float of Variable 'prompt'; a parameter is a text"):
        Writes([prompt], {}).step()
    assert prompt.data == "text"


@pytest.mark.parametrize("data", [["a", "b"], 3])
def test_no_text_is_made_of_what_is_none(data: Any) -> None:
    """A batch would become what Python prints of it, with a line behind that, and be no batch for the program."""

    def model(request: llm.Request) -> dict[str, Any]:
        return {"edits": [{"op": "add", "line": 1, "text": "More.", "reason": "r", "feedback": [1]}]}

    batch = Variable(data, role="style", requires_grad=True)
    batch.grad = Variable("say more")
    with pytest.raises(TypeError, match=r"TGD\.step has made a text of Variable 'style', which holds .*; leave it out"):
        TGD([batch], FunctionModel(model)).step()
    assert batch.data == data
    batch.requires_grad_(False)
    TGD([batch], FunctionModel(model)).step()


def test_a_step_may_be_something_else_than_a_function() -> None:
    """As a property that gives the step of another one."""

    class Lends(Optimizer):
        step = property(lambda self: lambda closure=None: "lent")

    assert Lends([parameter()], {}).step() == "lent"  # type: ignore[operator]


def answers(*, first: str) -> tuple[FunctionModel, Callable[[str], Any]]:
    """A model that echoes, by whom one answer is there before the others, and what asks it."""
    done = asyncio.Event()

    async def echo(request: llm.Request) -> str:
        text = request.messages[-1].text
        if text == first:
            done.set()
        else:
            await done.wait()
        if text.startswith("fails"):
            raise BadRequest(text, status=400)
        return text

    model = FunctionModel(echo)

    async def ask(text: str) -> str:
        message = llm.Message(role="user", content=text)
        return (await llm.resolve(model).complete(llm.Request(messages=(message,), purpose="optimizer"))).text

    return model, ask


def test_a_step_waits_for_what_is_awaited_also_where_an_event_loop_runs() -> None:
    """As in a notebook, where `asyncio.run` is refused; all of it is under way at once, and comes in order."""
    _, ask = answers(first="b")

    class Asks(Optimizer):
        def step(self, closure: Any = None) -> None:
            (prompt,) = self.variables()
            prompt.data = "".join(self.wait_for(ask("a"), ask("b")))

    async def cell() -> str:
        prompt = parameter()
        Asks([prompt], {}).step()
        return str(prompt.data)

    with llm.meter() as meter:
        assert asyncio.run(cell()) == "ab"
    assert meter.by_purpose["optimizer"].calls == 2


def test_of_what_is_awaited_the_first_failure_in_order_is_raised() -> None:
    """Whichever came first in time; nothing is left under way."""
    model, ask = answers(first="fails 2")
    with pytest.raises(BadRequest, match=r"^fails 1"):
        TGD([parameter()]).wait_for(ask("a"), ask("fails 1"), ask("fails 2"))
    assert len(model.requests) == 3
    assert TGD([parameter()]).wait_for() == []


def test_what_is_not_awaited_is_refused_with_an_example() -> None:
    """A text, or a function that was not called."""
    with pytest.raises(
        TypeError, match=r"wait_for takes what is awaited, such as proposers.propose\(\.\.\.\), got 'a'"
    ):
        TGD([parameter()]).wait_for("a")  # type: ignore[arg-type]


def test_in_a_coroutine_of_the_library_what_it_waits_for_is_awaited() -> None:
    """As in a proposer that is `async`: it would wait for itself, and is told so."""
    optimizer = TGD([parameter()])

    async def late() -> str:
        return "late"

    async def inside() -> list[str]:
        return optimizer.wait_for(late())

    with pytest.raises(DispatchError, match=r"use `await asyncio\.gather\(\.\.\.\)`"):
        dispatch.run(inside)
