"""Search in the documents of one project: by meaning, by keywords, or both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from homing.buffer.embedding_buffer import EmbeddingBuffer
from homing.documents.archive import Archive, Found, collection_of
from homing.documents.layout import wide_characters
from homing.documents.phrases import holds_all, phrases, places, says_enough
from homing.documents.snippets import snippet
from homing.embedders.provider import EmbeddingProvider
from homing.engine.search import HybridOptions, search
from homing.errors import InvalidArgument
from homing.records import Hit, Mode, Retrieved
from homing.stores.store import MAX_LIMIT, Store
from homing.text.highlight import Span

SPARE = 10
"""Hits asked for beyond those wanted: a chunk may have been removed a moment ago."""
MOST = MAX_LIMIT - SPARE
FURTHER = 10
"""How many times more matches are looked through, where too few of them are what was asked for."""

Offsets = Literal["characters", "utf-16"]


@dataclass(frozen=True, slots=True)
class Query:
    """A question to a project."""

    project: str
    text: str
    mode: Mode = "semantic"
    top_k: int = 20
    min_score: float | None = 0.55
    offset: int = 0
    document: str | None = None
    offsets: Offsets = "characters"

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise InvalidArgument(f"no mode named {self.mode!r}; known: {', '.join(get_args(Mode))}")
        if self.offsets not in get_args(Offsets):
            raise InvalidArgument(f"offsets are counted in {' or '.join(get_args(Offsets))}; got {self.offsets!r}")
        if not isinstance(self.text, str):
            raise InvalidArgument(f"a query is text; got {type(self.text).__name__}")
        for name, value in (("top_k", self.top_k), ("offset", self.offset)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise InvalidArgument(f"{name} is a whole number and not negative; got {value!r}")
        if self.reach > MOST:
            raise InvalidArgument(f"offset + top_k is {self.reach}; at most {MOST} hits can be paged through")
        if self.min_score is not None and not -1 <= self.min_score <= 1:
            raise InvalidArgument(f"min_score is between -1 and 1, or None; got {self.min_score!r}")

    @property
    def reach(self) -> int:
        """How many hits there must be to fill the page."""
        return self.offset + self.top_k


class Searcher:
    """Answers questions from one collection per project, so that no filter stands between two projects."""

    def __init__(
        self,
        archive: Archive,
        buffer: EmbeddingBuffer,
        store: Store,
        embedder: EmbeddingProvider | None,
        hybrid: HybridOptions,
    ) -> None:
        self._archive = archive
        self._buffer = buffer
        self._store = store
        self._embedder = embedder
        self._hybrid = hybrid

    def search(self, query: Query) -> Retrieved:
        """The chunks that a query is about; see `DocumentService.search`."""
        if query.mode == "keyword":
            found = self._by_words(query)
        else:
            found = self._ask(query, query.mode, query.reach + SPARE)
            if found.mode == "keyword":
                found = found.with_hits(self._by_words(query).hits)
        hits = self._there(query, found.hits)
        by_words = found.mode != "semantic"
        page = [_dressed(hit, query, by_words=by_words) for hit in hits[query.offset : query.reach]]
        if query.mode == "semantic" and not found.degraded and len(hits) < query.reach:
            page += self._still_waiting(query, hits)
        return found.with_hits(page)

    def _ask(self, query: Query, mode: Mode, limit: int) -> Retrieved:
        options = replace(
            self._hybrid,
            limit=limit,
            mode=mode,
            min_score=query.min_score,
            metadata_filter={} if query.document is None else {"document": query.document},
        )
        collection = collection_of(query.project)
        return search(query.text, collection, store=self._store, embedder=self._embedder, options=options)

    def _by_words(self, query: Query) -> Retrieved:
        """What the words of the query find; of that, what has its phrases, and more of a word than one character."""
        wanted = phrases(query.text)
        first = query.reach + SPARE
        for limit in (first, first * FURTHER, first * FURTHER**2, MAX_LIMIT):
            found = self._ask(query, "keyword", min(limit, MAX_LIMIT))
            kept = [hit for hit in found if holds_all(hit.text, wanted) and says_enough(query.text, hit.keywords)]
            # Who has the phrase may stand far down; who has more than single characters stands before who has not.
            further = wanted or (kept and kept[-1] is found[-1])
            if len(kept) >= query.reach or len(found) < limit or not further:
                break
        return found.with_hits(kept)

    def _still_waiting(self, query: Query, before: Sequence[_Placed]) -> list[Hit]:
        """What keywords find among the chunks that have no vector yet: the rest of the page behind the others."""
        if not self._buffer.waiting(collection_of(query.project)):
            return []
        known = {one.hit.id for one in before}
        found = self._there(query, [hit for hit in self._by_words(query) if hit.id not in known])
        waiting = [one for one in found if one.pending]
        start = max(0, query.offset - len(before))
        return [_dressed(one, query, by_words=True) for one in waiting[start : query.reach - len(before)]]

    def _there(self, query: Query, hits: Sequence[Hit]) -> list[_Placed]:
        """The hits whose chunk is still there, with what the document says now."""
        with self._archive.database.reading() as connection:
            known = self._archive.look_up(connection, [hit.id for hit in hits])
        ours = {one: found for one, found in known.items() if found.document.project == query.project}
        waiting = self._buffer.waiting_of(collection_of(query.project), ours)
        return [_Placed(hit, ours[hit.id], hit.id in waiting) for hit in hits if hit.id in ours]


@dataclass(frozen=True, slots=True)
class _Placed:
    """A hit, its chunk as it is now, and whether its vector is still to come."""

    hit: Hit
    found: Found
    pending: bool


def _dressed(one: _Placed, query: Query, *, by_words: bool) -> Hit:
    metadata = _metadata(one.found, query, one.pending, by_words=by_words)
    return replace(one.hit, text=one.found.text, metadata=metadata)


def _metadata(found: Found, query: Query, pending: bool, *, by_words: bool) -> Mapping[str, Any]:
    marked = places(query.text, found.text) if by_words else []
    shown = snippet(found.text, marked)
    count = Counted(found, query.offsets)
    return {
        "document_id": found.document.id,
        "project_id": found.document.project,
        "start_offset": count.at(0),
        "end_offset": count.at(len(found.text)),
        "updated_at": found.updated,
        "pending": pending,
        "snippet": shown.text,
        "snippet_highlights": [list(_spans(shown.text, one, query.offsets)) for one in shown.highlights],
        "highlights": [[count.at(one.start), count.at(one.end)] for one in marked],
    }


def _spans(text: str, span: Span, offsets: Offsets) -> tuple[int, int]:
    if offsets == "characters":
        return span.start, span.end
    return span.start + wide_characters(text[: span.start]), span.end + wide_characters(text[: span.end])


class Counted:
    """Places of a chunk, counted in its document as asked for."""

    def __init__(self, found: Found, offsets: Offsets) -> None:
        self._found = found
        self._wide = offsets == "utf-16"
        self._start = found.start
        if self._wide:
            self._start = found.unit + len(found.before) + wide_characters(found.before)

    def at(self, place: int) -> int:
        """Where the character at this place of the chunk is in the document."""
        return self._start + place + (wide_characters(self._found.text[:place]) if self._wide else 0)
