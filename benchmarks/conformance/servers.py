"""Servers that are not ours: how each is installed, configured, started, and stopped."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import answers

HERE = Path(__file__).resolve().parent
PARROT = ("talk", "json", "critic", "optimizer", "slow", "endless", "cut", "long")
"""What the model of `parrot` can do."""

KEY = "sk-conformance-0123456789abcdef"
NOBODY = "http://127.0.0.1:9/v1"
"""An address where nobody listens."""


@dataclass(frozen=True)
class Server:
    """A running server, as the checks see it.

    Attributes:
        name: the title of its column.
        base_url: its address.
        key: the key that it wants; None where it asks for none.
        models: what each kind of check asks; a kind that the server cannot do is missing. "talk", "json", "critic" and
            "optimizer" say what `answers` holds, "slow" takes a moment, "endless" many seconds, "cut" stops at its
            length limit, "limited" refuses with 429, "broken" with 500, "overflow" any request as too long, and "long"
            what is.
        versions: of what it is made of.
        lacks: checks that are not made of it, with the reason.
    """

    name: str
    base_url: str
    key: str | None
    models: Mapping[str, str]
    versions: str = ""
    lacks: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Place:
    """The folder that everything is kept in: environments, models, configs, logs.

    Attributes:
        root: the folder.
        patience: seconds that a server has to end when it is asked to.
        environments: the interpreters so far, by name.
    """

    root: Path
    patience: float = 15.0
    environments: dict[str, Path] = field(default_factory=dict)

    def python(self, name: str, *requirements: str) -> Path:
        """The interpreter of an environment with these packages, made when it is not there yet.

        Raises:
            SystemExit: the packages cannot be installed.
        """
        folder = self.root / f"venv-{name}"
        python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        installed = folder / "installed.json"
        if not installed.is_file() or json.loads(installed.read_text()) != list(requirements):
            print(f"installing {' '.join(requirements)} in {folder}", file=sys.stderr, flush=True)
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            for requirement in requirements:  # one after the other: the first may decide which build others find
                command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement]
                if subprocess.run(command, check=False).returncode:
                    raise SystemExit(f"{requirement} could not be installed in {folder}; see what pip said above")
            installed.write_text(json.dumps(list(requirements)))
        self.environments[name] = python
        return python

    def versions(self, name: str, *packages: str) -> str:
        """What is installed there, e.g. ``"litellm 1.2.3"``."""
        code = "import importlib.metadata as m, sys; print(*(f'{p} {m.version(p)}' for p in sys.argv[1:]), sep=', ')"
        command = [str(self.environments[name]), "-c", code, *packages]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    @contextlib.contextmanager
    def running(self, name: str, command: list[str], port: int, ready: str, seconds: float) -> Iterator[None]:
        """Run a server until the block ends; what it prints goes into a file.

        Args:
            name: what to call it.
            command: starts it.
            port: where it listens.
            ready: a path that answers with success when it is ready.
            seconds: how long it may take until then.

        Raises:
            SystemExit: it ended, or was not ready in time.
        """
        log = self.root / f"{name}.log"
        # Nobody's keys and no proxies: all that it is to reach is on this machine.
        kept = {k: v for k, v in os.environ.items() if not k.upper().endswith(("_KEY", "_PROXY", "_TOKEN"))}
        own = {
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            "HF_HOME": str(self.root / "hf"),
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }
        with log.open("wb") as out:
            process = subprocess.Popen(
                command, stdout=out, stderr=subprocess.STDOUT, env=kept | own, cwd=self.root, start_new_session=True
            )
            try:
                _wait(process, f"http://127.0.0.1:{port}{ready}", seconds, name, log)
                yield
            finally:
                _end(process, self.patience)


def _wait(process: subprocess.Popen[bytes], url: str, seconds: float, name: str, log: Path) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    until = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError), opener.open(url, timeout=5) as response:
            if response.status == 200:
                return
        late = time.monotonic() > until
        if late or process.poll() is not None:
            what = f"was not ready within {seconds:g} s" if late else f"ended with code {process.returncode}"
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            raise SystemExit(f"{name} {what}; {log} ends with:\n{tail}")
        time.sleep(0.2)


def _end(process: subprocess.Popen[bytes], patience: float) -> None:
    def tell(sign: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sign)  # it is the leader of a group of its own, made of what it has started

    tell(signal.SIGTERM)
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    finally:
        tell(signal.SIGKILL)
        process.wait()


def free_port() -> int:
    """A port of the loopback interface that nobody listens on."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


@contextlib.contextmanager
def litellm(place: Place, upstream: Server | None = None) -> Iterator[Server]:
    """The proxy of litellm with a master key: answering by its `mock_response`, or in front of another server.

    Args:
        place: where it lives.
        upstream: the server that it hands requests on to.
    """
    python = place.python("litellm", "litellm[proxy]")
    routes: dict[str, dict[str, object]]
    streaming = "Responses API: streamed equals not streamed"
    if upstream is not None:
        lacks = {streaming: "litellm breaks off: it wants a whole number where transformers sends `created_at` as 1.5"}
        name = "litellm, transformers behind it"
        real = {"model": f"openai/{upstream.models['talk']}", "api_base": upstream.base_url, "api_key": "none"}
        routes = {"parrot": real, "limited": {**real, "rpm": 1}, "broken": {**real, "api_base": NOBODY}}
        models = dict.fromkeys(PARROT, "parrot") | {"limited": "limited", "broken": "broken"}
    else:
        name = "litellm, mock_response"
        cut = {
            "choices": [{"finish_reason": "length", "index": 0, "message": {"role": "assistant", "content": "Grüße"}}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
        }
        mocked: dict[str, dict[str, object]] = {
            "talk": {"mock_response": answers.TALK},
            "json": {"mock_response": answers.JSON},
            "critic": {"mock_response": answers.CRITIC},
            "optimizer": {"mock_response": answers.OPTIMIZER},
            "slow": {"mock_response": answers.TALK, "mock_delay": 0.5},
            "endless": {"mock_response": answers.TALK, "mock_delay": 20},
            "cut": {"mock_response": cut},
            "limited": {"mock_response": "litellm.RateLimitError"},
            "broken": {"mock_response": "litellm.InternalServerError"},
            "overflow": {"mock_response": "litellm.ContextWindowExceededError"},
        }
        nowhere = {"api_base": NOBODY, "api_key": "none"}  # never asked, for the answer is made up before
        routes = {kind: {"model": f"openai/{kind}", **nowhere, **mock} for kind, mock in mocked.items()}
        models = {kind: kind for kind in routes}
        lacks = {streaming: "litellm answers 500: it cannot stream a mock here"}
    config = {
        "model_list": [{"model_name": model, "litellm_params": params} for model, params in routes.items()],
        "general_settings": {"master_key": KEY},
        "router_settings": {
            "num_retries": 0,
            "disable_cooldowns": True,
            "optional_pre_call_checks": ["enforce_model_rate_limits"],
        },
    }
    port = free_port()
    file = place.root / f"litellm-{'mock' if upstream is None else 'front'}.yaml"
    # JSON is YAML, but for its pairs of escapes for one character beyond the first 65,536
    file.write_text(json.dumps(config, ensure_ascii=False), encoding="utf-8")
    command = [str(python.with_name("litellm")), "--config", str(file), "--host", "127.0.0.1", "--port", str(port)]
    with place.running(file.stem, command, port, "/health/liveliness", 180):
        versions = place.versions("litellm", "litellm")
        yield Server(name, f"http://127.0.0.1:{port}/v1", KEY, models, versions, lacks)


@contextlib.contextmanager
def transformers(place: Place) -> Iterator[Server]:
    """``transformers serve`` with the model of `parrot`."""
    # The version of torch is named so that the build is known; any that transformers takes will do.
    python = place.python("transformers", "torch==2.13.0", "transformers[serving]")
    model = place.root / "parrot"
    subprocess.run([str(python), str(HERE / "parrot.py"), "huggingface", str(model)], check=True)
    port = free_port()
    command = [str(python.with_name("transformers")), "serve", str(model), "--device", "cpu"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    models = dict.fromkeys(PARROT, str(model))
    with place.running("transformers", command, port, "/health", 180):
        versions = place.versions("transformers", "transformers", "torch")
        yield Server("transformers serve", f"http://127.0.0.1:{port}/v1", None, models, versions)


@contextlib.contextmanager
def llama_cpp(place: Place) -> Iterator[Server]:
    """The server of llama-cpp-python with the model of `parrot`; installing it compiles llama.cpp."""
    python = place.python("llama-cpp", "llama-cpp-python[server]", "gguf")
    model = place.root / "parrot.gguf"
    subprocess.run([str(python), str(HERE / "parrot.py"), "gguf", str(model)], check=True)
    port = free_port()
    command = [str(python), "-m", "llama_cpp.server", "--model", str(model), "--model_alias", "parrot"]
    command += ["--api_key", KEY, "--n_ctx", "4096", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--n_threads", "1", "--interrupt_requests", "false"]
    models = dict.fromkeys(PARROT, "parrot")
    with place.running("llama-cpp", command, port, "/docs", 120):
        versions = place.versions("llama-cpp", "llama-cpp-python")
        yield Server("llama_cpp.server", f"http://127.0.0.1:{port}/v1", KEY, models, versions)
