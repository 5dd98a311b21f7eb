"""What is read of a result, a record or an account, and is not there, is told by the name that it has."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import pickle
import re
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

import textgrad_engine as tg
from textgrad_engine import llm, optim, train
from textgrad_engine.attributes import attributes_told

FOUND = tg.Evaluation(("a",), (1.0,), ("yes",), {})


@pytest.mark.parametrize(
    ("read", "says"),
    [
        (lambda: llm.Usage(1, 2).tokens, "'Usage' object has no attribute 'tokens'; here it is 'total_tokens'"),
        (lambda: llm.account.Budget(calls=3).spent.prompt_tokens, "'prompt_tokens'; here it is 'input_tokens'"),
        (
            lambda: llm.account.Budget(calls=3).remaining.call,
            "'Remaining' object has no attribute 'call'; did you",
        ),
        (lambda: llm.account.Budget(calls=3).cost, "'cost'; here it is 'spent'"),
        (lambda: llm.Usage(1, 2).cost, "'cost'; here it is 'dollars'"),
        (lambda: llm.Meter().totals, "'Meter' object has no attribute 'totals'; did you mean 'total'?"),
        (lambda: llm.Completion("yes").content, "'content'; here it is 'text'"),
        (lambda: FOUND.score, "'Evaluation' object has no attribute 'score'; here it is 'mean'"),
        (lambda: FOUND.ci, "'ci'; it has ids, scores, predictions, "),
        (lambda: tg.compare(FOUND, FOUND).pvalue, "'pvalue'; here it is 'p_value'"),
        (lambda: train.Standing("a", 0.5, "val", 1, 0.5, 1.0).reach, "'reach'; did you mean 'reached'?"),
    ],
)
def test_what_is_not_there_is_told_by_our_name(read: Callable[[], Any], says: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(says)):
        read()


def test_every_record_that_users_read_tells() -> None:
    """Of the public ones; contracts, settings and a trace's levels are made by users, not read."""
    made = (optim.Contract, optim.Wish, optim.RandomEdits, llm.RetryPolicy)
    silent = []
    for part in ("data", "llm", "optim", "store", "train", "train.events"):
        package = importlib.import_module(f"textgrad_engine.{part}")
        for name in getattr(package, "__all__", vars(package)):
            cls = getattr(package, name)
            is_record = isinstance(cls, type) and (dataclasses.is_dataclass(cls) or issubclass(cls, BaseModel))
            if is_record and not issubclass(cls, made):
                told = getattr(cls, "__getattr__", None)
                if told is None or told.__module__ != "textgrad_engine.attributes":
                    silent.append(name)
    assert silent == []


def test_an_error_inside_of_a_property_is_told_as_it_is() -> None:
    @attributes_told
    class Asked:
        @property
        def mean(self) -> float:
            return None.total  # type: ignore[attr-defined, no-any-return]

    with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'total'"):
        _ = Asked().mean


def test_what_tools_look_for_is_missing_as_before() -> None:
    for each in (FOUND, llm.Usage(1, 2)):
        assert not hasattr(each, "_repr_png_")
        assert pickle.loads(pickle.dumps(each)) == copy.deepcopy(each) == each
        with pytest.raises(AttributeError) as told:
            _ = each._repr_png_  # type: ignore[attr-defined]
        assert "it has" not in str(told.value)
