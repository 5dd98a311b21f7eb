"""An agent: a prompt, and two Python functions that the model may call, for five turns at most.

All turns of an example are one operation. So its critic is asked once, and is shown what a person would look at: what
was called, what came of it (an error, too), the answer, and what the metric says of that.

Run it offline, in a second:       python examples/agent.py
Run it with a model of your own:   python examples/agent.py --model openai/gpt-5-mini

The offline model is a simulation made of the few rules below, for trying the machinery out: it shows that feedback
arrives, and nothing about real models.
"""

import argparse
import json
import re
import sys
from collections.abc import Sequence

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.testing import Answer, FunctionModel, feedback_for

NAMES = re.findall(
    r"\w+", "ada bo cy dee eli fay gus hal ida jo kim lou max nan oz pat quin ray sue tim uma vic wes zoe"
)
NUMBERS = {name: f"c{number:02d}" for number, name in enumerate(NAMES, 1)}
ORDERS = {number: ["hat", "sock", "lamp"][: 1 + place % 3] for place, number in enumerate(NUMBERS.values())}
ROWS = [{"name": name.capitalize(), "target": str(len(ORDERS[number]))} for name, number in NUMBERS.items()]


def customer_number(name: str) -> str:
    """The customer number that goes with a first name, which is written in small letters."""
    return NUMBERS[name]


def open_orders(customer: str) -> list[str]:
    """The open orders of a customer, by the customer number."""
    return ORDERS[customer]


class Desk(nn.Module):
    """One prompt with tools."""

    def __init__(self) -> None:
        super().__init__()
        instructions = nn.Parameter("Answer the question with the tools.", role="system prompt of the agent")
        self.chat = nn.ChatCompletion(
            "{name} asks how many orders are open.",
            system=instructions,
            tools=[customer_number, open_orders],
            max_turns=5,
        )

    def forward(self, name: str) -> tg.Variable:
        """Ask; the tools that the model calls are run."""
        return self.chat(name=name)


def score(prediction: str, target: str) -> tuple[float, str]:
    """Half for the right number among other words, all for the number alone."""
    if prediction.strip() == target:
        return 1.0, ""
    if target in re.findall(r"\d+", prediction):
        return 0.5, "The number is right; nothing else belongs into the answer."
    return 0.0, "The number is not in the answer."


def simulated(request: tg.llm.Request) -> Answer:
    """The offline model: does what the prompt says, and as critic and optimizer asks for what is missing."""
    user = request.messages[-1].text
    if request.purpose == "forward":
        return next_turn(request)
    if request.purpose == "optimizer":
        wishes = dict.fromkeys(re.findall(r'Add: ([^\n<"]*)', user))
        last = max(int(number) for number in re.findall(r"^(\d+)\|", user, re.MULTILINE))
        return {
            "edits": [
                {"op": "add", "line": last, "text": wish, "reason": "the feedback asks for it", "feedback": [1]}
                for wish in wishes
            ]
        }
    said = "Add: Answer with the number alone."
    if "KeyError" in user:
        said = "Add: Look up the customer number first, by the name in small letters."
    return feedback_for(request, said)


def next_turn(request: tg.llm.Request) -> Answer:
    """A tool call, or the answer."""
    system, question, last = request.messages[0].text, request.messages[1].text, request.messages[-1]
    name = question.split()[0]
    if last.role != "tool":
        if "customer number first" in system:
            return calling("customer_number", name=name.lower())
        return calling("open_orders", customer=name)
    if "KeyError" in last.text:
        return "There is no such customer."
    if not last.text.startswith("["):
        return calling("open_orders", customer=last.text)
    count = len(json.loads(last.text))
    return str(count) if "number alone" in system else f"It is {count} orders."


def calling(tool: str, **arguments: str) -> tg.llm.Completion:
    """An answer that calls a tool."""
    called = {"id": tool, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
    usage = tg.llm.Usage(input_tokens=50, output_tokens=10, calls=1)
    return tg.llm.Completion(text="", finish_reason="tool_calls", tool_calls=(called,), usage=usage)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the prompt and report."""
    parser = argparse.ArgumentParser(description="Train the prompt of an agent with two tools.")
    parser.add_argument("--model", help="a live model, such as openai/gpt-5-mini; without it a simulation answers")
    options = parser.parse_args(arguments)
    program = Desk()
    train, val, test = ROWS[0::3], ROWS[1::3], ROWS[2::3]
    with tg.use_models(forward=options.model or FunctionModel(simulated)), tg.llm.meter() as meter:
        optimizer = optim.TGD(program.parameters())
        metric = nn.Metric(score, "whether the answer is the right number and nothing else")
        result = tg.Trainer(max_epochs=2, batch_size=8).fit(program, metric, optimizer, train, val, test)
    print("The prompt now:", *result.best["chat.system"].split("\n"), sep="\n  ")
    print(result)
    print("Calls:", json.dumps({purpose: usage.calls for purpose, usage in meter.by_purpose.items()}))
    if not options.model:
        print("(A simulated model answered; this shows the machinery, not what a real model learns.)")


if __name__ == "__main__":
    try:
        main()
    except tg.errors.TextgradError as error:  # such as a key that is missing
        sys.exit(f"error: {error}")
