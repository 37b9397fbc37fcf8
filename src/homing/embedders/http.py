"""One HTTP client for every remote API: JSON out, JSON in, and our errors."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import httpx2

from homing.embedders.connections import Connections
from homing.embedders.refusal import refusal
from homing.embedders.secret import MASK, Secret
from homing.errors import InvalidArgument, MalformedAnswer, ProviderUnavailable, Timeout

CONNECT_SECONDS = 5.0
"""Who cannot be reached in this time is unreachable, however long an answer may take."""
NOT_JSON = object()


class JsonApi:
    """Posts JSON to the paths below one base URL. Safe to use from several threads.

    `timeout` bounds a whole request, sending and reading included. `proxy` is the URL of a proxy; the environment is
    not read, so `HTTPS_PROXY` counts only where the settings pass it on. Raises only EmbeddingError, and no message
    holds the key or a password of the base URL, whatever the other side answers.
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        *,
        key_header: tuple[str, str] | None = None,
        api_key: Secret,
        timeout: float,
        proxy: str | None = None,
    ) -> None:
        if timeout <= 0:
            raise InvalidArgument(f"{name}: timeout is in seconds and positive; got {timeout:g}")
        self._name = name
        self._base, self._auth = _split(name, base_url)
        self._key = api_key
        self._key_header = key_header
        self._timeout = timeout
        self._proxy = _checked_proxy(name, proxy)
        self._connections = Connections(self._new_client)

    @property
    def base_url(self) -> str:
        """Where requests go, without a password."""
        return str(self._base)

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """The parsed answer to a JSON body; an error for anything but a complete 200 with JSON in it."""
        end = time.monotonic() + self._timeout
        url = self._base.copy_with(path=f"{self._base.path.rstrip('/')}/{path.lstrip('/')}")
        who = f"{self._name} at {self._base}"
        with self._connections.use() as client:
            status, headers, content = self._exchange(client, url, body, who, end)
        if status != 200:
            raise refusal(who, status, headers, self._masked(content))
        answer = _parsed(content)
        if answer is NOT_JSON:
            kind = headers.get("content-type", "no content type")
            raise MalformedAnswer(f"{who}: the answer is not JSON ({kind}, {len(content)} bytes); check base_url")
        return answer

    def close(self) -> None:
        """Closes the connections once no request uses them; the next request opens new ones."""
        self._connections.close()

    def _exchange(
        self, client: httpx2.Client, url: httpx2.URL, body: Mapping[str, Any], who: str, end: float
    ) -> tuple[int, Mapping[str, str], bytes]:
        try:
            request = client.build_request("POST", url, content=json.dumps(body).encode(), headers=self._secrets())
            response = client.send(request, stream=True)
        except httpx2.ConnectTimeout as error:
            raise ProviderUnavailable(f"{who} cannot be reached; is the address right?") from error
        except httpx2.TimeoutException as error:
            raise Timeout(f"{who}: no answer within {self._timeout:g} s") from error
        except httpx2.HTTPError as error:
            raise ProviderUnavailable(
                f"{who} cannot be reached: {_why(error)}; is it running, is the address right?"
            ) from error
        try:
            return response.status_code, response.headers, _read(response, end)
        except (httpx2.TimeoutException, TimeoutError) as error:
            raise Timeout(f"{who}: the answer took longer than {self._timeout:g} s") from error
        except httpx2.HTTPError as error:
            raise MalformedAnswer(f"{who}: the answer broke off: {_why(error)}") from error
        finally:
            response.close()

    def _new_client(self) -> httpx2.Client:
        return httpx2.Client(
            timeout=httpx2.Timeout(self._timeout, connect=min(self._timeout, CONNECT_SECONDS)),
            headers={"content-type": "application/json", "accept": "application/json"},
            auth=self._auth,
            proxy=self._proxy,
            trust_env=False,
            # Reading certificates takes longer than a request to this machine; plain HTTP needs none.
            verify=self._base.scheme == "https",
        )

    def _masked(self, content: bytes) -> bytes:
        text = self._key.hide_in(content.decode(errors="replace"))
        return (text.replace(self._auth[1], MASK) if self._auth and self._auth[1] else text).encode()

    def _secrets(self) -> dict[str, str]:
        if not self._key or self._key_header is None:
            return {}
        header, prefix = self._key_header
        return {header: prefix + self._key.reveal()}


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


def _read(response: httpx2.Response, end: float) -> bytes:
    chunks = []
    for chunk in response.iter_bytes():
        chunks.append(chunk)
        if time.monotonic() > end:
            raise TimeoutError
    return b"".join(chunks)


def _parsed(content: bytes) -> Any:
    # The decoder's own error is not kept as a cause: it carries the whole answer, and an answer may quote the key.
    try:
        return json.loads(content)
    except ValueError:
        return NOT_JSON


def _why(error: httpx2.HTTPError) -> str:
    return str(error) or type(error).__name__
