"""Parts of optimizers that a config file names: transforms of feedback, and schedules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from textgrad_engine.cli import build
from textgrad_engine.cli.config import Config
from textgrad_engine.cli.config_file import load_config
from textgrad_engine.cli.optimizer_parts import transforms_of
from textgrad_engine.errors import ConfigError
from textgrad_engine.optim.transforms import cap, chain, cluster, dedupe, newest_first, summarise, worst_first

NAMED = 'name = "TGD"\nmax_edits = 12'
OF_STEPS = "max_epochs = 1\nbatch_size = 6\n"


def config_with(small: Any, table: str) -> Config:
    path: Path = small() / "config.toml"
    text = path.read_text(encoding="utf-8").replace(NAMED, table)
    path.write_text(text if "TGD" in table else text.replace(OF_STEPS, ""), encoding="utf-8")
    return load_config(path)


def made(small: Any, table: str, **options: Any) -> Any:
    config = config_with(small, table)
    again = Config.of(config.resolved(), config.path)  # as a run folder keeps it
    return build.make_optimizer(again, build.make_program(again), **options)


def test_every_transform_has_a_name() -> None:
    """In the order of the file; those that take a number take it."""
    named = ["dedupe", "cluster", {"cluster": 0.5}, "worst_first", "newest_first", {"summarise": 8}, {"cap": 4000}]
    assert transforms_of(named) == [
        dedupe(), cluster(), cluster(0.5), worst_first(), newest_first(), summarise(8), cap(4000),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["TGD", "PatchSearch", "ParetoSearch", "BeamSearch"])
@pytest.mark.parametrize("feedback", [True, False])
def test_all_that_read_feedback_take_transforms(small: Any, name: str, feedback: bool) -> None:
    """They reach the groups, and a control that reads none does without."""
    optimizer = made(small, f'name = "{name}"\ntransforms = [{{cluster = 0.5}}, "worst_first"]', feedback=feedback)
    if feedback or name == "TGD":
        assert optimizer.param_groups[0]["transforms"] == chain(cluster(0.5), worst_first())


@pytest.mark.parametrize(
    ("table", "edits"),
    [
        ("schedule = {end = 2, steps = 3}", [8, 6, 4, 2, 2]),
        ('schedule = {shape = "cosine", steps = 4}', [8, 7, 5, 2, 1]),
        ('schedule = {shape = "step", every = 2}', [8, 8, 4, 4, 2]),
        ('schedule = {shape = "step", every = 1, factor = 0.25}', [8, 2, 1, 1, 1]),
    ],
)
def test_a_schedule_sets_the_edits_of_each_step(small: Any, table: str, edits: list[int]) -> None:
    """It begins with max_edits, and goes by the optimizer's own steps."""
    optimizer = made(small, f'name = "TGD"\nmax_edits = 8\n{table}')
    found = []
    for _ in edits:
        optimizer.step()
        found.append(optimizer.param_groups[0]["max_edits"])
    assert found == edits


PROBLEMS = {
    "an unknown transform": ('transforms = ["clutser"]', "[optimizer] transforms = ['clutser']: 'clutser' is none of"),
    "a number that is missing": ('transforms = ["cap"]', "'cap' is none of 'dedupe', 'cluster', 'worst_first'"),
    "a number that is not whole": ("transforms = [{cap = 2.5}]", "cap takes a whole number, got 2.5"),
    "a number out of range": ("transforms = [{cluster = 3}]", "threshold must be above 0 and at most 1, got 3"),
    "no list": ('transforms = "cluster"', "[optimizer] transforms = 'cluster': should be a list in brackets"),
    "a schedule without its steps": ("schedule = {end = 2}", "of the shape 'linear' wants steps = 10"),
    "a key of another shape": (
        'schedule = {shape = "step", every = 2, end = 2}',
        "end means nothing to a schedule of the shape 'step'; take it out",
    ),
    "a key that is misspelt": ("schedule = {step = 2}", "[optimizer.schedule] has no key 'step'; did you mean 'steps'"),
    "a schedule that is a number": ("schedule = 3", "schedule is a table; write [optimizer.schedule]"),
    "a schedule of a search": ('name = "PatchSearch"\nschedule = {steps = 2}', "has no key 'schedule' for PatchSearch"),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_what_is_wrong_is_said_with_its_line(small: Any, problem: str) -> None:
    """Before anything is paid for, with the repair."""
    table, said = PROBLEMS[problem]
    with pytest.raises(ConfigError) as caught:
        config_with(small, table)
    assert said in str(caught.value)
    assert ".toml:" in str(caught.value)
