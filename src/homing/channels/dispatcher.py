"""The one door that every transport goes through."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import BaseModel, ValidationError

from homing.app import Homing
from homing.channels.envelope import Envelope, broken, failed, succeeded
from homing.channels.messages import CHANNELS, BoundChannel, as_message
from homing.errors import HomingError, NotFound
from homing.on_search import OnSearch, ignore_search
from homing.operations import Call
from homing.operations.operation import Report, unreported
from homing.operations.problems import refusal
from homing.progress import never

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Work:
    """The wires to the caller: `progress(done, total)` and `on_search` out, `cancelled()` in, all from any thread.

    `on_search` is told of every search that was answered.
    """

    progress: Report = unreported
    cancelled: Callable[[], bool] = never
    on_search: OnSearch = ignore_search


class Channels:
    """The channels of an open data folder. Safe to call from several threads."""

    def __init__(self, app: Homing) -> None:
        self._app = app
        self._opening = threading.Lock()
        self._opened = False

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
        try:
            answer = self._begun(channel, payload, work or Work())
        except Exception as error:
            return partial(_failure, channel, error)
        return partial(_envelope, channel, answer)

    def _begun(self, channel: str, payload: Any, work: Work) -> Callable[[], BaseModel]:
        found = CHANNELS.get(channel)
        if found is None:
            raise NotFound(f"there is no channel of that name; there are: {', '.join(CHANNELS)}")
        asked = checked(found, payload)
        call = Call(self._app, self._app, report=work.progress, canceled=work.cancelled)
        call.go_on()
        self.open()
        answer = partial(found.operation.answer, call, asked, work.on_search)
        if found.lane is not None and not found.writes:
            # It only has to come after what was sent before it, and keeps nobody behind it waiting.
            return answer
        done = answer()
        return lambda: done

    def lane(self, channel: str, payload: Any) -> str | None:
        """Requests with the same lane must be begun in the order they came; None for those that need not."""
        found = CHANNELS.get(channel)
        if found is None or found.lane is None:
            return None
        try:
            return found.lane(checked(found, payload))
        except HomingError:
            return None


def checked(channel: BoundChannel, payload: Any) -> BaseModel:
    """A request as the operation takes it. Raises InvalidArgument with what to send instead."""
    try:
        return channel.request.model_validate({} if payload is None else payload)
    except ValidationError as error:
        raise refusal(channel.name, channel.request, error) from None


def _envelope(channel: str, answer: Callable[[], BaseModel]) -> Envelope:
    try:
        return succeeded(as_message(answer()))
    except Exception as error:
        return _failure(channel, error)


def _failure(channel: str, error: Exception) -> Envelope:
    if isinstance(error, HomingError):
        return failed(error)
    log.error("%s failed", channel, exc_info=error)
    return broken(channel)
