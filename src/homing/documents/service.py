"""Documents that can be searched while they are being written."""

from __future__ import annotations

from collections.abc import Callable, Container
from pathlib import Path
from typing import Any

from homing.database import Transaction
from homing.documents import archive
from homing.documents.archive import Row
from homing.documents.folders import Imported, import_folder
from homing.documents.layout import WINDOWS, Stored, utf16_length
from homing.documents.records import (
    Chunk,
    DocumentInfo,
    DocumentKind,
    ProjectInfo,
    followed_folder,
    namespace_of,
)
from homing.documents.reindexing import Reindexed, Reindexer, disagreements
from homing.documents.searching import Offsets, Packed, Query, RagConfig, Searcher, pack, read_config, update_config
from homing.documents.uploading import FileInfo, Source, Uploaded, Uploader
from homing.documents.writing import Saved, SourceFile, Writer, missing
from homing.engine import Engine
from homing.engine.engine import check_transactional
from homing.engine.search import HybridOptions
from homing.engine.work import IMPORT, INTERACTIVE
from homing.errors import InvalidArgument, StoreError
from homing.files import Limits
from homing.progress import IsCanceled, Progress, never, no_progress
from homing.records import Mode, Retrieved
from homing.stores.arguments import checked_name, checked_text

SETTLE = 1.0
"""Seconds that an edited paragraph rests before it is embedded, so that typing in it does not embed every letter."""


class DocumentService:
    """Projects of documents, searched by paragraph.

    Everything is in the database and the store of the engine; paragraphs are records of one collection. What was saved
    is found by its words when `save` returns, and by its meaning a moment later. With an `owner` they are the documents
    of somebody else than the engine's user, and nothing of anybody's else is reached.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        owner: str | None = None,
        hybrid: HybridOptions | None = None,
        settle: float = SETTLE,
        limits: Limits | None = None,
    ) -> None:
        check_transactional(engine.store, "documents")
        engine.database.migrate(archive.COMPONENT, archive.STEPS)
        self._engine = engine
        self._database = engine.database
        self._own = namespace_of(engine, owner)
        self._closed = False
        self._limits = limits
        self._writer = Writer(engine, self._own, settle=settle)
        self._uploader = Uploader(engine, self._own, self._writer)
        self._reindexer = Reindexer(engine, self._own)
        self._searcher = Searcher(engine, self._own, hybrid or HybridOptions())

    def save(self, project: str, document: str, text: str, *, priority: int = INTERACTIVE) -> Saved:
        """Keep the text of a document; returns when it is durable and its words are found.

        It is compared with the text before it, paragraph by paragraph; only what says something new is embedded, in the
        background, after it has rested for a moment. A `priority` of `IMPORT` lets what people type go first.
        """
        _check(project, document)
        checked_text(text, "the text of a document")
        self._check_open()
        return self._writer.save(project, document, text, priority=priority)

    def upload(
        self,
        source: Source,
        filename: str | None = None,
        *,
        limits: Limits | None = None,
        progress: Progress | None = None,
        canceled: IsCanceled = never,
    ) -> Uploaded:
        """Read a file (txt, md, pdf, docx, xlsx, epub) and keep it as a document of the project `uploads`.

        It is cut into windows that overlap, and named by its file name; one of that name is replaced, in one step.
        Returns when it is embedded, or the model fails: then it is found by words, and embedded when the model is back.
        Raises FileUnreadable for a file that cannot be read, and keeps what was there. `canceled` ends the reading.
        """
        self._check_open()
        return self._uploader.upload(source, filename, limits or self._limits, progress or no_progress, canceled)

    def uploads(self) -> list[FileInfo]:
        """The files that were uploaded, by name."""
        return self._uploader.files()

    def embed_uploads(self, progress: Progress | None = None) -> int:
        """Embed now what waits of them; returns how many files are complete that were not."""
        return self._uploader.embed_waiting(progress or no_progress)

    def text(self, project: str, document: str) -> str:
        """The text as it was last saved. Raises NotFound."""
        _check(project, document)
        return self._database.read(
            lambda transaction: archive.text(transaction, self._row(transaction, project, document))
        )

    def parts(self, project: str, document: str) -> tuple[tuple[int, str], ...]:
        """Where the pages, sheets or chapters of an uploaded file begin in its text, by name. Raises NotFound."""
        _check(project, document)
        row = self._database.read(lambda transaction: self._row(transaction, project, document))
        return SourceFile.read(row.about).parts if row.about else ()

    def chunks(
        self, project: str, document: str, *, embeddings: bool = False, offsets: Offsets = "characters"
    ) -> list[Chunk]:
        """The paragraphs of a document in order; `offsets="utf-16"` counts as JavaScript does. Raises NotFound."""
        _check(project, document)

        def work(transaction: Transaction) -> tuple[Row, Stored, Container[str]]:
            row = self._row(transaction, project, document)
            lacking = self._engine.work.lacking(transaction, self._own.collection, f"{row.token}.")
            return row, archive.stored(transaction, row), lacking

        row, stored, lacking = self._database.read(work)
        placed = stored.placed()
        ids = [row.chunk_id(one.number) for one in placed]
        held = self._engine.store.get(self._own.collection, ids) if embeddings else []
        vectors = {one.id: one.embedding for one in held}
        length: Callable[[str], int] = utf16_length if offsets == "utf-16" else len
        at = start = 0
        chunks: list[Chunk] = []
        for one, chunk in zip(placed, ids, strict=True):
            text = stored.text[one.start : one.end]
            start, at = start + length(stored.text[at : one.start]), one.start
            place = (start, start + length(text), one.updated)
            chunks.append(Chunk(chunk, document, project, text, *place, chunk in lacking, vectors.get(chunk)))
        return chunks

    def chunk_ids(self, project: str) -> list[str]:
        """The ids of every chunk of a project, in the order of the store."""
        found = self._database.read(
            lambda transaction: transaction.rows(
                "SELECT c.id FROM document_chunks c JOIN documents d ON d.key = c.document "
                "WHERE c.user_id = $1 AND d.project = $2 ORDER BY c.id",
                self._own.owner,
                project,
            )
        )
        return [chunk for (chunk,) in found]

    def projects(self) -> list[ProjectInfo]:
        """What there is, by name."""
        counts = self._waiting()

        def work(transaction: Transaction) -> list[ProjectInfo]:
            pending: dict[str, int] = {}
            for project, token in transaction.rows(
                "SELECT project, token FROM documents WHERE user_id = $1 AND token = ANY($2)",
                self._own.owner,
                list(counts),
            ):
                pending[project] = pending.get(project, 0) + counts[token]
            found = transaction.rows(
                "SELECT project, count(*), sum(chunks) FROM documents WHERE user_id = $1 GROUP BY project "
                "ORDER BY project",
                self._own.owner,
            )
            return [ProjectInfo(name, count, int(chunks), pending.get(name, 0)) for name, count, chunks in found]

        return self._database.read(work)

    def documents(self, project: str) -> list[DocumentInfo]:
        """The documents of a project, by name; none where there is no such project."""
        checked_name(project, "project")
        counts = self._waiting()
        found = self._database.read(
            lambda transaction: transaction.rows(
                "SELECT id, characters, chunks, token, updated, cut, about FROM documents "
                "WHERE user_id = $1 AND project = $2 ORDER BY id",
                self._own.owner,
                project,
            )
        )
        saved: DocumentKind = "file" if followed_folder(project) else "text"
        return [
            DocumentInfo(
                *(name, project, characters, chunks, counts.get(token, 0), updated),
                kind="upload" if cut == WINDOWS else saved,
                format=SourceFile.read(about).format if cut == WINDOWS else "",
            )
            for name, characters, chunks, token, updated, cut, about in found
        ]

    def delete(self, project: str, document: str) -> bool:
        """Delete a document with everything that was made of it; whether there was one."""
        _check(project, document)
        self._check_open()
        return self._writer.delete(project, document)

    def delete_project(self, project: str) -> int:
        """Delete every document of a project, one after the other; returns how many there were."""
        return sum(self.delete(project, one.id) for one in self.documents(project))

    def rename(self, project: str, document: str, new: str) -> None:
        """Give a document another name. Its chunks keep their ids and nothing is embedded.

        Raises NotFound, and InvalidArgument where there is a document of the new name.
        """
        self._place(project, document, project, new)

    def move(self, project: str, document: str, to_project: str) -> None:
        """Take a document to another project, under the name it has. Its chunks keep their ids; nothing is embedded.

        Raises NotFound, and InvalidArgument where the other project has a document of that name.
        """
        self._place(project, document, to_project, document)

    def search(
        self,
        project: str | None,
        query: str,
        *,
        mode: Mode = "hybrid",
        top_k: int = 20,
        min_score: float | None = None,
        offset: int = 0,
        document: str | None = None,
        offsets: Offsets = "characters",
    ) -> Retrieved:
        """The paragraphs that a query is about, the best first; of all projects where that is None.

        `offset` pages through them. `min_score` concerns meaning only. When the model cannot answer, keywords do: then
        `degraded` is true and `notice` says so. A hit's metadata has `document_id`, `project_id`, `start_offset`,
        `end_offset`, `updated_at`, `pending` (its vector is still to come), `snippet` with `snippet_highlights` inside
        it, `highlights` in the document, and of an uploaded file the `part` (page). In keyword mode, what stands in
        quotes ("…", “…”, 「…」) is a phrase.
        """
        if project is not None:
            checked_name(project, "project")
        return self._searcher.search(Query(project, query, mode, top_k, min_score, offset, document, offsets))

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
        found = self.search(project, query, mode="semantic", top_k=config.top_k, min_score=config.min_score)
        return pack(found, config.max_tokens)

    def config(self) -> RagConfig:
        """The defaults of `retrieve`."""
        return read_config(self._database, self._own.owner)

    def update_config(self, **changes: Any) -> RagConfig:
        """Change some of the defaults of `retrieve` (top_k, min_score, max_tokens); they are kept."""
        return update_config(self._database, self._own.owner, changes)

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
        if project is None or document is None:
            rows = self._database.read(lambda transaction: archive.rows(transaction, self._own.owner, project))
        else:
            _check(project, document)
            rows = [self._database.read(lambda transaction: self._row(transaction, project, document))]
        return self._reindexer.run(
            rows,
            sweep=document is None,
            batch_size=batch_size,
            progress=progress or no_progress,
            cancelled=cancelled or (lambda: False),
        )

    def check(self) -> list[str]:
        """What does not agree between the documents and the index, a sentence each; `Store.check` looks inside of that.

        Reads everything but the vectors.
        """
        return list(disagreements(self._database, self._engine.store, self._own))

    def import_folder(self, project: str, folder: str | Path, progress: Progress | None = None) -> Imported:
        """Save every text file below a folder (md, txt, docx, epub, pdf …), named by its path there.

        Files that did not change cost nothing; one that cannot be read is left out and told. Embedding goes on in the
        background, behind what people type. `progress` hears how many files are done, of how many.
        """
        checked_name(project, "project")

        def save(name: str, text: str) -> Saved:
            return self.save(project, name, text, priority=IMPORT)

        return import_folder(Path(folder), save, progress, self._limits)

    def waiting(self, project: str | None = None) -> int:
        """How many paragraphs wait for their vector: all, or those of a project."""
        return sum(one.pending for one in self.projects() if project in (None, one.id))

    def flush(self, timeout: float | None = None) -> bool:
        """Embed everything that waits now; whether nothing is left."""
        return self._engine.flush(timeout)

    def start(self) -> None:
        """Go on with what an earlier process left to embed. Saving starts this by itself."""
        self._engine.start()

    def close(self) -> None:
        """Take no more texts. What was saved is durable; the engine is closed by whoever opened it."""
        self._closed = True

    def _place(self, project: str, document: str, to_project: str, to_document: str) -> None:
        _check(project, document)
        _check(to_project, to_document)
        self._check_open()
        self._writer.place(project, document, to_project, to_document)

    def _waiting(self) -> dict[str, int]:
        """How many chunks wait for their vector, by the token of their document."""
        return self._engine.work.waiting_by_prefix(self._own.collection, archive.TOKEN)

    def _row(self, transaction: Transaction, project: str, document: str) -> Row:
        row = archive.find(transaction, self._own.owner, project, document)
        if row is None:
            raise missing(project, document)
        return row

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("the documents are closed; open the data folder again")


def _check(project: str, document: str) -> None:
    checked_name(project, "project")
    checked_name(document, "document")
