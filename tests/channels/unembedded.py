"""A data folder whose paragraphs still wait for their vectors."""

from __future__ import annotations

from pathlib import Path

import homing
from homing.channels import Channels
from homing.config import EmbeddingSettings, Settings
from homing.testing.loopback import LoopbackApi

PARAGRAPHS = 240


def not_yet_embedded(folder: Path, api: LoopbackApi) -> Path:
    """A data folder with many paragraphs and no vector; the model that is to make them is `api`."""
    text = "\n\n".join(f"第{number}段：海边的灯塔 number {number} 亮了一整夜。" for number in range(PARAGRAPHS))
    with homing.open(folder / "data", settings=Settings(embedding=EmbeddingSettings(provider=""))) as app:
        saved = Channels(app).invoke("document:save", {"projectId": "novel", "documentId": "ch1", "text": text})
        assert len(saved["data"]["changed"]) == PARAGRAPHS
    (folder / "homing.toml").write_text(
        f'embedding = {{provider_id = "there", model = "text-embedding-3-small", dimensions = 64}}\n'
        f'[providers.there]\ntype = "openai"\napi_key = "sk-over-there"\nbase_url = "{api.url}/v1"\n',
        encoding="utf-8",
    )
    return folder / "data"
