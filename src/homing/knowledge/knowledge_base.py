"""One user's knowledge base."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from homing.embedders.chosen import provider_for
from homing.embedders.provider import EmbeddingProvider
from homing.embedders.whole import embed_whole
from homing.engine.search import HybridOptions, search
from homing.errors import EmbeddingError, ModelMismatch, NotFound
from homing.files import FileText, Limits, read_file
from homing.files.progress import to_nobody
from homing.knowledge.chunks import chunks
from homing.knowledge.file_name import file_name
from homing.knowledge.kept_file import FileInfo, KeptFile, kept_file, new_version, newest
from homing.knowledge.prompt import prompt_block
from homing.knowledge.shelf import remember_user, shelf_of
from homing.records import Retrieved, VectorRecord
from homing.stores.store import MAX_LIMIT, Store

log = logging.getLogger(__name__)

BATCH = 64
"""Chunks embedded together: enough to fill the model's batches, few enough to show progress."""

Progress = Callable[[int, int], None]
"""Called with how many pages of a PDF are read, and how many there are; then with chunks that are embedded likewise."""


@dataclass(frozen=True, slots=True)
class Uploaded:
    """What an upload did. `unchanged` means that the file was there already, with the same text."""

    file: FileInfo
    replaced: bool = False
    unchanged: bool = False
    notes: tuple[str, ...] = ()


class KnowledgeBase:
    """The files of one user, searched by meaning and by words.

    It reaches nothing of any other user. A file replaces the one of its name in one step: whoever searches meanwhile,
    and whatever is left of a process that was killed, has the old one or the new one. Safe to use from several threads
    and processes.
    """

    def __init__(
        self,
        user_id: str | int,
        *,
        store: Store,
        embedder: EmbeddingProvider | None,
        options: HybridOptions | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.user_id = user_id
        self._root = store
        self._shelf = shelf_of(store, user_id)
        self._embedder = embedder
        self._options = options or HybridOptions()
        self._limits = limits

    def upload(
        self,
        source: str | os.PathLike[str] | bytes,
        filename: str | None = None,
        *,
        progress: Progress | None = None,
    ) -> Uploaded:
        """Read a file (txt, md, pdf, docx, xlsx, epub) and keep its passages; one of the same name is replaced.

        Raises FileUnreadable for a file that cannot be read, and keeps what was there. While the model is down the
        passages are found by words; they get their vectors with the next upload that finds it up again.
        """
        name = file_name(filename if filename is not None else "" if isinstance(source, bytes) else os.fspath(source))
        read = read_file(source, name, limits=self._limits, progress=progress or to_nobody)
        known = newest(self._versions()).get(name)
        fresh, records = _cut(read, self._shelf.chunks)
        if known is not None and known.digest == fresh.digest and known.info.embedded:
            return Uploaded(known.info, unchanged=True, notes=read.notes)
        if not any(True for _ in self._shelf.store.records(self._shelf.files)):
            remember_user(self._root, self.user_id)
        kept, replaced = self._replace(fresh, records, progress)
        if kept.info.embedded:
            self.embed_waiting()
        return Uploaded(kept.info, replaced=replaced, notes=read.notes)

    def search(
        self,
        query: str,
        *,
        limit: int = 5,
        min_similarity: float | None = 0.3,
        files: Sequence[str] | None = None,
    ) -> Retrieved:
        """The passages that a question is about, best first; metadata has `fileName`, `part`, `chunk`, `start`, `end`.

        `min_similarity` concerns what is found by meaning; `files` narrows to files by name. When one leg fails the
        other answers and the answer says so; raises RetrievalFailed when both do.
        """
        options = replace(
            self._options,
            fusion="rrf",
            limit=limit,
            min_score=min_similarity,
            depth=min(limit * 2, MAX_LIMIT),
            metadata_filter={} if files is None else {"fileName": [file_name(one) for one in files]},
        )
        if files is not None and not files:
            return Retrieved((), "hybrid")
        return search(query, self._shelf.chunks, store=self._shelf.store, embedder=self._embedder, options=options)

    def prompt(self, query: str, *, limit: int = 5, min_similarity: float | None = 0.3) -> str:
        """What a question is about, as the block that goes into a prompt."""
        return prompt_block(self.search(query, limit=limit, min_similarity=min_similarity))

    def list(self) -> Sequence[FileInfo]:
        """The files, by name."""
        kept = newest(self._versions())
        return [kept[name].info for name in sorted(kept)]

    def delete(self, filename: str) -> FileInfo:
        """Remove a file and all of its passages. Raises NotFound."""
        name = file_name(filename)
        versions = self._versions()
        found = newest(versions).get(name)
        if found is None:
            raise NotFound(
                f"there is no file {name} in this knowledge base; its list tells the names", details={"fileName": name}
            )
        self._shelf.store.upsert(self._retired([one for one in versions if one.info.name == name]))
        self._sweep()
        return found.info

    def embed_waiting(self, *, progress: Progress | None = None) -> int:
        """Give vectors to files that were uploaded while there was no model; returns how many files got theirs."""
        done = 0
        for one in newest(self._versions()).values():
            if one.info.embedded:
                continue
            embedded, _ = self._embed(self._shelf.store.get(self._shelf.chunks, one.chunk_ids), progress)
            # Replaced or deleted meanwhile: its chunks are not to come back.
            if embedded is None or newest(self._versions()).get(one.info.name) != one:
                continue
            now = replace(one, info=replace(one.info, embedded=True))
            self._shelf.store.upsert([*embedded, now.record(self._shelf.files)])
            done += 1
        return done

    def _versions(self) -> Sequence[KeptFile]:
        return [kept_file(record) for record in self._shelf.store.records(self._shelf.files)]

    def _replace(
        self, fresh: KeptFile, records: Sequence[VectorRecord], progress: Progress | None
    ) -> tuple[KeptFile, bool]:
        while True:
            embedded, model = self._embed(records, progress)
            kept = replace(fresh, info=replace(fresh.info, embedded=embedded is not None))
            before = [one for one in self._versions() if one.info.name == fresh.info.name]
            try:
                # One call, all or nothing. What is replaced loses its text and vectors in the same call.
                self._shelf.store.upsert(
                    [*(embedded or records), kept.record(self._shelf.files), *self._retired(before)]
                )
            except ModelMismatch:
                # The collection may have changed its model while the chunks were being embedded.
                if self._shelf.store.model_of(self._shelf.chunks) in ("", model):
                    raise
                continue
            self._sweep()
            return kept, any(not one.gone for one in before)

    def _retired(self, versions: Sequence[KeptFile]) -> Sequence[VectorRecord]:
        """What replaces files and chunks that are to go: records that no search can find."""
        return [
            record
            for one in versions
            if not one.gone
            for record in (
                replace(one, gone=True).record(self._shelf.files),
                *(VectorRecord(chunk, self._shelf.chunks, None) for chunk in one.chunk_ids),
            )
        ]

    def _sweep(self) -> None:
        """Delete what was retired, here or by a process that was killed, and what another upload has overtaken."""
        versions = self._versions()
        kept = {one.version for one in newest(versions).values()}
        swept = [one for one in versions if one.version not in kept]
        if swept:
            self._shelf.store.delete(self._shelf.chunks, [chunk for one in swept for chunk in one.chunk_ids])
            self._shelf.store.delete(self._shelf.files, [one.version for one in swept])

    def _embed(
        self, records: Sequence[VectorRecord], progress: Progress | None
    ) -> tuple[Sequence[VectorRecord] | None, str]:
        """The records with their vectors, and the model that made them; None while there is no model."""
        if self._embedder is None:
            return None, ""
        made = []
        try:
            embedder = provider_for(self._embedder, self._shelf.store.model_of(self._shelf.chunks))
            if progress is not None:
                progress(0, len(records))
            for start in range(0, len(records), BATCH):
                batch = records[start : start + BATCH]
                rows = embed_whole(embedder, [one.text for one in batch])
                made += [replace(one, embedding=row, model=embedder.id) for one, row in zip(batch, rows, strict=True)]
                if progress is not None:
                    progress(len(made), len(records))
        except EmbeddingError as error:
            log.warning("keeping %d chunks without vectors, the model is not available: %s", len(records), error)
            return None, ""
        return made, embedder.id


def _cut(read: FileText, collection: str) -> tuple[KeptFile, Sequence[VectorRecord]]:
    """A file as it will be kept, and its chunks without vectors."""
    cut = chunks(read.text)
    kept = new_version(read, cut, embedded=False)
    records = [
        VectorRecord(
            one_id,
            collection,
            None,
            {
                "fileName": kept.info.name,
                "part": read.part_at(chunk.start),
                "chunk": number,
                "start": chunk.start,
                "end": chunk.end,
            },
            chunk.text,
        )
        for number, (one_id, chunk) in enumerate(zip(kept.chunk_ids, cut, strict=True))
    ]
    return kept, records
