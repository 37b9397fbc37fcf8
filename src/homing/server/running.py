"""Listens, serves until it is told to stop, and stops without losing anything."""

from __future__ import annotations

import ctypes
import gc
import logging
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import uvicorn
from fastapi import FastAPI
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from homing.app import Homing, open_app
from homing.config import ServerSettings, Settings
from homing.engine.worker import WorkerOptions
from homing.errors import ConfigError, HomingError
from homing.server.application import create_app
from homing.server.front_door import front_door
from homing.server.service import Service
from homing.server.shared import Share
from homing.server.workers import Supervisor

log = logging.getLogger(__name__)

LAST_ANSWERS = 10
"""Seconds that requests under way have to end when the server stops."""
IDLE_CONNECTION = 30
M_ARENA_MAX, ARENAS = -8, 2
ALLOCATIONS = 10_000
"""New objects after which Python looks for cycles that nobody can reach. A single answer makes more than the usual 700;
looking less often, the server answers a fifth to a third more requests."""


def open_served(settings: Settings) -> Homing:
    """The folder or the database of a server, which embeds unless others do (`server.embed`)."""
    return open_app(settings=settings, worker=WorkerOptions(embeds=settings.server.embed))


def serve(app: Homing, *, on_start: Callable[[str], None]) -> None:
    """Serve at `server.host` and `server.port` of the settings until SIGTERM or SIGINT; then finish what is under way.

    `on_start` is called with the address once requests are answered. Closing `app`, which embeds what still waits, is
    the caller's: a signal that comes again meanwhile ends the process, and what waited is on disk. Raises ConfigError.
    """
    settings = app.settings.server
    with _listen(settings.host, settings.port) as listener:
        _serve(app, listener, lambda: on_start(_address(settings, listener)), Share())


def serve_by_workers(settings: Settings, *, on_start: Callable[[str], None]) -> None:
    """The same by `server.workers` processes, which share the port, the data folder and the limits.

    Each opens the folder for itself, so it must not be open here. They embed what waits before they end.
    """
    server = settings.server
    if server.workers > server.concurrent:
        raise ConfigError(
            f"{server.workers} workers cannot share {server.concurrent} requests at the same time; "
            "raise server.concurrent, or use fewer workers"
        )
    with TemporaryDirectory(prefix="homing-workers-") as folder, _listen(server.host, server.port) as listener:

        def work(number: int, tell_started: Callable[[], None]) -> None:
            share = Share(number, server.workers, Path(folder))
            with open_served(_shared(settings, share)) as app:
                _serve(app, listener, tell_started, share)

        Supervisor(server.workers, work).run(lambda: on_start(_address(server, listener)))


def _shared(settings: Settings, share: Share) -> Settings:
    """The settings of one worker: its part of what all of them may take."""
    divided = ("concurrent", "waiting", "connections", "connections_per_address", "users")
    parts = {name: share.of(getattr(settings.server, name)) for name in divided}
    return settings.model_copy(update={"server": settings.server.model_copy(update=parts)})


def _serve(app: Homing, listener: socket.socket, tell_started: Callable[[], None], share: Share) -> None:
    # Requests share the cores among them. Where each product of matrices took all of them as well, threads would spend
    # more time waiting for each other than computing: finding a skill then costs twice as much.
    threadpool_limits(1, user_api="blas")
    gc.set_threshold(ALLOCATIONS)
    share_arenas()
    served = create_app(app, share=share)
    served.state.service.users.prepare(app)
    server = _Server(configured(served, app.settings.server), served.state.service, tell_started)
    # The first to ask should not wait for a model and a library to load.
    threading.Thread(target=_warm_up, args=(app,), name="homing-warm-up", daemon=True).start()
    with _signals_only_stop_the_server():
        server.run([listener])


def share_arenas() -> None:
    """Let all threads allocate from few places, where the C library can be told: what one frees, another may use."""
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(M_ARENA_MAX, ARENAS)


def configured(served: FastAPI, settings: ServerSettings) -> uvicorn.Config:
    """How the web server runs the application. Raises ConfigError, also for a certificate that is none."""
    config = uvicorn.Config(
        served,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=LAST_ANSWERS,
        timeout_keep_alive=IDLE_CONNECTION,
        http=front_door(settings),
        ws="none",
        # What a caller says about the address it comes from is believed of these proxies only.
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        ssl_certfile=settings.cert or None,
        ssl_keyfile=settings.key or None,
    )
    if bool(settings.cert) != bool(settings.key):
        raise ConfigError("a certificate needs its key, and a key its certificate; name both with --cert and --key")
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        files = f"{settings.cert} and {settings.key}"
        raise ConfigError(f"{files} are no certificate and its key in PEM: {error}") from error
    return config


def _warm_up(app: Homing) -> None:
    try:
        app.skills.initialize()
        app.devices.prepare()
    except HomingError as error:
        log.warning("not ready yet: %s", error)


class _Server(uvicorn.Server):
    """Tells when it has started, and ends streams that would otherwise go on for ever."""

    def __init__(self, config: uvicorn.Config, service: Service, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._service = service
        self._tell_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:
            self._tell_started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._service.stopping.set()
        super().handle_exit(sig, frame)


@contextmanager
def _signals_only_stop_the_server() -> Iterator[None]:
    """The web server raises the signal that stopped it again when it has stopped; what is left to do comes after."""
    # Not SIG_IGN, which would also discard one that came before anybody listened.
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {host}, port {port}: {error.strerror}; choose another with --host and --port "
            "(--port 0 takes a free one)"
        ) from error


def _address(settings: ServerSettings, listener: socket.socket) -> str:
    everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}
    name, port = everywhere.get(settings.host, settings.host), listener.getsockname()[1]
    return f"http{'s' * bool(settings.cert)}://{f'[{name}]' if ':' in name else name}:{port}/"
