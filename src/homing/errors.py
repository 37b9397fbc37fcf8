"""Every error that Homing raises, with the `code` that programs may rely on.

    HomingError
    ├── InvalidArgument              INVALID_ARGUMENT              the caller passed something that cannot be served
    │   └── DimensionMismatch        EMBEDDING_DIMENSION_MISMATCH  a vector is not as wide as its space; an
    │                                                              EmbeddingError as well: a model may have made it
    ├── NotFound                     NOT_FOUND                     no such model, folder, record
    ├── ConfigError                  CONFIG_INVALID                a setting is wrong; names the line to change
    ├── MissingExtra                 MISSING_EXTRA                 an optional library is not installed
    ├── EmbeddingError               EMBEDDING_FAILED              text could not be turned into vectors
    │   ├── ModelNotReady            MODEL_NOT_READY               the model cannot be loaded
    │   ├── UnknownProvider          UNKNOWN_PROVIDER              no provider of that type
    │   ├── InvalidKey               INVALID_KEY                   the provider rejected the key
    │   ├── ModelUnknown             MODEL_UNKNOWN                 the provider has no such model
    │   ├── TextTooLong              TEXT_TOO_LONG                 the provider refused a text for its length
    │   ├── RateLimited              RATE_LIMITED                  too many requests; may say when to come back
    │   ├── ProviderUnavailable      PROVIDER_UNAVAILABLE          unreachable, or the breaker is open
    │   ├── Timeout                  TIMEOUT                       no answer before the deadline
    │   └── MalformedAnswer          MALFORMED_ANSWER              the provider answered something else
    ├── ChatError                    CHAT_FAILED                   a chat model did not answer; `details` say why
    ├── StoreError                   STORE_ERROR                   the store could not do it
    │   ├── StoreCorrupt             STORE_CORRUPT                 not a Homing store, or damaged
    │   ├── StoreTooNew              STORE_TOO_NEW                 written by a newer version of Homing
    │   ├── StoreTooOld              STORE_TOO_OLD                 written by an edition that is no longer read
    │   ├── ModelMismatch            MODEL_MISMATCH                the collection was embedded by another model
    │   ├── StoreReadOnly            STORE_READ_ONLY               the folder or file cannot be written
    │   ├── StoreUnavailable         STORE_UNAVAILABLE             the server of the store cannot be reached; try again
    │   ├── StoreBusy                STORE_BUSY                    another process holds the write lock
    │   ├── StoreClosed              STORE_CLOSED                  it was closed; open it again
    │   └── LanceSearchError         LANCE_SEARCH_ERROR            the table of skills cannot be read
    ├── Canceled                     CANCELED                      the caller took the request back
    ├── Backpressure                 BACKPRESSURE                  too much is waiting already; send it again later
    ├── Refused                      REFUSED                       a server does not serve this request
    │   ├── Unauthorized             UNAUTHORIZED                  no token, or one that is not valid
    │   ├── Forbidden                FORBIDDEN                     the token, the host or the origin may not do this
    │   ├── Conflict                 CONFLICT                      something under way, or set elsewhere, is against it
    │   ├── BodyTooLarge             BODY_TOO_LARGE                more was sent than is taken
    │   ├── HeadersTooLarge          HEADERS_TOO_LARGE             more or longer headers than are taken
    │   ├── RequestTimeout           REQUEST_TIMEOUT               the request did not arrive in time
    │   ├── TooManyRequests          TOO_MANY_REQUESTS             this caller asks too often; says when to come back
    │   └── Overloaded               OVERLOADED                    all callers together do; says when to come back
    ├── FileUnreadable               FILE_UNREADABLE               a file cannot be turned into text
    │   ├── UnsupportedFile          UNSUPPORTED_FILE              files of this type are not read
    │   ├── FileEncrypted            FILE_ENCRYPTED                it has a password, or is protected
    │   ├── FileWithoutText          FILE_WITHOUT_TEXT             it is empty, or scanned pages without text
    │   ├── FileTooLarge             FILE_TOO_LARGE                beyond a limit, as it is or when unpacked
    │   ├── FileTooCostly            FILE_TOO_COSTLY               reading it took too long, or too much memory
    │   ├── FileUnsafe               FILE_UNSAFE                   it declares what would expand without end
    │   └── FileDamaged              FILE_DAMAGED                  broken, or not what its name says
    └── RetrievalFailed              RETRIEVAL_FAILED              both legs of a search failed; `causes` has both

A message says what failed, on what, and what to do next. It never contains a key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

_PASSWORD = re.compile(r"(?<=://)([^/\s:@]*):[^/\s]+@|([?&](?:password|passwd|api_?key|token)=)[^&\s]+", re.IGNORECASE)


def hide_passwords(text: str) -> str:
    """The text with the passwords of URLs in it masked: those of stores, proxies and APIs."""
    if "://" not in text:
        return text
    return _PASSWORD.sub(lambda found: f"{found[1]}:***@" if found[2] is None else f"{found[2]}***", text)


class HomingError(Exception):
    """The root of the tree. `code` is stable: of the classes here their name, where they do not say otherwise.

    `details` is plain data for programs, and `retry_after` seconds where coming back then helps. No URL in an error has
    a password.
    """

    code: ClassVar[str] = "HOMING_ERROR"

    def __init_subclass__(cls) -> None:
        if cls.__module__ == __name__ and "code" not in cls.__dict__:
            cls.code = re.sub("(?<=[a-z])(?=[A-Z])", "_", cls.__name__).upper()

    def __init__(
        self, message: str, *, details: Mapping[str, Any] | None = None, retry_after: float | None = None
    ) -> None:
        self.message = hide_passwords(message)
        super().__init__(self.message)
        self.retry_after = retry_after
        self.details: dict[str, Any] = {
            name: hide_passwords(value) if isinstance(value, str) else value for name, value in (details or {}).items()
        }


class InvalidArgument(HomingError):
    """The caller passed something that cannot be served."""


class NotFound(HomingError):
    """The named thing does not exist."""


class ConfigError(HomingError):
    """A setting is wrong."""

    code = "CONFIG_INVALID"


class MissingExtra(HomingError):
    """An optional library is not installed; the message names the extra."""


class EmbeddingError(HomingError):
    """Text could not be turned into vectors."""

    code = "EMBEDDING_FAILED"


class DimensionMismatch(InvalidArgument, EmbeddingError):
    """A vector is not as wide as the space it is meant for, whether a caller brought it or a model made it."""

    code = "EMBEDDING_DIMENSION_MISMATCH"


class ModelNotReady(EmbeddingError):
    """The model cannot be loaded."""


class UnknownProvider(EmbeddingError):
    """No embedding provider of that type exists; the message lists those that do."""


class InvalidKey(EmbeddingError):
    """The provider rejected the key."""


class ModelUnknown(EmbeddingError):
    """The provider has no model of that name, or nothing lives at that address."""


class TextTooLong(EmbeddingError):
    """The provider refused a text because of its length; embed it in shorter pieces."""


class RateLimited(EmbeddingError):
    """The provider asked to slow down; `retry_after` is in seconds where it said so."""


class ProviderUnavailable(EmbeddingError):
    """The provider cannot be reached, or was given up on for a while; `retry_after` as in RateLimited."""


class Timeout(EmbeddingError):
    """No answer before the deadline."""


class MalformedAnswer(EmbeddingError):
    """The provider answered something that is not what was asked for."""


class ChatError(HomingError):
    """A chat model did not answer; `details["cause"]` is the code of what went wrong."""

    code = "CHAT_FAILED"


class StoreError(HomingError):
    """The store could not do what was asked."""


class StoreCorrupt(StoreError):
    """The file is damaged, or is not a Homing store."""


class StoreTooNew(StoreError):
    """The store was written by a newer version of Homing."""


class StoreTooOld(StoreError):
    """The store was written by an edition of Homing that this one does not read."""


class ModelMismatch(StoreError):
    """The vectors of the collection were made by another model; the two are never compared."""


class StoreReadOnly(StoreError):
    """The store cannot be written."""


class StoreUnavailable(StoreError):
    """The server that holds the store cannot be reached; it may be restarting, so trying again is right."""


class StoreBusy(StoreError):
    """Another process holds the write lock for longer than we wait."""


class StoreClosed(StoreError):
    """The store or database was closed by this process."""


class LanceSearchError(StoreError):
    """The table of skills cannot be reached or read."""


class Canceled(HomingError):
    """The caller took the request back; what was done until then stays done."""


class Interrupted(HomingError):
    """The server ended before a job was done, and nobody can take it up; begin it again."""


class Backpressure(HomingError):
    """More is waiting than is taken at once; nothing was done, so sending it again later is right."""


class Refused(HomingError):
    """A server does not serve this request; `retry_after` is in seconds where coming back helps."""


class Unauthorized(Refused):
    """There is no token, or it is not valid."""


class Forbidden(Refused):
    """The token, the host or the origin may not do this."""


class Conflict(Refused):
    """Something that is under way, or set elsewhere, stands against it."""


class BodyTooLarge(Refused):
    """More was sent than is taken."""


class HeadersTooLarge(Refused):
    """The headers of a request are more, or longer, than is taken."""


class RequestTimeout(Refused):
    """A request did not arrive, or its answer was not taken, within the time for that."""


class TooManyRequests(Refused):
    """This caller asks too often."""


class Overloaded(Refused):
    """All callers together ask for more than can be served in time."""


class FileUnreadable(HomingError):
    """A file cannot be turned into text."""


class UnsupportedFile(FileUnreadable):
    """Files of this type are not read; the message says what to save it as."""


class FileEncrypted(FileUnreadable):
    """The file has a password, or is protected in another way."""


class FileWithoutText(FileUnreadable):
    """The file is empty, or its pages are pictures."""


class FileTooLarge(FileUnreadable):
    """The file is beyond a limit, as it is or when unpacked; `details["limit"]` says which."""


class FileTooCostly(FileUnreadable):
    """Reading it used up its budget; `details["of"]` is `time`, `cpu` or `memory`."""


class FileUnsafe(FileUnreadable):
    """The file declares what would expand without end."""


class FileDamaged(FileUnreadable):
    """The file is broken, or is not what its name says."""


class RetrievalFailed(HomingError):
    """Both legs of a search failed; `causes` keeps the two errors by the name of their leg."""

    def __init__(self, message: str, *, causes: Mapping[str, BaseException]) -> None:
        super().__init__(message, details={leg: str(cause) for leg, cause in causes.items()})
        self.causes = dict(causes)
