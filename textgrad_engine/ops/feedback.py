"""What a backward pass says to the critic, and how its answer is taken apart. The words are in ``prompts/feedback.md``.

The critic's call is a chat completion like any other, so with ``create_graph=True`` feedback has a graph of its own
that leads to the critic's instructions.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

from textgrad_engine import pytree, templates
from textgrad_engine.autograd import Function, Variable
from textgrad_engine.autograd.examples import EXAMPLE
from textgrad_engine.autograd.layers import is_observed
from textgrad_engine.errors import MalformedResponse, ModelError
from textgrad_engine.llm.context import Room, room_of
from textgrad_engine.llm.parsing import parsed
from textgrad_engine.llm.roles import model_for
from textgrad_engine.llm.tokens import count
from textgrad_engine.ops.cases import Case, Shown, view_of
from textgrad_engine.ops.fitting import View, fitted
from textgrad_engine.ops.images import FEEDBACK_IMAGES, ContentPart, Gallery, Show, gallery_of, not_shown
from textgrad_engine.ops.messages import ChatSettings, answer_form
from textgrad_engine.ops.parts import place_in_words
from textgrad_engine.ops.pass_on import Compute, share_of_edit

__all__ = [
    "FEEDBACK_BATCH_SIZE",
    "Extract",
    "Texts",
    "critic",
    "critic_room",
    "feedback_batch_size",
    "feedback_on",
    "object_schema",
    "texts_at",
]

FEEDBACK_BATCH_SIZE: ContextVar[int] = ContextVar("textgrad_engine_feedback_batch_size", default=1)


@contextlib.contextmanager
def feedback_batch_size(size: int) -> Iterator[None]:
    """Inside the block, up to `size` examples share one feedback call.

    Fewer calls and tokens (the prompt is shown once), against some attention for each example.

    Raises:
        ValueError: size is below 1.
    """
    if size < 1:
        raise ValueError(f"feedback_batch_size must be at least 1, got {size}")
    token = FEEDBACK_BATCH_SIZE.set(size)
    try:
        yield
    finally:
        FEEDBACK_BATCH_SIZE.reset(token)


@contextlib.contextmanager
def critic(instructions: Variable | str) -> Iterator[None]:
    """Inside the block, backward passes give the critic these instructions instead of those in ``prompts/feedback.md``.

    The instructions are an input of the critic's calls like any other: with ``create_graph=True``, or inside
    `func.grad`, what is said about the feedback becomes feedback on them. So the critic can be trained as a program is.

    Args:
        instructions: the critic's system message, usually an `nn.Parameter`.

    Example:
        >>> from textgrad_engine.ops import chat_completion
        >>> from textgrad_engine.testing import ScriptedModel
        >>> prompt = Variable("Greet.", role="system prompt", requires_grad=True)
        >>> answer = chat_completion(ScriptedModel(["Hi"]), [{"role": "system", "content": prompt}])
        >>> from textgrad_engine import use_models
        >>> model = ScriptedModel([{"case_1": {"system": "Say: greet by name."}}])
        >>> with use_models(backward=model), critic("Quote the words to add."):
        ...     answer.backward("too cold")
        >>> model.requests[0].messages[0].text
        'Quote the words to add.'
    """
    token = _critic.set(instructions)
    try:
        yield
    finally:
        _critic.reset(token)


_critic: ContextVar[Variable | str | None] = ContextVar("textgrad_engine_critic", default=None)


def feedback_on(shares: list[list[Case]], ask: Callable[..., tuple[Variable, ...]]) -> list[dict[int, Variable]]:
    """Ask the critic about calls; for each of them its feedback by position of the value, pending.

    What does not fit the critic's context together is asked about in several requests, and of one case as much is left
    out as NOTE [What is left out] in `llm.context` says. Images go along as NOTE [Images beside a text] in `ops.images`
    says.

    Args:
        shares: the calls that feedback is wanted on; those of one list are asked about together.
        ask: `chat_completion.ask_texts`, handed in because that file stands above this one.
    """
    prompt, room, told, observed = templates.load("feedback"), critic_room(), _critic.get(), is_observed()
    if told is None:
        told = prompt.system
    beside = 0 if room is None else _size(told)
    if isinstance(told, Variable) and not observed and told._layer is None and told.done():
        told = told.data
    found = []
    for cases in [part for share in shares for part in _that_fit(share, prompt, room, beside)]:
        about = cases[0].example
        if len(cases) > 1:
            about = ", ".join(dict.fromkeys([case.example for case in cases if case.example]))
        token = None if about == EXAMPLE.get() else EXAMPLE.set(about)  # each change costs two objects a call under way
        try:
            user: Variable | str
            gallery, render = None, _render
            for case in cases:
                if case.plan.with_images or ContentPart in map(type, case.values):
                    gallery = _gallery_of(cases, room, f"feedback on {about or 'an answer'}")
                    render = _render if gallery is None else functools.partial(_render_with, gallery)
                    break
            if observed or (data := _data_of(cases)) is None:
                values = [[case.values, case.answer, case.feedback] for case in cases]
                make = functools.partial(render, cases, prompt=prompt, room=room, beside=beside, about=about)
                user = Compute.apply(make, values, "request to the critic")
            else:
                user = render(cases, data, prompt, room, beside, about)
            texts = iter(ask(told, user, _texts_of(cases), gallery))
        finally:
            if token is not None:
                EXAMPLE.reset(token)
        for case in cases:
            by_position = {}
            for part in case.questions.parts:
                by_position[part.position] = next(texts)
            found.append(by_position)
    return found


def _that_fit(cases: list[Case], prompt: templates.Prompt, room: Room | None, beside: int) -> list[list[Case]]:
    """The cases in as few parts as fit the critic's context, one by one at the least."""
    if room is None or len(cases) == 1 or _fit_together(cases, prompt, room, beside):
        return [cases]
    half = len(cases) // 2
    return [*_that_fit(cases[:half], prompt, room, beside), *_that_fit(cases[half:], prompt, room, beside)]


def _gallery_of(cases: list[Case], room: Room | None, what: str) -> Gallery | None:
    """The images that the critic is shown beside what is said of some cases."""
    found = [case.plan.images(case.values) for case in cases]
    if not any(found):
        return None
    return gallery_of(found, FEEDBACK_IMAGES.get(), room, what)


def _data_of(cases: list[Case]) -> list[Any] | None:
    """What `_render` wants of cases; None where some of it is not there, belongs to a transform, or is nested."""
    found = []
    for case in cases:
        said = []
        for value in (*case.values, case.answer, *case.feedback):
            if type(value) is str:
                said.append(value)
            elif isinstance(value, Variable):
                call = value._call
                if value._layer is not None or (call is not None and not call.done):
                    return None
                said.append(value._data if call is None else value.data)
            elif pytree.is_container(value):
                return None
            else:
                said.append(value)
        count = len(case.values)
        found.append([said[:count], said[count], said[count + 1 :]])
    return found


Wanted: TypeAlias = tuple[tuple[str, str], ...]
"""The key and the role of each input of a case that wants feedback."""

_STRING = {"type": "string"}


def object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    """The JSON schema of an object with exactly these properties."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts that are wanted from a model, as places in a JSON answer; for `chat_completion.ask_texts`.

    Attributes:
        settings: how the model is asked.
        paths: for each text its keys, from the outside in.
        roles: for each its role.
        label: what is computed, for messages about the call.
        no_variables_inside: says that it need not be searched for Variables.
    """

    settings: ChatSettings
    paths: tuple[tuple[str, ...], ...]
    roles: tuple[str, ...]
    label: tuple[str, str] = field(init=False)

    no_variables_inside: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", (self.roles[0], "ChatCompletion"))


def _texts_of(cases: list[Case]) -> Texts:
    """The texts that the critic is asked for about some cases."""
    if len(cases) > 1:
        return _texts_for(tuple([case.questions.wanted for case in cases]))
    questions = cases[0].questions
    known: Texts | None = questions.made.get(Texts)
    if known is None:
        known = questions.made[Texts] = _texts_for((questions.wanted,))
    return known


@functools.lru_cache(maxsize=256)
def _texts_for(wanted: tuple[Wanted, ...]) -> Texts:
    """The texts that the critic is asked for."""
    schemas = {f"case_{n}": object_schema({key: _STRING for key, _ in parts}) for n, parts in enumerate(wanted, 1)}
    form = answer_form("feedback", object_schema(schemas))
    return Texts(
        ChatSettings(config=form, purpose="backward", role="answer of the critic"),
        tuple([(f"case_{n}", key) for n, parts in enumerate(wanted, 1) for key, _ in parts]),
        tuple([f"feedback on the {role or key}" for parts in wanted for key, role in parts]),
    )


def texts_at(answer: Any, paths: Sequence[Sequence[str]], role: str) -> list[str]:
    """The texts at some places of a JSON answer, stripped.

    Raises:
        MalformedResponse: it has no text there; the message names the answer's role.
    """
    try:
        body = parsed(answer)
        texts = []
        for path in paths:
            value = body
            for key in path:
                value = value[key]
            texts.append(value.strip())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MalformedResponse(
            f"{role or 'the answer'} is no JSON object with the keys that were asked for ({error!r}): {answer!r:.200}"
        ) from error
    return texts


class Extract(Function):
    """`Extract.apply(answer, paths, roles)`: the texts at some places of a JSON answer."""

    deferrable = True

    @staticmethod
    def forward(answer: Variable, paths: tuple[tuple[str, ...], ...], roles: tuple[str, ...]) -> Any:
        """Parse the answer and pick the texts."""
        texts = texts_at(answer.data, paths, answer.role)
        values = tuple([Variable(text, role=role) for text, role in zip(texts, roles)])
        return values if len(values) > 1 else values[0]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Remember the paths."""
        ctx.paths = inputs[1]

    @classmethod
    def count_outputs(cls, answer: Any, paths: Any, roles: Any) -> int:
        """One for each path."""
        return len(paths)

    @staticmethod
    def output_role(answer: Variable, paths: Any, roles: tuple[str, ...]) -> tuple[str, ...]:
        """The roles that were given."""
        return roles

    @staticmethod
    def backward(ctx: Any, *grad_outs: Variable) -> Any:
        """Feedback on the texts, each with the place it speaks of."""
        items = []
        for path, grad_out in zip(ctx.paths, grad_outs):
            for item in grad_out.grad:
                words = f"On {'.'.join(path)}: {place_in_words(item)}"
                about = Compute.apply(lambda text, words=words: f"{words}{text}", item, item.role)
                about.source = item.source and replace(item.source, places=())
                items.append(about)
        return items, None, None

    @staticmethod
    def jvp(ctx: Any, edit: Variable, *_: None) -> Any:
        """Of an edit of the answer, each text gets what falls on it."""
        if len(ctx.paths) == 1:
            return edit
        return tuple([share_of_edit(edit, f"`{'.'.join(path)}`") for path in ctx.paths])


def critic_room() -> Room | None:
    """What the critic has room for; None when its context, or who it is, is not known."""
    try:
        return room_of(model_for("backward"))
    except ModelError:  # it is raised where the critic would be asked
        return None


def _size(instructions: Variable | str) -> int:
    """The tokens of what the critic is told besides the cases."""
    text = _plain(instructions)
    return count(text if isinstance(text, str) else "")


def _plain(value: Any) -> Any:
    """What a value holds, None where that is not known yet."""
    if not isinstance(value, Variable):
        return value
    return value.data if value._layer is None and value.done() else None


def _fit_together(cases: list[Case], prompt: templates.Prompt, room: Room, beside: int) -> bool:
    """Whether a request with all these cases, and what it shows of their images, fits."""
    data = [[[_plain(v) for v in c.values], _plain(c.answer), [_plain(item) for item in c.feedback]] for c in cases]
    gallery, anywhere = _gallery_of(cases, room, ""), _gallery_of(cases, None, "")
    if anywhere is not None and (gallery is None or len(gallery.images) < len(anywhere.images)):
        return False
    size = beside + count(_rendered(prompt, cases, data, [view_of(case, *of) for case, of in zip(cases, data)]))
    return size + (0 if gallery is None else gallery.tokens) <= room.tokens


def _render_with(
    gallery: Gallery,
    cases: list[Case],
    data: list[Any],
    prompt: templates.Prompt,
    room: Room | None,
    beside: int,
    about: str,
) -> str:
    """As `_render`, of cases with images."""
    beside += gallery.tokens
    return gallery.text(lambda show: _render(cases, data, prompt, room, beside, about, show))


def _render(
    cases: list[Case],
    data: list[Any],
    prompt: templates.Prompt,
    room: Room | None,
    beside: int,
    about: str,
    show: Show = not_shown,
) -> str:
    """The user part of the request, from the data of each case: its values, its answer, the feedback on it."""
    if len(cases) == 1:
        views = [view_of(cases[0], *data[0], show=show)]
    else:
        views = [view_of(c, *of, show=show) for c, of in zip(cases, data)]
    if room is None:
        return _rendered(prompt, cases, data, views)
    what = f"feedback on {about or 'an answer'}"
    return fitted(views, functools.partial(_rendered, prompt, cases, data), room, beside, what)


def _rendered(prompt: templates.Prompt, cases: list[Case], data: list[Any], views: Sequence[View]) -> str:
    """The request about these views of some cases; messages that all cases begin with are shown once."""
    texts: list[str] = []
    wanted: tuple[Wanted, ...]
    tools, schema = cases[0].offered  # calls of one place share a request, so they are the same for all cases
    if tools is not None:
        texts.append(tools)
    if schema is not None:
        texts.append(schema)
    given = tools is not None, schema is not None
    if len(cases) == 1:
        questions, view = cases[0].questions, views[0]
        for position in questions.beside:
            texts.append(str(data[0][0][position]))  # noqa: PERF401  a comprehension would cost a frame
        if view.heads is questions.heads and not view.left_out_feedback:  # nothing is left out
            texts += view.texts
            texts.append(view.answer)
            texts += view.feedback
            kind = prompt, len(view.feedback), given
            form = questions.made.get(kind)
            if form is None:
                shown = (view.heads, kind[1], 0, 0)
                form = questions.made[kind] = _form(prompt, given, questions.inputs, (), (shown,), (questions.wanted,))
            return str(form.fill(texts))
        inputs, common, wanted = questions.inputs, 0, (questions.wanted,)
    else:
        wanted = tuple([case.questions.wanted for case in cases])
        inputs, beside = _inputs(cases, data)
        texts += beside
        common = _common(views)
        texts += views[0].texts[:common]
    kinds = []
    for view in views:
        texts += view.texts[common:]
        texts.append(view.answer)
        texts += view.feedback
        kinds.append((view.heads[common:], len(view.feedback), view.left_out_messages, view.left_out_feedback))
    return _form(prompt, given, inputs, views[0].heads[:common], tuple(kinds), wanted).fill(texts)


def _inputs(cases: list[Case], data: list[Any]) -> tuple[tuple[tuple[str, str, Shown], ...], list[str]]:
    """The inputs of all cases, as `Questions.inputs`; and the texts of those that are beside the messages of all."""
    inputs: dict[str, tuple[str, Shown, str]] = {}
    for case, (values, _, _) in zip(cases, data):
        for part in case.questions.parts:
            text = str(values[part.position]) if part.shown == "beside" else ""
            role, shown, known = inputs.setdefault(part.key, (part.role, part.shown, text))
            # What differs from case to case is shown there; and a role that does says nothing about the others.
            where: Shown = shown if (shown, known) == (part.shown, text) else "message"
            inputs[part.key] = role if role == part.role else "", where, known
    shown_at = tuple([(key, role, shown) for key, (role, shown, _) in inputs.items()])
    return shown_at, [text for _, shown, text in inputs.values() if shown == "beside"]


def _common(views: Sequence[View]) -> int:
    """How many messages all views begin with."""
    each = [list(zip(view.heads, view.texts)) for view in views]
    common = 0
    while all(len(m) > common and m[common] == each[0][common] for m in each):
        common += 1
    return common


@functools.lru_cache(maxsize=256)
def _form(
    prompt: templates.Prompt,
    offered: tuple[bool, bool],
    inputs: tuple[tuple[str, str, Shown], ...],
    shared: tuple[tuple[str, str], ...],
    cases: tuple[tuple[tuple[tuple[str, str], ...], int, int, int], ...],
    wanted: tuple[Wanted, ...],
) -> templates.Form:
    """The request about cases of one kind, without the texts: those of tools and schema, of inputs, of shared
    messages, of the cases.

    Args:
        prompt: the prompt.
        offered: whether there are tools that the model could call, and a schema that its answer must fit.
        inputs: for each input its key, its role, and where its text is.
        shared: the heads of the messages that all cases begin with.
        cases: for each case the heads of its messages, how many pieces of feedback there are, and what is left out.
        wanted: for each case the keys and roles of the feedback that is wanted.
    """
    blanks = map(templates.Blank, itertools.count())

    def messages(heads: tuple[tuple[str, str], ...]) -> list[dict[str, Any]]:
        return [{"role": role, "keys": keys, "text": next(blanks)} for role, keys in heads]

    return prompt.form(
        tools=next(blanks) if offered[0] else None,
        schema=next(blanks) if offered[1] else None,
        inputs=[
            {
                "key": key,
                "role": role or "an input",
                "text": next(blanks) if shown == "beside" else None,
                "in_tags": shown == "tags",
            }
            for key, role, shown in inputs
        ],
        shared=messages(shared),
        cases=[
            {
                "messages": messages(heads),
                "answer": next(blanks),
                "feedback": [next(blanks) for _ in range(pieces)],
                "left_out_messages": left_out_messages,
                "left_out_feedback": left_out_feedback,
            }
            for heads, pieces, left_out_messages, left_out_feedback in cases
        ],
        example=_example(wanted),
    )


def _example(wanted: tuple[Wanted, ...]) -> str:
    """What an answer looks like; of many cases the first one and the last one.

    In the first it says what each text is to be: of three dots a small model makes the input anew instead of feedback.
    """
    inside = [
        json.dumps(
            {key: "..." if n else f"what to add to, change in or remove from `{key}`" for key, _ in parts},
            ensure_ascii=False,
        )
        for n, parts in enumerate(wanted)
    ]
    cases = [f'"case_{n}": {each}' for n, each in enumerate(inside, 1)]
    return f"{{{', '.join(cases if len(cases) < 4 else [cases[0], '...', cases[-1]])}}}"
