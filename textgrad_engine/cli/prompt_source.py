"""What the form of a prompt of one's own tells: that it is source which holds one, or written for other braces."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import tomllib
from collections.abc import Sequence
from pathlib import Path

from textgrad_engine.errors import RunError
from textgrad_engine.slots import doubled, slots_of

_WINDOWS = os.name == "nt"

_FOR_FORMAT = re.compile(r"\{\{\s*[\"'\[][^{}]*\}\}")
"""An object in JSON whose braces are doubled, as in a text that Python's `str.format` fills."""


def check_no_source(file: Path, text: str) -> None:
    """Check that a file holds a prompt, and is no source that holds one.

    Args:
        file: as ``--prompt`` named it.
        text: what it holds.

    Raises:
        RunError: it is Python, a config, or a saved program.
    """
    if file.suffix.lower() == ".toml" and _is_config(text):
        raise RunError(
            f"--prompt {file}: this is a config, and all of it would be the prompt; write the text that is meant, its "
            "system, to a file and name that"
        )
    if file.suffix.lower() == ".json" and (saved := _saved_in(text)):
        raise RunError(
            f"--prompt {file}: this is a saved program, and all of it would be the prompt; write the text that is "
            f"meant, {' or '.join(saved[:3])}, to a file and name that"
        )
    if file.suffix.lower() != ".py":
        return
    names = _texts_in(text)
    if not names:
        raise RunError(
            f"--prompt {file}: this is Python source, and all of it would be the prompt; write the text that it makes "
            "to a file, and name that"
        )
    raise RunError(
        f"--prompt {file}: this is Python source, and all of it would be the prompt; write the text that is meant, "
        f"{' or '.join(names[:3])}, to a file and name that, such as `{_writing(file, names[0])}`"
    )


def _writing(file: Path, name: str) -> str:
    """The command for a shell that writes a text of some source to ``prompt.txt``.

    The shells of Windows know other quotes, and one of them writes what is redirected as UTF-16.
    """
    if _WINDOWS:
        path = file.as_posix().replace("'", r"\'")
        text = f"runpy.run_path('{path}')['{name}']"
        return f"python -c \"import runpy; open('prompt.txt', 'wb').write({text}.encode())\""
    code = f'import runpy; print(runpy.run_path({_quoted(str(file))})[{_quoted(name)}], end="")'
    return f"python -c {shlex.quote(code)} > prompt.txt"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _is_config(text: str) -> bool:
    """Whether it is TOML with a program."""
    try:
        return "program" in tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return False


def _saved_in(text: str) -> list[str]:
    """What leads to the prompts of a program that DSPy has saved, or a state_dict of ours; none in other JSON."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    parts = [(name, each) for name, each in found.items() if isinstance(each, dict)] if isinstance(found, dict) else []
    saved = [f"{name}.data" for name, each in parts if {"data", "role", "requires_grad"} <= each.keys()]
    for name, each in parts:
        signature = each.get("signature")
        if isinstance(signature, dict) and "instructions" in signature:
            saved.append(f"{name}.signature.instructions")
    return saved


def _texts_in(source: str) -> list[str]:
    """The names that source gives texts, the longest text first; none where it cannot be read."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found: dict[str, int] = {}
    for each in body:
        if not isinstance(each, ast.Assign | ast.AnnAssign):
            continue
        targets = each.targets if isinstance(each, ast.Assign) else [each.target]
        if isinstance(each.value, ast.Constant) and isinstance(each.value.value, str):
            found |= {name.id: len(each.value.value) for name in targets if isinstance(name, ast.Name)}
    return sorted(found, key=lambda name: -found[name])


def braces_in_words(text: str, shown: Sequence[str]) -> list[str]:
    """What is said of the braces in a prompt beside a user message that shows the model columns.

    Args:
        text: the prompt.
        shown: the columns.
    """
    said = []
    if both := [name for name in slots_of(text) if name in shown]:
        slots = " and ".join(f"{{{name}}}" for name in both)
        where = "prompt.txt, or train one message that holds both by a class ([program] class)"
        said.append(
            f"prompt.txt has {slots}, and so has user in config.toml, so the model would be shown it twice. "
            f"Take it out of {where if set(shown) <= set(both) else 'one of them'}."
        )
    elif other := doubled(text, shown):
        said.append(f"prompt.txt: {other}.")
    if both and (found := _FOR_FORMAT.search(text)):
        said.append(
            f"It has doubled braces, {found[0]}, which the model is shown as they stand: in the place of str.format's "
            "two write one."
        )
    return said
