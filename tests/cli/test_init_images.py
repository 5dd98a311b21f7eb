"""``textgrad-engine init`` of tables with columns of images."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from textgrad_engine.testing import png

from ..runner import invoke

VISION = """
from textgrad_engine.testing import FunctionModel, pixels_of


def look(request):
    image = next(part for part in request.messages[-1].content if part["type"] == "image_url")
    return "red" if pixels_of(image)[0][0][0] > 99 else "black"


model = FunctionModel(look, name="eyes")
"""

DATA_URL = "data:image/png;base64,iVBORw0KGgo="


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a table in a folder of its own, beside a folder of pictures."""
    monkeypatch.chdir(tmp_path)
    Path("tables/signs").mkdir(parents=True)


def signs(number: int) -> list[dict[str, Any]]:
    rows = []
    for n in range(number):
        name = f"signs/{n}.PNG"
        Path("tables", name).write_bytes(png([[(255 if n % 2 else 0, n % 250, n // 250)]]))
        rows.append({"sign": name, "place": f"place {n}", "target": "red" if n % 2 else "black"})
    return rows


def init(rows: list[dict[str, Any]], *args: str) -> Result:
    text = "".join([json.dumps(row) + "\n" for row in rows])
    Path("tables/table.jsonl").write_text(text, encoding="utf-8")
    return invoke("init", "new/task", "--data", "tables/table.jsonl", "--model", "simulated/tickets", *args)


def config() -> dict[str, Any]:
    return tomllib.loads(Path("new/task/config.toml").read_text(encoding="utf-8"))


def test_an_image_that_is_not_there_among_others_is_named() -> None:
    """By its line in the table, and nothing is written."""
    done = init([*signs(4), {"sign": "signs/9.png", "place": "p", "target": "red"}])
    assert done.exit_code == 2
    assert "table.jsonl:5: column 'sign': " in done.stderr
    assert "no such file" in done.stderr
    assert not Path("new").exists()


def test_an_image_that_no_model_takes_is_named() -> None:
    """A page that was saved as one."""
    rows = signs(4)
    Path("tables/signs/2.PNG").write_text("<!doctype html><p>not found", encoding="utf-8")
    done = init(rows)
    assert done.exit_code == 2
    assert "table.jsonl:3: column 'sign': " in done.stderr
    assert "this is a web page" in done.stderr


def test_paths_are_seen_from_the_new_folder_and_the_task_is_trained() -> None:
    """The table stood elsewhere; the pictures stay where they are."""
    done = init(signs(120))
    assert done.exit_code == 0, done.output
    assert "The column 'sign' has images, which the model is shown" in " ".join(done.stdout.split())
    assert config()["data"]["images"] == ["sign"]
    assert config()["program"]["user"] == "sign: {sign}\nplace: {place}"
    row = json.loads(Path("new/task/train.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert row["sign"].startswith("../../tables/signs/")
    Path("new/task/eyes.py").write_text(VISION, encoding="utf-8")
    ran = invoke("train", "new/task", "--model", "eyes:model", "--json", "--run-dir", "run")
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["test"]["best"]["mean"] == 1.0


def test_an_absolute_path_stays() -> None:
    """It is seen from everywhere."""
    rows = [{**row, "sign": str(Path("tables", row["sign"]).resolve())} for row in signs(8)]
    assert init(rows).exit_code == 0
    assert (
        json.loads(Path("new/task/train.jsonl").read_text(encoding="utf-8").splitlines()[0])["sign"] == rows[0]["sign"]
    )


@pytest.mark.parametrize("value", ["https://example.org/{n}.jpg", "http://example.org/{n}.webp?w=1", DATA_URL])
def test_addresses_and_data_urls_are_images_too(value: str) -> None:
    """They stay as they are, and nobody fetches them."""
    rows = [{"sign": value.format(n=n), "place": f"p{n}", "target": "red"} for n in range(8)]
    assert init(rows).exit_code == 0
    assert config()["data"]["images"] == ["sign"]
    lines = Path("new/task/train.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["sign"] for line in lines] == [row["sign"] for row in rows]


@pytest.mark.parametrize("value", ["https://example.org/{n}", "see {n}.txt", "{n}", "a\n{n}.png"])
def test_other_texts_are_texts(value: str) -> None:
    """An address of a page, a name of a file, and what only ends as one does."""
    rows = [{"sign": value.format(n=n), "target": "red"} for n in range(8)]
    done = init(rows)
    assert done.exit_code == 0, done.output
    assert "images" not in config()["data"]
    assert "image" not in done.stdout


def test_names_of_images_that_are_nowhere_are_text_and_said() -> None:
    """Nobody can be shown them; a task may be about the names."""
    done = init([{"sign": f"signs/{n}.png", "target": "red"} for n in range(8)])
    assert done.exit_code == 0, done.output
    said = " ".join(done.stdout.split())
    assert "The column 'sign' looks like paths of images, but no such file is there, seen from tables" in said
    assert "images" not in config()["data"]


def test_a_column_that_is_not_shown_is_not_read() -> None:
    """Nor does a missing file in it matter."""
    rows = [*signs(8), {"sign": "signs/99.png", "place": "p", "target": "red"}]
    assert init(rows, "--input", "place").exit_code == 0
    assert "images" not in config()["data"]


def test_equal_images_are_in_one_part_whatever_they_are_called() -> None:
    """An example that is trained on is no test."""
    rows = signs(120)
    for n, row in enumerate(rows):
        copy = Path("tables/signs", f"copy{n}.png")
        copy.write_bytes(Path("tables", row["sign"]).read_bytes())
        rows[n] = {"sign": row["sign"], "target": row["target"]}
    rows += [{"sign": f"signs/copy{n}.png", "target": row["target"]} for n, row in enumerate(rows)]
    done = init(rows)
    assert done.exit_code == 0, done.output
    for part in ("train", "val", "test"):
        names = [json.loads(line)["sign"] for line in Path(f"new/task/{part}.jsonl").read_text().splitlines()]
        numbers = [int(Path(name).stem.removeprefix("copy")) for name in names]
        assert sorted(numbers) == sorted([*dict.fromkeys(numbers)] * 2)
