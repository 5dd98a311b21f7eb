"""``show --doubtful``: examples that no prompt was right on, while most led to the same other answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TICKETS = Path(__file__).parents[2] / "examples" / "tickets"
WRONG = {"train": {"t018": "account", "t073": "billing"}, "val": {"t162": "account", "t197": "technical"}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tickets, some of them in a wrong queue."""
    path = tmp_path_factory.mktemp("tickets")
    for file in TICKETS.iterdir():
        if file.suffix not in (".toml", ".jsonl", ".txt"):
            continue
        text = file.read_text(encoding="utf-8")
        if (wrong := WRONG.get(file.stem)) is not None:
            rows = [json.loads(line) for line in text.splitlines()]
            text = "".join(json.dumps({**row, "queue": wrong.get(row["id"], row["queue"])}) + "\n" for row in rows)
        (path / file.name).write_text(text, encoding="utf-8")
    return path


def test_wrong_labels_are_found(cli: Any, folder: Path) -> None:
    """With the place in the file, what is expected, and what most prompts led to; the report says that there are."""
    run = folder / "run"
    told = " ".join(cli("train", folder, "--optimizer", "PatchSearch", "--run-dir", run).stdout.split())
    found = json.loads(cli("show", run, "--doubtful", "100", "--json").stdout)
    named = {each["id"] for each in found["examples"]}
    assert named >= WRONG["val"].keys()
    assert f"`show --doubtful {found['doubtful']}` prints them." in told
    first = found["examples"][0]
    assert first["id"] in WRONG["val"]
    assert first["expected"] == WRONG["val"][first["id"]] != first["said"]
    assert first["times"] <= first["texts"]
    rows = (folder / "val.jsonl").read_text(encoding="utf-8").splitlines()
    line = next(number for number, row in enumerate(rows, 1) if json.loads(row)["id"] == first["id"])
    assert first["where"] == str(folder / f"val.jsonl:{line}")
    said = " ".join(cli("show", run, "--doubtful", "1").stdout.split())
    assert f"{first['id']} {first['times']} of {first['texts']} prompts" in said
    assert f"expected {first['expected']} said {first['said']}" in said
    assert f"and {found['doubtful'] - 1} more; --doubtful {found['doubtful']} shows all." in said
    report = json.loads(cli("show", run, "--json").stdout)["doubtful"]
    assert [each["id"] for each in report] == [each["id"] for each in found["examples"]]


def test_where_there_are_none_it_says_so(cli: Any, run: Callable[[], Path]) -> None:
    """And ends well."""
    path = run()
    body = json.loads((path / "result.json").read_text(encoding="utf-8"))
    (path / "result.json").write_text(json.dumps({**body, "doubtful": []}), encoding="utf-8")
    done = cli("show", path, "--doubtful", "3")
    assert (done.exit_code, "There are none" in done.stdout) == (0, True)


def test_of_a_run_of_before_it_is_not_said_that_there_are_none(cli: Any, run: Callable[[], Path]) -> None:
    """Nobody noted them."""
    path = run()
    body = json.loads((path / "result.json").read_text(encoding="utf-8"))
    del body["doubtful"]
    (path / "result.json").write_text(json.dumps(body), encoding="utf-8")
    done = cli("show", path, "--doubtful", "3")
    assert (done.exit_code, "a version of before" in " ".join(done.stderr.split())) == (2, True)


@pytest.mark.parametrize("split", ["train", "val"])
def test_of_examples_that_were_changed_since_nothing_is_told(cli: Any, small: Any, tmp_path: Path, split: str) -> None:
    """The places and right answers would be those of others."""
    folder, path = small(rows=6), tmp_path / "run"
    cli("train", folder, "--no-feedback", "--run-dir", path, "-q")
    assert cli("show", path, "--doubtful", "3").exit_code == 0
    file = folder / f"{split}.jsonl"
    file.write_text(file.read_text(encoding="utf-8").replace('"queue": "', '"queue": "no '), encoding="utf-8")
    done = cli("show", path, "--doubtful", "3")
    name = {"train": "training", "val": "validation"}[split]
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"these are not the {name} examples that {path} had" in done.stderr.replace("\n", " ").replace("  ", " ")


def test_it_is_a_question_of_its_own_about_one_run(cli: Any, run: Callable[[], Path], tmp_path: Path) -> None:
    """Exit code 2, and what can be asked."""
    path = run()
    for options in (("--by", "queue"), ("--line", "1"), ("--examples", "1"), ("--front", "1")):
        done = cli("show", path, "--doubtful", "3", *options)
        assert (done.exit_code, "questions of their own" in " ".join(done.stderr.split())) == (2, True)
    (path / "config.json").unlink()
    done = cli("show", path, "--doubtful", "3")
    assert (done.exit_code, "result.doubtful has their ids" in " ".join(done.stderr.split())) == (2, True)
    (path / "result.json").unlink()
    done = cli("show", path, "--doubtful", "3")
    assert (done.exit_code, "only a run that ended tells them" in " ".join(done.stderr.split())) == (2, True)


def test_of_folds_the_last_run_has_all_examples(cli: Any, folder: Path, tmp_path: Path) -> None:
    """Each fold has others."""
    path = tmp_path / "folds"
    cli("train", folder, "--folds", "2", "--run-dir", path, "--budget-calls", "500", "-q")
    done = cli("show", path, "--doubtful", "3")
    assert done.exit_code == 2
    assert str(path / "final") in done.stderr.replace("\n", "").replace(" ", "")
    assert cli("show", path / "fold-1", "--doubtful", "3").exit_code == 0


def test_of_folds_without_ids_each_is_told_with_its_place(cli: Any, small: Any, tmp_path: Path) -> None:
    """A fold has some of all examples, with the positions that they have among all, and files of their own."""
    folder, path = small(), tmp_path / "folds"
    for file in folder.glob("*.jsonl"):
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()[:6]]
        kept = [{"ticket": f"{file.stem} {row['ticket']}", "queue": "none of them"} for row in rows]
        file.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
    assert cli("train", folder, "--folds", "2", "--run-dir", path, "-q").exit_code == 0
    for fold in ("fold-1", "fold-2", "final"):
        body = json.loads((path / fold / "result.json").read_text(encoding="utf-8"))
        said = {"split": "train", "said": "billing", "times": 3, "texts": 3}
        every = [{**said, "id": name} for name in body["best_val"]["ids"]]
        (path / fold / "result.json").write_text(json.dumps({**body, "doubtful": every}), encoding="utf-8")
        found = json.loads(cli("show", path / fold, "--doubtful", "99", "--json").stdout)["examples"]
        assert len(found) == len(every)
        for each in found:
            file, _, line = each["where"].rpartition(":")
            row = json.loads(Path(file).read_text(encoding="utf-8").splitlines()[int(line) - 1])
            assert row["ticket"].startswith(Path(file).stem)
        assert len({each["where"] for each in found}) == len(found)
    assert "examples without the best score" in cli("show", path / "fold-2", "--examples", "1").stdout
