"""Chunks for a prompt: the best ones that fit into a budget of tokens, and the defaults of that, kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from homing.database import Database, Transaction
from homing.errors import InvalidArgument
from homing.records import Hit, Notice, Retrieved
from homing.text.budget import estimate_tokens, fit

NAME = "rag"


@dataclass(frozen=True, slots=True)
class RagConfig:
    """Defaults of `retrieve`."""

    top_k: int = 5
    min_score: float = 0.7
    max_tokens: int = 1500

    def __post_init__(self) -> None:
        for name, most in (("top_k", 1000), ("max_tokens", 1_000_000)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
                raise InvalidArgument(f"{name} is a whole number between 0 and {most}; got {value!r}")
        if isinstance(self.min_score, bool) or not isinstance(self.min_score, int | float):
            raise InvalidArgument(f"min_score is a number; got {self.min_score!r}")
        if not 0 <= self.min_score <= 1:
            raise InvalidArgument(f"min_score is between 0 and 1; got {self.min_score!r}")

    def changed(self, changes: Mapping[str, Any]) -> RagConfig:
        """With some of the values replaced. Raises InvalidArgument for a name or value that does not exist."""
        known = [field.name for field in fields(self)]
        if wrong := sorted(changes.keys() - set(known)):
            raise InvalidArgument(f"there is no setting {', '.join(wrong)}; known: {', '.join(known)}")
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class PackedChunk:
    """A chunk for a prompt. `score` is None where only keywords found it."""

    chunk_id: str
    document_id: str
    text: str
    score: float | None
    token_estimate: int


@dataclass(frozen=True, slots=True)
class Packed:
    """Chunks, the best first, that take `used_tokens` together.

    `truncated` is whether the budget left something out; `degraded`, `reason` and `notice` are those of the search.
    """

    chunks: tuple[PackedChunk, ...]
    used_tokens: int
    truncated: bool
    degraded: bool = False
    reason: str | None = None
    notice: Notice | None = None
    timings: Mapping[str, float] | None = None


def pack(found: Retrieved, max_tokens: int) -> Packed:
    """Keep the best hits while they fit; after one that is too large a smaller one may still fit."""
    costs = [estimate_tokens(hit.text) for hit in found]
    kept = fit(costs, max_tokens)
    chunks = tuple(_chunk(found[at], costs[at]) for at in kept.kept)
    return Packed(chunks, kept.tokens, kept.truncated, found.degraded, found.reason, found.notice, found.timings)


def _chunk(hit: Hit, cost: int) -> PackedChunk:
    return PackedChunk(hit.id, hit.metadata["document_id"], hit.text, hit.score, cost)


def read_config(database: Database, owner: str) -> RagConfig:
    """The defaults as an owner last set them."""
    return database.read(lambda transaction: _read(transaction, owner))


def update_config(database: Database, owner: str, changes: Mapping[str, Any]) -> RagConfig:
    """Change some of the defaults and keep them; nothing changes where one of them is wrong."""

    def work(transaction: Transaction) -> RagConfig:
        config = _read(transaction, owner).changed(changes)
        transaction.rows(
            "INSERT INTO document_settings(user_id, name, value) VALUES ($1, $2, $3) "
            "ON CONFLICT(user_id, name) DO UPDATE SET value = excluded.value",
            *(owner, NAME, json.dumps(asdict(config))),
        )
        return config

    return database.write(work, "document_settings")


def _read(transaction: Transaction, owner: str) -> RagConfig:
    found = transaction.rows("SELECT value FROM document_settings WHERE user_id = $1 AND name = $2", owner, NAME)
    return RagConfig().changed(json.loads(found[0][0])) if found else RagConfig()
