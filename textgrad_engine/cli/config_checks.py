"""What in a config goes together, and what is there: the checks that need more than one key, or look outside of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from textgrad_engine.cli.config_errors import table_of
from textgrad_engine.cli.metric_checks import check_metrics
from textgrad_engine.cli.model_tables import Endpoint, problem_of_address
from textgrad_engine.cli.optimizers import OwnSettings, ParetoSearchSettings
from textgrad_engine.cli.toml_lines import Keys
from textgrad_engine.data.names import suggest
from textgrad_engine.data.paths import missing_file
from textgrad_engine.llm.headers import problem_of_name, problem_of_value
from textgrad_engine.nn.tool import Tool
from textgrad_engine.report.toml import toml_key, toml_value
from textgrad_engine.slots import SLOT_NAMES, doubled, slots_of

if TYPE_CHECKING:
    from textgrad_engine.cli.config import Config


_OF_CALLS = {
    "response_format": ("the form", "response_format=..."),
    "tools": ("the tools", "tools=..."),
    "train_tools": ("which tools are trained", "tools=[nn.Tool(...)]"),
    "max_turns": ("the most turns", "max_turns=..."),
}
"""Keys of `[program]` about the one call that there is, what a class says instead of them, and how."""


def _check_program(config: Config) -> None:
    keys = ("system", "system_file", "user", *_OF_CALLS)
    texts = [key for key in keys if getattr(config.program, key) is not None]
    if config.program.class_ is not None:
        _check_class(config, texts)
    else:
        _check_call(config, texts)


def _check_class(config: Config, texts: Sequence[str]) -> None:
    """The program is a class of the user's.

    Args:
        config: names it.
        texts: the keys of `[program]` that are about the one call of other programs, as far as they are there.
    """
    if texts and texts[0] in _OF_CALLS:
        config.fail(
            f"[program] has class and {texts[0]}; the class says {_OF_CALLS[texts[0]][0]} of each of its calls, as "
            f"nn.ChatCompletion(..., {_OF_CALLS[texts[0]][1]}), so take it out here",
            "program",
            texts[0],
        )
    if texts:
        config.fail(f"[program] has class and {texts[0]}; a program is the one or the other", "program", texts[0])
    _check_notes(config, "class")
    required, optional = config.columns()
    needed = () if config.may_lack_target else optional
    for target in [name for name in config.target_columns() if name in (*required, *needed)]:
        config.fail(
            f"[program] class = {config.program.class_!r}: its forward names {target}, the answer by "
            f"{config.target_key(target)}; take it out",
            "program",
            "class",
        )


def _check_call(config: Config, texts: Sequence[str]) -> None:
    """The program is one call; `texts` are the keys that are there of those about it."""
    program = config.program
    runs = any(map(callable, config.tools() or ()))
    if program.max_turns is not None and not runs:
        config.fail(
            "[program] max_turns limits the turns of a model with functions as tools, and there are none; take it out",
            "program",
            "max_turns",
        )
    if program.train_tools and not any(isinstance(tool, Tool) for tool in config.offered() or ()):
        config.fail(
            "[program] train_tools trains the descriptions of functions, and there are no functions among its tools; "
            "take it out",
            "program",
            "train_tools",
        )
    if "system" in texts and "system_file" in texts:
        config.fail("[program] has system and system_file; take one of them out", "program", "system_file")
    for key, example in (("system", 'system = "..." or system_file = "prompt.txt"'), ("user", 'user = "{question}"')):
        if not any(name.startswith(key) for name in texts):
            config.fail(f'[program] lacks {example}; or give class = "module:Class" instead of both', "program")
    slots = slots_of(program.user or "")
    if not slots:
        braces = re.search(r"(?<!\{)\{[^{}\n]+\}(?!\})", program.user or "")
        why = f"{braces[0]} is text, as {SLOT_NAMES}" if braces else doubled(program.user or "")
        config.fail(
            "[program] user has no {slot} that a column of the data fills, such as {question}"
            + (f"; {why}" if why else ""),
            "program",
            "user",
        )
    _check_notes(config, "user")
    required, optional = config.columns()
    for target in [name for name in config.target_columns() if name in (*required, *optional)]:
        key = "user" if target in required else program.system_key
        config.fail(
            f"[program] {key} shows the model {{{target}}}, the answer by {config.target_key(target)}; take it out",
            "program",
            key,
        )


def _check_notes(config: Config, key: str) -> None:
    """What people noted is for who gives feedback.

    Args:
        config: names the column.
        key: that says what the program is shown.
    """
    notes = config.data.notes
    if notes is not None and any(notes in columns for columns in config.columns()):
        config.fail(
            f"[program] {key} shows the model {{{notes}}}, people's notes ([data] notes); take it out",
            "program",
            key,
        )


def _check_files(config: Config) -> None:
    seen: dict[Path, str] = {}
    for key in ("train", "val", "test"):
        name = getattr(config.data, key)
        if name is None:
            continue
        file = config.file(name)
        if not file.is_file():
            hint = "" if name.isprintable() else r"; in double quotes '\t' is a tab, so write the path in single quotes"
            config.fail(f"[data] {key} = {name!r}: {missing_file(file)}{hint}", "data", key)
        if (earlier := seen.setdefault(file.resolve(), key)) != key:
            tested = key == "val" and config.data.test is not None
            without = "; or leave val out, then the training examples validate, too" if tested else ""
            config.fail(f"[data] {key} is the file of {earlier}; split it into two files{without}", "data", key)
    if config.data.image_detail is not None and not config.data.images:
        config.fail(
            "[data] image_detail means nothing without images; name the columns with images, such as "
            'images = ["photo"], or take it out',
            "data",
            "image_detail",
        )
    if config.prompts is not None and not config.file(config.prompts).is_dir():
        config.fail(
            f"prompts: there is no folder {config.file(config.prompts)}; make it, or take the key out", "prompts"
        )


def _endpoints(config: Config) -> Iterator[tuple[Keys, Endpoint]]:
    """Each endpoint, with the keys that lead to its table."""
    yield ("models",), config.models
    for name, own in config.models.endpoints.items():
        yield ("models", "endpoints", name), own


def _check_endpoints(config: Config) -> None:
    """Addresses and headers can be used; what comes from the environment is looked for when models are made."""
    for keys, own in _endpoints(config):
        _check_address(config, keys, own.base_url)
        _check_headers(config, (*keys, "headers"), own.headers)


def _check_address(config: Config, keys: Keys, url: str | None) -> None:
    if url is not None and (problem := problem_of_address(url)):
        config.fail(f"{table_of(keys)} {problem}", *keys, "base_url")


def _check_headers(config: Config, keys: Keys, headers: Mapping[str, Any]) -> None:
    seen: dict[str, str] = {}
    for name, value in headers.items():
        problem = problem_of_name(name)
        if not problem and isinstance(value, str):
            problem = problem_of_value(value)
        if not problem and (other := seen.setdefault(name.lower(), name)) != name:
            problem = f"is there as {other} already; names of headers do not differ in case"
        if problem:
            config.fail(f"{table_of(keys)} {toml_key(name)} {problem}", *keys, name)


def _check_names(config: Config) -> None:
    """Prices and endpoints are those of models that are asked: where a name is misspelt, another one would count."""
    names = list(config.models.roles().values())
    for table in ("prices", "endpoints"):
        for name in getattr(config.models, table):
            if name not in (*names, *config.models_said):
                keys, asked = ("models", table, name), ", ".join(dict.fromkeys(names))
                config.fail(
                    f"{table_of(keys)} is no model of this config, which asks {asked}"
                    f"{suggest(name, names) or f'; take it out, or ask that model, with --model {name}'}",
                    *keys,
                )


def _check_optimizer(config: Config) -> None:
    """An optimizer of the user's own is imported, and can be made of what the file says."""
    own = config.optimizer
    if isinstance(own, OwnSettings):
        try:
            own.take(config.import_named(own.name, "optimizer", "name"))
        except TypeError as error:
            config.fail(f"[optimizer] name = {own.name!r}: {error}", "optimizer", "name")


def _check_frontier(config: Config) -> None:
    """What is best by one of several metrics, or criteria, can be kept where there are several."""
    own, metrics = config.optimizer, [metric for _, metric in config.metrics()]
    several = len(metrics) > 1 or len(metrics[0].criteria or ()) > 1
    if isinstance(own, ParetoSearchSettings) and own.frontier not in (None, "instance") and not several:
        config.fail(
            f"[optimizer] frontier = {toml_value(own.frontier)} keeps the texts that are best by one of several "
            "metrics, and there is one; write several [[metric]], or a rubric with criteria, or take it out",
            "optimizer",
            "frontier",
        )


Idle: TypeAlias = tuple[str, str, str]
"""A table, a key in it that has no effect on a run of the config, and what is said of it where it is in the file."""

_SHOWING = "demonstrations"
"""The way to show solved examples, for which nobody reads what is said of answers."""

_MODES_OF = {
    "max_edits": ("patch",),
    "schedule": ("patch",),
    "momentum": ("rewrite", "patch"),
    **dict.fromkeys(("transforms", "max_feedback_tokens", "feedback_batch_size"), ("rewrite", "patch")),
}
"""The ways to write new texts to which a key of [optimizer] means something."""


def idle_keys(config: Config) -> Iterator[Idle]:
    """The keys without effect: refused in a file, and not written down as what a run was set to."""
    yield from _idle_in_mode(config)
    yield from _idle_in_search(config)
    yield from _idle_without_critic(config)
    if not config.guards.never_break:
        why = (
            "means nothing without never_break, as floors go by one run of each example; take it out, or name examples"
        )
        yield "guards", "reruns", why
        yield "guards", "passing", "means nothing without never_break; take it out, or name examples"


def _idle_in_mode(config: Config) -> Iterator[Idle]:
    """Who writes a text anew makes no edits, and who asks nobody shows nothing."""
    mode = config.optimizer.way
    for key, modes in _MODES_OF.items():
        if mode is not None and mode not in modes:
            others = " or ".join(f'"{each}"' for each in modes)
            yield "optimizer", key, f'means nothing with mode = "{mode}"; take it out, or write mode = {others}'


def _idle_in_search(config: Config) -> Iterator[Idle]:
    """What a search does otherwise by itself."""
    has = type(config.optimizer).model_fields
    for key in config.optimizer.idle_in_train:
        instead = f"; set {key} in [optimizer]" if key in has else ""
        if key == "max_epochs":
            instead = "; limit [train] max_steps, or a [budget]"
        who = f"{config.optimizer.name}, which draws its own minibatches and ends by itself"
        yield "train", key, f"means nothing to {who}; take it out{instead}"


def _idle_without_critic(config: Config) -> Iterator[Idle]:
    """How a critic is asked, where none is."""
    if not config.train.critic:
        for table, key in (
            ("train", "feedback_batch_size"),
            ("train", "feedback_images"),
            ("optimizer", "feedback_batch_size"),
        ):
            yield table, key, "means nothing with [train] critic = false, which asks no critic; take it out"
    elif not _hears_a_critic(config):
        who = f"{_named(config)}, which asks no critic"
        yield "train", "feedback_images", f"means nothing to {who}; take it out"
    if not _hears_a_critic(config):
        yield "data", "notes", f"means nothing to {_named(config)}, which hears no feedback; take it out"


def _hears_a_critic(config: Config) -> bool:
    """Whether the optimizer works from what is said of answers, as far as is known of it."""
    own = config.optimizer
    return isinstance(own, OwnSettings) or ("transforms" in type(own).model_fields and own.way != _SHOWING)


def _named(config: Config) -> str:
    """The optimizer, with what it is set to where that is why it asks no critic."""
    own = config.optimizer
    return f'{own.name} with mode = "{_SHOWING}"' if own.way == _SHOWING else str(own.name)


def _check_idle(config: Config) -> None:
    """Nothing in the file is without effect."""
    for table, key, why in idle_keys(config):
        if config.has_line(table, key):
            config.fail(f"[{table}] {key} {why}", table, key)


def _check_critic(config: Config) -> None:
    """Whether there is one makes a difference."""
    if not config.train.critic and not _hears_a_critic(config):
        who = f"{_named(config)}, which asks no critic"
        config.fail(
            f"[train] critic = false (--no-critic) means nothing to {who}; take it out",
            "train",
            "critic",
        )


CHECKS: tuple[Callable[[Config], None], ...] = (
    _check_endpoints,
    _check_names,
    _check_files,
    check_metrics,
    _check_program,
    _check_critic,
    _check_optimizer,
    _check_frontier,
    _check_idle,
)
"""Each takes a config, and raises a ConfigError where something in it does not go with the rest."""
