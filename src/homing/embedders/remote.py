"""What all remote providers share: preparing texts, splitting them into requests, and checking what comes back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, ClassVar, TypedDict

import numpy as np

from homing.embedders.provider import Kind, checked_texts
from homing.embedders.window import cut_to_tokens, estimate_tokens
from homing.errors import DimensionMismatch, InvalidArgument, MalformedAnswer
from homing.http import JsonApi
from homing.secret import Secret
from homing.text.decoding import without_surrogates
from homing.vectors import Matrix, Scale

BLANK = "."
"""Sent in place of a text without a visible character, which these APIs refuse."""
_INVISIBLE = " \t\r\n\x0b\x0c\x00\xa0\u3000\u200b\u200c\u200d\u2060\ufeff"


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """What is known of a model before it is asked: its own width, and how many tokens of a text it reads."""

    dimensions: int
    max_tokens: int


@dataclass(frozen=True, slots=True)
class RemoteApi:
    """What is known of an API before it is asked. The first of `models` is the one that is used where none is named.

    A request holds at most so many `texts` and `tokens`, and so many `requests` are under way at once. `window` is what
    a model reads that is not in the list. Whether the API cuts a long text itself (`server_cuts`) or refuses it decides
    who cuts it.
    """

    name: str
    base_url: str
    models: Mapping[str, RemoteModel]
    texts: int
    tokens: int
    requests: int = 4
    key_header: tuple[str, str] = ("authorization", "Bearer ")
    timeout: float = 10.0
    window: int = 8191
    server_cuts: bool = False


class RemoteOptions(TypedDict, total=False):
    """What every remote provider takes beside its model."""

    api_key: str | Secret
    base_url: str | None
    dimensions: int | None
    max_tokens: int | None
    timeout: float | None
    proxy: str | None
    scale: Scale | None


class RemoteProvider(ABC):
    """A provider behind an HTTP API; a subclass knows the wire format. Keeps the promises of EmbeddingProvider.

    What is None is the API's own. `timeout` bounds one request, in seconds. `truncated` goes by an estimate of the
    tokens that rather counts too many.
    """

    api: ClassVar[RemoteApi]

    def __init__(
        self,
        model: str | None = None,
        *,
        api_key: str | Secret = "",
        base_url: str | None = None,
        dimensions: int | None = None,
        max_tokens: int | None = None,
        timeout: float | None = None,
        proxy: str | None = None,
        scale: Scale | None = None,
    ) -> None:
        api = self.api
        self._model = next(iter(api.models)) if model is None else self._model_key(model)
        known = api.models.get(self._model)
        if not self._model.strip():
            raise InvalidArgument(f"{api.name}: a model is needed; known are {', '.join(sorted(api.models))}")
        if dimensions is None:
            if known is None:
                raise InvalidArgument(f"{api.name}: the width of {self._model!r} is not known here; pass dimensions=…")
            dimensions = known.dimensions
        if dimensions < 1:
            raise InvalidArgument(f"{api.name}: dimensions is at least 1; got {dimensions}")
        self._width = dimensions
        self._max_tokens = max_tokens or (known.max_tokens if known else api.window)
        self._scale = scale
        self._http = JsonApi(
            api.name,
            self._server(api.base_url if base_url is None else base_url),
            key_header=api.key_header,
            api_key=Secret(api_key),
            timeout=api.timeout if timeout is None else timeout,
            proxy=proxy,
        )

    @property
    def id(self) -> str:
        """`provider/model@dimensions`."""
        return f"{self.api.name}/{self._model}@{self._width}"

    @property
    def dimensions(self) -> int:
        """Width of every row."""
        return self._width

    @property
    def scale(self) -> Scale | None:
        """The scale that was passed in."""
        return self._scale

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} at {self._http.base_url}>"

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        """One row per text, in as few requests as the API's limits allow."""
        batches = self._split([self._prepared(text) for text in checked_texts(texts)])
        if not batches:
            return np.empty((0, self._width), dtype=np.float32)
        if len(batches) == 1 or self.api.requests == 1:
            return np.concatenate([self._rows_of(batch, kind) for batch in batches])
        return np.concatenate(self._in_parallel(batches, kind))

    def truncated(self, texts: Sequence[str]) -> list[bool]:
        """For each text, whether it is longer than the model's window by estimate."""
        return [estimate_tokens(without_surrogates(text)) > self._max_tokens for text in checked_texts(texts)]

    def close(self) -> None:
        """Closes the connections. The provider may still be used and then opens new ones."""
        self._http.close()

    @abstractmethod
    def _ask(self, texts: list[str], kind: Kind) -> Sequence[Any]:
        """Sends one request; the rows of its answer as they came, in the order of the texts."""

    def _model_key(self, model: str) -> str:
        """The model as this API names it."""
        return model

    def _server(self, base_url: str) -> str:
        """The address below which this API lies."""
        return base_url

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
        if not self.api.server_cuts:
            text = cut_to_tokens(text, self._max_tokens)
        return text if text.strip(_INVISIBLE) else BLANK

    def _split(self, texts: list[str]) -> list[list[str]]:
        batches: list[list[str]] = []
        room = 0
        for text in texts:
            size = estimate_tokens(text)
            if not batches or len(batches[-1]) == self.api.texts or size > room:
                batches.append([])
                room = self.api.tokens
            batches[-1].append(text)
            room -= size
        return batches

    def _in_parallel(self, batches: list[list[str]], kind: Kind) -> list[Matrix]:
        with ThreadPoolExecutor(min(self.api.requests, len(batches)), thread_name_prefix=self.id) as threads:
            answers = [threads.submit(self._rows_of, batch, kind) for batch in batches]
            try:
                # Whichever fails first, not the first of the list that does.
                for answer in as_completed(answers):
                    answer.result()
                return [answer.result() for answer in answers]
            except BaseException:
                # What has not been sent need not be sent any more.
                threads.shutdown(wait=False, cancel_futures=True)
                raise

    def _rows_of(self, batch: list[str], kind: Kind) -> Matrix:
        rows = self._ask(batch, kind)
        if len(rows) != len(batch):
            raise MalformedAnswer(f"{self.id}: asked for {len(batch)} vectors, got {len(rows)}")
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
