"""The distillation corpus on the device: every text a slice of one flat token array, with its teacher vector.

Passages are runs of consecutive sentences of one source; since neighbours in a source are neighbours in the flat
array, a passage is a longer slice and costs no memory. Each epoch cuts the sources anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from data import CLS, LONGEST, SEP, UNKNOWN, load_texts

Teacher = Callable[[Tensor], Tensor]  # token ids to unit vectors
CUTS = 4  # ways in which the sources are cut into passages; teacher vectors are computed for each
EVERYDAY = (
    "3am", "cataclysm", "crosswoz", "debian_ddtp", "dify_plugins", "homeassistant", "libreoffice_ui", "multiwoz",
    "ntrex", "prompt_titles", "tatoeba", "tico", "wesnoth",
)  # fmt: skip
MOST = 8_192  # rows a teacher reads at once: attention takes no more than some ten thousand
ORIGINAL = 30_522  # the teacher's vocabulary; newer ids are unknown to it


@dataclass(frozen=True)
class Group:
    """Texts of one kind: slices of the flat array, and the row of `targets` each should land on."""

    start: Tensor
    length: Tensor
    target: Tensor
    share: Tensor  # how often a text comes in an epoch: 2.0 twice, 0.5 every other epoch
    chinese: bool


@dataclass(frozen=True)
class Items:
    """One epoch, chopped into chunks of texts of equal length and one language."""

    flat: Tensor
    targets: Tensor
    chunks: list[tuple[Group, Tensor, int]]
    budget: int

    def __len__(self) -> int:
        return len(self.chunks)

    def is_chinese(self, place: int) -> bool:
        return self.chunks[place][0].chinese

    def batch(self, place: int) -> tuple[Tensor, Tensor, bool]:
        group, rows, length = self.chunks[place]
        return (
            with_ends(self.flat, group.start[rows], length),
            self.targets[group.target[rows]].float(),
            group.chinese,
        )


def with_ends(flat: Tensor, start: Tensor, length: int) -> Tensor:
    """Rows of [CLS], `length` tokens from each start, [SEP]."""
    body = flat[start[:, None] + torch.arange(length, device=flat.device)].long()
    ends = torch.ones(len(start), 1, dtype=torch.long, device=flat.device)
    return torch.cat([ends * CLS, body, ends * SEP], dim=1)


def by_length(length: Tensor, rows: Tensor, budget: int) -> list[tuple[Tensor, int]]:
    """Rows in chunks of equal length of at most `budget` tokens, ends included."""
    order = rows[torch.argsort(length[rows], stable=True)]
    values, counts = torch.unique_consecutive(length[order], return_counts=True)
    chunks = []
    for part, value in zip(order.split(counts.tolist()), values.tolist(), strict=True):
        chunks += [(piece, value) for piece in part.split(max(1, budget // (value + 2)))]
    return chunks


def quarters(count: int, full: int) -> int:
    return count // max(1, full // 4) * max(1, full // 4)


def teach(teacher: Teacher, flat: Tensor, start: Tensor, length: Tensor) -> Tensor:
    """The teacher's vectors of slices of the flat array; ids it does not know become [UNK]."""
    vectors = torch.empty(len(start), 384, dtype=torch.half, device=flat.device)
    with torch.inference_mode():
        for rows, size in by_length(length, torch.arange(len(start), device=flat.device), 262_144):
            for part in rows.split(MOST):
                ids = with_ends(flat, start[part], size)
                vectors[part] = teacher(ids.masked_fill(ids >= ORIGINAL, UNKNOWN)).half()
    return vectors


def cut(zh: np.ndarray, en: np.ndarray, source: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(first, past last) sentence of passages of 40 to LONGEST tokens in the longer language, all of one source."""
    found = []
    size = np.maximum(zh, en).tolist()
    sources = source.tolist()
    wanted = rng.integers(40, LONGEST + 1, len(size)).tolist()
    first, run, count = 0, 0, 0
    for place, tokens in enumerate(size):
        if place > first and (run + tokens > wanted[count] or sources[place] != sources[first]):
            if place - first > 1 and run <= LONGEST:
                found.append((first, place))
            first, run, count = place, 0, count + 1
        run += tokens
    return np.array(found, dtype=np.int64).reshape(-1, 2)


class Corpus:
    def __init__(self, flat: Tensor, targets: Tensor, steady: list[Group], cuts: list[list[Group]], seed: int) -> None:
        self.flat, self.targets, self._steady, self._cuts, self._seed = flat, targets, steady, cuts, seed

    @classmethod
    def read(cls, path: Path, teacher: Teacher | Tensor, *, device: str, seed: int) -> Corpus:
        """The teacher may be its own vectors, as an earlier corpus of the same texts and seed holds them."""
        file = np.load(path)
        texts = {name: load_texts(file, name) for name in ("zh", "en", "word", "gloss", "section", "request")}
        base, place = {}, 0
        for name, value in texts.items():
            base[name], place = place, place + len(value.flat)
        flat = torch.from_numpy(np.concatenate([value.flat for value in texts.values()]).astype(np.int32)).to(device)
        parts: list[Tensor] = []

        def on_device(array: np.ndarray) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(array)).to(device)

        def slices(name: str, first: np.ndarray, last: np.ndarray) -> tuple[Tensor, Tensor]:
            offsets = texts[name].offsets
            length = np.minimum(offsets[last] - offsets[first], LONGEST)
            return on_device(base[name] + offsets[first]), on_device(length)

        def taught(english: tuple[Tensor, Tensor]) -> Tensor:
            rows = sum(len(part) for part in parts)
            count = len(english[0])
            parts.append(
                teacher[rows : rows + count] if isinstance(teacher, Tensor) else teach(teacher, flat, *english)
            )
            return torch.arange(rows, rows + len(english[0]), device=device)

        def group(texts_: tuple[Tensor, Tensor], target: Tensor, share: Tensor | float, chinese: bool) -> Group:
            share = share if isinstance(share, Tensor) else torch.full((len(target),), share, device=device)
            good = texts_[1] > 0
            return Group(texts_[0][good], texts_[1][good], target[good], share[good], chinese)

        row = np.arange(len(texts["zh"]))
        everyday = np.array([str(name).startswith(EVERYDAY) for name in file["sources"]])[file["source"]]
        share = on_device(np.where(everyday, 2.0, 1.0).astype(np.float32))
        english = slices("en", row, row + 1)
        target = taught(english)
        steady = [group(slices("zh", row, row + 1), target, share, True), group(english, target, 0.5, False)]
        request = np.arange(len(texts["request"]))
        polite = target[on_device(file["request_row"])]
        steady.append(group(slices("request", request, request + 1), polite, 1.0, True))
        word, section = np.arange(len(texts["word"])), np.arange(len(texts["section"]))
        steady.append(group(slices("word", word, word + 1), taught(slices("gloss", word, word + 1)), 1.0, True))
        english = slices("section", section, section + 1)
        steady.append(group(english, taught(english), 0.5, False))
        cuts = []
        for number in range(CUTS):
            runs = cut(
                texts["zh"].lengths,
                texts["en"].lengths,
                file["source"],
                np.random.default_rng([seed, number]),
            )
            english = slices("en", runs[:, 0], runs[:, 1])
            target = taught(english)
            cuts.append(
                [
                    group(slices("zh", runs[:, 0], runs[:, 1]), target, 1.0, True),
                    group(english, target, 0.5, False),
                ]
            )
        return cls(flat, teacher if isinstance(teacher, Tensor) else torch.cat(parts), steady, cuts, seed)

    def epoch(self, number: int, budget: int) -> Items:
        generator = torch.Generator(self.flat.device).manual_seed(self._seed * 1000 + number)
        chunks: list[tuple[Group, Tensor, int]] = []
        for group in self._steady + self._cuts[number % len(self._cuts)]:
            chance = torch.rand(len(group.start), generator=generator, device=self.flat.device)
            times = (group.share + chance).floor().long()
            rows = torch.repeat_interleave(torch.arange(len(times), device=times.device), times)
            rows = rows[torch.randperm(len(rows), generator=generator, device=rows.device)]
            chunks += [(group, part, length) for part, length in by_length(group.length, rows, budget)]
        # Remainders keep whole quarters of a chunk: few shapes, and what is left out differs from epoch to epoch.
        chunks = [
            (group, rows[: quarters(len(rows), budget // (length + 2))], length) for group, rows, length in chunks
        ]
        chunks = [chunk for chunk in chunks if len(chunk[1])]
        order = np.random.default_rng([self._seed, number]).permutation(len(chunks))
        return Items(self.flat, self.targets, [chunks[place] for place in order], budget)

    def summary(self) -> dict[str, int]:
        groups = self._steady + [group for pair in self._cuts for group in pair]
        return {
            "texts": sum(len(group.start) for group in groups),
            "passages": sum(len(pair[0].start) for pair in self._cuts),
            "tokens": sum(int(group.length.sum()) for group in groups),
        }
