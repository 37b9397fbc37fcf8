"""Keeps a slow, failing or dead provider from costing more than its deadline."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Literal

import numpy as np

from homing.embedders.provider import EmbeddingProvider, Kind, Wrapper, checked_texts
from homing.errors import (
    EmbeddingError,
    InvalidArgument,
    MalformedAnswer,
    ProviderUnavailable,
    RateLimited,
    Timeout,
)
from homing.vectors import Matrix

logger = logging.getLogger(__name__)

RETRIABLE = (ProviderUnavailable, RateLimited, Timeout, MalformedAnswer)
"""What may pass by itself. A rejected key, an unknown model or a text that is too long will not."""
QUERY_DEADLINE = 0.8
"""Seconds that a person waits for a query to be embedded, before words answer alone."""
FIRST_WAIT = 0.1
MAX_WAIT = 10.0
MAX_LEFT_ALONE = 300.0
"""Seconds after which a provider is tried again, however long it asked to be left alone."""
Circuit = Literal["closed", "half-open", "open"]


class Breaker:
    """Says whether a call may be tried; told how every tried call ended.

    Closed, everything may. After `failures` failures in a row it is open and nothing may, for `cool_down` seconds. Then
    one call may, as a probe; its success closes the breaker, its failure opens it again for twice as long, up to
    `longest`. Safe to use from several threads.
    """

    def __init__(
        self,
        *,
        failures: int = 1,
        cool_down: float = 1.0,
        longest: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if failures < 1 or cool_down <= 0 or longest < cool_down:
            raise InvalidArgument("a breaker needs failures >= 1 and 0 < cool_down <= longest")
        self._failures = failures
        self._cool_down = cool_down
        self._longest = longest
        self._clock = clock
        self._lock = threading.Lock()
        self._failed_in_a_row = 0
        self._pause = cool_down
        self._open_until: float | None = None
        self._probing = False

    @property
    def retry_after(self) -> float | None:
        """Seconds until the next probe; None while closed, 0 while a probe is due or under way."""
        with self._lock:
            return None if self._open_until is None else max(0.0, self._open_until - self._clock())

    def permit(self) -> bool:
        """Whether a call may be tried now. Who gets True must report `succeeded` or `failed`."""
        with self._lock:
            if self._open_until is None:
                return True
            if self._probing or self._clock() < self._open_until:
                return False
            self._probing = True
            return True

    def succeeded(self) -> None:
        """A permitted call was answered."""
        with self._lock:
            self._failed_in_a_row = 0
            self._pause = self._cool_down
            self._open_until = None
            self._probing = False

    def failed(self, *, retry_after: float | None = None) -> None:
        """A permitted call was not answered; `retry_after` is how long the other side asked to be left alone."""
        with self._lock:
            self._failed_in_a_row += 1
            if self._probing:
                self._pause = min(2 * self._pause, self._longest)
            if self._probing or self._failed_in_a_row >= self._failures:
                self._open_until = self._clock() + max(self._pause, min(retry_after or 0.0, MAX_LEFT_ALONE))
            self._probing = False


class Resilient(Wrapper):
    """The same provider with a deadline, retries and a circuit breaker.

    A call ends by its deadline, whatever the provider does: `deadline` seconds for queries, where a person waits, and
    `document_deadline` for documents. Within it a retriable failure is tried again, `attempts` times in all, after a
    growing, jittered wait or after what the provider asked for (Retry-After); where that lies beyond the deadline the
    call fails at once. A call that fails for good opens the breaker, and calls then raise ProviderUnavailable within
    microseconds, until a probe is answered.

    A call that outlives its deadline is abandoned to a thread of its own and its answer dropped; with `max_abandoned`
    such threads alive no further call is tried.
    """

    def __init__(
        self,
        provider: EmbeddingProvider,
        *,
        deadline: float = QUERY_DEADLINE,
        document_deadline: float = 60.0,
        attempts: int = 3,
        breaker: Breaker | None = None,
        max_abandoned: int = 16,
    ) -> None:
        if min(deadline, document_deadline) <= 0 or attempts < 1 or max_abandoned < 1:
            raise InvalidArgument("deadlines are positive seconds; attempts and max_abandoned are at least 1")
        super().__init__(provider)
        self._deadlines: dict[Kind, float] = {"query": deadline, "document": document_deadline}
        self._attempts = attempts
        self._breaker = breaker or Breaker()
        self._max_abandoned = max_abandoned
        self._abandoned = 0
        self._counting = threading.Lock()

    @property
    def circuit(self) -> Circuit:
        """`open` while calls fail at once, `half-open` while one is due as a probe, else `closed`."""
        wait = self._breaker.retry_after
        return "closed" if wait is None else "open" if wait else "half-open"

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        """One row per text, or an error, before the deadline of this kind."""
        texts = checked_texts(texts)
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        if not self._breaker.permit():
            wait = self._breaker.retry_after or 0.0
            raise ProviderUnavailable(
                f"{self.id}: failed a moment ago and is left alone; it is tried again in {wait:.1f} s",
                retry_after=wait,
            )
        try:
            rows = self._embed_with_retries(texts, kind)
        except RETRIABLE as error:
            self._breaker.failed(retry_after=getattr(error, "retry_after", None))
            raise
        except BaseException:
            # It answered, if only to refuse this call: it is alive.
            self._breaker.succeeded()
            raise
        self._breaker.succeeded()
        return rows

    def _embed_with_retries(self, texts: Sequence[str], kind: Kind) -> Matrix:
        end = time.monotonic() + self._deadlines[kind]
        attempt = 1
        while True:
            try:
                return self._embed_before(end, texts, kind)
            except RETRIABLE as error:
                wait = _wait(error, attempt)
                if attempt == self._attempts or time.monotonic() + wait >= end:
                    raise
                logger.info("%s: attempt %d failed (%s); trying again in %.2f s", self.id, attempt, error.code, wait)
                time.sleep(wait)
                attempt += 1

    def _embed_before(self, end: float, texts: Sequence[str], kind: Kind) -> Matrix:
        if self._abandoned >= self._max_abandoned:
            raise ProviderUnavailable(f"{self.id}: {self._abandoned} earlier calls are still without an answer")
        answer: Future[Matrix] = Future()
        abandoned = threading.Event()

        def call() -> None:
            try:
                answer.set_result(self._provider.embed(texts, kind=kind))
            except BaseException as error:
                answer.set_exception(error)
            with self._counting:
                self._abandoned -= abandoned.is_set()

        # A thread, because nothing else can be left behind; a daemon, because the process must not wait for it.
        threading.Thread(target=call, name=f"embed {self.id}", daemon=True).start()
        try:
            return answer.result(timeout=max(0.0, end - time.monotonic()))
        except TimeoutError as late:
            with self._counting:
                if not answer.done():
                    abandoned.set()
                    self._abandoned += 1
            if answer.done():
                return answer.result()
            raise Timeout(
                f"{self.id}: no answer within {self._deadlines[kind]:g} s ({kind}); "
                "check the provider, or allow a longer deadline"
            ) from late


def _wait(error: EmbeddingError, attempt: int) -> float:
    asked: float | None = getattr(error, "retry_after", None)
    if asked is not None:
        return asked
    return random.uniform(0.5, 1.0) * min(MAX_WAIT, FIRST_WAIT * 2.0 ** (attempt - 1))
