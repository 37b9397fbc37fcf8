"""Saves, deletes, renames and moves documents until it is killed, saying what it begins and what returned.

python -m tests.documents.killed_writer <folder> <seed>
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random

from homing.errors import InvalidArgument, NotFound
from homing.testing.fake import FakeEmbedder
from tests.documents.novel import Library, paragraphs

PROJECTS = ("p", "q")
NAMES = ("one", "two", "three")


def tell(kind: str, *what: str) -> None:
    print(json.dumps([kind, *what]), flush=True)


def main(folder: str, seed: str) -> None:
    chance = Random(seed)
    documents = Library(Path(folder), FakeEmbedder(16)).documents
    tell("ready")
    number = 0
    while True:
        number += 1
        project, name = chance.choice(PROJECTS), chance.choice(NAMES)
        text = "\n\n".join([*chance.sample(paragraphs(40), chance.randint(0, 40)), f"第{seed}轮写下的第{number}稿。"])
        to = chance.choice(
            PROJECTS if (kind := chance.choice(["save", "save", "delete", "rename", "move"])) == "move" else NAMES
        )
        what = [kind, project, name, text if kind == "save" else to]
        tell("begin", *what)
        try:
            match kind:
                case "save":
                    documents.save(project, name, text)
                case "delete":
                    documents.delete(project, name)
                case "rename":
                    documents.rename(project, name, to)
                case _:
                    documents.move(project, name, to)
        except (NotFound, InvalidArgument):
            tell("refused", *what)
        else:
            tell("done", *what)


if __name__ == "__main__":
    main(*sys.argv[1:])
