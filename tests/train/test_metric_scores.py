"""What each of several metrics gave: beside the score, however the examples were run."""

from __future__ import annotations

import json
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.data.dataset import ids_of
from textgrad_engine.store.records import evaluation_from_json, evaluation_to_json
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train import Objective, cross_validate
from textgrad_engine.train.metric_scores import filled
from textgrad_engine.train.metrics_of import parts_of

ROWS = [{"mail": f"m{n}", "target": {"label": "late" if n % 2 else "lost", "why": f"m{n % 3}"}} for n in range(6)]
FLAT = [{"mail": row["mail"], **row["target"]} for row in ROWS]  # type: ignore[dict-item]


def said(request: Any) -> str:
    label = "late" if "late" in request.messages[0].text else "lost"
    return json.dumps({"label": label, "why": request.messages[-1].text})


def program(model: Any = said) -> nn.ChatCompletion:
    return nn.ChatCompletion("{mail}", system=nn.Parameter("Say.", role="system prompt"), model=FunctionModel(model))


def two(**given: Any) -> nn.Weighted:
    return nn.Weighted({name: nn.OnField(nn.ExactMatch(), name) for name in ("label", "why")}, **given)


def means(evaluation: tg.train.Evaluation) -> dict[str, tuple[float | None, int]]:
    return {part.name: (part.mean, part.n) for part in evaluation.parts}


def test_what_has_no_answer_has_no_part() -> None:
    """The others make the means, with repeats those of the samples that came."""
    times: dict[str, int] = {}

    def forgetful(request: Any) -> str:
        mail = request.messages[-1].text
        times[mail] = times.get(mail, 0) + 1
        return "no JSON" if mail == "m0" or (mail == "m1" and times[mail] == 2) else said(request)

    once = tg.evaluate(
        program(lambda request: "no" if "m0" in request.messages[-1].text else said(request)), ROWS, two()
    )
    assert means(once) == {"label": (pytest.approx(2 / 5), 5), "why": (pytest.approx(2 / 5), 5)}
    assert once.parts[0].scores[0] is None
    found = tg.evaluate(program(forgetful), ROWS, two(), repeats=2, concurrency=1)
    assert found.unanswered == 3
    assert found.parts[0].scores == (None, 0.0, 1.0, 0.0, 1.0, 0.0)
    assert found.mean == pytest.approx(sum(part.mean or 0 for part in found.parts) / 2)


def test_one_metric_has_no_parts() -> None:
    """Nor has a loss of one's own around several."""
    inner = two()
    assert tg.evaluate(program(), ROWS, nn.OnField(nn.ExactMatch(), "label")).parts == ()
    assert tg.evaluate(program(), ROWS, lambda answer, target: inner(answer, target)).parts == ()
    assert filled(parts_of(inner), [[], []])[0].mean is None


def test_what_each_metric_gave_is_told_to_searches_without_asking() -> None:
    """As parts of their scales; nothing of examples that were not run, that went unanswered, or of other texts."""
    why = nn.Metric(lambda said, _: len(said), "has a long reason", scale=(0, 8))
    loss = nn.Weighted({"label": nn.OnField(nn.ExactMatch(), "label"), "why": nn.OnField(why, "why")})
    model = FunctionModel(lambda request: "no" if "m0" in request.messages[-1].text else said(request))
    objective = Objective(nn.ChatCompletion("{mail}", system=program().system, model=model), loss, ROWS)
    objective.matrix([("Say.",), ("Say late.",)], range(4))
    asked = len(model.requests)
    assert objective.metrics == ("label", "why")
    assert objective.by_metric(("Say late.",), range(5)) == [None, (1.0, 0.25), (0.0, 0.25), (1.0, 0.25), None]
    assert objective.by_metric(("Say.",), [3, 2]) == [(0.0, 0.25), (1.0, 0.25)]
    assert objective.by_metric(("Say so.",), [2]) == objective.by_metric(("Say.",), [2], "train") == [None]
    assert len(model.requests) == asked


def test_a_score_of_one_metric_tells_of_none() -> None:
    """As a front has the score alone."""
    for loss in (nn.OnField(nn.ExactMatch(), "label"), nn.Weighted({"label": nn.OnField(nn.ExactMatch(), "label")})):
        assert Objective(program(), loss, ROWS).metrics == ()


def test_parts_are_the_same_however_examples_are_run() -> None:
    """By `evaluate`, one by one in a search, and many candidates at once."""
    loss = two(weights={"label": 3, "why": 1}, targets={"label": "label", "why": "why"})
    wanted = tg.evaluate(program(), FLAT, loss)
    assert means(wanted) == {"label": (0.5, 6), "why": (0.5, 6)}
    together, alone = (Objective(program(), loss, FLAT) for _ in range(2))
    together.matrix([("Say.",), ("Say late.",)], range(6))
    for texts in (("Say.",), ("Say late.",)):
        alone.scores(texts, range(6))
        assert together.evaluation(texts).parts == alone.evaluation(texts).parts == together.known(texts).parts  # type: ignore[union-attr]
    assert together.evaluation(("Say.",)).parts == wanted.parts


def test_what_is_known_of_a_part_of_the_set_has_the_parts_of_that() -> None:
    """A budget may end a validation."""
    objective = Objective(program(), two(), ROWS)
    objective.scores(("Say.",), [0, 1])
    known = objective.known(("Say.",))
    assert known is not None
    assert known.parts[0].scores == (1.0, 0.0, None, None, None, None)


def test_a_record_of_it_reads_back() -> None:
    """And one without it, of before."""
    found = tg.evaluate(program(), ROWS, two())
    kept = json.loads(json.dumps(evaluation_to_json(found)))
    assert evaluation_from_json(kept) == found
    del kept["parts"]
    assert evaluation_from_json(kept).parts == ()


def test_folds_put_them_together_in_the_order_of_the_examples() -> None:
    """Each example as the texts of its own fold did."""
    model = FunctionModel(lambda request: said(request) if request.purpose == "forward" else {"case_1": {"system": ""}})

    def start() -> tuple[nn.Module, optim.Optimizer]:
        chat = nn.ChatCompletion("{mail}", system=nn.Parameter("Say.", role="system prompt"))
        return chat, optim.TGD(chat.parameters())

    with tg.use_models(forward=model):
        found = cross_validate(start, two(), ROWS, folds=2, trainer=tg.Trainer(max_epochs=1), final=False)
    assert found.seed is not None
    assert found.seed.ids == ids_of(ROWS)
    assert found.seed.parts[0].scores == (1.0, 0.0) * 3
    assert means(found.seed) == {"label": (0.5, 6), "why": (0.5, 6)}
