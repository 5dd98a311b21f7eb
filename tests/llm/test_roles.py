import gc
import os
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from textgrad_engine.errors import NoModelError, UnknownModelError
from textgrad_engine.llm import innermost, model_for, resolve, roles, set_models, use_models
from textgrad_engine.testing import ScriptedModel

from ..forks import forked_beside


@pytest.fixture(autouse=True)
def nothing_set():
    set_models()
    yield
    set_models()


def test_no_model_at_all_names_both_repairs():
    """The first error a newcomer meets must tell what to type."""
    with use_models(optimizer=ScriptedModel([])), pytest.raises(NoModelError, match=r"set_models.*use_models"):
        model_for("forward")


def test_a_thread_that_was_begun_inside_of_a_block_is_told_why_it_has_no_model():
    """Who reads that a block is missing has one around it, as in a test with a fixture."""

    def said():
        with pytest.raises(NoModelError) as caught:
            model_for("forward")
        return str(caught.value)

    alone = said()
    with use_models(forward=ScriptedModel([])), ThreadPoolExecutor(1) as pool:
        inside = pool.submit(said).result()
    assert "func.pmap" in inside.removeprefix(alone)
    assert inside.startswith(alone)
    with use_models(optimizer=ScriptedModel([])):
        assert said() == alone
    assert said() == alone


def test_a_model_that_was_resolved_is_let_go_with_what_held_it():
    """With its connections: sixty tests with a server each would use up the open files that a process may have."""
    model = resolve(ScriptedModel(["a"]))
    with use_models(forward=model):
        assert model_for("forward") is model_for("judge") is model
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_a_model_that_was_resolved_is_not_resolved_again_for_each_call(monkeypatch: pytest.MonkeyPatch):
    """Each call of a program asks for its model: what `resolve` looks through takes eight times as long."""
    model = resolve(ScriptedModel(["a"]))
    monkeypatch.setattr(roles, "resolve", None)
    assert model_for("forward", model) is model_for("judge", model) is model


def test_an_unknown_name_fails_on_entry():
    """Not after an hour, at the first optimizer call."""
    with pytest.raises(UnknownModelError), use_models(forward=ScriptedModel([]), optimizer="gpt-nonsense"):
        pass


def test_unset_roles_fall_back_to_forward():
    """One model is enough to begin with."""
    with use_models(forward=ScriptedModel([], name="f"), judge=ScriptedModel([], name="j")):
        names = [model_for(purpose).name for purpose in ("forward", "backward", "optimizer", "judge")]
    assert names == ["f", "f", "f", "j"]


def test_blocks_nest_and_go_before_what_a_script_set():
    """The innermost word on a role counts."""
    set_models(forward=ScriptedModel([], name="script"), judge=ScriptedModel([], name="judge"))
    with use_models(backward=ScriptedModel([], name="outer")):
        with use_models(forward=ScriptedModel([], name="inner")):
            assert [model_for(p).name for p in ("forward", "backward", "judge")] == ["inner", "outer", "judge"]
        assert model_for("forward").name == "script"
    seen = []
    thread = threading.Thread(target=lambda: seen.append(model_for("forward").name))
    thread.start()
    thread.join()
    assert seen == ["script"]


def test_who_asks_while_a_script_sets_models_gets_the_old_or_the_new_one():
    """Another thread may ask between any two lines."""
    old, new = ScriptedModel([], name="old"), ScriptedModel([], name="new")
    set_models(forward=old)
    seen = []

    def between(frame, event, value):
        if frame.f_code is set_models.__code__:
            seen.append(model_for("backward").name)
        return between

    before = sys.gettrace()
    sys.settrace(between)
    try:
        set_models(forward=new)
    finally:
        sys.settrace(before)
    assert (seen[0], seen[-1], set(seen)) == ("old", "new", {"old", "new"})


def test_one_model_has_one_stack_however_often_it_is_named():
    """Two stacks would mean two limits and two pauses for one endpoint."""
    own = ScriptedModel([])
    with use_models(forward="openai/gpt-5", judge="openai/gpt-5", optimizer=own):
        assert model_for("forward") is model_for("judge") is model_for("optimizer", "openai/gpt-5")
        assert model_for("optimizer") is model_for("forward", own)
        assert innermost(model_for("optimizer")) is own


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_that_is_forked_while_another_thread_resolves_can_resolve():
    """A worker process must not wait for a thread that it does not have."""

    def resolving(whose):
        def work(number):
            with use_models(forward=f"openai/{whose}-{number}"):
                pass

        return work

    assert forked_beside(resolving("model"), resolving("child"), 8) == [0] * 8
