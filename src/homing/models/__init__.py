"""Which providers and models there are, as rows; how to embed with any of them; how to change the default."""

from __future__ import annotations

from homing.models.config_service import LLMConfigService
from homing.models.manager import LLMManager, ModelRegistry
from homing.models.records import LLMModel, LLMProvider, ModelConfig

__all__ = ["LLMConfigService", "LLMManager", "LLMModel", "LLMProvider", "ModelConfig", "ModelRegistry"]
