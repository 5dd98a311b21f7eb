"""The tables [optimizer.prompts.NAME]: what one of several prompts must keep, and its own limit of tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from textgrad_engine.cli import build
from textgrad_engine.cli.config import Config
from textgrad_engine.cli.config_data import read_data
from textgrad_engine.cli.config_file import load_config
from textgrad_engine.cli.optimizer_names import NAMES
from textgrad_engine.errors import ConfigError
from textgrad_engine.optim.contracts import Forbids, FrozenLines, Language, NoCopying, Placeholders, Requires

PROGRAM = """
from textgrad_engine import nn

class Sorter(nn.Module):
    def __init__(self):
        super().__init__()
        self.reader = nn.ChatCompletion(
            "{ticket}", system=nn.Parameter("Say what it is about.\\nBe brief.", role="prompt of the reader")
        )
        self.sorter = nn.ChatCompletion(
            "{about}", system=nn.Parameter("Name the queue.\\nAnswer in JSON.", role="prompt of the sorter")
        )

    def forward(self, ticket):
        return self.sorter(about=self.reader(ticket=ticket))
"""
OF_STEPS = "max_epochs = 1\nbatch_size = 6\n"


@pytest.fixture
def two(small: Any) -> Any:
    """Makes a config of two prompts, with a table [optimizer] of one's own."""

    def make(table: str, program: str = PROGRAM) -> Config:
        path: Path = small() / "config.toml"
        (path.parent / "program.py").write_text(program, encoding="utf-8")
        text = path.read_text(encoding="utf-8").replace('name = "TGD"\nmax_edits = 12', table)
        start, end = text.index("[program]"), text.index("[data]")
        text = text[:start] + '[program]\nclass = "program:Sorter"\n\n' + text[end:]
        path.write_text(text if "TGD" in table else text.replace(OF_STEPS, ""), encoding="utf-8")
        return load_config(path)

    return make


def groups(config: Config, *, feedback: bool = True) -> list[dict[str, Any]]:
    train, _, _ = read_data(config)
    return build.make_optimizer(config, build.make_program(config), train, feedback=feedback).param_groups


TABLES = """
constraints = ["Be polite."]
max_tokens = 300

[optimizer.contracts]
language = "en"

[optimizer.prompts."sorter.system"]
requires = ["JSON"]
frozen = ["Answer in JSON."]
no_copying = true
constraints = ["Name one queue."]
max_tokens = 50
"""


@pytest.mark.parametrize("feedback", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_what_one_prompt_must_keep_is_not_asked_of_another(two: Any, name: str, feedback: bool) -> None:
    """What all must keep is asked of both; so it is with every optimizer, its control, and from a run folder."""
    config = two(f'name = "{name}"\n{TABLES}')
    again = Config.of(config.resolved(), config.path)
    for each in (config, again):
        reader, sorter = groups(each, feedback=feedback)
        assert [variable.role for variable in (*reader["params"], *sorter["params"])] == [
            "prompt of the reader",
            "prompt of the sorter",
        ]
        assert reader["constraints"] == ("Be polite.", Language("en"))
        *kept, copied = sorter["constraints"]
        assert kept == [
            "Be polite.", "Name one queue.", Language("en"), Requires(["JSON"]), FrozenLines(["Answer in JSON."]),
        ]  # fmt: skip
        assert isinstance(copied, NoCopying)
        assert (reader["max_tokens"], sorter["max_tokens"]) == (300, 50)


def test_another_optimizer_on_the_command_line_keeps_them(two: Any) -> None:
    """As it keeps all that every optimizer has."""
    config = two(f'name = "TGD"\n{TABLES}').with_overrides(optimizer="OPRO")
    assert Requires(["JSON"]) in groups(config)[1]["constraints"]


def test_without_tables_there_is_one_group(two: Any) -> None:
    """What is asked of all is asked of all."""
    (group,) = groups(two('name = "TGD"\n[optimizer.contracts]\nforbids = ["please"]'))
    assert (len(group["params"]), group["constraints"]) == (2, (Forbids(["please"]),))


UNKNOWN = "[optimizer.prompts] names 'sorter.sytem', and no prompt that is trained has that name; did you mean 'sorter."
SHARED = (
    "requires: the prompt 'sorter.system' keeps 'JSON', and 'reader.system' does not, so nothing new in that one "
    'would be kept; put it into [optimizer.prompts."sorter.system"]'
)
QUOTES = "has no key 'system'; a name with dots stands in quotes: [optimizer.prompts.\"sorter.system\"]"
PROBLEMS = {
    "a prompt that is none": (
        '[optimizer.prompts."sorter.sytem"]\nrequires = ["JSON"]',
        UNKNOWN,
    ),
    "dots without quotes": ('[optimizer.prompts.sorter.system]\nrequires = ["JSON"]', QUOTES),
    "a key that is misspelt": (
        '[optimizer.prompts."sorter.system"]\nrequire = ["JSON"]',
        "[optimizer.prompts.\"sorter.system\"] has no key 'require'; did you mean 'requires'?",
    ),
    "a number out of range": (
        '[optimizer.prompts."sorter.system"]\nmax_tokens = 0',
        '[optimizer.prompts."sorter.system"] max_tokens = 0: should be greater than 0',
    ),
    "a line of another prompt": (
        '[optimizer.prompts."sorter.system"]\nfrozen = ["Be brief."]',
        "[optimizer.prompts.\"sorter.system\"] frozen: the prompt 'sorter.system' never has the line 'Be brief.'",
    ),
    "a pattern that is none": (
        '[optimizer.prompts."sorter.system"]\nmatches = "("',
        '[optimizer.prompts."sorter.system"] matches: Matches:',
    ),
    "a phrase that one prompt has, asked of all": (
        '[optimizer.contracts]\nrequires = ["JSON"]',
        SHARED,
    ),
    "a slot of the user message, asked of the prompt": (
        '[optimizer.prompts."sorter.system"]\nplaceholders = ["about"]',
        "[optimizer.prompts.\"sorter.system\"] placeholders: the prompt 'sorter.system' never has the slot {about}, so",
    ),
    "a pattern that one prompt matches, asked of all": (
        '[optimizer.contracts]\nmatches = "brief"',
        "[optimizer.contracts] matches: the prompt 'reader.system' keeps 'brief', and",
    ),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_what_cannot_be_used_is_said_with_its_line(two: Any, problem: str) -> None:
    """Before a call is paid for."""
    table, said = PROBLEMS[problem]
    with pytest.raises(ConfigError) as caught:
        groups(two(f'name = "TGD"\n{table}'))
    assert said in str(caught.value)
    number = int(str(caught.value).split(".toml:")[1].split(":")[0])
    assert number > 0


@pytest.mark.parametrize("table", ["contracts", 'prompts."sorter.system"'])
def test_a_slot_that_a_prompt_has_may_be_asked_of_it_and_not_of_all(two: Any, table: str) -> None:
    """As nothing new in the other one would have it."""
    program = PROGRAM.replace("Name the queue.", "Name the queue of {about}.")
    config = two(f'name = "TGD"\n[optimizer.{table}]\nplaceholders = ["about"]', program)
    if table == "contracts":
        with pytest.raises(ConfigError) as caught:
            groups(config)
        assert (
            "[optimizer.contracts] placeholders: the prompt 'sorter.system' keeps '{about}', and 'reader.system' does "
            "not" in str(caught.value)
        )
    else:
        assert [Placeholders(["about"]) in group["constraints"] for group in groups(config)] == [False, True]


def test_what_no_prompt_has_yet_may_be_asked_of_all(two: Any) -> None:
    """It is for the optimizer to put it in."""
    assert Requires(["XML"]) in groups(two('name = "TGD"\n[optimizer.contracts]\nrequires = ["XML"]'))[0]["constraints"]
