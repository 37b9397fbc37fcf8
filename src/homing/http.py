"""One HTTP client for every remote API: JSON out, JSON in, and our errors for whatever is not a plain answer."""

from __future__ import annotations

import json
import math
import re
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2

from homing.errors import (
    EmbeddingError,
    InvalidArgument,
    InvalidKey,
    MalformedAnswer,
    ModelUnknown,
    ProviderUnavailable,
    RateLimited,
    TextTooLong,
    Timeout,
)
from homing.secret import MASK, Secret

CONNECT_SECONDS = 5.0
"""Who cannot be reached in this time is unreachable, however long an answer may take."""
NOT_JSON = object()
MAX_ANSWER = 128 * 1024 * 1024
"""Bytes; two thousand vectors of three thousand numbers, as text, have two thirds of it."""
MAX_RETRY_AFTER = 3600.0
MAX_QUOTE = 300

# Not every API keeps to the status codes: Google answers 400 to a wrong key, DashScope 400 to an unknown model.
_KEY = re.compile(r"api[ _-]?key[ _-]?(not valid|invalid)|(invalid|incorrect)[ _-]?api[ _-]?key|invalidapikey", re.I)
_MODEL = re.compile(
    r"model[ _.-]?not[ _-]?(found|exist)|model\b.{0,80}\b(does not exist|not found)|unknown model", re.I
)
_LONG = re.compile(
    r"context[ _-]?length|maximum context|too long|too large|max_tokens_per_request|range of input length"
    r"|(input|text|prompt|token)s?\b.{0,60}\bexceed|exceed.{0,60}\b(tokens?|input length)\b",
    re.I,
)


class JsonApi:
    """Posts JSON to the paths below one base URL. Safe to use from several threads.

    `timeout` bounds a whole request, sending and reading included, a shorter `deadline` that one; an answer may have
    `max_answer` bytes when it is unpacked. `proxy` is the URL of a proxy; the environment is
    not read, so `HTTPS_PROXY` counts only where the settings pass it on. Raises only EmbeddingError, and no message
    holds the key or a password of the base URL, whatever the other side answers.
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        *,
        key_header: tuple[str, str],
        api_key: Secret,
        timeout: float,
        proxy: str | None = None,
        max_answer: int = MAX_ANSWER,
    ) -> None:
        if timeout <= 0:
            raise InvalidArgument(f"{name}: timeout is in seconds and positive; got {timeout:g}")
        self._name = name
        self._base, self._auth = _split(name, base_url)
        self._key = api_key
        self._key_header = key_header
        self._timeout = timeout
        self._proxy = _checked_proxy(name, proxy)
        self._max_answer = max_answer
        self._connections = Connections(self._new_client)

    @property
    def base_url(self) -> str:
        """Where requests go, without a password."""
        return str(self._base)

    @property
    def has_password(self) -> bool:
        """Whether the address that was given held a user or a password."""
        return self._auth is not None

    @property
    def who(self) -> str:
        """The provider and its address, for messages."""
        return f"{self._name} at {self._base}"

    def post(self, path: str, body: Mapping[str, Any], *, deadline: float | None = None) -> Any:
        """The parsed answer to a JSON body; an error for anything but a complete 200 with JSON in it."""
        seconds = self._seconds(deadline)
        end = time.monotonic() + seconds
        with self._answer(path, body, seconds) as response:
            content = b"".join(self._pieces(response, seconds, end))
        if response.status_code != 200:
            raise refusal(self.who, response.status_code, response.headers, self._masked(content))
        answer = _parsed(content)
        if answer is NOT_JSON:
            kind = response.headers.get("content-type", "no content type")
            raise MalformedAnswer(f"{self.who}: the answer is not JSON ({kind}, {len(content)} bytes); check base_url")
        return answer

    def lines(self, path: str, body: Mapping[str, Any], *, deadline: float | None = None) -> Iterator[str]:
        """The lines of a streamed answer as they come, without the blank ones.

        A long answer may take long: `timeout` bounds the wait for each piece, and only a `deadline` the whole.
        """
        seconds = self._seconds(deadline)
        end = math.inf if deadline is None else time.monotonic() + deadline
        rest = b""
        with self._answer(path, body, seconds) as response:
            pieces = self._pieces(response, seconds, end)
            if response.status_code != 200:
                said = self._masked(b"".join(pieces))
                raise refusal(self.who, response.status_code, response.headers, said)
            for piece in pieces:
                # Split here: the client's own lines also end at signs that are part of a text, such as U+2028.
                *whole, rest = (rest + piece).split(b"\n")
                yield from (line.decode(errors="replace") for line in whole if line.strip())
        if rest.strip():
            yield rest.decode(errors="replace")

    def close(self) -> None:
        """Closes the connections once no request uses them; the next request opens new ones."""
        self._connections.close()

    def _seconds(self, deadline: float | None) -> float:
        seconds = self._timeout if deadline is None else min(self._timeout, deadline)
        if seconds <= 0:
            raise Timeout(f"{self.who}: no time left to ask ({seconds:g} s)")
        return seconds

    @contextmanager
    def _answer(self, path: str, body: Mapping[str, Any], seconds: float) -> Iterator[httpx2.Response]:
        url = self._base.copy_with(path=f"{self._base.path.rstrip('/')}/{path.lstrip('/')}")
        timeout = httpx2.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))
        header, prefix = self._key_header
        secrets = {header: prefix + self._key.reveal()} if self._key else {}
        with self._connections.use() as client:
            try:
                request = client.build_request(
                    "POST", url, content=json.dumps(body).encode(), headers=secrets, timeout=timeout
                )
                response = client.send(request, stream=True)
            except httpx2.ConnectTimeout as error:
                raise ProviderUnavailable(f"{self.who} cannot be reached; is the address right?") from error
            except httpx2.TimeoutException as error:
                raise Timeout(f"{self.who}: no answer within {seconds:g} s") from error
            except httpx2.HTTPError as error:
                raise ProviderUnavailable(
                    f"{self.who} cannot be reached: {_why(error)}; is it running, is the address right?"
                ) from error
            try:
                yield response
            finally:
                response.close()

    def _pieces(self, response: httpx2.Response, seconds: float, end: float) -> Iterator[bytes]:
        """The answer as it comes, unpacked here: a few bytes may unpack to more than there is memory."""
        packing = response.headers.get("content-encoding", "identity").strip().lower()
        unpacker = zlib.decompressobj(wbits=47) if packing in ("gzip", "x-gzip", "deflate") else None
        if unpacker is None and packing != "identity":
            raise MalformedAnswer(f"{self.who}: the answer is packed as {packing}, which was not asked for")
        left = self._max_answer
        try:
            for raw in response.iter_raw():
                piece = raw if unpacker is None else unpacker.decompress(raw, left + 1)
                left -= len(piece)
                if left < 0:
                    raise MalformedAnswer(f"{self.who}: the answer has more than {self._max_answer:,} bytes")
                if time.monotonic() > end:
                    raise TimeoutError
                yield piece
        except (httpx2.TimeoutException, TimeoutError) as error:
            raise Timeout(f"{self.who}: the answer took longer than {seconds:g} s") from error
        except (httpx2.HTTPError, zlib.error) as error:
            raise self._broke_off(_why(error)) from error
        if unpacker is not None and not unpacker.eof:
            raise self._broke_off("it is packed, and its end is missing")

    def _broke_off(self, why: str) -> MalformedAnswer:
        return MalformedAnswer(f"{self.who}: the answer broke off: {why}", details={"broke_off": True})

    def _new_client(self) -> httpx2.Client:
        return httpx2.Client(
            headers={"content-type": "application/json", "accept": "application/json", "accept-encoding": "gzip"},
            auth=self._auth,
            proxy=self._proxy,
            trust_env=False,
            # Reading certificates takes longer than a request to this machine; plain HTTP needs none.
            verify=self._base.scheme == "https",
        )

    def _masked(self, content: bytes) -> bytes:
        text = self._key.hide_in(content.decode(errors="replace"))
        return (text.replace(self._auth[1], MASK) if self._auth and self._auth[1] else text).encode()


def _split(name: str, base_url: str) -> tuple[httpx2.URL, tuple[str, str] | None]:
    """The address, and apart from it the user and password it held: an address is logged."""
    try:
        url = httpx2.URL(base_url.strip())
    except (httpx2.InvalidURL, TypeError) as error:
        raise InvalidArgument(f"{name}: base_url is not a URL") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise InvalidArgument(
            f"{name}: base_url starts with http:// or https:// and a host, as in http://localhost:11434"
        )
    if url.query or url.fragment:
        raise InvalidArgument(f"{name}: base_url has no query; a key belongs into api_key, where it is not logged")
    auth = (url.username, url.password) if url.userinfo else None
    return url.copy_with(username="", password="", path=url.path.rstrip("/") or "/"), auth


def _checked_proxy(name: str, proxy: str | None) -> httpx2.Proxy | None:
    try:
        return httpx2.Proxy(proxy) if proxy else None
    except (ValueError, httpx2.InvalidURL) as error:
        raise InvalidArgument(f"{name}: proxy is not the URL of a proxy, as in http://localhost:3128") from error


def _parsed(content: bytes) -> Any:
    # The decoder's own error is not kept as a cause: it carries the whole answer, and an answer may quote the key.
    try:
        return json.loads(content)
    # Brackets within brackets, deeper than anybody follows, are no answer either.
    except (ValueError, RecursionError):
        return NOT_JSON


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__


@dataclass(slots=True)
class _Shared:
    client: httpx2.Client
    users: int = 0
    retired: bool = False


class Connections:
    """Lends one client to any number of threads.

    Closing while a request is under way must not touch its socket: the thread that reads it would wait for its timeout.
    """

    def __init__(self, make: Callable[[], httpx2.Client]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._shared: _Shared | None = None

    @contextmanager
    def use(self) -> Iterator[httpx2.Client]:
        """The client, for as long as the block runs."""
        with self._lock:
            if self._shared is None:
                self._shared = _Shared(self._make())
                # Who forgets to close, or drops a provider that others still use, leaks nothing.
                weakref.finalize(self, self._shared.client.close)
            shared = self._shared
            shared.users += 1
        try:
            yield shared.client
        finally:
            with self._lock:
                shared.users -= 1
                if shared.retired and not shared.users:
                    shared.client.close()

    def close(self) -> None:
        """Closes the client now or after its last user; the next use makes a new one."""
        with self._lock:
            shared, self._shared = self._shared, None
            if shared is not None:
                shared.retired = True
                if not shared.users:
                    shared.client.close()


def refusal(who: str, status: int, headers: Mapping[str, str], body: bytes) -> EmbeddingError:
    """The error that says what this answer means. `who` names the provider and its address in the message.

    What the API itself said is quoted; the caller masks the key in it.
    """
    answer = _parsed(body)
    said = _said(answer, body)
    quote = f": {said[:MAX_QUOTE]}" if said else ""
    details = {"status": status}
    if status in (401, 403) or (status == 400 and _KEY.search(said)):
        return InvalidKey(
            f"{who} rejected the API key ({status}); set a valid one for this provider{quote}", details=details
        )
    if status == 404 or (status in (400, 422) and _MODEL.search(said)):
        return ModelUnknown(f"{who} has no such model ({status}); check model and base_url{quote}", details=details)
    if status == 413 or (status in (400, 422) and _LONG.search(said)):
        return TextTooLong(
            f"{who} refused a text for its length ({status}); embed shorter pieces{quote}", details=details
        )
    if status == 429:
        wait = _retry_after(headers, answer)
        return RateLimited(f"{who} asks to slow down (429){quote}", retry_after=wait, details=details)
    if status == 408:
        return Timeout(f"{who} gave up waiting (408){quote}", details=details)
    if status >= 500:
        wait = _retry_after(headers, answer)
        return ProviderUnavailable(f"{who} is failing ({status}){quote}", retry_after=wait, details=details)
    if 300 <= status < 400:
        return EmbeddingError(f"{who} answered with a redirect ({status}); correct base_url", details=details)
    return EmbeddingError(f"{who} refused the request ({status}){quote}", details=details)


def _said(answer: Any, body: bytes) -> str:
    """Code and message of an error in any of the usual shapes; plain text as it is, HTML not at all."""
    if isinstance(answer, list) and answer:
        answer = answer[0]
    error = answer.get("error", answer) if isinstance(answer, dict) else answer
    if isinstance(error, dict):
        reasons = [detail.get("reason") for detail in _details(error)]
        parts = [error.get(name) for name in ("code", "type", "status", "message", "detail")] + reasons
        return " ".join(dict.fromkeys(str(part) for part in parts if part))
    text = error if isinstance(error, str) else body[:2000].decode(errors="replace")
    return "" if text.lstrip().startswith("<") else " ".join(text.split())


def _details(error: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    details = error.get("details")
    return [detail for detail in details if isinstance(detail, dict)] if isinstance(details, list) else []


def _retry_after(headers: Mapping[str, str], answer: Any) -> float | None:
    """Seconds, from `retry-after-ms`, from `Retry-After` as seconds or as a date, or from Google's RetryInfo."""
    seconds = _number(headers.get("retry-after-ms"), scale=1e-3)
    if seconds is None and (header := headers.get("retry-after")):
        seconds = _number(header)
        if seconds is None:
            seconds = _until(header, headers.get("date"))
    if seconds is None and isinstance(answer, dict) and isinstance(answer.get("error"), dict):
        delays = [_number(str(detail.get("retryDelay", "")).rstrip("s")) for detail in _details(answer["error"])]
        seconds = next((delay for delay in delays if delay is not None), None)
    return None if seconds is None else min(max(seconds, 0.0), MAX_RETRY_AFTER)


def _number(text: str | None, scale: float = 1.0) -> float | None:
    try:
        value = float(text or "") * scale
    except ValueError:
        return None
    return value if value == value else None


def _until(date: str, now: str | None) -> float | None:
    """From the server's own clock where it tells it, because ours may be wrong."""
    try:
        then = parsedate_to_datetime(date)
        start = parsedate_to_datetime(now) if now else datetime.now(UTC)
        return (then - start).total_seconds()
    except (ValueError, TypeError):
        return None
