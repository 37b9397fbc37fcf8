"""What chat models behind an HTTP API share: the errors of this seam, and the text of an answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from homing.errors import ChatError, EmbeddingError, InvalidArgument, InvalidKey
from homing.http import JsonApi
from homing.secret import Secret

MAX_ANSWER = 16 * 1024 * 1024
CAUSES = frozenset(
    {"INVALID_KEY", "MODEL_UNKNOWN", "RATE_LIMITED", "TIMEOUT", "PROVIDER_UNAVAILABLE", "MALFORMED_ANSWER"}
)


@contextmanager
def _as_chat_error() -> Iterator[None]:
    try:
        yield
    except EmbeddingError as error:
        cause = error.code if error.code in CAUSES else "REFUSED"
        if error.details.pop("broke_off", False):
            cause = "PROVIDER_UNAVAILABLE"
        raise ChatError(error.message, details={"cause": cause, **error.details}) from error


class HttpChat:
    """What the chat models behind an HTTP API share; a subclass knows the wire format. Safe from several threads.

    Raises only ChatError; its `details["cause"]` says what went wrong: INVALID_KEY, MODEL_UNKNOWN, RATE_LIMITED,
    TIMEOUT, PROVIDER_UNAVAILABLE, MALFORMED_ANSWER, REFUSED. The key is in no message and no repr.
    """

    provider = ""
    example = "qwen-flash"

    def __init__(self, model: str, base_url: str, *, api_key: str, timeout: float) -> None:
        if not model.strip():
            raise InvalidArgument(f"{self.provider}: a chat model is needed, as in {self.example}")
        self._model = model
        try:
            key = Secret(api_key)
        except InvalidKey as error:
            raise InvalidArgument(f"{self.provider}: {error.message}") from None
        bearer = ("authorization", "Bearer ")
        self._api = JsonApi(
            self.provider, base_url, key_header=bearer, api_key=key, timeout=timeout, max_answer=MAX_ANSWER
        )
        if self._api.has_password:
            raise InvalidArgument(f"{self.provider}: base_url is http(s)://host[:port][/path], without a password")

    @property
    def id(self) -> str:
        """Provider and model."""
        return f"{self.provider}/{self._model}"

    def close(self) -> None:
        """Closes the connections."""
        self._api.close()

    def _post(self, path: str, body: Mapping[str, Any], deadline: float | None, *text: str | int) -> str:
        """The text that stands in the answer to a body, below these keys."""
        with _as_chat_error():
            answer = self._api.post(path, body, deadline=deadline)
        try:
            for step in text:
                answer = answer[step]
        except (KeyError, IndexError, TypeError):
            answer = None
        if not isinstance(answer, str) or not answer.strip():
            raise ChatError(f"{self.id}: the answer has no text", details={"cause": "MALFORMED_ANSWER"})
        return answer

    def _lines(self, path: str, body: Mapping[str, Any], deadline: float | None) -> Iterator[str]:
        """The lines of a streamed answer as they come; see `JsonApi.lines`."""
        with _as_chat_error():
            yield from self._api.lines(path, body, deadline=deadline)

    def _event(self, line: str) -> dict[str, Any]:
        """One piece of a streamed answer."""
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict):
            raise self._malformed_piece()
        if "error" in event:
            raise self._broken_off()
        return event

    def _broken_off(self) -> ChatError:
        """The error for an answer that ends before its end."""
        return ChatError(f"{self.id}: the answer broke off; ask again", details={"cause": "PROVIDER_UNAVAILABLE"})

    def _malformed_piece(self) -> ChatError:
        return ChatError(
            f"{self.id}: a piece of the answer is not what it should be", details={"cause": "MALFORMED_ANSWER"}
        )
