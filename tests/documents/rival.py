"""Somebody who saves and deletes the documents that others save and delete, each paragraph with a word of its own.

python -m tests.documents.rival <folder> <name> <rounds>
"""

from __future__ import annotations

import string
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

from homing.documents import DocumentService
from homing.testing.fake import FakeEmbedder
from tests.documents.novel import Library

DOCUMENTS = ("one", "two", "three")
PARAGRAPHS = 8


def word(name: str, number: int) -> str:
    """A word that nobody else writes: letters only, with an end that no stemmer takes off, each letter twice, so that
    none is a misspelling of another."""
    letters: list[str] = []
    while number or not letters:
        number, at = divmod(number, 26)
        letters.append(string.ascii_lowercase[at])
    return f"zz{2 * name}{''.join(2 * letter for letter in letters)}q"


def words(name: str, rounds: int) -> Iterator[str]:
    """Every word that so many rounds may write."""
    return (word(name, number) for number in range(rounds * PARAGRAPHS))


def write(documents: DocumentService, name: str, rounds: int) -> None:
    """Save and delete; paragraphs of the round before are kept, moved, edited and left out."""
    chance = Random(name)
    parts: list[str] = []
    for at in range(rounds):
        document = chance.choice(DOCUMENTS)
        if chance.random() < 0.25:
            documents.delete("p", document)
            continue
        fresh = [
            f"{word(name, at * PARAGRAPHS + number)} 是这一段自己的词，灯塔亮了。" for number in range(PARAGRAPHS // 2)
        ]
        parts = fresh + chance.sample(parts, len(parts) // 2)
        chance.shuffle(parts)
        documents.save("p", document, "\n\n".join(parts))


def main(folder: str, name: str, rounds: str) -> None:
    with closing(Library(Path(folder), FakeEmbedder(32))) as library:
        print("ready", flush=True)
        sys.stdin.readline()
        write(library.documents, name, int(rounds))


if __name__ == "__main__":
    main(*sys.argv[1:])
