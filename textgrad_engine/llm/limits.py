"""How much may be in flight at an endpoint, also for a minute, as a wrapper around its model."""

from __future__ import annotations

import math

from textgrad_engine.checks import at_least, check
from textgrad_engine.errors import BadRequest, ModelError
from textgrad_engine.llm.gate import Gate
from textgrad_engine.llm.loops import PerLoop
from textgrad_engine.llm.model import Model, Wrapper, defaults_of
from textgrad_engine.llm.rates import Bucket, hear
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.stop import check_stop
from textgrad_engine.llm.window import Window


class Limit(Wrapper):
    """Holds calls back while enough are in flight; slows down all calls to an endpoint when it asks for that.

    - The number of calls in flight adapts (see `window.Window`): up while latency holds, halved after 429, timeouts,
      503, 529.
    - 429, and any error with ``retry_after``, pauses all calls, not only the one that met it.
    - Rate limits (requests and tokens per minute) are kept: those stated here, and those in the endpoint's headers.
    - Queued calls go out in turns, one purpose after the other, and first come first served within a purpose.
    - A refused key or an exhausted quota fails everything that is queued at that moment, so that at most the calls in
      flight reach the server; after that calls go out one by one until one succeeds.
    - Likewise, a model that does not exist fails everything that is queued, and a setting that the endpoint does not
      accept fails what is queued with the same value (`BadRequest.setting`).
    - An address where nothing seems to be (`BadRequest.unserved`) fails everything that is queued where it has never
      said anything else: a gateway may answer so while it is restarted.
    - So does, each time that it says so, an endpoint that has said nothing for five minutes but to come back later.
    - A day's quota of which some is back soon is waited for, as long as the endpoint says (`max_quota_wait`); the calls
      after that go out as far apart. What is queued fails where none of it has come back in all that time, or in five
      minutes where these are longer. Where another model is asked then (`Fallback`), nobody waits for it.
    - A `Stop` that is set fails the queued calls at once.
    - The log tells of an endpoint that only refuses for ten seconds, or that wants so long a pause, be it by its
      headers; and again each time that it has been silent for twice as long.

    Args:
        inner: the model that is wrapped.
        max_in_flight: calls at once, on each event loop; None for no limit before the endpoint asks for one.
        start: calls at once in the beginning; without it, `max_in_flight`.
        floor: as few calls at once are always allowed.
        requests_per_minute: the most requests in any minute.
        tokens_per_minute: the most tokens in any minute. A call counts with its input and `max_tokens` (without that,
            with what answers had on average) until its true number is known; one call may be larger than a tenth of
            this, and then passes it by as much.
        max_pause: the longest pause that an endpoint is granted, in seconds.
        max_quota_wait: a day's quota that is used up is waited for where some of it is back within so many seconds.

    Raises:
        ValueError: a limit that would let nothing through.
    """

    def __init__(
        self,
        inner: Model,
        max_in_flight: int | None = None,
        *,
        start: int | None = None,
        floor: int = 1,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        max_pause: float = 60.0,
        max_quota_wait: float = 0.0,
    ) -> None:
        counts, pauses = at_least(1, "max_in_flight", "start", "floor"), at_least(0, "max_pause", "max_quota_wait")
        check(Limit.__init__, locals(), counts, pauses)
        ceiling = math.inf if max_in_flight is None else max_in_flight
        if not 1 <= floor <= ceiling or (start is not None and not floor <= start <= ceiling):
            raise ValueError(f"1 <= floor <= start <= max_in_flight must hold, got {floor}, {start}, {max_in_flight}")
        for rate in (requests_per_minute, tokens_per_minute):
            if rate is not None:
                Bucket(rate)  # refuses what is no rate, here where the mistake is
        super().__init__(inner)
        self.max_in_flight = max_in_flight
        self.start = start
        self.requests_per_minute = requests_per_minute
        self.tokens_per_minute = tokens_per_minute
        self.max_pause = max_pause
        self.max_quota_wait = max_quota_wait
        self._defaults = defaults_of(inner)
        begin = ceiling if start is None else start
        per_minute, waits = (requests_per_minute, tokens_per_minute), (max_pause, max_quota_wait)
        self._gates: PerLoop[Gate] = PerLoop(lambda: Gate(Window(begin, floor, ceiling), per_minute, waits, self.name))

    async def complete(self, request: Request) -> Completion:
        """Send the request when there is room.

        Raises:
            Stopped: the run was stopped before it was sent.
        """
        check_stop()
        gate = self._gates.get()
        size = gate.size_of(request, self._defaults.max_tokens) if gate.counts_tokens else 0
        at_once = gate.is_open(size)
        if at_once:
            gate.enter(size)
        else:
            await gate.wait(request, size)
        sent = gate.now()
        token = hear.set(gate.hear)
        used = size
        try:
            if not at_once:  # it may have been set meanwhile
                check_stop()
            completion = await self.inner.complete(request)
        except ModelError as error:
            gate.failed(error, sent, self.name)
            if isinstance(error, BadRequest) and error.setting:
                gate.fail_alike(error, request, self._defaults)
            raise
        else:
            used = completion.usage.total_tokens if gate.counts_tokens else size
            gate.succeeded(request.purpose, sent, completion)
            return completion
        finally:
            hear.reset(token)
            gate.leave(size, used)

    def __repr__(self) -> str:
        shown = {
            "max_in_flight": self.max_in_flight,
            "start": self.start,
            "requests_per_minute": self.requests_per_minute,
            "tokens_per_minute": self.tokens_per_minute,
        }
        said = "".join(f", {key}={value}" for key, value in shown.items() if value is not None)
        return f"Limit({self.inner!r}{said})"
