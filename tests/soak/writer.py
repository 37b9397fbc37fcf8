"""Writes documents, uploads, memories and skills until it is killed, and says what it began and what returned."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random

from homing.documents import DocumentService
from homing.engine import Engine
from homing.memory import Memory
from homing.skills import Skill, SkillService
from homing.stores.sqlite import SqliteStore
from homing.testing.fake import FakeEmbedder

DOCUMENTS = 4
UPLOADS = 3
MEMORIES = 12
SKILLS = 6


def tell(kind: str, operation: list[str]) -> None:
    print(json.dumps([kind, *operation]), flush=True)


def letters(number: int) -> str:
    """A number as letters: what is half letters and half digits is several words to a search."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def operation(chance: Random, writer: str, number: int) -> list[str]:
    """Something to do: to a document, file, memory or skill of this writer alone, or to one that all of them write."""
    word = f"{writer}q{letters(number)}"
    paragraphs = [
        f"{word}x{letters(at)} 灯塔 lighthouse keeper {chance.randrange(1000)}" for at in range(chance.randint(1, 6))
    ]
    sentences = [f"{word}y{letters(at)} 海鸟 seabird {chance.randrange(1000)}." for at in range(chance.randint(1, 90))]
    match chance.randrange(16):
        case 0 | 1 | 2:
            return ["save", f"{writer}-{chance.randrange(DOCUMENTS)}", "\n\n".join(paragraphs)]
        case 3:
            return ["delete", f"{writer}-{chance.randrange(DOCUMENTS)}", ""]
        case 4:
            return ["save", "shared", "\n\n".join(paragraphs)]
        case 5 | 6:
            return ["remember", f"{writer}-{chance.randrange(MEMORIES)}", f"{word} 记住 remembered"]
        case 7 | 8:
            return ["upload", f"{writer}-{chance.randrange(UPLOADS)}.txt", " ".join(sentences)]
        case 9:
            return ["remove", f"{writer}-{chance.randrange(UPLOADS)}.txt", ""]
        case 10:
            return ["upload", "shared.txt", " ".join(sentences)]
        case 11 | 12:
            return [
                "index",
                f"{writer}-{chance.randrange(SKILLS)}",
                f"{word} 技能 skill\n\n" + "\n\n".join(paragraphs) * 8,
            ]
        case 13:
            return ["unindex", f"{writer}-{chance.randrange(SKILLS)}", ""]
        case 14:
            return ["index", "shared", f"{word} 共用 shared\n\n" + "\n\n".join(paragraphs) * 8]
        case _:
            return ["forget", f"{writer}-{chance.randrange(MEMORIES)}", ""]


def main(path: str, writer: str, seed: str, model: str) -> None:
    chance = Random(int(seed))
    engine = Engine(SqliteStore(Path(path)), FakeEmbedder(32, model=model))
    documents, memory = DocumentService(engine, settle=0.0), Memory(engine)
    skills = SkillService(lambda: engine, Path(path).parent)
    engine.start()
    tell("ready", [])
    for number in range(1_000_000):
        name, key, text = asked = operation(chance, writer, number)
        tell("begin", asked)
        match name:
            case "save":
                documents.save("soak", key, text)
            case "delete":
                documents.delete("soak", key)
            case "upload":
                documents.upload(text.encode(), key)
            case "remove":
                documents.delete("uploads", key)
            case "remember":
                memory.remember("knowledge", text, entry_id=key)
            case "forget":
                memory.forget("knowledge", [key])
            case "index":
                described, _, body = text.partition("\n\n")
                skills.index_skill(Skill(key, described, body=body))
            case "unindex":
                skills.remove_skill(key)
        tell("done", asked)


if __name__ == "__main__":
    main(*sys.argv[1:])
