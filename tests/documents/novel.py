"""A novel of any length, and a service on a folder."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from homing.documents import DocumentService
from homing.embedders.provider import EmbeddingProvider
from homing.engine import Engine
from homing.stores.registry import open_store

PLACES = ["码头", "城墙", "竹林", "茶馆", "雪山", "渡口", "古寺", "书房", "市集", "后院"]
WEATHER = ["大雨", "薄雾", "烈日", "微风", "初雪", "惊雷", "晚霞", "寒霜"]
PEOPLE = ["林婉", "沈舟", "阿福", "顾先生", "白露", "老周", "小满", "陈默"]
DEEDS = [
    "想起了多年前的约定",
    "把信藏进了袖口",
    "听见远处传来的钟声",
    "数着石阶慢慢往下走",
    "决定不再等下去",
    "抬头看见一只白鹭",
]


def paragraphs(count: int, seed: int = 7) -> list[str]:
    """Paragraphs that all differ."""
    chance = random.Random(seed)
    return [
        f"那年{chance.choice(WEATHER)}里的第{number}个夜晚，{chance.choice(PEOPLE)}独自走过{chance.choice(PLACES)}，"
        f"{chance.choice(DEEDS)}，没有告诉任何人。"
        for number in range(count)
    ]


def novel(count: int = 1000, seed: int = 7) -> str:
    """A text of so many paragraphs, parted by blank lines."""
    return "\n\n".join(paragraphs(count, seed))


class Library:
    """A service with its store, on a folder; `embedder` is what it was given."""

    def __init__(self, folder: Path, embedder: EmbeddingProvider | None, **options: Any) -> None:
        self.embedder = embedder
        self.path = folder / "homing.db"
        self.store = open_store(f"sqlite:///{self.path}")
        self.engine = Engine(self.store, embedder)
        self.documents = DocumentService(self.engine, **{"settle": 0.0, **options})

    def close(self) -> None:
        self.documents.close()
        self.engine.close()
        self.store.close()
