"""Finding commands of a whole library by what they do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from homing.devices.device import CommandSpec
from homing.devices.lexicon.actions import opposed
from homing.devices.meaning import command_meaning, meaning_of
from homing.devices.query import QueryIR
from homing.embedders.provider import EmbeddingProvider
from homing.engine.engine import temporary_engine
from homing.engine.search import HybridOptions, search
from homing.records import VectorRecord

COLLECTION = "commands"
SPARE = 20
"""Commands looked at beyond those wanted: some may go the other way."""


@dataclass(frozen=True, slots=True)
class CommandHit:
    """A command and how alike the query is."""

    command: CommandSpec
    score: float


class CommandIndex:
    """The commands of a profile file by the meaning of their descriptions, synonyms and values.

    While the model fails, words find them.
    """

    def __init__(self, commands: Iterable[CommandSpec], embedder: EmbeddingProvider) -> None:
        self._commands = {str(number): command for number, command in enumerate(commands)}
        self._engine = temporary_engine(embedder)
        self._engine.collection(COLLECTION).write(
            VectorRecord(key, COLLECTION, None, {}, _text(command)) for key, command in self._commands.items()
        )
        self._engine.embed_written()

    def search(self, query: str | QueryIR, limit: int = 10) -> list[CommandHit]:
        """The `limit` commands most alike, best first; those that go the other way come last.

        Of a QueryIR the action is asked, or the sentence where it has none.
        """
        text = query if isinstance(query, str) else query.action or query.raw
        options = HybridOptions(limit=2 * limit + SPARE, mode="semantic")
        found = search(text, COLLECTION, store=self._engine.store, embedder=self._engine.models, options=options)
        asked = meaning_of(text).concepts
        hits = [CommandHit(self._commands[hit.id], hit.fused if hit.score is None else hit.score) for hit in found]
        return sorted(hits, key=lambda hit: opposed(asked, command_meaning(hit.command).concepts))[:limit]


def _text(command: CommandSpec) -> str:
    values = " ".join(option.description for option in command.value_list if option.description)
    return " ".join(filter(None, (command.description or command.id, *command.synonyms, values)))
