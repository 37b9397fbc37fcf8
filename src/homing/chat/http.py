"""One request to a chat API: JSON out, JSON in, a deadline, and the error of this seam."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx2

from homing.errors import ChatError, InvalidArgument

CONNECT_SECONDS = 5.0
MAX_QUOTE = 300
MASK = "**********"
CAUSES = {400: "REFUSED", 401: "INVALID_KEY", 403: "INVALID_KEY", 404: "MODEL_UNKNOWN", 408: "TIMEOUT", 422: "REFUSED"}
CAUSES[429] = "RATE_LIMITED"


class ChatApi:
    """Posts JSON below one base URL. Safe to use from several threads.

    `timeout` bounds a whole request, a shorter `deadline` that one. Raises only ChatError; its `details["cause"]` says
    what went wrong: INVALID_KEY, MODEL_UNKNOWN, RATE_LIMITED, TIMEOUT, PROVIDER_UNAVAILABLE, MALFORMED_ANSWER, REFUSED.
    The key is in no message and no repr, even where the other side quotes it. The environment is not read.
    """

    def __init__(self, name: str, base_url: str, *, api_key: str, timeout: float) -> None:
        key = api_key.strip()
        if not (key.isascii() and key.isprintable()):
            raise InvalidArgument(f"{name}: the API key holds characters that no key has; copy it again")
        if timeout <= 0:
            raise InvalidArgument(f"{name}: timeout is in seconds and positive; got {timeout:g}")
        try:
            self._base = httpx2.URL(base_url.strip().rstrip("/"))
        except httpx2.InvalidURL as error:
            raise InvalidArgument(f"{name}: base_url is not a URL") from error
        if self._base.scheme not in ("http", "https") or not self._base.host or self._base.userinfo or self._base.query:
            raise InvalidArgument(f"{name}: base_url is http(s)://host[:port][/path], without a password or a query")
        self._who = f"{name} at {self._base}"
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self._key = key
        self._timeout = timeout
        self._opening = threading.Lock()
        self._client: httpx2.Client | None = None

    def __repr__(self) -> str:
        return f"ChatApi({self._who!r})"

    def post(self, path: str, body: Mapping[str, Any], *, deadline: float | None = None) -> Any:
        """The parsed answer to a JSON body."""
        seconds = min(self._timeout, self._timeout if deadline is None else deadline)
        if seconds <= 0:
            raise self._error(f"no time left to ask ({seconds:g} s)", "TIMEOUT")
        status, content = self._send(path, body, seconds)
        if status != 200:
            raise self._refusal(status, content)
        try:
            return json.loads(content)
        except ValueError:
            raise self._error(
                f"the answer is not JSON ({len(content)} bytes); check base_url", "MALFORMED_ANSWER"
            ) from None

    def close(self) -> None:
        """Closes the connections; the next request opens new ones."""
        with self._opening:
            if self._client is not None:
                self._client.close()
                self._client = None

    def lines(self, path: str, body: Mapping[str, Any], *, deadline: float | None = None) -> Iterator[str]:
        """The lines of a streamed answer as they come, without the blank ones.

        A long answer may take long: `timeout` bounds the wait for each piece, and only a `deadline` the whole.
        """
        seconds = min(self._timeout, self._timeout if deadline is None else deadline)
        if seconds <= 0:
            raise self._error(f"no time left to ask ({seconds:g} s)", "TIMEOUT")
        end = None if deadline is None else time.monotonic() + deadline
        rest = b""
        with self._answer(path, body, seconds) as response:
            if response.status_code != 200:
                raise self._refusal(response.status_code, response.read())
            for chunk in response.iter_bytes():
                if end is not None and time.monotonic() > end:
                    raise self._error(f"the answer took longer than {deadline:g} s", "TIMEOUT")
                # Split here: the client's own lines also end at signs that are part of a text, such as U+2028.
                *whole, rest = (rest + chunk).split(b"\n")
                yield from (line.decode(errors="replace") for line in whole if line.strip())
        if rest.strip():
            yield rest.decode(errors="replace")

    def _send(self, path: str, body: Mapping[str, Any], seconds: float) -> tuple[int, bytes]:
        end = time.monotonic() + seconds
        with self._answer(path, body, seconds) as response:
            content = b""
            for chunk in response.iter_bytes():
                content += chunk
                if time.monotonic() > end:
                    raise self._error(f"the answer took longer than {seconds:g} s", "TIMEOUT")
            return response.status_code, content

    @contextmanager
    def _answer(self, path: str, body: Mapping[str, Any], seconds: float) -> Iterator[httpx2.Response]:
        limits = httpx2.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))
        url = f"{self._base}/{path}"
        try:
            with self._open().stream("POST", url, json=body, headers=self._headers, timeout=limits) as response:
                yield response
        except httpx2.TimeoutException as error:
            raise self._error(f"no answer within {seconds:g} s", "TIMEOUT") from error
        except httpx2.HTTPError as error:
            raise self._error(
                f"cannot be reached: {error}; is it running, is the address right?", "PROVIDER_UNAVAILABLE"
            ) from error

    def _open(self) -> httpx2.Client:
        # Made at the first request: reading the certificates takes longer than anything else in a start.
        with self._opening:
            if self._client is None:
                self._client = httpx2.Client(trust_env=False)
            return self._client

    def _refusal(self, status: int, content: bytes) -> ChatError:
        said = " ".join(content.decode(errors="replace").split())[:MAX_QUOTE]
        cause = CAUSES.get(status, "PROVIDER_UNAVAILABLE" if status >= 500 else "REFUSED")
        advice = {"INVALID_KEY": "; set a valid key for this provider", "MODEL_UNKNOWN": "; check model and base_url"}
        return self._error(f"answered {status}{advice.get(cause, '')}: {said}", cause, status)

    def _error(self, what: str, cause: str, status: int | None = None) -> ChatError:
        text = f"{self._who} {what}"
        details = {"cause": cause} if status is None else {"cause": cause, "status": status}
        return ChatError(text.replace(self._key, MASK) if self._key else text, details=details)


class HttpChat:
    """What the chat models behind an HTTP API share; a subclass knows the wire format."""

    provider = ""
    example = "qwen-flash"

    def __init__(self, model: str, base_url: str, *, api_key: str, timeout: float) -> None:
        if not model.strip():
            raise InvalidArgument(f"{self.provider}: a chat model is needed, as in {self.example}")
        self._model = model
        self._api = ChatApi(self.provider, base_url, api_key=api_key, timeout=timeout)

    @property
    def id(self) -> str:
        """Provider and model."""
        return f"{self.provider}/{self._model}"

    def close(self) -> None:
        """Closes the connections."""
        self._api.close()

    def _text(self, answer: Any, *path: str | int) -> str:
        """The text that stands at a path in an answer."""
        try:
            for step in path:
                answer = answer[step]
        except (KeyError, IndexError, TypeError):
            answer = None
        if not isinstance(answer, str) or not answer.strip():
            raise ChatError(f"{self.id}: the answer has no text", details={"cause": "MALFORMED_ANSWER"})
        return answer

    def _event(self, line: str) -> dict[str, Any]:
        """One piece of a streamed answer."""
        try:
            event = json.loads(line)
        except ValueError:
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
