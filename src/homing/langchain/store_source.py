"""The rows of one user in a store of Homing that keeps users apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from homing.embedders.chosen import ChoosesModel
from homing.embedders.provider import EmbeddingProvider
from homing.errors import InvalidArgument
from homing.langchain.embeddings import ask
from homing.langchain.library import Embeddings
from homing.langchain.source import Asked, Filter, Found, Words
from homing.records import KeywordMatch
from homing.stores.filters import wanted
from homing.stores.store import SearchOptions, Store
from homing.stores.users import KeepsUsersApart
from homing.text.folding import fold
from homing.text.tokens import tokens
from homing.vectors import as_vector


@runtime_checkable
class CountsKeywords(Store, Protocol):
    """A store that finds records by how many of some keywords they contain."""

    def search_keywords(
        self, collection: str, keywords: Sequence[str], limit: int = 10, options: SearchOptions | None = None
    ) -> list[KeywordMatch]:
        """The records that contain keywords, those with most of them first, then the more relevant."""


class StoreSource:
    """One user's part of one collection. The view of the store names the user in every statement."""

    def __init__(
        self, store: KeepsUsersApart, user_id: int | str, collection: str, embeddings: EmbeddingProvider | Embeddings
    ) -> None:
        if store.user_id and store.user_id != str(user_id):
            raise InvalidArgument(
                f"this is the store of user {store.user_id!r}, and the retriever is for {user_id!r}; "
                "give it the store that both came from"
            )
        own = store if store.user_id else store.for_user(user_id)
        if not isinstance(own, CountsKeywords):
            raise InvalidArgument(f"a {type(store).__name__} cannot count keywords; use a PostgresStore")
        self._rows: CountsKeywords = own
        self._embeddings = embeddings
        self.collection = collection

    def check(self, narrowed: Filter | None) -> None:
        """Raise InvalidArgument for a filter that is more than equality."""
        wanted(SearchOptions(equalities(narrowed)))

    def ask(self, query: str) -> Asked:
        """The query, embedded by the model that made the collection's vectors."""
        # Only an embedder with a choice is worth the question to the server.
        if isinstance(self._embeddings, ChoosesModel):
            return ask(self._embeddings.for_model(self._rows.model_of(self.collection)), query)
        return ask(self._embeddings, query)

    def nearest(self, asked: Asked, limit: int, narrowed: Filter | None, *, deadline: float) -> list[Found]:
        """The nearest rows; the server's own limit on a statement is the store's."""
        options = SearchOptions(equalities(narrowed), model=asked.model)
        found = self._rows.search(self.collection, as_vector(asked.vector), limit, options)
        return [Found(one.id, one.text, one.metadata, cosine=one.cosine) for one in found]

    def matching(self, words: Words, limit: int, narrowed: Filter | None, *, deadline: float) -> list[Found]:
        """The rows with most of the keywords, or those that BM25 finds most relevant to the query."""
        options = SearchOptions(equalities(narrowed))
        if not words.by_relevance:
            counted = self._rows.search_keywords(self.collection, words.keywords, limit, options)
            return [
                Found(one.id, one.text, one.metadata, matched=one.keywords, count=one.score or 0.0) for one in counted
            ]
        found = self._rows.search_text(self.collection, words.query, limit, options)
        held = [contained(words.keywords, one.text) for one in found]
        return [
            Found(one.id, one.text, one.metadata, matched=matched, count=float(len(matched)))
            for one, matched in zip(found, held, strict=True)
        ]

    def cosines(self, asked: Asked, ids: Sequence[str], *, deadline: float) -> Mapping[str, float]:
        """How near the rows with these ids are."""
        query = as_vector(asked.vector)
        return {
            one.id: float(one.embedding @ query)
            for one in self._rows.get(self.collection, ids)
            if one.embedding is not None and (not asked.model or one.model == asked.model)
        }


def contained(keywords: Sequence[str], text: str) -> tuple[str, ...]:
    """Which of the keywords a text contains, by the rules of the store: as written, or by all their words."""
    written, words = fold(text).lower(), set(tokens(text))
    return tuple(one for one in keywords if fold(one).lower() in written or words.issuperset(tokens(one)))


def equalities(narrowed: Filter | None) -> dict[str, Any]:
    """A LangChain filter as the pairs that a store compares: equality and "one of these", all of which must hold."""
    pairs: dict[str, Any] = {}
    for key, value in (narrowed or {}).items():
        if key == "$and" and isinstance(value, list | tuple):
            for part in value:
                if not isinstance(part, Mapping):
                    raise _unsupported(key)
                for name, operand in equalities(part).items():
                    _add(pairs, name, operand)
        elif key.startswith("$"):
            raise _unsupported(key)
        elif isinstance(value, Mapping):
            if len(value) != 1:
                raise _unsupported(key)
            (operator, operand), *_ = value.items()
            if operator == "$eq":
                _add(pairs, key, operand)
            elif operator == "$in" and isinstance(operand, list | tuple):
                _add(pairs, key, list(operand))
            else:
                raise _unsupported(operator)
        else:
            _add(pairs, key, value)
    return pairs


def _add(pairs: dict[str, Any], key: str, value: Any) -> None:
    if key in pairs and pairs[key] != value:
        raise InvalidArgument(f"the filter names {key!r} twice; a store compares each key once")
    pairs[key] = value


def _unsupported(what: str) -> InvalidArgument:
    return InvalidArgument(
        f"a store filters by equality: {{key: value}}, $eq, $in, $and; {what!r} is none of these. "
        "Narrow the answer yourself, or use PGVectorStore, whose tables take every comparison"
    )
