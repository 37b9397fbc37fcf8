"""The retriever: the engine's search over one user's rows, as LangChain documents, with the log of seed 004."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field, PrivateAttr, ValidationError

from homing.engine.ranking import DEFAULT_K, Ranking, rrf
from homing.engine.search import HybridOptions, Outcomes, ask, concluded, found_by, fused
from homing.errors import InvalidArgument, RetrievalFailed, StoreError
from homing.langchain import journal
from homing.langchain.embeddings import provider_of
from homing.langchain.options import HybridRetrieverOptions
from homing.langchain.source import CollectionSource, Place, UserSource, collection_of
from homing.langchain.table import calling_loop, table_of
from homing.langchain.table_source import rows_of
from homing.langchain.vector_store import HomingVectorStore
from homing.legs import ThreadPool
from homing.records import Hit, Leg, LegShare, Retrieved
from homing.stores import arguments
from homing.stores.store import Store
from homing.text.keywords import extract_keywords

DEEPEST = 2_000
"""Matches of one leg beyond which nobody looks for a file that has not had its turn."""
_WAITING = ThreadPool("homing-retriever", 64)
"""Where calls of `ainvoke` wait for their answer."""


def as_document(hit: Hit, answer: Retrieved, user_id: int | str) -> Document:
    """The text of a hit, with its own metadata and, over it, what the search knows.

    Keys of the search cannot be forged by a document: `id`, `userId`, `fileName`, `similarity` (None where no vector
    was compared), `keywordScore` (how many keywords it contains), `score` (fused), `vectorRank` and `keywordRank` (None
    where that leg did not find it), `matchedKeywords`; and `degraded` with the reason, None for a whole answer.
    """
    legs: dict[str, LegShare] = {share.leg: share for share in hit.legs}
    vector, keyword = legs.get("vector"), legs.get("keyword")
    known: dict[str, Any] = {
        "id": hit.id,
        "userId": user_id,
        "fileName": journal.file_name(hit.metadata),
        "similarity": hit.score,
        "keywordScore": keyword.raw if keyword else 0.0,
        "score": hit.fused,
        "vectorRank": vector.rank if vector else None,
        "keywordRank": keyword.rank if keyword else None,
        "matchedKeywords": list(hit.keywords),
        "degraded": answer.reason,
    }
    return Document(id=hit.id, page_content=hit.text, metadata={**hit.metadata, **known})


def capped(ranked: Iterable[Hit], most: int | None) -> list[Hit]:
    """The same order without what is beyond the first `most` of a file; what has no file always stays."""
    taken: Counter[str] = Counter()
    kept = []
    for hit in ranked:
        name = journal.file_name(hit.metadata)
        if most is not None and name is not None:
            taken[name] += 1
            if taken[name] > most:
                continue
        kept.append(hit)
    return kept


def grouped(ranked: Sequence[Hit]) -> list[Hit]:
    """Files in the order of their best document, the documents of each together, in their own order."""
    groups: dict[object, list[Hit]] = {}
    for place, hit in enumerate(ranked):
        name = journal.file_name(hit.metadata)
        groups.setdefault(name if name is not None else place, []).append(hit)
    return [hit for group in groups.values() for hit in group]


def merge_results_with_rrf(
    vector_results: Sequence[Document],
    keyword_results: Sequence[Document],
    *,
    limit: int | None = None,
    rrf_k: int = DEFAULT_K,
    vector_weight: float = 0.7,
    keyword_weight: float = 0.3,
) -> list[Document]:
    """The documents of both lists, best first, each once: `score = Σ weight / (rrf_k + rank)`, ranks from 1.

    A document is known by its id (`Document.id`, or `metadata["id"]`). It keeps the metadata that both lists give it;
    `score`, `vectorRank` and `keywordRank` are added, the ranks None where a list does not have it. The documents that
    are passed in stay as they are.
    """
    lists = {"vector": vector_results, "keyword": keyword_results}
    by_leg = {leg: {_identity(one): one for one in reversed(found)} for leg, found in lists.items()}
    fused = rrf(
        [
            Ranking("vector", [_identity(one) for one in vector_results], vector_weight),
            Ranking("keyword", [_identity(one) for one in keyword_results], keyword_weight),
        ],
        k=rrf_k,
    )
    merged = []
    for one in fused[:limit]:
        seen = [by_leg[leg][one.id] for leg in ("keyword", "vector") if one.id in by_leg[leg]]
        metadata = {key: value for document in seen for key, value in document.metadata.items()}
        metadata |= {
            "score": one.score,
            "vectorRank": one.ranks.get("vector"),
            "keywordRank": one.ranks.get("keyword"),
        }
        merged.append(Document(id=one.id, page_content=seen[-1].page_content, metadata=metadata))
    return merged


def _identity(document: Document) -> str:
    identity = document.id if document.id is not None else document.metadata.get("id")
    if identity is None:
        raise InvalidArgument("documents are merged by their id; one has neither `id` nor metadata['id']")
    return str(identity)


class HybridRetriever(BaseRetriever):
    """Finds what one user's documents say about a query, by meaning and by keyword at once.

    `vector_store` is any of Homing's stores (then with `embeddings`, and the `collection` to search), a
    `HomingVectorStore` (which brings both), or langchain-postgres' `PGVectorStore`. Whose a row is stands in its
    metadata, under `user_key`; a store that keeps users apart by itself, as PostgreSQL does, and a view for one user
    know it without. The user's condition is asked in the store, by both legs; a filter can only narrow it. `options` is
    a HybridRetrieverOptions or a dict of its names; each of them can be given as a keyword argument too, to the
    constructor and to `invoke`.

    When one leg fails or is late, the other answers, the log says so, and the documents carry `degraded`. When both
    fail, `RetrievalFailed` has both causes.
    """

    vector_store: Any = Field(frozen=True)
    user_id: int | str = Field(frozen=True)
    options: HybridRetrieverOptions = Field(default_factory=HybridRetrieverOptions)
    embeddings: Any = Field(None, frozen=True)
    collection: str = Field("documents", frozen=True)
    user_key: str = Field("userId", frozen=True)

    _place: Place = PrivateAttr()

    def __init__(
        self,
        vector_store: Any,
        user_id: int | str,
        options: HybridRetrieverOptions | Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        chosen = {name: kwargs.pop(name) for name in [*kwargs] if name in _OPTION_NAMES}
        checked = _options(options, chosen)
        if unknown := sorted(set(kwargs) - set(type(self).model_fields)):
            raise InvalidArgument(f"a HybridRetriever has no {', '.join(unknown)}; its options: {_KNOWN}")
        user = checked_user(user_id)
        super().__init__(vector_store=vector_store, user_id=user, options=checked, **kwargs)
        self._place = place_of(
            vector_store, user, embeddings=self.embeddings, collection=self.collection, user_key=self.user_key
        )
        journal.unbalanced(checked)

    def __reduce__(self) -> tuple[Any, ...]:
        """A retriever in another process has connections of its own; a store that cannot make them there is refused."""
        if not isinstance(self.vector_store, Store):
            raise TypeError(
                f"a {type(self.vector_store).__name__} holds connections and cannot be pickled: "
                "make the retriever in the process that uses it"
            )
        more = {
            name: getattr(self, name) for name in type(self).model_fields if name not in ("vector_store", "user_id")
        }
        return partial(type(self), **more), (self.vector_store, self.user_id)

    @classmethod
    def get_lc_namespace(cls) -> list[str]:
        """Where LangChain files this class."""
        return ["mirror", "retrievers"]

    extract_keywords: ClassVar = staticmethod(extract_keywords)
    merge_results_with_rrf: ClassVar = staticmethod(merge_results_with_rrf)

    def retrieve(self, query: str, **overrides: Any) -> Retrieved:
        """What `invoke` finds, with all that documents cannot carry: mode, degradation, notice, timings.

        `overrides` are options for this one search. A blank query finds nothing. Raises RetrievalFailed where neither
        leg could answer.
        """
        if not isinstance(query, str):
            raise InvalidArgument(f"a query is text; got {type(query).__name__}")
        options = _options(self.options, overrides)
        if overrides:
            journal.unbalanced(options)
        source = self._place(query, options)
        if not query.strip():
            return Retrieved((), "hybrid")
        query_shown = {"query": query} if options.log_query else {}
        with journal.span("homing.hybrid_search", limit=options.limit, **query_shown) as note:
            answer = self._search(source, options)
            note(results=len(answer), degraded=answer.degraded)
            return answer

    def _search(self, source: UserSource, options: HybridRetrieverOptions) -> Retrieved:
        started = time.perf_counter()
        depth = max(options.limit, options.leg_limit or options.limit * 2)
        while True:
            asked = _engine_options(options, depth, source.left)
            outcomes = ask(source, asked)
            if not any(outcome.ok for outcome in outcomes.values()):
                journal.failed(options, outcomes, self.user_id)
                raise _failed({leg: outcome.error for leg, outcome in outcomes.items() if outcome.error is not None})
            try:
                with journal.span("homing.rrf_fusion"):
                    answer = fused(source, asked, outcomes)
            except StoreError as error:
                journal.unreadable(error, self.user_id)
                raise _failed({"read": error}) from None
            hits = capped(answer.hits, options.max_per_file)[: options.limit]
            found = _counts(outcomes)
            # Where one file has used up its places, those of the others may lie deeper.
            more = depth < DEEPEST and max(len(answer), *found.values()) >= depth
            if options.max_per_file is None or len(hits) == options.limit or not more:
                break
            depth = min(DEEPEST, depth * 4)
        if options.group_by_file:
            hits = grouped(hits)
        answer = concluded(
            answer.with_hits(hits), outcomes, started, lambda *_: journal.failed(options, outcomes, self.user_id)
        )
        journal.done(options, source.query, source.keywords, found, answer, self.user_id)
        return answer

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **overrides: Any
    ) -> list[Document]:
        answer = self.retrieve(query, **overrides)
        return [as_document(hit, answer, self.user_id) for hit in answer]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **overrides: Any
    ) -> list[Document]:
        # The legs have threads of their own; this one waits for them, out of the way of the loop.
        loop = asyncio.get_running_loop()
        token = calling_loop.set(loop)
        try:
            context = contextvars.copy_context()
        finally:
            calling_loop.reset(token)
        answer = await loop.run_in_executor(_WAITING, lambda: context.run(self.retrieve, query, **overrides))
        return [as_document(hit, answer, self.user_id) for hit in answer]


def checked_user(user_id: Any) -> int | str:
    """The user as given, who must be one: a whole number, or text that is not blank. Nothing stands for everybody.

    A table tells the number 1 from the text "1"; a store takes them for the same user.
    """
    try:
        arguments.checked_user(user_id)
    except InvalidArgument as error:
        raise InvalidArgument(f"a retriever belongs to one user_id: {error.message}") from error
    return int(user_id) if isinstance(user_id, int) else str(user_id)


_KNOWN = ", ".join(HybridRetrieverOptions.model_fields)
_OPTION_NAMES = frozenset(
    {"k", *HybridRetrieverOptions.model_fields}
    | {field.alias for field in HybridRetrieverOptions.model_fields.values() if field.alias}
)


def _options(
    options: HybridRetrieverOptions | Mapping[str, Any] | None, overrides: Mapping[str, Any]
) -> HybridRetrieverOptions:
    if isinstance(options, HybridRetrieverOptions):
        if not overrides:
            return options
        options = options.model_dump(exclude_unset=True)
    try:
        given = HybridRetrieverOptions.model_validate(options or {}).model_dump(exclude_unset=True)
        changed = HybridRetrieverOptions.model_validate(dict(overrides)).model_dump(exclude_unset=True)
        return HybridRetrieverOptions(**given | changed)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise InvalidArgument(f"options of a HybridRetriever: {wrong}; known: {_KNOWN}") from error


def _engine_options(options: HybridRetrieverOptions, depth: int, deadline: float) -> HybridOptions:
    """What the engine is asked; where files are capped, for as many hits as one leg brings, to have a choice."""
    return HybridOptions(
        limit=options.limit if options.max_per_file is None else depth,
        min_score=options.min_similarity,
        fusion="rrf",
        vector_weight=options.vector_weight,
        keyword_weight=options.keyword_weight,
        rrf_k=options.rrf_k,
        deadline=deadline,
        depth=depth,
    )


def _counts(outcomes: Outcomes) -> dict[Leg, int]:
    nearest, words = found_by(outcomes)
    return {"vector": len(nearest.cosines) if nearest else 0, "keyword": len(words.found) if words else 0}


def _failed(causes: Mapping[str, Exception]) -> RetrievalFailed:
    failure = RetrievalFailed(journal.BOTH_FAILED, causes=dict(causes))
    failure.__cause__ = ExceptionGroup("no leg gave an answer that could be read", list(causes.values()))
    return failure


def place_of(vector_store: Any, user_id: int | str, *, embeddings: Any, collection: str, user_key: str) -> Place:
    """The rows of one user behind a vector store. Raises InvalidArgument for a store that cannot keep users apart."""
    if isinstance(vector_store, HomingVectorStore):
        provider = provider_of(vector_store.embeddings if embeddings is None else embeddings)
        if vector_store.user:
            view = vector_store.for_user(user_id)
            return partial(CollectionSource, view.store, view.collection, None, provider, user_id)
        return collection_of(vector_store.store, user_id, vector_store.collection, user_key, provider)
    if isinstance(vector_store, Store):
        return collection_of(vector_store, user_id, collection, user_key, provider_of(embeddings))
    table = table_of(vector_store)
    if table is not None:
        return rows_of(table, user_id, user_key, provider_of(table.embeddings if embeddings is None else embeddings))
    raise InvalidArgument(
        "a HybridRetriever searches a store of homing, a HomingVectorStore or langchain-postgres' PGVectorStore: "
        f"both legs name the user where the rows are, which a {type(vector_store).__name__} cannot be asked for"
    )
