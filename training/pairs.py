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
    "reading_zh": 0.0, "reading_en": 0.0, "several_zh": 0.0, "several_en": 0.0,
}  # fmt: skip
NEAR = 8  # sentences this close to each other share most of their passages
GROUPS = 16  # of near neighbours in a batch of them
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
    english: tuple[Tensor, Tensor] | None = None  # the same queries and documents in English
    parts: Tensor | None = None  # of requests that want several things: what each document answers
    owner: Tensor | None = None  # and the query that each document belongs to


@dataclass
class Drawn:
    """Texts of a batch. Documents whose numbers lie at most `reach` apart are the same to a query."""

    queries: list[np.ndarray]
    documents: list[np.ndarray]
    identity: np.ndarray
    reach: int = 0
    english: tuple[list[np.ndarray], list[np.ndarray]] | None = None
    parts: list[np.ndarray] | None = None
    owner: np.ndarray | None = None


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
    def __init__(self, prepared: Path, corpus: Corpus, seed: int, shares: dict[str, float], near: float) -> None:
        self._near = near
        self._rng = np.random.default_rng(seed)
        self._device = corpus.flat.device
        file, aligned = np.load(prepared / "retrieve.npz"), np.load(prepared / "distil.npz")
        names = (
            "title", "heading", "body", "question", "passage", "prefix_zh", "prefix_en", "glossed", "topic",
            "topic_question", "intent", "intent_words", "intent_question", "role", "colon", "polite_zh",
            "join_zh", "join_en", "reading_zh", "reading_en",
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
            "reading_zh": self._openings("reading_zh", file["source_zh"]),
            "reading_en": self._openings("reading_en", file["source_en"]),
        }
        self._rows |= {"several_zh": self._rows["topic"], "several_en": self._rows["heading_en"]}
        self._starts = {name: file[f"{name}_start"] for name in ("topic", "intent")}
        # A topic with many questions comes more often, but not as much more often as it has questions.
        often = np.sqrt(np.diff(self._starts["topic"]))
        self._often = {"topic": often / often.sum()}
        self._source = {"lead": aligned["source"], "reading_zh": file["source_zh"], "reading_en": file["source_en"]}
        self._vectors: dict[str, Tensor] = {}
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

    def _openings(self, name: str, source: np.ndarray) -> np.ndarray:
        """Sentences of some length that open a run of at least three of one source."""
        place, length = np.arange(max(0, len(source) - 3)), self._texts[name].lengths
        return place[(source[place] == source[place + 2]) & (length[place] > 8)]

    def _text(self, name: str, row: int) -> np.ndarray:
        texts = self._texts[name]
        return texts.flat[texts.offsets[row] : texts.offsets[row + 1]]

    def mine(self, model: Encoder) -> None:
        """For each question and heading, the nearest documents that are not its own."""
        for kind, query, document in (("question", "question", "passage"), ("heading", "heading", "body")):
            queries, documents = (embed(model, self._texts[name], self._device) for name in (query, document))
            nearest = [(part @ documents.T).topk(NEIGHBOURS).indices.cpu() for part in queries.split(2048)]
            self._mined[kind] = torch.cat(nearest).numpy()

        if self._near:
            rows, answer_in = self._rows, self._answer_in
            documents = {"question": ("passage", answer_in), "topic": ("topic", rows["topic"])}
            documents |= {kind: ("body", rows[kind]) for kind in ("heading_zh", "heading_en")}
            documents |= {kind: (kind, rows[kind]) for kind in ("reading_zh", "reading_en")}
            for kind in set(documents) & set(self._kinds):
                name, places = documents[kind]
                vectors = embed(model, self._texts[name], self._device).half()
                self._vectors[kind] = vectors[torch.from_numpy(places).to(self._device)]

    def sample(self) -> list[Tensor]:
        """Chinese texts of several kinds, for a teacher's mean."""
        names = ("passage", "topic_question", "reading_zh")
        return [padded([self._any(name) for _ in range(800)], self._device) for name in names]

    def _chosen(self, kind: str, count: int) -> np.ndarray:
        """Rows at random, or a few groups of near neighbours: what is hard to tell apart."""
        rows = self._rows[kind]
        if kind in self._vectors and self._rng.random() < self._near:
            vectors = self._vectors[kind]
            first = torch.from_numpy(self._rng.choice(len(rows), GROUPS, replace=False)).to(self._device)
            near = (vectors[first] @ vectors.T).topk(count // GROUPS).indices
            return rows[np.unique(near.flatten().cpu().numpy())]
        return self._rng.choice(rows, min(count, len(rows)), replace=False, p=self._often.get(kind))

    def draw(self, count: int) -> Pairs:
        kind = self._kinds[self._rng.choice(len(self._kinds), p=self._chance)]
        rows = self._chosen(kind, count)
        drawn: Drawn = getattr(self, f"_{kind.split('_')[0]}")(rows, kind)
        own = drawn.identity[: len(drawn.queries)]
        excused = torch.from_numpy(np.abs(own[:, None] - drawn.identity[None, :]) <= drawn.reach)
        excused[torch.arange(len(own)), torch.arange(len(own))] = False
        return Pairs(
            kind, padded(drawn.queries, self._device), padded(drawn.documents, self._device),
            excused.to(self._device), TWINS if kind in ("topic", "intent") else None,
            None if drawn.english is None else tuple(padded(texts, self._device) for texts in drawn.english),
            None if drawn.parts is None else padded(drawn.parts, self._device),
            None if drawn.owner is None else torch.from_numpy(drawn.owner).to(self._device),
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

    def _topic(self, rows: np.ndarray, kind: str) -> Drawn:
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
        return Drawn(queries, documents, rows)

    def _intent(self, rows: np.ndarray, kind: str) -> Drawn:
        """A request and the name of what it asks for, as an identifier, in words, or both."""
        queries, documents, starts = [], [], self._starts["intent"]
        for row in rows:
            name, words = self._text("intent", int(row)), self._text("intent_words", int(row))
            both = np.concatenate([name, self._text("colon", 0), words])
            queries.append(self._text("intent_question", int(self._rng.integers(starts[row], starts[row + 1]))))
            documents.append((name, words, both)[int(self._rng.integers(3))])
        return Drawn(queries, documents, rows)

    def _glossed(self, rows: np.ndarray, kind: str) -> Drawn:
        """A question in dictionary English, and its Chinese passage."""
        drawn = self._question(rows, kind)
        drawn.queries = [self._text("glossed", int(row)) for row in rows]
        return drawn

    def _question(self, rows: np.ndarray, kind: str) -> Drawn:
        own = [int(row) for row in self._answer_in[rows]]
        every = own + self._negatives(self._mined["question"][rows], own, "passage")
        return Drawn(
            [self._text("question", row) for row in rows],
            [self._text("passage", row) for row in every],
            np.array(every),
        )

    def _heading(self, rows: np.ndarray, kind: str) -> Drawn:
        own = [int(row) for row in rows]
        queries = []
        prefixes = f"prefix_{kind[-2:]}"
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
        return Drawn(
            queries,
            [row[: int(self._rng.integers(24, 64))] for row in documents] if short else documents,
            np.array(every),
        )

    def _run(self, kind: str, row: int) -> tuple[int, int]:
        """The sentences after (at times from) this one on, all of its source."""
        source = self._source[kind]
        last = min(row + int(self._rng.integers(3, 9)), len(source))
        others = np.flatnonzero(source[row:last] != source[row])
        last = row + int(others[0]) if len(others) else last
        first = row + 1 if self._rng.random() < 0.7 else row
        return first, max(last, first + 1)

    def _lead(self, rows: np.ndarray, kind: str) -> Drawn:
        """A sentence and its passage, each in either language."""
        ask, answer = self._rng.choice(["zh", "en"]), self._rng.choice(["zh", "en"])
        runs = [self._run(kind, int(row)) for row in rows]

        def texts(language: str) -> list[np.ndarray]:
            flat, offsets = self._texts[language].flat, self._texts[language].offsets
            return [flat[offsets[first] : offsets[last]] for first, last in runs]

        return Drawn(
            [self._text(ask, row) for row in rows], texts(answer), rows, NEAR,
            english=([self._text("en", row) for row in rows], texts("en")),
        )  # fmt: skip

    def _reading(self, rows: np.ndarray, kind: str) -> Drawn:
        """A sentence and its passage of plain text."""
        flat, offsets = self._texts[kind].flat, self._texts[kind].offsets
        runs = [self._run(kind, int(row)) for row in rows]
        passages = [flat[offsets[first] : offsets[last]] for first, last in runs]
        return Drawn([self._text(kind, row) for row in rows], passages, rows, NEAR)

    def _several(self, rows: np.ndarray, kind: str) -> Drawn:
        """Two to four requests in one, and a document for each of them."""
        language = kind[-2:]
        single = self._rng.choice(["topic", "heading_zh"] if language == "zh" else ["intent", "heading_en"])
        rows = self._rng.choice(self._rows[single], min(len(rows), len(self._rows[single])), replace=False)
        drawn: Drawn = getattr(self, f"_{single.split('_')[0]}")(rows, single)
        sizes = self._rng.integers(2, 5, len(rows))
        owner = np.repeat(np.arange(len(rows)), sizes)[: len(rows)]
        queries = []
        for number in range(owner[-1] + 1):
            parts = [drawn.queries[int(own)] for own in np.flatnonzero(owner == number)]
            joints = [self._any(f"join_{language}") for _ in parts[1:]]
            queries.append(
                np.concatenate([parts[0], *(x for pair in zip(joints, parts[1:], strict=True) for x in pair)])
            )
        return Drawn(queries, drawn.documents[: len(rows)], rows, parts=drawn.queries, owner=owner)
