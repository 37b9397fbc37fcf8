"""The one door that every transport goes through."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from pydantic import ValidationError

from homing.app import Homing
from homing.channels.catalog import CHANNELS
from homing.channels.channel import Channel, Later
from homing.channels.envelope import Envelope, broken, failed, refusal, succeeded
from homing.channels.message import Request, Response
from homing.channels.work import Work
from homing.errors import HomingError, NotFound

log = logging.getLogger(__name__)


class Channels:
    """The channels of an open data folder. Safe to call from several threads."""

    def __init__(self, app: Homing) -> None:
        self._app = app
        self._opening = threading.Lock()
        self._opened = False

    @property
    def names(self) -> list[str]:
        """Every channel."""
        return list(CHANNELS)

    def find(self, channel: str) -> Channel | None:
        """The channel of that name."""
        return CHANNELS.get(channel)

    def open(self) -> None:
        """Open the documents and go on with what an earlier process left to embed. Opening twice is fine."""
        # The parts of an app are made when they are first asked for, which several threads may do at once.
        with self._opening:
            self._app.documents.start()
            self._opened = True

    def close(self, timeout: float = 1.0) -> None:
        """Embed what was saved here for that many seconds at most; who opens the folder next embeds the rest."""
        if self._opened:
            self._app.documents.close()
            self._app.engine.close(timeout)

    def invoke(self, channel: str, payload: Any = None, *, work: Work | None = None) -> Envelope:
        """Answer a request: `{ok: true, data}` or `{ok: false, error: {code, message, details}}`. Raises nothing.

        `payload` is what JSON carries, with the names of the schemas; None is the same as nothing in it. A channel
        that takes long reports to `work` and stops when `work` is canceled.
        """
        return self.begin(channel, payload, work=work)()

    def begin(self, channel: str, payload: Any = None, *, work: Work | None = None) -> Callable[[], Envelope]:
        """Do what must be done in turn with others of its lane; what this returns does the rest. Neither raises."""
        begun: Response | Later | Exception
        try:
            begun = self._begun(channel, payload, work or Work())
        except Exception as error:
            begun = error
        return partial(_enveloped, channel, begun)

    def _begun(self, channel: str, payload: Any, work: Work) -> Response | Later:
        found = self.find(channel)
        if found is None:
            raise NotFound(f"there is no channel of that name; there are: {', '.join(CHANNELS)}")
        request = _checked(found, payload)
        work.go_on()
        self.open()
        return found.answer(self._app, request, work)

    def lane(self, channel: str, payload: Any) -> str | None:
        """Requests with the same lane must be begun in the order they came; None for those that need not."""
        found = self.find(channel)
        if found is None or found.lane is None:
            return None
        try:
            return found.lane(_checked(found, payload))
        except HomingError:
            return None


def _checked(channel: Channel, payload: Any) -> Request:
    try:
        return channel.request.model_validate({} if payload is None else payload)
    except ValidationError as error:
        raise refusal(channel.name, channel.request, error) from None


def _enveloped(channel: str, begun: Response | Later | Exception) -> Envelope:
    try:
        if isinstance(begun, Exception):
            raise begun
        response = begun if isinstance(begun, Response) else begun()
        return succeeded(response.model_dump(by_alias=True))
    except HomingError as error:
        return failed(error)
    except Exception:
        log.exception("%s failed", channel)
        return broken(channel)
