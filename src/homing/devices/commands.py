"""Finding commands of a whole library by what they do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from homing.devices.device import CommandSpec
from homing.devices.lexicon.actions import opposed
from homing.devices.meaning import command_meaning, meaning_of
from homing.devices.query import QueryIR
from homing.embedders.provider import EmbeddingProvider
from homing.vectors import score_of


@dataclass(frozen=True, slots=True)
class CommandHit:
    """A command and how alike the query is."""

    command: CommandSpec
    score: float


class CommandIndex:
    """The commands of a profile file by the vectors of their descriptions, synonyms and values."""

    def __init__(self, commands: Iterable[CommandSpec], embedder: EmbeddingProvider) -> None:
        self._commands = list(commands)
        self._embedder = embedder
        self._rows = embedder.embed([_text(command) for command in self._commands], kind="document")

    def search(self, query: str | QueryIR, limit: int = 10) -> list[CommandHit]:
        """The `limit` commands most alike, best first; those that go the other way come last.

        Of a QueryIR the action is asked, or the sentence where it has none.
        """
        text = query if isinstance(query, str) else query.action or query.raw
        if not text.strip() or not self._commands:
            return []
        cosines = self._rows @ self._embedder.embed([text], kind="query")[0]
        asked = meaning_of(text).concepts
        away = np.array([opposed(asked, command_meaning(command).concepts) for command in self._commands])
        order = np.lexsort((-cosines, away))[:limit]
        return [CommandHit(self._commands[i], score_of(float(cosines[i]), self._embedder.scale)) for i in order]


def _text(command: CommandSpec) -> str:
    values = " ".join(option.description for option in command.value_list if option.description)
    return " ".join(filter(None, (command.description or command.id, *command.synonyms, values)))
