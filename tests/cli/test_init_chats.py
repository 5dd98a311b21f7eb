"""``textgrad-engine init`` of chats, such as files for fine-tuning have."""

from __future__ import annotations

import csv
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ..runner import Result, invoke

Init = Callable[..., Result]

FAKE = """
import re
from textgrad_engine.testing import FunctionModel


def answer(request):
    last = request.messages[-1].text
    if request.purpose == "forward":
        return "Please unplug it." if "unplug" in request.messages[0].text else "Sorry."
    if request.purpose == "judge":
        right = "unplug" in last.rpartition("The answer to judge:")[2]
        return {"score": float(right), "explanation": "" if right else "It is dangerous."}
    if request.purpose == "backward":
        return dict.fromkeys(request.config.response_format.json_schema["properties"], {"system": "Have it unplugged."})
    line = max(int(number) for number in re.findall(r"^(\\d+)\\|", last, re.MULTILINE))
    edit = {"op": "add", "line": line, "text": "Have it unplugged.", "reason": "safe", "feedback": [1]}
    return {"edits": [edit]}


model = FunctionModel(answer)
"""


CALLER = """
from textgrad_engine.llm import Completion
from textgrad_engine.testing import FunctionModel


def answer(request):
    (tool,) = request.config.tools
    call = {"id": "x1", "type": "function", "function": {"name": tool["function"]["name"], "arguments": "{}"}}
    return Completion(text="", finish_reason="tool_calls", tool_calls=(call,))


model = FunctionModel(answer)
"""


@pytest.fixture
def init(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Init:
    """Runs the command beside a table ``chats.jsonl`` of rows, with a folder ``task`` to make."""
    monkeypatch.chdir(tmp_path)

    def run(rows: list[dict[str, Any]], *args: str) -> Result:
        Path("chats.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return invoke("init", "task", "--data", "chats.jsonl", *args)

    return run


def table_of(rows: list[dict[str, Any]]) -> str:
    Path("table.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return "table.jsonl"


def chat(n: int, answer: str = "", system: str = "Be kind.") -> dict[str, Any]:
    """A chat as files for fine-tuning have it."""
    said = [{"role": "system", "content": system}] if system else []
    said += [{"role": "user", "content": f"My lamp {n} is dark."}]
    if n % 2:
        said += [{"role": "assistant", "content": "Since when?"}, {"role": "user", "content": f"Since day {n}."}]
    long = f"I am sorry to hear that. Please unplug lamp {n}, and we shall send a new one at once."
    return {"messages": [*said, {"role": "assistant", "content": answer or long}]}


CALLS: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "order", "arguments": "{}"}}],
}
"""Files for agents have such messages, and what came of them."""

TOOLS: list[dict[str, Any]] = [{"type": "function", "function": {"name": "order", "parameters": {"type": "object"}}}]
OTHERS: list[dict[str, Any]] = [{"type": "function", "function": {"name": "order", "description": "another one"}}]


def config() -> dict[str, Any]:
    return tomllib.loads(Path("task/config.toml").read_text(encoding="utf-8"))


def rows_made() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("task/train.jsonl").read_text(encoding="utf-8").splitlines()]


def test_a_file_for_fine_tuning_is_trained_as_it_stands(init: Init) -> None:
    """Prompt, answers and a judge come from it; the folder that is made needs no more than a model."""
    Path("fake.py").write_text(FAKE, encoding="utf-8")
    result = init([chat(n) for n in range(12)], "--model", "fake:model")
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    assert "The column 'messages' has chats, of which the model is shown the messages." in said
    assert "The last answer of each is the right one, by which a judge scores" in said
    assert "Their system message is the prompt." in said
    assert Path("task/prompt.txt").read_text(encoding="utf-8") == "Be kind.\n"
    assert (config()["program"]["user"], config()["metric"]["name"]) == ("{messages}", "judge")
    made = rows_made()
    assert made[1]["messages"] == chat(1)["messages"][1:-1]
    assert made[1]["target"] == chat(1)["messages"][-1]["content"]
    Path("task/fake.py").write_text(FAKE, encoding="utf-8")
    trained = invoke("train", "task", "--folds", "2", "--run-dir", "folds", "--quiet")
    assert trained.exit_code == 0, trained.output
    best = Path("folds/final/best_prompt.txt").read_text(encoding="utf-8")
    assert best.splitlines() == ["Be kind.", "Have it unplugged."]


def test_chats_as_sharegpt_has_them_are_written_as_openai_has_them(init: Init) -> None:
    """So that the program takes them."""
    names = {"user": "human", "assistant": "gpt", "system": "system"}
    rows = [
        {"conversations": [{"from": names[each["role"]], "value": each["content"]} for each in chat(n)["messages"]]}
        for n in range(12)
    ]
    assert init(rows).exit_code == 0
    assert config()["program"]["user"] == "{conversations}"
    assert rows_made()[1]["conversations"] == chat(1)["messages"][1:-1]
    assert Path("task/prompt.txt").read_text(encoding="utf-8") == "Be kind.\n"


def test_short_answers_are_compared_to_the_letter(init: Init) -> None:
    """A chat may end with a choice, and needs no judge."""
    assert init([chat(n, ("billing", "returns")[n % 2], "") for n in range(12)]).exit_code == 0
    assert config()["metric"]["name"] == "exact_match"
    assert Path("task/prompt.txt").read_text(encoding="utf-8").splitlines() == [
        "Read the conversation.",
        "Give the target, which is one of: billing, returns.",
        "Answer with the target and nothing else.",
    ]


def test_long_answers_that_mark_their_end_are_compared_there(init: Init) -> None:
    """What stands behind the reasoning is the answer, which no judge needs to read."""
    thought = "Two lamps are dark, and two more are not, so that all lamps together are as many as these."
    result = init([chat(n, f"{thought}\n#### {n}") for n in range(12)])
    assert result.exit_code == 0, result.output
    assert config()["metric"] == {"name": "exact_match", "pattern": "#### (.*)"}
    assert "judge" not in result.stdout


def test_sentences_of_scripts_with_few_letters_are_judged(init: Init) -> None:
    """A reply in Chinese has a third of the letters of one in English."""
    replies = [f"您好。您的订单{n}已经发货。预计三天内送达。请耐心等待。" for n in range(12)]
    assert init([chat(n, reply) for n, reply in enumerate(replies)]).exit_code == 0
    assert config()["metric"]["name"] == "judge"


def test_a_column_with_the_right_answer_leaves_the_chat_as_it_is(init: Init) -> None:
    """The other columns are not shown, as a chat stands for whole messages."""
    rows = [{**chat(n), "queue": ("billing", "returns")[n % 2], "who": f"user {n}"} for n in range(12)]
    for row in rows:
        row["messages"].pop()
    result = init(rows, "--target", "queue")
    assert result.exit_code == 0
    assert "Not shown: who, as a chat stands for whole messages." in " ".join(result.stdout.split())
    assert (config()["program"]["user"], config()["data"]["target"]) == ("{messages}", "queue")
    assert rows_made()[1]["messages"] == rows[1]["messages"][1:]


def test_the_chats_of_a_csv_are_read(init: Init) -> None:
    """A cell holds them as JSON."""
    with Path("chats.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["messages"], *([json.dumps(chat(n)["messages"])] for n in range(12))])
    result = invoke("init", "task", "--data", "chats.csv")
    assert result.exit_code == 0, result.output
    assert rows_made()[1]["messages"] == chat(1)["messages"][1:-1]
    assert Path("task/prompt.txt").read_text(encoding="utf-8") == "Be kind.\n"


def test_a_right_answer_may_be_a_message_of_its_own(init: Init) -> None:
    """As in files that have prompt and completion apart."""
    rows = [{"prompt": chat(n)["messages"][:-1], "completion": chat(n)["messages"][-1:]} for n in range(12)]
    result = init(rows, "--target", "completion")
    assert result.exit_code == 0, result.output
    assert rows_made()[1]["prompt"] == rows[1]["prompt"][1:]
    assert rows_made()[1]["completion"] == chat(1)["messages"][-1]["content"]


@pytest.mark.parametrize("name", ["completion", "target"])
def test_calls_that_are_a_message_of_their_own_are_compared_as_calls(init: Init, name: str) -> None:
    """Each has an id that nobody can know, so as whole messages no answer could be right."""
    rows = [{"prompt": chat(n)["messages"][:-1], name: [CALLS], "tools": TOOLS} for n in range(12)]
    result = init(rows, "--target", name, "--model", "fake:model")
    assert result.exit_code == 0, result.output
    assert rows_made()[1]["prompt"] == rows[1]["prompt"][1:]
    assert rows_made()[1]["target"] == [{"name": "order", "arguments": {}}]
    assert "completion" not in rows_made()[1]
    Path("task/fake.py").write_text(CALLER, encoding="utf-8")
    ran = invoke("eval", "task", "--json")
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["mean"] == 1.0


@pytest.mark.parametrize("apart", [False, True])
def test_chats_are_named_by_their_lines_in_the_table(init: Init, apart: bool) -> None:
    """However they are read, so that a report says where one is found; blank lines count, as editors count them."""
    rows = [
        {"prompt": (said := chat(n)["messages"])[:-1], "completion": said[-1:]} if apart else chat(n) for n in range(12)
    ]
    Path("spaced.jsonl").write_text("".join(f"{json.dumps(row)}\n\n" for row in rows), encoding="utf-8")
    result = invoke("init", "task", "--data", "spaced.jsonl", *(["--target", "completion"] if apart else []))
    assert result.exit_code == 0, result.output
    assert [row["id"] for row in rows_made()] == [f"spaced:{2 * n + 1}" for n in range(12)]


@pytest.mark.parametrize("kind", ["Anthropic", "blocks", "Gemini"])
def test_other_houses_files_are_read_too(init: Init, kind: str) -> None:
    """With the system message beside the chat, and roles and texts by other names."""
    said = chat(1)["messages"]
    texts = [(each["role"], each["content"]) for each in said[1:]]
    if kind == "Gemini":
        roles = {"assistant": "model"}
        contents = [{"role": roles.get(role, role), "parts": [{"text": text}]} for role, text in texts]
        row = {"systemInstruction": {"role": "system", "parts": [{"text": "Be kind."}]}, "contents": contents}
    else:
        blocks = kind == "blocks"
        messages = [
            {"role": role, "content": [{"type": "text", "text": text}] if blocks else text} for role, text in texts
        ]
        row = {"system": [{"type": "text", "text": "Be kind."}] if blocks else "Be kind.", "messages": messages}
    result = init([row] * 9)
    assert result.exit_code == 0, result.output
    assert Path("task/prompt.txt").read_text(encoding="utf-8") == "Be kind.\n"
    (column,) = [name for name in rows_made()[0] if name not in ("id", "target")]
    assert [each["role"] for each in rows_made()[0][column]] == ["user", "assistant", "user"]
    assert rows_made()[0]["target"] == said[-1]["content"]
    other = {**row, next(iter(row)): "Be brief."}
    Path("task/config.toml").unlink()
    done = init([row, other], "--model", "simulated/tickets")
    assert f"column {next(iter(row))!r} has another system message than the first row" in done.stderr


def test_a_system_message_that_says_nothing_is_no_prompt(init: Init) -> None:
    """As in files whose tool writes one into each chat."""
    result = init([chat(n, system=" ") for n in range(12)])
    assert result.exit_code == 0, result.output
    assert "system message" not in result.stdout
    assert Path("task/prompt.txt").read_text(encoding="utf-8").strip()
    assert rows_made()[0]["messages"][0]["role"] == "user"


def test_calls_of_tools_stay_in_the_chat(init: Init) -> None:
    """With what they gave; the answer behind them is the right one."""
    gave = {"role": "tool", "tool_call_id": "c1", "content": "It was sent."}
    rows = [{"messages": [*chat(n)["messages"][:-1], CALLS, gave, chat(n)["messages"][-1]]} for n in range(12)]
    result = init(rows)
    assert result.exit_code == 0, result.output
    assert rows_made()[0]["messages"][-2:] == [CALLS, gave]
    assert rows_made()[0]["target"] == chat(0)["messages"][-1]["content"]
    assert "tools" not in config()["program"]


def test_a_judge_scores_where_some_answers_are_calls_and_others_texts(init: Init) -> None:
    """It is shown the calls as a model gives them, and that the one in the place of the other is wrong."""
    ends = [CALLS, chat(1, "Sent.")["messages"][-1]]
    rows = [{"messages": [*chat(n)["messages"][:-1], ends[n % 2]], "tools": TOOLS} for n in range(12)]
    result = init(rows)
    assert result.exit_code == 0, result.output
    assert "Some of these call tools, which tools.json describes" in " ".join(result.stdout.split())
    assert [row["target"] for row in rows_made()[:2]] == ['[{"name": "order", "arguments": {}}]', "Sent."]
    found = config()
    assert (found["program"]["tools"], found["metric"]["name"]) == ("tools.json", "judge")
    assert "It must call the same tools as the reference answer" in found["metric"]["instructions"]


def test_tools_that_chats_call_are_given_to_the_model(init: Init) -> None:
    """As it had them; some endpoints refuse calls of tools that they are not told of."""
    gave = {"role": "tool", "tool_call_id": "c1", "content": "It was sent."}
    rows = [
        {"messages": [*chat(n)["messages"][:-1], CALLS, gave, chat(n)["messages"][-1]], "tools": TOOLS}
        for n in range(9)
    ]
    result = init(rows)
    assert result.exit_code == 0, result.output
    assert "The model is given the tools that the chats call, which tools.json describes" in " ".join(
        result.stdout.split()
    )
    assert config()["program"]["tools"] == "tools.json"
    assert config()["metric"]["name"] == "judge"
    Path("task/config.toml").unlink()
    differ = [{**row, "tools": (TOOLS, OTHERS)[n % 2]} for n, row in enumerate(rows)]
    assert "Not shown: tools" in " ".join(invoke("init", "other", "--data", table_of(differ)).stdout.split())


def test_calls_of_tools_are_the_right_answers_where_chats_end_with_them(init: Init) -> None:
    """As in files for fine-tuning on functions: the model is given the tools, and its calls are compared with these."""
    rows = [
        {"messages": [*chat(n)["messages"][:-1], CALLS], "tools": TOOLS, "parallel_tool_calls": False}
        for n in range(12)
    ]
    result = init(rows, "--model", "fake:model")
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    assert "It calls tools, which tools.json describes, and is right where its calls are (json_match)." in said
    assert json.loads(Path("task/tools.json").read_text(encoding="utf-8")) == TOOLS
    found = config()
    assert (found["program"]["tools"], found["metric"]) == ("tools.json", {"name": "json_match"})
    assert "response_format" not in found["program"]
    assert rows_made()[0]["target"] == [{"name": "order", "arguments": {}}]
    assert "tools" not in rows_made()[0]
    Path("task/fake.py").write_text(CALLER, encoding="utf-8")
    ran = invoke("eval", "task", "--json")
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["mean"] == 1.0


def test_chats_that_are_not_to_be_shown_are_not_looked_at(init: Init) -> None:
    """Nor need they be such as can be answered."""
    rows = [{**chat(n), "lamp": f"lamp {n}", "queue": ("billing", "returns")[n % 2]} for n in range(12)]
    result = init(rows, "--target", "queue", "--input", "lamp")
    assert result.exit_code == 0, result.output
    assert config()["program"]["user"] == "{lamp}"


def test_chats_that_cannot_be_used_are_told_by_their_line(init: Init) -> None:
    """Nothing is made of them."""
    called = {**CALLS, "content": "One moment."}
    unnamed = {**called, "tool_calls": [{"type": "function", "function": {"name": "order", "arguments": "{}"}}]}
    used = {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "order", "input": {}}]}
    ends = [chat(0), {"messages": chat(1)["messages"][:-1]}]
    tools = [chat(0), {"messages": [*chat(1)["messages"][:2], called, *chat(1)["messages"][2:]]}]
    differ = [chat(0), chat(1), chat(2, system="Be brief.")]
    kept = [{**chat(n), "target": "x"} for n in range(3)]
    nothing = [chat(0), {"messages": [{"role": "assistant", "content": "Hello!"}]}]
    empty = [chat(0), {"messages": [*chat(1)["messages"][:2], {"role": "assistant", "content": " "}]}]
    for rows, line, why in (
        (ends, 2, "the chat ends with a message of the user; the last answer of a chat is taken for the right one"),
        (tools, 2, "holds a conversation whose message 4 stands before the answer to the call 'c1'"),
        (
            [chat(0), {"messages": [*chat(1)["messages"][:2], called]}],
            2,
            "calls the tool 'order', and no row describes that",
        ),
        ([{"messages": [*chat(1)["messages"][:2], CALLS]}], 1, "calls the tool 'order', and no row describes that"),
        ([{"messages": [*chat(1)["messages"][:2], unnamed]}], 1, "message 3 has 'tool_calls' in another form"),
        ([{"messages": [*chat(1)["messages"][:2], used]}], 1, "message 3 has a 'tool_use' in its content; write calls"),
        (
            [{"messages": [*chat(1)["messages"][:2], CALLS], "tools": tools} for tools in (TOOLS, OTHERS)],
            2,
            "column 'tools' describes the tool 'order' otherwise than a row before",
        ),
        (differ, 3, "has another system message than the first row, and one prompt is trained: name it by --prompt"),
        (kept, 1, "column 'messages' holds a conversation that ends with an answer"),
        (nothing, 2, "the chat has an answer to nothing"),
        (empty, 2, "the chat ends with an answer without text"),
        ([chat(0), {"messages": []}], 2, "column 'messages' holds no chat in this row: a list with one message"),
        (
            [{"said": [{"from": "human", "value": "a"}, {"text": "b"}]}] * 3,
            1,
            "column 'said' holds a chat whose message 1 has no 'role'",
        ),
    ):
        result = init(rows)
        assert result.exit_code == 2
        assert f"chats.jsonl:{line}: " in result.stderr
        assert why in " ".join(result.stderr.split())
        assert not Path("task").exists()
    Path("own.txt").write_text("Help.\n", encoding="utf-8")
    result = init(differ, "--prompt", "own.txt")
    assert result.exit_code == 0
    assert "system message" not in result.stdout
    assert Path("task/prompt.txt").read_text(encoding="utf-8") == "Help.\n"
    assert [row["messages"][0]["role"] for row in rows_made()] == ["user"] * 3
