"""The config file: what to optimize, on which data, by which score, with which models and for how much money.

Everything that can be wrong is found before a call is paid for, and said with the file, the line and the repair.
"""

from __future__ import annotations

import inspect
import json
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn, Self

from pydantic import PrivateAttr, ValidationError

from textgrad_engine.callables import name_of, signature_of
from textgrad_engine.cli import user_code
from textgrad_engine.cli.config_checks import CHECKS, idle_keys
from textgrad_engine.cli.config_errors import problems_of, table_of
from textgrad_engine.cli.optimizer_names import NAMES
from textgrad_engine.cli.optimizers import AnyOptimizer, BaseSettings, TGDSettings, settings_for
from textgrad_engine.cli.secrets_in import refuse_secrets
from textgrad_engine.cli.settings import (
    AnyMetric,
    Budget,
    Data,
    Guards,
    Metric,
    ModelPrice,
    Models,
    Program,
    Section,
    Train,
)
from textgrad_engine.cli.toml_lines import Keys, line_of, place
from textgrad_engine.data.dataset import suggest
from textgrad_engine.data.load import read_text
from textgrad_engine.data.paths import missing_file
from textgrad_engine.errors import ConfigError, DataError
from textgrad_engine.homes import expanded
from textgrad_engine.kinds import told
from textgrad_engine.llm.request import GenerateConfig, ResponseFormat
from textgrad_engine.nn.metric_functions import scoring, takes_target
from textgrad_engine.nn.tool import Tool
from textgrad_engine.ops.offered import as_function, description_problem, is_function, name_of_tool
from textgrad_engine.ops.tools import MAX_TURNS, tools_of
from textgrad_engine.report.toml import toml_value
from textgrad_engine.slots import slots_of


class Config(Section):
    """A config file that was read and checked; make one with `load_config`."""

    seed: int = 0
    prompts: str | None = None
    program: Program
    data: Data
    metric: AnyMetric = Metric()
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
            told = [(line_of(lines, keys), text) for keys, text in problems_of(error, cls)]
            raise ConfigError("\n".join(place(path, line, lines) + text for line, text in sorted(told))) from None
        config._path, config._lines = path, lines
        for check in CHECKS:
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
        return self.folder / expanded(name)

    def fail(self, message: str, *keys: str | int) -> NoReturn:
        """Raise a ConfigError about one key, with the file and the key's line.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(self.place_of(*keys) + message)

    def place_of(self, *keys: str | int) -> str:
        """The file and the line of one key, as messages begin."""
        return place(self._path, line_of(self._lines, keys), self._lines)

    def has_line(self, *keys: str | int) -> bool:
        """Whether a key stands in the file."""
        return keys in self._lines

    def system_text(self) -> str | None:
        """The seed prompt: ``system``, or what ``system_file`` holds without the line break at its end."""
        if self.program.system_file is None:
            return self.program.system
        return self._system_file(self.program.system_file).removesuffix("\n")

    def ends_line(self) -> bool:
        """Whether the seed prompt is in a file that ends its last line, as editors do."""
        return self.program.system_file is not None and self._system_file(self.program.system_file).endswith("\n")

    def _system_file(self, name: str) -> str:
        file = self.file(name)
        if not file.is_file():
            self.fail(f"[program] system_file: {missing_file(file)}", "program", "system_file")
        try:
            return read_text(file).replace("\r\n", "\n")
        except DataError as error:
            self.fail(f"[program] system_file: {error}", "program", "system_file")

    def program_class(self) -> type[Any] | None:
        """The class that ``class`` names, imported; None for a program of two prompts."""
        if self.program.class_ is None:
            return None
        found = self.import_named(self.program.class_, "program", "class")
        if not inspect.isclass(found):
            self.fail(f"[program] class = {self.program.class_!r} is no class but {found!r}", "program", "class")
        return found

    def response_format(self) -> ResponseFormat | None:
        """The form of the answers that `[program] response_format` names; None where it names none."""
        given = self.program.response_format
        if given is None:
            return None
        keys = ("program", "response_format")
        named = f"[program] response_format{f' = {given!r}' if isinstance(given, str) else ''}"
        found = given
        if isinstance(given, str):
            found = self.import_named(given, *keys) if user_code.is_spec(given) else self._file_of("response_format")
        try:
            return ResponseFormat.of(found)
        except ValueError as error:
            said = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
            self.fail(f"{named}: {said.removeprefix('Value error, ')}", *keys)

    def tools(self) -> list[Any] | None:
        """What `[program] tools` names: functions, or descriptions of tools; None where it names none."""
        given = self.program.tools
        if given is None:
            return None
        keys, found = ("program", "tools"), given
        if isinstance(given, str):
            if user_code.is_spec(given):
                self.fail(f"[program] tools are a list of functions; write tools = [{toml_value(given)}]", *keys)
            found = self._file_of("tools")
        elif isinstance(given[0], str):
            found = [self.import_named(each, *keys, number) for number, each in enumerate(given)]
        if not isinstance(found, list) or not found:
            self.fail(f"[program] tools = {given!r} holds no list of descriptions, as the API takes them", *keys)
        try:
            tools_of(found, self.program.max_turns or MAX_TURNS, "[program]")
            GenerateConfig(tools=tuple([tool for tool in found if not callable(tool)]))
        except (TypeError, ValueError) as error:
            said = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
            self.fail(said, *keys)
        found = [as_function(tool) if isinstance(tool, dict) else tool for tool in found]
        for number, tool in enumerate(found, 1):
            if why := "" if callable(tool) else description_problem(tool, flat=self.models.api == "responses"):
                self.fail(f"[program] tools: description {number} {why}", *keys)
        return found

    def offered(self) -> list[Any] | None:
        """What `tools` says; with functions, and descriptions of such, as `nn.Tool` where they are trained."""
        tools, trained = self.tools(), self.program.train_tools
        if tools is None or not trained:
            return tools
        made: list[Any] = []
        for tool in tools:
            if not is_function(tool):
                made.append(tool)
                continue
            try:
                own = Tool(tool)
                if trained == "arguments":
                    own = Tool(tool, arguments=own.takes)
            except (TypeError, ValueError) as error:
                name = name_of(tool) if callable(tool) else name_of_tool(tool)
                said = str(error).removeprefix("Tool: ")
                self.fail(f"[program] tools: {name!r} cannot be trained: {said}", "program", "tools")
            if own.name in [each.name for each in made if isinstance(each, Tool)]:
                self.fail(f"[program] tools: two are called {own.name!r}; rename one", "program", "tools")
            made.append(own)
        return made

    def files_read(self) -> dict[str, Any]:
        """What the files of `[program] response_format` and `tools` hold as JSON, by these keys; none without files."""
        named = {key: getattr(self.program, key) for key in ("response_format", "tools")}
        files = [key for key, name in named.items() if isinstance(name, str) and not user_code.is_spec(name)]
        return {key: self._file_of(key) for key in files}

    def _file_of(self, key: str) -> Any:
        """What the file of a key of `[program]` holds as JSON."""
        name = getattr(self.program, key)
        file, named = self.file(name), f"[program] {key} = {name!r}"
        if not file.is_file():
            self.fail(f"{named}: {missing_file(file)}", "program", key)
        try:
            return json.loads(read_text(file), parse_constant=_refuse_constant)
        except (DataError, ValueError, RecursionError) as error:
            why = str(error) if isinstance(error, DataError) else f"{file}: {error}"
            if isinstance(error, json.JSONDecodeError):
                why = f"{file}:{error.lineno}: column {error.colno}: not JSON: {error.msg}"
            elif isinstance(error, RecursionError):
                why = f"{file}: it is nested too deeply to be read"
            what = "a list of tools" if key == "tools" else "a JSON schema"
            self.fail(f"{named}: {why}; write {what} into it", "program", key)

    def metrics(self) -> list[tuple[Keys, Metric]]:
        """Each metric, with the keys that lead to its table."""
        if isinstance(self.metric, list):
            return [(("metric", number), each) for number, each in enumerate(self.metric)]
        return [(("metric",), self.metric)]

    @property
    def is_right_or_wrong(self) -> bool:
        """Whether there is no score but 0 and 1."""
        kinds = [(each.kind, bool(each.graded)) for _, each in self.metrics()]
        return kinds in ([("exact_match", False)], [("json_match", False)])

    def metric_function(self, where: Keys, metric: Metric) -> Callable[..., Any] | None:
        """The function that a metric names, imported; None when the metric is another.

        Args:
            where: the keys that lead to its table.
            metric: the metric.
        """
        if metric.function is None:
            return None
        keys, named = (*where, "function"), f"{table_of(where)} function = {metric.function!r}"
        found = self.import_named(metric.function, *keys)
        if not callable(found):
            self.fail(f"{named} cannot be called: {found!r}", *keys)
        function: Callable[..., Any] = found
        try:
            scoring(function)
        except TypeError as error:
            self.fail(f"{named}: {error}", *keys)
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
                f"{error} (module:name is a model of your own; a server's model of that name needs the address: "
                "base_url in [models], or --base-url http://localhost:11434/v1)"
            ) from None
        named = isinstance(getattr(found, "name", None), str)
        if inspect.isclass(found) or not (named and callable(getattr(found, "complete", None))):
            raise TypeError(
                f"that is no model but {told(found)}; a model has a name and `async def complete(self, request)`, such "
                f"as llm.CallableModel(function){user_code.instead_of(found, name)}"
            )
        return found

    def input_columns(self) -> tuple[str, ...]:
        """The columns that the program wants: the slots of ``user``, or what the class's `forward` names."""
        return self.columns()[0]

    @property
    def may_lack_target(self) -> bool:
        """Whether all metrics can do without targets: judges, criteria for all, functions of the answer alone.

        Not where the file says which column holds them.
        """
        if self.data.target != "target" or self.has_own_targets:
            return False
        return not any(self._takes_target(where, metric) for where, metric in self.metrics())

    @property
    def has_own_targets(self) -> bool:
        """Whether a metric names the column of its own target."""
        return any(metric.target is not None for _, metric in self.metrics())

    def target_of(self, where: Keys, metric: Metric) -> str | None:
        """The column of one metric's target: its own, or that of `[data]`.

        Beside metrics with their own, one that can do without is given none, unless the file says what `[data]` target
        is; None then.
        """
        needs = not self.has_own_targets or self.data.target != "target" or self._takes_target(where, metric)
        return metric.target or (self.data.target if needs else None)

    def target_columns(self) -> tuple[str, ...]:
        """The columns that hold targets, each once."""
        found = (self.target_of(where, metric) for where, metric in self.metrics())
        return tuple(dict.fromkeys([name for name in found if name is not None]))

    def target_key(self, column: str) -> str:
        """The key that says that a column holds targets, for messages."""
        return "[[metric]] target" if any(each.target == column for _, each in self.metrics()) else "[data] target"

    def _takes_target(self, where: Keys, metric: Metric) -> bool:
        function = self.metric_function(where, metric)
        if function is not None:
            return takes_target(function)
        return metric.kind != "judge" and metric.criteria is None

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
        judge: str | None = None,
        base_url: str | None = None,
        price: ModelPrice | None = None,
        limits: Budget | None = None,
        seed: int | None = None,
        optimizer: str | None = None,
        max_minutes: float | None = None,
        critic: bool = True,
    ) -> Self:
        """A copy with what the command line says; None leaves the file's value, if it means something to the copy.

        Args:
            model: does every role, also those that the file gives to another model.
            judge: judges, whatever does the other roles.
            base_url: the endpoint of every role; the file's headers are for its own, and not sent to another.
            price: what each of the models costs.
            limits: of the budget; those that are None stay as they are.
            seed: of the run.
            optimizer: another optimizer; it keeps what all of them have, and has its own defaults for the rest.
            max_minutes: for the search and its end.
            critic: False for a run without one; True leaves the file's value.

        Raises:
            ConfigError: a value is outside of its range.
        """
        values = self.resolved()
        models = self.models.changed(model=model, judge=judge, base_url=base_url, price=price)
        values["models"] = models.model_dump(mode="json", exclude_none=True)
        said = {} if limits is None else limits.model_dump(exclude_none=True)
        values["budget"] = {**values["budget"], **said}
        if seed is not None:
            values["seed"] = seed
        if optimizer not in (None, self.optimizer.name):
            values["optimizer"] = _of_another(values["optimizer"], optimizer)
        if max_minutes is not None:
            values["train"]["max_minutes"] = max_minutes
        if not critic:
            values["train"]["critic"] = False
        try:
            changed = type(self).of(values, self._path)
            for table, key, _ in idle_keys(changed):
                values[table].pop(key, None)
            changed = type(self).of(values, self._path)
        except ConfigError as error:
            given = (
                not critic
                or any(value is not None for value in (model, judge, base_url, price, seed, optimizer, max_minutes))
                or said
            )
            raise ConfigError(f"{error} (as changed on the command line)" if given else str(error)) from None
        changed._lines = self._lines
        changed.check_judge(judge)
        return changed

    def check_judge(self, option: str | None) -> None:
        """Refuse a judge of the command line that no metric asks.

        Raises:
            ConfigError: all metrics compare with targets. A function may ask one, which nobody knows.
        """
        if option is not None and all(each.kind in ("exact_match", "json_match") for _, each in self.metrics()):
            raise ConfigError(f"--judge {option}: no [metric] asks a judge; leave it out")

    def import_named(self, spec: str, *keys: str | int) -> Any:
        """What a key names as ``"module:name"``.

        Raises:
            ConfigError: it is not there, or its module fails.
        """
        try:
            return self._imported(spec)
        except ImportError as error:
            self.fail(f"{table_of(keys[:-1])} {keys[-1]} = {spec!r}: {error}", *keys)

    def _imported(self, spec: str) -> Any:
        """What ``"module:name"`` names.

        Raises:
            ImportError: it is not there, or its module fails; said in words, with the line in the user's code.
        """
        try:
            return user_code.import_beside(spec, self.folder)
        except SystemExit as error:  # a script with a command line of its own
            raise ImportError(
                f"{error!r} ({user_code.line_of_user(error)}); what a script does when it is run belongs "
                'under `if __name__ == "__main__":`'
            ) from None
        except Exception as error:  # the module is the user's own code, and may raise anything
            last = traceback.extract_tb(error.__traceback__)[-1]
            what = str(error) if type(error) is ImportError else f"{type(error).__name__}: {error}"
            if last.filename != user_code.__file__ and not last.filename.startswith("<frozen"):
                what += f" ({last.filename}:{last.lineno})"
            raise ImportError(what) from None


def _refuse_constant(name: str) -> NoReturn:
    """Raises ValueError: Python reads NaN and Infinity, and JSON has neither."""
    raise ValueError(f"{name} is no JSON")


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
