"""The public surface, and what importing it costs."""

import ast
import graphlib
import importlib
import importlib.util
import itertools
import operator
import pkgutil
import re
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

import textgrad_engine as tg
from textgrad_engine.lazily import lacking
from textgrad_engine.missing import ELSEWHERE

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


@pytest.mark.parametrize(("name", "here"), sorted(ELSEWHERE.items()))
def test_a_name_of_another_library_says_what_it_is_called_here(name: str, here: str) -> None:
    """What ported code fails on first; the name that is given is there."""
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'; it is {re.escape(here)} \(docs/porting\.md\)"):
        getattr(tg, name)
    assert operator.attrgetter(here)(tg)


def test_a_name_that_is_two_things_elsewhere_is_told_by_where_it_was_looked_for() -> None:
    """`torch.nn.functional` has operations, `torch.autograd.functional` has transforms."""
    with pytest.raises(AttributeError, match=r"'functional'; it is textgrad_engine\.ops"):
        tg.nn.functional  # noqa: B018
    with pytest.raises(AttributeError, match=r"'functional'; it is textgrad_engine\.func\b"):
        tg.autograd.functional  # noqa: B018
    with pytest.raises(AttributeError, match=r"'utils'; it is data"):
        tg.utils.data  # noqa: B018
    with pytest.raises(AttributeError, match=r"'textgrad_engine\.nn' has no attribute 'utils'$"):
        tg.nn.utils  # noqa: B018


PARTS = ["autograd", "data", "func", "llm", "nn", "ops", "optim", "store", "testing", "train"]


@pytest.mark.parametrize("part", PARTS)
def test_each_part_says_what_a_name_that_it_lacks_is_called_here(part: str) -> None:
    """`optim.GEPA`, `nn.ChainOfThought`: who ports a program looks in the part that has such things."""
    package = importlib.import_module(f"textgrad_engine.{part}")
    words = f"module 'textgrad_engine.{part}' has no attribute"
    with pytest.raises(AttributeError, match=rf"^{words} 'GEPA'; it is optim.ParetoSearch \(docs/porting\.md\)$"):
        package.GEPA  # noqa: B018
    with pytest.raises(
        AttributeError, match=rf"^{words} 'Tensor'; it is textgrad_engine\.Variable \(docs/porting\.md\)$"
    ):
        package.Tensor  # noqa: B018
    line = "from textgrad_engine.optim import ParetoSearch"
    with pytest.raises(ImportError, match=f"^there is no 'GEPA' in 'textgrad_engine.{part}'; it is .*: {line}$"):
        exec(f"from textgrad_engine.{part} import GEPA")
    exec(line)
    assert not hasattr(package, "GEPA")


@pytest.mark.parametrize("name", ["StepLR", "CosineAnnealingLR", "LambdaLR"])
def test_a_schedule_of_torch_is_told_where_ours_are(name: str) -> None:
    """Who reads that `lr_scheduler` is `optim.schedules` looks for it there."""
    here = ELSEWHERE[name].rpartition(".")[2]
    with pytest.raises(AttributeError, match=rf"'{name}'; it is optim\.schedules\.{here} \(docs/porting\.md\)$"):
        getattr(tg.optim.schedules, name)
    assert hasattr(tg.optim.schedules, here)
    assert here in tg.optim.schedules.__all__
    assert not hasattr(tg.optim.schedules, "nowhere")


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("data.DataLoder", "did you mean 'DataLoader'?"),
        ("func.vamp", "did you mean 'vmap'?"),
        ("nn.TGD", "it is optim.TGD"),
        ("optim.Module", "it is nn.Module"),
        ("testing.DataLoader", "it is data.DataLoader"),
    ],
)
def test_a_part_says_which_name_is_meant(path: str, meant: str) -> None:
    """A slip, or a name of another part."""
    with pytest.raises(AttributeError, match=f"; {re.escape(meant)}$"):
        operator.attrgetter(path)(tg)


@pytest.mark.parametrize("name", ["report", "templates"])
def test_a_module_that_is_not_loaded_yet_says_how_it_is(name: str) -> None:
    """`tg.report.Progress()` is what the name in the documentation suggests; the line that is named can be copied."""
    line = f"from textgrad_engine import {name}"
    assert str(lacking("textgrad_engine", name)).endswith(
        f"no attribute '{name}'; it is a module, and loaded by `{line}`"
    )
    exec(line)


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
        ("save", "from textgrad_engine.nn import Module"),
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
        "textgrad_engine.lazily",
        "textgrad_engine.errors",
        "textgrad_engine.pytree",
    }


def test_every_module_can_be_imported_first() -> None:
    """No module depends on another one having been imported before it, as no imports go round in a circle.

    What counts is what runs when a module is imported: that of functions and of `TYPE_CHECKING` does not.
    """
    names = {"textgrad_engine": tg.__path__[0] + "/__init__.py"}
    for info in pkgutil.walk_packages(tg.__path__, "textgrad_engine."):
        spec = importlib.util.find_spec(info.name)
        assert spec is not None
        names[info.name] = str(spec.origin)
    trees = {name: ast.parse(Path(file).read_text(encoding="utf-8")) for name, file in names.items()}
    needs = {
        name: {
            found
            for each in running(tree.body)
            for found in modules_of(each, names)
            if not f"{name}.".startswith(f"{found}.")  # the packages that it lies in are being imported
        }
        for name, tree in trees.items()
    }
    assert sum(map(len, needs.values())) > 2000
    order = list(graphlib.TopologicalSorter(needs).static_order())  # a circle is a CycleError that names its modules
    done = subprocess.run(
        [sys.executable, "-c", "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"]
        + [name for name in order if "__main__" not in name],
        check=True,
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("", "")


def running(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports among statements that run when their module is imported."""
    for each in body:
        if isinstance(each, ast.Import | ast.ImportFrom):
            yield each
        elif isinstance(each, ast.If) and "TYPE_CHECKING" in ast.dump(each.test):
            yield from running(each.orelse)
        elif not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            for part in ("body", "orelse", "handlers", "finalbody"):
                yield from running(getattr(each, part, []))


def modules_of(found: ast.Import | ast.ImportFrom, names: Collection[str]) -> Iterator[str]:
    """The modules of ours that an import runs, the packages that they lie in included."""
    if isinstance(found, ast.Import):
        wanted = [each.name for each in found.names]
    else:
        inner = [f"{found.module}.{each.name}" for each in found.names]
        # A name of a package that is loaded when it is asked for; where a module has the name, too, either may be.
        public = f"{found.module}.public"
        wanted = [str(found.module), *inner, *([public] if public in names and not set(inner) <= set(names) else [])]
    for name in wanted:
        if name in names:
            yield from itertools.accumulate(name.split("."), lambda *parts: ".".join(parts))
