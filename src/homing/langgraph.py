"""The long-term memory of LangGraph agents, kept by Homing: durable, bilingual, found by words at once.

    store = HomingStore()
    graph = builder.compile(store=store)

Needs the extra `langgraph`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from homing.database import Transaction
from homing.engine.engine import Collection, check_transactional
from homing.errors import InvalidArgument
from homing.frameworks import OpenCollection, Place, missing, score_of_hit
from homing.records import VectorRecord

try:
    from langchain_core.runnables import run_in_executor
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
        validate_op_namespace,
    )
except ModuleNotFoundError as error:
    raise missing("langgraph", "langgraph") from error

__all__ = ["HomingStore"]

Namespace = tuple[str, ...]


class HomingStore(BaseStore):
    """A `BaseStore` on SQLite or PostgreSQL; every graph, process and machine that opens the same place shares it.

    An item is durable, and found by its words, when `put` returns; by its meaning as well, unless the model is down.
    `place` is a data folder, the address of a store, a `Store` or an app; `embedding` is LangChain's, one of Homing's,
    or the bundled model. `fields` are the paths of a value that are searched (LangGraph's syntax); without them every
    text and number in it is. What one `batch` puts is kept together or not at all, and its reads see what was there
    before it. Expired items are never shown; they are removed when something with a time to live is put, and by
    `sweep_ttl`.
    """

    __slots__ = ("_clock", "_fields", "_texts", "ttl_config")

    supports_ttl = True

    def __init__(
        self,
        place: Place = None,
        embedding: Any = None,
        *,
        collection: str = "langgraph",
        fields: Sequence[str] = (),
        ttl: TTLConfig | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        from homing.langchain.embeddings import model_of

        if "." in collection:
            raise InvalidArgument(f"a collection of items has no dot in its name; got {collection!r}")
        self._texts = OpenCollection.open(place, collection, None if embedding is None else model_of(embedding))
        check_transactional(self._texts.store, "items of LangGraph")
        self._fields = list(fields)
        self._clock = clock
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """The results of several operations, in their order."""
        asked = list(ops)
        for one in asked:
            validate_op_namespace(one)
        results = [self._read(one) for one in asked]
        # Of several puts of one item the last counts.
        puts = {(one.namespace, one.key): one for one in asked if isinstance(one, PutOp)}
        if puts:
            self._put(list(puts.values()))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The same in a thread."""
        return await run_in_executor(None, self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """Remove what has expired; returns how many items."""
        return self._texts.change(lambda transaction, items: self._sweep(transaction, items, self._clock()))

    def close(self) -> None:
        """Let go of the folder, if it was opened here; what was put is on disk already."""
        self._texts.close()

    # Reading

    def _read(self, op: Op) -> Result:
        match op:
            case GetOp():
                found = self._alive([_id(op.namespace, op.key)], op.refresh_ttl)
                return Item(**_fields_of(found[0])) if found else None
            case SearchOp():
                return self._search(op)
            case ListNamespacesOp():
                return self._namespaces(op)
            case PutOp():
                return None
        raise InvalidArgument(f"a store does not know the operation {type(op).__name__}")

    def _search(self, op: SearchOp) -> list[SearchItem]:
        where = self._where(op.namespace_prefix, op.filter)
        scores: dict[str, float | None] = {}
        if op.query and op.query.strip():
            hits = self._texts.search(op.query, op.offset + op.limit, where=where)[op.offset :]
            scores = {hit.id: score_of_hit(hit) for hit in hits}
        else:
            scores = dict.fromkeys(self._texts.ids(where)[op.offset : op.offset + op.limit])
        shown = self._alive(list(scores), op.refresh_ttl)
        return [SearchItem(**_fields_of(one), score=scores[one.id]) for one in shown]

    def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        found: set[Namespace] = {tuple(json.loads(one)[:-1]) for one in self._texts.ids(self._where((), None))}
        matching = {one for one in found if all(_matches(one, condition) for condition in op.match_conditions or ())}
        return sorted({one[: op.max_depth] for one in matching})[op.offset : op.offset + op.limit]

    def _where(self, prefix: Namespace, given: Mapping[str, Any] | None) -> dict[str, Any]:
        conditions: list[dict[str, Any]] = [{"$not": {"expires": {"$lte": self._clock()}}}]
        if prefix:
            conditions.append({"namespace": {"$eq": ".".join(prefix)}})
        for key, value in (given or {}).items():
            conditions.extend(_conditions(f"value.{_step(key)}", value))
        return {"$and": conditions}

    def _alive(self, ids: Sequence[str], refresh: bool) -> list[VectorRecord]:
        """The items that exist and have not expired; those with a time to live begin it anew where that is asked."""
        now = self._clock()
        found = [one for one in self._texts.get(ids) if one.metadata.get("expires", now + 1) > now]
        if refresh and any("ttl" in one.metadata for one in found):
            shown = [one.id for one in found]
            self._texts.change(lambda transaction, items: self._refresh(transaction, items, shown, now))
        return found

    # Writing: what depends on what is there is read again under the lock of those who write.

    def _put(self, ops: Sequence[PutOp]) -> None:
        now = self._clock()
        kept = {_id(one.namespace, one.key): one for one in ops if one.value is not None}
        gone = [_id(one.namespace, one.key) for one in ops if one.value is None]
        # Before anything is begun: what cannot be kept is refused.
        texts = {name: self._text(one) for name, one in kept.items()}

        def work(transaction: Transaction, collection: Collection) -> int:
            if any(one.ttl is not None for one in kept.values()):
                self._sweep(transaction, collection, now)
            created = {one.id: one.metadata["created"] for one in self._texts.get(list(kept))}
            records = [
                VectorRecord(name, self._texts.name, None, _metadata(one, created.get(name, now), now), texts[name])
                for name, one in kept.items()
            ]
            return collection.delete(gone, transaction) + collection.write(records, transaction)

        self._texts.change(work)

    def _refresh(self, transaction: Transaction, items: Collection, ids: Sequence[str], now: float) -> int:
        records = [
            VectorRecord(one.id, one.collection, None, {**one.metadata, "expires": _end(now, one.metadata)}, one.text)
            for one in self._texts.get(ids)
            if "ttl" in one.metadata
        ]
        return items.write(records, transaction)

    def _sweep(self, transaction: Transaction, items: Collection, now: float) -> int:
        ended = self._texts.ids({"expires": {"$lte": now}})
        return items.delete(ended, transaction) if ended else 0

    def _text(self, op: PutOp) -> str:
        if op.index is False:
            return ""
        value = dict(op.value or {})
        paths = self._fields if op.index is None else op.index
        texts = [one for path in paths for one in get_text_at_path(value, path)] if paths else list(_texts(value))
        return "\n".join(texts)


def _id(namespace: Namespace, key: str) -> str:
    return json.dumps([*namespace, key], ensure_ascii=False)


def _fields_of(record: VectorRecord) -> dict[str, Any]:
    *namespace, key = json.loads(record.id)
    created, updated = (datetime.fromtimestamp(record.metadata[one], UTC) for one in ("created", "updated"))
    value = dict(record.metadata["value"])
    return {"value": value, "key": key, "namespace": tuple(namespace), "created_at": created, "updated_at": updated}


def _metadata(op: PutOp, created: float, now: float) -> dict[str, Any]:
    """What is kept with the text: the value, and beside it what filters ask for."""
    value = dict(op.value or {})
    prefixes = [".".join(op.namespace[: depth + 1]) for depth in range(len(op.namespace))]
    known = {"namespace": prefixes, "value": value, "created": created, "updated": now}
    kept = {**known, **dict(_pairs("value", value))}
    if op.ttl is not None:
        kept["ttl"] = op.ttl
        kept["expires"] = _end(now, kept)
    return kept


def _end(now: float, metadata: Mapping[str, Any]) -> float:
    return now + float(metadata["ttl"]) * 60


def _step(key: str) -> str:
    return key.replace("%", "%25").replace(".", "%2E")


def _pairs(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A value by its paths; a mapping and a list are marked as what they are, so that nothing is taken for another."""
    if isinstance(value, Mapping):
        yield f"{path}{{}}", True
        for key, inner in value.items():
            yield from _pairs(f"{path}.{_step(str(key))}", inner)
    elif isinstance(value, list | tuple):
        yield f"{path}[]", _written(value)
    else:
        yield path, value


def _written(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _conditions(path: str, wanted: Any) -> Iterator[dict[str, Any]]:
    """A filter of LangGraph on one value: equal, a part of a mapping, or compared by operators."""
    if isinstance(wanted, Mapping) and any(str(one).startswith("$") for one in wanted):
        for operator, operand in wanted.items():
            if operator in ("$eq", "$ne"):
                equal = {"$and": list(_conditions(path, operand)) or [{}]}
                yield equal if operator == "$eq" else {"$not": equal}
            else:
                yield {path: {operator: operand}}
    elif isinstance(wanted, Mapping):
        yield {f"{path}{{}}": {"$exists": True}}
        for key, inner in wanted.items():
            yield from _conditions(f"{path}.{_step(str(key))}", inner)
    elif isinstance(wanted, list | tuple):
        yield {f"{path}[]": {"$eq": _written(wanted)}}
    elif wanted is None:
        there = [{one: {"$exists": True}} for one in (path, f"{path}[]", f"{path}{{}}")]
        yield {"$or": [{path: {"$eq": None}}, {"$not": {"$or": there}}]}
    else:
        yield {path: {"$eq": wanted}}


def _texts(value: Any) -> Iterator[str]:
    """Every text and number in a value, in its order."""
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _matches(namespace: Namespace, condition: MatchCondition) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(part, path, strict=True))
