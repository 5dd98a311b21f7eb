"""Files of lines that only grow."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

from textgrad_engine.store.lines import Lines


def test_putting_completions_in_order_does_not_hold_them_all(tmp_path: Path) -> None:
    """A long run's file may be larger than the memory left; equal ones keep their order, a torn line is left out."""
    held = Lines(tmp_path / "completions.jsonl")
    written = [
        {"phase": n % 7, "purpose": "forward", "example": f"e{n % 3}", "request": {"text": "é\u2028" * 5000}, "time": n}
        for n in range(300)
    ]
    for entry in written:
        held.append(json.dumps(entry, ensure_ascii=False).encode())
    with held.path.open("ab") as file:
        file.write(b'{"phase": 1, "purp')
    size = held.path.stat().st_size
    tracemalloc.start()
    try:
        held.sort()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < size / 5
    held.append(b'{"phase": 9}')
    found = [json.loads(line) for line in held.path.read_bytes().split(b"\n")[:-1]]
    assert found == [*sorted(written, key=lambda entry: (entry["phase"], entry["example"])), {"phase": 9}]
