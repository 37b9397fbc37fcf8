"""The embedding model that runs here: no server, no key, no download."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import numpy as np

from homing.embedders.model_folder import BUNDLED, TOKENIZER, ModelFolder
from homing.embedders.provider import Kind, checked_texts
from homing.errors import EmbeddingError, InvalidArgument, ModelNotReady
from homing.vectors import Matrix, Scale, normalise

if TYPE_CHECKING:
    from onnxruntime import InferenceSession  # type: ignore[import-untyped]
    from tokenizers import Tokenizer

logger = logging.getLogger(__name__)

MAX_TOKENS = 1024
"""A run of so many tokens keeps the integer units busy; larger ones only take more memory."""
MIN_TOKENS = 64
"""Below this a run is bound by reading the weights, so texts are not spread over workers any thinner."""

FIRST_WINDOW = 4096
"""Characters of a long text that are tokenised first; more only while they do not fill the model's window."""
MAX_WORD = 100
"""A longer word is one unknown piece, so a window that ends inside a word is wrong about at most so many pieces."""
TEXTS_AT_ONCE = 4096
"""How many texts are tokenised before they are embedded: enough that most have a neighbour of their length."""
SENTENCE_MARKS = "。！？；.!?;"
"""A text that is read in several windows is cut behind one of these."""
PRODUCT = (
    b'\x08\x08:\xd6\x01\n\x18\n\x01a\n\x01w\x12\x01y"\rMatMulInteger\x12\x01p*\x8c\x01\x08\x08\x08\x10\x10\x03B\x01wJ\x80\x01'
    + b"\x7f" * 128
    + b"Z\x13\n\x01a\x12\x0e\n\x0c\x08\x02\x12\x08\n\x02\x08\x04\n\x02\x08\x08"
    + b"b\x13\n\x01y\x12\x0e\n\x0c\x08\x06\x12\x08\n\x02\x08\x04\n\x02\x08\x10B\x04\n\x00\x10\x11"
)
"""An ONNX graph: y = MatMulInteger(a, w), a of 4 x 8 bytes without sign, w of 8 x 16 times 127."""


def plan_batches(lengths: Sequence[int], *, workers: int = 1) -> list[list[int]]:
    """Groups positions of equal length, longest first, in batches small enough that every worker gets some.

    Every position occurs exactly once, and a batch exceeds MAX_TOKENS only when it is a single text. Longest first, so
    that workers that share the list end at about the same time.
    """
    tokens = min(MAX_TOKENS, max(MIN_TOKENS, sum(lengths) // workers))
    by_length: dict[int, list[int]] = {}
    for position, length in enumerate(lengths):
        by_length.setdefault(length, []).append(position)
    batches: list[list[int]] = []
    for length in sorted(by_length, reverse=True):
        positions = by_length[length]
        size = max(1, tokens // max(1, length))
        batches.extend(positions[start : start + size] for start in range(0, len(positions), size))
    return batches


@dataclass(frozen=True, slots=True)
class TokenIds:
    """The ids of one text from [CLS] to [SEP], and whether the text goes on beyond them."""

    ids: list[int]
    truncated: bool


def token_ids(tokenizer: Tokenizer, texts: Sequence[str], *, most: int) -> list[TokenIds]:
    """The ids of each text, at most `most` of them; all cores share the work.

    A text of a megabyte costs no more than its first few thousand characters, unless they hold next to no tokens.
    """
    # Like the tokenizer itself, not loaded before the first text.
    from homing.text.decoding import without_surrogates

    texts = [without_surrogates(text) for text in texts]
    found: list[list[int]] = [[] for _ in texts]
    waiting, window = list(range(len(texts))), FIRST_WINDOW
    while waiting:
        encodings = tokenizer.encode_batch_fast([texts[position][:window] for position in waiting])
        for position, encoding in zip(waiting, encodings, strict=True):
            found[position] = encoding.ids
        waiting = [
            position for position in waiting if len(texts[position]) > window and len(found[position]) < most + MAX_WORD
        ]
        window *= 2
    return [_cut(ids, most) for ids in found]


def windows(ids: list[int], most: int, *, ends: Set[int] = frozenset()) -> list[list[int]]:
    """The ids in as few runs as hold at most `most` each, every one from [CLS] to [SEP].

    About equally long, and cut behind one of `ends`, the ids that end a sentence, wherever one lies in reach: the
    halves of a sentence say less than the whole.
    """
    if len(ids) <= most:
        return [ids]
    first, *inner, last = ids
    room = most - 2
    count = -(-len(inner) // room)
    cuts = [0]
    for left in range(count - 1, 0, -1):
        goal = cuts[-1] + (len(inner) - cuts[-1]) // (left + 1)
        reach = range(max(cuts[-1] + 1, len(inner) - room * left), min(cuts[-1] + room, len(inner) - 1) + 1)
        cuts.append(min((at for at in reach if inner[at - 1] in ends), key=lambda at: abs(at - goal), default=goal))
    return [[first, *inner[start:end], last] for start, end in itertools.pairwise([*cuts, len(inner)])]


def _cut(ids: list[int], most: int) -> TokenIds:
    if len(ids) <= most:
        return TokenIds(ids, truncated=False)
    return TokenIds([*ids[: most - 1], ids[-1]], truncated=True)


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

    in_process = True

    def __init__(self, path: Path | None = None, *, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise InvalidArgument(f"threads must be at least 1; got {threads}")
        self._path = BUNDLED if path is None else Path(path)
        self._threads = threads or _usable_cores()
        self._lock = Lock()
        self._loaded: _Loaded | None = None

    @cached_property
    def _folder(self) -> ModelFolder:
        return ModelFolder.read(self._path)

    @cached_property
    def id(self) -> str:
        """`local/<model>@<dimensions>`; from a model's second version on, `local/<model>:<version>@<dimensions>`."""
        return self._folder.identity

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

    def with_threads(self, threads: int) -> LocalProvider:
        """The same model with another bound; it is loaded for itself."""
        return LocalProvider(self._path, threads=threads)

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
        tokenizer = self._model().tokenizer
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            yield token_ids(tokenizer, texts[start : start + TEXTS_AT_ONCE], most=self.max_tokens)

    def _fill(self, rows: Matrix, texts: list[TokenIds]) -> None:
        window = self._folder.window
        if all(len(text.ids) <= window for text in texts):
            self._compute(rows, [text.ids for text in texts])
            return
        tokenizer = self._model().tokenizer
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
        session = self._model().session
        try:
            rows: Matrix = session.run(None, {"ids": np.array(ids, dtype=np.int64)})[0]
        except Exception as error:
            raise EmbeddingError(f"{self.id}: the model failed on {len(ids)} texts: {error}") from error
        return rows

    def _model(self) -> _Loaded:
        with self._lock:
            if self._loaded is None:
                self._loaded = _shared(self._folder)
                logger.info("Loaded local embedding model: %s", self._folder.name)
            return self._loaded


@dataclass(frozen=True, eq=False)
class _Loaded:
    """A model in memory. Providers of one folder share it, for as long as one of them lives."""

    tokenizer: Tokenizer
    session: InferenceSession


_loaded: WeakValueDictionary[tuple[object, ...], _Loaded] = WeakValueDictionary()
_loading = Lock()


def _shared(folder: ModelFolder) -> _Loaded:
    # A fork loads its own: threads do not live on in it.
    key = (os.getpid(), *folder.stamp())
    with _loading:
        found = _loaded.get(key)
        if found is None:
            found = _loaded[key] = _load(folder)
        return found


def _load(folder: ModelFolder) -> _Loaded:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(folder.file(TOKENIZER)))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        session = open_session(folder.graph(), exact=not products_are_exact())
    except ModelNotReady:
        raise
    except Exception as error:
        raise ModelNotReady(f"cannot load the model in {folder.path}: {error}") from error
    return _Loaded(tokenizer, session)


def open_session(graph: bytes | Path, *, exact: bool = False) -> InferenceSession:
    """A graph ready to run in the calling thread; `exact` chooses kernels that cannot overflow on any processor."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    if exact:
        options.add_session_config_entry("session.x64quantprecision", "1")
    source = graph if isinstance(graph, bytes) else str(graph)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


@cache
def products_are_exact() -> bool:
    """Whether onnxruntime multiplies bytes exactly here by default.

    x86 processors older than 8-bit dot products (VNNI) add pairs of products in 16 bits, which overflow, and the switch
    to exact kernels would slow newer ones down: so a product that overflows is tried, in about a millisecond.
    """
    [found] = open_session(PRODUCT).run(None, {"a": np.full((4, 8), 255, np.uint8)})
    exact = bool((found == 8 * 255 * 127).all())
    if not exact:
        logger.info("This processor has no exact 8-bit products; using a slower kernel that has them")
    return exact


def _usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
