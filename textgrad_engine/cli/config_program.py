"""What a config says of the program: its prompts, a class, the form of answers and tools, read from files and code."""

from __future__ import annotations

import inspect
import json
import traceback
from pathlib import Path
from typing import Any, NoReturn

from pydantic import PrivateAttr, ValidationError

from textgrad_engine.callables import name_of
from textgrad_engine.cli import user_code
from textgrad_engine.cli.config_errors import table_of
from textgrad_engine.cli.model_tables import Models
from textgrad_engine.cli.settings import Program, Section
from textgrad_engine.cli.toml_lines import Keys, line_of, place
from textgrad_engine.data.paths import missing_file
from textgrad_engine.data.textfile import read_text
from textgrad_engine.errors import ConfigError, DataError
from textgrad_engine.llm.request import GenerateConfig
from textgrad_engine.llm.response_format import ResponseFormat
from textgrad_engine.nn.tool import Tool
from textgrad_engine.ops.offered import as_function, description_problem, is_function, name_of_tool
from textgrad_engine.ops.tools import MAX_TURNS, tools_of
from textgrad_engine.report.toml import toml_value
from textgrad_engine.strict_json import DECODER
from textgrad_engine.user_paths import expanded


class OfProgram(Section):
    """The part of a config that is about the program, and what its other parts share: where it stands, what it names.

    Attributes:
        program: what is optimized.
        models: what it asks.
    """

    program: Program
    models: Models
    _path: Path = PrivateAttr(default=Path("config.toml"))
    _lines: dict[Keys, int] = PrivateAttr(default_factory=dict)
    _texts: dict[str, str] = PrivateAttr(default_factory=dict)
    _said: tuple[str, ...] = PrivateAttr(default=())

    @property
    def own_texts(self) -> dict[str, str]:
        """Texts that the program is to begin with instead of those that it is made with, by name."""
        return self._texts

    @property
    def models_said(self) -> tuple[str, ...]:
        """The models that the command line names, whose prices and endpoints may be in the file, too."""
        return self._said

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
            return read_text(file)
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
            if (
                why := ""
                if callable(tool)
                else description_problem(tool, flat=self.models.endpoint(self.models.forward).api == "responses")
            ):
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
            return DECODER.decode(read_text(file))
        except (DataError, ValueError, RecursionError) as error:
            why = str(error) if isinstance(error, DataError) else f"{file}: {error}"
            if isinstance(error, json.JSONDecodeError):
                why = f"{file}:{error.lineno}: column {error.colno}: not JSON: {error.msg}"
            elif isinstance(error, RecursionError):
                why = f"{file}: it is nested too deeply to be read"
            what = "a list of tools" if key == "tools" else "a JSON schema"
            self.fail(f"{named}: {why}; write {what} into it", "program", key)

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
