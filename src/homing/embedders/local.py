"""The embedding model that runs here: no server, no key, no download."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from homing.embedders.batches import plan_batches
from homing.embedders.model_folder import BUNDLED, FIRST_VERSION, Check, ModelFolder
from homing.embedders.provider import Kind
from homing.embedders.texts import checked_texts
from homing.embedders.token_ids import TokenIds, token_ids, windows
from homing.errors import EmbeddingError, InvalidArgument, ModelNotReady
from homing.vectors import Matrix, Scale, normalise

if TYPE_CHECKING:
    from onnxruntime import InferenceSession  # type: ignore[import-untyped]
    from tokenizers import Tokenizer

logger = logging.getLogger(__name__)

TEXTS_AT_ONCE = 4096
"""How many texts are tokenised before they are embedded: enough that most have a neighbour of their length."""
SENTENCE_MARKS = "。！？；.!?;"
"""A text that is read in several windows is cut behind one of these."""
MIN_SAME_COSINE = 0.9995
"""Cosine above which two processors are said to compute the same; another order of additions alone stays above it."""


class LocalProvider:
    """Embeds with a model folder on this machine; without a path, with the model that ships inside the package.

    Keeps every promise of EmbeddingProvider; the row of a text is the same alone, in any batch, in any order and with
    any number of threads. Nothing is loaded before the first use or `load()`. `threads` bounds how many batches are
    computed at once; by default one for each core this process may use. A text longer than the model was taught to read
    at once is read in several windows, cut between sentences, and gets the direction that they share.

    Each batch is computed by one thread, and threads share batches rather than the products inside one: nothing waits
    at a barrier after every node, so two cores do twice and sixteen cores many times the work of one, and the sums of
    a row never depend on how many threads there are. A single short text takes about a millisecond on one core.
    """

    def __init__(self, path: Path | None = None, *, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise InvalidArgument(f"threads must be at least 1; got {threads}")
        self._path = BUNDLED if path is None else Path(path)
        self._threads = threads or _usable_cores()
        self._lock = Lock()
        self._loaded: tuple[Tokenizer, InferenceSession] | None = None

    @cached_property
    def _folder(self) -> ModelFolder:
        return ModelFolder.read(self._path)

    @property
    def id(self) -> str:
        """`local/<model>@<dimensions>`; from a model's second version on, `local/<model>:<version>@<dimensions>`."""
        version = "" if self._folder.version == FIRST_VERSION else f":{self._folder.version}"
        return f"local/{self._folder.name}{version}@{self._folder.dimensions}"

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
        """How many tokens of a text are read, in one window or several."""
        return self._folder.max_tokens

    def load(self) -> None:
        """Loads the model now rather than at the first `embed`. Raises ModelNotReady."""
        self._model()

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        """One row per text; queries and documents are embedded alike."""
        texts = checked_texts(texts)
        rows = np.empty((len(texts), self.dimensions), dtype=np.float32)
        start = 0
        for slice_of_texts in self._tokenised(texts):
            self._fill(rows[start : start + len(slice_of_texts)], slice_of_texts)
            start += len(slice_of_texts)
        return rows

    def truncated(self, texts: Sequence[str]) -> list[bool]:
        """For each text, whether it has more tokens than `max_tokens`."""
        return [text.truncated for part in self._tokenised(checked_texts(texts)) for text in part]

    def _tokenised(self, texts: list[str]) -> Iterator[list[TokenIds]]:
        tokenizer, _ = self._model()
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            yield token_ids(tokenizer, texts[start : start + TEXTS_AT_ONCE], most=self.max_tokens)

    def _fill(self, rows: Matrix, texts: list[TokenIds]) -> None:
        window = self._folder.window
        if all(len(text.ids) <= window for text in texts):
            self._compute(rows, [text.ids for text in texts])
            return
        tokenizer, _ = self._model()
        ends = {end for mark in SENTENCE_MARKS if (end := tokenizer.token_to_id(mark)) is not None}
        cut = [windows(text.ids, window, ends=ends) for text in texts]
        read = np.empty((sum(map(len, cut)), self.dimensions), dtype=np.float32)
        self._compute(read, [ids for one in cut for ids in one])
        first = 0
        for position, one in enumerate(cut):
            last = first + len(one)
            rows[position] = read[first] if len(one) == 1 else normalise([read[first:last].mean(axis=0)])[0]
            first = last

    def _compute(self, rows: Matrix, texts: list[list[int]]) -> None:
        batches = plan_batches([len(ids) for ids in texts], workers=self._threads)

        def compute(batch: list[int]) -> None:
            rows[batch] = self._run([texts[position] for position in batch])

        workers = min(self._threads, len(batches))
        if workers == 1:
            for batch in batches:
                compute(batch)
        else:
            with ThreadPoolExecutor(workers, thread_name_prefix="homing-embed") as pool:
                list(pool.map(compute, batches))

    def _run(self, ids: list[list[int]]) -> Matrix:
        _, session = self._model()
        try:
            rows: Matrix = session.run(None, {"ids": np.array(ids, dtype=np.int64)})[0]
        except Exception as error:
            raise EmbeddingError(f"{self.id}: the model failed on {len(ids)} texts: {error}") from error
        return rows

    def _model(self) -> tuple[Tokenizer, InferenceSession]:
        with self._lock:
            if self._loaded is None:
                self._loaded = _load(self._folder)
                logger.info("Loaded local embedding model: %s", self._folder.name)
            return self._loaded


def _load(folder: ModelFolder) -> tuple[Tokenizer, InferenceSession]:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_buffer(folder.tokenizer())
        tokenizer.no_truncation()
        tokenizer.no_padding()
        graph = folder.graph()
        session = open_session(graph)
        if not _agrees(folder.check, tokenizer, session):
            logger.info("This processor has no exact 8-bit products; using a slower kernel that has them")
            session = open_session(graph, exact=True)
    except ModelNotReady:
        raise
    except Exception as error:
        raise ModelNotReady(f"cannot load the model in {folder.path}: {error}") from error
    return tokenizer, session


def open_session(graph: bytes, *, exact: bool = False) -> InferenceSession:
    """A graph ready to run in the calling thread; `exact` chooses kernels that cannot overflow on any processor."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    if exact:
        options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def _agrees(check: Check | None, tokenizer: Tokenizer, session: InferenceSession) -> bool:
    """Whether this processor computes what the exporting one did.

    x86 processors older than 8-bit dot products (VNNI) add pairs of products in 16 bits, which can overflow, and
    onnxruntime's switch to its exact kernels would halve the speed of newer ones: so the model itself is asked.
    """
    if check is None:
        return True
    [row] = session.run(None, {"ids": np.array([tokenizer.encode(check.text).ids], dtype=np.int64)})[0]
    return float(row @ np.array(check.vector, dtype=np.float32)) > MIN_SAME_COSINE


def _usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
