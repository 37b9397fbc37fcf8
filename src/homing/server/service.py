"""What all requests share: the app, the users and their tokens, the jobs, the counters."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory

from homing.app import Homing
from homing.config import ServerSettings
from homing.database.sqlite import SqliteDatabase
from homing.engine.presence import Presence
from homing.resolve import unset_keys
from homing.server.job_log import JobLog
from homing.server.jobs import Jobs
from homing.server.limits import FileTurns
from homing.server.metrics import Metrics
from homing.server.ordering import ordered_work
from homing.server.rate_limit import RateLimit
from homing.server.shared import Share
from homing.server.tokens import Tokens
from homing.server.users import Users

UPLOADS = 8
"""How many files of one user may wait for their turn; each is in memory until then."""
FOR_HEALTH = 2
QUERIES = logging.getLogger("homing.server.queries")


class Service:
    """One running server over one `Homing`, which stays the caller's to close."""

    def __init__(self, app: Homing, *, exposed: bool, share: Share | None = None) -> None:
        self.share = share or Share()
        self.app = app
        self.exposed = exposed
        self.tokens = Tokens(app.database)
        self.users = Users(app, most=self.settings.users)
        self.metrics = Metrics(self.users, self.share.number if self.share.count > 1 else None)
        self.file_turns = FileTurns(
            app.settings.files, waiting=UPLOADS, patience=self.settings.patience, share=self.share
        )
        self.jobs = Jobs(JobLog(app.database))
        self.presence = (
            Presence(app.database, "server", lambda: unset_keys(app.settings, app.models))
            if app.keeps_users_apart
            else None
        )
        # However many are worked on, there is a thread for who asks how the server does.
        self.threads = ThreadPoolExecutor(self.settings.concurrent + FOR_HEALTH, thread_name_prefix="homing-request")
        """Where requests are worked on."""
        self.stopping = threading.Event()
        """Set when the server is about to end: streams that would go on for ever end too."""
        self._at_end = ExitStack()

    @property
    def settings(self) -> ServerSettings:
        """How to listen, and what to take from one caller."""
        return self.app.settings.server

    @cached_property
    def unusual_folder(self) -> str | None:
        """The data folder, where a command without `--data` would use another one."""
        folder = self.app.settings.data.absolute()
        return None if folder == type(self.app.settings)().data.absolute() else str(folder)

    @property
    def needs_token(self) -> bool:
        """Whether callers must say who they are: always where others can reach the server, else if it has tokens."""
        return self.exposed or bool(self.tokens)

    def count(self, caller: str) -> None:
        """Counts a request of a caller. Raises TooManyRequests where `server.rate` allows no more."""
        if self.settings.rate:
            self._rate_limit.take(caller)

    @cached_property
    def _rate_limit(self) -> RateLimit:
        rate, burst = self.settings.rate, self.settings.burst
        if self.app.keeps_users_apart:
            return RateLimit(self.app.database, rate, burst)
        # In a file of its own: who asks does not wait for who writes, and a home that nobody may write to is served.
        folder = self.share.folder or Path(self._at_end.enter_context(TemporaryDirectory(prefix="homing-rates-")))
        database = SqliteDatabase(folder / "rates.db", durable=False)
        self._at_end.callback(database.close)
        return RateLimit(database, rate, burst, clock=time.monotonic)

    def start(self) -> None:
        """Open what requests use; texts and jobs that an earlier server left are taken up."""
        self.users.prepare(self.app)
        if self.presence is not None:
            self.presence.start()
        self.jobs.resume(partial(ordered_work, self))

    def close(self) -> None:
        """Let go of the users' folders. What waits to be embedded is embedded first."""
        self.stopping.set()
        self.threads.shutdown()
        self.jobs.close()
        if self.presence is not None:
            self.presence.close()
        self.users.close()
        self._at_end.close()

    def log_query(self, query: str) -> None:
        """Writes what was searched for to the log, where that was asked for."""
        if self.settings.log_queries:
            QUERIES.info("searched", extra={"query": query})
