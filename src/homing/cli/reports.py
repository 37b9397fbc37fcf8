"""What commands print with `--json` that are no operations. Imported where it is needed: it takes time to load."""

from __future__ import annotations

from typing import Any

from homing.documents.folders import Imported, Refreshed
from homing.engine.work_state import Backlog, DeadLetter
from homing.operations.devices import DeviceAnswerOut
from homing.operations.hits import SearchOut
from homing.operations.knowledge import FileUploaded
from homing.operations.models import Output


class Error(Output):
    """`code` is stable; `message` says what to do next."""

    code: str
    message: str
    details: dict[str, Any]


class Failed(Output):
    """What every command prints when it fails; the exit code is then not 0."""

    error: Error


class FolderSearchOut(SearchOut):
    """The passages that were found, and what was indexed before the search."""

    index: Refreshed


class FolderImported(Output):
    """What an import did, and how many paragraphs still wait for their vector."""

    report: Imported
    waiting: int


class Where(Output):
    """The data folder, whether it is there yet, the kind of store, and the file of the settings, if any."""

    data: str
    exists: bool
    store: str
    config: str | None


class GuidePage(Output):
    """A page of the guide, as Markdown."""

    page: str
    text: str


class Vectors(Output):
    """A vector of length 1 for each text."""

    model: str
    dimensions: int
    vectors: list[list[float]]


class SkillPrompt(Output):
    """The block for a system prompt, and the names of the skills in it."""

    text: str
    skills: list[str]
    tokens: int
    truncated: bool


class WorkQueue(Output):
    """What waits to be embedded, and what was given up."""

    retried: int
    backlog: Backlog
    dead_letters: list[DeadLetter]


class MemoryReindexed(Output):
    """How many texts were queued, and how many still wait."""

    queued: int
    waiting: int


class FilesUploaded(Output):
    """The files that were accepted, and those that were not."""

    uploaded: list[FileUploaded]
    failed: list[Error]


class FilesEmbedded(Output):
    """How many files have vectors now, and how many still wait."""

    embedded: int
    waiting: int


class ModelRemoved(Output):
    """A model that was removed."""

    name: str
    provider: str


class ModelAdded(ModelRemoved):
    """A model that was added; `model` is its identity."""

    model: str


class ModelTested(Output):
    """How long a text takes, and the scores of two texts that mean the same and of two that do not."""

    model: str
    dimensions: int
    milliseconds: float
    related: float
    unrelated: float


class ModelPulled(Output):
    """Where the files of a model are."""

    name: str
    path: str


class VectorsDiscarded(Output):
    """How many vectors were deleted."""

    discarded: int


class ProviderOut(Output):
    """A provider; `key` says only whether there is one, or which variable holds it."""

    name: str
    type: str
    base_url: str
    key: str
    enabled: bool


class Edit(Output):
    """What saving an edited story did: its paragraphs, and how many of them were embedded again."""

    paragraphs: int
    embedded: int


class Tour(Output):
    """Everything that was asked on the tour, with its answers."""

    model: str
    skills: dict[str, SearchOut]
    edit: Edit
    answers: dict[str, SearchOut]
    keyword: SearchOut
    degraded: SearchOut
    recalled: dict[str, SearchOut]
    devices: dict[str, DeviceAnswerOut]
    seconds: float
    page: str


class Served(Output):
    """Where the server can be reached, printed once it can. `tokens` says whether it asks for a token."""

    address: str
    data: str
    model: str
    tokens: bool


class Working(Output):
    """What a worker does, printed once it does: with which model, in how many threads, for which collections (all)."""

    store: str
    model: str
    concurrency: int
    collections: list[str]


class ServerStopped(Output):
    """Whether the server was running, and whether its data was deleted."""

    stopped: bool
    deleted: bool


class TokenCreated(Output):
    """A new token; this is the only time that it is shown."""

    token: str
    id: str
    user: str
    scope: str
    note: str
    expires: float | None


class Setting(Output):
    """A setting, and where it was set."""

    key: str
    value: str
    source: str
