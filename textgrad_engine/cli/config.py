"""The config file: what to optimize, on which data, by which score, with which models and for how much money.

Everything that can be wrong is found before a call is paid for, and said with the file, the line and the repair.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from textgrad_engine.callables import signature_of
from textgrad_engine.cli import user_code
from textgrad_engine.cli.config_checks import CHECKS, idle_keys
from textgrad_engine.cli.config_errors import optimizer_meant, problems_of, table_of
from textgrad_engine.cli.config_program import OfProgram
from textgrad_engine.cli.model_tables import ModelPrice
from textgrad_engine.cli.optimizer_names import NAMES
from textgrad_engine.cli.optimizers import AnyOptimizer, BaseSettings, TGDSettings, settings_for
from textgrad_engine.cli.secrets_in import refuse_secrets
from textgrad_engine.cli.settings import AnyMetric, Budget, Data, Guards, Metric, Train
from textgrad_engine.cli.toml_lines import Keys, line_of, place
from textgrad_engine.errors import ConfigError
from textgrad_engine.nn.metric_functions import forward_of, scoring, takes_target
from textgrad_engine.slots import slots_of
from textgrad_engine.wording import told


class Config(OfProgram):
    """A config file that was read and checked; make one with `load_config`."""

    seed: int = 0
    prompts: str | None = None
    data: Data
    metric: AnyMetric = Metric()
    optimizer: AnyOptimizer = TGDSettings()
    train: Train = Train()
    guards: Guards = Guards()
    budget: Budget = Budget()

    @classmethod
    def of(
        cls,
        values: Mapping[str, Any],
        path: Path,
        lines: Mapping[Keys, int] | None = None,
        models: Iterable[str | None] = (),
    ) -> Self:
        """Check plain values, such as those of `resolved`, as if they had been read from the file `path`.

        Args:
            values: by key.
            path: the file.
            lines: where the keys stand in it.
            models: those that the command line names; None for an option that is not given.

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
        config._said = tuple(name for name in models if name is not None)
        for check in CHECKS:
            check(config)
        return config

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

    def code_of_the_program(self) -> list[str]:
        """The code of the user's own that is run to answer an example, as the config names it: "module:name" each."""
        own, names = self.program, self.models.roles().values()
        tools = own.tools if isinstance(own.tools, list) else []
        asked = [name for name in names if self.models.endpoint(name).base_url is None]
        given = [own.class_, own.response_format, *tools, *asked]
        return [each for each in given if isinstance(each, str) and user_code.is_spec(each)]

    def own_code(self) -> list[str]:
        """All code of the user's own that a run uses, likewise: also that of the metrics and the optimizer."""
        given = [*(each.function for _, each in self.metrics()), self.optimizer.name]
        return [*self.code_of_the_program(), *(each for each in given if each and user_code.is_spec(each))]

    def metric_function(self, where: Keys, metric: Metric) -> Callable[..., Any] | None:
        """The function that a metric names, or the loss of the user's own, imported; None when the metric is another.

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
        if inspect.isclass(found) and forward_of(found) is not found:
            try:
                found = found()
            except TypeError as error:
                self.fail(f"{named} cannot be made without arguments: {error}; name an object of it", *keys)
        function: Callable[..., Any] = found
        try:
            scoring(forward_of(function))
        except TypeError as error:
            self.fail(f"{named}: {error}", *keys)
        return function

    def model(self, name: str) -> Any:
        """The model object that ``"module:name"`` names, imported; any other name, and one with an address, as it is.

        Raises:
            ImportError: it is not there, or its module fails.
            TypeError: what is there is no model.
        """
        if self.models.endpoint(name).base_url is not None or not user_code.is_spec(name):
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
            return takes_target(forward_of(function))
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

    def with_prompts(self, texts: Mapping[str, str]) -> Self:
        """A copy whose program begins with other texts.

        Args:
            texts: by name.

        Raises:
            ConfigError: the file does not go with them, such as a line that is to be frozen, and that they lack.
        """
        values, others = self.resolved(), dict(texts)
        if self.program.class_ is None and "system" in others:
            values["program"].pop("system_file", None)
            values["program"]["system"] = others.pop("system")
        try:
            changed = type(self).of(values, self._path)
        except ConfigError as error:
            raise ConfigError(f"{error} (with --prompt)") from None
        changed._lines, changed._texts = self._lines, others
        return changed

    def check_judge(self, option: str | None) -> None:
        """Refuse a judge of the command line that no metric asks.

        Raises:
            ConfigError: all metrics compare with targets. A function may ask one, which nobody knows.
        """
        if option is not None and all(each.kind in ("exact_match", "json_match") for _, each in self.metrics()):
            raise ConfigError(f"--judge {option}: no [metric] asks a judge; leave it out")


def _of_another(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The table of another optimizer, with what all optimizers have of this one.

    Raises:
        ConfigError: there is no such optimizer.
    """
    if settings_for(name) is None:
        raise ConfigError(
            f"--optimizer {name}: it is one of {', '.join(NAMES)}, or one of yours as module:name"
            f"{optimizer_meant(name)}"
        )
    return {"name": name, **{key: value for key, value in values.items() if key in BaseSettings.model_fields}}
