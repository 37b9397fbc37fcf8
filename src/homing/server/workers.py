"""Several processes that serve one port and one data folder, and the one that looks after them."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from homing.errors import ConfigError, HomingError

log = logging.getLogger(__name__)

STEADY = 10.0
"""Seconds after which a worker that ends is started again at once; one that ends sooner waits longer each time."""
MAX_WAIT = 30.0
TOLD = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGCHLD})

Work = Callable[[int, Callable[[], None]], None]
"""Serves, as the worker of a number, until SIGTERM; calls what it is given once requests are answered."""


@dataclass(slots=True)
class _Worker:
    number: int
    started: float = field(default_factory=time.monotonic)
    wait: float = 0.0


class Supervisor:
    """Keeps `count` workers, forked from this process, alive; they share what it has open, such as a listening socket.

    A worker that ends is started again. SIGTERM and SIGINT end all of them, each finishing what is under way; told a
    second time, they are killed. Where this process itself is killed, they end as if they had been told to.
    """

    def __init__(self, count: int, work: Work) -> None:
        if not hasattr(os, "fork"):
            raise ConfigError("several workers need a system that can fork; serve with --workers 1")
        self._count = count
        self._work = work
        self._workers: dict[int, _Worker] = {}
        self._alive, self._held = os.pipe()

    def run(self, on_start: Callable[[], None]) -> None:
        """Serve until told to stop; `on_start` is called once every worker answers. Raises ConfigError where one
        cannot start."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, TOLD)
        # Where nothing is to be done about a child that ends, some systems do not even tell.
        handler = signal.signal(signal.SIGCHLD, lambda *_: None)
        try:
            self._start_all()
            on_start()
            self._look_after()
        finally:
            self._end_all(signal.SIGKILL)
            os.close(self._held)
            os.close(self._alive)
            signal.signal(signal.SIGCHLD, handler)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _start_all(self) -> None:
        heard = [self._start(_Worker(number)) for number in range(self._count)]
        problems = []
        for one in heard:
            with open(one, encoding="utf-8") as told:
                said = json.loads(told.read() or '"a worker ended before it could serve; the log says more"')
            if said:
                problems.append(said)
        if problems:
            raise ConfigError(problems[0])

    def _look_after(self) -> None:
        told = 0
        while self._workers:
            number = signal.sigwait(TOLD)
            if number != signal.SIGCHLD:
                told += 1
                self._end_all(signal.SIGTERM if told == 1 else signal.SIGKILL)
                continue
            for ended in self._reaped():
                if not told:
                    self._start_again(ended)

    def _start_again(self, ended: _Worker) -> None:
        lasted = time.monotonic() - ended.started
        wait = 0.0 if lasted > STEADY + ended.wait else min(MAX_WAIT, 2 * ended.wait + 0.1)
        log.warning("worker %d ended after %.0f s and is started again", ended.number, lasted)
        os.close(self._start(_Worker(ended.number, wait=wait)))

    def _reaped(self) -> list[_Worker]:
        ended = []
        while self._workers:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            if (worker := self._workers.pop(pid, None)) is not None:
                ended.append(worker)
        return ended

    def _end_all(self, number: signal.Signals) -> None:
        for pid in self._workers:
            os.kill(pid, number)
        if number == signal.SIGKILL:
            for pid in self._workers:
                os.waitpid(pid, 0)
            self._workers.clear()

    def _start(self, worker: _Worker) -> int:
        """Fork a worker; returns where it says that it serves (an empty text), or why it cannot."""
        hear, tell = os.pipe()
        pid = os.fork()
        if pid:
            os.close(tell)
            self._workers[pid] = worker
            return hear
        status = 1
        try:
            os.close(hear)
            os.close(self._held)
            self._be(worker, tell)
            status = 0
        except BaseException:
            log.exception("worker %d failed", worker.number)
        finally:
            logging.shutdown()
            # Nothing of what the other process meant to do at its end is this one's to do.
            os._exit(status)

    def _be(self, worker: _Worker, tell: int) -> None:
        # Ctrl-C reaches everybody at a terminal; what it means is the other process' to say, so it stays blocked here.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGCHLD})
        threading.Thread(target=self._end_with_the_other, name="homing-supervised", daemon=True).start()
        time.sleep(worker.wait)
        # Told to stop from here on, it stops as soon as it serves: then somebody listens.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

        def say(problem: str) -> None:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            try:
                with open(tell, "w", encoding="utf-8") as told:
                    json.dump(problem, told)
            except OSError:
                # Nobody waits for one that was started again.
                pass

        try:
            self._work(worker.number, lambda: say(""))
        except HomingError as error:
            log.error("worker %d cannot serve: %s", worker.number, error.message)
            say(error.message)

    def _end_with_the_other(self) -> None:
        os.read(self._alive, 1)
        os.kill(os.getpid(), signal.SIGTERM)
