"""The public surface, and what importing it costs."""

import importlib
import operator
import os
import pkgutil
import re
import subprocess
import sys

import pytest

import textgrad_engine as tg

HEAVY = {"openai", "tiktoken", "typer", "rich", "genai_prices", "minijinja", "httpx2"}


def in_new_process(code: str, tmp_path: object) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=str(tmp_path))
    return done.stdout


def test_importing_loads_nothing_heavy(tmp_path: object) -> None:
    """`import textgrad_engine` stays cheap: no SDK, no tokenizer, no command line."""
    found = in_new_process("import sys, textgrad_engine; print(*sys.modules)", tmp_path).split()
    assert HEAVY.isdisjoint(found)


def test_every_part_but_the_command_line_loads_nothing_heavy(tmp_path: object) -> None:
    """nn, optim, data, llm and the Trainer do not load the SDK either, until a call needs it."""
    parts = "tg.Trainer, tg.nn, tg.optim, tg.data, tg.llm, tg.func, tg.store"
    code = f"import sys, textgrad_engine as tg; {parts}; print(*sys.modules)"
    assert (HEAVY - {"rich"}).isdisjoint(in_new_process(code, tmp_path).split())


def test_importing_starts_no_thread_and_writes_no_file(tmp_path: object) -> None:
    """An import has no side effects: no event loop, no log files, no logging set-up."""
    code = (
        "import threading, os, logging, textgrad_engine as tg; tg.Trainer;"
        "print(threading.active_count(), os.listdir('.'), logging.getLogger().handlers)"
    )
    assert in_new_process(code, tmp_path).strip() == "1 [] []"


@pytest.mark.parametrize(
    "name", ["", ".autograd", ".data", ".func", ".llm", ".nn", ".ops", ".optim", ".store", ".testing", ".train"]
)
def test_what_a_package_exports_is_there_and_sorted(name: str) -> None:
    """`__all__` is the pinned list of public names."""
    module = importlib.import_module("textgrad_engine" + name)
    assert list(module.__all__) == sorted(module.__all__)
    for exported in module.__all__:
        assert getattr(module, exported) is not None


def test_public_names_of_the_top_level() -> None:
    """The names that a user's script may rely on; a change here is a change of the public surface."""
    assert set(tg.__all__) >= {
        "Function", "Trainer", "Variable", "aevaluate", "autograd", "backward", "budget", "compare", "data",
        "enable_grad", "evaluate", "func", "is_grad_enabled", "llm", "nn", "no_grad", "ops", "optim",
        "set_grad_enabled", "set_models", "use_models",
    }  # fmt: skip


@pytest.mark.parametrize(("name", "here"), sorted(tg._ELSEWHERE.items()))
def test_a_name_of_another_library_says_what_it_is_called_here(name: str, here: str) -> None:
    """What ported code fails on first; the name that is given is there."""
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'; it is {re.escape(here)} \(docs/porting\.md\)"):
        getattr(tg, name)
    assert operator.attrgetter(here)(tg)


@pytest.mark.parametrize("here", ["data.DataLoader", "func.pmap", "nn.TextLoss", "optim.PatchSearch", "testing.Fault"])
def test_a_name_of_a_part_says_where_it_is(here: str) -> None:
    """Whoever looks for it at the top, by attribute or by import; the line that is named can be copied."""
    part, name = here.split(".")
    with pytest.raises(AttributeError, match=rf"^module 'textgrad_engine' has no attribute '{name}'; it is {here}$"):
        getattr(tg, name)
    line = f"from textgrad_engine.{part} import {name}"
    with pytest.raises(ImportError, match=rf"^there is no '{name}' in 'textgrad_engine'; it is {here}: {line}$"):
        exec(f"from textgrad_engine import {name}")
    exec(line)
    assert not hasattr(tg, name)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("TGDOptimizer", "from textgrad_engine.optim import TGD"),
        ("Tensor", "from textgrad_engine import Variable"),
        ("grad", "from textgrad_engine.autograd import grad"),
    ],
)
def test_importing_a_name_of_another_library_says_what_it_is_called_here(name: str, line: str) -> None:
    """The line that is named can be copied."""
    with pytest.raises(ImportError, match=f": {line}$"):
        exec(f"from textgrad_engine import {name}")
    exec(line)


def test_what_is_nowhere_fails_as_python_says_it() -> None:
    """And modules that are not public are found as ever."""
    with pytest.raises(ImportError, match="cannot import name 'Judgement' from 'textgrad_engine'"):
        exec("from textgrad_engine import Judgement")
    with pytest.raises(AttributeError, match=r"no attribute 'Judgement'$"):
        tg.Judgement  # noqa: B018
    assert not hasattr(tg, "nowhere.Judgement")
    exec("from textgrad_engine import templates")


def test_looking_for_a_module_loads_no_others(tmp_path: object) -> None:
    """A part that is being loaded may ask for one: nothing above it is loaded by that."""
    code = "import sys; from textgrad_engine import pytree; import textgrad_engine as tg; hasattr(tg, '__wrapped__');"
    found = in_new_process(code + "print(*sys.modules)", tmp_path).split()
    assert {name for name in found if name.startswith("textgrad_engine.")} <= {
        "textgrad_engine.errors",
        "textgrad_engine.pytree",
    }


IMPORT_EACH_FIRST = """
import gc, importlib, os, sys
import asyncio, json, logging, sqlite3, ssl  # not ours, and most of the time that an import takes
import pydantic.fields, pydantic.main, pydantic.networks, pydantic.type_adapter, pydantic.types
import rich.console, rich.live, rich.progress, rich.table, typer
gc.disable()  # a sixth of the time

def first(name):
    try:
        importlib.import_module(name)
    except BaseException as error:
        name += f": {error!r}"
    print(name, flush=True)
    for inner in sys.argv[1:]:
        if inner.rpartition(".")[0] == name:
            if os.fork() == 0:
                first(inner)
            os.wait()
    os._exit(0)

first("textgrad_engine")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_every_module_can_be_imported_first() -> None:
    """No module depends on another one having been imported before it: each is the first one of a process.

    The first but for the packages that it lies in, for Python imports these before it. So a process that has just
    imported a package, and nothing else of ours, is forked for each module in there.
    """
    found = pkgutil.walk_packages(tg.__path__, "textgrad_engine.")
    names = [info.name for info in found if "__main__" not in info.name]
    command = [sys.executable, "-c", IMPORT_EACH_FIRST, *names]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert len(names) > 100
    assert sorted(done.stdout.splitlines()) == sorted(["textgrad_engine", *names])
