"""Tune the critic: its instructions are a parameter, trained by feedback on its feedback.

A backward pass asks a critic what should change in a prompt. How good the answers are depends on the critic's own
instructions. Here they are an `nn.Parameter`: a first backward pass with ``create_graph=True`` writes the feedback, a
judge says what is wrong with that feedback, and a second pass carries this to the instructions, which TGD then edits.

Run it offline, in a second:       python examples/tune_the_critic/main.py
Run it with a model of your own:   python examples/tune_the_critic/main.py --model openai/gpt-5-mini

The offline model is a simulation made of the few rules below, for trying the machinery out. It always reacts as the
rules say; that it improves shows that feedback on feedback arrives where it should, and nothing about real models.
"""

import argparse
import json
import re
import sys
from collections.abc import Sequence

import textgrad_engine as tg
from textgrad_engine import nn, ops, optim
from textgrad_engine.testing import FunctionModel

CASES = [
    ("Where is my parcel?", "The answer must say on which day the parcel comes."),
    ("I was charged twice.", "The answer must say that the second charge is paid back."),
    ("The lamp is broken.", "The answer must offer a new lamp."),
]
WANTED = """Feedback on a prompt is good when
- it quotes the exact words to add to the prompt, and
- it names the customer's message that shows the problem.
If both hold, there is nothing to criticize."""


def feedback_on_prompt(prompt: tg.Variable, critic: tg.Variable) -> list[tg.Variable]:
    """What the critic says about the prompt, case by case, with the graph that leads back to its instructions."""
    losses = []
    for message, rubric in CASES:
        answer = ops.chat_completion(
            None, [{"role": "system", "content": prompt}, {"role": "user", "content": message}], role="answer"
        )
        losses.append(ops.text_loss(answer, rubric))
    with ops.critic(critic):
        (gradient,) = tg.autograd.grad(losses, prompt, create_graph=True)
    assert gradient is not None
    return gradient


def tune(steps: int) -> tuple[nn.Parameter, list[list[str]]]:
    """The critic's instructions after training, and its feedback before each step and after the last."""
    prompt = nn.Parameter("Answer the customer politely.", role="prompt of the support desk")
    critic = nn.Parameter("Say what is wrong with the prompt.", role="instructions of the critic")
    optimizer = optim.TGD([critic], max_edits=1)
    seen = []
    for _ in range(steps):
        feedback = feedback_on_prompt(prompt, critic)
        seen.append([item.data for item in feedback])
        criticism = [ops.text_loss(item, WANTED) for item in feedback]
        if not any(text.data for text in criticism):
            return critic, seen
        tg.backward(criticism, inputs=[critic])
        optimizer.step()
        optimizer.zero_grad()
    seen.append([item.data for item in feedback_on_prompt(prompt, critic)])
    return critic, seen


def simulated(request: tg.llm.Request) -> str | dict[str, object]:
    """The offline model: support desk, judge, optimizer, and a critic that does what its instructions ask for."""
    system, user = request.messages[0].text, request.messages[-1].text
    if request.purpose == "forward":
        return "Thank you for your message, we are looking into it."
    if request.purpose == "judge":
        said = judged(user)
        return {"nothing_wrong": not said, "criticism": said}
    if request.purpose == "optimizer":
        wishes = re.findall(r"Demand ([^\n]*)", user)
        last = max(int(number) for number in re.findall(r"^(\d+)\|", user, re.MULTILINE))
        new = {"op": "add", "line": last, "reason": "asked for", "feedback": [1]}
        return {"edits": [{**new, "text": f"Always give {wish}"} for wish in wishes[:1]]}
    if "instructions of the critic" in user:  # feedback on feedback
        about_words = "quotes no words" in user
        wish = "the exact words to add, in quotes." if about_words else "the customer's message that shows it."
        return {"case_1": {"system": f"Demand {wish}"}}
    return {"case_1": {"system": criticism_of_prompt(system, user)}}


def criticism_of_prompt(instructions: str, shown: str) -> str:
    """As concrete as the instructions ask for."""
    message, rubric = next(case for case in CASES if case[0] in shown)
    said = "The prompt could be better."
    if "exact words" in instructions:
        said = f'Add to the prompt: "{rubric.removeprefix("The answer must ").capitalize()}"'
    return f'{said} See "{message}".' if "the customer's message" in instructions else said


def judged(user: str) -> str:
    """The judge of answers finds them all too general; the judge of feedback looks for what `WANTED` asks for."""
    if "quotes the exact words" not in user:
        return "It does not help: " + next(rubric for _, rubric in CASES if rubric in user)
    feedback = re.search(r"<answer-[0-9a-f]+>\n(.*)\n</answer", user, re.DOTALL)
    text = feedback[1] if feedback else ""
    if "Add to the prompt" not in text:
        return "It quotes no words to add."
    return "" if "See " in text else "It names no message that shows the problem."


def main(arguments: Sequence[str] | None = None) -> None:
    """Tune and report."""
    parser = argparse.ArgumentParser(description="Train a critic's instructions by feedback on its feedback.")
    parser.add_argument("--model", help="a live model, such as openai/gpt-5-mini; without it a simulation answers")
    parser.add_argument("--steps", type=int, default=4, help="at most so many edits of the instructions (default 4)")
    options = parser.parse_args(arguments)
    with tg.use_models(forward=options.model or FunctionModel(simulated)), tg.llm.meter() as meter:
        critic, seen = tune(options.steps)
    print("The critic's feedback before:", *seen[0], sep="\n  ")
    for number, feedback in enumerate(seen[1:], 1):
        print(f"After step {number}:", *feedback, sep="\n  ")
    print("The critic's instructions now:", *critic.data.split("\n"), sep="\n  ")
    print("Calls:", json.dumps({purpose: usage.calls for purpose, usage in meter.by_purpose.items()}))
    if not options.model:
        print("(A simulated model answered; this shows the machinery, not what a real critic learns.)")


if __name__ == "__main__":
    try:
        main()
    except tg.errors.TextgradError as error:  # such as a key that is missing
        sys.exit(f"error: {error}")
