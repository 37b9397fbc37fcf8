"""The retriever: two legs side by side on one user's rows, fused, explained, as LangChain documents."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, ClassVar

from pydantic import Field, PrivateAttr, ValidationError

from homing.engine.search import NOTICES
from homing.errors import InvalidArgument, RetrievalFailed
from homing.langchain import journal
from homing.langchain.documents import as_document
from homing.langchain.library import (
    AsyncCallbackManagerForRetrieverRun,
    BaseRetriever,
    CallbackManagerForRetrieverRun,
    Document,
)
from homing.langchain.merging import merge_results_with_rrf
from homing.langchain.options import HybridRetrieverOptions
from homing.langchain.question import Question, fused
from homing.langchain.source import Source
from homing.langchain.sources import source_of
from homing.langchain.table import calling_loop
from homing.langchain.tracing import in_this_context, span
from homing.langchain.users import checked_user
from homing.legs import Outcome, run_legs
from homing.records import Hit, Leg, Mode, Retrieved
from homing.stores.users import KeepsUsersApart
from homing.text.keywords import extract_keywords


class HybridRetriever(BaseRetriever):
    """Finds what one user's documents say about a query, by meaning and by keyword at once.

    `vector_store` is langchain-postgres' `PGVectorStore` (with the user in the metadata, under `user_key`) or Homing's
    `PostgresStore` (then with `embeddings`, and the `collection` to search). The user's condition is part of the SQL of
    both legs; a filter can only narrow it. `options` is a HybridRetrieverOptions or a dict of its names; each of them
    can be given as a keyword argument too, to the constructor and to `invoke`.

    When one leg fails or is late, the other answers, the log says so, and the documents carry `degraded`. When both
    fail, `RetrievalFailed` has both causes.
    """

    vector_store: Any = Field(frozen=True)
    user_id: int | str = Field(frozen=True)
    options: HybridRetrieverOptions = Field(default_factory=HybridRetrieverOptions)
    embeddings: Any = Field(None, frozen=True)
    collection: str = Field("documents", frozen=True)
    user_key: str = Field("userId", frozen=True)

    _source: Source = PrivateAttr()

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
        super().__init__(vector_store=vector_store, user_id=checked_user(user_id), options=checked, **kwargs)
        self._source = source_of(
            vector_store, user_id, embeddings=self.embeddings, collection=self.collection, user_key=self.user_key
        )
        journal.unbalanced(checked)

    def __reduce__(self) -> tuple[Any, ...]:
        """A retriever in another process has connections of its own; a store that cannot make them there is refused."""
        if not isinstance(self.vector_store, KeepsUsersApart):
            raise TypeError(
                f"a {type(self.vector_store).__name__} holds connections and cannot be pickled: "
                "make the retriever in the process that uses it"
            )
        more = {
            name: getattr(self, name) for name in type(self).model_fields if name not in ("vector_store", "user_id")
        }
        return _remade, (type(self), self.vector_store, self.user_id, more)

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
        self._source.check(options.filter)
        if not query.strip():
            return Retrieved((), "hybrid")
        told = {"query": query} if options.log_query else {}
        with span("homing.hybrid_search", limit=options.limit, **told) as noted:
            answer = self._search(query, options)
            noted.set_attribute("homing.results", len(answer))
            noted.set_attribute("homing.degraded", answer.degraded)
            return answer

    def _search(self, query: str, options: HybridRetrieverOptions) -> Retrieved:
        started = time.perf_counter()
        question = Question(query, self._source, options, self.user_id)
        while True:
            outcomes = self._ask(question)
            answers = {leg: outcome.value for leg, outcome in outcomes.items() if outcome.value is not None}
            if not answers:
                journal.failed(options, outcomes, self.user_id)
                raise _all_failed(outcomes)
            fusing = time.perf_counter()
            with span("homing.rrf_fusion"):
                hits = fused(question, answers)
            # Where one file has used up its places, those of the others may lie deeper.
            if options.max_per_file is None or len(hits) == options.limit or not question.deepen():
                break
        finished = time.perf_counter()
        journal.failed(options, outcomes, self.user_id)
        timings = {f"{leg}_ms": outcome.milliseconds for leg, outcome in outcomes.items()}
        timings |= {
            "fusion_ms": (finished - fusing) * 1000 - question.similarity_ms,
            "similarity_ms": question.similarity_ms,
            "total_ms": (finished - started) * 1000,
        }
        answer = _answer(hits, outcomes, timings)
        counts = {leg: len(found) for leg, found in answers.items()}
        journal.done(options, query, question.keywords, counts, answer, self.user_id)
        return answer

    def _ask(self, question: Question) -> dict[Leg, Outcome[Any]]:
        legs = {"vector": in_this_context(question.vector), "keyword": in_this_context(question.keyword)}
        both = run_legs(legs, deadline=question.left)
        return {"vector": both["vector"], "keyword": both["keyword"]}

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
            work = in_this_context(lambda: self.retrieve(query, **overrides))
        finally:
            calling_loop.reset(token)
        answer = await loop.run_in_executor(_waiting(), work)
        return [as_document(hit, answer, self.user_id) for hit in answer]


def _remade(kind: type[HybridRetriever], store: Any, user_id: int | str, more: dict[str, Any]) -> HybridRetriever:
    return kind(store, user_id, **more)


_KNOWN = ", ".join(HybridRetrieverOptions.model_fields)
_OPTION_NAMES = frozenset(
    set(HybridRetrieverOptions.model_fields)
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
        told = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise InvalidArgument(f"options of a HybridRetriever: {told}; known: {_KNOWN}") from error


def _answer(hits: tuple[Hit, ...], outcomes: Mapping[Leg, Outcome[Any]], timings: Mapping[str, float]) -> Retrieved:
    failed = [leg for leg, outcome in outcomes.items() if not outcome.ok]
    if not failed:
        return Retrieved(hits, "hybrid", timings=timings)
    leg = failed[0]
    mode: Mode = "keyword" if leg == "vector" else "semantic"
    return Retrieved(hits, mode, True, f"{leg}:{outcomes[leg].code}", NOTICES[leg], timings)


def _all_failed(outcomes: Mapping[Leg, Outcome[Any]]) -> RetrievalFailed:
    causes = {leg: outcome.error for leg, outcome in outcomes.items() if outcome.error is not None}
    failure = RetrievalFailed(journal.BOTH_FAILED, causes=dict(causes.items()))
    failure.__cause__ = ExceptionGroup("the vector leg and the keyword leg failed", list(causes.values()))
    return failure


@cache
def _waiting() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=64, thread_name_prefix="homing-retriever")
