"""How alike an action and a command are: by the vectors of their words, by the lexicon, or by the words alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from threading import Lock

import numpy as np

from homing.devices.device import CommandSpec
from homing.devices.lexicon.actions import CANONICAL, SPECIAL, accepted, opposed
from homing.devices.lexicon.values import PROPERTY_WORDS
from homing.devices.lexicon.words import STATE_CONCEPTS
from homing.devices.parsing.clauses import bind
from homing.devices.parsing.tokens import Kind, lex_plain
from homing.devices.query import QueryIR
from homing.devices.vocabulary import spoken
from homing.embedders.provider import EmbeddingProvider
from homing.engine.engine import temporary_engine
from homing.engine.search import HybridOptions, search
from homing.records import VectorRecord
from homing.text.tokens import tokens
from homing.vectors import Matrix, score_of

_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BOTH_WAYS = re.compile(r"\bon (?:or )?off\b|\bopen (?:or )?close\b|打开或关闭|打开关闭|开启关闭")
SimilarityFunc = Callable[[str, str], float]
"""Likeness of an action and a text of a command, comparable with a threshold of 0.5."""
COLLECTION = "commands"
SPARE = 20
"""Commands looked at beyond those wanted: some may go the other way."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """Concepts of verbs, properties, and the words that are neither."""

    concepts: frozenset[str] = frozenset()
    properties: frozenset[str] = frozenset()
    rest: tuple[str, ...] = ()


@lru_cache(maxsize=20_000)
def meaning_of(text: str) -> Meaning:
    """What a short text says is done: 打开设备, "Turns on the light", setBrightness."""
    form = spoken(_HUMPS.sub(" ", text))
    tokens = bind(list(lex_plain(form)))
    concepts: set[str] = set()
    for token in tokens:
        if token.action is not None:
            concepts |= token.action.concepts
        elif token.state is not None:
            concepts |= STATE_CONCEPTS[token.state]
    if _BOTH_WAYS.search(form):
        concepts |= {"on", "off"}
    properties = {token.property for token in tokens if token.property}
    properties |= {token.action.property for token in tokens if token.action is not None and token.action.property}
    rest = tuple(token.text for token in tokens if token.kinds <= {Kind.UNKNOWN})
    return Meaning(frozenset(concepts), frozenset(filter(None, properties)), rest)


@lru_cache(maxsize=20_000)
def command_meaning(command: CommandSpec) -> Meaning:
    """What a command does, from its description, else from its id; its values may say that it goes both ways."""
    said = [meaning_of(text) for text in (command.description, *command.synonyms) if text]
    concepts = frozenset[str]().union(*(meaning.concepts for meaning in said))
    properties = frozenset[str]().union(*(meaning.properties for meaning in said))
    named = meaning_of(command.id)
    for option in command.value_list:
        concepts |= meaning_of(f"{option.value}").concepts | meaning_of(option.description).concepts
    return Meaning(concepts or named.concepts, properties or named.properties, said[0].rest if said else ())


@lru_cache(maxsize=20_000)
def wordings(command: CommandSpec) -> tuple[str, ...]:
    """The texts an action is compared with: the description, its synonyms, its values, and the usual ways to say it."""
    texts = [command.description or command.id, *command.synonyms]
    texts += [
        f"{command.description} {option.description}".strip() for option in command.value_list if option.description
    ]
    meaning = command_meaning(command)
    does = {concept for concept in CANONICAL if accepted(frozenset({concept})) & meaning.concepts}
    if "set" in meaning.concepts and meaning.properties:
        does |= {"up", "down"}
    for concept in sorted(does):
        texts += CANONICAL[concept]
        for name in sorted(meaning.properties):
            chinese, english = PROPERTY_WORDS[name]
            texts += (f"{CANONICAL[concept][0]}{chinese}", f"{CANONICAL[concept][1]} {english}")
            texts += SPECIAL.get((concept, name), ())
    return tuple(dict.fromkeys(texts))


class VectorSimilarity:
    """The score of two texts under an embedder. A text is embedded once, in batches where `prepare` was called."""

    def __init__(self, embedder: EmbeddingProvider) -> None:
        self._embedder = embedder
        self._rows: dict[str, int] = {}
        # Not of the embedder's width yet: a model that is not there has none to tell.
        self._matrix: Matrix = np.zeros((0, 0), dtype=np.float32)
        self._actions: dict[str, tuple[int, Matrix]] = {}
        self._lock = Lock()

    def prepare(self, texts: Iterable[str]) -> int:
        """Embeds the texts that are new; says how many they were."""
        with self._lock:
            new = [text for text in dict.fromkeys(texts) if text.strip() and text not in self._rows]
            if new:
                rows = self._embedder.embed(new, kind="document")
                first = len(self._matrix)
                self._matrix = np.vstack([self._matrix, rows]) if first else rows
                self._rows.update({text: first + position for position, text in enumerate(new)})
            return len(new)

    def best(self, action: str, texts: Sequence[str]) -> float:
        """The score of the text that is most like the action; 0 without texts."""
        if not action.strip():
            return 0.0
        self.prepare(texts)
        rows = [self._rows[text] for text in texts if text in self._rows]
        if not rows:
            return 0.0
        cosines = self._cosines(action)
        return score_of(float(cosines[rows].max()), self._embedder.scale)

    def __call__(self, a: str, b: str) -> float:
        return self.best(a, [b])

    def _cosines(self, action: str) -> Matrix:
        """The action against every text at once; kept until texts are added."""
        with self._lock:
            known = self._actions.get(action)
            if known is None or known[0] != len(self._matrix):
                if len(self._actions) > 256:
                    self._actions.clear()
                vector = self._embedder.embed([action], kind="query")[0]
                known = (len(self._matrix), self._matrix @ vector)
                self._actions[action] = known
            return known[1]


@cache
def default_similarity() -> VectorSimilarity:
    """The bundled model, loaded when it is first asked."""
    from homing.embedders.local import LocalProvider

    return VectorSimilarity(LocalProvider())


def word_similarity(a: str, b: str) -> float:
    """1 for the same meaning in the lexicon, else the share of words in common; 0 for opposites."""
    first, second = meaning_of(a), meaning_of(b)
    if opposed(first.concepts, second.concepts):
        return 0.0
    if first.concepts & second.concepts and first.properties <= second.properties:
        return 1.0
    left, right = set(tokens(a)), set(tokens(b))
    return len(left & right) / len(left | right) if left | right else 0.0


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
