"""docs/config.md: every key that a config may have stands there with its default, and what stands there is accepted."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from textgrad_engine.cli.config import Config
from textgrad_engine.cli.config_data import read_data
from textgrad_engine.cli.config_file import load_config
from textgrad_engine.cli.model_tables import Endpoint, ModelPrice, Sampling
from textgrad_engine.cli.optimizer_names import NAMES
from textgrad_engine.cli.optimizer_parts import Schedule
from textgrad_engine.cli.optimizers import BaseSettings, settings_for
from textgrad_engine.cli.settings import Contracts, Metric, OfPrompt

PAGE = (Path(__file__).parents[2] / "docs" / "config.md").read_text(encoding="utf-8")
PARTS = dict(re.findall(r"^##+ ([^\n]*)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
EXAMPLES = [
    pytest.param(block, id=f"{title}-{number}".replace("`", ""))
    for title, text in PARTS.items()
    for number, block in enumerate(re.findall(r"^```toml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL), 1)
]
NONE, MUST = "*none*", "—"


def rows(title: str) -> dict[str, str]:
    """The keys that stand under a heading, each with its default as it stands there."""
    return dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|", PARTS[title], re.MULTILINE))


def written(value: Any) -> Any:
    """A default as the page has it."""
    return NONE if value is None or value == () else value


def fields_of(table: type[BaseModel], *without: str) -> dict[str, Any]:
    """The keys of a table in the code, each with its default."""
    found = {}
    for name, field in table.model_fields.items():
        if name not in without:
            default = MUST if field.is_required() else field.get_default(call_default_factory=True)
            found[field.alias or name] = written(default)
    return found


def of_optimizer(name: str) -> dict[str, Any]:
    """Those that an optimizer has besides what all have; what a config does not set has the optimizer's own default."""
    settings = settings_for(name)
    assert settings is not None
    takes = inspect.signature(settings.of.__init__).parameters
    own = fields_of(settings, *BaseSettings.model_fields, "name")
    defaults = {key: written(takes[key].default) for key in own if key in takes}
    return {key: defaults.get(key, default) if default == NONE else default for key, default in own.items()}


def tables() -> Iterator[tuple[str, dict[str, Any]]]:
    """What the code accepts, by the heading that it stands under."""
    sections = {name: field.annotation for name, field in Config.model_fields.items()}
    inner = {"models": ("config", "prices", "headers", "endpoints")}
    yield "Above the first table", fields_of(Config, *(set(sections) - {"seed", "prompts"}))
    for name, table in sections.items():
        if inspect.isclass(table) and issubclass(table, BaseModel):
            yield f"`[{name}]`", fields_of(table, *inner.get(name, ()))
    yield "`[metric]`, or several `[[metric]]`", fields_of(Metric)
    yield "`[models.endpoints.NAME]`", fields_of(Endpoint, "config", "headers")
    yield "`[models.config]`", fields_of(Sampling)
    yield "`[models.prices.NAME]`", fields_of(ModelPrice)
    yield "`[optimizer]`", {"name": NAMES[0], **fields_of(BaseSettings, "contracts", "prompts")}
    for name in NAMES:
        yield f"`{name}`", of_optimizer(name)
    yield "`[optimizer.schedule]`", fields_of(Schedule)
    yield "`[optimizer.contracts]`", fields_of(Contracts)
    yield "`[optimizer.prompts.NAME]`", fields_of(OfPrompt, *Contracts.model_fields)


ACCEPTED = dict(tables())


@pytest.mark.parametrize("title", ACCEPTED)
def test_every_key_of_a_table_stands_there_with_its_default(title: str) -> None:
    """And no other: what the page promises is accepted, and what is accepted can be found."""
    told = rows(title)
    assert set(told) == set(ACCEPTED[title])
    for key, default in ACCEPTED[title].items():
        shown = told[key] if told[key] in (NONE, MUST) else tomllib.loads(f"value = {told[key].strip('`')}")["value"]
        assert shown == default, key


def test_every_table_of_the_page_is_one_of_the_code() -> None:
    """Keys under a heading that no test looks at would be promises that nobody keeps."""
    assert {title for title in PARTS if rows(title)} == set(ACCEPTED)


def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    both = {**first, **second}
    for key in first.keys() & second.keys():
        if isinstance(first[key], dict) and isinstance(second[key], dict):
            both[key] = merged(first[key], second[key])
    return both


@pytest.mark.parametrize("block", EXAMPLES)
def test_every_example_of_the_page_is_accepted(block: str, tmp_path: Path) -> None:
    """Put into the page's own config, with its data."""
    for name, body in re.findall(r"^```\w+ (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        (tmp_path / name).write_text(body, encoding="utf-8")
    whole = tomllib.loads((tmp_path / "mail.toml").read_text(encoding="utf-8"))
    config = Config.of(merged(whole, tomllib.loads(block)), load_config(tmp_path / "mail.toml").path)
    assert read_data(config)
