"""Asking the critic about calls: which share a request, what fits it, and who the critic is.

The critic's call is a chat completion like any other, so with ``create_graph=True`` feedback has a graph of its own
that leads to the critic's instructions.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from textgrad_engine import pytree, templates
from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.examples import EXAMPLE
from textgrad_engine.autograd.layers import is_observed
from textgrad_engine.blocks import block
from textgrad_engine.checks import at_least, check
from textgrad_engine.errors import ModelError
from textgrad_engine.llm.context import Room, room_of
from textgrad_engine.llm.roles import model_for
from textgrad_engine.llm.tokens import count
from textgrad_engine.ops.as_it_was import as_it_was
from textgrad_engine.ops.cases import Case, view_of
from textgrad_engine.ops.critic_request import request_about, texts_wanted
from textgrad_engine.ops.fitting import fitted
from textgrad_engine.ops.images import FEEDBACK_IMAGES, ContentPart, Gallery, Show, gallery_of, not_shown
from textgrad_engine.ops.pass_on import Compute
from textgrad_engine.scoped import setting

MOST_SHARED = 64_000
"""Characters that cases which share a request may have of their own: documents are looked at less closely there, nearly
nothing is saved, and a request that is refused loses the feedback on all of them.
"""

FEEDBACK_BATCH_SIZE: ContextVar[int] = ContextVar("textgrad_engine_feedback_batch_size", default=1)


@block
@contextlib.contextmanager
def feedback_batch_size(size: int) -> Iterator[None]:
    """Inside the block, up to `size` examples share one feedback call.

    That saves calls and tokens (the prompt is shown once), and costs some attention for each example. Long examples,
    such as documents, share a call only up to some 16,000 tokens together.

    Raises:
        ValueError: size is below 1.

    Example:
        >>> from textgrad_engine import backward, nn, use_models
        >>> from textgrad_engine.testing import FunctionModel, feedback_for
        >>> def shy(request):
        ...     return feedback_for(request, "Shout.") if request.purpose == "backward" else "a"
        >>> model = FunctionModel(shy)
        >>> program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat."))
        >>> with use_models(forward=model), feedback_batch_size(8):
        ...     backward([nn.ExactMatch()(program(word=word), "A") for word in "abc"])
        >>> len(program.system.grad), [request.purpose for request in model.requests].count("backward")
        (3, 1)
    """
    check(feedback_batch_size, locals(), at_least(1, "size"))
    with setting(FEEDBACK_BATCH_SIZE, size):
        yield


@block
@contextlib.contextmanager
def critic(instructions: Variable | str | None) -> Iterator[None]:
    """Inside the block, backward passes give the critic these instructions instead of those in ``prompts/feedback.md``.

    The instructions are an input of the critic's calls like any other: with ``create_graph=True``, or inside
    `func.grad`, feedback on the feedback becomes feedback on them. So the critic can be trained like a program.

    With None no critic is asked: the feedback on an input is the call itself, with its answer and what was said of
    that, so the optimizer reads the wrong answers themselves (``prompts/case.md``). That costs no calls, but more
    tokens of the optimizer. GEPA (arXiv 2507.19457) and Trace (arXiv 2406.16218) do it like this.

    Args:
        instructions: the critic's system message, usually an `nn.Parameter`; None for no critic.

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
        >>> answer = chat_completion(ScriptedModel(["Hi"]), [{"role": "system", "content": prompt}])
        >>> with critic(None):
        ...     answer.backward("too cold")
        >>> said = prompt.grad[1].data
        >>> said.partition(".")[0], "Hi" in said, "too cold" in said
        ('system message: this text', True, True)
    """
    check(critic, locals())
    with setting(_critic, instructions):
        yield


_critic: ContextVar[Variable | str | None] = ContextVar("textgrad_engine_critic")
"""The critic's instructions; None for no critic. Where it is not set, they are those of the prompt."""


def feedback_on(shares: list[list[Case]], ask: Callable[..., tuple[Variable, ...]]) -> list[dict[int, Variable]]:
    """Ask the critic about calls; for each of them its feedback by position of the value, pending.

    Where no critic is wanted, that is what the calls were themselves (`as_it_was`).

    What is long together, or does not fit the critic's context, is asked about in several requests, and of one case as
    much is left out as NOTE [What is left out] in `llm.context` says. Images go along as NOTE [Images beside a text] in
    `ops.images` says.

    Args:
        shares: the calls that feedback is wanted on; those of one list are asked about together.
        ask: `model_call.ask_texts`, handed in because that file stands above this one.
    """
    prompt, observed = templates.load("feedback"), is_observed()
    told = _critic.get(prompt.system)
    if told is None:
        every = [case for cases in shares for case in cases]
        known = None if observed else _data_of(every)
        return [as_it_was(case, None if known is None else known[n]) for n, case in enumerate(every)]
    room = critic_room()
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
            texts = iter(ask(told, user, texts_wanted(cases), gallery))
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
    """The cases in parts that are short, and fit the critic's context and what it is shown of images, one by one at the
    least.
    """
    if len(cases) == 1 or (
        _own_characters(cases) <= MOST_SHARED
        and _are_all_pictured(cases, room)
        and (room is None or _fit_together(cases, prompt, room, beside))
    ):
        return [cases]
    half = len(cases) // 2
    return [*_that_fit(cases[:half], prompt, room, beside), *_that_fit(cases[half:], prompt, room, beside)]


def _own_characters(cases: list[Case]) -> int:
    """The characters of what is in some cases and not in all of them."""
    every = [[_plain(value) for value in (*case.values, case.answer, *case.feedback)] for case in cases]
    texts = [[text for text in values if isinstance(text, str)] for values in every]
    common = set(texts[0]).intersection(*texts[1:])
    return sum([len(text) for each in texts for text in each if text not in common])


def _gallery_of(cases: list[Case], room: Room | None, what: str) -> Gallery | None:
    """The images that the critic is shown beside what is said of some cases."""
    found = [image for case in cases for image in case.plan.images(case.values)]
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


def _are_all_pictured(cases: list[Case], room: Room | None) -> bool:
    """Whether a request about these cases shows each the images that one about it alone would show."""
    if not any(case.plan.with_images or ContentPart in map(type, case.values) for case in cases):
        return True
    alone = [image for case in cases if (own := _gallery_of([case], room, "")) is not None for image in own.images]
    together = _gallery_of(cases, room, "")
    return not alone or (together is not None and all(map(together.shows, alone)))


def _fit_together(cases: list[Case], prompt: templates.Prompt, room: Room, beside: int) -> bool:
    """Whether a request with all these cases, and what it shows of their images, fits."""
    data = [[[_plain(v) for v in c.values], _plain(c.answer), [_plain(item) for item in c.feedback]] for c in cases]
    gallery = _gallery_of(cases, room, "")
    size = beside + count(request_about(prompt, cases, data, [view_of(case, *of) for case, of in zip(cases, data)]))
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
        return request_about(prompt, cases, data, views)
    what = f"feedback on {about or 'an answer'}"
    return fitted(views, functools.partial(request_about, prompt, cases, data), room, beside, what)
