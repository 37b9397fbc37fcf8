"""What each command prints with `--json`: `docs/cli.md` is written from this, and a test holds every command to it.

Nothing at run time needs this; the commands import what is named here only when they run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homing.cli.shapes import answers, reports
from homing.database.postgres.server import ServerStatus
from homing.devices.device import Device
from homing.devices.evaluation import Evaluation as HomeEvaluation
from homing.devices.home import Changes as HomeChanges
from homing.documents.records import DocumentInfo, ProjectInfo
from homing.documents.reindexing import Reindexed
from homing.evaluation.result import Evaluation
from homing.mcp.clients import Block
from homing.memory.content import Entry
from homing.models.calibrate import Calibrated
from homing.server.tokens import Token
from homing.stores.copying import Copied

SHAPES: Mapping[str, Any] = {
    "search": answers.FoundInFolder,
    "embed": reports.Embedded,
    "eval": Evaluation | list[HomeEvaluation],
    "doctor": reports.Diagnosis,
    "demo": reports.Demo,
    "serve": reports.Served,
    "skills scan": answers.Scanned,
    "skills find": answers.SkillsFound,
    "skills list": list[answers.ListedSkill],
    "skills prompt": answers.SkillPrompt,
    "devices load": HomeChanges,
    "devices list": list[Device],
    "devices ask": reports.Sentence,
    "memory remember": reports.Remembered,
    "memory recall": answers.Found,
    "memory list": list[Entry] | Mapping[str, int],
    "memory forget": reports.Forgotten,
    "memory queue": reports.Queue,
    "memory reindex": reports.AskedAgain,
    "docs add": reports.Written,
    "docs import": reports.ImportReport,
    "docs list": list[ProjectInfo] | list[DocumentInfo],
    "docs show": reports.WholeDocument,
    "docs search": answers.Found,
    "docs remove": reports.RemovedDocuments,
    "docs reindex": Reindexed,
    "knowledge upload": reports.Uploads,
    "knowledge search": answers.Found,
    "knowledge list": reports.Files,
    "knowledge embed": reports.EmbeddedFiles,
    "knowledge delete": reports.Deleted,
    "models list": list[reports.ListedModel],
    "models add": reports.AddedModel,
    "models remove": reports.RemovedModel,
    "models test": reports.TriedModel,
    "models pull": reports.PulledModel,
    "models calibrate": Calibrated,
    "models default": reports.ModelStatus,
    "models status": reports.ModelStatus,
    "models rollback": reports.ModelStatus,
    "models discard": reports.Discarded,
    "providers list": list[reports.ListedProvider],
    "providers add": reports.AddedProvider,
    "providers remove": reports.RemovedProvider,
    "store copy": Copied,
    "postgres start": ServerStatus,
    "postgres stop": reports.StoppedServer,
    "postgres status": ServerStatus,
    "mcp install": list[Block],
    "tokens create": reports.CreatedToken,
    "tokens list": list[Token],
    "tokens revoke": reports.RevokedToken,
    "config show": list[reports.Setting],
}
"""The shape of each command's JSON."""

WITHOUT = {
    "devices repl": "a conversation with a person",
    "ipc": "speaks JSON-RPC",
    "ipc schema": "prints JSON anyway",
    "mcp": "speaks JSON-RPC",
}
"""Commands without `--json`, and why."""
