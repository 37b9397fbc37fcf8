"""Who embeds: processes of this machine, or every core of a Ray cluster. Both run the same function.

What travels is how to make a provider, not a provider: those hold sessions and threads.
"""

from __future__ import annotations

import importlib
import itertools
import logging
import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from multiprocessing import get_context
from typing import Any, Protocol

from homing.embedders.provider import EmbeddingProvider
from homing.errors import EmbeddingError, MissingExtra, StoreUnavailable
from homing.vectors import Matrix

log = logging.getLogger(__name__)

MakeProvider = Callable[[], EmbeddingProvider]
"""Makes a provider in the process that calls it; travels by pickle."""
AHEAD = 2
"""Batches under way for each core, so that none waits for the one who hands them out."""
BREAKS = 3
"""How often in a row processes may die without one batch being done before that is given up."""

Answer = Matrix | str
"""The vectors of a batch, or why there are none."""


class Workers(Protocol):
    """Embed batches of texts somewhere else, any number at a time. Used by one thread.

    A worker that dies, with its machine or alone, costs the batches that it had: they are embedded again elsewhere.
    """

    @property
    def window(self) -> int:
        """How many batches should be under way."""

    def submit(self, texts: Sequence[str]) -> int:
        """Begin to embed a batch; returns its number."""

    def wait(self) -> dict[int, Answer]:
        """What was embedded since the last time, by number: at least one batch of those under way."""

    def close(self) -> None:
        """Let go of the workers. What is under way is dropped."""


@lru_cache(maxsize=1)
def _provider(made_by: bytes) -> EmbeddingProvider:
    found: EmbeddingProvider = pickle.loads(made_by)()
    return found


def embed(made_by: bytes, texts: Sequence[str]) -> Answer:
    """The vectors of texts, by the provider that a pickled function makes: once in each process."""
    try:
        return _provider(made_by).embed(list(texts))
    except EmbeddingError as error:
        return error.message


class ProcessWorkers:
    """Processes of this machine, each with a model of its own."""

    def __init__(self, make: MakeProvider, count: int) -> None:
        self._made_by = pickle.dumps(make)
        self._count = count
        self._numbers = itertools.count()
        self._under_way: dict[int, Sequence[str]] = {}
        self._futures: dict[Future[Answer], int] = {}
        self._broken = 0
        self._pool = self._new_pool()

    @property
    def window(self) -> int:
        return AHEAD * self._count

    @property
    def pids(self) -> list[int]:
        """The processes that there are now."""
        return [one.pid for one in (self._pool._processes or {}).values() if one.pid is not None]

    def submit(self, texts: Sequence[str]) -> int:
        number = next(self._numbers)
        self._under_way[number] = texts
        self._begin(number)
        return number

    def wait(self) -> dict[int, Answer]:
        while True:
            done, _ = wait(self._futures, return_when=FIRST_COMPLETED)
            try:
                answers = {self._futures[one]: one.result() for one in done if not _died(one)}
                died = len(answers) < len(done)
            finally:
                for one in done:
                    del self._futures[one]
            for number in answers:
                del self._under_way[number]
            if died:
                self._begin_again(progress=bool(answers))
            if answers:
                self._broken = 0
                return answers

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _new_pool(self) -> ProcessPoolExecutor:
        # Not forked: neither the threads of a model nor the locks of SQLite live on in a fork.
        return ProcessPoolExecutor(self._count, mp_context=get_context("spawn"))

    def _begin(self, number: int) -> None:
        try:
            future = self._pool.submit(embed, self._made_by, self._under_way[number])
        except BrokenProcessPool:
            self._begin_again(progress=False)
            return
        self._futures[future] = number

    def _begin_again(self, *, progress: bool) -> None:
        """A process that dies takes the pool with it: make another, and give it what is under way."""
        self._broken = 0 if progress else self._broken + 1
        if self._broken > BREAKS:
            raise StoreUnavailable(
                "the processes that embed are being killed before they finish anything; is there enough memory? "
                "Run it again with fewer of them (--workers)"
            )
        log.warning("a process that embeds was killed; its batches are embedded again")
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._pool = self._new_pool()
        self._futures = {}
        for number in list(self._under_way):
            self._begin(number)


class RayWorkers:
    """Every core of a Ray cluster, as many as it has at the moment. Each node needs Homing, and what its model needs.

    `address` is that of the cluster (`ray://host:10001`, `host:6379`, `auto`), `local` for one on this machine.
    """

    def __init__(self, make: MakeProvider, address: str) -> None:
        self._ray = _imported()
        self._made_by = pickle.dumps(make)
        self._own = not self._ray.is_initialized()
        if self._own:
            try:
                self._ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise StoreUnavailable(f"there is no Ray cluster at {address}: {error}") from error
        # A batch whose node is gone is begun again on another one, however often that happens.
        self._embed: Any = self._ray.remote(num_cpus=1, max_retries=-1)(embed)
        self._numbers = itertools.count()
        self._under_way: dict[Any, int] = {}

    @property
    def window(self) -> int:
        return AHEAD * max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def submit(self, texts: Sequence[str]) -> int:
        number = next(self._numbers)
        self._under_way[self._embed.remote(self._made_by, list(texts))] = number
        return number

    def wait(self) -> dict[int, Answer]:
        done, _ = self._ray.wait(list(self._under_way), num_returns=1, fetch_local=False)
        more, _ = self._ray.wait(list(self._under_way), num_returns=len(self._under_way), timeout=0, fetch_local=False)
        try:
            # What was made on a node that is gone meanwhile is made again for whoever asks for it.
            return {self._under_way.pop(one): self._ray.get(one) for one in {*done, *more}}
        except self._ray.exceptions.RayError as error:
            last = str(error).strip().splitlines()[-1]
            raise StoreUnavailable(
                f"a node of the cluster cannot embed ({last}); is Homing installed there?"
            ) from error

    def close(self) -> None:
        for one in self._under_way:
            self._ray.cancel(one, force=True)
        if self._own:
            self._ray.shutdown()


def _died(future: Future[Answer]) -> bool:
    return isinstance(future.exception(), BrokenProcessPool)


def _imported() -> Any:
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        raise MissingExtra(
            "Ray is not installed; install it with: pip install 'homing[ray]'", details={"extra": "ray"}
        ) from error
