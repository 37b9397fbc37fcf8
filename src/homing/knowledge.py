"""A knowledge base for each user: files in, the passages that a question is about out.

It is the door to a user's uploads that specification 004 describes; the uploads themselves are documents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property

from homing.documents.records import COLLECTION as CHUNKS
from homing.documents.records import Namespace
from homing.documents.service import DocumentService
from homing.documents.uploading import PROJECT, FileInfo, Source, Uploaded, file_name
from homing.embedders.provider import EmbeddingProvider
from homing.engine import Engine, ModelsInUse
from homing.engine.engine import check_transactional
from homing.engine.search import HybridOptions, search
from homing.engine.source import as_models
from homing.errors import NotFound
from homing.files import Limits
from homing.progress import IsCanceled, Progress, never
from homing.records import Hit, Metadata, Retrieved
from homing.stores.arguments import checked_user
from homing.stores.store import MultiUserStore, Store

PLACE = ("part", "chunk", "start", "end")
"""What the metadata of a hit says, beside the name of the file."""
EMPTY = "暂无相关参考资料"
# A passage that looks like the heading of another one would pass for it.
_HEADING = re.compile(r"^(\s*)(#+\s*资料)", re.MULTILINE)


class KnowledgeBase:
    """The files of one user, searched by meaning and by words. It reaches nothing of any other user.

    Uploads are documents (`DocumentService.upload`), and this is another way to them: to those in the user's part of a
    store, or in a `namespace` that is theirs. Safe from several threads and processes. Without `documents`, which have
    a worker, texts are embedded in the calls that upload.
    """

    def __init__(
        self,
        user_id: str | int,
        *,
        store: Store,
        embedder: EmbeddingProvider | ModelsInUse | None,
        options: HybridOptions | None = None,
        limits: Limits | None = None,
        namespace: Namespace | None = None,
        documents: Callable[[], DocumentService] | None = None,
    ) -> None:
        user = checked_user(user_id)
        if namespace is None and isinstance(store, MultiUserStore):
            store, namespace = store.for_user(user), Namespace(user)
        self.user_id = user_id
        self._store = store
        self._own = namespace or Namespace(user, f"{CHUNKS}:{user}")
        self._models = as_models(embedder)
        self._options = options or HybridOptions()
        self._limits = limits
        self._open = documents or self._own_documents

    @cached_property
    def _documents(self) -> DocumentService:
        # Opened when it is needed: a search fails by its legs, whatever else may be wrong with the store.
        return self._open()

    def _own_documents(self) -> DocumentService:
        check_transactional(self._store, "uploads")
        user = self._store.user_id if isinstance(self._store, MultiUserStore) else ""
        return DocumentService(Engine(self._store, self._models, user=user, background=False), owner=self._own.owner)

    def upload(
        self,
        source: Source,
        filename: str | None = None,
        *,
        progress: Progress | None = None,
        canceled: IsCanceled = never,
    ) -> Uploaded:
        """Read a file (txt, md, pdf, docx, xlsx, epub) and keep its passages; see `DocumentService.upload`."""
        return self._documents.upload(source, filename, limits=self._limits, progress=progress, canceled=canceled)

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
        if files is not None and not files:
            return Retrieved((), "hybrid")
        named = {} if files is None else {"document": [file_name(one) for one in files]}
        options = replace(
            self._options,
            limit=limit,
            min_score=min_similarity,
            metadata_filter={"project": PROJECT, **named},
        )
        found = search(query, self._own.collection, store=self._store, embedder=self._models, options=options)
        return found.with_hits([replace(hit, metadata=_place(hit)) for hit in found])

    def prompt(self, query: str, *, limit: int = 5, min_similarity: float | None = 0.3) -> str:
        """What a question is about, as the block that goes into a prompt."""
        return prompt_block(self.search(query, limit=limit, min_similarity=min_similarity))

    def list(self) -> Sequence[FileInfo]:
        """The files, by name."""
        return self._documents.uploads()

    def delete(self, filename: str) -> FileInfo:
        """Remove a file and all of its passages. Raises NotFound."""
        name = file_name(filename)
        found = next((one for one in self._documents.uploads() if one.name == name), None)
        if found is None or not self._documents.delete(PROJECT, name):
            raise NotFound(
                f"there is no file {name} in this knowledge base; list the files to see their names",
                details={"fileName": name},
            )
        return found

    def embed_waiting(self, *, progress: Progress | None = None) -> int:
        """Embed now what waits, as after the model was down; returns how many files are complete that were not."""
        return self._documents.embed_uploads(progress)


def _place(hit: Hit) -> Metadata:
    place = {name: hit.metadata[name] for name in PLACE if name in hit.metadata}
    return {"fileName": hit.metadata["document"], "part": "", **place}


def prompt_block(hits: Iterable[Hit]) -> str:
    """The passages under numbered headings, each with its similarity and its file; a sentence where there are none."""
    blocks = [_heading(number, hit) + "\n" + _HEADING.sub(r"\1\\\2", hit.text) for number, hit in enumerate(hits, 1)]
    return "\n\n".join(blocks) or EMPTY


def _heading(number: int, hit: Hit) -> str:
    # Without a vector leg there is no similarity to tell.
    near = "关键词匹配" if hit.score is None else f"相似度: {hit.score * 100:.1f}%"
    place = f" ({hit.metadata['part']})" if hit.metadata.get("part") else ""
    return f"### 资料 {number} [{near}] {hit.metadata.get('fileName', hit.id)}{place}"


__all__ = ["CHUNKS", "FileInfo", "KnowledgeBase", "Uploaded", "prompt_block"]
