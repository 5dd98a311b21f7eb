"""Ask an outside model without telling it who asks: two models, two prompts, and a loss made of a judge and a count.

A model that is trusted writes a request to one that is not, and makes the final letter of the answer. The program gives
both texts; the loss is a module, too, that has the letter judged and counts what the request gives away. Feedback on
the letter reaches both prompts, as the letter was made of the request's answer; that on the request only the first one.

Run it offline, in a second:        python examples/delegate.py
Run it with models of your own:     python examples/delegate.py --model openai/gpt-5-mini --outside openai/gpt-5

The offline models are a simulation made of the few rules below, for trying the machinery out: it shows that each prompt
hears what concerns it, and nothing about real models.
"""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.testing import Answer, FunctionModel

NAMES = ["Ada Ash", "Bo Birch", "Cy Cedar", "Dee Dogwood", "Eli Elm", "Fay Fir", "Gus Gorse", "Hal Hazel", "Ida Ivy"]
LETTERS = ["a notice to my landlord", "a complaint about the heating", "a thank-you note to the caretaker"]
ROWS = [
    {"query": f"Write {letter}. I am {name}, of {number} Mill Lane.", "private": [name, f"{number} Mill Lane"]}
    for number, name in enumerate(NAMES, 10)
    for letter in LETTERS
]


class Delegate(nn.Module):
    """A prompt for the request, and one for the letter that is made of the answer to it."""

    def __init__(self, outside: Any = None) -> None:
        super().__init__()
        self.ask = nn.ChatCompletion(
            "The user's query: {query}",
            system=nn.Parameter("Write a request that gets help with the query.", role="prompt of the request"),
            role="request to an outside model",
        )
        self.outside = nn.ChatCompletion("{request}", model=outside, role="draft by the outside model")
        self.finish = nn.ChatCompletion(
            "The user's query: {query}\n\nA draft: {draft}",
            system=nn.Parameter("Make the letter of the draft.", role="prompt of the final letter"),
            role="letter",
        )

    def forward(self, query: str) -> dict[str, tg.Variable]:
        """Ask outside, and finish inside."""
        request = self.ask(query=query)
        return {"request": request, "letter": self.finish(query=query, draft=self.outside(request=request))}


class HelpfulAndDiscreet(nn.Module):
    """Half for a letter that the judge finds good, half for a request that gives nothing away."""

    def __init__(self) -> None:
        super().__init__()
        self.helpful = nn.Judge("Is it the letter that the query asks for, and is it signed with the name?")
        self.discreet = nn.Metric(discretion, "what the request tells the outside model")

    def forward(
        self, prediction: Mapping[str, tg.Variable], private: list[str], inputs: Mapping[str, Any]
    ) -> tg.Variable:
        """The sum; each half is silent where there is nothing to say."""
        letter = self.helpful(prediction["letter"], inputs=inputs)
        # Not as a target: the critic is told of that as of the answer which was expected.
        return 0.5 * letter + 0.5 * self.discreet(prediction["request"], inputs={"private": private})


def discretion(request: str, inputs: Mapping[str, Any]) -> tuple[float, str]:
    """What part of what is private stays so, and what does not."""
    private = inputs["private"]
    told = [each for each in private if each in request]
    return 1 - len(told) / len(private), f"It gives away: {', '.join(told)}."


def simulated(request: tg.llm.Request) -> Answer:
    """The trusted model: does what its prompts say; judges; as critic and optimizer asks for what is missing."""
    system, user = request.messages[0].text, request.messages[-1].text
    if request.purpose == "forward":
        return written(system, user)
    if request.purpose == "judge":
        signed = "Yours, " in user
        return {"score": int(signed), "explanation": "" if signed else "Nobody has signed it."}
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
    wishes = {"system": "", "draft": "", "request": ""}
    if "prompt of the request" in user and "It gives away" in user:
        wishes["system"] = "Add: Leave out names and addresses."
    if "prompt of the final letter" in user and "Nobody has signed it" in user:
        wishes["system"] = "Add: Sign the letter with the user's name."
    cases = form.json_schema["properties"]
    return {case: {key: wishes[key] for key in fields["properties"]} for case, fields in cases.items()}


def written(system: str, user: str) -> str:
    """A request, or the letter."""
    letter, name, place = re.findall(r"Write (.*?)\. I am (.*?), of (\d+ Mill Lane)\.", user)[0]
    if "A draft:" not in user:
        return f"Write {letter}." if "Leave out names" in system else f"Write {letter}, for {name} of {place}."
    draft = user.rpartition("A draft: ")[2]
    return f"{draft} Yours, {name}" if "Sign the letter" in system else draft


def main(arguments: Sequence[str] | None = None) -> None:
    """Train both prompts and report."""
    parser = argparse.ArgumentParser(description="Train prompts that ask an outside model, and keep what is private.")
    parser.add_argument("--model", help="the live model that is trusted; without it a simulation answers")
    parser.add_argument("--outside", help="the live model that is not; by default --model")
    options = parser.parse_args(arguments)
    outside = options.outside or (
        None if options.model else FunctionModel(lambda _: "Dear all, here it is.", "outside")
    )
    program, loss = Delegate(outside), HelpfulAndDiscreet()
    with tg.use_models(forward=options.model or FunctionModel(simulated)):
        trainer = tg.Trainer(max_epochs=2, batch_size=6, target="private")
        result = trainer.fit(program, loss, optim.TGD(program.parameters()), ROWS[:9], ROWS[9:18], ROWS[18:])
    for name, text in result.best.items():
        print(f"{name}:", *text.split("\n"), sep="\n  ")
    print(result)
    if not options.model:
        print("(Simulated models answered; this shows the machinery, not what real models learn.)")


if __name__ == "__main__":
    try:
        main()
    except tg.errors.TextgradError as error:  # such as a key that is missing
        sys.exit(f"error: {error}")
