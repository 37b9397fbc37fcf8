"""The one engine: collections that are written, a worker that embeds, a search that ranks."""

from homing.engine.engine import Collection, Engine
from homing.engine.source import FixedModel, ModelsInUse

__all__ = ["Collection", "Engine", "FixedModel", "ModelsInUse"]
