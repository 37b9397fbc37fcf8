"""Operations for a caller of the server, at once or by a job that another server can take up."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from homing.operations import OPERATIONS, Call, Operation
from homing.operations.knowledge import uploaded_out
from homing.server.access import Caller
from homing.server.job import Job, Report, Work
from homing.server.job_log import Order
from homing.server.users import Users

if TYPE_CHECKING:
    from homing.server.service import Service

UPLOAD = "upload"
"""The order of a file that was sent, which is no operation: its input is the name, its content the file."""


def ordered_work(service: Service, order: Order, user: str) -> Work:
    """What an order is about. One that this server does not know fails when its turn comes."""

    def upload(report: Report) -> dict[str, Any]:
        with service.users.lease(user) as app:
            done = app.knowledge(user).upload(order.content, order.input, progress=report, canceled=report.canceled)
            return uploaded_out(done).model_dump()

    def work(report: Report) -> dict[str, Any]:
        bound = OPERATIONS[order.operation]
        # The folder of the user stays open for as long as the job lasts.
        with service.users.lease(user) as app:
            switch = partial(switch_everybody, service.users)
            call = Call(app, service.app, user, order.scope, report, switch)
            return bound.run(call, bound.input.model_validate_json(order.input)).model_dump(mode="json")

    return upload if order.operation == UPLOAD else work


def switch_everybody(users: Users, report: Report) -> int:
    """Bring every user's collections to the default model; returns how many changed over.

    Searches go on meanwhile, each with the model that made the vectors it compares with. Stopped half-way, it goes on
    where it stopped when it is run again.
    """
    changed = 0
    for user in users.known():
        with users.lease(user) as app:
            changed += app.switch.run(report)
    return changed


def call_of(caller: Caller) -> Call:
    """A caller of the server as operations know one."""
    return Call(caller.app, caller.service.app, caller.user, caller.scope)


def begin_job(bound: Operation, caller: Caller, asked: Any) -> Job:
    """The job of an operation, under way; the next server takes it up where this one ends before it is done."""
    how, service = bound.job, caller.service
    assert how is not None
    how.check(call_of(caller), asked)
    order = Order(bound.name, asked.model_dump_json(), caller.scope)
    work = ordered_work(service, order, caller.user)
    return service.jobs.submit(how.kind, how.subject(asked), work, user=caller.user, shared=how.shared, order=order)
