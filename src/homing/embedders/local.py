"""The embedding model that runs here: no server, no key, no download."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from homing.embedders.batches import plan_batches
from homing.embedders.model_folder import BUNDLED, ModelFolder
from homing.embedders.provider import Kind
from homing.errors import EmbeddingError, InvalidArgument, ModelNotReady
from homing.vectors import Matrix, Scale

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

logger = logging.getLogger(__name__)

FIRST_WINDOW = 4096
"""Characters of a long text that are tokenised first; more only while they do not fill the model's window."""
LONGEST_WORD = 100
"""Beyond so many characters a word is one unknown piece, so a cut inside a word can cost no more pieces than this."""


class LocalProvider:
    """Embeds with a model folder on this machine; without a path, with the model that ships inside the package.

    Keeps every promise of EmbeddingProvider; the row of a text is the same alone, in any batch, in any order and with
    any number of threads. Nothing is loaded before the first use or `load()`.
    """

    def __init__(self, path: Path | None = None, *, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise InvalidArgument(f"threads must be at least 1; got {threads}")
        self._path = BUNDLED if path is None else path
        self._threads = threads or _usable_cores()
        self._lock = Lock()
        self._loaded: tuple[Tokenizer, InferenceSession] | None = None

    @cached_property
    def _folder(self) -> ModelFolder:
        return ModelFolder.read(self._path)

    @property
    def id(self) -> str:
        """`local/<model>@<dimensions>`."""
        return f"local/{self._folder.name}@{self._folder.dimensions}"

    @property
    def dimensions(self) -> int:
        """Width of every row."""
        return self._folder.dimensions

    @property
    def scale(self) -> Scale | None:
        """The scale that was fitted when the model was exported."""
        return self._folder.scale

    @property
    def max_tokens(self) -> int:
        """How many tokens of a text are read."""
        return self._folder.max_tokens

    def load(self) -> None:
        """Loads the model now rather than at the first `embed`. Raises ModelNotReady."""
        self._model()

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        """One row per text; queries and documents are embedded alike."""
        tokenizer, session = self._model()
        ids = [row[: self.max_tokens] for row in self._tokenise(tokenizer, texts)]
        rows = np.empty((len(ids), self.dimensions), dtype=np.float32)
        for batch in plan_batches([len(row) for row in ids]):
            rows[batch] = self._run(session, [ids[position] for position in batch])
        return rows

    def truncated(self, texts: Sequence[str]) -> list[bool]:
        """For each text, whether it is longer than `max_tokens`."""
        tokenizer, _ = self._model()
        return [len(row) > self.max_tokens for row in self._tokenise(tokenizer, texts)]

    def _run(self, session: InferenceSession, ids: list[list[int]]) -> Matrix:
        try:
            rows: Matrix = session.run(None, {"ids": np.array(ids, dtype=np.int64)})[0]
        except Exception as error:
            raise EmbeddingError(f"{self.id}: the model failed on {len(ids)} texts: {error}") from error
        return rows

    def _tokenise(self, tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, at least as many as the model reads where the text has them, ended by [SEP]."""
        ids: list[list[int]] = [[] for _ in texts]
        waiting, window = list(range(len(texts))), FIRST_WINDOW
        texts = [_clean(text) for text in texts]
        while waiting:
            found = tokenizer.encode_batch_fast([texts[position][:window] for position in waiting])
            for position, encoding in zip(waiting, found, strict=True):
                ids[position] = encoding.ids
            waiting = [
                position
                for position in waiting
                if len(texts[position]) > window and len(ids[position]) < self.max_tokens + LONGEST_WORD
            ]
            window *= 2
        end = tokenizer.token_to_id("[SEP]")
        for row in ids:
            if len(row) > self.max_tokens:
                row[self.max_tokens - 1] = end
        return ids

    def _model(self) -> tuple[Tokenizer, InferenceSession]:
        with self._lock:
            if self._loaded is None:
                self._loaded = _load(self._folder, self._threads)
                logger.info("Loaded local embedding model: %s", self._folder.name)
            return self._loaded


def _load(folder: ModelFolder, threads: int) -> tuple[Any, Any]:
    import onnxruntime
    from tokenizers import Tokenizer

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    try:
        tokenizer = Tokenizer.from_buffer(folder.tokenizer())
        session = onnxruntime.InferenceSession(folder.graph(), options, providers=["CPUExecutionProvider"])
    except ModelNotReady:
        raise
    except Exception as error:
        raise ModelNotReady(f"cannot load the model in {folder.path}: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer, session


def _clean(text: str) -> str:
    """The text as Unicode can write it: halves of a surrogate pair are joined, lone ones replaced."""
    if not isinstance(text, str):
        raise InvalidArgument(f"texts to embed are strings; got {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
