"""A rare class: one mail in ten is about fraud, and to miss it is worse than anything else.

The mean of right and wrong hardly sees such a class: a prompt that never says "fraud" is right on nine mails of ten. So
minibatches are drawn with weights, until the classes are alike in them; the score counts a mail of a rare class for
more; and guards refuse what lets a frequent class fall. What was found of each class is printed at the end.

Run it offline, in a second:       python examples/rare_class.py
Run it with a model of your own:   python examples/rare_class.py --model openai/gpt-5-mini

The offline model is a simulation made of the few rules below, for trying the machinery out: it shows that the rare
class is learned, and nothing about real models.
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Sequence

import textgrad_engine as tg
from textgrad_engine import data, nn, optim, train
from textgrad_engine.testing import Answer, FunctionModel, feedback_for

SAID = {
    "bill": ["I was charged twice", "The invoice has a wrong name", "My refund is late"],
    "parcel": ["My parcel is late", "The parcel is at a wrong door", "The box was empty"],
    "fraud": ["Somebody ordered in my name", "Your driver asks me for my card number"],
}
RULES = {
    "Somebody ordered": "What the customer did not order is fraud.",
    "card number": "Who asks for card numbers is fraud.",
}
"""What makes a mail one about fraud, and the first prompt does not say."""
NAMES = ["Ada Ash", "Bo Birch", "Cy Cedar", "Dee Dogwood", "Eli Elm", "Fay Fir", "Gus Gorse", "Hal Hazel"]
THINGS = [
    "garden chair",
    "kettle",
    "reading lamp",
    "ladder",
    "set of knives",
    "printer",
    "wool carpet",
    "guitar",
    "tent",
]


def rows(count: int) -> list[dict[str, str]]:
    """Mails, one in ten of them about fraud."""
    found = []
    for number in range(count):
        label = "fraud" if number % 10 == 9 else ("bill", "parcel")[number % 2]
        said = SAID[label][number // 10 % len(SAID[label])]
        order = f"{THINGS[number % len(THINGS)]} of {number % 28 + 1}.{number % 12 + 1}."
        found.append({"mail": f"{said}. It is the {order} {NAMES[number % len(NAMES)]}", "target": label})
    return found


def weights(rows: Sequence[dict[str, str]]) -> dict[str, float]:
    """What a mail of each class counts, so that all classes count alike; 1 on the average."""
    count = Counter(row["target"] for row in rows)
    return {label: len(rows) / len(count) / times for label, times in count.items()}


class Balanced(nn.Module):
    """Exact match by class: its mean is the mean of the classes' recalls where a set has their usual shares."""

    def __init__(self, weights: dict[str, float]) -> None:
        super().__init__()
        self.right, self.weights = nn.ExactMatch(), weights
        self.scale = (0.0, max(weights.values()))

    def forward(self, prediction: tg.Variable, target: str) -> tg.Variable:
        """The weight of the class where it was found, else 0; the critic is asked only where it was not."""
        return self.weights[target] * self.right(prediction, target)


def recalls(found: tg.Evaluation, rows: Sequence[dict[str, str]]) -> dict[str, float]:
    """Of the mails of each class, how many were found."""
    count, right = Counter[str](), Counter[str]()
    for row, score in zip(rows, found.scores):
        count[row["target"]] += 1
        right[row["target"]] += bool(score)
    return {label: right[label] / count[label] for label in SAID}


def simulated(request: tg.llm.Request) -> Answer:
    """The offline model: sorts as the prompt says, and as critic and optimizer asks for what is missing."""
    system, user = request.messages[0].text, request.messages[-1].text
    if request.purpose == "forward":
        if any(words in user and rule in system for words, rule in RULES.items()):
            return "fraud"
        return "parcel" if re.search("parcel|driver|box", user) else "bill"
    if request.purpose == "optimizer":
        wishes = dict.fromkeys(re.findall(r'Add: ([^\n<"]*)', user))
        last = max(int(number) for number in re.findall(r"^(\d+)\|", user, re.MULTILINE))
        return {
            "edits": [
                {"op": "add", "line": last, "text": wish, "reason": "the feedback asks for it", "feedback": [1]}
                for wish in wishes
            ]
        }
    return feedback_for(request, "\n".join(f"Add: {rule}" for words, rule in RULES.items() if words in user))


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the prompt and report."""
    parser = argparse.ArgumentParser(description="Train a prompt that must not miss a rare class.")
    parser.add_argument("--model", help="a live model, such as openai/gpt-5-mini; without it a simulation answers")
    options = parser.parse_args(arguments)
    program = nn.ChatCompletion(
        "{mail}",
        system=nn.Parameter("Sort the mail: bill, parcel or fraud. Answer with the word.", role="system prompt"),
    )
    mails = rows(240)
    first, val, test = mails[0::3], mails[1::3], mails[2::3]
    weight = weights(mails)
    sampler = data.WeightedRandomSampler([weight[row["target"]] for row in first], num_samples=48, seed=0)
    loader = data.DataLoader(first, batch_size=16, sampler=sampler)
    # A floor is one of scores, and a mail that is sorted right scores what its class counts.
    guards = train.Guards(floors={("target", label): 0.9 * weight[label] for label in ("bill", "parcel")})
    with tg.use_models(forward=options.model or FunctionModel(simulated)):
        trainer = tg.Trainer(max_epochs=2, guards=guards)
        result = trainer.fit(program, Balanced(weight), optim.TGD(program.parameters()), loader, val, test)
    print("The prompt now:", *result.best["system"].split("\n"), sep="\n  ")
    print(result)
    if result.seed_test and result.best_test:  # a run that was cut short has none
        before, after = recalls(result.seed_test, test), recalls(result.best_test, test)
        for label in SAID:
            print(f"  {label}: {before[label]:.2f} -> {after[label]:.2f} found")
    if not options.model:
        print("(A simulated model answered; this shows the machinery, not what a real model learns.)")


if __name__ == "__main__":
    try:
        main()
    except tg.errors.TextgradError as error:  # such as a key that is missing
        sys.exit(f"error: {error}")
