"""Which tool does a model call? What it is told of its tools decides, and is trained here: descriptions, no prompt.

The tools are those of a server that says little about them, as one that speaks the Model Context Protocol (MCP) lists
them. Nothing is run: the call is the answer, and a metric looks at the name in it. With functions in their place
(`nn.Tool(function)`), these would be run, and the answer after that scored.

Run it offline, in a second:       python examples/choose_tool.py
Run it with a model of your own:   python examples/choose_tool.py --model openai/gpt-5-mini

The offline model is a simulation made of the few rules below, for trying the machinery out: it shows that feedback
arrives, and nothing about real models.
"""

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.testing import Answer, FunctionModel

TEXT = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
LISTED = [
    {"name": "search_a", "description": "Searches.", "inputSchema": TEXT},
    {"name": "search_b", "description": "Searches.", "inputSchema": TEXT},
    {"name": "lookup", "description": "Looks something up.", "inputSchema": TEXT},
    {"name": "get_info", "description": "Gets information.", "inputSchema": TEXT},
]
ABOUT = {
    "search_a": "invoice refund receipt discount voucher surcharge",
    "search_b": "delivery courier parcel customs warehouse address",
    "lookup": "login password account username profile language",
    "get_info": "opening holiday careers press branch newsletter",
}
ASKED = ["Tell me about the {} please", "I need the {}", "What is it about my {}?", "Who knows of the {}?"]
ROWS = [
    {"question": said.format(word), "tool": tool}
    for said in ASKED
    for words in zip(*[[(tool, word) for word in words.split()] for tool, words in ABOUT.items()], strict=True)
    for tool, word in words
]


def score(prediction: str, target: str) -> tuple[float, str]:
    """Whether the one call is one of the right tool."""
    try:
        called = [call["name"] for call in json.loads(prediction)]
    except (ValueError, TypeError, KeyError):
        called = []
    return float(called == [target]), f"Expected a call of {target}, got {' and '.join(called) or 'none'}."


def simulated(request: tg.llm.Request) -> Answer:
    """The offline model: calls the tool whose description has most words of the question, the first one of several."""
    user = request.messages[-1].text
    if request.purpose == "forward":
        words = set(re.findall(r"\w+", user.lower()))
        tools = [tool["function"] for tool in request.config.tools or ()]
        return calling(max(tools, key=lambda tool: len(words & set(re.findall(r"\w+", tool["description"])))), user)
    form = request.config.response_format
    assert form is not None
    if request.purpose == "backward":
        wanted = form.json_schema["properties"]["case_1"]["properties"]
        expected = re.findall(r"Expected a call of (\w+)", user)[0]
        word = next(word for words in ABOUT.values() for word in words.split() if f" {word}" in user)
        said = {f"{expected}_description": f"Say that it is for questions about: {word}"}
        return {"case_1": {key: said.get(key, "") for key in wanted}}
    topics = dict.fromkeys(re.findall(r"for questions about: (\w+)", user))
    edit = {"op": "add", "line": 1, "text": f"Call it for {', '.join(topics)}.", "reason": "asked for", "feedback": [1]}
    return {"edits": [edit]}


def calling(tool: Mapping[str, Any], query: str) -> tg.llm.Completion:
    """An answer that calls a tool."""
    function = {"name": tool["name"], "arguments": json.dumps({"query": query})}
    called = {"id": "call_1", "type": "function", "function": function}
    usage = tg.llm.Usage(input_tokens=90, output_tokens=12, calls=1)
    return tg.llm.Completion(text="", finish_reason="tool_calls", tool_calls=(called,), usage=usage)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the descriptions and report."""
    parser = argparse.ArgumentParser(description="Train what a model is told of its tools.")
    parser.add_argument("--model", help="a live model, such as openai/gpt-5-mini; without it a simulation answers")
    options = parser.parse_args(arguments)
    tools = [nn.Tool(listed) for listed in LISTED]
    program = nn.ChatCompletion("{question}", system="Answer by one call of a tool.", tools=tools)
    train, val, test = ROWS[:24], ROWS[24:48], ROWS[48:]
    with tg.use_models(forward=options.model or FunctionModel(simulated)), tg.llm.meter() as meter:
        optimizer = optim.TGD(program.parameters())
        metric = nn.Metric(score, "whether the right tool is called")
        result = tg.Trainer(max_epochs=2, batch_size=24, target="tool").fit(
            program, metric, optimizer, train, val, test
        )
    for tool in tools:
        print(f"{tool.name}:", *str(tool.description).split("\n"), sep="\n  ")
    print(result)
    print("Calls:", json.dumps({purpose: usage.calls for purpose, usage in meter.by_purpose.items()}))
    if not options.model:
        print("(A simulated model answered; this shows the machinery, not what a real model learns.)")


if __name__ == "__main__":
    try:
        main()
    except tg.errors.TextgradError as error:  # such as a key that is missing
        sys.exit(f"error: {error}")
