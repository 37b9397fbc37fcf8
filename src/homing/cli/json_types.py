"""What each command prints with `--json`: an operation's answer or a type of its own. It makes `docs/cli.md`.

Nothing at run time needs this; the commands import what is named here only when they run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homing.cli import reports
from homing.database.postgres.server import ServerStatus
from homing.devices.evaluation import Evaluation as HomeEvaluation
from homing.evaluation.result import Evaluation
from homing.mcp.clients import Block
from homing.models.calibrate import Calibrated
from homing.operations import OPERATIONS
from homing.operations.devices import HomeChanged
from homing.operations.documents import ReindexOut
from homing.server.tokens import Token
from homing.stores.copying import Copied

CALLS: Mapping[str, tuple[str, ...]] = {
    "doctor": ("run_doctor",),
    "skills scan": ("scan_skills",),
    "skills find": ("find_skills",),
    "skills list": ("list_skills",),
    "devices list": ("get_home",),
    "devices ask": ("ask_devices",),
    "memory remember": ("remember",),
    "memory recall": ("recall",),
    "memory list": ("list_memories",),
    "memory forget": ("forget",),
    "docs add": ("save_document",),
    "docs list": ("list_projects", "list_documents"),
    "docs show": ("get_document", "list_chunks"),
    "docs search": ("search_documents",),
    "docs rename": ("rename_document",),
    "docs move": ("move_document",),
    "docs remove": ("delete_document", "delete_project"),
    "knowledge search": ("search_files",),
    "knowledge list": ("list_files",),
    "knowledge delete": ("delete_file",),
    "models list": ("list_models",),
    "models default": ("get_model_change",),
    "models status": ("get_model_change",),
    "models rollback": ("get_model_change",),
}
"""The operations that commands call: what those answer is what these print."""

REPORTS: Mapping[str, Any] = {
    "search": reports.FolderSearchOut,
    "embed": reports.Vectors,
    "eval": Evaluation | list[HomeEvaluation],
    "demo": reports.Tour,
    "serve": reports.Served,
    "skills prompt": reports.SkillPrompt,
    "devices load": HomeChanged,
    "memory queue": reports.WorkQueue,
    "memory reindex": reports.MemoryReindexed,
    "docs import": reports.FolderImported,
    "docs reindex": ReindexOut,
    "knowledge upload": reports.FilesUploaded,
    "knowledge embed": reports.FilesEmbedded,
    "models add": reports.ModelAdded,
    "models remove": reports.ModelRemoved,
    "models test": reports.ModelTested,
    "models pull": reports.ModelPulled,
    "models calibrate": Calibrated,
    "models discard": reports.VectorsDiscarded,
    "providers list": list[reports.ProviderOut],
    "providers add": reports.ProviderAdded,
    "providers remove": reports.ProviderRemoved,
    "store copy": Copied,
    "postgres start": ServerStatus,
    "postgres stop": reports.ServerStopped,
    "postgres status": ServerStatus,
    "mcp install": list[Block],
    "tokens create": reports.TokenCreated,
    "tokens list": list[Token],
    "tokens revoke": reports.TokenRevoked,
    "config show": list[reports.Setting],
}
"""What the other commands print."""

WITHOUT = {
    "devices repl": "a conversation with a person",
    "ipc": "speaks JSON-RPC",
    "ipc schema": "prints JSON anyway",
    "mcp": "speaks JSON-RPC",
}
"""Commands without `--json`, and why."""


def json_types() -> dict[str, list[Any]]:
    """The types that a command may print, by command."""
    called = {
        command: list(dict.fromkeys(OPERATIONS[name].output for name in names)) for command, names in CALLS.items()
    }
    return called | {command: [kind] for command, kind in REPORTS.items()}
