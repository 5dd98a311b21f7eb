"""A layer of one's own: hide what must not leave the house from every model a block of code asks, in thirty lines.

A transform is one `Layer`. Its `process` sees each operation that passes through its level, may change the arguments or
the result, and hands the call to the levels below with ``function.apply``. What `Redact` changes is recorded like
everything else, so feedback flows through it, and it nests with `func.grad`, `func.vmap` and the others in any order.

Run it offline, in a second:       python examples/custom_layer.py
Run it with a model of your own:   python examples/custom_layer.py --model openai/gpt-5-mini

The offline model says what it was shown.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any

import textgrad_engine as tg
from textgrad_engine import func, ops
from textgrad_engine.autograd import Layer
from textgrad_engine.ops.pass_on import Compute
from textgrad_engine.testing import FunctionModel

EMAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+")


class Redact(Layer):
    """Inside its block, what `pattern` matches does not reach a model through the texts of a chat completion."""

    def __init__(self, pattern: re.Pattern[str] = EMAIL, instead: str = "[address]") -> None:
        self.pattern, self.instead = pattern, instead

    def process(self, function: type[tg.Function], args: tuple[Any, ...]) -> Any:
        """Clean the arguments of a chat completion, with tools or without, and pass every call on."""
        if function.__name__ in ("ChatCompletion", "ToolLoop"):
            args = tuple([self.cleaned(value) for value in args])
        return function.apply(*args)

    def cleaned(self, value: Any) -> Any:
        """A text without what must stay; an operation, so that feedback on it reaches the original."""
        if isinstance(value, str):
            return self.pattern.sub(self.instead, value)
        if isinstance(value, tg.Variable):
            return Compute.apply(lambda text: self.pattern.sub(self.instead, str(text)), value, value.role)
        return value


def main(arguments: Sequence[str] | None = None) -> None:
    """Ask about three mails at once; the model sees no address."""
    parser = argparse.ArgumentParser(description="Hide addresses from every model that a block of code asks.")
    parser.add_argument("--model", help="a live model, such as openai/gpt-5-mini; without it a function answers")
    options = parser.parse_args(arguments)
    model = options.model or FunctionModel(lambda request: f"I was shown: {request.messages[-1].text}")
    prompt = tg.Variable("Repeat the mail.", role="system prompt", requires_grad=True)
    mails = ["From ann@home.example: hello", "From bob@work.example: invoice", "no sender"]

    def answer(mail: tg.Variable) -> tg.Variable:
        return ops.chat_completion(model, [{"role": "system", "content": prompt}, {"role": "user", "content": mail}])

    with Redact(), func.trace() as log:
        answers = func.vmap(answer)(mails)
    print(*answers.data, sep="\n")
    print(log)


if __name__ == "__main__":
    try:
        main()
    except tg.errors.TextgradError as error:  # such as a key that is missing
        sys.exit(f"error: {error}")
