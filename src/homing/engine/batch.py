"""One batch: texts are read, embedded together by model, and put where they still say the same."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from homing import errors
from homing.embedders.provider import EmbeddingProvider
from homing.engine.source import ModelsInUse
from homing.engine.work import Item, Work
from homing.errors import HomingError
from homing.records import text_hash
from homing.stores.store import NewVector, Store
from homing.vectors import Matrix, normalise

log = logging.getLogger(__name__)

SURELY_SHORT = 128
"""Characters that every model's window holds; shorter texts need not be looked at."""

# Nothing is wrong with the texts when one of these comes back: they wait, for as long as it takes.
NOT_THE_TEXTS_FAULT = (
    errors.DimensionMismatch, errors.InvalidKey, errors.ModelNotReady, errors.ModelUnknown, errors.ProviderUnavailable,
    errors.RateLimited, errors.StoreError, errors.Timeout,
)  # fmt: skip
MAX_RETRY_AFTER = 300.0
"""Seconds that a provider may send us away for, at most."""


def embed_long(embedder: EmbeddingProvider, texts: Sequence[str]) -> Matrix:
    """One row per text, as `embed` gives it; a text beyond the model's window gets the direction its paragraphs share.

    Cut at the window, the second half of a page of Chinese could not be found by what it says.
    """
    long = [at for at, text in enumerate(texts) if len(text) > SURELY_SHORT]
    if not long or not any(beyond := embedder.truncated([texts[at] for at in long])):
        return embedder.embed(texts)
    from homing.text.paragraphs import paragraphs

    cut = {
        at: [one.text for one in paragraphs(texts[at])] for at, is_beyond in zip(long, beyond, strict=True) if is_beyond
    }
    pieces = [piece for at, text in enumerate(texts) for piece in cut.get(at) or [text]]
    rows = embedder.embed(pieces)
    whole = []
    first = 0
    for at in range(len(texts)):
        last = first + max(1, len(cut.get(at, ())))
        whole.append(rows[first:last].mean(axis=0))
        first = last
    return normalise(whole)


@dataclass(frozen=True, slots=True)
class Retries:
    """How failures are treated.

    A text that fails by itself is tried `attempts` times before it becomes a dead letter; waits between tries begin at
    `backoff` seconds and double, up to `max_backoff`.
    """

    attempts: int = 3
    backoff: float = 1.0
    max_backoff: float = 60.0


@dataclass
class Embedding:
    """Embeds batches for several threads, and remembers which models fail."""

    store: Store
    models: ModelsInUse
    work: Work
    retries: Retries
    _failures: Counter[str] = field(default_factory=Counter)

    def run(self, items: Sequence[Item]) -> None:
        """Give these texts their vectors; what fails is postponed, or given up. Raises only StoreError."""
        by_model: dict[str, list[Item]] = {}
        for one in items:
            by_model.setdefault(one.model or self.store.model_of(one.collection), []).append(one)
        by_provider: dict[str, tuple[EmbeddingProvider, list[Item]]] = {}
        for identity, part in by_model.items():
            try:
                provider = self.models.provider(identity)
                name = provider.id
            except HomingError as error:
                # A model that is down, or gone, is no reason for the texts of others to wait.
                self._postpone(part, error, identity)
                continue
            by_provider.setdefault(name, (provider, []))[1].extend(part)
        for provider, part in by_provider.values():
            self._process(part, provider)

    def _process(self, items: Sequence[Item], provider: EmbeddingProvider) -> None:
        try:
            self._embed(items, provider)
        except NOT_THE_TEXTS_FAULT as error:
            self._postpone(items, error, provider.id)
        except Exception as error:
            self._find_culprit(items, error, provider)
        else:
            self._failures.pop(provider.id, None)
            self.work.done(items)

    def _embed(self, items: Sequence[Item], provider: EmbeddingProvider) -> None:
        ids: dict[str, list[str]] = {}
        for one in items:
            ids.setdefault(one.collection, []).append(one.id)
        texts = [
            (collection, one, text)
            for collection, some in ids.items()
            for one, text in self.store.texts(collection, some, lacking=provider.id).items()
        ]
        if not texts:
            return
        # Checked before anything is put: vectors of a wrong width would shut the right ones out.
        rows = normalise(embed_long(provider, [text for _, _, text in texts]), dimensions=provider.dimensions)
        vectors: dict[str, list[NewVector]] = {}
        for (collection, name, text), row in zip(texts, rows, strict=True):
            vectors.setdefault(collection, []).append(NewVector(name, text_hash(text), row))
        for collection, made in vectors.items():
            self.store.put_vectors(collection, provider.id, made)

    def _postpone(self, items: Sequence[Item], error: HomingError, model: str) -> None:
        self._failures[model] += 1
        seconds = min(self.retries.backoff * 2 ** min(self._failures[model] - 1, 30), self.retries.max_backoff)
        seconds = max(seconds, min(getattr(error, "retry_after", None) or 0.0, MAX_RETRY_AFTER))
        # Said once while it lasts, not once for each batch or collection.
        level = logging.WARNING if self._failures[model] == 1 else logging.DEBUG
        log.log(
            level, "texts wait for their vectors until the model is back, and are found by words meanwhile: %s", error
        )
        self.work.postpone(items, f"{error.code}: {error}", seconds=seconds, counts=False)

    def _find_culprit(self, items: Sequence[Item], error: Exception, provider: EmbeddingProvider) -> None:
        if len(items) > 1:
            half = len(items) // 2
            self._process(items[:half], provider)
            self._process(items[half:], provider)
            return
        [alone] = items
        reason = f"{getattr(error, 'code', type(error).__name__)}: {error}"
        if alone.attempts + 1 >= self.retries.attempts:
            log.warning("giving up on embedding %s/%s: %s", alone.collection, alone.id, reason)
            self.work.dead_letter(alone, reason)
        else:
            seconds = self.retries.backoff * 2**alone.attempts
            self.work.postpone([alone], reason, seconds=seconds, counts=True)
