"""The SDK's clients: one for few calls at once, one for many."""

from __future__ import annotations

from typing import Any

from pydantic import SecretStr

from textgrad_engine.dispatch import close_at_end
from textgrad_engine.llm.headers import Headers, sent
from textgrad_engine.llm.loading import loading
from textgrad_engine.llm.transport import WIDE, connect, has_aiohttp, is_by_socks, is_refused


class Clients:
    """The SDK's clients on one loop, made when a request first needs one and anew when the key changes.

    Attributes:
        in_flight: how many calls are under way here; whoever makes one counts it.
        raw: the SDK's class of responses that it has not looked into; None before a client is made.
        events: its class of streams that it has not read, which it wants to be told and makes nothing of.
    """

    def __init__(self) -> None:
        self.in_flight = 0
        self.raw: Any = None
        self.events: Any = None
        self._made: dict[bool, tuple[SecretStr, Any]] = {}
        self._by_socks: bool | None = None
        close_at_end(self)  # what aiohttp finds open when the program ends it writes to stderr

    def connected(self, host: str, base_url: str, timeout: float, key: SecretStr, headers: Headers) -> Any:
        """The client for a request that is sent now.

        Args:
            host: of the endpoint.
            base_url: its address.
            timeout: seconds to wait for data that does not come.
            key: the key.
            headers: sent with each request.
        """
        # With many in flight aiohttp costs half. It cannot be mocked, so while real requests are refused it is
        # used for this machine only.
        wide = self.in_flight >= WIDE and has_aiohttp() and not is_refused(host)
        if wide:
            if self._by_socks is None:
                self._by_socks = is_by_socks(host)
            wide = not self._by_socks
        made = self._made.get(wide)
        if made is None or made[0] != key:
            with loading():
                import httpx2  # heavy, see `connect`
                import openai

                self.raw, self.events = httpx2.Response, openai.AsyncStream[Any]
                own = frozenset(map(str.lower, headers))
                http = connect(host, timeout, wide=wide, own=own, base_url=base_url)
                client = openai.AsyncOpenAI(
                    api_key=key.get_secret_value(),
                    base_url=base_url,
                    max_retries=0,
                    timeout=http.timeout,
                    http_client=http,
                    default_headers=sent(headers),
                )
            made = self._made[wide] = (key, client)
        return made[1]

    async def close(self) -> None:
        """Close the connections."""
        made, self._made = self._made, {}
        for _, client in made.values():
            await client.close()
