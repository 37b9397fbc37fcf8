"""What all remote providers share: preparing texts, splitting them into requests, and checking what comes back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from homing.embedders.http import JsonApi
from homing.embedders.provider import Kind
from homing.embedders.texts import checked_texts, without_surrogates
from homing.embedders.window import cut_to_tokens, estimate_tokens
from homing.errors import DimensionMismatch, InvalidArgument, MalformedAnswer
from homing.vectors import Matrix, Scale

BLANK = "."
"""Sent in place of a text without a visible character, which these APIs refuse."""
DEFAULT_MAX_TOKENS = 8191
"""The window of a model that is not known here; what OpenAI's models read."""
_INVISIBLE = " \t\r\n\x0b\x0c\x00\xa0\u3000\u200b\u200c\u200d\u2060\ufeff"


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """What is known of a model before it is asked: its own width, and how many tokens of a text it reads."""

    dimensions: int
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may hold, and how many requests may be under way at once."""

    texts: int
    tokens: int
    requests: int = 4


class RemoteProvider(ABC):
    """A provider behind an HTTP API; a subclass knows the wire format. Keeps the promises of EmbeddingProvider.

    Whether the API cuts a long text itself (`server_cuts`) or refuses it decides who cuts it here; `truncated` goes by
    an estimate of the tokens that rather counts too many.
    """

    server_cuts = False

    def __init__(
        self,
        name: str,
        model: str,
        *,
        api: JsonApi,
        known: Mapping[str, RemoteModel],
        dimensions: int | None,
        max_tokens: int | None,
        limits: Limits,
        scale: Scale | None,
    ) -> None:
        if not model.strip():
            raise InvalidArgument(f"{name}: a model is needed; known are {', '.join(sorted(known))}")
        if dimensions is None and model not in known:
            raise InvalidArgument(f"{name}: the width of {model!r} is not known here; pass dimensions=…")
        self._model = model
        self._width = known[model].dimensions if dimensions is None else dimensions
        if self._width < 1:
            raise InvalidArgument(f"{name}: dimensions is at least 1; got {self._width}")
        self._max_tokens = max_tokens or (known[model].max_tokens if model in known else DEFAULT_MAX_TOKENS)
        self._name = name
        self._api = api
        self._limits = limits
        self._scale = scale

    @property
    def id(self) -> str:
        """`provider/model@dimensions`."""
        return f"{self._name}/{self._model}@{self._width}"

    @property
    def dimensions(self) -> int:
        """Width of every row."""
        return self._width

    @property
    def scale(self) -> Scale | None:
        """The scale that was passed in."""
        return self._scale

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} at {self._api.base_url}>"

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        """One row per text, in as few requests as the API's limits allow."""
        batches = self._split([self._prepared(text) for text in checked_texts(texts)])
        if not batches:
            return np.empty((0, self._width), dtype=np.float32)
        if len(batches) == 1 or self._limits.requests == 1:
            return np.concatenate([self._rows_of(batch, kind) for batch in batches])
        return np.concatenate(self._in_parallel(batches, kind))

    def truncated(self, texts: Sequence[str]) -> list[bool]:
        """For each text, whether it is longer than the model's window by estimate."""
        return [estimate_tokens(without_surrogates(text)) > self._max_tokens for text in checked_texts(texts)]

    def close(self) -> None:
        """Closes the connections. The provider may still be used and then opens new ones."""
        self._api.close()

    @abstractmethod
    def _ask(self, texts: list[str], kind: Kind) -> Sequence[Any]:
        """Sends one request; the rows of its answer as they came, in the order of the texts."""

    def _list_in(self, answer: Any, name: str) -> list[Any]:
        """The list of that name in an answer."""
        found = answer.get(name) if isinstance(answer, dict) else None
        if not isinstance(found, list):
            raise MalformedAnswer(f"{self.id}: the answer has no list {name!r}")
        return found

    def _in_order(self, items: list[Any], *, index: str) -> list[Any]:
        """The embeddings of items that carry their place, in the order of their places."""
        try:
            by_place = {item[index]: item["embedding"] for item in items}
            return [by_place[place] for place in range(len(items))]
        except (KeyError, TypeError) as error:
            raise MalformedAnswer(f"{self.id}: the embeddings of the answer are not numbered from 0") from error

    def _prepared(self, text: str) -> str:
        text = without_surrogates(text)
        if not self.server_cuts:
            text = cut_to_tokens(text, self._max_tokens)
        return text if text.strip(_INVISIBLE) else BLANK

    def _split(self, texts: list[str]) -> list[list[str]]:
        batches: list[list[str]] = []
        room = 0
        for text in texts:
            size = estimate_tokens(text)
            if not batches or len(batches[-1]) == self._limits.texts or size > room:
                batches.append([])
                room = self._limits.tokens
            batches[-1].append(text)
            room -= size
        return batches

    def _in_parallel(self, batches: list[list[str]], kind: Kind) -> list[Matrix]:
        with ThreadPoolExecutor(min(self._limits.requests, len(batches)), thread_name_prefix=self.id) as threads:
            answers = [threads.submit(self._rows_of, batch, kind) for batch in batches]
            try:
                return [answer.result() for answer in answers]
            except BaseException:
                # What has not been sent need not be sent any more.
                threads.shutdown(wait=False, cancel_futures=True)
                raise

    def _rows_of(self, batch: list[str], kind: Kind) -> Matrix:
        return self._checked(self._ask(batch, kind), len(batch))

    def _checked(self, rows: Sequence[Any], count: int) -> Matrix:
        if len(rows) != count:
            raise MalformedAnswer(f"{self.id}: asked for {count} vectors, got {len(rows)}")
        widths = {len(row) if isinstance(row, list) else -1 for row in rows}
        if -1 in widths:
            raise MalformedAnswer(f"{self.id}: an embedding in the answer is not a list of numbers")
        if widths != {self._width}:
            actual = min(widths - {self._width})
            raise DimensionMismatch(
                f"{self.id}: got vectors of {actual} dimensions where {self._width} are configured; "
                "set dimensions to what the model gives",
                details={"expected": self._width, "actual": actual},
            )
        try:
            matrix = np.asarray(rows, dtype=np.float64)
        except (ValueError, TypeError, OverflowError) as error:
            raise MalformedAnswer(f"{self.id}: an embedding in the answer is not a list of numbers") from error
        lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix)) if np.isfinite(matrix).all() else np.zeros(1)
        if not (np.isfinite(lengths) & (lengths > 1e-12)).all():
            raise MalformedAnswer(f"{self.id}: an embedding in the answer is zero, infinite or not a number")
        return (matrix / lengths[:, np.newaxis]).astype(np.float32)
