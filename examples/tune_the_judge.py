"""Tune a judge: the criteria by which a model marks answers are trained until its marks are those that people gave.

``eval_mode=False`` sends what is said about a mark to the criteria, and not to the answer that was marked. The loss is
how far the mark is from people's; once they agree, the criteria go into the `nn.Judge` of another program.

Run it offline, in a second:       python examples/tune_the_judge.py
Run it with a model of your own:   python examples/tune_the_judge.py --model openai/gpt-5-mini

The offline model is a simulation made of the few rules below, for trying the machinery out: it shows that feedback
arrives at the criteria, and nothing about real models.
"""

import argparse
import itertools
import re
import sys
from collections.abc import Sequence

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.testing import Answer, FunctionModel

SUBJECTS = ["lamp", "chair", "clock", "kettle", "mirror", "ladder", "carpet", "guitar", "printer", "heater"]
RULES = {
    "on Friday": (2, "Two marks more where the answer names a day."),
    "we are sorry": (1, "One mark more where it says sorry."),
    "your own fault": (-1, "One mark less where it blames the customer."),
}
"""What people go by, who mark from 1 to 5: words in an answer, what they are worth, and the rule that says so."""


def rows() -> list[dict[str, object]]:
    """Answers of a support desk, and the marks that people gave them."""
    found: list[dict[str, object]] = []
    for subject, used in itertools.product(SUBJECTS, itertools.product((False, True), repeat=len(RULES))):
        words = [word for word, uses in zip(RULES, used) if uses]
        answer = f"About the {subject} that you sent us: " + "; ".join([f"we look at your {subject}", *words]) + "."
        found.append({"answer": answer, "target": 2 + sum(RULES[word][0] for word in words)})
    return found


class Marks(nn.Module):
    """The judge as a program: it gives the mark of an answer."""

    def __init__(self) -> None:
        super().__init__()
        criteria = nn.Parameter("Mark how good the answer of the support desk is.", role="criteria of the judge")
        self.judge = nn.Judge(criteria, scale=(1, 5), eval_mode=False)

    def forward(self, answer: str) -> tg.Variable:
        """The mark."""
        return self.judge(tg.Variable(answer, role="answer of the support desk"))


def agreement(mark: float, people: float) -> tuple[float, str]:
    """1 for people's mark, and a quarter less for each mark between."""
    return 1 - abs(mark - people) / 4, f"People gave {people}, the judge gave {mark:g}."


def simulated(request: tg.llm.Request) -> Answer:
    """The offline model: a judge that knows the rules which its criteria state, and a critic that asks for others."""
    user = request.messages[-1].text
    if request.purpose == "judge":
        return {"score": min(5, max(1, 2 + marks(user))), "explanation": "By the criteria."}
    if request.purpose == "optimizer":
        wishes = dict.fromkeys(re.findall(r'Add: ([^\n<"]*)', user))
        last = max(int(number) for number in re.findall(r"^(\d+)\|", user, re.MULTILINE))
        return {
            "edits": [
                {"op": "add", "line": last, "text": wish, "reason": "people go by it", "feedback": [1]}
                for wish in wishes
            ]
        }
    form = request.config.response_format
    assert form is not None
    lacking = [rule for word, (_, rule) in RULES.items() if word in user and rule not in user]
    said = "\n".join([f"Add: {rule}" for rule in lacking])
    return {case: {"instructions": said} for case in form.json_schema["properties"]}


def marks(user: str) -> int:
    """What the rules that the criteria state make of an answer."""
    return sum(worth for word, (worth, rule) in RULES.items() if word in user and rule in user)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the criteria and report."""
    parser = argparse.ArgumentParser(description="Train the criteria of a judge on marks that people gave.")
    parser.add_argument("--model", help="a live model, such as openai/gpt-5-mini; without it a simulation answers")
    options = parser.parse_args(arguments)
    program, marked = Marks(), rows()
    with tg.use_models(forward=options.model or FunctionModel(simulated)):
        metric = nn.Metric(agreement, "how near the judge's mark is to people's")
        trainer = tg.Trainer(max_epochs=2, batch_size=12)
        optimizer = optim.TGD(program.parameters())
        result = trainer.fit(program, metric, optimizer, marked[:24], marked[24:48], marked[48:])  # by subject
    print("The criteria now:", *result.best["judge.instructions"].split("\n"), sep="\n  ")
    print(result)
    if not options.model:
        print("(A simulated model answered; this shows the machinery, not what a real judge learns.)")


if __name__ == "__main__":
    try:
        main()
    except tg.errors.TextgradError as error:  # such as a key that is missing
        sys.exit(f"error: {error}")
