"""Batches of query and document pairs for stage 2, with mined negatives."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from corpus import Corpus, by_length, with_ends
from data import CLS, LONGEST, SEP, Texts, load_texts
from encoder import Encoder

SHARES = {
    "question": 0.22, "glossed": 0.12, "topic": 0.26, "intent": 0.05,
    "heading_zh": 0.12, "heading_en": 0.08, "lead": 0.15,
}  # fmt: skip
TWINS = 0.75  # topics this close to each other are no negatives for each other's questions
NEIGHBOURS = 24  # the mined negative is one of a query's nearest wrong documents
LEAD_SOURCES = ("mdn", "python", "msdocs", "k8s", "github", "django", "libreoffice_help", "istio", "godot", "flutter",
                "angular", "dify_docs", "d2l", "debian", "ntrex", "tico")  # fmt: skip


@dataclass(frozen=True)
class Pairs:
    """Row i of `queries` belongs to row i of `documents`; further documents are negatives for all."""

    kind: str
    queries: Tensor
    documents: Tensor
    excused: Tensor  # queries × documents: neither right nor wrong (the same document again)
    twins: float | None = None  # documents this close to the right one are excused, too


def padded(rows: list[np.ndarray], device: torch.device) -> Tensor:
    rows = [row[:LONGEST] for row in rows]
    result = np.zeros((len(rows), max(len(row) for row in rows) + 2), dtype=np.int64)
    for place, row in enumerate(rows):
        result[place, 0] = CLS
        result[place, 1 : len(row) + 1] = row
        result[place, len(row) + 1] = SEP
    return torch.from_numpy(result).to(device)


def embed(model: Encoder, texts: Texts, device: torch.device) -> Tensor:
    flat = torch.from_numpy(texts.flat.astype(np.int32)).to(device)
    start = torch.from_numpy(texts.offsets[:-1]).to(device)
    length = torch.from_numpy(np.minimum(texts.lengths, LONGEST)).to(device)
    vectors = torch.zeros(len(texts), 384, device=device)
    with torch.inference_mode():
        for rows, size in by_length(length, torch.arange(len(start), device=device), 131_072):
            vectors[rows] = model(with_ends(flat, start[rows], size))
    return vectors


class PairSource:
    def __init__(self, prepared: Path, corpus: Corpus, seed: int, shares: dict[str, float]) -> None:
        self._rng = np.random.default_rng(seed)
        self._device = corpus.flat.device
        file, aligned = np.load(prepared / "retrieve.npz"), np.load(prepared / "distil.npz")
        names = (
            "title", "heading", "body", "question", "passage", "prefix_zh", "prefix_en", "glossed", "topic",
            "topic_question", "intent", "intent_words", "intent_question", "role", "colon", "polite_zh",
        )  # fmt: skip
        self._texts = {name: load_texts(file, name) for name in names}
        self._texts |= {name: load_texts(aligned, name) for name in ("zh", "en")}
        self._answer_in = file["answer_in"]
        chinese, good = file["chinese"], self._texts["heading"].lengths > 0
        self._rows = {
            "question": np.arange(len(self._texts["question"])),
            "heading_zh": np.flatnonzero(chinese & good),
            "heading_en": np.flatnonzero(~chinese & good),
            "lead": self._leads(aligned),
            "glossed": np.arange(len(self._texts["glossed"])),
            "topic": np.arange(len(self._texts["topic"])),
            "intent": np.arange(len(self._texts["intent"])),
        }
        self._starts = {name: file[f"{name}_start"] for name in ("topic", "intent")}
        # A topic with many questions comes more often, but not as much more often as it has questions.
        often = np.sqrt(np.diff(self._starts["topic"]))
        self._often = {"topic": often / often.sum()}
        self._source = aligned["source"]
        self._mined: dict[str, np.ndarray] = {}
        shares = SHARES | shares
        self._kinds = [kind for kind in shares if shares[kind] > 0 and len(self._rows[kind])]
        self._chance = np.array([shares[kind] for kind in self._kinds]) / sum(shares[kind] for kind in self._kinds)

    def sizes(self) -> dict[str, int]:
        return {kind: len(self._rows[kind]) for kind in self._kinds}

    def _leads(self, aligned: np.lib.npyio.NpzFile) -> np.ndarray:
        """Sentences that open a run of at least four of one source."""
        source = aligned["source"]
        wanted = np.array([str(name).startswith(LEAD_SOURCES) for name in aligned["sources"]])[source]
        zh = self._texts["zh"].lengths
        place = np.arange(len(source) - 4)
        return place[wanted[place] & (source[place] == source[place + 3]) & (zh[place] > 5) & (zh[place] < 60)]

    def _text(self, name: str, row: int) -> np.ndarray:
        texts = self._texts[name]
        return texts.flat[texts.offsets[row] : texts.offsets[row + 1]]

    def mine(self, model: Encoder) -> None:
        """For each question and heading, the nearest documents that are not its own."""
        for kind, query, document in (("question", "question", "passage"), ("heading", "heading", "body")):
            queries, documents = (embed(model, self._texts[name], self._device) for name in (query, document))
            nearest = [(part @ documents.T).topk(NEIGHBOURS).indices.cpu() for part in queries.split(2048)]
            self._mined[kind] = torch.cat(nearest).numpy()

    def draw(self, count: int) -> Pairs:
        kind = self._kinds[self._rng.choice(len(self._kinds), p=self._chance)]
        rows = self._rng.choice(
            self._rows[kind], min(count, len(self._rows[kind])), replace=False, p=self._often.get(kind)
        )
        queries, documents, identity = getattr(self, f"_{kind.split('_')[0]}")(rows)
        own = np.array(identity[: len(rows)])
        excused = torch.from_numpy(own[:, None] == np.array(identity)[None, :])
        excused[torch.arange(len(rows)), torch.arange(len(rows))] = False
        return Pairs(
            kind, padded(queries, self._device), padded(documents, self._device), excused.to(self._device),
            TWINS if kind in ("topic", "intent") else None,
        )  # fmt: skip

    def _negatives(self, mined: np.ndarray, own: list[int], documents: str) -> list[int]:
        """One mined document for every other query."""
        chosen = []
        for near, right in zip(mined[::2], own[::2], strict=True):
            wrong = [row for row in near[2:] if row != right and not self._equal(documents, row, right)]
            chosen += [int(self._rng.choice(wrong))] if wrong else []
        return chosen

    def _equal(self, name: str, one: int, other: int) -> bool:
        return np.array_equal(self._text(name, one), self._text(name, other))

    def _any(self, name: str) -> np.ndarray:
        return self._text(name, int(self._rng.integers(len(self._texts[name]))))

    def _topic(self, rows: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray], list[int]]:
        """A question and its topic, which is bare, named like an assistant, or described by another question."""
        queries, documents, starts = [], [], self._starts["topic"]
        for row in rows:
            first, other = self._rng.integers(starts[row], starts[row + 1], 2)
            document = [self._text("topic", int(row))]
            way = self._rng.random()
            if 0.4 < way < 0.7:
                document.append(self._any("role"))
            if way > 0.55 and other != first:
                document += [self._any("colon"), self._text("topic_question", int(other))]
            queries.append(np.concatenate([self._any("polite_zh"), self._text("topic_question", int(first))])[:64])
            documents.append(np.concatenate(document)[:64])
        return queries, documents, [int(row) for row in rows]

    def _intent(self, rows: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray], list[int]]:
        """A request and the name of what it asks for, as an identifier, in words, or both."""
        queries, documents, starts = [], [], self._starts["intent"]
        for row in rows:
            name, words = self._text("intent", int(row)), self._text("intent_words", int(row))
            both = np.concatenate([name, self._text("colon", 0), words])
            queries.append(self._text("intent_question", int(self._rng.integers(starts[row], starts[row + 1]))))
            documents.append((name, words, both)[int(self._rng.integers(3))])
        return queries, documents, [int(row) for row in rows]

    def _glossed(self, rows: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray], list[int]]:
        """A question in dictionary English, and its Chinese passage."""
        _, documents, identity = self._question(rows)
        return [self._text("glossed", int(row)) for row in rows], documents, identity

    def _question(self, rows: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray], list[int]]:
        own = [int(row) for row in self._answer_in[rows]]
        every = own + self._negatives(self._mined["question"][rows], own, "passage")
        return (
            [self._text("question", row) for row in rows],
            [self._text("passage", row) for row in every],
            every,
        )

    def _heading(self, rows: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray], list[int]]:
        own = [int(row) for row in rows]
        queries = []
        chinese = bool(self._texts["prefix_zh"].flat[0] and self._text("body", own[0]).max() >= 30_522)
        prefixes = "prefix_zh" if chinese else "prefix_en"
        for row in own:
            parts = [self._text(prefixes, int(self._rng.integers(len(self._texts[prefixes]))))]
            if self._rng.random() < 0.4:
                parts.append(self._text("title", row))
            queries.append(np.concatenate([*parts, self._text("heading", row)])[:64])
        every = own + self._negatives(self._mined["heading"][rows], own, "body")
        documents = []
        for row in every:
            body = self._text("body", row)
            titled = self._rng.random() < 0.3
            documents.append(np.concatenate([self._text("title", row), body]) if titled else body)
        # Short documents too: tools and skills are described in a sentence or two.
        short = self._rng.random() < 0.4
        return (
            queries,
            [row[: int(self._rng.integers(24, 64))] for row in documents] if short else documents,
            every,
        )

    def _lead(self, rows: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray], list[int]]:
        ask, answer = self._rng.choice(["zh", "en"]), self._rng.choice(["zh", "en"])
        queries, documents, identity = [], [], []
        offsets = self._texts[answer].offsets
        for row in rows:
            last = row + int(self._rng.integers(3, 9))
            last = (
                int(row + np.searchsorted(self._source[row:last] != self._source[row], True))
                if (self._source[min(last, len(self._source)) - 1] != self._source[row])
                else min(last, len(self._source))
            )
            first = row + 1 if self._rng.random() < 0.7 else row
            queries.append(self._text(ask, row))
            documents.append(self._texts[answer].flat[offsets[first] : offsets[max(last, first + 1)]])
            identity.append(int(row))
        # Neighbouring rows share most of their passage.
        near = {row: min(identity, key=lambda other: (abs(other - row) > 8, other)) for row in identity}
        return queries, documents, [near[row] for row in identity]
