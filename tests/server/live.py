"""A real server on a real socket, in a thread of the test process."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI


@contextmanager
def live(served: FastAPI, config: uvicorn.Config | None = None) -> Iterator[str]:
    """The address of an app that is being served; its lifespan runs."""
    config = config or uvicorn.Config(served, log_config=None, lifespan="on")
    config.timeout_graceful_shutdown = 2
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
