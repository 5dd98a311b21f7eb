"""Arguments by names that a function does not have: what its own are, also for who comes from another library.

A decorator, as Python itself refuses such a call before the function's first line.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

from textgrad_engine.tracebacks import hide
from textgrad_engine.wording import nearest

P = ParamSpec("P")
R = TypeVar("R")

_OURS = {
    "role": ("role_description", "role_desc", "description"),
    "data": ("value", "text", "content"),
    "requires_grad": ("trainable", "requires_opt"),
    "params": ("parameters", "variables"),
    "model": ("engine", "lm", "client", "model_client", "reflection_lm", "prompt_model"),
    "momentum": ("gradient_memory", "memory_size"),
    "examples": ("in_context_examples",),
    "constraints": ("objective", "instruction_to_optimizer"),
    "program": ("student", "module", "task", "adaltask"),
    "loss": ("metric", "criterion", "loss_fn", "evaluator"),
    "optimizer": ("teleprompter", "optimizers"),
    "train": ("trainset", "train_set", "train_data", "train_dataset", "train_loader", "train_dataloaders"),
    "val": ("valset", "val_set", "val_data", "val_dataset", "val_loader", "val_dataloaders", "eval_dataset"),
    "test": ("testset", "test_set", "test_data", "test_dataset", "test_loader"),
    "dataset": ("devset", "examples", "data", "data_source"),
    "fn": ("metric", "eval_fn", "metric_fn", "function"),
    "function": ("func",),
    "description": ("desc",),
    "arguments": ("arg_desc", "arg_descs"),
    "purpose": ("fn_purpose", "eval_fn_purpose", "fn_desc", "eval_fn_desc", "description"),
    "instructions": ("instruction", "evaluation_instruction", "eval_system_prompt", "criteria", "rubric"),
    "criteria": ("rubric", "rubrics", "checklist", "instructions"),
    "system": ("system_prompt", "system_message", "instructions"),
    "user": ("prompt", "template", "user_prompt", "signature"),
    "response_format": ("output_schema", "response_model", "schema"),
    "max_turns": ("max_iters", "max_steps"),
    "concurrency": ("num_threads", "num_workers", "max_workers"),
    "batch_size": ("reflection_minibatch_size", "train_batch_size"),
    "max_epochs": ("epochs", "num_epochs"),
    "patience": ("early_stopping", "early_stopping_patience"),
    "run_dir": ("output_dir", "log_dir", "ckpt_path", "default_root_dir"),
    "proposals": ("num_candidates", "num_trials"),
    "frontier": ("frontier_type",),
    "merges": ("use_merge", "max_merge_invocations"),
    "proposer": ("instruction_proposer", "custom_instruction_proposer", "custom_candidate_proposer"),
    "beam": ("beam_size", "beam_width"),
    "sets": ("num_candidate_programs",),
    "least": ("metric_threshold",),
    "bootstrapped": ("max_bootstrapped_demos", "bootstrap_shots"),
    "labelled": ("max_labeled_demos", "raw_shots", "k"),
    "seed": ("random_state", "generator", "manual_seed"),
    "fractions": ("lengths",),
    "in_dims": ("in_axes",),
    "out_dims": ("out_axes",),
    "start": ("start_factor",),
    "end": ("end_factor", "eta_min"),
    "steps": ("total_iters", "T_max"),
    "every": ("step_size",),
    "factor": ("gamma",),
    "dollars": ("max_cost", "usd"),
    "target": ("label", "labels", "label_column", "answer_column", "target_column"),
    "input_per_million": ("input",),
    "output_per_million": ("output",),
    "forward": ("lm", "model", "engine"),
    "backward": ("backward_engine",),
    "gradient": ("grad_tensors",),
    "grad_variables": ("grad_tensors",),
    "on_score": ("progress", "progress_bar", "display_progress", "verbose"),
    "base_url": ("api_base", "endpoint", "azure_endpoint"),
}
"""What our names are in TextGrad, DSPy, GEPA, AdalFlow, Trace, PyTorch, JAX and Lightning."""

_MODELS = "use_models(forward=..., backward=..., optimizer=..., judge=...) says who is asked"
_OF_A_MODEL = (
    "api",
    "api_base",
    "api_key",
    "base_url",
    "context",
    "headers",
    "max_in_flight",
    "policy",
    "price",
    "requests_per_minute",
    "tokens_per_minute",
)
"""What `llm.resolve` takes and nobody else does, beside a name of it in other libraries."""

_IN_WORDS = {
    **dict.fromkeys(("engine", "lm", "model", "backward_engine", "reflection_lm", "task_lm"), _MODELS),
    **{
        name: f"llm.resolve(name, {'base_url' if name == 'api_base' else name}=...) makes a model with it, which is "
        "given in the place of its name"
        for name in _OF_A_MODEL
    },
    **dict.fromkeys(
        ("config", "generation_config", "model_kwargs", "sampling_params"),
        "each setting is given by its own name, such as temperature=0",
    ),
    **dict.fromkeys(("lr", "learning_rate", "weight_decay"), "what bounds a step is its max_edits"),
    **dict.fromkeys(
        ("max_metric_calls", "max_full_evals", "auto", "budget", "max_calls"),
        "`with tg.budget(calls=...)` around it bounds its calls, and dollars=... what it costs",
    ),
    "cache": "`with llm.caching(folder)` around it keeps answers on disk",
    "track_stats": "leave it out: the result has each step, and Trainer(run_dir=...) keeps each call",
    **dict.fromkeys(
        ("display_table", "return_outputs", "return_all_scores"),
        "the Evaluation has ids, scores and predictions, a row each",
    ),
    **dict.fromkeys(
        ("max_errors", "failure_score", "raise_on_exception", "provide_traceback"),
        "leave it out: an answer that is lost counts as none, not as wrong, and an error of your own code is raised",
    ),
    **dict.fromkeys(
        ("candidate_selection_strategy", "candidate_selector"),
        "leave it out: a parent is drawn by how many examples it is best on",
    ),
    **dict.fromkeys(
        ("component_selector", "module_selector"),
        "leave it out: the prompt that is changed is drawn by how much feedback went to it",
    ),
    **dict.fromkeys(
        ("skip_perfect_score", "perfect_score"),
        "leave it out: nothing is said of an answer with full marks, and nobody is asked about it",
    ),
    "seed_candidate": "leave it out: a run begins with the texts that the parameters have",
    "adapter": "leave it out: any nn.Module is trained, and an app that asks models is llm.CallableModel(app)",
    "stop_callbacks": "a callback of a Trainer may raise train.StopTraining, and tg.budget(...) bounds what is asked",
    "add_format_failure_as_feedback": 'ops.field(answer, name, default="") scores an answer in another form, and its '
    "prompt is told why",
    **dict.fromkeys(
        ("progress", "progress_bar", "enable_progress_bar", "display_progress", "display_progress_bar", "verbose"),
        "report.Progress(), a callback of a Trainer, shows how a run goes on",
    ),
    **dict.fromkeys(
        ("logger", "loggers", "use_wandb", "use_mlflow"), "a tracker is one of the callbacks (docs/extending.md)"
    ),
    **dict.fromkeys(
        ("accumulate_grad_batches", "gradient_accumulation_steps"),
        "a larger batch_size does the same, as a step answers all feedback there is",
    ),
    **dict.fromkeys(
        ("num_retries", "max_retries"),
        "llm.resolve(..., policy=llm.RetryPolicy(max_attempts=...)) says how often a call is tried",
    ),
    **dict.fromkeys(
        ("timeout", "request_timeout"),
        "llm.resolve(..., policy=llm.RetryPolicy(call_deadline=...)) says how long a call may take",
    ),
    "rollout_id": "`with llm.repeat(index)` around it tells equal questions apart",
    "batch_sampler": "a sampler gives positions one by one, of which batch_size at a time are a minibatch",
    "collate_fn": "leave it out, as a minibatch is the list of its examples",
    "set_to_none": "leave it out, as no feedback is the empty list in any case",
    "persistent": "what is in no state is a plain attribute: self.name = Variable(text)",
    "prefix": "the state is a dict of its own: {f'{prefix}{name}': it for name, it in module.state_dict().items()}",
    "keep_vars": "dict(module.named_parameters()) has the Variables themselves",
    "assign": "leave it out, as a state is plain data, and no Variable comes in the place of another",
    "always_call": "leave it out: a hook is called where forward gave a result",
    **dict.fromkeys(("in_axes", "out_axes"), "func.vmap maps over axes of arguments, pmap over the items of one"),
    "axis_name": "leave it out, as no operation asks for the other examples",
    "argnames": "arguments are named by their places: argnums=0, or argnums=(0, 1)",
    "materialize_grads": "allow_unused=True gives None for what was not used, and an empty list is a zero",
    **dict.fromkeys(("eps", "atol", "rtol"), "leave it out, as words are compared, and no numbers"),
    **dict.fromkeys(("num_workers", "num_threads", "pin_memory"), "leave it out, as calls go on side by side anyway"),
}
"""What is said where a function has none of our names for it."""

_MOST = 12
"""Names that a message lists at most."""


def names_told(function: Callable[P, R]) -> Callable[P, R]:
    """A function that says, of an argument that it does not have, which is meant or where it belongs.

    A call costs a tenth of a microsecond more, so this is for what is not called for each operation.

    Args:
        function: or a method; of an ``__init__`` the class is named.

    Example:
        >>> @names_told
        ... def load(path, seed=0): ...
        >>> load("a.csv", sead=1)
        Traceback (most recent call last):
        TypeError: load() has no argument 'sead'; did you mean 'seed'?
        >>> load("a.csv", random_state=1)
        Traceback (most recent call last):
        TypeError: load() has no argument 'random_state'; here it is 'seed'
        >>> load("a.csv", 1, "b.csv")
        Traceback (most recent call last):
        TypeError: load() takes path, seed by place; 3 came by place
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            if not isinstance(error, TypeError) or _is_of_its_own(error):
                hide(error, boundary=__name__)
                raise
            refusal = TypeError(unknown_name(function, args, kwargs) or _too_many(function, args) or str(error))
        hide(refusal, boundary=__name__)
        try:
            raise refusal
        finally:
            del refusal  # else it and this frame keep each other alive, and the arguments

    return call


def _is_of_its_own(error: TypeError) -> bool:
    """Whether a function raised it, and not its call. In that itself the traceback as a local would keep it alive."""
    entry = error.__traceback__
    return entry is None or entry.tb_next is not None


def unknown_name(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
    """What is said of the first argument that a function does not have; None where it has them all.

    Args:
        function: that was called.
        args: what it was given by place; of a method the object first.
        kwargs: what it was given by name.
    """
    known = names_of(function)
    takes_any = any(each.kind is each.VAR_KEYWORD for each in inspect.signature(function).parameters.values())
    name = next((each for each in kwargs if each not in known and (not takes_any or called_here(each, known))), None)
    if name is None:
        return None
    meant = which_is_meant(name, known)
    if meant in ("", nearest(name, known)):  # letters in common say less than that another call has the very name
        meant = _elsewhere(function, name, args) or _of_a_run(function, name) or meant
    return f"{_what_was_called(function, args)}() has no argument {name!r}{meant or _listed(known)}"


def _what_was_called(function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """A function or class by its name; one that is derived from it and has no ``__init__`` of its own by that one's."""
    called = function.__qualname__.rpartition("<locals>.")[2]
    if not called.endswith(".__init__"):
        return called
    own = inspect.unwrap(type(args[0]).__init__) is inspect.unwrap(function)
    return type(args[0]).__name__ if own else called.removesuffix(".__init__")


def _too_many(function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """What is said where more came by place than a function takes, which Python says in numbers; "" where not."""
    parameters = [each for each in inspect.signature(function).parameters.values() if each.name != "self"]
    came = len(args) - (len(parameters) < len(inspect.signature(function).parameters))
    places = [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    if came <= len(places) or any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return ""
    named = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    owner = _what_was_called(function, args)
    by_name = f", and {', '.join(named[:_MOST])} by name" if named else ""
    calls = ""
    if function.__name__ == "__init__" and callable(args[0]):  # as a loss is, whose class was called in its place
        calls = f"; what it makes is called: {owner}({'...' if places else ''})(...)"
    return f"{owner}() takes {', '.join(places) or 'nothing'} by place{by_name}; {came} came by place{calls}"


def names_of(function: Callable[..., Any]) -> list[str]:
    """The arguments that a function has by name."""
    parameters = inspect.signature(function).parameters.values()
    return [each.name for each in parameters if each.name != "self" and each.kind is not each.VAR_KEYWORD]


def which_is_meant(name: str, known: list[str]) -> str:
    """The end of an error about a name that is not known: which is meant; "" where that cannot be told.

    Args:
        name: the name.
        known: those that there are.

    Example:
        >>> which_is_meant("role_description", ["data", "role"]), which_is_meant("rule", ["data", "role"])
        ("; here it is 'role'", "; did you mean 'role'?")
    """
    if found := called_here(name, known):
        return f"; here it is {found!r}"
    return f"; {_IN_WORDS[name]}" if name in _IN_WORDS else nearest(name, known)


def called_here(name: str, known: Iterable[str]) -> str:
    """Which of the known names another library's is; "" for none.

    Example:
        >>> called_here("trainset", ["train", "val"])
        'train'
    """
    return next((each for each in known if name in _OURS.get(each, ())), "")


def not_needed(name: str) -> str:
    """Why an argument of another library may be left out here, for whatever has arguments; "" where it may not.

    Example:
        >>> not_needed("seed_candidate")
        'leave it out: a run begins with the texts that the parameters have'
    """
    said = _IN_WORDS.get(name, "")
    return said if said.startswith("leave it out") else ""


def _elsewhere(function: Callable[..., Any], name: str, args: tuple[Any, ...]) -> str:
    """Which other call has the argument: of the same object, or what makes an argument that the function has."""
    called = function.__qualname__.rpartition("<locals>.")[2]
    if called.endswith(".__init__"):
        cls = type(args[0])
        for method, value in _own_methods(cls, function):
            if not method.startswith("_") and (each := _among(name, value)):
                return f"; {cls.__name__}.{method}() has {each!r}"
        return ""
    if "." in called:
        return _of_what_makes(type(args[0]), name)
    try:
        hints = typing.get_type_hints(inspect.unwrap(function))
    except NameError:  # a name that only type checkers import
        return ""
    for argument, hint in hints.items():
        for cls in () if argument == "return" else typing.get_args(hint) or (hint,):
            if isinstance(cls, type) and (found := _of_what_makes(cls, name)):
                return f"{found}, and is given as {argument}="
    return ""


_OF_A_RUN = {
    **dict.fromkeys(("program", "loss", "optimizer", "train", "val", "test"), "tg.Trainer(...).fit()"),
    "run_dir": "tg.Trainer()",
}
"""What a run is given and no optimizer is, and by which call; those of DSPy and GEPA take it themselves."""


def _of_a_run(function: Callable[..., Any], name: str) -> str:
    """Which call of a run takes an argument that an optimizer does not have; "" for none."""
    if not function.__module__.startswith(f"{__package__}.optim"):
        return ""
    found = next((each for each in _OF_A_RUN if name == each or name in _OURS[each]), "")
    return f"; {_OF_A_RUN[found]} has {found!r}" if found else ""


def _own_methods(cls: type, init: Callable[..., Any]) -> list[tuple[str, Any]]:
    """The methods of a class, and of its bases up to the one that has the ``__init__``, by name.

    A name there says where an argument belongs. Not so one of a base that takes nothing: all modules have its methods.
    """
    made = [inspect.unwrap(vars(each).get("__init__", len)) for each in cls.__mro__]
    own = cls.__mro__[: made.index(inspect.unwrap(init)) + bool(names_of(init))]
    found = {name: value for each in reversed(own) for name, value in vars(each).items() if inspect.isfunction(value)}
    return sorted(found.items())


def _of_what_makes(cls: type, name: str) -> str:
    each = _among(name, inspect.getattr_static(cls, "__init__")) if cls.__module__.startswith(f"{__package__}.") else ""
    return f"; {cls.__name__}() has {each!r}" if each else ""


def _among(name: str, function: Callable[..., Any]) -> str:
    """The argument of a function that is called so, here or in another library; "" for none."""
    return next((each for each in names_of(function) if name == each or name in _OURS.get(each, ())), "")


def _listed(known: list[str]) -> str:
    shown = ", ".join(known[:_MOST]) + (", ..." if len(known) > _MOST else "")
    return f"; it takes {shown}" if known else "; it takes none"
