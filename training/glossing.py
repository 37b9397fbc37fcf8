"""Chinese turned into English word by word with the dictionary: clumsy, but most words mean what they should.

A question glossed in this way still asks for the same passage, which makes a half-English question for a Chinese
passage where nobody wrote one. Unknown words and single characters stay Chinese.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from data import read_jsonl

MAX_WORD = 10
# Frequent words whose first gloss is not what they mean in a question.
GRAMMAR = {
    "的": "'s", "了": "", "吗": "", "呢": "", "着": "", "是": "is", "在": "in", "有": "has", "和": "and", "与": "and",
    "个": "", "什么": "what", "谁": "who", "哪": "which", "哪里": "where", "哪个": "which", "哪些": "which",
    "多少": "how many", "几": "how many", "何时": "when", "为": "is", "被": "by", "于": "in", "由": "by", "从": "from",
    "到": "to", "对": "to", "上": "on", "中": "in", "下": "under", "年": "year", "月": "month", "日": "day",
    "第": "number", "名": "name", "位": "", "种": "kind", "所": "", "一": "one", "不": "not", "也": "also",
    "如何": "how", "怎么": "how", "怎样": "how", "为什么": "why", "？": "?", "，": ",", "。": ".",
    "《": "\"", "》": "\"", "“": "\"", "”": "\"", "、": ",", "：": ":", "（": "(", "）": ")",
}  # fmt: skip
_ASIDE = re.compile(r"\([^)]*\)|\[[^\]]*\]")
_SKIPPED = ("variant of", "old variant", "surname", "see ", "used in", "abbr. for", "classifier", "lit.", "fig.", "CL:")


class Glossary:
    def __init__(self, glossary: Path, names: Path) -> None:
        self._words = {row["zh"]: row["en"] for row in read_jsonl(names)}
        for row in read_jsonl(glossary):
            # A single character is part of a name as often as a word: it stays as it is.
            if len(row["zh"]) > 1 and row["zh"] not in self._words and (gloss := first_gloss(row["en"])):
                self._words[row["zh"]] = gloss
        self._words |= GRAMMAR

    def __call__(self, text: str) -> str:
        """The longest known word at each place becomes its gloss; what is unknown stays as it is."""
        return " ".join(word for word in self._glossed(text) if word)

    def _glossed(self, text: str) -> Iterator[str]:
        place, run = 0, ""
        while place < len(text):
            size = next((size for size in range(MAX_WORD, 0, -1) if text[place : place + size] in self._words), None)
            if size is None or (run and text[place].isascii()):
                run += text[place]
                place += 1
                continue
            yield run
            run = ""
            yield self._words[text[place : place + size]]
            place += size
        yield run


def first_gloss(glosses: list[str]) -> str:
    """The first gloss that is one, without asides, at most five words long."""
    for gloss in glosses:
        if not gloss.startswith(_SKIPPED):
            plain = _ASIDE.sub("", gloss).split(";")[0].strip().removeprefix("to ")
            if plain and len(plain.split()) <= 5:
                return plain
    return ""
