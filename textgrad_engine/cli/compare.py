"""``textgrad-engine compare``: several prompts and models on the same examples, each beside the first."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from textgrad_engine.cli import build, completion, one_example
from textgrad_engine.cli.comparing import (
    Arm,
    Failure,
    Result,
    arms_of,
    beside_the_first,
    ended_early,
    name_of,
    programs_from_elsewhere,
    results,
)
from textgrad_engine.cli.comparing_words import as_document, in_one_line, in_words, worse_than_the_first
from textgrad_engine.cli.evaluating import Asked, is_cached
from textgrad_engine.cli.keeping import IN_THE_CACHE
from textgrad_engine.cli.one_example import only_this
from textgrad_engine.cli.options import (
    BaseUrl,
    BudgetLimit,
    CallsLimit,
    ClustersColumn,
    Json,
    JudgeName,
    ModelPrices,
    Quiet,
    Repeats,
    TokensLimit,
    UseCache,
)
from textgrad_engine.cli.output import (
    BUDGET_SPENT,
    INTERRUPTED,
    TOO_LOW,
    besides_an_error,
    checking,
    command,
    said_of,
    write,
    write_json,
)
from textgrad_engine.cli.spending import ModelOptions, limits_of
from textgrad_engine.cli.subject import prompt_of_config, prompt_of_run
from textgrad_engine.errors import BudgetExceeded, ModelError, RunError
from textgrad_engine.report.terminal import complain


@command
def compare(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="A config, for its seed prompt; or a run folder that train wrote, for its best prompt.",
            show_default=False,
            autocompletion=completion.runs_and_configs,
        ),
    ],
    prompt: Annotated[
        list[str] | None,
        typer.Option(
            "--prompt",
            metavar="FILE",
            help="Another prompt: a file, or a run folder for its best prompt; once for each. If there are several "
            "texts, NAME=FILE is a prompt with one text replaced.",
        ),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config",
            metavar="CONFIG",
            help="Another config: its prompt, with its own program and settings, and the code beside it, on the same "
            "examples by the first one's metric; once for each. Code from elsewhere, such as an installed package, is "
            "the same for all.",
            autocompletion=completion.runs_and_configs,
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="A model, e.g. openai/gpt-5-mini; once for each. They replace the config's models, and each prompt "
            "is run with each of them.",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="FILE",
            help="The examples (.jsonl, .json, .csv). Default: the validation split of a config, or its training "
            "split if it has no validation split; the test split of a run.",
        ),
    ] = None,
    not_worse: Annotated[
        bool,
        typer.Option(
            "--not-worse",
            help="End with exit code 4 where another one is shown to be worse than the first, more of its answers are "
            "missing than by chance (5%), or it does not reach a floor of the config: a check of a change, the first "
            "being as before it. Whatever is the same as the first is not worse, and not asked.",
        ),
    ] = False,
    example: Annotated[
        str | None,
        typer.Option(
            "--example",
            metavar="ID",
            help="Show this example in full instead, with the answer and the score of each prompt. What is in the "
            "cache is not asked again, and other examples are not asked. Test examples are not shown.",
        ),
    ] = None,
    repeats: Repeats = 1,
    clusters: ClustersColumn = None,
    judge: JudgeName = None,
    base_url: BaseUrl = None,
    price: ModelPrices = None,
    budget: BudgetLimit = None,
    budget_calls: CallsLimit = None,
    budget_tokens: TokensLimit = None,
    cache: UseCache = True,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Compare prompts and models on the same examples: which is better than the first, and what each costs.

    The first is the prompt of the config, or the best prompt of a run, with the first model. Each other one is compared
    with it, example by example. Its verdict is corrected for the number of comparisons, and stands beside the tokens of
    an example and the cost of 1,000 examples. Metric and seed are those of the config. Its [budget] is for train, and
    does not hold here: use the options, which limit all of them together.

    All of them are run at once. They are run one by one if the first is a run folder, if there is a budget (so that the
    first ones are whole when it is spent), or if a config names code of your own, which may not be made for threads.

    Answers are kept on disk (the cache). So the same command goes on after it was interrupted or ran out of budget, and
    with one more --prompt it asks for that prompt alone, and with --example ID it shows one of the examples that got
    worse or better. With --no-cache everything is asked anew. For a run, each use of its test split is counted, and
    `eval` reports it.
    """
    limits = (budget, budget_calls, budget_tokens)
    said = ModelOptions(None, judge, base_url, price, limits)
    asked = Asked(data=data, repeats=repeats, clusters=clusters, options=said)
    with checking():
        if example is not None and not_worse:
            raise RunError("--example shows one example, and --not-worse is a check of all: give one of them")
        subject = prompt_of_config(run, *model or (), judge) or prompt_of_run(run, data, "best")
        arms, same = arms_of(subject, asked, prompt or [], model or [], config or [])
        if same and not not_worse:
            raise RunError(f"{same[0]}; leave one of them out")
        whole, arms = arms[0], arms if example is None else only_this(arms, example)
        answers = build.make_cache(cache, "with --no-cache")
        if arms[0].task.unkept:
            complain(f"{arms[0].task.unkept}{'' if cache else '; if it is ended early, it begins anew'}")
    for each in dict.fromkeys([*same, *programs_from_elsewhere(arms)]):
        complain(each)
    if len(arms) == 1:  # nothing was changed, so there is nothing to ask
        if as_json:
            write_json(as_document(arms, []))
        return
    every = list(results(arms, limits_of(*limits), cache=answers, quiet=quiet or as_json, beside=example is None))
    failed = [each for each in every if isinstance(each, Failure)]
    found = beside_the_first([each for each in every if isinstance(each, Result)])
    kept = cache and all(is_cached(each.arm.task) for each in found)
    if example is not None:
        failed = _of_one(arms, every, whole, quiet=quiet, as_json=as_json)
        _end(arms, found, failed, kept=kept)
        return
    answered = any(each.evaluation is not None for each in found)
    if as_json:
        (besides_an_error if failed else write_json)(as_document(arms, found, failed))
    elif answered:
        write(in_one_line(arms, found) if quiet else in_words(arms, found, failed))
    told = worse_than_the_first(arms, found) if not_worse and ended_early(found) is None else []
    for worse in told:
        complain(worse)
    _end(arms, found, failed, kept=kept)
    if told:
        raise typer.Exit(TOO_LOW)


def _of_one(arms: list[Arm], every: list[Result | Failure], whole: Arm, *, quiet: bool, as_json: bool) -> list[Failure]:
    """Print what each made of the one example that was asked for.

    Returns:
        What ends the command: an error that is none of the model's; or those of all of them, and nothing is printed.
    """
    failed = [each for each in every if isinstance(each, Failure)]
    if len(failed) == len(arms):
        return failed
    ending = [each for each in failed if not isinstance(each.error, ModelError)]
    if as_json:
        (besides_an_error if ending else write_json)(one_example.as_document(arms, every, whole))
    else:
        write(one_example.in_one_line(arms, every) if quiet else one_example.in_words(arms, every, whole))
    return ending


def _end(arms: list[Arm], found: list[Result], failed: list[Failure], *, kept: bool) -> None:
    """End the command with the exit code of what came of it.

    Raises:
        typer.Exit: it did not go to its end.
        BudgetExceeded: nothing was answered within the budget.
        Exception: what ended an arm; of several the last one, when the others were told.
    """
    ended = ended_early(found)
    spent = isinstance(ended, BudgetExceeded)
    if ended is not None and spent and not failed and all(each.evaluation is None for each in found):
        raise ended
    if ended is not None:
        complain(f"{ended if spent else 'interrupted'}{f'; {IN_THE_CACHE}' if kept else ''}")
    for each in failed[:-1]:
        complain(f"error: {name_of(each.arm, arms)}: {said_of(each.error)}")
    if failed:
        raise failed[-1].error
    if ended is not None:
        raise typer.Exit(BUDGET_SPENT if spent else INTERRUPTED)
