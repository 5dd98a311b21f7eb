"""The program as a group of commands, of which only the one that is run is loaded."""

from __future__ import annotations

import ast
import gc
import importlib
import importlib.util
import inspect
from dataclasses import dataclass, field
from importlib.abc import InspectLoader
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand

from textgrad_engine.cli.completion import InstallsCompletion
from textgrad_engine.report.printing import harmless


@dataclass(frozen=True)
class Command:
    """Where a command is.

    Attributes:
        module: of this package.
        epilog: what its help ends with.
        function: in the module.
        settings: what Typer is told of it.
        behind: what is said to who writes more behind it than it takes: options that this may have been meant for.
    """

    module: str
    epilog: str
    function: str
    settings: dict[str, Any] = field(default_factory=dict)
    behind: str = ""

    def load(self, name: str, markup: Any) -> Any:
        """The command with its options.

        Args:
            name: by which it is called.
            markup: how its help is written; None for plain text.
        """
        module = importlib.import_module(self.module)
        alone = typer.Typer(add_completion=False, rich_markup_mode=markup)
        settings = {**self.settings, **({"allow_extra_args": True} if self.behind else {})}
        alone.command(name, cls=_Leaf, epilog=self.epilog, context_settings=settings)(getattr(module, self.function))
        made: Any = typer.main.get_command(alone)
        made.behind = self.behind
        return made

    def help(self) -> str:
        """Its docstring, from the file: the help of the program has a line of each command, and loads none."""
        spec = importlib.util.find_spec(self.module)
        assert spec is not None
        source = spec.loader.get_source(self.module) if isinstance(spec.loader, InspectLoader) else None
        if source is None:  # where a program was packed without
            return inspect.getdoc(getattr(importlib.import_module(self.module), self.function)) or ""
        functions = (node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef))
        return next(ast.get_docstring(node) or "" for node in functions if node.name == self.function)


class _Leaf(TyperCommand):
    """A command that says which options there are for what stands behind it."""

    behind = ""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments, and refuse those that are too many."""
        left = super().parse_args(ctx, args)
        if left and self.behind and not ctx.resilient_parsing:
            ctx.fail(f"Got unexpected extra argument(s) ({harmless(' '.join(left))}); {self.behind}")
        return left


class Commands(InstallsCompletion):
    """The program: `all` of its commands, by their names, in the order of its help."""

    all: ClassVar[dict[str, Command]]

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: dict[str, Any] = dict.fromkeys(self.all)  # Typer takes what a wrong name may have meant from it

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names."""
        return list(self.all)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """What the program's help says of a command; None where there is none of that name."""
        found = self.all.get(cmd_name)
        return found and TyperCommand(cmd_name, help=found.help(), rich_markup_mode=self.rich_markup_mode)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments begin with, to be run."""
        name = args[0]
        if name not in self.all:
            return super().resolve_command(ctx, args)
        if self.commands[name] is None:
            self.commands[name] = self.all[name].load(name, self.rich_markup_mode)
            if not gc.isenabled():  # `__main__` has it off while packages are imported
                gc.freeze()
                gc.enable()
        return name, self.commands[name], args[1:]
