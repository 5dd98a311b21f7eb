from __future__ import annotations

import pickle
from typing import Any

import pytest

from textgrad_engine import nn


class Greeter(nn.Module):
    def forward(self, greeting: str, name: str = "nobody") -> str:
        return f"{greeting}, {name}"


def test_a_pre_hook_with_kwargs_that_returns_something_else_raises() -> None:
    """A bare value would be ambiguous: arguments or keyword arguments."""
    for wrong in ("Hi", ("Hi",), ("Hi", "Ann"), {"name": "Ann"}):
        greeter = Greeter()
        greeter.register_forward_pre_hook(lambda module, args, kwargs, wrong=wrong: wrong, with_kwargs=True)
        with pytest.raises(TypeError, match=r"pre-hook of Greeter .* pair \(args, kwargs\)"):
            greeter("Hello")


def test_a_hook_that_raises_ends_the_call() -> None:
    """Later hooks and forward do not run."""
    greeter, seen = Greeter(), []
    greeter.register_forward_pre_hook(lambda module, args: 1 / 0)
    greeter.register_forward_pre_hook(lambda module, args: seen.append(args))
    with pytest.raises(ZeroDivisionError):
        greeter("Hello")
    assert seen == []


def test_hooks_see_keyword_arguments_only_when_they_ask_for_them() -> None:
    """As in PyTorch: the default signature has positional arguments only."""
    greeter, seen = Greeter(), []
    greeter.register_forward_pre_hook(lambda module, args: seen.append(args))
    greeter.register_forward_pre_hook(lambda module, args, kwargs: seen.append((args, kwargs)), with_kwargs=True)
    greeter.register_forward_hook(lambda module, args, result: seen.append((args, result)))
    greeter.register_forward_hook(
        lambda module, args, kwargs, result: seen.append((args, kwargs, result)), with_kwargs=True
    )
    assert greeter("Hello", name="Ann") == "Hello, Ann"
    assert seen == [
        ("Hello",),
        (("Hello",), {"name": "Ann"}),
        (("Hello",), "Hello, Ann"),
        (("Hello",), {"name": "Ann"}, "Hello, Ann"),
    ]


def test_hooks_with_kwargs_may_replace_arguments_and_result() -> None:
    """Later hooks see what earlier ones made of them; a single argument needs no tuple."""
    greeter, seen = Greeter(), []
    greeter.register_forward_pre_hook(lambda module, args, kwargs: ("Hi", {"name": "Bob"}), with_kwargs=True)
    greeter.register_forward_hook(lambda module, args, kwargs, result: f"{result}! {kwargs}", with_kwargs=True)
    greeter.register_forward_hook(lambda module, args, result: seen.append((args, result)))
    assert greeter("Hello", name="Ann") == "Hi, Bob! {'name': 'Bob'}"
    assert seen == [(("Hi",), "Hi, Bob! {'name': 'Bob'}")]


def test_a_prepended_hook_runs_first_and_all_are_removable() -> None:
    """Handles stay valid when the order changes."""
    greeter, order = Greeter(), []

    def note(name: str) -> Any:
        return lambda *args: order.append(name)

    for register in (greeter.register_forward_pre_hook, greeter.register_forward_hook):
        handles = [register(note("a")), register(note("b")), register(note("c"), prepend=True)]
        greeter("Hello")
        assert order == ["c", "a", "b"]
        for handle in handles:
            handle.remove()
            handle.remove()
        greeter("Hello")
        assert order == ["c", "a", "b"]
        order.clear()


def greeting_first(module: nn.Module, args: Any, kwargs: Any) -> Any:
    return ("Good morning", *args[1:]), kwargs


def test_a_pickled_module_keeps_its_hooks() -> None:
    """Those that see the keyword arguments too, also where they were pickled under the name that they had then."""
    greeter = Greeter()
    greeter.register_forward_pre_hook(greeting_first, with_kwargs=True)
    assert pickle.loads(pickle.dumps(greeter))("Hello", name="Ann") == "Good morning, Ann"
    assert pickle.loads(b"ctextgrad_engine.nn.module\n_WithKwargs\n.")(greeting_first).hook is greeting_first
