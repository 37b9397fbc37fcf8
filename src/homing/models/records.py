"""What is kept about a provider and about a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from homing.embedders.registry import PROVIDER_TYPE_TO_EMBEDDING_TYPE
from homing.embedders.secret import Secret
from homing.errors import InvalidArgument

LOCAL = "local"
"""The type of the provider whose models run in this process."""
PROVIDER_TYPES = frozenset({*PROVIDER_TYPE_TO_EMBEDDING_TYPE, LOCAL, "anthropic"})
MODEL_TYPES = frozenset({"embedding", "chat"})


class FittedScale(BaseModel):
    """A `Scale` as it is kept."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    border: float
    steepness: float = Field(gt=0)


class ModelConfig(BaseModel):
    """How a model is reached. Fields may be given as `model_path` or as `modelPath`; unknown ones are refused.

    `local` models run in this process, from `model_path` or, without one, from the folder of pulled models or the
    package. The others are asked over HTTP at `api_endpoint`, where the provider's own is not right, with `timeout`
    milliseconds for a request. `scale` is what `homing models calibrate` fitted.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, protected_namespaces=()
    )

    local: bool = False
    model_path: str = ""
    api_endpoint: str = ""
    dimensions: int | None = Field(None, ge=1, le=65536)
    quantized: bool = False
    timeout: int | None = Field(None, ge=1, le=3_600_000)
    scale: FittedScale | None = None

    @classmethod
    def of(cls, given: ModelConfig | Mapping[str, Any] | None) -> ModelConfig:
        """A configuration from what a caller passes. Raises InvalidArgument naming the field."""
        if isinstance(given, ModelConfig):
            return given
        try:
            return cls.model_validate(dict(given or {}))
        except ValidationError as error:
            told = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
            known = ", ".join(to_camel(name) for name in cls.model_fields)
            raise InvalidArgument(f"modelConfig is wrong: {told}; its fields are {known}") from None


@dataclass(frozen=True, slots=True)
class LLMProvider:
    """An account with a model provider. `api_key` is a key, or `${VARIABLE}`; it does not show itself."""

    id: int
    name: str
    type: str
    base_url: str = ""
    api_key: Secret = field(default_factory=Secret)
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class LLMModel:
    """A model of a provider; `(provider_id, model_key, model_type)` names it."""

    id: int
    provider_id: int
    model_key: str
    model_type: str
    model_config: ModelConfig
    is_default: bool = False
    enabled: bool = True
