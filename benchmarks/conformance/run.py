"""Does the client run unchanged against servers that are not ours? Installs them, asks them, prints a table.

    python benchmarks/conformance/run.py --work FOLDER [--servers litellm transformers front] [--only WORDS]

Into FOLDER go an environment for each server, made by pip from the package index the first time (about 2 GB for the
three), the models, and what the servers print. Nothing is downloaded but packages: what answers is a text that litellm
makes up (`mock_response`), or a tiny model written on the spot (`parrot.py`). Each server listens on a free port of the
loopback interface and is stopped at the end, whatever happens.

- `litellm`: litellm's proxy with a master key, answering by itself
- `transformers`: ``transformers serve`` with the tiny model
- `front`: litellm's proxy in front of that
- `llama_cpp`: the server of llama-cpp-python with the same model; not among the default ones, for installing it
  compiles llama.cpp, which wants a C++ compiler and ten minutes

The checks (`checks.py`) are the same for all: only base_url, key and the names of the models differ. Exit code 1 when
one failed. "not offered" is no failure: the server has no such thing, and the table says what it does instead.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime
import importlib.metadata
import os
import platform
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from checks import CHECKS, NotOffered, Target
from servers import Place, Server, litellm, llama_cpp, transformers

DEFAULT = ("litellm", "transformers", "front")
SECONDS = 240.0


async def outcome(title: str, server: Server) -> tuple[str, bool]:
    """What a check found out about a server, in a few words, and whether that will do."""
    target = Target(server)
    if title in server.lacks:
        return f"not offered: {server.lacks[title]}", True
    try:
        async with asyncio.timeout(SECONDS):
            remark = await CHECKS[title](target)
    except NotOffered as said:
        return f"not offered: {said}", True
    except Exception as error:  # whatever it is, it goes into the table, and the next check is made
        return f"**failed**: {type(error).__name__}: {' '.join(str(error).split())[:300]}", False
    finally:
        await target.aclose()
    return f"ok ({remark})" if remark else "ok", True


def results(servers: list[Server], titles: list[str]) -> tuple[dict[str, list[str]], bool]:
    """The cells of the table by check, and whether none failed."""
    cells: dict[str, list[str]] = {}
    good = True
    for title in titles:
        cells[title] = []
        for server in servers:
            text, held = asyncio.run(outcome(title, server))
            print(f"{server.name}: {title}: {text}", file=sys.stderr, flush=True)
            cells[title].append(text)
            good = good and held
    return cells, good


def table(servers: list[Server], cells: dict[str, list[str]]) -> str:
    """The table in Markdown, with versions and date."""
    ours = [f"openai {importlib.metadata.version('openai')}"]
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        ours.append(f"aiohttp {importlib.metadata.version('aiohttp')}")
    made = ", ".join(dict.fromkeys(server.versions for server in servers if server.versions))
    today = datetime.datetime.now(datetime.UTC).date()
    rows = [["check", *(server.name for server in servers)], ["---"] * (1 + len(servers))]
    rows += [[title, *found] for title, found in cells.items()]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([f"{today}: {made}; client: {', '.join(ours)}, Python {platform.python_version()}", "", *lines])


@contextlib.contextmanager
def started(place: Place, wanted: list[str]) -> Iterator[list[Server]]:
    """The servers, until the block ends."""
    with contextlib.ExitStack() as stack:
        made: dict[str, Server] = {}
        if "transformers" in wanted or "front" in wanted:
            made["transformers"] = stack.enter_context(transformers(place))
        if "litellm" in wanted:
            made["litellm"] = stack.enter_context(litellm(place))
        if "front" in wanted:
            made["front"] = stack.enter_context(litellm(place, made["transformers"]))
        if "llama_cpp" in wanted:
            made["llama_cpp"] = stack.enter_context(llama_cpp(place))
        yield [made[name] for name in wanted]


def main() -> int:
    """Start the servers, make the checks, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder for environments, models and logs; kept")
    parser.add_argument("--servers", nargs="+", choices=(*DEFAULT, "llama_cpp"), default=list(DEFAULT))
    parser.add_argument("--only", default="", help="only checks whose title contains this")
    options = parser.parse_args()
    titles = [title for title in CHECKS if options.only in title]
    if not titles:
        parser.error(f"no check contains {options.only!r}; there are: {'; '.join(CHECKS)}")
    options.work.mkdir(parents=True, exist_ok=True)
    os.environ.pop("OPENAI_API_KEY", None)  # the servers that want a key are given one
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the servers are stopped then, too
    with started(Place(options.work.resolve()), list(dict.fromkeys(options.servers))) as servers:
        cells, good = results(servers, titles)
    print(table(servers, cells))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
