"""The table [optimizer]: each optimizer has its own keys, and every one of them arrives."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine import optim
from textgrad_engine.cli import build
from textgrad_engine.cli.config_file import load_config
from textgrad_engine.cli.optimizer_names import NAMES
from textgrad_engine.cli.optimizers import BaseSettings, settings_for
from textgrad_engine.errors import ConfigError
from textgrad_engine.optim.proposers import Demonstrations, Patch, Unaided

NAMED = 'name = "TGD"\nmax_edits = 12'
"""What the config of the tickets says of its optimizer."""

TRAIN = "max_epochs = 1\nbatch_size = 6\n"
"""What it says of the steps, after the fixture's changes."""


def with_optimizer(small: Any, table: str, train: str = "") -> Path:
    folder: Path = small()
    path = folder / "config.toml"
    text = path.read_text(encoding="utf-8")
    assert NAMED in text
    assert TRAIN in text
    path.write_text(text.replace(NAMED, table).replace(TRAIN, train), encoding="utf-8")
    return folder


def made(small: Any, table: str, **options: Any) -> Any:
    config = load_config(with_optimizer(small, table))
    return build.make_optimizer(config, build.make_program(config), **options)


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_of_an_optimizer_has_a_key(name: str) -> None:
    """What a constructor takes can be said in the file, and nothing can be said that it does not take."""
    settings = settings_for(name)
    assert settings is not None
    takes = set(inspect.signature(settings.of).parameters)
    keys = set(settings.model_fields) - {"name", "contracts", "prompts"}
    stand_for_a_proposer = {"mode", "select", "show"} - takes
    if keys & stand_for_a_proposer:
        keys = keys - stand_for_a_proposer | {"proposer"}
    elsewhere = {"params", "model", "seed", "proposer", "use_feedback"}
    assert takes - elsewhere <= keys - {"schedule"} <= takes


@pytest.mark.parametrize("name", NAMES)
def test_an_optimizer_is_made_by_its_name_alone(small: Any, name: str) -> None:
    """With its own defaults, and the seed of the run where it draws anything."""
    optimizer = made(small, f'name = "{name}"')
    assert type(optimizer) is getattr(optim, name)
    assert getattr(optimizer, "seed", 0) == 0


def test_settings_arrive_where_they_belong(small: Any) -> None:
    """Nothing in the file is accepted and ignored."""
    beam = made(small, 'name = "BeamSearch"\nmode = "patch"\nbeam = 2\nselection = "ucb"\nmax_tokens = 99')
    assert (type(beam.proposer), beam.beam, beam.selection) == (Patch, 2, "ucb")
    assert beam.param_groups[0]["max_tokens"] == 99
    opro = made(small, 'name = "OPRO"\nscore_on = "val"\nsample = 7\nconstraints = ["Be kind."]')
    assert (opro.score_on, opro.sample, opro.param_groups[0]["constraints"]) == ("val", 7, ("Be kind.",))
    edits = made(small, 'name = "RandomSearch"\nmode = "edits"\nproposals = 3')
    assert (type(edits.proposer), edits.proposals) == (optim.RandomEdits, 3)
    demos = made(small, 'name = "BootstrapDemos"\nlabelled = 0\nleast = 0.5')
    assert (demos.labelled, demos.least, demos.proposer) == (0, 0.5, None)
    nearest = made(small, 'name = "BootstrapDemos"\nselect = "nearest"\nshow = 3')
    assert nearest.proposer == Demonstrations(3, "nearest")
    assert made(small, 'name = "BootstrapDemos"\nshow = 2').proposer == Demonstrations(2)
    for name in ("ParetoSearch", "BeamSearch"):
        shown = made(small, f'name = "{name}"\nmode = "demonstrations"\nselect = "nearest"')
        assert shown.proposer == Demonstrations(4, "nearest")
        assert made(small, f'name = "{name}"\nmode = "demonstrations"').proposer == Demonstrations()
    steps = made(small, 'name = "TGD"\nmode = "rewrite"\ncandidates = 3\nexamples = ["Be brief."]')
    assert (steps.candidates, steps.param_groups[0]["mode"]) == (3, "rewrite")
    assert steps.param_groups[0]["examples"] == ("Be brief.",)


PROBLEMS = {
    "a setting of another optimizer": (
        'name = "PatchSearch"\nmerges = 3',
        r"config.toml:\d+: \[optimizer\] has no key 'merges' for PatchSearch, which has max_tokens, .*lanes",
    ),
    "a setting that is misspelt": (
        'name = "ParetoSearch"\nmerge = 3',
        r"config.toml:\d+: \[optimizer\] has no key 'merge'; did you mean 'merges'",
    ),
    "a setting of TGD's where none is named": ('mode = "patch"\nlanes = 3', r"has no key 'lanes' for TGD, which has"),
    "a setting of [train]": ('name = "OPRO"\npatience = 3', r"has no key 'patience'; it belongs in \[train\]"),
    "a setting of [train] that this search has not": (
        'name = "OPRO"\nbatch_size = 3',
        r"has no key 'batch_size' for OPRO, which has max_tokens, ",
    ),
    "a setting of another optimizer that reads like one of its own": (
        'name = "OPRO"\nmax_edits = 3',
        r"has no key 'max_edits' for OPRO, which has max_tokens, ",
    ),
    "a number out of range": ('name = "OPRO"\nrounds = 0', r"\[optimizer\] rounds = 0: should be greater than 0"),
    "a word that is none of the choices": (
        'name = "BeamSearch"\nselection = "uct"',
        r"\[optimizer\] selection = 'uct': should be 'rejects' or 'ucb'; did you mean 'ucb'",
    ),
    "examples of a search that shows none": (
        'name = "ParetoSearch"\nshow = 3',
        r'\[optimizer\] show = 3: says which solved examples are shown, and wants mode = "demonstrations"',
    ),
    "solved examples of a search that has none": (
        'name = "PatchSearch"\nmode = "demonstrations"',
        r"\[optimizer\] has no key 'mode' for PatchSearch",
    ),
    "a frontier that there is not": (
        'name = "ParetoSearch"\nfrontier = "instances"',
        r"\[optimizer\] frontier = 'instances': should be 'instance', .*; did you mean 'instance'",
    ),
    "a frontier of metrics where there is one": (
        'name = "ParetoSearch"\nfrontier = "hybrid"',
        r'\[optimizer\] frontier = "hybrid" keeps .* and there is one; write several \[\[metric\]\], or a rubric',
    ),
    "an optimizer that is misspelt": (
        'name = "PatchSerch"',
        r"\[optimizer\] name = 'PatchSerch': should be one of 'TGD', 'PatchSearch', .*; did you mean 'PatchSearch'",
    ),
    "an optimizer of DSPy": (
        'name = "MIPROv2"',
        r"\[optimizer\] name = 'MIPROv2': should be one of 'TGD', .*; here it is 'PatchSearch'$",
    ),
    "a name that is no text": ("name = 3", r"\[optimizer\] name = '3': should be one of"),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_what_is_wrong_is_said_with_its_line(small: Any, problem: str) -> None:
    """And with what the chosen optimizer has."""
    table, match = PROBLEMS[problem]
    folder = with_optimizer(small, table)
    with pytest.raises(ConfigError, match=match) as caught:
        load_config(folder)
    number = int(str(caught.value).split(".toml:")[1].split(":")[0])
    line = (folder / "config.toml").read_text(encoding="utf-8").splitlines()[number - 1]
    assert line == table.splitlines()[-1]


def test_a_frontier_of_metrics_is_for_several(small: Any) -> None:
    """One by examples is for any; with several metrics each arrives, and another optimizer has none."""
    assert made(small, 'name = "ParetoSearch"\nfrontier = "instance"').frontier == "instance"
    folder = with_optimizer(small, 'name = "ParetoSearch"\nfrontier = "cartesian"')
    path = folder / "config.toml"
    one = '[metric]\nname = "exact_match"\n'
    text = path.read_text(encoding="utf-8")
    assert one in text
    brief = '[[metric]]\nname = "judge"\ninstructions = "Is it brief?"\n'
    path.write_text(text.replace(one, f'[{one.splitlines()[0]}]\nname = "exact_match"\n\n{brief}'), encoding="utf-8")
    config = load_config(folder)
    assert build.make_optimizer(config, build.make_program(config)).frontier == "cartesian"
    assert config.with_overrides(optimizer="BeamSearch").optimizer.name == "BeamSearch"
    criteria = '[metric]\nname = "rubric"\ncriteria = ["It is brief.", "It is right."]\n'
    path.write_text(text.replace(one, criteria), encoding="utf-8")
    assert load_config(folder).optimizer.name == "ParetoSearch"


def test_a_line_that_is_no_table_is_said(small: Any) -> None:
    """``optimizer = "PatchSearch"`` is what people try first."""
    folder = with_optimizer(small, NAMED)
    path = folder / "config.toml"
    text = path.read_text(encoding="utf-8").replace(f"[optimizer]\n{NAMED}", "")
    path.write_text('optimizer = "PatchSearch"\n' + text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"config.toml:1: optimizer is a table; write \[optimizer\]"):
        load_config(folder)


@pytest.mark.parametrize(
    ("key", "instead"),
    [("max_epochs", "limit [train] max_steps"), ("batch_size", "set batch_size in [optimizer]")],
)
def test_what_a_search_does_by_itself_is_refused_in_train(small: Any, key: str, instead: str) -> None:
    """Accepted, it would be without effect."""
    folder = with_optimizer(small, 'name = "PatchSearch"', train=f"{key} = 3\n")
    with pytest.raises(ConfigError, match=rf"\[train\] {key} means nothing to PatchSearch") as caught:
        load_config(folder)
    assert instead in str(caught.value)


def test_what_a_search_has_nowhere_is_only_to_be_taken_out(small: Any) -> None:
    """A limit of steps is nothing instead of a batch size."""
    folder = with_optimizer(small, 'name = "OPRO"', train="batch_size = 3\n")
    with pytest.raises(ConfigError, match=r"\[train\] batch_size means nothing to OPRO.*; take it out$"):
        load_config(folder)


@pytest.mark.parametrize("name", ["OPRO", "BootstrapDemos", "RandomSearch"])
def test_no_critic_is_refused_where_none_is_asked(small: Any, name: str) -> None:
    """In the file, and on the command line."""
    with pytest.raises(ConfigError, match=rf"config\.toml:\d+: \[train\] critic = false .*nothing to {name}"):
        load_config(with_optimizer(small, f'name = "{name}"', train="critic = false\n"))
    plain = load_config(with_optimizer(small, f'name = "{name}"'))
    with pytest.raises(ConfigError, match=rf"\(--no-critic\) means nothing to {name}.*as changed on the command line"):
        plain.with_overrides(critic=False)
    with pytest.raises(ConfigError, match=rf"\[train\] feedback_images means nothing to {name}, which asks no critic"):
        load_config(with_optimizer(small, f'name = "{name}"', train="feedback_images = 2\n"))


def test_no_critic_is_refused_where_examples_are_shown(small: Any) -> None:
    """They are chosen without anybody's words."""
    table = 'name = "ParetoSearch"\nmode = "demonstrations"'
    with pytest.raises(ConfigError, match=r'critic = false .*nothing to ParetoSearch with mode = "demonstrations"'):
        load_config(with_optimizer(small, table, train="critic = false\n"))
    with pytest.raises(ConfigError, match=r'feedback_images .* mode = "demonstrations", which asks no'):
        load_config(with_optimizer(small, table, train="feedback_images = 2\n"))


@pytest.mark.parametrize(
    ("name", "more", "table"),
    [
        ("TGD", "feedback_batch_size = 4\n", "train"),
        ("TGD", "feedback_images = 4\n", "train"),
        ("PatchSearch", "feedback_batch_size = 4\n", "optimizer"),
    ],
)
def test_how_a_critic_is_asked_is_refused_where_there_is_none(small: Any, name: str, more: str, table: str) -> None:
    """The command line may leave the critic out of any config, to compare the two."""
    own, trained = (more, "") if table == "optimizer" else ("", more)
    folder = with_optimizer(small, f'name = "{name}"\n{own}', train=f"critic = false\n{trained}")
    said = rf"\[{table}\] {more.partition(' ')[0]} means nothing with \[train\] critic = false, which asks no critic"
    with pytest.raises(ConfigError, match=said):
        load_config(folder)
    plain = load_config(with_optimizer(small, f'name = "{name}"\n{own}', train=trained))
    assert plain.with_overrides(critic=False).train.critic is False
    assert plain.with_overrides().train.critic is True


@pytest.mark.parametrize(
    ("table", "key", "repair"),
    [
        ('mode = "rewrite"\nmax_edits = 4', "max_edits", 'mode = "rewrite"; take it out, or write mode = "patch"'),
        ('mode = "rewrite"\nschedule = { steps = 4 }', "schedule", 'mode = "rewrite"; take it out'),
        ('name = "ParetoSearch"\nmax_edits = 4', "max_edits", 'mode = "rewrite"; take it out, or write mode = "patch"'),
        ('name = "BeamSearch"\nmode = "demonstrations"\nmax_edits = 4', "max_edits", 'mode = "demonstrations"; take'),
        *(
            (f'name = "{name}"\nmode = "demonstrations"\n{line}', line.split()[0], 'mode = "demonstrations"; take')
            for name, line in (
                ("ParetoSearch", 'transforms = ["cluster"]'),
                ("BeamSearch", "max_feedback_tokens = 900"),
                ("ParetoSearch", "feedback_batch_size = 2"),
            )
        ),
        ('name = "RandomSearch"\nmax_edits = 4', "max_edits", 'mode = "rewrite"; take it out, or write mode = "patch"'),
        (
            'name = "RandomSearch"\nmode = "edits"\nmomentum = 4',
            "momentum",
            'mode = "edits"; take it out, or write mode = "rewrite" or "patch"',
        ),
    ],
)
def test_what_means_nothing_to_the_way_texts_are_written_is_refused(
    small: Any, table: str, key: str, repair: str
) -> None:
    """Accepted, it would be without effect: who writes a text anew makes no edits."""
    with pytest.raises(ConfigError, match=rf"\[optimizer\] {key} means nothing with {re.escape(repair)}") as caught:
        load_config(with_optimizer(small, table))
    number = int(str(caught.value).split(".toml:")[1].split(":")[0])
    path = Path(str(caught.value).split(".toml:")[0] + ".toml")
    assert path.read_text(encoding="utf-8").splitlines()[number - 1].startswith(key)


@pytest.mark.parametrize(
    "table",
    [
        'mode = "patch"\nmax_edits = 4',
        'name = "ParetoSearch"\nmode = "patch"\nmax_edits = 4',
        'name = "RandomSearch"\nmode = "patch"\nmax_edits = 4\nmomentum = 4',
        'name = "RandomSearch"\nmomentum = 4',
        'name = "mine:patient"\nmode = "rewrite"\nmax_edits = 4',
    ],
)
def test_what_means_something_to_it_is_taken(small: Any, table: str) -> None:
    """The same keys, where there are edits, and where something is shown; and to an optimizer of one's own."""
    folder = with_optimizer(small, table)
    (folder / "mine.py").write_text(
        "from textgrad_engine.optim import TGD\n\n\ndef patient(params, **own):\n    return TGD(params, **own)\n"
    )
    assert load_config(folder).optimizer.given()


def test_the_flag_takes_another_optimizer_with_its_own_defaults(small: Any) -> None:
    """What all have in common stays: contracts, constraints and the longest text."""
    folder = with_optimizer(small, 'name = "TGD"\nmax_edits = 2\nmomentum = 3\nmax_tokens = 99', train=TRAIN)
    config = load_config(folder).with_overrides(optimizer="PatchSearch")
    optimizer = build.make_optimizer(config, build.make_program(config))
    assert isinstance(optimizer, optim.PatchSearch)
    assert optimizer.max_edits == 8
    assert optimizer.param_groups[0]["max_tokens"] == 99
    assert load_config(folder).with_overrides(optimizer="TGD").optimizer.given() == {
        "max_edits": 2, "momentum": 3, "max_tokens": 99,
    }  # fmt: skip
    with pytest.raises(ConfigError, match=r"--optimizer GEPA: it is one of TGD, .*; here it is 'ParetoSearch'$"):
        load_config(folder).with_overrides(optimizer="GEPA")


def test_without_feedback_a_search_is_the_control(small: Any) -> None:
    """Rewrites that know nothing, kept by races, with the settings that both have."""
    control = made(small, 'name = "PatchSearch"\nmomentum = 3\nlanes = 2\nmax_tokens = 99', feedback=False)
    assert isinstance(control, optim.RandomSearch)
    assert (type(control.proposer), control.momentum, control.param_groups[0]["max_tokens"]) == (Unaided, 3, 99)
    assert type(made(small, 'name = "RandomSearch"').proposer) is Unaided
    own = made(small, 'name = "RandomSearch"\nmode = "edits"', feedback=False)
    assert isinstance(own.proposer, optim.RandomEdits)
    assert made(small, NAMED, feedback=False).param_groups[0]["use_feedback"] is False


@pytest.mark.parametrize("name", [name for name in NAMES if name != "TGD"])
def test_every_search_has_an_estimate(small: Any, cli: Any, name: str) -> None:
    """As a table that fits a terminal, with what is usual; one flag estimates another optimizer."""
    result = cli("estimate", small(), "--optimizer", name, "--latency", "2")
    assert result.exit_code == 0, result.output
    assert "usually" in result.stdout
    assert "at 2 s an answer" in result.stdout
    assert ("with max_steps it is a bound" in " ".join(result.stdout.split())) is (name == "PatchSearch")
    assert all(len(line) <= 80 for line in result.stdout.splitlines())


def test_an_estimate_of_a_search_for_machines(small: Any, cli: Any) -> None:
    """The least, the most and what is usual, of every figure; the seconds are those of the answers waited for."""
    folder = with_optimizer(small, 'name = "PatchSearch"\nlanes = 2', "max_steps = 3\n")
    found = json.loads(cli("estimate", folder, "--latency", "0.5", "--json").stdout)
    assert (found["steps"], found["assumed"]) == (3, "")
    assert all(part["low"] <= part["usual"] <= part["high"] for part in found["calls"].values())
    assert found["seconds_waited"]["high"] == 0.5 * found["waits"]["high"]
    guards = 'max_steps = 3\n\n[guards]\nnever_break = ["t126"]\n'
    folder = with_optimizer(small, 'name = "PatchSearch"\nlanes = 2', guards)
    guarded = json.loads(cli("estimate", folder, "--json").stdout)
    assert guarded["calls"]["forward"]["high"] > found["calls"]["forward"]["high"]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("TGD", "PatchSearch")])
def test_a_search_runs_from_the_command_line(
    small: Any, cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """One flag compares another optimizer on the user's own task; the run folder can be shown afterwards."""
    monkeypatch.chdir(tmp_path)  # a path is not broken over lines, however long it is
    run = Path("run")
    limited = small(("max_epochs = 1", "max_epochs = 1\nmax_steps = 4"))
    result = cli("train", limited, "--optimizer", name, "--run-dir", run)
    assert result.exit_code == 0, result.output
    body = json.loads((run / "config.json").read_text(encoding="utf-8"))
    assert body["config"]["optimizer"]["name"] == name
    shown = cli("show", run)
    assert shown.exit_code == 0
    assert "Finished after" in shown.stdout
    assert all(len(line) <= 80 for line in (result.stdout + result.stderr).splitlines())


OWN = '''"""Optimizers of one's own."""
from textgrad_engine import optim


class Append(optim.Optimizer):
    """Adds what was said."""

    def __init__(self, params, most=3, seed=None):
        super().__init__(params, {"most": most})
        self.seed = seed

    def step(self, closure=None):
        for variable in self.variables():
            said = [item.data for item in variable.grad][: self.group_of(variable)["most"]]
            variable.data = "\\\\n".join([variable.data, *said])


def patient(params, max_edits=2):
    return optim.TGD(params, max_edits=max_edits, constraints=["Be patient."])


def nothing(params):
    return None


number = 5
'''


def with_own(small: Any, table: str) -> Path:
    folder = with_optimizer(small, table)
    (folder / "own.py").write_text(OWN, encoding="utf-8")
    return folder


def test_an_optimizer_of_ones_own_is_named_by_its_module(small: Any) -> None:
    """A class, or a function that composes one; it gets all other keys, and the seed of the run where it takes one."""
    config = load_config(with_own(small, 'name = "own:Append"\nmost = 2'))
    program = build.make_program(config)
    optimizer = build.make_optimizer(config, program)
    assert (type(optimizer).__name__, optimizer.param_groups[0]["most"]) == ("Append", 2)
    assert optimizer.seed == config.seed  # type: ignore[attr-defined]
    assert [each.role for each in optimizer.variables()] == ["system prompt"]
    again = type(config).of(json.loads(json.dumps(config.resolved())), config.path)  # as `resume` reads a run's
    assert type(build.make_optimizer(again, program)).__name__ == "Append"
    assert type(build.make_optimizer(config, program, feedback=False)) is optim.RandomSearch
    other = build.make_optimizer(config.with_overrides(optimizer="own:patient"), program)
    assert (type(other), other.param_groups[0]["constraints"]) == (optim.TGD, ("Be patient.",))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('name = "own:Apend"', r"has no 'Apend'; did you mean 'Append'\?"),
        ('name = "own:number"', "that cannot be called: 5"),
        ('name = "own:Append"\nmots = 2', r"takes \(params, most=3, seed=None\): got an unexpected keyword .*'mots'"),
        ('name = "own:Append"\nconstraints = ["Be kind."]', "constraints is for the library's own optimizers"),
        ('name = "own:Append"\ncontracts = {forbids = ["x"]}', "contracts is for the library's own optimizers"),
    ],
)
def test_what_makes_no_optimizer_is_refused_before_anything_is_asked(small: Any, table: str, words: str) -> None:
    """With the line of the file."""
    with pytest.raises(ConfigError, match=rf"(?s)config\.toml:\d+: \[optimizer\] name = 'own:\w+': .*{words}"):
        load_config(with_own(small, table))


def test_what_gives_no_optimizer_is_named(small: Any) -> None:
    """It is found when the optimizer is made, which is before anything is asked, too."""
    config = load_config(with_own(small, 'name = "own:nothing"'))
    with pytest.raises(ConfigError, match=r"\[optimizer\] name = 'own:nothing': that gave no optimizer but None"):
        build.make_optimizer(config, build.make_program(config))


def test_a_name_that_is_none_lists_that_it_may_be_ones_own(small: Any) -> None:
    """Who looks for the way finds it in the error."""
    with pytest.raises(ConfigError, match=r"should be one of 'TGD', .*, 'module:name'"):
        load_config(with_own(small, 'name = "Annealing"'))


def test_an_optimizer_is_called_what_its_class_is() -> None:
    """The names stand in a list of their own, as help needs no more of an optimizer."""
    assert [(settings_for(name) or BaseSettings).of.__name__ for name in NAMES] == list(NAMES)
