"""Where a server is: an address that can be shown, because it never shows a password."""

from __future__ import annotations

from typing import Any

from homing.database.postgres.driver import psycopg
from homing.errors import InvalidArgument

SCHEMES = ("postgresql://", "postgres://")


class Address:
    """A `postgresql://` address. Its text is what may be shown; `dsn` is what the driver gets, `url` what we got."""

    def __init__(self, url: str) -> None:
        if not isinstance(url, str) or not url.startswith(SCHEMES):
            raise InvalidArgument("the address of a PostgreSQL store begins with postgresql://")
        try:
            self._parts: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.Error:
            # The driver quotes the address, password and all; nothing of what it says may be passed on.
            raise InvalidArgument(
                "the address of a PostgreSQL store is postgresql://user:password@host:port/database; "
                "this one cannot be read: write special characters of the password as %XX"
            ) from None
        self.url = url
        self.dsn = psycopg.conninfo.make_conninfo("", **self._parts)

    def __str__(self) -> str:
        parts = {key: str(self._parts.get(key) or "") for key in ("user", "host", "port", "dbname")}
        place = parts["host"] + (f":{parts['port']}" if parts["port"] else "")
        return f"postgresql://{parts['user'] + '@' if parts['user'] else ''}{place}/{parts['dbname']}"

    __repr__ = __str__

    def hide(self, message: str) -> str:
        """A message of the driver without the password, should it ever contain one."""
        password = str(self._parts.get("password") or "")
        return message.replace(password, "***") if password else message
