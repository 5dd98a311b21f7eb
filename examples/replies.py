"""Replies: a prompt that answers complaints, where no right answers are known but what a good one does and must not do.

A judge says of each criterion whether a reply meets it. To promise a date costs points, and under the share of replies
that promise none there is a floor. What people noted of some mails goes to the critic alone. At the end it is told how
many replies do well by each criterion.

Run it offline, in a second:       python examples/replies.py
Run it with a model of your own:   python examples/replies.py --model openai/gpt-5-mini

The offline model is a simulation made of the few rules below, for trying the machinery out: it shows that what a reply
lacks arrives at the prompt, and nothing about real models.
"""

import argparse
import re
import sys
from collections.abc import Sequence

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.testing import Answer, FunctionModel, feedback_for

CRITERIA = [
    {"criterion": "It says sorry.", "points": 1},
    {"criterion": "It names the order.", "points": 1},
    {"criterion": "It says what happens next.", "points": 3},
    {"criterion": "It promises a date.", "points": -2},
]
NO_DATE = "not: It promises a date."
"""What the last criterion is called where it is told how many replies do well by it."""

FAULTS = ["is late", "is broken", "was lost", "is the wrong one"]
ROWS = [
    {
        "id": f"mail {number}",
        "mail": f"Order {4000 + number} {FAULTS[number % 4]}.",
        "why": "Customers ring up if they hear of no next step." if number % 3 == 0 else None,
    }
    for number in range(60)
]
RULES = {
    "says sorry": "Say sorry first.",
    "names the order": "Name the order.",
    "what happens next": "Say what happens next, and promise no date.",
}
"""What the house wants of a reply, and the first prompt does not say."""


def simulated(request: tg.llm.Request) -> Answer:
    """The offline model: replies as the prompt says, judges, and as critic and optimizer asks for what is missing."""
    system, user = request.messages[0].text, request.messages[-1].text
    if request.purpose == "forward":
        return reply(system, user)
    if request.purpose == "judge":
        return marks(*user.split("The answer to check:"))
    if request.purpose == "optimizer":
        wishes = dict.fromkeys(re.findall(r'Add: ([^\n<"]*)', user))
        last = max(int(number) for number in re.findall(r"^(\d+)\|", user, re.MULTILINE))
        return {
            "edits": [
                {"op": "add", "line": last, "text": wish, "reason": "the feedback asks for it", "feedback": [1]}
                for wish in wishes
            ]
        }
    missing = [rule for words, rule in RULES.items() if words in user.partition("Feedback on the answer:")[2]]
    return feedback_for(request, "\n".join(f"Add: {rule}" for rule in missing))


def reply(system: str, mail: str) -> str:
    """A reply by the rules that the prompt states."""
    (order,) = re.findall(r"Order (\d+)", mail)
    said = [
        "We are sorry." if "sorry" in system else "We have read your mail.",
        f"It is about order {order}." if "Name the order" in system else "",
        "A new one is on its way" if "what happens next" in system else "We see to it",
        "." if "no date" in system else " by Friday.",
    ]
    return f"{' '.join(filter(None, said[:3]))}{said[3]}"


def marks(asked: str, answer: str) -> Answer:
    """Of each criterion whether the reply meets it."""
    met = {"sorry": "sorry", "order": "order", "next": "on its way", "date": "by Friday"}
    found = {}
    for number, last in re.findall(r"^(\d+)\. .*?(\w+)\.$", asked, re.MULTILINE):
        there = met[last] in answer
        found[number] = {"explanation": f'It has {"" if there else "no "}"{met[last]}".', "met": there}
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the prompt and report."""
    parser = argparse.ArgumentParser(description="Train a prompt that answers complaints.")
    parser.add_argument("--model", help="a live model, such as openai/gpt-5-mini; without it a simulation answers")
    options = parser.parse_args(arguments)
    program = nn.ChatCompletion("{mail}", system=nn.Parameter("Answer the mail.", role="system prompt for replies"))
    train, val, test = ROWS[:16], ROWS[16:36], ROWS[36:]
    guards = tg.train.Guards(metrics={NO_DATE: 0.9})
    with tg.use_models(forward=options.model or FunctionModel(simulated)):
        trainer = tg.Trainer(max_epochs=2, batch_size=8, notes="why", guards=guards)
        result = trainer.fit(program, nn.Rubric(CRITERIA), optim.TGD(program.parameters()), train, val, test)
    print("The prompt now:", *result.best["system"].split("\n"), sep="\n  ")
    print(result)
    if result.seed_test and result.best_test:  # a run that was cut short has none
        for before, after in zip(result.seed_test.parts, result.best_test.parts):
            print(f"  {before.mean or 0:.0%} -> {after.mean or 0:.0%}  {after.name}")
    if not options.model:
        print("(A simulated model answered; this shows the machinery, not what a real model learns.)")


if __name__ == "__main__":
    try:
        main()
    except tg.errors.TextgradError as error:  # such as a key that is missing
        sys.exit(f"error: {error}")
