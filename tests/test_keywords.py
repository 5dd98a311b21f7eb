"""A call with an argument that is not there says which is meant, also to who comes from another library."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import pickle
import re
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import data, func, llm, nn, optim
from textgrad_engine.keywords import _OF_A_MODEL, _OURS, names_told


def prompt() -> nn.Parameter:
    return nn.Parameter("Repeat.", role="system prompt")


class Echo(nn.Module):
    def forward(self, text: str) -> str:
        return text


def look_up(word: str) -> str:
    return word


PROGRAM = nn.ChatCompletion("{text}")
ROWS = [{"text": "a", "target": "a"}]
TGD = optim.TGD([prompt()])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: tg.Variable("a", role_description="prompt"), "Variable() has no argument 'role_description'; here"),
        (lambda: tg.Variable("a", value="a"), "Variable() has no argument 'value'; here it is 'data'"),
        (lambda: tg.Variable(value="a"), "Variable() has no argument 'value'; here it is 'data'"),
        (lambda: tg.Variable(value="a", role_description="b"), "Variable() has no argument 'value'; here it is 'data'"),
        (lambda: tg.Variable(role="a"), "missing 1 required positional argument: 'data'"),
        (lambda: nn.Parameter(value="a"), "Parameter() has no argument 'value'; here it is 'data'"),
        (lambda: nn.Parameter("a", role_desc="prompt"), "Parameter() has no argument 'role_desc'; here it is 'role'"),
        (lambda: nn.Parameter("a", requires_opt=True), "here it is 'requires_grad'"),
        (lambda: optim.TGD(parameters=[prompt()]), "TGD() has no argument 'parameters'; here it is 'params'"),
        (lambda: optim.TGD([prompt()], engine="a/b"), "TGD() has no argument 'engine'; here it is 'model'"),
        (lambda: optim.TGD([prompt()], gradient_memory=3), "here it is 'momentum'"),
        (lambda: optim.TGD([prompt()], lr=0.1), "what bounds a step is its max_edits"),
        (lambda: tg.Trainer(enable_progress_bar=True), "report.Progress(), a callback of a Trainer, shows how"),
        (lambda: optim.TGD([prompt()]).zero_grad(set_to_none=True), "zero_grad() has no argument 'set_to_none'; leave"),
        (lambda: PROGRAM.zero_grad(set_to_none=True), "Module.zero_grad() has no argument 'set_to_none'; leave it out"),
        (lambda: optim.ParetoSearch([prompt()], max_metric_calls=9), "budget(calls=...)` around it bounds its calls"),
        (lambda: optim.ParetoSearch([prompt()], auto="light"), "dollars=... what it costs"),
        (lambda: tg.Trainer(budget=3), "'budget'; `with tg.budget(calls=...)` around it bounds its calls"),
        (lambda: tg.Trainer(cache=True), "`with llm.caching(folder)` around it keeps answers on disk"),
        (lambda: optim.ParetoSearch([prompt()], num_trials=9), "here it is 'proposals'"),
        (lambda: optim.ParetoSearch([prompt()], frontier_type="hybrid"), "here it is 'frontier'"),
        (lambda: optim.ParetoSearch([prompt()], reflection_minibatch_size=3), "here it is 'batch_size'"),
        (lambda: optim.BeamSearch([prompt()], beam_size=3), "here it is 'beam'"),
        (lambda: nn.Tool(func=look_up), "Tool() has no argument 'func'; here it is 'function'"),
        (lambda: nn.Tool(look_up, desc="a"), "here it is 'description'"),
        (lambda: nn.Tool(look_up, arg_desc={"word": "a"}), "here it is 'arguments'"),
        (lambda: nn.Tool(look_up, name="a"), "no argument 'name'; it takes function, description, arguments"),
        (lambda: Echo(name="a"), "Echo() has no argument 'name'; it takes none"),
        (lambda: optim.ParetoSearch([prompt()], metric=len), "; tg.Trainer(...).fit() has 'loss'"),
        (lambda: optim.ParetoSearch([prompt()], trainset=ROWS), "; tg.Trainer(...).fit() has 'train'"),
        (lambda: optim.BootstrapDemos([prompt()], valset=ROWS), "; tg.Trainer(...).fit() has 'val'"),
        (lambda: optim.ParetoSearch([prompt()], log_dir="a"), "; tg.Trainer() has 'run_dir'"),
        (lambda: optim.ParetoSearch([prompt()], run_dir="a"), "; tg.Trainer() has 'run_dir'"),
        (lambda: optim.ParetoSearch([prompt()], candidate_selection_strategy="pareto"), "a parent is drawn by how man"),
        (lambda: optim.ParetoSearch([prompt()], component_selector="all"), "is drawn by how much feedback went to it"),
        (lambda: optim.ParetoSearch([prompt()], skip_perfect_score=True), "; leave it out: nothing is said of an a"),
        (lambda: optim.ParetoSearch([prompt()], use_merge=True), "here it is 'merges'"),
        (lambda: optim.ParetoSearch([prompt()], max_merge_invocations=5), "here it is 'merges'"),
        (lambda: optim.ParetoSearch([prompt()], instruction_proposer=1), "here it is 'proposer'"),
        (lambda: optim.ParetoSearch([prompt()], seed_candidate={}), "a run begins with the texts that the parameters"),
        (lambda: optim.ParetoSearch([prompt()], adapter=1), "; leave it out: any nn.Module is trained, and an app tha"),
        (lambda: optim.ParetoSearch([prompt()], task_lm="a/b"), "use_models(forward=..., backward=..., optimizer="),
        (lambda: optim.ParetoSearch([prompt()], stop_callbacks=[]), "a callback of a Trainer may raise train.StopTra"),
        (lambda: optim.ParetoSearch([prompt()], use_wandb=True), "a tracker is one of the callbacks"),
        (lambda: optim.ParetoSearch([prompt()], add_format_failure_as_feedback=1), 'field(answer, name, default="")'),
        (lambda: tg.Trainer(max_errors=3), "; leave it out: an answer that is lost counts as none"),
        (lambda: tg.evaluate(PROGRAM, ROWS, nn.ExactMatch(), failure_score=0), "an answer that is lost counts as no"),
        (lambda: tg.evaluate(PROGRAM, ROWS, nn.ExactMatch(), return_outputs=True), "has ids, scores and predictions"),
        (lambda: optim.BootstrapDemos([prompt()], num_candidate_programs=3), "here it is 'sets'"),
        (lambda: optim.BootstrapDemos([prompt()], metric_threshold=0.5), "here it is 'least'"),
        (lambda: optim.BootstrapDemos([prompt()], max_bootstrapped_demos=3), "here it is 'bootstrapped'"),
        (lambda: tg.Trainer(optimizer=optim.TGD([prompt()])), "argument 'optimizer'; Trainer.fit() has 'optimizer'"),
        (lambda: tg.Trainer(trainset=ROWS), "Trainer() has no argument 'trainset'; Trainer.fit() has 'train'"),
        (lambda: tg.Trainer().fit(None, None, target="a"), "argument 'target'; Trainer() has 'target'"),
        (lambda: tg.Trainer().fit(None, None, epochs=2), "argument 'epochs'; Trainer() has 'max_epochs'"),
        (lambda: tg.cross_validate(None, None, [], target="a"), "Trainer() has 'target', and is given as trainer="),
        (lambda: tg.Trainer(max_epoch=2), "Trainer() has no argument 'max_epoch'; did you mean 'max_epochs'?"),
        (lambda: tg.Trainer(epochs=2), "here it is 'max_epochs'"),
        (lambda: tg.Trainer(early_stopping=2), "Trainer() has no argument 'early_stopping'; here it is 'patience'"),
        (lambda: tg.Trainer(logger=print), "has no argument 'logger'; a tracker is one of the callbacks (docs/extend"),
        (lambda: tg.Trainer(accumulate_grad_batches=2), "'accumulate_grad_batches'; a larger batch_size does the same"),
        (lambda: tg.Trainer().fit(PROGRAM, nn.ExactMatch(), trainset=ROWS), "argument 'trainset'; here it is 'train'"),
        (lambda: tg.evaluate(PROGRAM, devset=ROWS, metric=len), "argument 'devset'; here it is 'dataset'"),
        (lambda: tg.evaluate(PROGRAM, ROWS, metric=len), "evaluate() has no argument 'metric'; here it is 'loss'"),
        (lambda: asyncio.run(tg.aevaluate(PROGRAM, ROWS, metric=len)), "here it is 'loss'"),
        (lambda: nn.Metric(metric=len, purpose="a"), "Metric() has no argument 'metric'; here it is 'fn'"),
        (lambda: nn.TextLoss(evaluation_instruction="a"), "here it is 'instructions'"),
        (lambda: nn.ChatCompletion("{text}", system_prompt="a"), "setting 'system_prompt'; here it is 'system'"),
        (lambda: nn.ChatCompletion(prompt="{text}"), "ChatCompletion() has no argument 'prompt'; here it is 'user'"),
        (lambda: nn.ChatCompletion(signature="a -> b"), "has no argument 'signature'; here it is 'user'"),
        (lambda: nn.ChatCompletion(temperature=0), "missing 1 required positional argument: 'user'"),
        (lambda: nn.ChatCompletion("{text}", top_k=3), "did you mean 'top_p'? (what only one endpoint knows goes"),
        (lambda: llm.resolve("a/b", api_base="http://a"), "setting 'api_base'; here it is 'base_url'"),
        (lambda: llm.resolve("a/b", num_retries=3), "; llm.resolve(..., policy=llm.RetryPolicy(max_attempts"),
        (lambda: nn.ChatCompletion("{text}", max_retries=3), "RetryPolicy(max_attempts=...)) says how often"),
        (lambda: llm.resolve("a/b", timeout=9), "policy=llm.RetryPolicy(call_deadline=...)) says how long a call may"),
        (lambda: llm.resolve("a/b", rollout_id=9), "`with llm.repeat(index)` around it tells equal questions apart"),
        (lambda: data.DataLoader(ROWS, num_workers=4), "leave it out, as calls go on side by side anyway"),
        (lambda: data.DataLoader(ROWS, collate_fn=list), "leave it out, as a minibatch is the list of its examples"),
        (lambda: data.DataLoader(ROWS, batch_sampler=[[0]]), "a sampler gives positions one by one, of which batch_si"),
        (lambda: data.random_split(ROWS, [0.5, 0.5], generator=1), "here it is 'seed'"),
        (lambda: tg.set_models(lm="a/b"), "set_models() has no argument 'lm'; here it is 'forward'"),
        (lambda: tg.set_models(forward="a", base_url="b"), "'base_url'; llm.resolve(name, base_url=...) makes a model"),
        (lambda: nn.Judge("a", model="b", api_base="c"), "'api_base'; llm.resolve(name, base_url=...) makes a model"),
        (lambda: nn.ChatCompletion("a", config={}), "'config'; each setting is given by its own name, such as temp"),
        (lambda: llm.set_price("a", input=1), "set_price() has no argument 'input'; here it is 'input_per_million'"),
        (lambda: Echo(text="a"), "Echo() has no argument 'text'; Echo.forward() has 'text'"),
        (lambda: nn.ExactMatch("a", "b"), "2 came by place; what it makes is called: ExactMatch()(...)"),
        (lambda: nn.Judge("a", (0, 1), None, None, True, 8, "b"), "what it makes is called: Judge(...)(...)"),
        (lambda: tg.use_models(foward="a/b").__enter__(), "use_models() has no argument 'foward'; did you mean 'forw"),
        (lambda: tg.budget(usd=1).__enter__(), "budget() has no argument 'usd'; here it is 'dollars'"),
        (lambda: tg.budget(x=1).__enter__(), "budget() has no argument 'x'; it takes dollars, calls, tokens"),
        (lambda: tg.evaluate(nn.ChatCompletion("{a}"), ROWS, strict=True), "'strict'; it takes program, dataset"),
        (lambda: tg.backward([tg.Variable("a")], grad_tensors=["b"]), "backward() has no argument 'grad_tensors'"),
        (lambda: tg.autograd.grad([], [], materialize_grads=True), "'materialize_grads'; allow_unused=True gives Non"),
        (lambda: func.vmap(len, in_axes=0), "vmap() has no argument 'in_axes'; here it is 'in_dims'"),
        (lambda: func.vmap(len, out_axes=0), "vmap() has no argument 'out_axes'; here it is 'out_dims'"),
        (lambda: func.avmap(len, in_axes=0), "vmap() has no argument 'in_axes'; here it is 'in_dims'"),
        (lambda: func.pmap(len, in_axes=0), "pmap() has no argument 'in_axes'; func.vmap maps over axes of arguments"),
        (lambda: func.pmap(len, axis_name="i"), "'axis_name'; leave it out, as no operation asks for the other examp"),
        (lambda: func.grad(len, argnames="a"), "'argnames'; arguments are named by their places: argnums=0, or argn"),
        (lambda: func.grad_and_value(len, argnum=0), "grad_and_value() has no argument 'argnum'; did you mean 'argn"),
        (lambda: func.jacrev(len, chunk_size=2), "jacrev() has no argument 'chunk_size'; it takes function, argnums"),
        (lambda: func.jacfwd(len, randomness="same"), "jacfwd() has no argument 'randomness'; it takes function"),
        (lambda: func.hessian(len, holomorphic=True), "hessian() has no argument 'holomorphic'; it takes function"),
        (lambda: tg.autograd.gradcheck(len, [], eps=1e-6), "'eps'; leave it out, as words are compared, and no numb"),
        (lambda: optim.schedules.StepEdits(TGD, 8, step_size=2), "StepEdits() has no argument 'step_size'; here it i"),
        (lambda: optim.schedules.StepEdits(TGD, 8, 2, gamma=0.1), "StepEdits() has no argument 'gamma'; here it is 'f"),
        (lambda: optim.schedules.CosineEdits(TGD, 8, T_max=9), "CosineEdits() has no argument 'T_max'; here it is 'st"),
        (lambda: optim.schedules.CosineEdits(TGD, 8, eta_min=1), "no argument 'eta_min'; here it is 'end'"),
        (lambda: optim.schedules.LinearEdits(TGD, 8, 1, total_iters=9), "no argument 'total_iters'; here it is 'ste"),
        (lambda: PROGRAM.register_buffer("a", tg.Variable("a"), persistent=False), "'persistent'; what is in no stat"),
        (lambda: PROGRAM.state_dict(prefix="a."), "'prefix'; the state is a dict of its own: {f'{prefix}{name}': it f"),
        (lambda: PROGRAM.state_dict(keep_vars=True), "'keep_vars'; dict(module.named_parameters()) has the Variables"),
        (lambda: PROGRAM.load_state_dict({}, assign=True), "'assign'; leave it out, as a state is plain data, and no"),
        (lambda: PROGRAM.register_forward_hook(print, always_call=True), "'always_call'; leave it out: a hook is cal"),
        (lambda: PROGRAM.register_forward_pre_hook(print, always=True), "it takes hook, prepend, with_kwargs"),
        (lambda: tg.Variable("a").backward(engine="a/b"), "Variable.backward() has no argument 'engine'; use_models("),
    ],
)  # fmt: skip
def test_an_argument_that_is_not_there_is_told_by_our_name(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(TypeError, match=re.escape(says)) as caught:
        call()
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_python_tells_of_what_is_missing_or_given_twice() -> None:
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'data'"):
        tg.Variable()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="multiple values"):
        tg.Variable("a", data="b")  # type: ignore[misc]


def test_an_error_of_the_function_itself_is_left_alone() -> None:
    @names_told
    def outer(text: str) -> None:
        inner(txet=text)

    def inner(text: str) -> None: ...

    with pytest.raises(TypeError, match=r"inner\(\) got an unexpected keyword"):
        outer("a")


def test_a_class_of_ones_own_that_passes_arguments_on_is_told_of_the_one_it_passes() -> None:
    class Mine(optim.TGD):
        def __init__(self, params: Any, **settings: Any) -> None:
            super().__init__(params, **settings)

    with pytest.raises(TypeError, match=r"TGD\(\) has no argument 'max_edit'; did you mean 'max_edits'"):
        Mine([prompt()], max_edit=1)


def test_a_function_keeps_its_signature_name_and_place() -> None:
    assert list(inspect.signature(nn.Parameter).parameters) == ["data", "role", "requires_grad"]
    assert tg.evaluate.__name__ == "evaluate"
    assert pickle.loads(pickle.dumps(tg.evaluate)) is tg.evaluate
    assert optim.TGD.__init__.__qualname__ == "TGD.__init__"


def test_every_name_of_ours_in_the_table_is_an_argument_of_something() -> None:
    known: set[str] = set()
    for part in (tg, nn, optim, llm, data, func, optim.schedules, tg.autograd):
        for name in part.__all__:
            value = getattr(part, name)
            if callable(value):
                for each in (value, getattr(value, "fit", value)):
                    try:
                        known |= set(inspect.signature(each).parameters)
                    except ValueError:
                        continue
    assert set(_OURS) <= known


def test_what_belongs_to_a_model_is_an_argument_of_what_makes_one() -> None:
    assert {*_OF_A_MODEL} - {"api_base"} <= {*inspect.signature(llm.resolve).parameters}


@pytest.mark.parametrize("name", [*_OF_A_MODEL, "timeout", "max_retries", "prompt"])
def test_nobody_is_told_to_send_what_is_no_setting_along_with_each_request(name: str) -> None:
    """A key in `extra` would stand in the request's body, and in every record of it."""
    with pytest.raises(TypeError) as told:
        nn.ChatCompletion("{text}", **{name: "secret"})
    assert "extra" not in str(told.value)


def test_what_a_caller_had_in_hand_goes_with_its_error() -> None:
    """The wrapper's frame and the error do not hold each other: a lock would be kept until they are collected."""

    class Held:
        pass

    @names_told
    def fails(held: Any) -> None:
        raise ValueError("no")

    kept: list[weakref.ref[Held]] = []

    def use(**wrong: Any) -> None:
        held = Held()
        kept.append(weakref.ref(held))
        with contextlib.suppress(ValueError, TypeError):
            fails(held, **wrong)

    gc.disable()
    try:
        use()
        use(hold=1)
        assert [each() for each in kept] == [None, None]
    finally:
        gc.enable()


def test_who_gives_too_much_by_place_is_told_what_is_taken_so() -> None:
    """Python says how many, and not which: the optimizer of `cross_validate` is part of what makes a program."""
    with pytest.raises(TypeError) as told:
        tg.cross_validate(nn.Sequential, nn.ExactMatch(), None, [])  # type: ignore[call-arg, arg-type]
    assert str(told.value) == (
        "cross_validate() takes start, loss, examples by place, and folds, val, trainer, final, n_jobs by name; 4 "
        "came by place"
    )
    with pytest.raises(TypeError, match=r"^budget\(\) takes dollars, calls, tokens by place; 4 came by place$"):
        tg.budget(1, 2, 3, 4)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^Trainer\.fit\(\) takes program, .*, test by place; 7 came by place$"):
        tg.Trainer().fit(PROGRAM, nn.ExactMatch(), optim.TGD([prompt()]), ROWS, ROWS, ROWS, ROWS)  # type: ignore[call-arg]
