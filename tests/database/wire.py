"""A line between a client and its server that can be cut in the middle of a commit."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable
from urllib.parse import urlsplit

Cut = Callable[[socket.socket, bytes], None]


class Wire:
    """Passes bytes on between a client and its server, and cuts the line when the client commits."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.port = parts.port or 5432
        self.cut: Cut | None = None
        self.listener = socket.create_server(("127.0.0.1", 0))
        port = self.listener.getsockname()[1]
        self.url = f"postgresql://{parts.username}:{parts.password}@127.0.0.1:{port}{parts.path}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self.port)) as server:
            while True:
                for ready in select.select([client, server], [], [])[0]:
                    data = ready.recv(1 << 16)
                    if not data:
                        return
                    if ready is client and b"COMMIT" in data and self.cut is not None:
                        cut, self.cut = self.cut, None
                        cut(server, data)
                        return
                    (server if ready is client else client).sendall(data)

    def close(self) -> None:
        """Take no more connections."""
        self.listener.close()


def committed(server: socket.socket, data: bytes) -> None:
    """The server gets to commit; its answer is lost."""
    server.sendall(data)
    server.recv(1 << 16)


def not_committed(server: socket.socket, data: bytes) -> None:
    """The server never hears of it."""
