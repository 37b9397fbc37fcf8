"""A change of the model for everybody: what each user has is embedded again, one folder after the other."""

from __future__ import annotations

from homing.server.jobs import Report
from homing.server.users import Users


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
