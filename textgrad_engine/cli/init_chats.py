"""Chats as examples, for ``textgrad-engine init``: what was said, and the last answer as the right one.

Files for fine-tuning have a chat a line, with its system message and all answers:
``{"messages": [{"role": "system", ...}, {"role": "user", ...}, {"role": "assistant", ...}]}``. Others have the system
message in a column beside the chat, as Anthropic's (``{"system": "...", "messages": [...]}``), or other names:

- ShareGPT: ``{"conversations": [{"from": "human", "value": ...}, {"from": "gpt", "value": ...}]}``;
- Gemini: ``{"systemInstruction": {"parts": [{"text": ...}]}, "contents": [{"role": "user", "parts": [{"text": ...}]},
  {"role": "model", "parts": [...]}]}``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from textgrad_engine.data import Dataset
from textgrad_engine.errors import ConfigError, DataError
from textgrad_engine.llm.conversation import Turn, is_conversation, near_miss, problem_of, turns_of
from textgrad_engine.llm.response import Completion

_SYSTEM = ("system", "developer")
_SYSTEM_COLUMNS = ("system", "systemInstruction", "system_instruction")
_ROLES = {"human": "user", "gpt": "assistant", "model": "assistant"}


@dataclass(frozen=True)
class Chats:
    """A table whose rows are chats.

    Attributes:
        table: without system messages and, where no column holds it, without the last answers, which are its target.
        column: where what was said is.
        prompt: the system message that all chats begin with; None where they have none, or different ones.
        answers: whether the last answers became the target.
        calls: which of these are calls of tools: "all", "some", where a judge reads them as text, or "".
        tools: the descriptions of the tools that the chats call; empty where nobody describes them.
    """

    table: Dataset
    column: str
    prompt: str | None
    answers: bool
    calls: Literal["all", "some", ""] = ""
    tools: tuple[Mapping[str, Any], ...] = ()


def chats_read(table: Dataset) -> Dataset:
    """A table whose chats are as OpenAI's API has them, where it has them as JSON (as in a CSV), or as others do.

    Example:
        >>> table = Dataset([{"chat": '[{"role": "user", "content": "Hello."}]', "target": "[]"}])
        >>> chats_read(table)[0]
        {'chat': [{'role': 'user', 'content': 'Hello.'}], 'target': '[]'}
    """
    read = {name: [_with_roles(_list_in(row.get(name))) for row in table] for name in table.columns}
    chats = {name: values for name, values in read.items() if values and all(map(is_conversation, values))}
    if not chats:
        return table
    rows = [{**row, **{name: values[index] for name, values in chats.items()}} for index, row in enumerate(table)]
    return Dataset(rows, path=table.path, lines=table._lines)


def _list_in(value: Any) -> Any:
    """The list that a text is as JSON; any other value as it is."""
    try:
        return json.loads(value) if isinstance(value, str) and value.lstrip().startswith("[") else value
    except (ValueError, RecursionError):
        return value


def answers_read(table: Dataset, targets: Sequence[str]) -> Dataset:
    """A table whose right answer is a text where it has it as a chat of that one message.

    Example:
        >>> table = Dataset([{"reply": [{"role": "assistant", "content": "Hi!"}]}])
        >>> answers_read(table, ["reply"])[0]
        {'reply': 'Hi!'}
    """
    for name in targets:
        values = [row.get(name) for row in table]
        turns = [turns_of(value) if is_conversation(value) else [] for value in values]
        if values and all(
            len(said) == 1 and said[0].role == "assistant" and said[0].text and not said[0].calls for said in turns
        ):
            rows = [{**row, name: said[0].text} for row, said in zip(table, turns)]
            table = Dataset(rows, path=table.path, lines=table._lines)
    return table


def calls_joined(table: Dataset, targets: Sequence[str]) -> tuple[Dataset, Sequence[str]]:
    """A table whose chats end with their right answers, where these are in a column of their own and call tools.

    In that column each is a whole message, with an id of its own for each call, which no model could hit.

    Returns:
        The table, and the columns that hold the right answer; both as they were in any other case.

    Example:
        >>> call = {"id": "c1", "type": "function", "function": {"name": "order", "arguments": "{}"}}
        >>> answer = {"role": "assistant", "tool_calls": [call]}
        >>> table = Dataset([{"prompt": [{"role": "user", "content": "Two."}], "completion": [answer]}])
        >>> joined, targets = calls_joined(table, ["completion"])
        >>> [message["role"] for message in joined[0]["prompt"]], targets
        (['user', 'assistant'], ['target'])
    """
    columns = [name for name in table.columns if all(is_conversation(row.get(name)) for row in table)]
    if len(targets) != 1 or targets[0] not in columns or len(columns) != 2 or "target" in {*table.columns} - {*targets}:
        return table, targets
    (own,), (other,) = targets, [name for name in columns if name not in targets]
    turns = [turns_of(row[own]) for row in table]
    if any(len(said) != 1 or said[0].role != "assistant" for said in turns) or not any(said[0].calls for said in turns):
        return table, targets
    rows = [
        {name: [*row[other], *row[own]] if name == other else value for name, value in row.items() if name != own}
        for row in table
    ]
    return Dataset(rows, path=table.path, lines=table._lines), ["target"]


def chats_in(table: Dataset, targets: Sequence[str], inputs: Sequence[str] = (), *, has_prompt: bool) -> Chats | None:
    """The chats of a table; None where not one column, and one alone, has them in all rows.

    Args:
        table: the table.
        targets: the columns that hold the right answer, by the options.
        inputs: the columns that are to be shown, by the options; none for all others.
        has_prompt: whether the user has a prompt to begin with: system messages are passed over then.

    Raises:
        ConfigError: the system messages differ, and nobody says what prompt to begin with.
        DataError: a chat does not end with an answer, and no column holds the right one; or a row has
            none, or messages in another form.
    """
    shown = inputs or [name for name in table.columns if name not in targets]
    columns = [name for name in shown if all(is_conversation(row.get(name)) for row in table)]
    takes_answers = list(targets) == ["target"] and "target" not in table.columns
    if not columns and takes_answers:
        _refuse_broken(table, shown)
    if len(columns) != 1:
        return None
    (column,) = columns
    prompts: list[str | None] = []
    rows = []
    for index, row in enumerate(table):
        where = f"{table.where(index)}: column {column!r}"
        _refuse_unanswerable(row[column], where, takes_answers=takes_answers)
        said, system = _without_system(row[column])
        prompts.append(_beside(row) if system is None else system)
        if takes_answers:
            said, target = _last_answer(said, where)
            row = {**row, "target": target}
        rows.append({**row, column: said})
    kinds = [isinstance(row["target"], list) for row in rows] if takes_answers else []
    calls: Literal["all", "some", ""] = "" if not any(kinds) else "all" if all(kinds) else "some"
    tools = _tools_of(table, column, rows, calls=bool(calls))
    if calls == "some":
        rows = [{**row, "target": _as_text(row["target"])} for row in rows]
    if tools:
        rows = [{name: value for name, value in row.items() if name != _TOOLS} for row in rows]
    known = dict.fromkeys(prompts)
    if len(known) > 1 and not has_prompt:
        first = next(index for index, each in enumerate(prompts) if each != prompts[0])
        own = _without_system(table[first][column])[1] is not None
        where = column if own else next((name for name in _SYSTEM_COLUMNS if name in table.columns), column)
        raise ConfigError(
            f"{table.where(first)}: column {where!r} has another system message than the first row, and one prompt "
            "is trained: name it by --prompt FILE, and these messages are left out"
        )
    prompt = prompts[0] if len(known) == 1 else None
    if prompt is not None and prompt == _beside(table[0]):
        rows = [{name: value for name, value in row.items() if name not in _SYSTEM_COLUMNS} for row in rows]
    return Chats(Dataset(rows, path=table.path, lines=table._lines), column, prompt, takes_answers, calls, tools)


def _refuse_unanswerable(chat: Sequence[Any], where: str, *, takes_answers: bool) -> None:
    """Refuse a chat that could not be sent if it went on.

    Raises:
        DataError: it is one.
    """
    *before, end = chat
    after: list[Mapping[str, Any]] = [{"role": "user", "content": "as if it went on"}]
    if takes_answers:  # what it lacks as an answer is told by `_last_answer`
        end = {**end, "content": end.get("content") or ""}
        made = turns_of([end])[0].calls
        after = [*({"role": "tool", "tool_call_id": call["id"], "content": ""} for call in made), *after]
    if why := problem_of([*before, end, *after]):
        raise DataError(f"{where} holds {why}")


def _last_answer(said: Sequence[Any], where: str) -> tuple[list[Any], Any]:
    """A chat without its last answer, and that: a text, or the calls of tools in it.

    Raises:
        DataError: it has none.
    """
    *said, last = said or [{"role": "nobody"}]
    (turn,) = turns_of([last])
    if turn.role != "assistant" or not (turn.text.strip() or turn.calls) or not said:
        raise DataError(
            f"{where}: {_lacking(said, turn)}; the last answer of a chat is taken for the right one, as no column is "
            "named target: --target names the one that holds it"
        )
    return said, calls_in(turn) if turn.calls else turn.text


_TOOLS = "tools"
"""The column of files for fine-tuning that describes what a chat may call."""


def calls_in(turn: Turn) -> list[Any]:
    """The calls of tools in an answer as those of a model are compared: each with its name and its arguments.

    Example:
        >>> call = {"id": "c1", "type": "function", "function": {"name": "order", "arguments": '{"number": 7}'}}
        >>> calls_in(Turn("assistant", "", (call,)))
        [{'name': 'order', 'arguments': {'number': 7}}]
    """
    said = Completion(text="", finish_reason="tool_calls", tool_calls=turn.calls)
    calls: list[Any] = json.loads(said.calls_as_text())
    return calls


def _as_text(target: Any) -> str:
    """A right answer as a judge is shown it: of calls what an answer of a model that calls tools looks like."""
    return target if isinstance(target, str) else json.dumps(target, ensure_ascii=False)


def _tools_of(
    table: Dataset, column: str, rows: Sequence[Mapping[str, Any]], *, calls: bool
) -> tuple[Mapping[str, Any], ...]:
    """The tools that chats call, as the column `tools` describes them; none where none calls any.

    Nor are there any where answers are texts and a tool is described in two ways.

    Args:
        table: the table.
        column: of the chats.
        rows: the same without the last answers.
        calls: whether some of these call tools, so that those must be described.

    Raises:
        DataError: answers call tools, and one is described in two ways or not at all.
    """
    if not calls and not any(turn.calls for row in rows for turn in turns_of(row[column])):
        return ()
    found: dict[str, Mapping[str, Any]] = {}
    for index, row in enumerate(table):
        for tool in _described(_list_in(row.get(_TOOLS))):
            name = tool["function"]["name"]
            if found.setdefault(name, tool) != tool:
                if not calls:  # logs of an agent whose tools have changed
                    return ()
                raise DataError(
                    f"{table.where(index)}: column {_TOOLS!r} describes the tool {name!r} otherwise than a row before; "
                    "one program is trained, so write it alike in all rows"
                )
    for index, answered in enumerate(rows):
        for call in answered["target"] if calls and isinstance(answered["target"], list) else ():
            if call["name"] not in found:
                raise DataError(
                    f"{table.where(index)}: column {column!r}: the last answer calls the tool {call['name']!r}, and no "
                    f"row describes that; a column {_TOOLS!r} does, as in OpenAI's files for fine-tuning"
                )
    return tuple(found.values())


def _described(tools: Any) -> list[Mapping[str, Any]]:
    """The descriptions of functions in what a row has as its tools, as chat completions take them.

    Example:
        >>> _described([{"type": "function", "name": "order", "parameters": {}}, {"type": "web_search"}])
        [{'type': 'function', 'function': {'name': 'order', 'parameters': {}}}]
        >>> _described([{"name": "order", "input_schema": {}}])
        [{'type': 'function', 'function': {'name': 'order', 'parameters': {}}}]
    """
    found: list[Mapping[str, Any]] = []
    for entry in tools if isinstance(tools, list) else []:
        inner = entry.get("function", entry) if isinstance(entry, Mapping) else None
        if isinstance(inner, Mapping) and isinstance(inner.get("name"), str):
            inside = {
                _PARAMETERS.get(name, name): value
                for name, value in inner.items()
                if inner is not entry or name != "type"
            }
            found.append({"type": "function", "function": inside})
    return found


_PARAMETERS = {"input_schema": "parameters", "inputSchema": "parameters"}
"""What Anthropic and MCP call the schema of a tool's arguments."""


def _with_roles(value: Any) -> Any:
    """A chat as OpenAI's API has it, of one as ShareGPT or Gemini have it; anything else as it is."""
    entries = value if isinstance(value, list) else []
    for who, what in (("from", "value"), ("role", "parts")):
        if entries and all(isinstance(each, Mapping) and {who, what} <= each.keys() for each in entries):
            return [
                {"role": _ROLES.get(str(each[who]), each[who]), "content": _text_of(each[what])} for each in entries
            ]
    return value


def _text_of(said: Any) -> Any:
    """A text, of one in parts, too; anything else as it is."""
    parts = said if isinstance(said, list) else []
    texts = [part.get("text") if isinstance(part, Mapping) else None for part in parts]
    return "".join(map(str, texts)) if texts and all(isinstance(text, str) for text in texts) else said


def _beside(row: Mapping[str, Any]) -> str | None:
    """The system message of a chat that stands beside it; None where none does."""
    for name in _SYSTEM_COLUMNS:
        value = row.get(name)
        text = _text_of(value.get("parts") if isinstance(value, Mapping) else value)
        if isinstance(text, str) and text.strip():
            return text
    return None


def _refuse_broken(table: Dataset, shown: Sequence[str]) -> None:
    """Refuse a column of chats of which some are none: as the last answers are wanted, nothing can be made of it.

    Raises:
        DataError: it is one, or its chats have another form.
    """
    for name in shown:
        values = [row.get(name) for row in table]
        if any(is_conversation(value) or near_miss(value) for value in values):
            index = next(index for index, value in enumerate(values) if not is_conversation(value))
            why = near_miss(values[index]) or "no chat in this row: a list with one message at least"
            raise DataError(f"{table.where(index)}: column {name!r} holds {why}")


def _without_system(said: Sequence[Any]) -> tuple[list[Any], str | None]:
    """A chat behind its system messages, and what these say; None where it has none, or none with a text."""
    number = next((n for n, message in enumerate(said) if message["role"] not in _SYSTEM), len(said))
    texts = [turn.text for turn in turns_of(said[:number]) if turn.text.strip()]
    return list(said[number:]), "\n\n".join(texts) if texts else None


def _lacking(said: Sequence[Any], last: Turn) -> str:
    if last.role == "nobody":
        return "nobody says anything in it"
    if last.role != "assistant":
        return f"the chat ends with a message of the {last.role}"
    return "the chat ends with an answer without text" if said else "the chat has an answer to nothing"
