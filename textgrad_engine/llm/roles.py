"""Which model answers a call: chosen by the call's purpose, for a block of code or for a whole script."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import get_args

from textgrad_engine.blocks import block
from textgrad_engine.checks import check
from textgrad_engine.errors import NoModelError
from textgrad_engine.keywords import names_told
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.replay import replayed_model
from textgrad_engine.llm.request import Purpose
from textgrad_engine.llm.resolve import is_resolved, resolve
from textgrad_engine.scoped import setting

_PURPOSES = get_args(Purpose)

_KEPT = 64
"""Resolved models that are remembered, so that one name, or one model, has one limit however often it is named."""

_block: ContextVar[Mapping[Purpose, Model]] = ContextVar("textgrad_engine_models", default=MappingProxyType({}))
_open: list[None] = []
"""One for each block that is open anywhere, in whatever thread."""

_lock = threading.RLock()
_script: Mapping[Purpose, Model] = {}
_resolved: OrderedDict[tuple[object, ...], Model] = OrderedDict()

if hasattr(os, "register_at_fork"):
    # Held while the process forks: a child would wait for ever for a thread that resolves a name in its parent.
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


@block
@contextlib.contextmanager
@names_told
def use_models(
    forward: str | Model | None = None,
    backward: str | Model | None = None,
    optimizer: str | Model | None = None,
    judge: str | Model | None = None,
) -> Iterator[None]:
    """Inside the block, calls go to these models, by purpose.

    A role that is not set keeps what an enclosing block or `set_models` gave it; one that nobody has set falls back to
    `forward`. Names are resolved once, on entry (see `resolve`).

    Args:
        forward: answers the program's own calls.
        backward: writes feedback.
        optimizer: rewrites parameters.
        judge: scores answers.

    Raises:
        UnknownModelError: nothing answers to a name.
        TypeError: what is given is neither a name nor a model.

    Example:
        >>> from textgrad_engine import nn
        >>> from textgrad_engine.testing import ScriptedModel
        >>> with use_models(forward=ScriptedModel(["Rome"])):  # or "openai/gpt-5-mini"
        ...     nn.ChatCompletion("{question}")(question="Capital of Italy?").data
        'Rome'
    """
    check(use_models, locals())
    with setting(_block, {**_block.get(), **_given(forward, backward, optimizer, judge)}):
        _open.append(None)
        try:
            yield
        finally:
            _open.pop()


@names_told
def set_models(
    forward: str | Model | None = None,
    backward: str | Model | None = None,
    optimizer: str | Model | None = None,
    judge: str | Model | None = None,
) -> None:
    """Set the models of a whole script or notebook; this replaces an earlier call. `use_models` blocks take precedence.

    Raises:
        UnknownModelError: nothing answers to a name.
        TypeError: what is given is neither a name nor a model.

    Example:
        >>> from textgrad_engine.testing import ScriptedModel
        >>> set_models(forward=ScriptedModel(["Rome"]), backward=ScriptedModel(["Say more."]))
        >>> set_models()  # nobody any more
    """
    check(set_models, locals())
    global _script  # noqa: PLW0603  replaced in one piece, since other threads read it without the lock
    _script = _given(forward, backward, optimizer, judge)


def model_for(purpose: Purpose, override: str | Model | None = None) -> Model:
    """The model for a call; while a cassette is replayed, a stand-in for a model that nobody named.

    Args:
        purpose: why the call is made.
        override: a name or a model to use instead of what is set.

    Raises:
        NoModelError: no model was set for the purpose, and none for "forward".
        UnknownModelError: nothing answers to the name given as `override`.
    """
    if purpose not in _PURPOSES:
        check(model_for, {"purpose": purpose})
    if override is not None:
        return _once(override)
    block, script = _block.get(), _script
    fallback: tuple[Purpose, ...] = (purpose, "forward")
    for role in fallback:
        if role in block:
            return block[role]
        if role in script:
            return script[role]
    if (recorded := replayed_model(purpose)) is not None:
        return resolve(recorded)
    elsewhere = (
        " A use_models block is open elsewhere, but does not reach threads that are started inside it: use "
        "func.pmap(part)(items) instead, or start the thread with contextvars.copy_context().run."
    )
    raise NoModelError(
        f"no model was named for {purpose!r} calls. Write tg.set_models(forward='openai/gpt-5-mini') for a whole "
        "script, or for a block: with tg.use_models(forward='openai/gpt-5-mini'): ..."
        f"{elsewhere if _open and not block else ''}"
    )


def _given(
    forward: str | Model | None, backward: str | Model | None, optimizer: str | Model | None, judge: str | Model | None
) -> dict[Purpose, Model]:
    named: dict[Purpose, str | Model | None] = {
        "forward": forward,
        "backward": backward,
        "optimizer": optimizer,
        "judge": judge,
    }
    return {purpose: _once(model) for purpose, model in named.items() if model is not None}


def _once(model: str | Model) -> Model:
    # The base URL is part of what a name means. A model is known by its id, which nothing else has while it is kept.
    key = (model, os.environ.get("OPENAI_BASE_URL")) if isinstance(model, str) else (id(model),)
    with _lock:
        known = _resolved.get(key)
        if known is None:
            if not isinstance(model, str) and is_resolved(model):  # to remember it would keep its connections
                return model
            known = _resolved[key] = resolve(model)
            while len(_resolved) > _KEPT:
                _resolved.popitem(last=False)
        else:
            _resolved.move_to_end(key)
    return known
