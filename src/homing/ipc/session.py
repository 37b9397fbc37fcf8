"""One client from its first message to its last: who may call what, and who gets which answer."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from homing import __version__
from homing.channels import CHANNELS, PROTOCOL_VERSION, Channels, Envelope
from homing.channels.envelope import failed
from homing.errors import Backpressure, Canceled, HomingError
from homing.ipc.framing import Received, Rejected
from homing.ipc.rpc import (
    INVALID_PARAMS,
    NOT_INITIALIZED,
    PARSE_ERROR,
    PROTOCOL_MISMATCH,
    Call,
    Id,
    ProtocolFault,
    id_at_head,
    read_call,
    result,
)
from homing.ipc.tasks import Lanes, Limits, Send, Task
from homing.operations.operation import Pace

log = logging.getLogger(__name__)

CANCEL = "$/cancelRequest"


class Session:
    """Takes messages one by one, from one thread, and returns at once; answers go out from other threads.

    Every request gets exactly one answer: a result with the envelope of the channel, or a JSON-RPC error where the
    message itself was wrong. Nothing that a client sends raises.
    """

    def __init__(self, channels: Channels, send: Send, limits: Limits, *, leave: Callable[[], None]) -> None:
        self._channels = channels
        self._send = send
        self._limits = limits
        self._leave = leave
        self._lanes = Lanes(limits.workers, waiting=limits.pending)
        self._initialized = False
        self._closing = False
        self._tasks: dict[Id, Task] = {}
        self._pending: set[Task] = set()
        self._idle = threading.Condition()

    def receive(self, message: Received | Rejected) -> None:
        """Take a message."""
        call: Call | None = None
        try:
            if isinstance(message, Rejected):
                raise ProtocolFault(f"refused: {message.reason}", PARSE_ERROR).to(id_at_head(message.head))
            call = read_call(message.body)
            if call is not None and call.id is None:
                self._notified(call)
            elif call is not None:
                self._called(call, call.id, len(message.body))
        except ProtocolFault as fault:
            log.warning("%s", fault)
            self._send((fault if call is None else fault.to(call.id)).answer())

    def cancel_all(self, *, slow_only: bool = False) -> None:
        """Answer what is under way with CANCELED, or only what is not quick."""
        with self._idle:
            tasks = [task for task in self._pending if task.pace != "quick" or not slow_only]
        for task in tasks:
            task.cancel(_CANCELED)

    def close(self) -> None:
        """Take no more requests; those under way go on."""
        with self._idle:
            self._closing = True

    def end(self) -> None:
        """Let the threads go, once nothing is under way."""
        self._lanes.close()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing is under way; whether that is so."""
        with self._idle:
            return self._idle.wait_for(lambda: not self._pending, timeout)

    def _notified(self, call: Call) -> None:
        if call.method == CANCEL:
            asked = call.params.get("id") if isinstance(call.params, dict) else None
            with self._idle:
                task = self._tasks.pop(asked, None) if isinstance(asked, int | str) else None
            if task is not None:
                task.cancel(_CANCELED)
        elif call.method == "exit":
            self._leave()
        elif call.method in CHANNELS:
            log.warning("%s came without an id and was not done: send it as a request", call.method)
        else:
            log.debug("left alone: notification %r", call.method)

    def _called(self, call: Call, request_id: Id | None, size: int) -> None:
        assert request_id is not None
        if call.method == "initialize":
            self._initialize(request_id, call.params)
        elif not self._initialized:
            raise ProtocolFault('send "initialize" first and wait for its answer', NOT_INITIALIZED, "NOT_INITIALIZED")
        elif call.method == "shutdown":
            self._shut_down(request_id)
        else:
            self._start(call, request_id, size)

    def _initialize(self, request_id: Id, params: Any) -> None:
        if self._initialized:
            raise ProtocolFault("the session is initialized already")
        greeting = greet(params, self._limits)
        self._initialized = True
        self._send(result(request_id, greeting))
        self._lanes.submit(self._open)

    def _open(self) -> None:
        """Get ready while the client draws its windows; what goes wrong is told when something is asked for."""
        try:
            self._channels.open()
        except HomingError as error:
            log.warning("the documents cannot be opened: %s", error)
        except Exception:
            log.exception("the documents cannot be opened")

    def _shut_down(self, request_id: Id) -> None:
        """Let the quick requests finish, take the others back, and only then say that it is done."""
        self.close()
        self.cancel_all(slow_only=True)
        if not self.wait(self._limits.grace):
            log.warning("requests are still under way after %.0f s of grace", self._limits.grace)
        self._send(result(request_id, None))

    def _start(self, call: Call, request_id: Id, size: int) -> None:
        channel = CHANNELS.get(call.method)
        pace: Pace = "quick" if channel is None else channel.operation.pace
        task = Task(request_id, call.method, size, pace=pace, send=self._send)
        with self._idle:
            if self._closing:
                raise ProtocolFault("no more requests are taken: start a new session", code="SHUTTING_DOWN")
            if request_id in self._tasks:
                raise ProtocolFault("a request with this id is under way; ids are used once")
            refusal = self._too_much(size)
            if refusal is None:
                self._pending.add(task)
                self._tasks[request_id] = task
        if refusal is not None:
            task.settle(failed(refusal))
            return
        lane = self._channels.lane(call.method, call.params)
        if lane is None:
            self._lanes.submit(lambda: self._answer(task, self._begin(task, call.params)), task.pace)
        else:
            self._lanes.submit_in_turn(lambda: self._take_turn(task, call.params), lane)

    def _too_much(self, size: int) -> Backpressure | None:
        waiting, limits = sum(task.size for task in self._pending), self._limits
        if len(self._pending) < limits.pending and waiting + size <= max(limits.pending_bytes, size):
            return None
        return Backpressure(
            f"{len(self._pending)} requests of {waiting} bytes are under way; wait for answers and send it again",
            details={"pending": len(self._pending), "limit": limits.pending, "limitBytes": limits.pending_bytes},
        )

    def _take_turn(self, task: Task, payload: Any) -> None:
        rest = self._begin(task, payload)
        self._lanes.submit(lambda: self._answer(task, rest), "waiting")

    def _begin(self, task: Task, payload: Any) -> Callable[[], Envelope]:
        return (lambda: _CANCELED) if task.cancelled else self._channels.begin(task.channel, payload, work=task.work)

    def _answer(self, task: Task, rest: Callable[[], Envelope]) -> None:
        try:
            answer = rest()
            # Once it is answered its id may be used again.
            with self._idle:
                if self._tasks.get(task.id) is task:
                    del self._tasks[task.id]
            task.settle(answer)
        finally:
            with self._idle:
                self._pending.discard(task)
                self._idle.notify_all()


_CANCELED = failed(Canceled("the request was canceled; what was done until then stays done"))


def greet(params: Any, limits: Limits) -> dict[str, Any]:
    """What `initialize` answers. Fields that are not known are left alone: a newer client may send them."""
    asked = params.get("protocolVersion") if isinstance(params, dict) else None
    if isinstance(asked, bool) or not isinstance(asked, int):
        takes = f'initialize takes {{"protocolVersion": {PROTOCOL_VERSION}}}, a whole number'
        raise ProtocolFault(takes, INVALID_PARAMS)
    if asked != PROTOCOL_VERSION:
        older = "the client" if asked < PROTOCOL_VERSION else "Homing"
        raise ProtocolFault(
            f"the client speaks version {asked} of the protocol, Homing {__version__} speaks {PROTOCOL_VERSION}; "
            f"update {older}",
            PROTOCOL_MISMATCH,
            "PROTOCOL_MISMATCH",
            asked=asked,
            supported=[PROTOCOL_VERSION],
        )
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "server": {"name": "homing", "version": __version__},
        "channels": list(CHANNELS),
        "limits": {
            "messageBytes": limits.message_bytes,
            "pending": limits.pending,
            "pendingBytes": limits.pending_bytes,
        },
    }
