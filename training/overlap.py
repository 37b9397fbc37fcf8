"""Finds training texts that repeat a development text.

Two texts overlap when they share a run of characters, letters and digits only: 13 of them, most of them
Chinese, in a Chinese text, 48 in any other; short texts overlap when they are the same as a whole. Characters
that share an id in the tokenizer (simplified and traditional forms) count as one.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

CHINESE_RUN, OTHER_RUN = 13, 48
SHORTEST = 5  # letters or characters: below it, equal texts are words
STEP = 3  # a training text is probed at every third place, so a run of 15 (50) is always seen
_NOISE = re.compile(r"[\W_]+")
_CHINESE = re.compile(r"[\u4e00-\u9fff]")


class Overlap:
    def __init__(self, dev: Path, tokenizer: Path) -> None:
        vocabulary = json.loads(tokenizer.read_text(encoding="utf-8"))["model"]["vocab"]
        one_of = {number: string for string, number in vocabulary.items() if len(string) == 1}
        self._same = str.maketrans(
            {string: one_of[number] for string, number in vocabulary.items() if len(string) == 1}
        )
        self._chinese: set[str] = set()
        self._other: set[str] = set()
        self._whole: set[str] = set()
        for path in sorted(dev.glob("*/*.jsonl")):
            if path.name in ("corpus.jsonl", "queries.jsonl"):
                for line in path.open(encoding="utf-8"):
                    self._add(json.loads(line)["text"])

    def _plain(self, text: str) -> str:
        text = _NOISE.sub("", text.lower())
        return text.translate(self._same) if _CHINESE.search(text) else text

    def _add(self, text: str) -> None:
        plain = self._plain(text)
        self._whole.add(plain)
        chinese = bool(_CHINESE.search(plain))
        size, found = (CHINESE_RUN, self._chinese) if chinese else (OTHER_RUN, self._other)
        runs = (plain[place : place + size] for place in range(len(plain) - size + 1))
        found.update(run for run in runs if not chinese or len(_CHINESE.findall(run)) > size // 2)

    def __contains__(self, text: str) -> bool:
        plain = self._plain(text)
        if len(plain) >= SHORTEST and plain in self._whole:
            return True
        chinese = bool(_CHINESE.search(plain))
        size, found = (CHINESE_RUN, self._chinese) if chinese else (OTHER_RUN, self._other)
        last = len(plain) - size
        return any(plain[place : place + size] in found for place in range(0, last + 1, STEP))
