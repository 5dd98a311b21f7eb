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
from pathlib import Path
from typing import Any

from textgrad_engine.data.names import suggest

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_OTHERS = tuple([os.path.join(folder, "") for folder in (_PACKAGE, *map(sysconfig.get_path, ("stdlib", "platstdlib")))])
"""Where the code of this package and of Python is."""

_modules: set[str] = set()
_folders: set[str] = set()
"""The modules that configs have named in this process, and the folders in which they were looked for first."""


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
    _folders.add(os.path.join(folder.resolve(), ""))
    beside = str(folder.resolve())
    sys.path.insert(0, beside)  # so that the module can import its neighbours
    try:
        if file is not None:
            # A name of its own, so that the program.py of two configs in one process do not meet.
            alias = f"_config_{hashlib.sha256(os.fsencode(file)).hexdigest()[:12]}_{top}"
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
        if beside not in sys.path:  # what it imports when it runs comes from there, too; `path_restored` ends that
            sys.path.append(beside)
    if not hasattr(module, attribute):
        public = [each for each in vars(module) if not each.startswith("_")]
        raise ImportError(f"{module.__file__} has no {attribute!r}{suggest(attribute, public)}")
    return getattr(module, attribute)


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
