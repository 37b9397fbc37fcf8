"""The one engine: collections that are written, a worker that embeds, a search that ranks."""

from homing.engine.collection import Collection
from homing.engine.engine import Engine
from homing.engine.models import FixedModel, ModelsInUse

__all__ = ["Collection", "Engine", "FixedModel", "ModelsInUse"]
