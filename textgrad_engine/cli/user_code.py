"""Import what a config file names: the user's own code, from beside the file first."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
import sysconfig
import traceback
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from textgrad_engine.data.names import suggest

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_OTHERS = tuple([os.path.join(folder, "") for folder in (_PACKAGE, *map(sysconfig.get_path, ("stdlib", "platstdlib")))])
"""Where the code of this package and of Python is."""

_ALIAS = "_config_"
"""How the names begin that modules have which a config names."""

_modules: set[str] = set()
_folders: set[str] = set()
"""The modules that configs have named in this process, and the folders in which they were looked for first."""


@dataclass
class _Home:
    """The config whose neighbours are imported now.

    Attributes:
        folder: that of the config, with a separator at its end; "" before there is one.
        added: what `sys.path` got for it; "" where that was there.
        before: the names of the modules that were there before.
        away: by folder, what configs in other ones have imported from beside them, by the modules' names.
    """

    folder: str = ""
    added: str = ""
    before: frozenset[str] = frozenset()
    away: dict[str, dict[str, ModuleType]] = field(default_factory=dict)


_home = _Home()


def is_spec(text: str) -> bool:
    """Whether a text has the form ``"module:name"``."""
    module, _, name = text.partition(":")
    return all(part.isidentifier() for part in (*module.split("."), name))


def import_beside(spec: str, folder: Path) -> Any:
    """What ``"module:name"`` stands for; a module in `folder` comes before an installed one of that name."""
    if not is_spec(spec):
        raise ImportError('expected "module:name", such as "program:Triage"')
    name, _, attribute = spec.partition(":")
    attribute = unicodedata.normalize("NFKC", attribute)  # as Python reads a name
    top, _, rest = name.partition(".")
    places = (folder / f"{top}.py", folder / top / "__init__.py")
    file = next((place.resolve() for place in places if place.is_file()), None)
    go_home(folder)
    beside = str(folder.resolve())
    sys.path.insert(0, beside)  # so that the module can import its neighbours
    try:
        if file is not None:
            # A name of its own, so that the program.py of two configs in one process do not meet.
            alias = f"{_ALIAS}{hashlib.sha256(os.fsencode(file)).hexdigest()[:12]}_{top}"
            if alias not in sys.modules:
                _execute(alias, file)
            name = alias + ("." + rest if rest else "")
        _modules.add(name.partition(".")[0])
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and name.startswith(error.name):
            raise ImportError(f"there is no module {error.name!r}, neither in {folder} nor installed") from None
        raise
    finally:
        sys.path.remove(beside)
    if not hasattr(module, attribute):
        public = [each for each in vars(module) if not each.startswith("_")]
        raise ImportError(f"{module.__file__} has no {attribute!r}{suggest(attribute, public)}")
    return getattr(module, attribute)


def go_home(folder: Path) -> None:
    """From now on the code of the config in `folder` imports its own neighbours, also while it runs.

    Configs of one process may have neighbours of one name, as those of two branches have. Python knows a module by its
    name alone, and would give the second one what the first one has imported: so that is put away, and brought back
    when its config is run again. `path_restored` ends it.
    """
    here = os.path.join(folder.resolve(), "")
    _folders.add(here)
    if here != _home.folder:
        new = [(name, each) for name, each in list(sys.modules.items()) if _home.folder and name not in _home.before]
        others = {name: each for name, each in new if _is_neighbour(each)}
        _home.away[_home.folder] = others
        for name in others:
            del sys.modules[name]
        if _home.added in sys.path:
            sys.path.remove(_home.added)
        _home.folder, _home.added, _home.before = here, "", frozenset(sys.modules)
        sys.modules.update(_home.away.pop(here, {}))
    if (beside := str(folder.resolve())) not in sys.path:
        sys.path.append(beside)
        _home.added = beside


def _is_neighbour(module: object) -> bool:
    """Whether a module was imported by its own name from beside the config whose neighbours are imported now."""
    if not isinstance(module, ModuleType):
        return False
    known = object.__getattribute__(module, "__dict__")  # some are loaded when they are asked for anything
    places = [known.get("__file__") or "", *known.get("__path__", ())]  # a folder without __init__.py has no file
    own = not known.get("__name__", "").startswith(_ALIAS)
    return own and any(place.startswith(_home.folder) and _is_beside(place) for place in places)


@contextlib.contextmanager
def path_restored() -> Iterator[None]:
    """Inside the block, code that configs name can import its neighbours; afterwards `sys.path` is as it was."""
    before = list(sys.path)
    try:
        yield
    finally:
        sys.path[:] = before


def line_of_user(error: BaseException) -> str:
    """The innermost line of what configs named, or had beside them, that an error came through; "" for none.

    A StopIteration leaves coroutines and threads as the cause of another error, which did not come through that line.
    """
    found = "" if error.__cause__ is None else line_of_user(error.__cause__)
    for frame, number in traceback.walk_tb(error.__traceback__):
        file = os.path.abspath(frame.f_code.co_filename)
        if frame.f_globals.get("__name__", "").partition(".")[0] in _modules or _is_beside(file):
            here = os.path.join(os.getcwd(), "")
            found = f"{file.removeprefix(here)}:{number}, in {frame.f_code.co_name}"
    return found


def _is_beside(file: str) -> bool:
    """Whether a file is below the folder of a config, and is not of a package or a Python that is kept there."""
    installed = not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)
    return file.startswith(tuple(_folders)) and not (installed or file.startswith(_OTHERS))


def _execute(alias: str, file: Path) -> None:
    search = [str(file.parent)] if file.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(alias, file, submodule_search_locations=search)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} cannot be imported")
    sys.modules[alias] = module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[alias]
        raise


def instead_of(found: Any, spec: str) -> str:
    """The repair where ``"module:name"`` names a function or a class in the place of a model; "" for anything else."""
    name = spec.partition(":")[2]
    if inspect.isclass(found):
        return f"; name an instance of it: model = {name}(...)"
    if inspect.isroutine(found):
        return f"; name what it makes, model = {name}(), or if it answers itself, model = FunctionModel({name})"
    return ""
