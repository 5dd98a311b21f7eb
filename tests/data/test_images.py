from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine import data
from textgrad_engine.data import images
from textgrad_engine.errors import DataError
from textgrad_engine.testing import png

RED = png([[(255, 0, 0)]])
URL = "data:image/png;base64," + base64.b64encode(RED).decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "red.png").write_bytes(RED)
    return tmp_path


def rows(folder: Path, *values: Any, **options: Any) -> data.Dataset[dict[str, Any]]:
    """A file of rows with these pictures, read."""
    text = "".join(json.dumps({"picture": value, "target": "red"}) + "\n" for value in values)
    (folder / "rows.jsonl").write_text(text)
    return data.load(folder / "rows.jsonl", images=["picture"], **options)


def test_a_column_of_paths_becomes_images(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths count from the folder of the table, wherever the program runs; the ending of a name says nothing."""
    (folder / "red.jpg").write_bytes(RED)
    monkeypatch.chdir("/")
    part = {"type": "image_url", "image_url": {"url": URL, "detail": "low"}}
    found = rows(folder, "pictures/red.png", str(folder / "red.jpg"), detail="low")
    assert list(found) == [{"picture": part, "target": "red"}] * 2


def test_addresses_parts_and_nothing_stay_what_they_are(folder: Path) -> None:
    """A row may say more closely how its image is looked at; null is for a program that can do without."""
    own = {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "high"}}
    found = rows(folder, "https://example.org/a b.png".replace(" ", "%20"), URL, own, None, detail="low")
    assert [row["picture"] and row["picture"]["image_url"] for row in found] == [
        {"url": "https://example.org/a%20b.png", "detail": "low"},
        {"url": URL, "detail": "low"},
        {"url": "https://example.org/a.png", "detail": "high"},
        None,
    ]


def test_a_table_of_spreadsheets_names_images_too(folder: Path) -> None:
    """CSV holds texts alone, and a name may be written with other characters that look alike."""
    (folder / "rows.csv").write_text("bildé;target\npictures/red.png;red\n", encoding="utf-8")
    found = data.load(folder / "rows.csv", images=["bilde\u0301"])
    assert found[0]["bildé"]["image_url"] == {"url": URL}


def test_one_image_of_many_questions_is_held_once(folder: Path) -> None:
    """Benchmarks ask ten questions about one page."""
    found = rows(folder, *["pictures/red.png"] * 3)
    assert len({id(row["picture"]) for row in found}) == 1


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "the image is empty; copy the file anew"),
        (b"BM" + b"\0" * 40, "a BMP image, .*; convert it"),
        (b"II*\0", "a TIFF image, .*; convert it"),
        (b"\0\0\0\x18ftypheic", "a HEIC or AVIF image, .*; convert it"),
        (b'<?xml version="1.0"?>\n<svg></svg>', "an SVG drawing, .*; convert it"),
        (b"%PDF-1.7", "a PDF document, .*; convert it"),
        (b"<!DOCTYPE html><p>404", "a web page, .*; name another file"),
        (b"version https://git-lfs.github.com/spec/v1", r"a pointer of Git LFS.*git lfs pull"),
        (b"secret", "no image, and models take PNG, JPEG, GIF and WebP; name another file"),
    ],
)
def test_what_models_do_not_take_is_refused_with_the_repair(folder: Path, content: bytes, why: str) -> None:
    """With file, line and column, and never a byte of what is in the file."""
    (folder / "x.png").write_bytes(content)
    with pytest.raises(DataError, match=rf"rows\.jsonl:2: column 'picture': .*x\.png: .*{why}") as caught:
        rows(folder, "pictures/red.png", "x.png")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("pictures/rad.png", "there is no such file; did you mean 'red.png'"),
        ("nowhere/red.png", "there is no folder"),
        ("pictures", "this is a folder; name a file in it"),
        ("a\0b", "null (byte|character)"),
        ("x" * 5000, "cannot be read: .*name too long"),
        ("", "it is empty, and is to name an image: write a path, seen from"),
        (7, "it is int 7, and is to name an image"),
        (["pictures/red.png"], "it is list .*is to name an image"),
        ({"type": "image_url", "image_url": "a.png"}, "an image without an address"),
        ({"bytes": "AAAA"}, "it is dict .*is to name an image"),
    ],
)
def test_a_row_that_names_no_image_is_refused(folder: Path, value: Any, why: str) -> None:
    """Before anything is asked, where the row is."""
    with pytest.raises(DataError, match=rf"rows\.jsonl:1: column 'picture': .*{why}"):
        rows(folder, value)


def test_a_huge_image_is_refused_without_being_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A photograph of 60 MB would be refused by the endpoint, after it was sent."""
    with (folder / "huge.png").open("wb") as file:
        file.truncate(images.MAX_IMAGE + 1)
    monkeypatch.setattr(
        Path, "read_bytes", lambda path: pytest.fail(f"{path} was read") if path.suffix == ".png" else b""
    )
    with pytest.raises(DataError, match=r"has 20 MB, and endpoints take 20 MB at most; make it smaller"):
        data.image_part(folder / "huge.png")


def test_a_column_that_is_not_there_is_refused(folder: Path) -> None:
    """It would go to the model as text; and one text is no list of columns."""
    (folder / "rows.jsonl").write_text('{"picture": "pictures/red.png"}\n')
    with pytest.raises(DataError, match=r"no column 'pictures' in any row, .*did you mean 'picture'\?"):
        data.load(folder / "rows.jsonl", images=["pictures"])
    with pytest.raises(TypeError, match=r"images must be .*; write \['picture'\]"):
        data.load(folder / "rows.jsonl", images="picture")


def test_image_part_takes_a_file_its_bytes_or_an_address(folder: Path) -> None:
    """What people have in their hands."""
    file = folder / "pictures" / "red.png"
    for source in (file, str(file), RED, URL):
        assert data.image_part(source) == {"type": "image_url", "image_url": {"url": URL}}
    with pytest.raises(DataError, match="the bytes: this is no image"):
        data.image_part(b"no")


def test_equal_questions_about_other_images_are_no_overlap() -> None:
    """Nor are other questions about one image; the same about the same is."""
    one, other = ({"type": "image_url", "image_url": {"url": f"https://example.org/{name}.png"}} for name in "ab")
    question = "Which of the cell's organelles is labelled with the letter that stands at the top of the figure? " * 5
    train = [{"picture": one, "question": question}]
    assert data.check_splits(train, [{"picture": other, "question": question}]) == []
    assert data.check_splits(train, [{"picture": one, "question": "How many cells are there?"}]) == []
    assert [found.kind for found in data.check_splits(train, [{"picture": one, "question": question}])] == ["exact"]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("https://example.org/a b.png", "white space in it; take it out"),
        (" https://example.org/a.png", "white space in it; take it out"),
        ("file:///srv/a.png", "models take https:// addresses"),
        ("data:image/svg+xml;utf8,<svg/>", "models take https:// addresses"),
        ("data:image/png;base64,AA\nAA", "white space"),
    ],
)
def test_an_address_that_models_do_not_take_is_not_taken_for_a_path(folder: Path, value: str, why: str) -> None:
    """ "There is no folder https:/example.org" sends nobody to the mistake."""
    for make in (lambda: data.image_part(value), lambda: rows(folder, value)):
        with pytest.raises(DataError, match=why):
            make()


def test_an_address_of_no_use_is_not_shown_in_full() -> None:
    """It may be an image, or end with what signs it."""
    with pytest.raises(DataError) as caught:
        data.image_part("https://example.org/" + "a" * 100_000 + " ?sig=secret")
    assert len(str(caught.value)) < 300
