"""Search in the documents of one project or of all: by meaning, by keywords, or both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from homing.documents import archive
from homing.documents.archive import Found
from homing.documents.layout import wide_characters
from homing.documents.phrases import holds_all, phrases, places, says_enough
from homing.documents.records import Namespace
from homing.documents.snippets import snippet
from homing.engine import Engine
from homing.engine.search import HybridOptions, search
from homing.errors import InvalidArgument
from homing.records import Hit, Mode, Retrieved
from homing.stores.store import MAX_LIMIT
from homing.text.tokens import Span

SPARE = 10
"""Hits asked for beyond those wanted: a chunk may have been removed a moment ago."""
MOST = MAX_LIMIT - SPARE
FURTHER = 10
"""How many times more matches are looked through, where too few of them are what was asked for."""

Offsets = Literal["characters", "utf-16"]


@dataclass(frozen=True, slots=True)
class Query:
    """A question to a project; to all of them where none is named."""

    project: str | None
    text: str
    mode: Mode = "hybrid"
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
    """Answers questions to one project, or to all of them."""

    def __init__(self, engine: Engine, namespace: Namespace, hybrid: HybridOptions) -> None:
        self._engine = engine
        self._own = namespace
        self._hybrid = hybrid

    def search(self, query: Query) -> Retrieved:
        """The chunks that a query is about; see `DocumentService.search`."""
        if query.mode == "keyword":
            found = self._by_words(query)
        else:
            found = self._ask(query, query.mode, query.reach + SPARE)
            if found.mode == "keyword":
                found = self._by_words(query, found)
            elif found.mode == "semantic":
                # Behind what was found by its meaning stands what waits for its vector and was found by words.
                found = found.with_hits([hit for hit in found if hit.score is not None or _is_meant(query, hit)])
        page = self._there(query, found.hits)[query.offset : query.reach]
        return found.with_hits([_described(hit, chunk, query, by_words=_by_words(found, hit)) for hit, chunk in page])

    def _ask(self, query: Query, mode: Mode, limit: int) -> Retrieved:
        narrowed = {"project": query.project, "document": query.document}
        options = replace(
            self._hybrid,
            limit=limit,
            mode=mode,
            min_score=query.min_score,
            metadata_filter={key: value for key, value in narrowed.items() if value is not None},
        )
        return search(
            query.text, self._own.collection, store=self._engine.store, embedder=self._engine.models, options=options
        )

    def _by_words(self, query: Query, begun: Retrieved | None = None) -> Retrieved:
        """What the words of the query find; of that, what has its phrases, and more of a word than one character.

        `begun` is what they found already, because the model did not answer.
        """
        wanted = phrases(query.text)
        first = query.reach + SPARE
        for limit in (first, first * FURTHER, first * FURTHER**2, MAX_LIMIT):
            found = begun if begun and limit == first else self._ask(query, "keyword", min(limit, MAX_LIMIT))
            kept = [hit for hit in found if _is_meant(query, hit)]
            # Who has the phrase may stand far down; who has more than single characters stands before who has not.
            further = wanted or (kept and kept[-1] is found[-1])
            if len(kept) >= query.reach or len(found) < limit or not further:
                break
        return (begun or found).with_hits(kept)

    def _there(self, query: Query, hits: Sequence[Hit]) -> list[tuple[Hit, Found]]:
        """The hits whose chunk is still there, with what the document says now."""
        ids = [hit.id for hit in hits]
        known = self._engine.database.read(lambda transaction: archive.look_up(transaction, self._own.owner, ids))
        return [
            (hit, known[hit.id])
            for hit in hits
            if hit.id in known and query.project in (None, known[hit.id].document.project)
        ]


def _is_meant(query: Query, hit: Hit) -> bool:
    return holds_all(hit.text, phrases(query.text)) and says_enough(query.text, hit.keywords)


def _by_words(found: Retrieved, hit: Hit) -> bool:
    return found.mode != "semantic" or hit.score is None


def _described(hit: Hit, found: Found, query: Query, *, by_words: bool) -> Hit:
    return replace(hit, text=found.text, metadata=_metadata(found, query, hit.pending, by_words=by_words))


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
