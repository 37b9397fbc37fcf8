"""Search in the documents of one project or of all: by meaning, by keywords, or both; and what of it fits a prompt."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

from homing.database import Database, Transaction
from homing.documents import archive
from homing.documents.archive import FoundChunk
from homing.documents.layout import utf16_length
from homing.documents.records import Namespace
from homing.engine import Engine
from homing.engine.search import HybridOptions, search
from homing.errors import InvalidArgument
from homing.records import Hit, Mode, Notice, Retrieved
from homing.stores.store import MAX_LIMIT
from homing.text.budget import estimate_tokens, fit
from homing.text.folding import Folded, fold
from homing.text.tokens import CutText, Span, cut, is_character, is_run, matched_terms, merged, tokens

SPARE = 10
"""Hits by words that are looked at beyond those wanted, some of which are not what was asked for."""
FURTHER = 10
"""How many times more matches are looked through, where too few of them are what was asked for."""

SETTING = "rag"
"""The row that keeps the defaults of `retrieve`."""
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
        if self.reach > MAX_LIMIT:
            raise InvalidArgument(f"offset + top_k is {self.reach}; at most {MAX_LIMIT} hits can be paged through")
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
        found = self._found(query)
        there = self._there(query, found)
        if len(there) < len(found):
            # Some were removed a moment ago: others come in their places.
            found = self._found(query)
            there = self._there(query, found)
        words = _words(query, found)
        page = there[query.offset : query.reach]
        return found.with_hits(
            [_described(hit, chunk, query, words if _by_words(found, hit) else None) for hit, chunk in page]
        )

    def _found(self, query: Query) -> Retrieved:
        if query.mode == "keyword":
            return self._by_words(query)
        found = self._ask(query, query.mode, query.reach)
        if found.mode == "keyword":
            return found.with_hits(self._by_words(query).hits)
        if found.mode == "semantic":
            # Behind what was found by its meaning stands what waits for its vector and was found by words.
            words = _words(query, found)
            return found.with_hits([hit for hit in found if hit.score is not None or words.are_meant_by(hit.text)])
        return found

    def _ask(self, query: Query, mode: Mode, limit: int) -> Retrieved:
        narrowed = {"project": query.project, "document": query.document}
        options = replace(
            self._hybrid,
            limit=limit,
            mode=mode,
            min_score=query.min_score,
            metadata_filter={key: value for key, value in narrowed.items() if value is not None},
            explains=False,
        )
        return search(
            query.text, self._own.collection, store=self._engine.store, embedder=self._engine.models, options=options
        )

    def _by_words(self, query: Query) -> Retrieved:
        """What the words of the query find; of that, what has its phrases, and more of a word than one character."""
        first = query.reach + SPARE
        for limit in (first, first * FURTHER, first * FURTHER**2, MAX_LIMIT):
            found = self._ask(query, "keyword", min(limit, MAX_LIMIT))
            words = _words(query, found)
            kept = [hit for hit in found if words.are_meant_by(hit.text)]
            # Who has the phrase may stand far down; who has more than single characters stands before who has not.
            further = words.phrases or (kept and kept[-1] is found[-1])
            if len(kept) >= query.reach or len(found) < limit or not further:
                break
        return found.with_hits(kept)

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


def _words(query: Query, found: Retrieved) -> _Words:
    """The words of a query, and what misspelt ones were read as."""
    return _Words(" ".join([query.text, *found.corrected.values()]))


def _by_words(found: Retrieved, hit: Hit) -> bool:
    return found.mode != "semantic" or hit.score is None


def _described(hit: Hit, found: FoundChunk, query: Query, words: _Words | None) -> Hit:
    """A hit as its document has it now, with the words that it was found by, if it was.

    Places are counted as asked for, and those of highlights in the document.
    """
    matched, marked = ((), []) if words is None else words.found_in(found.text)
    shown = snippet(found.text, marked)
    wide = query.offsets == "utf-16"
    start = found.unit + utf16_length(found.before) if wide else found.start

    def spans_of(text: str, spans: Sequence[Span], start: int = 0) -> list[list[int]]:
        if not wide:
            return [[start + one.start, start + one.end] for one in spans]
        return [[start + utf16_length(text[: one.start]), start + utf16_length(text[: one.end])] for one in spans]

    metadata = {
        "document_id": found.document.id,
        "project_id": found.document.project,
        "start_offset": start,
        "end_offset": start + (utf16_length(found.text) if wide else len(found.text)),
        "updated_at": found.updated,
        "pending": hit.pending,
        "snippet": shown.text,
        "snippet_highlights": spans_of(shown.text, shown.highlights),
        "highlights": spans_of(found.text, marked, start),
        **({"part": hit.metadata["part"]} if hit.metadata.get("part") else {}),
    }
    return replace(hit, text=found.text, metadata=metadata, keywords=matched)


class _Words:
    """The words of a query: its phrases, which stand in quotes ("…", “…”, 「…」 or 『…』), and the rest.

    A quote that is not closed quotes nothing.
    """

    def __init__(self, query: str) -> None:
        self._query = query
        quoted = [next(filter(None, one.groups())) for one in _QUOTED.finditer(query)]
        self.phrases = [one for one in quoted if tokens(one)]
        self._rest = _QUOTED.sub(" ", query) if self.phrases else query
        self._has_runs = any(is_run(piece) for piece in cut(fold(query)))

    def are_meant_by(self, text: str) -> bool:
        """Whether every phrase stands in the text, and more than single characters of longer Chinese words.

        Phrases stand word by word; case, width and traditional characters do not matter. 独 in 独自 is not 独角兽.
        """
        if self.phrases:
            written = _joined(text)
            if not all(_joined(one) in written for one in self.phrases):
                return False
        if not self._has_runs:
            return True
        return any(len(one) > 1 or not is_character(fold(one)) for one in matched_terms(self._query, text))

    def found_in(self, text: str) -> tuple[tuple[str, ...], list[Span]]:
        """The words that a text holds, and what to highlight: the phrases, and the other words."""
        given = CutText(text)
        marked = given.spans(self._rest)
        if self.phrases:
            marked = merged(sorted([*_phrase_places(self.phrases, text), *((one.start, one.end) for one in marked)]))
        return tuple(given.matched(self._query)), marked


def _phrase_places(wanted: Sequence[str], text: str) -> Iterator[tuple[int, int]]:
    folded = Folded(text)
    written = folded.text.lower()
    for phrase in wanted:
        # White space and punctuation between the words may differ; the words may not.
        words = [re.escape(word) for word in re.findall(r"\w+|[^\w\s]", Folded(phrase).text.lower())]
        for one in re.finditer(r"[\W_]*?".join(words), written):
            if one.end() > one.start():
                yield folded.place(one.start(), one.end())


def _joined(text: str) -> str:
    return f" {' '.join(tokens(text))} "


@dataclass(frozen=True, slots=True)
class Snippet:
    """An excerpt on one line; `highlights` are places in it."""

    text: str
    highlights: tuple[Span, ...]


def snippet(text: str, found: Sequence[Span]) -> Snippet:
    """About `LENGTH` characters of the text around the first place; dots show where it was cut."""
    start = max(0, found[0].start - BEFORE) if found else 0
    end = min(len(text), start + LENGTH)
    start = max(0, min(start, end - LENGTH))
    lead, trail = "…" if start else "", "…" if end < len(text) else ""
    # White space becomes blanks one by one, so that places stay where they are.
    shown = _SPACE.sub(" ", text[start:end])
    shift = len(lead) - start
    inside = [Span(max(one.start, start) + shift, min(one.end, end) + shift) for one in found]
    return Snippet(lead + shown + trail, tuple(one for one in inside if one.start < one.end))


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
    hits = [(found[at], costs[at]) for at in kept.kept]
    chunks = tuple(PackedChunk(hit.id, hit.metadata["document_id"], hit.text, hit.score, cost) for hit, cost in hits)
    return Packed(chunks, kept.tokens, kept.truncated, found.degraded, found.reason, found.notice, found.timings)


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
            *(owner, SETTING, json.dumps(asdict(config))),
        )
        return config

    return database.write(work, "document_settings")


def _read(transaction: Transaction, owner: str) -> RagConfig:
    found = transaction.rows("SELECT value FROM document_settings WHERE user_id = $1 AND name = $2", owner, SETTING)
    return RagConfig().changed(json.loads(found[0][0])) if found else RagConfig()
