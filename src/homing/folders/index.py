"""Keeps an index of a folder's text files in step with the files, and searches it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from homing.embedders.chosen import provider_for
from homing.embedders.provider import EmbeddingProvider
from homing.engine.search import HybridOptions, search
from homing.errors import EmbeddingError, ModelMismatch, ModelNotReady, NotFound
from homing.folders.text_file import read_text, text_files
from homing.records import Retrieved, VectorRecord, text_hash
from homing.stores.store import Store
from homing.text.decoding import NotText
from homing.text.paragraphs import paragraphs

log = logging.getLogger(__name__)

PASSAGES = "folder.passages"
FILES = "folder.files"
BATCH = 256
"""Passages embedded and written together: enough to fill the model's batches, few enough to show progress."""

# A file written in the same instant as it was indexed may change again without its time stamp moving.
SETTLED_NS = 2_000_000_000

Progress = Callable[[int, int], None]
"""Called with how many files are done, and how many there are to do."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that could not be indexed, and why."""

    path: str
    reason: str


@dataclass(slots=True)
class Refreshed:
    """What bringing the index up to date did. `embedded` is false when the model was down and only keywords were."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    passages: int = 0
    embedded: bool = True
    skipped: list[Skipped] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Stamp:
    """What is remembered about a file, kept as the metadata of its record in `FILES`."""

    size: int
    mtime_ns: int
    seen_ns: int
    digest: str
    passages: int
    model: str

    def looks_unchanged(self, size: int, mtime_ns: int) -> bool:
        return (self.size, self.mtime_ns) == (size, mtime_ns) and mtime_ns + SETTLED_NS < self.seen_ns


@dataclass(frozen=True, slots=True)
class _Work:
    """A file to write: its passages, and the stamp that is written last, when all else is in place."""

    name: str
    stamp: _Stamp
    passages: Sequence[VectorRecord]
    before: int


class FolderIndex:
    """The paragraphs of the text files below a folder.

    `refresh` reads only files whose size or time changed and embeds only paragraphs whose text is new (given a caching
    embedder). It may be killed at any moment: what it had not finished it does again the next time.
    """

    def __init__(self, folder: Path, *, store: Store, embedder: EmbeddingProvider | None) -> None:
        if not folder.is_dir():
            raise NotFound(f"there is no folder {folder}; name a folder with .md or .txt files")
        self.folder = folder.resolve()
        self.store = store
        self.embedder = embedder

    def refresh(self, progress: Progress | None = None) -> Refreshed:
        """Make the index say what the files say now."""
        report = Refreshed()
        self._start_again_after_a_model_change()
        known = {record.id: _Stamp(**record.metadata) for record in self.store.records(FILES)}
        paths = {path.relative_to(self.folder).as_posix(): path for path in text_files(self.folder)}
        gone = [name for name in known if name not in paths]
        for name in gone:
            self._forget(name, known[name])
        report.removed = len(gone)
        done = 0
        for batch in _batches(self._changes(paths, known, report)):
            self._write(batch, report)
            done += len(batch)
            if progress is not None:
                progress(min(done + report.unchanged + len(report.skipped), len(paths)), len(paths))
        return report

    def search(self, query: str, options: HybridOptions | None = None) -> Retrieved:
        """The passages a query is about; metadata has `path`, `line`, `start` and `end` (character offsets)."""
        return search(query, PASSAGES, store=self.store, embedder=self.embedder, options=options)

    def _model(self) -> EmbeddingProvider | None:
        """What passages are embedded with: the model of those that are there, for as long as it can be had."""
        if self.embedder is None:
            return None
        try:
            return provider_for(self.embedder, self.store.model_of(PASSAGES))
        except ModelNotReady:
            return provider_for(self.embedder, "")

    def _start_again_after_a_model_change(self) -> None:
        embedder = self._model()
        model = embedder.id if embedder is not None else ""
        for info in self.store.collections():
            if info.name == PASSAGES and info.model and model and info.model != model:
                log.warning("the index was made by %s; making it again with %s", info.model, model)
                self.store.drop(FILES)
                self.store.drop(PASSAGES)

    def _changes(self, paths: dict[str, Path], known: dict[str, _Stamp], report: Refreshed) -> Iterator[_Work]:
        embedder = self._model()
        model = embedder.id if embedder is not None else ""
        for name, path in paths.items():
            stamp = known.get(name)
            # A stamp with a model says that the passages have vectors; of which model, the store knows.
            current = stamp if stamp is not None and (stamp.model or not model) else None
            try:
                stat = path.stat()
                if current is not None and current.looks_unchanged(stat.st_size, stat.st_mtime_ns):
                    report.unchanged += 1
                    continue
                seen = time.time_ns()
                text = read_text(path)
            except (NotText, OSError) as error:
                report.skipped.append(Skipped(name, str(error)))
                continue
            digest = text_hash(text)
            if current is not None and current.digest == digest:
                report.unchanged += 1
                touched = replace(current, size=stat.st_size, mtime_ns=stat.st_mtime_ns, seen_ns=seen)
                yield _Work(name, touched, (), current.passages)
                continue
            if stamp is None:
                report.added += 1
            else:
                report.changed += 1
            passages = _passages(name, text)
            fresh = _Stamp(stat.st_size, stat.st_mtime_ns, seen, digest, len(passages), model)
            yield _Work(name, fresh, passages, stamp.passages if stamp is not None else 0)

    def _write(self, batch: Sequence[_Work], report: Refreshed) -> None:
        records = [record for work in batch for record in work.passages]
        embedded = self._embed(records)
        report.passages += len(records)
        if embedded is None:
            report.embedded = False
        self._upsert(records, embedded)
        self.store.delete(
            PASSAGES, [one for work in batch for one in _ids(work.name, work.stamp.passages, work.before)]
        )
        # The stamps come last: a file counts as indexed only when everything about it is in place. Without its model's
        # name a file is taken up again by the next refresh, when the model may be back.
        stamps = [(work.name, work.stamp if embedded is not None else replace(work.stamp, model="")) for work in batch]
        self.store.upsert(VectorRecord(name, FILES, None, asdict(stamp)) for name, stamp in stamps)

    def _embed(self, records: Sequence[VectorRecord]) -> list[VectorRecord] | None:
        embedder = self._model()
        if embedder is None or not records:
            return list(records)
        try:
            rows = embedder.embed([record.text for record in records])
        except EmbeddingError as error:
            log.warning("indexing by keywords only, the model is not available: %s", error)
            return None
        model = embedder.id
        return [
            VectorRecord(record.id, PASSAGES, row, record.metadata, record.text, model)
            for record, row in zip(records, rows, strict=True)
        ]

    def _upsert(self, records: Sequence[VectorRecord], embedded: list[VectorRecord] | None) -> None:
        try:
            self.store.upsert(embedded if embedded is not None else records)
        except ModelMismatch:
            # The passages may have changed their model while these were being embedded.
            again = self._embed(records)
            self.store.upsert(again if again is not None else records)

    def _forget(self, name: str, stamp: _Stamp) -> None:
        self.store.delete(PASSAGES, _ids(name, 0, stamp.passages))
        self.store.delete(FILES, [name])


def _passages(name: str, text: str) -> list[VectorRecord]:
    records = []
    line, at = 1, 0
    for number, one in enumerate(paragraphs(text)):
        line += text.count("\n", at, one.start)
        at = one.start
        place = {"path": name, "line": line, "start": one.start, "end": one.end}
        records.append(VectorRecord(f"{name}#{number}", PASSAGES, None, place, one.text))
    return records


def _ids(name: str, start: int, stop: int) -> list[str]:
    return [f"{name}#{number}" for number in range(start, stop)]


def _batches(works: Iterable[_Work]) -> Iterator[list[_Work]]:
    batch: list[_Work] = []
    size = 0
    for work in works:
        batch.append(work)
        size += len(work.passages)
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
