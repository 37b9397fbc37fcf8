"""Finds the model that a caller means by provider, by name, by both or by neither."""

from __future__ import annotations

from dataclasses import dataclass

from homing.errors import InvalidArgument, NotFound
from homing.models.config_service import LLMConfigService
from homing.models.records import LLMModel, LLMProvider


@dataclass(frozen=True, slots=True)
class Found:
    """A model with the provider it belongs to."""

    provider: LLMProvider
    model: LLMModel


class ModelRegistry:
    """The embedding models by name."""

    def __init__(self, service: LLMConfigService) -> None:
        self._service = service

    def find_model(self, provider: str | None = None, model: str | None = None) -> Found:
        """The model of that provider and key.

        Without a model: the default where it is the provider's, else the provider's first. Without a provider: the one
        model of that key. Without both: the default, which is made where there is none. Disabled ones are not found.
        """
        if provider is None and model is None:
            return self._with_provider(self._service.ensure_default_embedding_model())
        named = [self._with_provider(one) for one in self._service.list_models("embedding")]
        if provider is not None:
            self._service.get_provider(provider)
            named = [one for one in named if provider in (one.provider.name, one.provider.type)]
        matching = [one for one in named if model in (None, one.model.model_key)]
        usable = [one for one in matching if one.model.enabled and one.provider.enabled]
        if not usable:
            raise NotFound(self._missing(provider, model, matching, named))
        if model is None:
            return next((one for one in usable if one.model.is_default), usable[0])
        if len(usable) > 1:
            owners = ", ".join(one.provider.name for one in usable)
            raise InvalidArgument(f"several providers have {model!r} ({owners}); name the provider too")
        return usable[0]

    def _with_provider(self, model: LLMModel) -> Found:
        return Found(self._service.get_provider(model.provider_id), model)

    @staticmethod
    def _missing(provider: str | None, model: str | None, matching: list[Found], named: list[Found]) -> str:
        what = " ".join(
            [*([f"of provider {provider!r}"] if provider else []), *([f"named {model!r}"] if model else [])]
        )
        if matching:
            return f"the embedding model {what} is disabled; enable it, or name another"
        known = ", ".join(one.model.model_key for one in named) or "none yet"
        return f"no embedding model {what}; there are: {known}. Add one with `homing models add`"
