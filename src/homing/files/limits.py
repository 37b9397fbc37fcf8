"""How much of a file is read before it is refused: a stranger's upload must not cost the machine."""

from __future__ import annotations

from dataclasses import dataclass

from homing.errors import FileTooLarge

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """What a file may have at most.

    `bytes` as it is stored; `unpacked` bytes of everything in it where it is an archive, and `member` bytes of one
    member that is read as a whole; `members`, `pages` and `cells` by count; `characters` of text that come out.
    """

    bytes: int = 64 * MIB
    unpacked: int = 256 * MIB
    member: int = 64 * MIB
    members: int = 10_000
    pages: int = 5_000
    cells: int = 5_000_000
    characters: int = 20_000_000


class Counter:
    """Adds up what has been read of a file, and refuses the file when a limit is passed."""

    def __init__(self, filename: str, what: str, limit: int) -> None:
        self._filename, self._what, self._limit = filename, what, limit
        self._counted = 0

    def add(self, count: int) -> None:
        """Count some more. Raises FileTooLarge."""
        self._counted += count
        if self._counted > self._limit:
            raise FileTooLarge(
                f"{self._filename} has more than {self._limit:,} {self._what}; split it into smaller files",
                details={"limit": self._limit, "of": self._what},
            )
