"""Import what a config file names: the user's own code, from beside the file first."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

from textgrad_engine.data.dataset import suggest

__all__ = ["import_beside"]


def import_beside(spec: str, folder: Path) -> Any:
    """What ``"module:name"`` stands for; a module in `folder` comes before an installed one of that name."""
    if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*", spec):
        raise ImportError('expected "module:name", such as "program:Triage"')
    name, _, attribute = spec.partition(":")
    top, _, rest = name.partition(".")
    places = (folder / f"{top}.py", folder / top / "__init__.py")
    file = next((place.resolve() for place in places if place.is_file()), None)
    sys.path.insert(0, str(folder.resolve()))  # so that the module can import its neighbours
    try:
        if file is not None:
            # A name of its own, so that the program.py of two configs in one process do not meet.
            alias = f"_config_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}_{top}"
            if alias not in sys.modules:
                _execute(alias, file)
            name = alias + ("." + rest if rest else "")
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and name.startswith(error.name):
            raise ImportError(f"there is no module {error.name!r}, neither in {folder} nor installed") from None
        raise
    finally:
        sys.path.remove(str(folder.resolve()))
    if not hasattr(module, attribute):
        public = [each for each in vars(module) if not each.startswith("_")]
        raise ImportError(f"{module.__file__} has no {attribute!r}{suggest(attribute, public)}")
    return getattr(module, attribute)


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
