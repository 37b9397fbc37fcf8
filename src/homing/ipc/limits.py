"""How much a client may have under way at once."""

from __future__ import annotations

from dataclasses import dataclass

from homing.errors import InvalidArgument

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """A message may have `message_bytes`; at most `pending` requests of `pending_bytes` together are under way.

    `workers` requests are worked on at the same time. At the end, those under way have `grace` seconds to finish.
    """

    message_bytes: int = 64 * MEBIBYTE
    pending: int = 256
    pending_bytes: int = 256 * MEBIBYTE
    workers: int = 8
    grace: float = 10.0

    def __post_init__(self) -> None:
        if min(self.message_bytes, self.pending, self.pending_bytes, self.workers) < 1 or self.grace < 0:
            raise InvalidArgument("every limit is at least 1, and grace is not negative")
