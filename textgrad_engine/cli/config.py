"""The config file: what to optimize, on which data, by which score, with which models and for how much money.

Everything that can be wrong is found before a call is paid for, and said with the file, the line and the repair.
"""

from __future__ import annotations

import inspect
import re
import tomllib
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn, Self
from urllib.parse import urlsplit

from pydantic import PrivateAttr, ValidationError

from textgrad_engine.callables import signature_of
from textgrad_engine.cli import user_code
from textgrad_engine.cli.optimizers import NAMES, AnyOptimizer, BaseSettings, OwnSettings, TGDSettings, settings_for
from textgrad_engine.cli.secrets_in import refuse_secrets
from textgrad_engine.cli.settings import (
    Budget,
    Data,
    Guards,
    Metric,
    Models,
    Program,
    Section,
    Train,
    explain,
    keys_of,
)
from textgrad_engine.cli.toml_lines import Keys, key_lines, line_of, place, syntax_error
from textgrad_engine.data.dataset import suggest
from textgrad_engine.data.load import missing_file, read_text
from textgrad_engine.errors import ConfigError, DataError
from textgrad_engine.llm.openai import checked_host
from textgrad_engine.nn.loss import names_inputs, takes_target
from textgrad_engine.templates import SLOT_NAMES, slots_of

__all__ = ["Config", "load_config"]


class Config(Section):
    """A config file that was read and checked; make one with `load_config`."""

    seed: int = 0
    prompts: str | None = None
    program: Program
    data: Data
    metric: Metric = Metric()
    models: Models
    optimizer: AnyOptimizer = TGDSettings()
    train: Train = Train()
    guards: Guards = Guards()
    budget: Budget = Budget()
    _path: Path = PrivateAttr(default=Path("config.toml"))
    _lines: dict[Keys, int] = PrivateAttr(default_factory=dict)

    @classmethod
    def of(cls, values: Mapping[str, Any], path: Path, lines: Mapping[Keys, int] | None = None) -> Self:
        """Check plain values, such as those of `resolved`, as if they had been read from the file `path`.

        Raises:
            ConfigError: a value is missing, unknown, of the wrong type, or does not go with the others.
        """
        lines = dict(lines or {})
        refuse_secrets(values, path, lines)
        try:
            config = cls.model_validate(dict(values))
        except ValidationError as error:
            found = sorted((line_of(lines, keys_of(item, cls)), explain(item, cls)) for item in error.errors())
            raise ConfigError("\n".join(place(path, line, lines) + text for line, text in found)) from None
        config._path, config._lines = path, lines
        for check in _CHECKS:
            check(config)
        return config

    @property
    def path(self) -> Path:
        """The config file."""
        return self._path

    @property
    def folder(self) -> Path:
        """Its folder, which relative paths in it count from."""
        return self._path.parent

    def file(self, name: str) -> Path:
        """A path that the file names, seen from where the program runs."""
        return self.folder / name

    def fail(self, message: str, *keys: str | int) -> NoReturn:
        """Raise a ConfigError about one key, with the file and the key's line.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(self.place_of(*keys) + message)

    def place_of(self, *keys: str | int) -> str:
        """The file and the line of one key, as messages begin."""
        return place(self._path, line_of(self._lines, keys), self._lines)

    def system_text(self) -> str | None:
        """The seed prompt: ``system``, or what ``system_file`` holds without the line break at its end."""
        if self.program.system_file is None:
            return self.program.system
        file = self.file(self.program.system_file)
        if not file.is_file():
            self.fail(f"[program] system_file: {missing_file(file)}", "program", "system_file")
        try:
            return read_text(file).replace("\r\n", "\n").removesuffix("\n")
        except DataError as error:
            self.fail(f"[program] system_file: {error}", "program", "system_file")

    def program_class(self) -> type[Any] | None:
        """The class that ``class`` names, imported; None for a program of two prompts."""
        if self.program.class_ is None:
            return None
        found = self._import(self.program.class_, "program", "class")
        if not inspect.isclass(found):
            self.fail(f"[program] class = {self.program.class_!r} is no class but {found!r}", "program", "class")
        return found

    def metric_function(self) -> Callable[..., Any] | None:
        """The function that ``[metric] function`` names, imported; None when the metric is another."""
        if self.metric.function is None:
            return None
        found = self._import(self.metric.function, "metric", "function")
        if not callable(found):
            self.fail(f"[metric] function = {self.metric.function!r} cannot be called: {found!r}", "metric", "function")
        function: Callable[..., Any] = found
        try:
            signature = signature_of(function)
        except ValueError:  # what is written in C may not tell what it takes
            return function
        try:
            given = ("", "") if takes_target(function) else ("",)
            signature.bind(*given, **({"inputs": {}} if names_inputs(function) else {}))
        except TypeError as error:
            self.fail(
                f"[metric] function = {self.metric.function!r} is called with the answer and the target, and takes "
                f"{signature}: {error}",
                "metric",
                "function",
            )
        return function

    def model(self, name: str) -> Any:
        """The model object that ``"module:name"`` names, imported; any other name, and one with an address, as it is.

        Raises:
            ImportError: it is not there, or its module fails.
            TypeError: what is there is no model.
        """
        if self.models.base_url is not None or not user_code.is_spec(name):
            return name
        try:
            found = self._imported(name)
        except ImportError as error:
            raise ImportError(
                f"{error}. This names a model of your own, as module:name; a server's model of that name needs the "
                "address: base_url in [models], or --base-url http://localhost:11434/v1"
            ) from None
        named = isinstance(getattr(found, "name", None), str)
        if inspect.isclass(found) or not (named and callable(getattr(found, "complete", None))):
            raise TypeError(
                f"that is no model but {found!r}; a model has a name and `async def complete(self, request)`, such as "
                "testing.FunctionModel(function)"
            )
        return found

    def input_columns(self) -> tuple[str, ...]:
        """The columns that the program wants: the slots of ``user``, or what the class's `forward` names."""
        return self.columns()[0]

    @property
    def may_lack_target(self) -> bool:
        """Whether the metric can do without targets: a judge, or a function of answer and ``inputs`` alone.

        Not where the file says which column holds them.
        """
        if self.data.target != "target":
            return False
        function = self.metric_function()
        return self.metric.kind == "judge" if function is None else not takes_target(function)

    def columns(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The columns that the program wants, and those that it is given where the data has them."""
        if self.program.user is not None:
            wanted = slots_of(self.program.user)
            return wanted, tuple(name for name in slots_of(self.system_text() or "") if name not in wanted)
        forward = getattr(self.program_class(), "forward", None)
        if not callable(forward):
            self.fail(f"[program] class = {self.program.class_!r} has no method forward; add one", "program", "class")
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        named = [each for each in list(signature_of(forward).parameters.values())[1:] if each.kind in kinds]
        return (
            tuple(each.name for each in named if each.default is each.empty),
            tuple(each.name for each in named if each.default is not each.empty),
        )

    def resolved(self) -> dict[str, Any]:
        """Every setting as plain JSON values, defaults included; `of` reads them back. Paths count from `folder`."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    def with_overrides(
        self,
        *,
        model: str | None = None,
        base_url: str | None = None,
        limits: Budget | None = None,
        seed: int | None = None,
        optimizer: str | None = None,
    ) -> Self:
        """A copy with what the command line says; None leaves the file's value.

        Args:
            model: does every role, also those that the file gives to another model.
            base_url: the endpoint of every role.
            limits: of the budget; those that are None stay as they are.
            seed: of the run.
            optimizer: another optimizer; it keeps what all of them have, and has its own defaults for the rest.

        Raises:
            ConfigError: a value is outside of its range.
        """
        values = self.resolved()
        if model is not None:
            values["models"] = self.models.of(model).model_dump(mode="json", exclude_none=True)
        if base_url is not None:
            values["models"] = {**values["models"], "base_url": base_url}
        said = {} if limits is None else limits.model_dump(exclude_none=True)
        values["budget"] = {**values["budget"], **said}
        if seed is not None:
            values["seed"] = seed
        if optimizer not in (None, self.optimizer.name):
            values["optimizer"] = _of_another(values["optimizer"], optimizer)
        try:
            changed = type(self).of(values, self._path)
        except ConfigError as error:
            given = any(value is not None for value in (model, base_url, seed, optimizer)) or said
            raise ConfigError(f"{error} (as changed on the command line)" if given else str(error)) from None
        changed._lines = self._lines
        return changed

    def _import(self, spec: str, *keys: str) -> Any:
        try:
            return self._imported(spec)
        except ImportError as error:
            self.fail(f"[{keys[0]}] {keys[1]} = {spec!r}: {error}", *keys)

    def _imported(self, spec: str) -> Any:
        """What ``"module:name"`` names.

        Raises:
            ImportError: it is not there, or its module fails; said in words, with the line in the user's code.
        """
        try:
            return user_code.import_beside(spec, self.folder)
        except Exception as error:  # the module is the user's own code, and may raise anything
            last = traceback.extract_tb(error.__traceback__)[-1]
            what = str(error) if type(error) is ImportError else f"{type(error).__name__}: {error}"
            if last.filename != user_code.__file__ and not last.filename.startswith("<frozen"):
                what += f" ({last.filename}:{last.lineno})"
            raise ImportError(what) from None


def load_config(path: str | Path) -> Config:
    """Read and check a config file; the data is read by `config_data.read_data`.

    Args:
        path: a ``.toml`` file, or a folder that holds a ``config.toml``.

    Raises:
        ConfigError: anything in it cannot be used; every message names file, line and repair.
    """
    path = Path(path)
    if path.is_dir():
        others = sorted(file.name for file in path.glob("*.toml"))
        path /= "config.toml"
        if not path.is_file() and others:
            raise ConfigError(f"{path}: there is no such file; name one of {', '.join(others)}, or rename it")
        if not path.is_file():
            raise ConfigError(f"{path}: there is no such file; name a folder that holds one, or another .toml file")
    if not path.is_file():
        raise ConfigError(f"{missing_file(path)}; a config is a .toml file, or a folder that holds config.toml")
    if path.suffix.lower() != ".toml":
        raise ConfigError(f"{path}: a config is a .toml file, or a folder that holds config.toml")
    try:
        text = read_text(path).replace("\r\n", "\n")
    except DataError as error:
        raise ConfigError(str(error)) from None
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(syntax_error(path, text, str(error))) from None
    except RecursionError:
        raise ConfigError(f"{path}:1: the file is nested too deeply to be read") from None
    return Config.of(values, path, key_lines(text))


def _check_program(config: Config) -> None:
    program = config.program
    texts = [key for key in ("system", "system_file", "user") if getattr(program, key) is not None]
    if program.class_ is not None:
        if texts:
            config.fail(f"[program] has class and {texts[0]}; a program is the one or the other", "program", texts[0])
        required, optional = config.columns()
        target = config.data.target
        if target in required or (target in optional and not config.may_lack_target):
            config.fail(
                f"[program] class = {program.class_!r}: its forward names {target}, the answer by [data] target; take "
                "it out",
                "program",
                "class",
            )
        return
    if "system" in texts and "system_file" in texts:
        config.fail("[program] has system and system_file; take one of them out", "program", "system_file")
    for key, example in (("system", 'system = "..." or system_file = "prompt.txt"'), ("user", 'user = "{question}"')):
        if not any(name.startswith(key) for name in texts):
            config.fail(f'[program] lacks {example}; or give class = "module:Class" instead of both', "program")
    slots = slots_of(program.user or "")
    if not slots:
        braces = re.search(r"(?<!\{)\{[^{}\n]+\}(?!\})", program.user or "")
        why = f"; {braces[0]} is text, as {SLOT_NAMES}" if braces else ""
        config.fail(
            f"[program] user has no {{slot}} that a column of the data fills, such as {{question}}{why}",
            "program",
            "user",
        )
    required, optional = config.columns()
    target = config.data.target
    if target in (*required, *optional):
        key = "user" if target in required else program.system_key
        config.fail(
            f"[program] {key} shows the model {{{target}}}, the answer by [data] target; take it out", "program", key
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
            without = "; or leave val out, then the training examples validate, too" if key == "val" else ""
            config.fail(f"[data] {key} is the file of {earlier}; split it into two files{without}", "data", key)
    if config.prompts is not None and not config.file(config.prompts).is_dir():
        config.fail(
            f"prompts: there is no folder {config.file(config.prompts)}; make it, or take the key out", "prompts"
        )


def _check_metric(config: Config) -> None:
    metric = config.metric
    if metric.name is not None and metric.function is not None:
        config.fail("[metric] has name and function; take one of them out", "metric", "function")
    allowed = {"judge": ("instructions", "scale"), "function": ("purpose", "scale"), "exact_match": ()}[metric.kind]
    for key in ("instructions", "scale", "purpose"):
        if getattr(metric, key) is not None and key not in allowed:
            config.fail(f"[metric] {key} means nothing to {metric.kind}; take it out", "metric", key)
    if allowed and not (getattr(metric, allowed[0]) or "").strip():
        config.fail(
            f'[metric] {metric.kind} wants {allowed[0]} = "...", what to look for in words', "metric", allowed[0]
        )
    if metric.scale is not None and not metric.scale[0] < metric.scale[1]:
        config.fail(f"[metric] scale = {metric.scale}: the lowest score comes first", "metric", "scale")
    config.metric_function()


def _check_endpoint(config: Config) -> None:
    url = config.models.base_url
    if url is None:
        return
    try:
        checked_host(url)
    except ValueError as error:
        config.fail(f"[models] {error}", "models", "base_url")
    parts = urlsplit(url)
    if parts.username or parts.password:
        config.fail("[models] base_url holds a key or password; set OPENAI_API_KEY instead", "models", "base_url")


def _of_another(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The table of another optimizer, with what all optimizers have of this one.

    Raises:
        ConfigError: there is no such optimizer.
    """
    if settings_for(name) is None:
        raise ConfigError(
            f"--optimizer {name}: it is one of {', '.join(NAMES)}, or one of yours as module:name{suggest(name, NAMES)}"
        )
    return {"name": name, **{key: value for key, value in values.items() if key in BaseSettings.model_fields}}


def _check_optimizer(config: Config) -> None:
    """An optimizer of the user's own is imported, and can be made of what the file says."""
    own = config.optimizer
    if isinstance(own, OwnSettings):
        try:
            own.take(config._import(own.name, "optimizer", "name"))
        except TypeError as error:
            config.fail(f"[optimizer] name = {own.name!r}: {error}", "optimizer", "name")


def _check_train(config: Config) -> None:
    """What a search does otherwise by itself, so that nothing in the file is without effect."""
    if config.optimizer.name == "TGD" or isinstance(config.optimizer, OwnSettings):
        return
    has = type(config.optimizer).model_fields
    for key in ("max_epochs", "batch_size", "feedback_batch_size"):
        if ("train", key) in config._lines:
            instead = f"set {key} in [optimizer]" if key in has else "limit [train] max_steps, or a [budget]"
            config.fail(
                f"[train] {key} means nothing to {config.optimizer.name}, which draws its own minibatches and ends by "
                f"itself; take it out; {instead}",
                "train",
                key,
            )


_CHECKS = (_check_endpoint, _check_files, _check_metric, _check_program, _check_train, _check_optimizer)
