"""The parameters that are trained, and leaves that stand for them with a candidate's texts."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.value import label_of
from textgrad_engine.nn import Module
from textgrad_engine.optim.search.objective import Texts
from textgrad_engine.wording import told


def named_in(program: Module, parameters: Sequence[Variable] | None) -> dict[str, Variable]:
    """The parameters to train with their dotted names, in the order given, else in that of the program.

    Raises:
        ValueError: there is none, or one is not the program's.
    """
    own: dict[str, Variable] = dict(program.named_parameters())
    if parameters is None:
        found = {name: parameter for name, parameter in own.items() if parameter.requires_grad}
    else:
        names = {id(parameter): name for name, parameter in own.items()}
        for parameter in parameters:
            if id(parameter) not in names:
                raise ValueError(
                    f"{label_of(parameter)} is no parameter of the program, which has {', '.join(own) or 'none'}"
                )
        found = {names[id(parameter)]: parameter for parameter in parameters}
    if not found:
        raise ValueError("the program has no parameter that requires grad, so there is nothing to train")
    return found


def check_texts(named: Mapping[str, Variable], texts: Texts) -> None:
    """Refuse what is no candidate.

    Raises:
        TypeError: it is no tuple of texts.
        ValueError: it has another number of texts.
    """
    given: object = texts
    wrong = next((told(text) + " among them" for text in texts if not isinstance(text, str)), "")
    if not isinstance(given, tuple) or wrong:
        form = "'...'," if len(named) == 1 else ", ".join(["'...'"] * len(named))
        raise TypeError(
            f"a candidate is a tuple with a text for each of {', '.join(named)}; got {wrong or told(given)}; write "
            f"({form})"
        )
    if len(texts) != len(named):
        raise ValueError(f"a candidate has a text for each of {', '.join(named)}; got {len(texts)} texts")


def leaves_of(named: Mapping[str, Variable], texts: Texts) -> dict[str, Variable]:
    """Leaves that hold a candidate's texts, by the dotted names of the parameters that they stand for.

    Raises:
        TypeError: the candidate is no tuple of texts.
        ValueError: it has another number of texts.
    """
    check_texts(named, texts)
    return {
        name: _stand_in(parameter, text, requires_grad=True) for (name, parameter), text in zip(named.items(), texts)
    }


def frozen_beside(program: Module, leaves: Mapping[str, Variable]) -> dict[str, Variable]:
    """Leaves that stand for the program's other parameters and hear nothing.

    Feedback on these texts is wanted by nobody, and would be paid for and left in them.
    """
    return {
        name: _stand_in(parameter, parameter.data, requires_grad=False)
        for name, parameter in program.named_parameters()
        if name not in leaves and parameter.requires_grad
    }


def _stand_in(parameter: Variable, text: str, *, requires_grad: bool) -> Variable:
    """A leaf like a parameter, of its class and with its attributes, that holds a text of its own."""
    leaf = copy.copy(parameter)
    leaf.data = text
    return leaf.requires_grad_(requires_grad)
