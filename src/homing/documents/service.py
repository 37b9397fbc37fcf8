"""Documents that can be searched while they are being written."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from homing.buffer.embedding_buffer import BufferOptions, EmbeddingBuffer
from homing.database.sqlite import SqliteDatabase
from homing.documents.archive import Archive, Row, collection_of
from homing.documents.chunk import Chunk, DocumentInfo, ProjectInfo
from homing.documents.importing import Imported, import_folder
from homing.documents.layout import wide_characters
from homing.documents.reindexing import Progress, Reindexed, Reindexer
from homing.documents.retrieval import Packed, RagConfig, pack, read_config, update_config
from homing.documents.saved import Saved
from homing.documents.saver import Saver
from homing.documents.searching import Offsets, Query, Searcher
from homing.documents.writer import Writer
from homing.embedders.provider import EmbeddingProvider
from homing.engine.search import HybridOptions
from homing.errors import InvalidArgument, NotFound, StoreError, StoreReadOnly
from homing.records import Mode, Retrieved
from homing.stores.arguments import checked_name, checked_text
from homing.stores.store import Store

SETTLE = 1.0
"""Seconds that an edited paragraph rests before it is embedded, so that typing in it does not embed every letter."""
PATIENCE = 2.0
"""Seconds for which searches and lists wait for a text that was saved before them."""
CLOSING_SECONDS = 5.0
FINISHING_SECONDS = 30.0
"""Seconds that a batch under way may take to end when everything else is closed."""


class DocumentService:
    """Projects of documents, searched by paragraph.

    Texts and queue live in the SQLite file `database`; words and vectors live in `store`, whichever that is, in one
    collection per project. `save` returns at once; what it took is written and embedded in the background.
    """

    def __init__(
        self,
        *,
        database: str | Path,
        store: Store,
        embedder: EmbeddingProvider | None,
        hybrid: HybridOptions | None = None,
        buffering: BufferOptions | None = None,
        settle: float = SETTLE,
    ) -> None:
        self._database = SqliteDatabase(database)
        self._store = store
        self._closed = False
        self._archive = Archive(self._database)
        options = buffering or BufferOptions(batch_size=128, batch_seconds=0.2)
        self.buffer = EmbeddingBuffer(embedder, store, self._database, options)
        self._writer = Writer(self._archive, self.buffer, store, settle=settle)
        self._saver = Saver(lambda *text: self._writer.write(*text).changes, self._writer.finish_drops)
        self._reindexer = Reindexer(self._archive, self.buffer, store, embedder)
        self._searcher = Searcher(self._archive, self.buffer, store, embedder, hybrid or HybridOptions())

    def save(self, project: str, document: str, text: str) -> Saved:
        """Take the text of a document and return at once, however long it is.

        In the background it is compared with the text before it, paragraph by paragraph; only what says something new
        is embedded. `Saved` tells what changed.
        """
        _checked(project, document)
        checked_text(text, "the text of a document")
        if self._closed:
            raise StoreError("the documents are closed; open the data folder again")
        if self._database.read_only:
            raise StoreReadOnly(f"{self._database.path} was opened for reading only; make it and its folder writable")
        self.buffer.start()
        return self._saver.save(project, document, text)

    def text(self, project: str, document: str) -> str:
        """The text as it was last saved. Raises NotFound."""
        _checked(project, document)
        waiting = self._saver.text(project, document)
        if waiting is not None:
            return waiting
        with self._database.reading() as connection:
            return self._archive.text(connection, self._row(project, document, connection))

    def chunks(
        self, project: str, document: str, *, embeddings: bool = False, offsets: Offsets = "characters"
    ) -> list[Chunk]:
        """The paragraphs of a document in order; `offsets="utf-16"` counts as JavaScript does. Raises NotFound."""
        _checked(project, document)
        self._saver.settle(project, document)
        with self._database.reading() as connection:
            row = self._row(project, document, connection)
            stored = self._archive.stored(connection, row)
        text, placed = stored.text, stored.placed()
        ids = [row.chunk_id(one.number) for one in placed]
        collection = collection_of(project)
        waiting = self.buffer.waiting_of(collection, ids) if self.buffer.waiting(collection) else set()
        kept = {one.id: one.embedding for one in self._store.get(collection, ids)} if embeddings else {}
        at = units = 0
        chunks: list[Chunk] = []
        for one, chunk in zip(placed, ids, strict=True):
            start, end = one.start, one.end
            if offsets == "utf-16":
                units += one.start - at + wide_characters(text[at : one.start])
                start, at = units, one.start
                end = units + one.end - one.start + wide_characters(text[one.start : one.end])
            chunks.append(
                Chunk(
                    chunk,
                    document,
                    project,
                    text[one.start : one.end],
                    start,
                    end,
                    one.updated,
                    chunk in waiting,
                    kept.get(chunk),
                )
            )
        return chunks

    def projects(self) -> list[ProjectInfo]:
        """What there is, by name."""
        self._saver.settle(patience=PATIENCE)
        with self._database.reading() as connection:
            rows: list[tuple[Any, ...]] = connection.execute(
                "SELECT project, count(*), sum(chunks) FROM documents GROUP BY project ORDER BY project"
            ).fetchall()
        return [
            ProjectInfo(name, count, chunks, self.buffer.waiting(collection_of(name))) for name, count, chunks in rows
        ]

    def documents(self, project: str) -> list[DocumentInfo]:
        """The documents of a project, by name; none where there is no such project."""
        checked_name(project, "project")
        self._saver.settle(project, patience=PATIENCE)
        with self._database.reading() as connection:
            rows = self._archive.rows(connection, project)
        collection = collection_of(project)
        busy = self.buffer.waiting(collection) > 0
        return [
            DocumentInfo(
                row.id,
                project,
                row.characters,
                row.chunks,
                self.buffer.waiting(collection, f"{row.token}.") if busy else 0,
                row.updated,
            )
            for row in rows
        ]

    def delete(self, project: str, document: str) -> bool:
        """Delete a document with everything that was made of it; whether there was one."""
        _checked(project, document)
        return bool(self._remove(project, document))

    def delete_project(self, project: str) -> int:
        """Delete a project with everything in it; returns how many documents it had."""
        checked_name(project, "project")
        return len(self._remove(project, None))

    def search(
        self,
        project: str,
        query: str,
        *,
        mode: Mode = "semantic",
        top_k: int = 20,
        min_score: float | None = 0.55,
        offset: int = 0,
        document: str | None = None,
        offsets: Offsets = "characters",
    ) -> Retrieved:
        """The paragraphs that a query is about, the best first; `offset` pages through them.

        `min_score` concerns meaning only. When the model cannot answer, keywords do: then `degraded` is true and
        `notice` says so. A hit's metadata has `document_id`, `project_id`, `start_offset`, `end_offset`, `updated_at`,
        `pending` (its vector is still to come), `snippet` with `snippet_highlights` inside it, and `highlights` in the
        document. In keyword mode, what stands in quotes ("…", “…”, 「…」) is a phrase.
        """
        checked_name(project, "project")
        asked = Query(project, query, mode, top_k, min_score, offset, document, offsets)
        self._saver.settle(project, patience=PATIENCE)
        return self._searcher.search(asked)

    def retrieve(
        self,
        project: str,
        query: str,
        *,
        top_k: int | None = None,
        min_score: float | None = None,
        max_tokens: int | None = None,
    ) -> Packed:
        """The paragraphs to put into a prompt: the best that fit into `max_tokens`. Nothing found is no error.

        What is not given is as `config` says.
        """
        given = {"top_k": top_k, "min_score": min_score, "max_tokens": max_tokens}
        config = self.config().changed({name: value for name, value in given.items() if value is not None})
        found = self.search(project, query, top_k=config.top_k, min_score=config.min_score)
        return pack(found, config.max_tokens)

    def config(self) -> RagConfig:
        """The defaults of `retrieve`."""
        return read_config(self._database)

    def update_config(self, **changes: Any) -> RagConfig:
        """Change some of the defaults of `retrieve` (top_k, min_score, max_tokens); they are kept."""
        return update_config(self._database, changes)

    def reindex(
        self,
        project: str | None = None,
        *,
        document: str | None = None,
        batch_size: int = 128,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> Reindexed:
        """Bring the index in order with the documents, and return when it is.

        Chunks whose vector is missing, out of date or damaged are embedded, `batch_size` at a time; the others are not.
        Killed half-way, the next one goes on: only the batch that was under way is embedded again. `progress` hears how
        many chunks are in order, of how many; where `cancelled` says so it ends early, and what was done stays done.
        """
        if project is None and document is not None:
            raise InvalidArgument("a document is named without its project; name both")
        self._saver.settle(project, document)
        with self._database.reading() as connection:
            if project is not None and document is not None:
                _checked(project, document)
                rows = [self._row(project, document, connection)]
            else:
                rows = self._archive.rows(connection, project)
        return self._reindexer.run(
            rows,
            sweep=document is None,
            batch_size=batch_size,
            progress=progress or (lambda done, total: None),
            cancelled=cancelled or (lambda: False),
        )

    def import_folder(self, project: str, folder: str | Path, progress: Progress | None = None) -> Imported:
        """Save every text file below a folder (md, txt, docx, epub, pdf …), named by its path there.

        Files that did not change cost nothing; one that cannot be read is left out and told. Embedding goes on in the
        background. `progress` hears how many files are done, of how many.
        """
        checked_name(project, "project")
        return import_folder(Path(folder), lambda name, text: self.save(project, name, text).wait(), progress)

    def flush(self, timeout: float | None = None) -> bool:
        """Write and embed everything that waits now; whether nothing is left."""
        deadline = None if timeout is None else time.monotonic() + timeout
        written = self._saver.settle(timeout=timeout, again=True)
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        embedded = self.buffer.flush(left)
        self._writer.finish_drops()
        return embedded and written

    def start(self) -> None:
        """Go on with what an earlier process left to embed. Saving starts this by itself."""
        self._saver.start()
        self.buffer.start()

    def close(self, timeout: float | None = CLOSING_SECONDS) -> int:
        """Write what was saved, embed for as long as there is time, and let go; returns how many vectors are missing.

        Those are made when the folder is opened and written to again, or by `start`. Closing twice is fine.
        """
        if self._closed:
            return 0
        self._closed = True
        self._saver.close(None)
        left = self.buffer.stop(timeout, grace=FINISHING_SECONDS)
        self._database.close()
        return left

    def _remove(self, project: str, document: str | None) -> set[str]:
        removed = self._saver.forget(project, document) | self._writer.remove(project, document)
        self.buffer.start()
        self._saver.start()
        return removed

    def _row(self, project: str, document: str, connection: Any) -> Row:
        row = self._archive.find(connection, project, document)
        if row is None:
            raise NotFound(
                f"there is no document {document!r} in project {project!r}",
                details={"project": project, "document": document},
            )
        return row


def _checked(project: str, document: str) -> None:
    checked_name(project, "project")
    checked_name(document, "document")
