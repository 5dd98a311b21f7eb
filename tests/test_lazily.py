"""Packages that load their modules when something of them is first asked for."""

import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = ["data", "llm", "ops", "optim", "report", "store", "train"]


def in_new_process(code: str, tmp_path: Path) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    return done.stdout.strip()


def test_a_name_is_the_same_whatever_was_imported_before(tmp_path: Path) -> None:
    """A module of it loads none of the others, and neither does a look for what is not there, as tools take.

    The first of its names loads them. A function keeps its name where a module has it, too, and that was imported
    first, or again by its path. Each package begins as in a new process, with ours forgotten and others loaded.
    """
    code = f"""
import importlib, pkgutil, sys
for each in {PACKAGES}:
    for name in [name for name in sys.modules if name.partition(".")[0] == "textgrad_engine"]:
        del sys.modules[name]
    package = importlib.import_module("textgrad_engine." + each)
    hasattr(package, "__wrapped__"), hasattr(package, "_private")
    loaded = {{name for name in sys.modules if name.startswith("textgrad_engine.")}}
    if loaded != {{"textgrad_engine.lazily", "textgrad_engine." + each}}:
        print(each, "loads", loaded)
    for info in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        importlib.import_module(info.name)
    wrong = [name for name in package.__all__ if getattr(package, name) is not getattr(package.public, name)]
    known = {{}}
    exec("from textgrad_engine." + each + " import *", known)
    wrong += [name for name in package.__all__ if known[name] is not getattr(package.public, name)]
    if wrong or package.__all__ != package.public.__all__:
        print(each, wrong, package.__all__)
"""
    assert in_new_process(code, tmp_path) == ""


def test_modules_are_found_by_attribute_and_by_import(tmp_path: Path) -> None:
    """As in any package; what is nowhere is said as Python says it."""
    code = """
import textgrad_engine.optim as optim
assert optim.cells.Origin is optim.Origin
from textgrad_engine.llm import budget, tokens
from textgrad_engine.llm.budget import budget as same
assert budget is same and tokens.__name__ == "textgrad_engine.llm.tokens"
try:
    optim.Nothing
except AttributeError as error:
    print(error)
assert {"TGD", "cells", "__doc__"} <= set(dir(optim))
"""
    assert in_new_process(code, tmp_path) == "module 'textgrad_engine.optim' has no attribute 'Nothing'"


def test_each_is_pickled_by_its_name(tmp_path: Path) -> None:
    """What pickles functions by value does that with modules of Python's own class, and goes by this for others."""
    code = f"""
import copy, importlib, pickle
for name in {[*PACKAGES, "autograd", "func", "nn"]}:
    package = importlib.import_module(f"textgrad_engine.{{name}}")
    if pickle.loads(pickle.dumps(package)) is not package or copy.deepcopy({{"of": package}})["of"] is not package:
        print(name)
"""
    assert in_new_process(code, tmp_path) == ""


def test_a_name_that_is_none_is_not_there(tmp_path: Path) -> None:
    """Neither is a module looked for in one that is nowhere, which has an error of its own."""
    assert in_new_process("import textgrad_engine.llm as llm; print(hasattr(llm, 'no.such'))", tmp_path) == "False"


@pytest.mark.parametrize(
    ("args", "most"),
    [("['--version']", 40), ("['--help']", 40), ("['show', 'run']", 150), ("['diff', 'run']", 150)],
)
def test_what_only_reads_loads_no_code_that_trains(args: str, most: int, tmp_path: Path) -> None:
    """A command that asks no model is there at once: of five hundred modules it loads a few."""
    (tmp_path / "run").mkdir()
    code = f"""
import contextlib, io, sys
from textgrad_engine.__main__ import main
sys.argv = ["textgrad-engine", *{args}]
out = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
with out[0], out[1], contextlib.suppress(SystemExit):
    main()
loaded = [name for name in sys.modules if name.startswith("textgrad_engine.")]
parts = ("autograd", "nn", "func", "ops.model_call", "optim.optimizer", "train.trainer", "llm.resolve")
print(len(loaded) < {most}, [name for name in loaded if name.removeprefix("textgrad_engine.").startswith(parts)])
"""
    assert in_new_process(code, tmp_path) == "True []"
