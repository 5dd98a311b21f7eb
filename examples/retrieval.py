"""Answers from documents: a prompt that writes search queries, a search in plain Python, a prompt that answers.

The search reads the query's ``.data``, and so nothing said of the answer would get back to whoever wrote the query.
`ops.straight_through` joins what was found to the query: its prompt is told what its queries found, and is trained with
the other one.

Run it offline, in a second:       python examples/retrieval.py
Run it with a model of your own:   python examples/retrieval.py --model openai/gpt-5-mini

The offline model is a simulation made of the few rules below, for trying the machinery out: it shows that feedback
arrives at both prompts, and nothing about real models.
"""

import argparse
import re
import sys
from collections.abc import Sequence

import textgrad_engine as tg
from textgrad_engine import nn, ops, optim
from textgrad_engine.testing import Answer, FunctionModel

TOWNS = [f"{a}{b}" for a in ("brack", "cald", "dun", "elm", "fern", "glen") for b in ("field", "ford", "ham", "wick")]
DOCUMENTS = [
    f"{town} {topic}: {town.capitalize()} {fact}."
    for number, town in enumerate(TOWNS)
    for topic, fact in (("river", f"lies on the {town[:4]}bourne"), ("population", f"has {number + 3}400 people"))
]
ROWS = [
    {"question": question, "target": answer}
    for number, town in enumerate(TOWNS)
    for question, answer in (
        (f"On which river is {town.capitalize()}?", f"{town[:4]}bourne"),
        (f"How many people live in {town.capitalize()}?", f"{number + 3}400"),
    )
]


def search(query: str) -> str:
    """The document that has most words of the query in its title; it knows no other words."""
    words = set(query.split())
    shared, best = max((len(words & set(text.split(":")[0].split())), text) for text in DOCUMENTS)
    return best if shared == 2 else "(nothing was found)"


class Answers(nn.Module):
    """Two prompts with a search between them."""

    def __init__(self) -> None:
        super().__init__()
        self.writer = nn.ChatCompletion(
            "{question}", system=nn.Parameter("Write a query for the search.", role="prompt of the query writer")
        )
        self.reader = nn.ChatCompletion(
            "Found: {found}\n\nQuestion: {question}",
            system=nn.Parameter("Answer the question from what was found.", role="prompt of the answerer"),
        )

    def forward(self, question: str) -> tg.Variable:
        """Write a query, search, answer."""
        query = self.writer(question=question)
        found = ops.straight_through(search(str(query)), query, role="text that the search found")
        return self.reader(found=found, question=question)


def score(prediction: str, target: str) -> tuple[float, str]:
    """Half for an answer that has the fact somewhere, all for one that is nothing else."""
    if prediction.strip() == target:
        return 1.0, ""
    if target in prediction:
        return 0.5, "The fact is right; nothing else belongs into the answer."
    return 0.0, "The fact is not in the answer."


def simulated(request: tg.llm.Request) -> Answer:
    """The offline model: does what the prompts say, and as their critic and optimizer asks for what is missing."""
    system, user = request.messages[0].text, request.messages[-1].text
    if request.purpose == "forward":
        return answered(system, user)
    if request.purpose == "optimizer":
        wishes = dict.fromkeys(re.findall(r'Add: ([^\n<"]*)', user))
        last = max(int(number) for number in re.findall(r"^(\d+)\|", user, re.MULTILINE))
        return {
            "edits": [
                {"op": "add", "line": last, "text": wish, "reason": "the feedback asks for it", "feedback": [1]}
                for wish in wishes
            ]
        }
    form = request.config.response_format
    assert form is not None
    nothing_found, about_query = "(nothing was found)" in user, "prompt of the query writer" in user
    said = {"system": "", "found": "Nothing was found that answers it." if nothing_found else ""}
    if about_query:
        said["system"] = "Add: Give the name of the town in small letters, then river or population."
    elif not nothing_found:
        said["system"] = "Add: Answer with the fact alone."
    cases = form.json_schema["properties"]
    return {case: {key: said[key] for key in fields["properties"]} for case, fields in cases.items()}


def answered(system: str, user: str) -> str:
    """A query, or an answer from what was found."""
    town = re.findall(r"[A-Z]\w+", user)[-1]
    if "Found:" not in user:
        topic = "river" if "river" in user else "population"
        return f"{town.lower()} {topic}" if "small letters" in system else f"Where or what is {town}?"
    fact = re.search(r"\w+bourne|\d+400", user)
    if fact is None:
        return "That is not known."
    return fact[0] if "fact alone" in system else f"It is {fact[0]}."


def main(arguments: Sequence[str] | None = None) -> None:
    """Train both prompts and report."""
    parser = argparse.ArgumentParser(description="Train a prompt that writes queries, and one that answers.")
    parser.add_argument("--model", help="a live model, such as openai/gpt-5-mini; without it a simulation answers")
    options = parser.parse_args(arguments)
    program = Answers()
    train, val, test = ROWS[0::3], ROWS[1::3], ROWS[2::3]
    with tg.use_models(forward=options.model or FunctionModel(simulated)):
        optimizer = optim.TGD(program.parameters())
        trainer = tg.Trainer(max_epochs=2, batch_size=8)
        metric = nn.Metric(score, "whether the answer is the fact and nothing else")
        result = trainer.fit(program, metric, optimizer, train, val, test)
    for name, text in result.best.items():
        print(f"{name}:", *text.split("\n"), sep="\n  ")
    print(result)
    if not options.model:
        print("(A simulated model answered; this shows the machinery, not what a real model learns.)")


if __name__ == "__main__":
    try:
        main()
    except tg.errors.TextgradError as error:  # such as a key that is missing
        sys.exit(f"error: {error}")
