"""How the SDK's requests reach the network: plainly, and with hundreds in flight at once.

The HTTP package's pool looks through all its connections whenever a request begins or ends, so with 500 in flight most
of the time goes there: 5.6 ms of CPU a call where a pool is unlimited, 1.2 ms with small pools, 0.9 ms with aiohttp
(against a server in another process, see benchmarks/throughput.py).
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import ipaddress
import os
import urllib.request
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from textgrad_engine.errors import RequestRefused
from textgrad_engine.file_errors import reason_of
from textgrad_engine.llm.bodies import PACKING, bounded
from textgrad_engine.llm.charged import mark

REFUSE_REQUESTS = "TEXTGRAD_ENGINE_REFUSE_REQUESTS"
"""The environment variable that forbids real requests while it is set; the pytest plugin sets it.

A variable of the environment, so that child processes of a test are covered too.
"""

WIDE = 64
"""Calls in flight above which aiohttp carries further ones, where ``openai[aiohttp]`` is installed."""

_POOL = 8
"""Connections in each of the small pools."""

_OF_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE")
"""The environment's words about encryption, which are read when its settings are made."""

_OF_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
"""Likewise about proxies, also in small letters."""


def connect(host: str, timeout: float, *, wide: bool, own: Collection[str] = (), base_url: str = "") -> Any:
    """An HTTP client for the SDK, without a limit of its own: `Limit` decides how many calls run at once.

    Bodies are read up to a size only, see `bodies`.

    Args:
        host: where the requests will go.
        timeout: seconds to wait for data that does not come.
        wide: use aiohttp.
        own: names of headers that are for this endpoint alone, in lower case; a redirect does not take them elsewhere.
        base_url: the address of the endpoint, where there are such headers.

    Raises:
        RequestRefused: what the environment says of proxies or certificates cannot be used.
    """
    local = is_loopback(host)
    try:
        return _connected(local, timeout, wide=wide, own=own, base_url=base_url)
    except ImportError as error:
        if "socks" not in str(error).lower():
            raise
        problem = (
            f"the environment ({_set_of(_OF_PROXIES)}) names a SOCKS proxy, which needs the package socksio: "
            "`pip install socksio`"
        )
    except OSError as error:  # also what encryption says of files that hold no certificates
        problem = (
            f"the environment names certificates ({_set_of(_OF_CERTIFICATES)}) that cannot be read: "
            f"{reason_of(error)}; correct that"
        )
    except (ValueError, _invalid_address()):
        if local:
            raise
        problem = (
            f"the environment ({_set_of(_OF_PROXIES)}) holds what is no address of a proxy, such as "
            "http://proxy.example:3128; correct that"
        )
    # Raised here: what the HTTP package says may quote a password.
    raise mark(RequestRefused(f"nothing was sent to {host}: {problem}, or take it out of the environment"), sent=False)


def _set_of(names: Collection[str]) -> str:
    """Those variables of the environment that are set."""
    return ", ".join(name for name in os.environ if name.upper() in names and os.environ[name])


def _invalid_address() -> type[Exception]:
    import httpx2

    invalid: type[Exception] = httpx2.InvalidURL
    return invalid


def _connected(local: bool, timeout: float, *, wide: bool, own: Collection[str], base_url: str) -> Any:
    import httpx2  # with openai, most of a second: paid at the first call, not at import
    import openai

    settings: dict[str, Any] = {
        "timeout": httpx2.Timeout(timeout, connect=min(10.0, timeout), pool=None),
        "follow_redirects": True,
        "headers": {"accept-encoding": PACKING},
        "trust_env": not local,  # a proxy of the environment cannot reach this machine's own servers
    }
    bound, leave = bounded(), [_left_behind(base_url, own)] if own else []
    if wide:
        # 0 is aiohttp's word for "no limit"; left out, it would be 100
        return openai.DefaultAioHttpClient(
            limits=httpx2.Limits(max_connections=0),
            event_hooks={"request": [_guard_at_once, *leave, _bare], "response": [bound]},
            **settings,
        )
    unlimited = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    settings["event_hooks"] = {"request": [_guard, *leave], "response": [bound]}
    if local or not urllib.request.getproxies():  # a transport of one's own would pass by the environment's proxies
        return httpx2.AsyncClient(transport=_pools(unlimited), **settings)
    return httpx2.AsyncClient(limits=unlimited, **settings)


def has_aiohttp() -> bool:
    """Whether aiohttp is installed."""
    return importlib.util.find_spec("aiohttp") is not None


def is_by_socks(host: str) -> bool:
    """Whether the environment leads requests through a SOCKS proxy, to which aiohttp speaks HTTP."""
    proxies = {} if is_loopback(host) else urllib.request.getproxies()
    return any(address.lower().startswith("socks") for address in proxies.values())


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost" or host.endswith(".localhost")


def is_refused(host: str) -> bool:
    """Whether requests to a host are refused now, as tests are run."""
    return bool(os.environ.get(REFUSE_REQUESTS)) and not is_loopback(host)


@functools.lru_cache(maxsize=1)
def _encryption(*of_certificates: str | None) -> Any:
    # 20 to 50 ms, as all certificates of the machine are read; one for all clients, of which each loop has its own.
    import httpx2  # see above

    return httpx2.create_ssl_context()


def _pools(limits: Any) -> Any:
    import httpx2  # see above

    context = _encryption(*map(os.environ.get, _OF_CERTIFICATES))

    class Pools(httpx2.AsyncBaseTransport):
        """Small pools of connections, each filled before the next one is used."""

        def __init__(self) -> None:
            self._pools: list[Any] = []
            self._busy: list[int] = []

        async def handle_async_request(self, request: Any) -> Any:
            index = next((at for at, busy in enumerate(self._busy) if busy < _POOL), len(self._pools))
            if index == len(self._pools):
                self._pools.append(httpx2.AsyncHTTPTransport(verify=context, limits=limits))
                self._busy.append(0)
            self._busy[index] += 1
            released = False

            def release() -> None:
                nonlocal released
                if not released:
                    released = True
                    self._busy[index] -= 1

            try:
                response = await self._pools[index].handle_async_request(request)
            except BaseException:
                release()
                raise
            response.stream = Counted(response.stream, release)
            return response

        async def aclose(self) -> None:
            for pool in self._pools:
                await pool.aclose()

    class Counted(httpx2.AsyncByteStream):
        """A body; when it is closed, its connection is free."""

        def __init__(self, inner: Any, release: Any) -> None:
            self._inner = inner
            self._release = release

        async def __aiter__(self) -> Any:
            async for part in self._inner:
                yield part

        async def aclose(self) -> None:
            try:
                await self._inner.aclose()
            finally:
                self._release()

    return Pools()


def _left_behind(base_url: str, names: Collection[str]) -> Callable[[Any], Awaitable[None]]:
    """A hook for requests that takes these headers away of one that goes elsewhere, as HTTP packages do with a key.

    Elsewhere is another host, another port, and the same host without encryption.
    """
    import httpx2

    home = _origin(httpx2.URL(base_url))
    homes = {home, ("https", home[1], 443)} if home[::2] == ("http", 80) else {home}

    async def leave(request: Any) -> None:
        if _origin(request.url) not in homes:
            for name in names:
                request.headers.pop(name, None)

    return leave


def _origin(url: Any) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port or {"http": 80, "https": 443}.get(url.scheme)


async def _bare(request: Any) -> None:
    # User and password are in a header by now; aiohttp refuses to have them in both.
    if request.url.userinfo:
        request.url = request.url.copy_with(username=None, password=None)


async def _guard(request: Any) -> None:
    # The trace is called only where a request really goes to the network: a mocked transport never comes there.
    if is_refused(request.url.host):
        request.extensions["trace"] = _refuse


async def _guard_at_once(request: Any) -> None:
    if is_refused(request.url.host):
        await _refuse("", None)


async def _refuse(event: str, info: Any) -> None:
    error = RequestRefused(
        "real requests are refused while tests run, so that none reaches a paid model by accident; to permit them, "
        "mark the test with @pytest.mark.live or use the fixture allow_requests; to do without, use a model of "
        "textgrad_engine.testing"
    )
    raise mark(error, sent=False)
