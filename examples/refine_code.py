"""Improve an answer instead of a prompt: code that a model wrote is the parameter, and its tests are the loss.

There is no data and no Trainer. What fails is said of the code itself, so no critic is asked: the optimizer's model
edits its lines until the tests pass. Tests that the model never sees say at the end what that was worth.

Run it offline, in seconds:        python examples/refine_code.py
Run it with a model of your own:   python examples/refine_code.py --model openai/gpt-5-mini

It runs code that a model wrote, in a process of its own with five seconds to live. That is no sandbox: a live model's
code should run in a container. The offline model is a simulation made of the few rules below, for trying the machinery
out, and shows nothing about real models.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from subprocess import DEVNULL, PIPE

import textgrad_engine as tg
from textgrad_engine import func, nn, optim
from textgrad_engine.testing import Answer, FunctionModel


@dataclass(frozen=True)
class Task:
    """What to write, the tests that improve it, and those that only say at the end what came of it."""

    text: str
    tests: list[str]
    hidden: list[str]


TASKS = [
    Task(
        "longest_run(text): how long the longest run of one character is.",
        ["longest_run('aabbb') == 3", "longest_run('') == 0", "longest_run('abc') == 1"],
        ["longest_run('zzzz') == 4", "longest_run('abbbca') == 3"],
    ),
    Task(
        "median(numbers): the middle one, or the mean of both where there are two.",
        ["median([3, 1, 2]) == 2", "median([4, 1, 3, 2]) == 2.5"],
        ["median([9, 1, 5]) == 5", "median([10, 1]) == 5.5", "median([7]) == 7"],
    ),
    Task(
        "initials(name): the first letters of all words, in capitals.",
        ["initials('Ada Lovelace') == 'AL'", "initials('bo  derek') == 'BD'"],
        ["initials('  a b c ') == 'ABC'", "initials('') == ''"],
    ),
]

RUN = """
import json, os, sys
code, tests = json.load(sys.stdin)
found = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what the code prints is no part of what is found
names, failed = {}, []
for test in tests:
    try:
        exec(code, names)
        if not eval(test, names):
            failed.append(test + " is not so; the left side gives " + repr(eval(test.split(" == ")[0], names))[:200])
    except Exception as error:
        failed.append(test + " ends in " + type(error).__name__ + ": " + str(error)[:200])
json.dump(failed, found)
"""


def failures(code: str, tests: list[str]) -> list[str]:
    """The tests that do not pass, and why; all of them where the process comes to nothing."""
    command, given = [sys.executable, "-I", "-c", RUN], json.dumps([code, tests])
    try:
        done = subprocess.run(command, input=given, stdout=PIPE, stderr=DEVNULL, text=True, timeout=5, check=False)
        failed: list[str] = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        failed = [f"{test} is not done in five seconds" for test in tests]
    except ValueError:
        failed = [f"{test} ends the process" for test in tests]
    return failed


def improve(task: Task, steps: int = 4) -> tuple[str, str]:
    """The code that a model writes for a task, and what becomes of it."""

    def passed(code: str) -> tuple[float, str]:
        failed = failures(code, task.tests)
        return 1 - len(failed) / len(task.tests), "\n".join([f"The task is {task.text}", *failed])

    writer = nn.ChatCompletion("{task}", system="Write the Python function. Answer with its code alone.")
    code = nn.Parameter(writer(task=task.text), role="Python code of a function")
    first = str(code)
    loss = nn.Metric(passed, "tests of the function")
    optimizer = optim.TGD([code], constraints=["Write no tests into the code."], momentum=3)
    for _ in range(steps):
        score = loss(code)
        if score.data == 1:
            break
        optimizer.zero_grad()
        score.backward()
        optimizer.step()
    return first, str(code)


FIRST = {
    "longest_run": """def longest_run(text):
    best = run = 1
    for one, other in zip(text, text[1:]):
        run = run + 1 if one == other else 0
        best = max(best, run)
    return best""",
    "median": """def median(numbers):
    return sorted(numbers)[len(numbers) // 2]""",
    "initials": """def initials(name):
    return ''.join(word[0] for word in name.split(' '))""",
}
REPAIRS = {  # what a failure speaks of, the line that is wrong, and what it has to be
    "longest_run('aabbb')": ("run + 1 if one == other else 0", "run + 1 if one == other else 1"),
    "longest_run('')": ("best = run = 1", "best = run = 1 if text else 0"),
    "median([4,": (
        "sorted(numbers)[len(numbers) // 2]",
        "(sorted(numbers)[len(numbers) // 2] + sorted(numbers)[(len(numbers) - 1) // 2]) / 2",
    ),
    "is not so; the left side gives 'bd'": ("word[0] for", "word[0].upper() for"),
    "ends in IndexError": ("name.split(' ')", "name.split()"),
}


def simulated(request: tg.llm.Request) -> Answer:
    """The offline model: writes code with bugs, and repairs a line where the feedback tells of the test that fails."""
    user = request.messages[-1].text
    if request.purpose == "forward":
        return FIRST[user.split("(")[0]]
    shown, _, feedback = user.partition("Feedback on it")
    edits = []
    for number, line in re.findall(r"^(\d+)\| (.*)$", shown, re.MULTILINE):
        for failure, (wrong, right) in REPAIRS.items():
            if failure in feedback and wrong in line and right not in line:
                edit = {"op": "replace", "line": int(number), "text": line.replace(wrong, right)}
                edits.append({**edit, "reason": "a test fails", "feedback": [1]})
    return {"edits": edits[:1]}  # one at a time, as weak models do


def main(arguments: Sequence[str] | None = None) -> None:
    """Improve the code for each task, all at once, and report."""
    parser = argparse.ArgumentParser(description="Improve code by its tests.")
    parser.add_argument("--model", help="a live model, such as openai/gpt-5-mini; without it a simulation answers")
    options = parser.parse_args(arguments)
    with tg.use_models(forward=options.model or FunctionModel(simulated)), tg.llm.meter() as meter:
        found = func.pmap(improve)(TASKS)
    for task, (first, last) in zip(TASKS, found):
        before, after = (len(task.hidden) - len(failures(code, task.hidden)) for code in (first, last))
        print(f"{task.text}\nHidden tests: {before} of {len(task.hidden)} passed before, {after} after.\n{last}\n")
    print("Calls:", json.dumps({purpose: usage.calls for purpose, usage in meter.by_purpose.items()}))
    if not options.model:
        print("(A simulated model answered; this shows the machinery, not what a real model writes.)")


if __name__ == "__main__":
    try:
        main()
    except tg.errors.TextgradError as error:  # such as a key that is missing
        sys.exit(f"error: {error}")
