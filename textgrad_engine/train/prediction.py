"""What a program gives for an example: one Variable, or several outputs in dicts, tuples, lists and dataclasses."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from textgrad_engine import pytree
from textgrad_engine.autograd import Variable
from textgrad_engine.errors import ScoreError
from textgrad_engine.wording import a_class

A_COROUTINE = (
    "a program returns a Variable, and this one a coroutine: write it as a plain def. Its model calls run concurrently "
    "anyway; code of yours that awaits belongs in the `async def forward` of a Function. If all of it is async, such "
    "as an agent, run it: return asyncio.run(self.agent(question))"
)


def as_prediction(value: Any) -> Any:
    """What a loss is called with: several outputs as they are, all else as a Variable.

    Args:
        value: what the program returned. A list of texts or numbers is a batch, and so one Variable; numbers of other
            libraries count.

    Raises:
        ScoreError: it is none of these, such as the coroutine of an `async def`.

    Example:
        >>> as_prediction("Rome"), as_prediction({"answer": Variable("Rome")})
        (Variable('Rome', role='prediction'), {'answer': Variable('Rome')})
    """
    if isinstance(value, Variable) or _is_several(value):
        return value
    if inspect.iscoroutine(value):
        value.close()  # or Python warns that nobody awaited it
        raise ScoreError(A_COROUTINE)
    try:
        return Variable(value, role="prediction")
    except TypeError as error:
        given = "None" if value is None else a_class(type(value)) + (f"; {error}" if isinstance(value, list) else "")
    raise ScoreError(
        f"a program returns a Variable, or several in a dict, a tuple, a list or a dataclass; this one returned {given}"
    )


def _is_several(value: Any) -> bool:
    if isinstance(value, list):
        return any(isinstance(part, Variable) or _is_several(part) for part in value)
    return pytree.is_container(value) or _is_record(value)


def _is_record(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def said_in(prediction: Any) -> Any:
    """What a prediction says, which is waited for: the data in the place of each Variable, a dict for a dataclass.

    Example:
        >>> said_in({"answer": Variable("Rome"), "tried": [Variable("Paris"), 3]})
        {'answer': 'Rome', 'tried': ['Paris', 3]}
    """
    if isinstance(prediction, Variable):
        return prediction.data
    if pytree.is_container(prediction):
        return pytree.map_leaves(said_in, prediction)
    if _is_record(prediction):
        return {field.name: said_in(getattr(prediction, field.name)) for field in dataclasses.fields(prediction)}
    return prediction
