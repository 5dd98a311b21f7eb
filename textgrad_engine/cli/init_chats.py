"""Chats as examples, for ``textgrad-engine init``: what was said, and the last answer as the right one.

Files for fine-tuning have a chat a line, with its system message and all answers:
``{"messages": [{"role": "system", ...}, {"role": "user", ...}, {"role": "assistant", ...}]}``, or as ShareGPT has them:
``{"conversations": [{"from": "human", "value": ...}, {"from": "gpt", "value": ...}]}``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from textgrad_engine.data import Dataset
from textgrad_engine.errors import ConfigError, DataError
from textgrad_engine.llm.conversation import Turn, is_conversation, problem_of, turns_of

_SYSTEM = ("system", "developer")
_ROLES = {"human": "user", "gpt": "assistant"}


@dataclass(frozen=True)
class Chats:
    """A table whose rows are chats.

    Attributes:
        table: without system messages and, where no column holds it, without the last answers, which are its target.
        column: where what was said is.
        prompt: the system message that all chats begin with; None where they have none, or different ones.
        answers: whether the last answers became the target.
    """

    table: Dataset
    column: str
    prompt: str | None
    answers: bool


def chats_in(table: Dataset, targets: Sequence[str], *, has_prompt: bool) -> Chats | None:
    """The chats of a table; None where not one column, and one alone, has them in all rows.

    Args:
        table: the table.
        targets: the columns that hold the right answer, by the options.
        has_prompt: whether the user has a prompt to begin with: system messages are passed over then.

    Raises:
        ConfigError: the system messages differ, and nobody says what prompt to begin with.
        DataError: a chat does not end with an answer that is text, and no column holds the right one.
    """
    columns = [name for name in table.columns if all(is_conversation(_with_roles(row.get(name))) for row in table)]
    if len(columns) != 1:
        return None
    (column,) = columns
    table = Dataset([{**row, column: _with_roles(row[column])} for row in table], path=table.path, lines=table._lines)
    takes_answers = list(targets) == ["target"] and "target" not in table.columns
    prompts: list[str | None] = []
    rows = []
    for index, row in enumerate(table):
        if why := problem_of([*row[column], {"role": "user", "content": "as if it went on"}]):
            raise DataError(f"{table.where(index)}: column {column!r} holds {why}")
        said, system = _without_system(row[column])
        prompts.append(system)
        if takes_answers:
            *said, last = said or [{"role": "nobody"}]
            (turn,) = turns_of([last])
            if turn.role != "assistant" or not turn.text.strip() or not said:
                raise DataError(
                    f"{table.where(index)}: column {column!r}: {_lacking(said, turn)}; the last answer of a chat is "
                    "taken for the right one, as no column is named target: --target names the one that holds it"
                )
            row = {**row, "target": turn.text}
        rows.append({**row, column: said})
    known = dict.fromkeys(prompts)
    if len(known) > 1 and not has_prompt:
        first = next(index for index, each in enumerate(prompts) if each != prompts[0])
        raise ConfigError(
            f"{table.where(first)}: column {column!r} has another system message than the first row, and one prompt "
            "is trained: name it by --prompt FILE, and these messages are left out"
        )
    prompt = prompts[0] if len(known) == 1 else None
    return Chats(Dataset(rows, path=table.path, lines=table._lines), column, prompt, takes_answers)


def _with_roles(value: Any) -> Any:
    """A chat as OpenAI's API has it, of one as ShareGPT has it; anything else as it is."""
    entries = value if isinstance(value, list) else []
    if not entries or not all(isinstance(each, Mapping) and {"from", "value"} <= each.keys() for each in entries):
        return value
    return [{"role": _ROLES.get(str(each["from"]), each["from"]), "content": each["value"]} for each in entries]


def _without_system(said: Sequence[Any]) -> tuple[list[Any], str | None]:
    """A chat behind its system messages, and what these say; None where it has none."""
    number = next((n for n, message in enumerate(said) if message["role"] not in _SYSTEM), len(said))
    texts = [turn.text for turn in turns_of(said[:number])]
    return list(said[number:]), "\n\n".join(texts) if texts else None


def _lacking(said: Sequence[Any], last: Turn) -> str:
    if last.role == "nobody":
        return "nobody says anything in it"
    if last.role != "assistant":
        return f"the chat ends with a message of the {last.role}"
    return "the chat ends with an answer without text" if said else "the chat has an answer to nothing"
