"""Programs of several prompts, as users write them, learn what each prompt lacks: agents, loops, debates, memory."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel

import textgrad_engine as tg
from textgrad_engine import llm, nn, ops, optim
from textgrad_engine.llm import Completion, Request, Usage
from textgrad_engine.testing import FunctionModel

WORDS = "abcdefghijklmnop"


class Task(NamedTuple):
    """A program, and a model that does what its prompts say.

    Attributes:
        program: makes it.
        forward: answers as the model.
        lessons: the line that each prompt lacks, by a word in its role.
        rows: the examples.
    """

    program: Callable[[], nn.Module]
    forward: Callable[[str, str, Request], Any]
    lessons: dict[str, str]
    rows: list[dict[str, str]]


def prompt(text: str, role: str) -> nn.Parameter:
    return nn.Parameter(text, role=f"system prompt of the {role}")


def calling(name: str, **arguments: str) -> Completion:
    function = {"name": name, "arguments": json.dumps(arguments)}
    called = ({"id": "call_1", "type": "function", "function": function},)
    return Completion(text="", finish_reason="tool_calls", tool_calls=called, usage=Usage(calls=1))


class Supervisor(nn.Module):
    """Calls a researcher and a writer as tools."""

    def __init__(self) -> None:
        super().__init__()
        self.researcher = nn.ChatCompletion("Topic: {topic}", system=prompt("You research.", "researcher"))
        self.writer = nn.ChatCompletion("Facts: {facts}", system=prompt("You write.", "writer"))
        tools = [self.research, self.write]
        self.boss = nn.ChatCompletion("{q}", system=prompt("You supervise.", "supervisor"), tools=tools)

    def research(self, topic: str) -> tg.Variable:
        """Ask the researcher about a topic."""
        return self.researcher(topic=topic)

    async def write(self, facts: str) -> tg.Variable:
        """Have a text written of facts."""
        return self.writer(facts=facts)

    def forward(self, q: str) -> tg.Variable:
        return self.boss(q=q)


def supervised(system: str, last: str, request: Request) -> Any:
    if system.startswith("You research"):
        return last[7:].upper() if "rule: shout" in system else last[7:]
    if system.startswith("You write"):
        return last[7:] + "!" if "rule: exclaim" in system else last[7:]
    turn = sum(message.role == "tool" for message in request.messages)
    return [calling("research", topic=last), calling("write", facts=last), last][turn]


class React(nn.Module):
    """Thinks and searches in a loop of plain Python."""

    def __init__(self) -> None:
        super().__init__()
        self.think = nn.ChatCompletion("{q}\n{log}", system=prompt("Say SEARCH: words or ANSWER: text.", "agent"))

    def forward(self, q: str) -> tg.Variable:
        log, steps = "", []
        for _ in range(4):
            steps.append(self.think(q=q, log=log))
            said = str(steps[-1].data)
            if said.startswith("ANSWER: "):
                return ops.straight_through(said.removeprefix("ANSWER: "), *steps)
            log += f"{said}\nFOUND: something\n"
        return ops.straight_through("no answer", *steps)


def searched(system: str, last: str, request: Request) -> Any:
    q = last[0]
    return f"ANSWER: {q.upper() if 'rule: shout' in system else q}" if "FOUND" in last else f"SEARCH: {q}"


class Ticket(BaseModel):
    """What the sorter answers."""

    queue: str
    urgency: int


class Retry(nn.Module):
    """Sends an answer that is no ticket back with what is wrong with it."""

    def __init__(self) -> None:
        super().__init__()
        self.sort = nn.ChatCompletion("{q}\n{problem}", system=prompt("Answer with JSON.", "sorter"))

    def forward(self, q: str) -> tg.Variable:
        problem, tries = "", []
        for _ in range(3):
            tries.append(self.sort(q=q, problem=problem))
            try:
                ticket = Ticket.model_validate_json(tries[-1].data)
            except ValueError as error:
                problem = f"That was wrong: {error}"
            else:
                return ops.straight_through(ticket.queue, *tries)
        return ops.straight_through("none", *tries)


def retried(system: str, last: str, request: Request) -> Any:
    q, loud = last[0], "rule: shout" in system
    return {"queue": q.upper() if loud else q, "urgency": 1} if loud or "wrong" in last else "no json"


class Debate(nn.Module):
    """Three say something twice, and hear each other; a judge decides."""

    def __init__(self) -> None:
        super().__init__()
        chats = [nn.ChatCompletion("{q}\n{others}", system=prompt("You debate.", f"debater {n}")) for n in range(3)]
        self.debaters = nn.ModuleList(chats)
        self.judge = nn.ChatCompletion("{q}\n{said}", system=prompt("You judge.", "judge"))

    def forward(self, q: str) -> tg.Variable:
        said: list[Any] = [debater(q=q, others="") for debater in self.debaters]
        others = [ops.join(said[:n] + said[n + 1 :], "\n") for n in range(3)]
        said = [debater(q=q, others=heard) for debater, heard in zip(self.debaters, others)]
        return self.judge(q=q, said=ops.join(said, "\n"))


def debated(system: str, last: str, request: Request) -> Any:
    q, *votes = last.split("\n")
    if system.startswith("You debate"):
        return q.upper() if "rule: shout" in system else q
    return max(sorted(set(votes)), key=votes.count) + ("!" if "rule: exclaim" in system else "")


class Plan(BaseModel):
    """What is to be done."""

    steps: list[str]


class Planner(nn.Module):
    """A plan is a model of pydantic, and drives a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.plan = nn.ChatCompletion("{q}", system=prompt("You plan.", "planner"), response_format=Plan)
        self.work = nn.ChatCompletion("{step} {state}", system=prompt("You work.", "worker"))

    def forward(self, q: str) -> tg.Variable:
        plan = self.plan(q=q)
        state: Any = q
        for step in Plan.model_validate_json(plan.data).steps:
            state = self.work(step=ops.straight_through(step, plan), state=state)
        return state if isinstance(state, tg.Variable) else ops.straight_through(state, plan)


def planned(system: str, last: str, request: Request) -> Any:
    if system.startswith("You plan"):
        return {"steps": ["shout", "exclaim"] if "rule: exclaim" in system else ["shout"]}
    step, state = last.split(" ")
    if "rule: obey" not in system:
        return state
    return state.upper() if step == "shout" else state + "!"


class Memory(nn.Module):
    """A conversation of several turns, of which notes are kept."""

    def __init__(self) -> None:
        super().__init__()
        self.system = prompt("You chat.", "assistant")
        self.note = nn.ChatCompletion("{memory}, {said}", system=prompt("You keep notes.", "note taker"))

    def forward(self, turns: str) -> tg.Variable:
        said: list[Any] = []
        memory: Any = "nothing"
        for user in turns.split("|"):
            said.append({"role": "user", "content": user})
            system = {"role": "system", "content": [self.system, "\nMemory: ", memory]}
            said.append({"role": "assistant", "content": [ops.chat_completion(None, [system, *said])]})
            memory = self.note(memory=memory, said=user)
        answer: tg.Variable = said[-1]["content"][0]
        return answer


def remembered(system: str, last: str, request: Request) -> Any:
    if system.startswith("You keep"):
        return last if "rule: keep" in system else "none"
    known = re.search(r"I am (\w)", system)
    name = known[1] if known else "unknown"
    return (name.upper() if "rule: shout" in system else name) if "my name" in last else "ok"


LOUD = [{"q": word, "target": word.upper()} for word in WORDS]
EXCLAIMED = [{"q": word, "target": word.upper() + "!"} for word in WORDS]
NAMES = [{"turns": f"I am {word}|Nice day|my name?", "target": word.upper()} for word in WORDS]
TASKS = {
    "supervisor": Task(Supervisor, supervised, {"researcher": "rule: shout", "writer": "rule: exclaim"}, EXCLAIMED),
    "react": Task(React, searched, {"agent": "rule: shout"}, LOUD),
    "retry": Task(Retry, retried, {"sorter": "rule: shout"}, LOUD),
    "debate": Task(Debate, debated, {"debater": "rule: shout", "judge": "rule: exclaim"}, EXCLAIMED),
    "planner": Task(Planner, planned, {"planner": "rule: exclaim", "worker": "rule: obey"}, EXCLAIMED),
    "memory": Task(Memory, remembered, {"assistant": "rule: shout", "note taker": "rule: keep"}, NAMES),
}


def model_of(task: Task) -> FunctionModel:
    """Answers, asks each prompt for its lesson as the critic, and writes down what was asked for."""

    def lesson(role: str) -> str:
        return next((f"Add: {line}" for name, line in task.lessons.items() if name in role), "Be right.")

    def answer(request: Request) -> Any:
        last = request.messages[-1].text
        if request.purpose == "forward":
            return task.forward(request.messages[0].text, last, request)
        assert request.config.response_format is not None
        if request.purpose == "backward":
            roles = dict(re.findall(r"^- `([^`]+)`: (.*)$", last, re.MULTILINE))
            cases = request.config.response_format.json_schema["properties"]
            return {case: {key: lesson(roles[key]) for key in fields["properties"]} for case, fields in cases.items()}
        wishes = dict.fromkeys(re.findall(r"Add: (rule: \w+)", last))
        edit = {"op": "add", "line": 1, "reason": "asked for", "feedback": [1]}
        return {"edits": [{**edit, "text": wish} for wish in wishes]}

    return FunctionModel(answer)


@pytest.mark.parametrize("optimizer", ["TGD", "PatchSearch"])
@pytest.mark.parametrize("name", TASKS)
def test_each_prompt_learns_its_own_lesson(name: str, optimizer: str) -> None:
    """No prompt is told what another one lacks; a run that is begun again comes to the same, as each search's does."""
    task = TASKS[name]
    found = []
    for _ in range(1 if optimizer == "TGD" else 2):
        program = task.program()
        with tg.use_models(forward=model_of(task)):
            trainer = tg.Trainer(max_steps=12, max_epochs=2, batch_size=4)
            made = getattr(optim, optimizer)(program.parameters())
            found.append(trainer.fit(program, nn.ExactMatch(), made, task.rows[:8], task.rows[8:12], task.rows[12:]))
    first = found[0]
    assert first.best_test.mean == 1.0
    assert first.best == found[-1].best
    for text, parameter in program.named_parameters():
        lines = parameter.data.split("\n")[1:]
        allowed = [line for role, line in task.lessons.items() if role in parameter.role]
        assert set(lines) <= set(allowed), text
    assert {line for text in first.best.values() for line in text.split("\n")} >= set(task.lessons.values())


def test_what_an_agent_says_with_some_texts_is_not_given_to_a_candidate_with_others(tmp_path: Path) -> None:
    """Candidates of one phase call it alike, and it says something else with each; a replay knows which is whose."""
    task = TASKS["supervisor"]
    loud = ("You research.\nrule: shout", "You write.", "You supervise.")
    plain = ("You research.", "You write.", "You supervise.")
    both = ("You research.\nrule: shout", "You write.\nrule: exclaim", "You supervise.")

    def scores(candidates: list[tuple[str, ...]]) -> dict[tuple[str, ...], list[float | None]]:
        rows = [{"q": row["q"], "target": row["q"].upper()} for row in task.rows]
        objective = tg.train.Objective(task.program(), nn.ExactMatch(), rows[:8], rows[8:12])
        return dict(zip(candidates, objective.matrix(candidates, range(4))))

    with tg.use_models(forward=model_of(task)), llm.record(tmp_path / "tape.jsonl"):
        found = scores([plain, loud, both])
    assert [found[texts] for texts in (plain, loud, both)] == [[0.0] * 4, [1.0] * 4, [0.0] * 4]
    with llm.replay(tmp_path / "tape.jsonl") as tape:
        assert scores([loud, both, plain]) == found
    assert tape.left == 0
