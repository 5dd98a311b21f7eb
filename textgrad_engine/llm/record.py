"""`record`: a block in which calls are written to a cassette."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from textgrad_engine.blocks import block
from textgrad_engine.llm.ids import giving_ids
from textgrad_engine.llm.places import numbering_places
from textgrad_engine.llm.recording import Recording, cassettes
from textgrad_engine.llm.resume import Resumption
from textgrad_engine.scoped import setting


@block
@contextlib.contextmanager
def record(path: str | os.PathLike[str], *, resume: bool = False) -> Iterator[Recording]:
    """Inside the block, every call is written to a cassette, with its answer or its failure; so are the results of
    tools.

    API keys, and what looks like one, are removed, from answers too (except keys that are words, as local servers
    have). Text of prompts and answers is written as it is; images and the like are written as a name that identifies
    them. What belongs to a single response (its id, its time) is left out, and at the end of the block the lines are
    put into the order of the requests. So a cassette that is recorded again differs only where answers differ.

    Args:
        path: the file; it must not exist, unless it is gone on with.
        resume: go on with a cassette, if there is one: what it holds is replayed, and charged to the budgets as it was
            then; only the rest is asked, and appended. So a script that was killed and started again pays only for what
            is missing. What an endpoint refused is asked anew. What a `replay` around the block answers is not written.

    Raises:
        RunError: the file exists, is damaged, or cannot be made; or another process is recording it.

    Example:
        >>> import os, tempfile
        >>> from textgrad_engine import llm, nn
        >>> from textgrad_engine.testing import ScriptedModel
        >>> program, cassette = nn.ChatCompletion("{question}"), os.path.join(tempfile.mkdtemp(), "answers.jsonl")
        >>> for _ in range(2):
        ...     with llm.use_models(forward=ScriptedModel(["Rome"])), record(cassette, resume=True) as recording:
        ...         program(question="Capital of Italy?").data, recording.answers
        ('Rome', 1)
        ('Rome', 1)
    """
    made = Recording(path, resume=resume)
    with contextlib.ExitStack() as stack:
        stack.callback(made.release)
        stack.callback(made.settle)
        stack.enter_context(setting(cassettes, (*cassettes.get(), made)))
        stack.enter_context(numbering_places())
        stack.enter_context(giving_ids())
        if resume:
            ordered = sorted(made.before.answers, key=lambda each: each.nth)
            stack.enter_context(Resumption(ordered, made.before.tools, phase=lambda: 0).answering())
        yield made
