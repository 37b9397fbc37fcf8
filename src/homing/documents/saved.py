"""What a save did to the chunks of a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload


class ChunkIds(Sequence[str]):
    """The ids of chunks of one document, made when somebody reads them: most callers never do."""

    __slots__ = ("_numbers", "_token")

    def __init__(self, token: str, numbers: Sequence[Sequence[int]]) -> None:
        self._token = token
        self._numbers = numbers

    def __len__(self) -> int:
        return sum(map(len, self._numbers))

    def __iter__(self) -> Iterator[str]:
        return (f"{self._token}.{number}" for numbers in self._numbers for number in numbers)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...

    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        return tuple(self)[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


@dataclass(frozen=True, slots=True)
class Saved:
    """What a save did, as ids of chunks.

    `changed` are new or say something else, and are embedded; `unchanged` say the same in the same order, wherever they
    stand now; `moved` say the same at another place; `removed` are gone.
    """

    changed: Sequence[str] = ()
    unchanged: Sequence[str] = ()
    moved: Sequence[str] = ()
    removed: Sequence[str] = ()
