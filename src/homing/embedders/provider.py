"""The seam between text and vectors, and the wrappers around it that leave the vectors as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, Protocol, runtime_checkable

from homing.errors import EmbeddingError, InvalidArgument, ModelNotReady, NotFound
from homing.vectors import Matrix, Scale

Kind = Literal["document", "query"]
"""What a text is for; some models embed a question differently from what answers it."""


@runtime_checkable
class EmbeddingProvider(Protocol):
    """Turns text into vectors.

    `embed` gives one unit-length float32 row per text, in order, `dimensions` wide; the same text gives the same row,
    alone or in a batch. No texts give a matrix of no rows. Texts longer than the model's window are cut at its end, and
    `truncated` says which. Safe to call from several threads. Raises only EmbeddingError (and InvalidArgument for
    input that is not text).
    """

    @property
    def id(self) -> str:
        """Identity of the vectors: `provider/model@dimensions`. Vectors of two identities are never compared."""

    @property
    def dimensions(self) -> int:
        """Width of every row."""

    @property
    def scale(self) -> Scale | None:
        """How a cosine of this model reads as a score; None where nobody fitted one."""

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        """One row per text."""

    def truncated(self, texts: Sequence[str]) -> list[bool]:
        """For each text, whether its end lies beyond what the model reads."""


def checked_texts(texts: Sequence[str]) -> list[str]:
    """The texts as a list. Refuses a bare string, which would be embedded letter by letter, and what is not text."""
    if isinstance(texts, str):
        raise InvalidArgument("texts to embed are a list of strings; got one string: put it in a list")
    for text in texts:
        if not isinstance(text, str):
            raise InvalidArgument(f"texts to embed are strings; got {type(text).__name__}")
    return list(texts)


class Wrapper:
    """A provider that is another one in everything it does not say otherwise."""

    def __init__(self, provider: EmbeddingProvider) -> None:
        self._provider = provider

    @property
    def wrapped(self) -> EmbeddingProvider:
        """The provider inside."""
        return self._provider

    @property
    def id(self) -> str:
        return self.wrapped.id

    @property
    def dimensions(self) -> int:
        return self.wrapped.dimensions

    @property
    def scale(self) -> Scale | None:
        return self.wrapped.scale

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        return self.wrapped.embed(texts, kind=kind)

    def truncated(self, texts: Sequence[str]) -> list[bool]:
        return self.wrapped.truncated(texts)

    def close(self) -> None:
        """Closes the wrapped provider where it can be closed."""
        if close := getattr(self.wrapped, "close", None):
            close()


def layers(provider: EmbeddingProvider) -> Iterator[EmbeddingProvider]:
    """A provider, what it wraps, what that wraps, and so on."""
    yield provider
    while isinstance(provider, Wrapper):
        provider = provider.wrapped
        yield provider


def is_in_process(provider: EmbeddingProvider) -> bool:
    """Whether a provider computes in this process and waits for nobody; one that cannot be had may be any."""
    try:
        return all(getattr(one, "in_process", isinstance(one, Wrapper)) for one in layers(provider))
    except EmbeddingError:
        return False


@runtime_checkable
class ChoosesModel(Protocol):
    """An embedder that can be asked for the model of another identity."""

    def for_model(self, identity: str) -> EmbeddingProvider:
        """The embedder of that identity; for an empty one, the default as it is now. Raises EmbeddingError."""


def provider_for(embedder: EmbeddingProvider, identity: str) -> EmbeddingProvider:
    """The embedder whose vectors belong with those of `identity`, which is empty where there are none yet.

    Whoever keeps an embedder asks this before each piece of work, and takes vectors and `id` from what it returns: the
    default may change between two calls. An embedder that cannot choose is returned as it is.
    """
    return embedder.for_model(identity) if isinstance(embedder, ChoosesModel) else embedder


class Chosen(Wrapper):
    """An embedder that stays what it was when it was chosen, and knows where the others are."""

    def __init__(self, provider: EmbeddingProvider, choose: Callable[[str], EmbeddingProvider]) -> None:
        super().__init__(provider)
        self._choose = choose

    def for_model(self, identity: str) -> EmbeddingProvider:
        """The embedder of that identity; for an empty one, the default as it is now."""
        return self._provider if identity == self._provider.id else self._choose(identity)


class MissingModel(Wrapper):
    """A provider whose files are missing: asking it for anything raises ModelNotReady, which says what to do.

    It looks for the model each time, so whoever keeps it need not be restarted once the model was fetched.
    """

    def __init__(self, find: Callable[[str], EmbeddingProvider]) -> None:
        self._find = find

    @property
    def wrapped(self) -> EmbeddingProvider:
        """The default as it is now."""
        return self.for_model("")

    def for_model(self, identity: str) -> EmbeddingProvider:
        """The embedder of that identity; for an empty one, the default as it is now."""
        try:
            return self._find(identity)
        except NotFound as error:
            raise ModelNotReady(error.message, details=error.details) from error

    def close(self) -> None:
        """Nothing is open here."""


class Calibrated(Wrapper):
    """The same provider, identity and vectors, with another scale."""

    def __init__(self, provider: EmbeddingProvider, scale: Scale) -> None:
        super().__init__(provider)
        self._scale = scale

    @property
    def scale(self) -> Scale:
        """The scale that was fitted."""
        return self._scale
