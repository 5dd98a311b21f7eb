"""Every example in a docstring runs as it stands, against the installed package."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import textgrad_engine
from textgrad_engine import autograd, data, func, llm, nn, ops, optim

MODULES = sorted(
    info.name
    for info in pkgutil.walk_packages(textgrad_engine.__path__, "textgrad_engine.")
    if not info.name.endswith("__main__")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module_run(name: str) -> None:
    """A docstring's example is documentation that would lie if it did not run."""
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for found in doctest.DocTestFinder().find(importlib.import_module(name)):
        if found.examples:  # one docstring in 13: each run begins with a look at every file that the process has read
            runner.run(found)
    assert runner.summarize(verbose=False).failed == 0


def used(value: object) -> bool:
    """Whether it is a function, or a class that users make instances of."""
    if inspect.isclass(value):
        made = (nn.Module, optim.Optimizer, optim.Contract, data.Sampler, data.DataLoader, llm.Message, llm.Request)
        return issubclass(value, made) and not inspect.isabstract(value) and value is not optim.Searcher
    return inspect.isfunction(value)


@pytest.mark.parametrize("package", [textgrad_engine, autograd, data, func, nn, ops, optim], ids=lambda it: it.__name__)
def test_what_users_call_has_an_example(package: object) -> None:
    """`help(name)` shows how it is called, not only what it means."""
    found = {name: getattr(package, name) for name in package.__all__}  # type: ignore[attr-defined]
    lacking = [name for name, each in found.items() if used(each) and ">>>" not in (each.__doc__ or "")]
    assert lacking == []
