"""What every search of the shell has in common: its modes, and how an answer reads as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from homing.errors import InvalidArgument

if TYPE_CHECKING:
    from homing.records import Hit, Mode, Retrieved


def mode_of(name: str) -> Mode:
    """The mode of that name. Raises InvalidArgument with the ones that exist."""
    match name:
        case "hybrid" | "semantic" | "keyword":
            return name
    raise InvalidArgument(f"no mode named {name!r}; known: hybrid, semantic, keyword")


def as_json(query: str, found: Retrieved) -> dict[str, Any]:
    """An answer as plain data: the same shape whatever was searched."""
    return {
        "query": query,
        "mode": found.mode,
        "degraded": found.degraded,
        "reason": found.reason,
        "notice": found.notice,
        "hits": [_hit(hit) for hit in found],
        "timings": found.timings,
    }


def _hit(hit: Hit) -> dict[str, Any]:
    names = (
        "id",
        "collection",
        "text",
        "metadata",
        "score",
        "cosine",
        "distance",
        "fused",
        "legs",
        "keywords",
        "reasons",
    )
    return {name: getattr(hit, name) for name in names}
