import inspect
import re

import pytest

from textgrad_engine import errors

LINE = re.compile(r"(?P<indent>[│ ]*(?:├── |└── )?)(?P<name>[A-Z]\w+)(?: \((?P<also>[\w, ]+)\))?(?:  .*)?")


def tree_in_the_docstring():
    """For each name in the tree: the name above it, and the built-in classes that it also is."""
    found, path = {}, []
    for line in errors.__doc__.splitlines():
        match = LINE.fullmatch(line)
        if match is None:
            continue
        depth = len(match["indent"]) // 4
        path[depth:] = [match["name"]]
        found[match["name"]] = (path[depth - 1] if depth else None, (match["also"] or "").split(", "))
    return found


def test_the_tree_in_the_docstring_is_the_tree_of_classes():
    """A reader learns from the docstring what an except clause catches."""
    classes = {
        name: value for name, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, Exception)
    }
    tree = tree_in_the_docstring()
    assert sorted(tree) == sorted(classes)
    for name, (above, also) in tree.items():
        bases = [base.__name__ for base in classes[name].__bases__]
        assert bases == [base for base in (above or "Exception", *also) if base], name


def test_everything_is_exported_in_order():
    """`__all__` is sorted and complete."""
    assert errors.__all__ == sorted(errors.__all__)
    assert set(errors.__all__) == set(tree_in_the_docstring())


@pytest.mark.parametrize("name", errors.__all__)
def test_each_exception_says_what_it_is(name):
    """A docstring of its own, not the parent's."""
    assert getattr(errors, name).__doc__
    assert "__doc__" in vars(getattr(errors, name))


def test_what_the_endpoint_said_is_kept():
    """Retrying needs the status and the wait that was asked for."""
    error = errors.RateLimited("slow down", status=429, retry_after=2.5)
    assert (str(error), error.status, error.retry_after) == ("slow down", 429, 2.5)
    assert errors.ConnectionFailed("gone").status is None
