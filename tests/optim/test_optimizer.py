from __future__ import annotations

import asyncio
import json

import pytest

from textgrad_engine import Variable, no_grad
from textgrad_engine.optim import TGD
from textgrad_engine.optim.optimizer import Optimizer
from textgrad_engine.testing import FunctionModel


def parameter(text: str = "text", role: str = "prompt") -> Variable:
    return Variable(text, role=role, requires_grad=True)


def adds(line: str = "more") -> FunctionModel:
    """An optimizer model that adds one line at the end of the first."""
    edit = {"op": "add", "line": 1, "text": line, "reason": "asked", "feedback": [1]}
    return FunctionModel(lambda request: {"edits": [edit]})


def test_no_parameters_says_why() -> None:
    """The usual reason is a program without nn.Parameter."""
    with pytest.raises(ValueError, match=r"got no parameters.*nn\.Parameter"):
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


def test_groups_have_settings_of_their_own() -> None:
    """Defaults fill in what a group does not name; one Variable is a group."""
    first, second = parameter(), parameter()
    optimizer = TGD([{"params": first}, {"params": [second], "max_edits": 1}], max_edits=3, momentum=2)
    assert [(group["params"], group["max_edits"], group["momentum"]) for group in optimizer.param_groups] == [
        ([first], 3, 2),
        ([second], 1, 2),
    ]


def test_the_base_class_cannot_step() -> None:
    """A subclass without `_step` says so."""
    with pytest.raises(NotImplementedError, match="Optimizer needs a `_step`"):
        Optimizer([parameter()], {}).step()


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

    pre = optimizer.register_step_pre_hook(lambda it: seen.append(("pre", it.steps)))
    optimizer.register_step_post_hook(lambda it: seen.append(("post", prompt.data)))
    assert optimizer.step(closure) == "loss"
    assert seen == [("pre", 0), ("closure", "text"), ("post", "text\nmore")]
    pre.remove()
    optimizer.step()
    assert [name for name, _ in seen[3:]] == ["post"]


def test_astep_works_inside_a_running_loop() -> None:
    """The twin for a notebook or a web handler."""
    prompt = parameter()
    optimizer = TGD([prompt], model=adds())

    async def main() -> None:
        await (prompt + "").abackward("more, please")
        await optimizer.astep()

    asyncio.run(main())
    assert prompt.data == "text\nmore"


def trained(momentum: int = 1) -> tuple[Variable, TGD]:
    prompt = parameter()
    optimizer = TGD([prompt], model=adds(), momentum=momentum)
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
