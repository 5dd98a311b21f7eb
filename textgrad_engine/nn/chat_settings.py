"""The settings of a `nn.ChatCompletion` as its attributes, which may be assigned anew, patched and deleted."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from textgrad_engine.autograd.value import as_role
from textgrad_engine.checks import check
from textgrad_engine.llm.request import GenerateConfig, config_from
from textgrad_engine.nn.side_by_side import ASSIGNED
from textgrad_engine.ops.messages import ChatSettings

if TYPE_CHECKING:
    from textgrad_engine.nn.chat import ChatCompletion

AS_MADE = frozenset({"tools", "max_turns"})
"""What a `ChatCompletion` was made with and may not be given anew."""

SETTINGS = frozenset({"model", "role", *GenerateConfig.model_fields}) - AS_MADE
"""What it keeps in its settings, and may be given anew."""

_DELETED = "_deleted"


class Setting:
    """A setting of a `ChatCompletion` as its attribute; a descriptor, as a ``__getattr__`` would run in each call."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, chat: ChatCompletion | None, owner: type) -> Any:
        if chat is None:
            return self
        own = vars(chat)
        if self.name in own:  # a subclass keeps it that has not called super().__init__ yet
            return own[self.name]
        if self.name in own.get(_DELETED, ()):
            raise AttributeError(f"{type(chat).__name__}.{self.name} was deleted; assign it")
        return getattr(chat.settings if self.name in ("model", "role") else chat.settings.config, self.name)

    # These two are there for what patches attributes in tests, and is to put them back: pytest's `monkeypatch` assigns
    # what was there before; `unittest.mock` deletes its own, and assigns what was there where there is nothing then.

    def __set__(self, chat: ChatCompletion, value: Any) -> None:
        vars(chat)[self.name] = value

    def __delete__(self, chat: ChatCompletion) -> None:
        own = vars(chat)
        if self.name in own:
            del own[self.name]
            return
        _ = getattr(chat, self.name)
        chat.settings = _without(chat.settings, self.name)
        own[_DELETED] = own.get(_DELETED, frozenset()) | {self.name}


def is_setting(owner: type, name: str) -> bool:
    """Whether a class has a setting under a name, or a plain value in its place, and no property of a subclass."""
    if name not in SETTINGS:
        return False
    found = getattr(owner, name)
    return isinstance(found, Setting) or not inspect.isdatadescriptor(found)


def assign(chat: ChatCompletion, name: str, value: Any, made_by: Callable[..., Any]) -> None:
    """Give a `ChatCompletion` another value of a setting, checked as that which it was made with.

    Args:
        chat: whose it is.
        name: of the setting.
        value: the value.
        made_by: what it was made by, for errors.
    """
    made, own = _with(chat.settings, name, value, made_by), vars(chat)
    if (assigned := ASSIGNED.get()) is not None:
        assigned.note(chat, name, getattr(chat, name, chat), value)
    own["settings"] = made
    own.pop(name, None)  # of a subclass that kept it before it called super().__init__
    if name in (deleted := own.get(_DELETED, frozenset())):
        own[_DELETED] = deleted - {name}


def _without(settings: ChatSettings, name: str) -> ChatSettings:
    """Settings without one of them."""
    if name == "model":
        return replace(settings, model=None)
    if name == "role":
        return replace(settings, role="")
    given = {each: getattr(settings.config, each) for each in settings.config.model_fields_set - {name}}
    return replace(settings, config=GenerateConfig(**given))


def _with(settings: ChatSettings, name: str, value: Any, made_by: Callable[..., Any]) -> ChatSettings:
    """Settings with another value of one of them."""
    if name == "model":
        check(made_by, {"model": value})
        return replace(settings, model=value)
    if name == "role":
        return replace(settings, role=as_role(value))
    checked = config_from({name: value}, made_by)
    return replace(settings, config=settings.config.model_copy(update={name: getattr(checked, name)}))
