"""What an optimizer is given is checked when it is given: by every optimizer, for all groups and for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from textgrad_engine import Variable, optim
from textgrad_engine.optim import Optimizer, RandomEdits
from textgrad_engine.optim.proposers import Patch, Rewrite, Several
from textgrad_engine.optim.settings import whole
from textgrad_engine.optim.transforms import FeedbackTransform, dedupe, momentum

OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {
    "TGD": optim.TGD,
    "PatchSearch": optim.PatchSearch,
    "ParetoSearch": optim.ParetoSearch,
    "BeamSearch": optim.BeamSearch,
    "OPRO": optim.OPRO,
    "BootstrapDemos": optim.BootstrapDemos,
    "RandomSearch": lambda params, **more: optim.RandomSearch(params, more.pop("proposer", RandomEdits()), **more),
}
every_optimizer = pytest.mark.parametrize("name", OPTIMIZERS)
asking = pytest.mark.parametrize("name", [name for name in OPTIMIZERS if name != "OPRO"])

WRONG: list[tuple[str, Any, Any, str]] = [
    ("constraints", "be brief", TypeError, r"constraints is a sequence .* got one text; write \['be brief'\]"),
    (
        "constraints",
        [3],
        TypeError,
        r"a constraint is a text or has describe\(before\) and problem\(before, after\), got int",
    ),
    ("constraints", 3, TypeError, r"constraints is a sequence of texts and contracts, got int; write \[3\]"),
    ("constraints", None, TypeError, r"constraints is a sequence .*, got NoneType; write \(\)"),
    ("max_tokens", 0, ValueError, "max_tokens must be at least 1, got 0"),
    ("max_tokens", 2.5, TypeError, r"max_tokens must be a whole number, got 2\.5"),
    ("max_feedback_tokens", 0, ValueError, "max_feedback_tokens must be at least 1, got 0"),
    ("max_feedback_tokens", "8", TypeError, "max_feedback_tokens must be a whole number, got '8'"),
    ("transforms", dedupe(), TypeError, "transforms is a sequence"),
    ("transforms", [print], TypeError, "a feedback transform has"),
]


def prompt() -> Variable:
    return Variable("Sort.", role="prompt", requires_grad=True)


@every_optimizer
@pytest.mark.parametrize(("setting", "value", "error", "message"), WRONG)
def test_a_groups_setting_is_checked_like_one_for_all(
    name: str, setting: str, value: Any, error: Any, message: str
) -> None:
    """At construction and in add_param_group, with the same words and the group's name; nothing is taken in."""
    optimizer = OPTIMIZERS[name]([prompt()])
    if setting not in optimizer.defaults:
        with pytest.raises(ValueError, match=rf"^param_groups\[1\]: {name} has no setting '{setting}'; it has"):
            optimizer.add_param_group({"params": [prompt()], setting: value})
        return
    with pytest.raises(error, match="^" + message):
        OPTIMIZERS[name]([prompt()], **{setting: value})
    with pytest.raises(error, match=r"^param_groups\[1\]: " + message):
        OPTIMIZERS[name]([{"params": [prompt()]}, {"params": [prompt()], setting: value}])
    with pytest.raises(error, match=r"^param_groups\[1\]: " + message):
        optimizer.add_param_group({"params": [prompt()], setting: value})
    assert len(optimizer.param_groups) == 1


@pytest.mark.parametrize(("setting", "value", "error", "message"), WRONG)
def test_what_is_set_in_a_group_later_is_checked_by_the_next_step(
    setting: str, value: Any, error: Any, message: str
) -> None:
    """In the same words; a schedule of one's own that halves a number would end in an error about slices."""
    optimizer = optim.TGD([{"params": [prompt()]}, {"params": [prompt()]}])
    optimizer.param_groups[1][setting] = value
    with pytest.raises(error, match=r"^param_groups\[1\]: " + message):
        optimizer.step()
    assert optimizer.steps == 0


def test_what_a_subclass_or_a_schedule_keeps_in_a_group_is_left_alone() -> None:
    """As in PyTorch, where an optimizer counts there, and a schedule keeps the first value of a setting."""

    class Counting(Optimizer):
        def __init__(self, params: Any) -> None:
            super().__init__(params, {"most": 3})
            for group in self.param_groups:
                group["seen"] = 0

        def step(self) -> None:
            for group in self.param_groups:
                group["seen"] += 1
                group["last"] = [each.data for each in group["params"]]

    optimizer = Counting([prompt()])
    optimizer.param_groups[0]["initial"] = 3
    optimizer.step()
    optimizer.step()
    (group,) = optimizer.param_groups
    assert (group["seen"], group["initial"], optimizer.steps) == (2, 3, 2)


def test_what_is_set_in_a_group_later_is_taken_as_one_that_was_given() -> None:
    """A list of contracts becomes what a step reads, and a name that is nearly a setting's is a typing error."""
    optimizer = optim.TGD([prompt()])
    group = optimizer.param_groups[0]
    group["constraints"], group["transforms"], group["max_tokens"] = ["Be kind."], [dedupe()], None
    optimizer.step()
    given = optim.TGD([prompt()], constraints=["Be kind."], transforms=[dedupe()])
    assert group | {"params": []} == given.param_groups[0] | {"params": []}
    group["max_edit"] = 3
    with pytest.raises(ValueError, match=r"^param_groups\[0\]: TGD has no setting 'max_edit'; it has constraints"):
        optimizer.step()


def test_of_a_name_that_nobody_reads_the_log_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    """Who comes from PyTorch sets a learning rate there, and would believe that it counts."""
    optimizer = optim.TGD([{"params": [prompt()]}, {"params": [prompt()]}])
    optimizer.param_groups[1]["lr"] = 0.1
    optimizer.step()
    optimizer.step()
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("TGD does not read 'lr', which was set in param_groups[1]; it reads constraints, examples")
    assert "max_edits" in said


def test_what_is_kept_in_a_group_is_in_the_state_and_comes_back() -> None:
    """Else a Trainer that takes a step back ends the run of a subclass that counts there."""
    optimizer = optim.TGD([prompt()])
    optimizer.param_groups[0]["initial"] = 3
    held = optimizer.state_dict()
    optimizer.param_groups[0].update(initial=4, max_edits=2)
    optimizer.load_state_dict(held)
    assert (optimizer.param_groups[0]["initial"], optimizer.param_groups[0]["max_edits"]) == (3, 12)
    with pytest.raises(ValueError, match="TGD has no setting 'initial'"):
        optim.TGD([prompt()]).load_state_dict(held)


@pytest.mark.parametrize(
    ("setting", "value", "error", "message"),
    [
        ("mode", "edits", ValueError, "mode is 'patch' or 'rewrite', got 'edits'"),
        ("max_edits", 2.5, TypeError, r"max_edits must be a whole number, got 2\.5"),
        ("momentum", -1, ValueError, "momentum must be at least 0, got -1"),
        ("examples", [3], TypeError, r"examples is a sequence of texts, and examples\[0\] is 3"),
        ("proposer", Rewrite, TypeError, r"got the class Rewrite: write proposer=Rewrite\(\)"),
    ],
)
def test_settings_of_tgd_alone_are_checked_for_groups_too(setting: str, value: Any, error: Any, message: str) -> None:
    """Those that no search has in its groups."""
    with pytest.raises(error, match=message):
        optim.TGD([prompt()], **{setting: value})
    with pytest.raises(error, match=r"^param_groups\[0\]: .*" + message):
        optim.TGD([{"params": [prompt()], setting: value}])


def test_a_transform_of_a_group_that_remembers_is_refused_with_the_groups_name() -> None:
    """Proposals of a search go on side by side."""
    with pytest.raises(ValueError, match=r"^param_groups\[0\]: PatchSearch makes proposals side by side"):
        optim.PatchSearch([{"params": [prompt()], "transforms": [momentum(2)]}])


def test_settings_that_are_run_through_once_are_kept() -> None:
    """A generator of constraints holds for all groups, not for the first."""
    optimizer = optim.ParetoSearch(
        [{"params": [prompt()]}, {"params": [prompt()], "constraints": iter(["Be kind."])}],
        constraints=(text for text in ["Be brief."]),
        transforms=(transform for transform in [Told()]),
    )
    assert [group["constraints"] for group in optimizer.param_groups] == [("Be brief.",), ("Be kind.",)]
    assert [len(group["transforms"].transforms) for group in optimizer.param_groups] == [1, 1]


class Told(FeedbackTransform):
    async def update(self, gathered: Any, state: Any, context: Any) -> Any:
        return gathered, state


@pytest.mark.parametrize("value", [2.5, 2.0, "2", None, True])
def test_a_number_of_things_is_whole(value: Any) -> None:
    """Half an edit is a mistake, and True is not one of anything."""
    with pytest.raises(TypeError, match="max_edits must be a whole number, got "):
        whole("max_edits", value, 1)


@pytest.mark.parametrize("name", ["PatchSearch", "ParetoSearch", "BeamSearch", "RandomSearch"])
def test_numbers_of_a_search_are_whole(name: str) -> None:
    """Those that are not in groups, too."""
    with pytest.raises(TypeError, match=r"max_edits must be a whole number, got 2\.5"):
        OPTIMIZERS[name]([prompt()], max_edits=2.5)


@asking
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("rewrite", r"got 'rewrite': write proposer=Rewrite\(\)"),
        ("patch", r"got 'patch': write proposer=Patch\(\)"),
        ("", r"got '': write proposer=Rewrite\(\)"),
        (Rewrite, r"got the class Rewrite: write proposer=Rewrite\(\)"),
        (3, r"got 3: write proposer=Rewrite\(\)"),
    ],
)
def test_what_is_no_proposer_is_refused_at_construction(name: str, given: Any, message: str) -> None:
    """A class has the method, too, and would fail at its first proposal."""
    with pytest.raises(TypeError, match=message):
        OPTIMIZERS[name]([prompt()], proposer=given)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("TGD", "and candidates=3 to take the best of so many"),
        ("PatchSearch", "and lanes=3 to work on so many at a time"),
        ("BeamSearch", "and edits=3 for so many new texts from each criticism"),
        ("ParetoSearch", "; proposals= says how many"),
        ("RandomSearch", "; proposals= says how many"),
        ("BootstrapDemos", "; sets= says how many"),
    ],
)
def test_several_is_refused_with_what_the_optimizer_has_instead(name: str, instead: str) -> None:
    """Each has a way of its own to come by more than one candidate."""
    with pytest.raises(TypeError, match=rf"^{name} asks .* so Several does not .* proposer=Patch\(\.\.\.\).*{instead}"):
        OPTIMIZERS[name]([prompt()], proposer=Several(Patch(), 3))


@every_optimizer
def test_a_long_prompt_has_room_to_grow(name: str) -> None:
    """A prompt above a fixed limit would be run, criticized and paid for, and no line could ever be added to it."""
    make = OPTIMIZERS[name]
    short, long = Variable("Sort.", requires_grad=True), Variable("一文字" * 1000, requires_grad=True)
    optimizer = make([{"params": [short]}, {"params": [long]}])
    assert [group["max_tokens"] for group in optimizer.param_groups] == [2000, 4500]
    assert [group["max_tokens"] for group in make([short, long]).param_groups] == [4500]
    assert make([{"params": [long], "max_tokens": 10}]).param_groups[0]["max_tokens"] == 10
    assert make([long], max_tokens=20).param_groups[0]["max_tokens"] == 20
