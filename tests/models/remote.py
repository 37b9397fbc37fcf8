"""A second model, on a server on loopback, beside the bundled one."""

from __future__ import annotations

from homing.app import Homing
from homing.models.records import LLMModel
from homing.testing.loopback import LoopbackApi


def add_remote_model(app: Homing, api: LoopbackApi, key: str) -> LLMModel:
    """`openai/text-embedding-3-small@512`, known and not the default; the bundled one is."""
    config = app.models.config
    config.ensure_default_embedding_model()
    config.create_provider("openai", "openai", api_key=key, base_url=api.url + "/v1")
    return config.create_model("openai", "text-embedding-3-small", model_config={"dimensions": 512})
