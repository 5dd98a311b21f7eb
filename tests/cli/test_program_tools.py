"""``[program] tools``: what the model of a config may call, as functions that are run or as descriptions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine.cli.build import make_program
from textgrad_engine.cli.config_file import load_config
from textgrad_engine.errors import ConfigError

CODE = '''
import json

from textgrad_engine.llm import Completion
from textgrad_engine.testing import FunctionModel, feedback_for

TOOLS = []


def order(number: int) -> str:
    """Look an order up.

    Args:
        number: of the order.
    """
    return f"{number} is lost"


def clerk(request):
    if request.purpose == "backward":
        return feedback_for(request, "Refund what is lost.")
    if request.purpose == "optimizer":
        edit = {"op": "add", "line": 1, "reason": "r", "feedback": [1], "text": "Refund what is lost."}
        return {"edits": [edit]}
    prompt, last = request.messages[0].text, request.messages[-1]
    if last.role == "tool":
        return "refund" if "Refund" in prompt else "wait"
    names = [tool["function"]["name"] for tool in request.config.tools]
    name = "refund" if "Refund" in prompt and "refund" in names else "order"
    call = {"name": name, "arguments": json.dumps({"number": int(last.text)})}
    calls = ({"id": "c1", "type": "function", "function": call},)
    return Completion(text="", finish_reason="tool_calls", tool_calls=calls)


model = FunctionModel(clerk, name="clerk")
'''
CONFIG = """
[program]
system = "Decide."
user = "{n}"
TOOLS

[data]
train = "train.jsonl"
val = "val.jsonl"

[metric]
name = "METRIC"

[models]
forward = "clerk:model"
"""


def described(name: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


@pytest.fixture
def folder(tmp_path: Path) -> Any:
    """Makes a folder with a config, its data, and code."""

    def make(tools: str, target: Any = "refund", metric: str = "exact_match") -> Path:
        (tmp_path / "clerk.py").write_text(CODE, encoding="utf-8")
        text = CONFIG.replace("TOOLS", tools).replace("METRIC", metric)
        (tmp_path / "config.toml").write_text(text, encoding="utf-8")
        for name, numbers in (("train", range(8)), ("val", range(8, 24))):
            rows = [{"n": n, "target": target(n) if callable(target) else target} for n in numbers]
            (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return tmp_path

    return make


def test_functions_are_run_and_the_prompt_is_trained(cli: Any, folder: Any) -> None:
    """An agent without a class."""
    path = folder('tools = ["clerk:order"]\nmax_turns = 3')
    assert cli("train", path, "-q", "--run-dir", path / "run").exit_code == 0
    assert (path / "run" / "best_prompt.txt").read_text(encoding="utf-8") == "Decide.\nRefund what is lost."
    assert "order" in cli("show", path / "run").stdout
    settings = make_program(load_config(path)).settings
    assert (settings.tools.max_turns, [tool.__name__ for tool in settings.tools.functions]) == (3, ["order"])


@pytest.mark.parametrize("kind", ["file", "tables"])
def test_calls_of_described_tools_are_the_answer(cli: Any, folder: Any, kind: str) -> None:
    """They are compared as JSON; a run keeps what was in the file, so that what is asked later is the same."""
    tools = [described("order"), described("refund")]
    inline = "".join(
        f'[[program.tools]]\ntype = "function"\nfunction = {{ name = {json.dumps(each["function"]["name"])} }}\n'
        for each in tools
    )
    path = folder(
        'tools = "tools.json"' if kind == "file" else inline,
        lambda n: [{"name": "refund", "arguments": {"number": n}}],
        "json_match",
    )
    (path / "tools.json").write_text(json.dumps(tools), encoding="utf-8")
    assert cli("train", path, "-q", "--run-dir", path / "run").exit_code == 0
    kept = json.loads((path / "run" / "config.json").read_text(encoding="utf-8"))["config"]["program"]
    assert [tool["function"]["name"] for tool in kept["tools"]] == ["order", "refund"]
    (path / "tools.json").write_text("[]", encoding="utf-8")
    assert cli("eval", path / "run", "--data", path / "val.jsonl", "--at-least", "1").exit_code == 0


def test_what_is_told_of_them_is_trained(cli: Any, folder: Any) -> None:
    """Beside the prompt, as texts of their own that `show`, `eval` and `resume` know; the agent still runs them."""
    path = folder('tools = ["clerk:order"]\ntrain_tools = true')
    assert cli("train", path, "-q", "--run-dir", path / "run").exit_code == 0
    names = ["system", "tools.order.description"]
    assert sorted(file.stem for file in (path / "run" / "best").iterdir()) == names
    told = (path / "run" / "best" / "tools.order.description.txt").read_text(encoding="utf-8")
    assert told == "Look an order up.\nRefund what is lost.\n\nArgs:\n    number: of the order."
    shown = cli("show", path / "run").stdout
    assert "What changed in tools.order.description: 1 line added" in shown
    assert cli("eval", path / "run", "--data", path / "val.jsonl", "--at-least", "1").exit_code == 0
    program = make_program(load_config(path))
    assert [name for name, _ in program.named_parameters()] == names


def test_what_is_told_of_arguments_is_trained_where_that_is_asked_for(cli: Any, folder: Any) -> None:
    """Of descriptions in a file as a server of MCP lists them; a tool of the endpoint's own stays as it is."""
    schema = {"type": "object", "properties": {"number": {"type": "integer", "description": "of it"}}}
    listed = [{"name": name, "description": name, "inputSchema": schema} for name in ("order", "refund")]
    path = folder(
        'tools = "tools.json"\ntrain_tools = "arguments"',
        lambda n: [{"name": "refund", "arguments": {"number": n}}],
        "json_match",
    )
    (path / "tools.json").write_text(json.dumps([*listed, {"type": "web_search"}]), encoding="utf-8")
    assert [name for name, _ in make_program(load_config(path)).named_parameters()] == [
        "system",
        "tools.order.description",
        "tools.order.arguments.number",
        "tools.refund.description",
        "tools.refund.arguments.number",
    ]
    (path / "tools.json").write_text(json.dumps(listed), encoding="utf-8")
    assert cli("train", path, "-q", "--run-dir", path / "run").exit_code == 0
    told = (path / "run" / "best" / "tools.order.arguments.number.txt").read_text(encoding="utf-8")
    assert told == "of it\nRefund what is lost."


@pytest.mark.parametrize(
    ("tools", "why"),
    [
        ('tools = "clerk:order"', r':5: .*a list of functions; write tools = \["clerk:order"\]'),
        ('tools = "tols.json"', r":5: .*there is no such file; did you mean 'tools.json'"),
        ('tools = "tools.json"', r":5: .*tools.json:1: column 2: not JSON: .*; write a list of tools into it"),
        ('tools = ["clerk:ordr"]', r":5: .*no 'ordr'.*did you mean 'order'"),
        ('tools = ["clerk:TOOLS"]', r":5: .*tools are functions, which are run for the model, or descriptions"),
        ('tools = ["clerk:order", "clerk:order"]', r":5: .*two tools are called 'order'"),
        ("tools = []", r":5: .*should be a list of functions"),
        ("tools = 3", r":5: .*should be a list of functions"),
        ('tools = [{ type = "function", name = "order" }]', r":5: .*description 1 has its name beside the type; write"),
        ('tools = [{ type = "web" }, { name = "order" }]', r":5: .*description 2 has no type; write"),
        ('tools = [{ type = "function", function = {} }]', r":5: .*description 1 has no name; write"),
        ("max_turns = 3", r":5: .*max_turns limits the turns of a model with functions as tools, and there are none"),
        ('tools = ["clerk:order"]\nmax_turns = 0', r":6: .*max_turns.*1"),
        ("train_tools = true", r":5: .*train_tools trains the descriptions of functions, and there are no functions"),
        (
            'tools = [{ type = "web" }]\ntrain_tools = true',
            r":6: .*there are no functions among its tools; take it out",
        ),
        (
            'tools = ["clerk:order"]\ntrain_tools = "all"',
            r""":6: \[program\] train_tools = 'all': should be true, false or "arguments"$""",
        ),
        (
            'tools = [{ name = "x", inputSchema = {} }, { name = "x", inputSchema = {} }]\ntrain_tools = true',
            r":5: \[program\] tools: two are called 'x'; rename one$",
        ),
        (
            'tools = [{ name = "x", input_schema = { properties = { a = "a text" } } }]\ntrain_tools = "arguments"',
            r":5: \[program\] tools: 'x' cannot be trained: the argument 'a' of 'x' has no schema, got 'a text'$",
        ),
        (
            'tools = [{ name = "x", description = 3, inputSchema = {} }]\ntrain_tools = true',
            r":5: \[program\] tools: 'x' cannot be trained: description is a text or a Parameter, got 3$",
        ),
        (
            'tools = [{ type = "function", function = { name = "", parameters = "none" } }]\ntrain_tools = true',
            r":5: \[program\] tools: description 1 has no name",
        ),
    ],
)
def test_what_is_wrong_with_them_is_told_before_anything_is_asked(folder: Any, tools: str, why: str) -> None:
    """With the line and the repair."""
    path = folder(tools)
    (path / "tools.json").write_text("[nothing]", encoding="utf-8")
    with pytest.raises(ConfigError, match=rf"config\.toml{why}"):
        load_config(path)


def test_what_is_no_schema_is_left_to_the_endpoint(folder: Any) -> None:
    """It has no arguments that anybody could name; what is told of the tool is trained all the same."""
    path = folder(
        'tools = [{ type = "function", function = { name = "x", parameters = "a" } }]\ntrain_tools = "arguments"'
    )
    program = make_program(load_config(path))
    assert [name for name, _ in program.named_parameters()] == ["system", "tools.x.description"]


@pytest.mark.parametrize("key", ['tools = ["clerk:order"]', "max_turns = 3", "train_tools = true"])
def test_a_class_has_its_own(folder: Any, key: str) -> None:
    """Each of its calls says which tools it has."""
    path = folder(key)
    text = (path / "config.toml").read_text(encoding="utf-8")
    text = text.replace('system = "Decide."\nuser = "{n}"', 'class = "clerk:Program"')
    (path / "config.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"config\.toml:4: \[program\] has class and .* of each of its calls"):
        load_config(path)
