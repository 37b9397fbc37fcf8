"""Search in the documents of one project or of all: by meaning, by keywords, or both."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from homing.documents import archive
from homing.documents.archive import FoundChunk
from homing.documents.layout import utf16_length
from homing.documents.records import Namespace
from homing.engine import Engine
from homing.engine.search import HybridOptions, search
from homing.errors import InvalidArgument
from homing.records import Hit, Mode, Retrieved
from homing.stores.store import MAX_LIMIT
from homing.text.folding import Folded, fold
from homing.text.tokens import Span, cut, is_character, is_run, spans, tokens

SPARE = 10
"""Hits asked for beyond those wanted: a chunk may have been removed a moment ago."""
MAX_REACH = MAX_LIMIT - SPARE
FURTHER = 10
"""How many times more matches are looked through, where too few of them are what was asked for."""

Offsets = Literal["characters", "utf-16"]
_QUOTED = re.compile(r'"([^"]+)"|“([^”]+)”|「([^」]+)」|『([^』]+)』|＂([^＂]+)＂')
_SPACE = re.compile(r"\s")
LENGTH = 120
BEFORE = 30
"""Characters shown, and how many of them stand before the first thing that was found."""


@dataclass(frozen=True, slots=True)
class Query:
    """A question to a project; to all of them where none is named."""

    project: str | None
    text: str
    mode: Mode = "hybrid"
    top_k: int = 20
    min_score: float | None = None
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
        if self.reach > MAX_REACH:
            raise InvalidArgument(f"offset + top_k is {self.reach}; at most {MAX_REACH} hits can be paged through")
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

    def _there(self, query: Query, hits: Sequence[Hit]) -> list[tuple[Hit, FoundChunk]]:
        """The hits whose chunk is still there, with what the document says now."""
        texts = {hit.id: hit.text for hit in hits}
        wide = query.offsets == "utf-16"
        known = self._engine.database.read(
            lambda transaction: archive.look_up(transaction, self._own.owner, texts, units=wide)
        )
        return [
            (hit, known[hit.id])
            for hit in hits
            if hit.id in known and query.project in (None, known[hit.id].document.project)
        ]


def _is_meant(query: Query, hit: Hit) -> bool:
    return holds_all(hit.text, phrases(query.text)) and says_enough(query.text, hit.keywords)


def _by_words(found: Retrieved, hit: Hit) -> bool:
    return found.mode != "semantic" or hit.score is None


def _described(hit: Hit, found: FoundChunk, query: Query, *, by_words: bool) -> Hit:
    """A hit as its document has it now. Places are counted as asked for, and those of highlights in the document."""
    marked = places(query.text, found.text) if by_words else []
    shown = snippet(found.text, marked)
    wide = query.offsets == "utf-16"
    length: Callable[[str], int] = utf16_length if wide else len
    start = found.unit + utf16_length(found.before) if wide else found.start

    def spans_of(text: str, spans: Sequence[Span], start: int = 0) -> list[list[int]]:
        return [[start + length(text[: one.start]), start + length(text[: one.end])] for one in spans]

    metadata = {
        "document_id": found.document.id,
        "project_id": found.document.project,
        "start_offset": start,
        "end_offset": start + length(found.text),
        "updated_at": found.updated,
        "pending": hit.pending,
        "snippet": shown.text,
        "snippet_highlights": spans_of(shown.text, shown.highlights),
        "highlights": spans_of(found.text, marked, start),
        **({"part": hit.metadata["part"]} if hit.metadata.get("part") else {}),
    }
    return replace(hit, text=found.text, metadata=metadata)


def phrases(query: str) -> list[str]:
    """What stands in quotes in a query: "…", “…”, 「…」 or 『…』. A quote that is not closed quotes nothing."""
    return [found for one in _QUOTED.finditer(query) if tokens(found := next(filter(None, one.groups())))]


def holds_all(text: str, wanted: Sequence[str]) -> bool:
    """Whether every phrase stands in the text, word by word; case, width and traditional characters do not matter."""
    written = _joined(text)
    return all(_joined(one) in written for one in wanted)


def says_enough(query: str, matched: Sequence[str]) -> bool:
    """Whether more than single characters of longer Chinese words matched: 独 in 独自 is not 独角兽."""
    if any(len(one) > 1 or not is_character(fold(one)) for one in matched):
        return True
    return not any(is_run(piece) for piece in cut(fold(query)))


def places(query: str, text: str) -> list[Span]:
    """What to highlight: the phrases where there are any, and the other words of the query."""
    wanted = phrases(query)
    rest = _QUOTED.sub(" ", query) if wanted else query
    found = [*_phrase_places(wanted, text), *(spans(rest, text) if rest.strip() else [])]
    merged: list[Span] = []
    for one in sorted(found, key=lambda span: (span.start, span.end)):
        if merged and one.start < merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(one.end, merged[-1].end))
        else:
            merged.append(one)
    return merged


def _phrase_places(wanted: Sequence[str], text: str) -> list[Span]:
    if not wanted:
        return []
    folded = Folded(text)
    written = folded.text.lower()
    found: list[Span] = []
    for phrase in wanted:
        # White space and punctuation between the words may differ; the words may not.
        words = [re.escape(word) for word in re.findall(r"\w+|[^\w\s]", Folded(phrase).text.lower())]
        for one in re.finditer(r"[\W_]*?".join(words), written):
            if one.end() > one.start():
                found.append(Span(*folded.place(one.start(), one.end())))
    return found


def _joined(text: str) -> str:
    return f" {' '.join(tokens(text))} "


@dataclass(frozen=True, slots=True)
class Snippet:
    """An excerpt on one line; `highlights` are places in it."""

    text: str
    highlights: tuple[Span, ...]


def snippet(text: str, found: Sequence[Span], length: int = LENGTH) -> Snippet:
    """About `length` characters of the text around the first place; dots show where it was cut."""
    start = max(0, found[0].start - BEFORE) if found else 0
    end = min(len(text), start + length)
    start = max(0, min(start, end - length))
    lead, trail = "…" if start else "", "…" if end < len(text) else ""
    # White space becomes blanks one by one, so that places stay where they are.
    shown = _SPACE.sub(" ", text[start:end])
    shift = len(lead) - start
    inside = [Span(max(one.start, start) + shift, min(one.end, end) + shift) for one in found]
    return Snippet(lead + shown + trail, tuple(one for one in inside if one.start < one.end))
