"""Train the prompt of an app that exists already, and asks its model by itself.

The app below looks an order up and has its own client answer the customer: another provider's SDK, say, or an agent
framework. It knows nothing of this library; `llm.CallableModel` makes a model of it. So all examples run at once, what
it says is recorded, and a run that was cut goes on without asking it again.

Run it offline, in a second:        python examples/own_app.py
With a critic of your own:          python examples/own_app.py --model openai/gpt-5-mini

The client and the offline critic are a simulation made of the few rules below, for trying the machinery out: it shows
how an app is trained, and nothing about real models.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any

import textgrad_engine as tg
from textgrad_engine import llm, nn, optim
from textgrad_engine.testing import Answer, FunctionModel, feedback_for

PROMPT = "You answer customers of a shop for lamps."
STATES = ("packed", "on its way", "delivered", "lost")
ORDERS = {str(number): STATES[number % 7 % len(STATES)] for number in range(100, 136)}
GREETINGS = ("Hello,", "Good morning from rainy Oslo!", "To whom it may concern:", "Hi there")
QUESTIONS = ("where is my order {}?", "I ordered {} last week and heard nothing.", "what happened to {}, please?")
ENDINGS = ("Thanks, Ann", "I need it for a birthday.", "Kind regards, the reading club")
ROWS = [
    {
        "question": f"{GREETINGS[n % 4]} {QUESTIONS[n // 4 % 3].format(number)} {ENDINGS[n // 12 % 3]}",
        "target": state,
    }
    for n, (number, state) in enumerate(ORDERS.items())
]


class Client:
    """Stands for an SDK: `answer` would send a request, and wait for it."""

    def answer(self, prompt: str, question: str, facts: str) -> str:
        """What the model behind it says: with the facts where the prompt has it look at them."""
        if "state of the order" not in prompt:
            return "We have received your question."
        return f"{'We are sorry: ' if 'lost' in facts and 'sorry' in prompt else ''}your order is {facts}."


def my_app(messages: list[dict[str, Any]]) -> str:
    """The app: called with the messages of a call, of which the first one is its prompt."""
    prompt, question = (message["content"] for message in messages)
    number = re.search(r"\d+", question)
    facts = ORDERS.get(number[0], "unknown") if number else "unknown"
    return Client().answer(prompt, question, facts)


def helps(answer: str, state: str) -> tuple[float, str]:
    """Half for the state of the order, half for the tone; and what is missing."""
    told, kind = state in answer, state != "lost" or "sorry" in answer
    missing = [] if told else [f"It does not say that the order is {state}."]
    missing += [] if kind else ["It does not say sorry for what was lost."]
    return (told + kind) / 2, " ".join(missing)


def simulated(request: llm.Request) -> Answer:
    """Critic and optimizer: what is missing is to be said."""
    said = request.messages[-1].text
    if request.purpose == "backward":
        tone = "Add: Say sorry where something was lost." if "say sorry" in said else ""
        return feedback_for(request, tone or "Add: Say the state of the order.")
    last = max(int(number) for number in re.findall(r"^(\d+)\|", said, re.MULTILINE))
    wishes = dict.fromkeys(re.findall(r'Add: ([^\n<"]*)', said))
    return {
        "edits": [{"op": "add", "line": last, "text": each, "reason": "asked for", "feedback": [1]} for each in wishes]
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the prompt and report."""
    parser = argparse.ArgumentParser(description="Train the prompt of an app that asks its model by itself.")
    parser.add_argument("--model", help="the live critic and optimizer; without it a simulation answers")
    options = parser.parse_args(arguments)
    app = llm.CallableModel(my_app, retry=(TimeoutError,))  # what another attempt may help against
    program = nn.ChatCompletion("{question}", system=nn.Parameter(PROMPT, role="prompt of the app"), model=app)
    helpers = options.model or FunctionModel(simulated)
    with tg.use_models(backward=helpers, optimizer=helpers):
        trainer = tg.Trainer(max_epochs=3, batch_size=8)
        loss = nn.Metric(helps, "whether the customer is told the state of the order, kindly")
        result = trainer.fit(program, loss, optim.TGD(program.parameters()), ROWS[:12], ROWS[12:24], ROWS[24:])
    print(*result.best["system"].split("\n"), sep="\n")
    print(result)
    if not options.model:
        print("(Simulated models answered; this shows the machinery, not what real models learn.)")


if __name__ == "__main__":
    try:
        main()
    except tg.errors.TextgradError as error:  # such as a key that is missing
        sys.exit(f"error: {error}")
