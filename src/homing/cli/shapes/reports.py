"""The JSON of commands that change or list something."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypedDict

from homing.cli.shapes.answers import Found, SkillsFound
from homing.devices.query import QueryIR
from homing.doctor.finding import Finding
from homing.documents.folders import Imported
from homing.documents.records import Chunk
from homing.documents.writing import Saved
from homing.engine.work_state import Backlog, DeadLetter
from homing.knowledge import FileInfo, Uploaded
from homing.memory.content import Entry
from homing.models.switch import CollectionStatus


class Remembered(TypedDict):
    """What was saved, and how many texts wait to be embedded."""

    entry: Entry
    waiting: int


class Queue(TypedDict):
    """What waits to be embedded, and what was given up."""

    retried: int
    backlog: Backlog
    dead_letters: tuple[DeadLetter, ...]


class Written(TypedDict):
    """A document that was saved: ids of its paragraphs by what became of them."""

    project: str
    document: str
    changes: Saved
    waiting: int


class ImportReport(TypedDict):
    """What an import did, and how many paragraphs wait to be embedded."""

    report: Imported
    waiting: int


class WholeDocument(TypedDict):
    """A document and its paragraphs."""

    project: str
    document: str
    text: str
    chunks: tuple[Chunk, ...]


class Refusal(TypedDict):
    """Why a file was not taken."""

    code: str
    message: str


class Uploads(TypedDict):
    """The files that were taken, and those that were not."""

    uploaded: tuple[Uploaded, ...]
    failed: tuple[Refusal, ...]


class MeantDevice(TypedDict):
    """A device that may be meant, and what to tell it."""

    id: str
    name: str
    room: str | None
    type: str
    score: float
    reasons: tuple[str, ...]
    command: str | None
    value: float | str | bool | None
    change: float | None
    explanation: str


class Step(TypedDict):
    """One command of a sentence."""

    decision: Literal["act", "ask", "refuse"]
    hint: str | None
    question: str
    suggestions: tuple[str, ...]
    ir: QueryIR
    candidates: tuple[MeantDevice, ...]


class Sentence(TypedDict):
    """What a sentence means in the home."""

    decision: Literal["act", "ask", "refuse"]
    degraded: bool
    reason: str | None
    steps: tuple[Step, ...]


class ListedModel(TypedDict):
    """A model; `default` is the one in use."""

    name: str
    provider: str
    dimensions: int | None
    default: bool
    enabled: bool
    path: str


class TriedModel(TypedDict):
    """How long a text takes, and the scores of two texts that mean the same and of two that do not."""

    model: str
    dimensions: int
    milliseconds: float
    related: float
    unrelated: float


class SwitchProgress(TypedDict):
    """How far a change of the model is."""

    target: str
    done: int
    total: int
    per_second: float
    error: str
    running: bool
    seconds_left: float | None


class ModelStatus(TypedDict):
    """Which model answers for each collection."""

    default: str
    finished: bool
    state: SwitchProgress | None
    collections: tuple[CollectionStatus, ...]


class ListedProvider(TypedDict):
    """A provider; of its key only whether there is one, or which variable holds it."""

    name: str
    type: str
    base_url: str
    key: str
    enabled: bool


class Demo(TypedDict):
    """Everything that was asked on the tour, with its answers."""

    model: str
    skills: Mapping[str, SkillsFound]
    edit: Mapping[str, int]
    answers: Mapping[str, Found]
    keyword: Found
    degraded: Found
    recalled: Mapping[str, Found]
    devices: Mapping[str, Sentence]
    seconds: float
    page: str


class Served(TypedDict):
    """Where the server answers, printed once it does."""

    address: str
    data: str
    model: str
    tokens: bool


class Embedded(TypedDict):
    """Unit-length rows, one for each text."""

    model: str
    dimensions: int
    vectors: list[list[float]]


class Diagnosis(TypedDict):
    """What every check saw."""

    healthy: bool
    findings: list[Finding]


class Forgotten(TypedDict):
    """How many entries there were."""

    forgotten: int


class AskedAgain(TypedDict):
    """How many were queued, and how many still wait."""

    queued: int
    waiting: int


class RemovedDocuments(TypedDict):
    """How many documents there were."""

    removed: int


class Files(TypedDict):
    """The files of a knowledge base."""

    files: list[FileInfo]


class EmbeddedFiles(TypedDict):
    """How many files have vectors now, and how many still wait."""

    embedded: int
    waiting: int


class Deleted(TypedDict):
    """The file that is gone."""

    deleted: FileInfo


class AddedModel(TypedDict):
    """`model` is its identity."""

    name: str
    provider: str
    model: str


class RemovedModel(TypedDict):
    """The model that is gone."""

    name: str
    provider: str


class PulledModel(TypedDict):
    """Where its files are."""

    name: str
    path: str


class Discarded(TypedDict):
    """How many vectors were let go."""

    discarded: int


class AddedProvider(TypedDict):
    """Of the key only whether there is one."""

    name: str
    type: str
    key: str


class RemovedProvider(TypedDict):
    """The provider that is gone."""

    name: str


class StoppedServer(TypedDict):
    """Whether it ran, and whether its data is gone."""

    stopped: bool
    deleted: bool


class CreatedToken(TypedDict):
    """The only time that the token itself is shown."""

    token: str
    id: str
    user: str
    scope: str
    note: str


class RevokedToken(TypedDict):
    """The id of the token, and whose it was."""

    revoked: str
    user: str


class Setting(TypedDict):
    """A setting that holds, and where it was set."""

    key: str
    value: str
    source: str
