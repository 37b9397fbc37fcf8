"""The work of a job: an operation, done for a user while their folder is open."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from homing.operations import OPERATIONS, Call
from homing.server.job_log import Order
from homing.server.jobs import Report, Work

if TYPE_CHECKING:
    from homing.server.service import Service
from homing.server.users import Users


def ordered_work(service: Service, order: Order, user: str) -> Work:
    """What an order is about. One that this server does not know fails when its turn comes."""

    def work(report: Report) -> dict[str, Any]:
        bound = OPERATIONS[order.operation]
        # The folder of the user stays open for as long as the job lasts.
        with service.users.lease(user) as app:
            switch = partial(switch_everybody, service.users)
            call = Call(app, service.app, user, order.scope, report, switch)
            return bound.run(call, bound.input.model_validate_json(order.input)).model_dump(mode="json")

    return work


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
