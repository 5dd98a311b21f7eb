"""Every example in a docstring runs as it stands, against the installed package."""

import doctest
import importlib
import pkgutil

import pytest

import textgrad_engine

MODULES = sorted(
    info.name
    for info in pkgutil.walk_packages(textgrad_engine.__path__, "textgrad_engine.")
    if not info.name.endswith("__main__")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module_run(name: str) -> None:
    """A docstring's example is documentation that would lie if it did not run."""
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0
