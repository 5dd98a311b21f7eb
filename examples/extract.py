"""Extraction: a prompt that reads mails into a form, scored field by field.

The answer is JSON of the form of a dataclass. Each field has a metric of its own, the amount counts as much as the
other two, and the critic is told of which field something was said. At the end each metric's own score is printed.

Run it offline, in a second:       python examples/extract.py
Run it with a model of your own:   python examples/extract.py --model openai/gpt-5-mini

The offline model is a simulation made of the few rules below, for trying the machinery out: it shows that feedback on
each field arrives at the prompt, and nothing about real models.
"""

import argparse
import dataclasses
import re
import sys
from collections.abc import Sequence

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.testing import Answer, FunctionModel, feedback_for


@dataclasses.dataclass
class Invoice:
    """What is read from a mail."""

    vendor: str
    amount: float
    due: str


VENDORS = ["Ash", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Gorse", "Hazel", "Ivy", "Juniper", "Larch", "Maple"]
ROWS = [
    {
        "mail": f"{vendor} Ltd. asks for {100 + number} EUR net, {(100 + number) * 1.2:.2f} EUR with VAT, "
        f"by {day}.{number % 12 + 1}.2026.",
        "target": {
            "vendor": vendor,
            "amount": round((100 + number) * 1.2, 2),
            "due": f"2026-{number % 12 + 1:02}-{day:02}",
        },
    }
    for number, (vendor, day) in enumerate((vendor, day) for day in (3, 11, 19, 27) for vendor in VENDORS)
]
RULES = {
    "vendor": "Leave out the legal form of the vendor.",
    "amount": "The amount is the one with VAT.",
    "due": "Write the date as YYYY-MM-DD.",
}
"""What the house wants of each field, and the first prompt does not say."""


def same_day(said: str, due: str) -> tuple[float, str]:
    """1 for the date in the right form, a half for the right day and month in another one."""
    if said == due:
        return 1.0, ""
    numbers = {int(number) for number in re.findall(r"\d+", said)}
    right = numbers == {int(number) for number in due.split("-")}
    return (0.5 if right else 0.0), f"It should be {due}, as YYYY-MM-DD."


def loss() -> nn.Weighted:
    """One score from 0 to 1 of three metrics."""
    return nn.Weighted(
        {
            "vendor": nn.OnField(nn.ExactMatch(), "vendor"),
            "amount": nn.OnField(nn.ExactMatch(), "amount"),
            "due": nn.OnField(nn.Metric(same_day, "the date", scale=(0, 1)), "due"),
        },
        {"vendor": 1, "amount": 2, "due": 1},
    )


def simulated(request: tg.llm.Request) -> Answer:
    """The offline model: reads as the prompt says, and as critic and optimizer asks for what is missing."""
    system, user = request.messages[0].text, request.messages[-1].text
    if request.purpose == "forward":
        return read(system, user)
    if request.purpose == "optimizer":
        wishes = dict.fromkeys(re.findall(r'Add: ([^\n<"]*)', user))
        last = max(int(number) for number in re.findall(r"^(\d+)\|", user, re.MULTILINE))
        return {
            "edits": [
                {"op": "add", "line": last, "text": wish, "reason": "the feedback asks for it", "feedback": [1]}
                for wish in wishes
            ]
        }
    wrong = dict.fromkeys(re.findall(r"On the field (\w+) of this answer", user))
    return feedback_for(request, "\n".join(f"Add: {RULES[field]}" for field in wrong))


def read(system: str, mail: str) -> Answer:
    """The form, filled in by the rules that the prompt states."""
    vendor, net, gross, day, month = re.findall(r"(.*) asks for (\S+) EUR net, (\S+) .* by (\d+)\.(\d+)\.", mail)[0]
    return {
        "vendor": vendor.removesuffix(" Ltd.") if RULES["vendor"] in system else vendor,
        "amount": float(gross if RULES["amount"] in system else net),
        "due": f"2026-{month:0>2}-{day:0>2}" if RULES["due"] in system else f"{day}.{month}.2026",
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the prompt and report."""
    parser = argparse.ArgumentParser(description="Train a prompt that reads mails into a form.")
    parser.add_argument("--model", help="a live model, such as openai/gpt-5-mini; without it a simulation answers")
    options = parser.parse_args(arguments)
    program = nn.ChatCompletion(
        "{mail}",
        system=nn.Parameter("Read the invoice.", role="system prompt of the invoice reader"),
        response_format=Invoice,
    )
    train, val, test = ROWS[:12], ROWS[12:24], ROWS[24:]
    with tg.use_models(forward=options.model or FunctionModel(simulated)):
        trainer = tg.Trainer(max_epochs=2, batch_size=6)
        result = trainer.fit(program, loss(), optim.TGD(program.parameters()), train, val, test)
    print("The prompt now:", *result.best["system"].split("\n"), sep="\n  ")
    print(result)
    if result.seed_test and result.best_test:  # a run that was cut short has none
        for before, after in zip(result.seed_test.parts, result.best_test.parts):
            print(f"  {after.name}: {before.mean or 0:.2f} -> {after.mean or 0:.2f}, weight {after.weight:g}")
    if not options.model:
        print("(A simulated model answered; this shows the machinery, not what a real model learns.)")


if __name__ == "__main__":
    try:
        main()
    except tg.errors.TextgradError as error:  # such as a key that is missing
        sys.exit(f"error: {error}")
