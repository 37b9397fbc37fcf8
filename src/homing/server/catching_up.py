"""Files that were uploaded while the model was down get their vectors when it is back, without another upload."""

from __future__ import annotations

import threading
from typing import Any

from homing.errors import Conflict, Overloaded
from homing.knowledge import KnowledgeBase
from homing.server.jobs import Jobs, Report
from homing.server.tenants import Tenants


class CatchingUp:
    """Looks after the knowledge bases of all users. Safe from several threads."""

    def __init__(self, jobs: Jobs, tenants: Tenants) -> None:
        self._jobs = jobs
        self._tenants = tenants
        self._lock = threading.Lock()
        self._complete: set[str] = set()

    def missed(self, user: str) -> None:
        """A file of that user was kept without vectors."""
        with self._lock:
            self._complete.discard(user)

    def look(self, user: str, base: KnowledgeBase) -> None:
        """The model has just answered that user: where files wait for it, begin a job that embeds them."""
        with self._lock:
            if user in self._complete:
                return
        if all(file.embedded for file in base.list()):
            with self._lock:
                self._complete.add(user)
            return

        def work(report: Report) -> dict[str, Any]:
            with self._tenants.lease(user) as app:
                return {"files": app.knowledge(user).embed_waiting(progress=report)}

        try:
            self._jobs.submit("embed", "knowledge", work, user=user, shared=False)
        except (Conflict, Overloaded):
            # It is being done, or there is too much to do: a search that comes later looks again.
            return
