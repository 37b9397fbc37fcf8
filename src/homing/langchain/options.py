"""How a retriever searches."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from homing.engine.ranking import DEFAULT_K

KeywordRanking = Literal["count", "relevance"]


class HybridRetrieverOptions(BaseModel):
    """How to search; names are taken in snake_case and in camelCase (`minSimilarity`), unknown ones are refused.

    `min_similarity` concerns the vector leg only; a fused score never meets a threshold. Weights need not add up to 1.
    """

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)

    limit: int = Field(5, ge=1, le=1_000)
    """How many documents come back; LangChain's own name for it, `k`, is taken as well."""
    min_similarity: float = Field(0.3, ge=-1, le=1)
    """What the vector leg must reach, on the scale of the embeddings: their cosine where they have none."""
    rrf_k: int = Field(DEFAULT_K, ge=0)
    """How little the first places of a leg stand out."""
    vector_weight: float = Field(0.7, ge=0, allow_inf_nan=False)
    keyword_weight: float = Field(0.3, ge=0, allow_inf_nan=False)
    keyword_ranking: KeywordRanking = "count"
    """What the keyword leg orders by: how many keywords a text contains, or how relevant it is to all of the query."""
    filter: dict[str, Any] | None = None
    """A condition on the metadata, in LangChain's language (`{"year": {"$gte": 2024}}`). It can only narrow."""
    leg_limit: int | None = Field(None, ge=1, le=5_000)
    """How many matches each leg brings; `limit * 2` where it is not said, and never fewer than `limit`."""
    max_per_file: int | None = Field(None, ge=1)
    """The most documents of one file, so that a long file does not take every place; the next best follow."""
    group_by_file: bool = False
    """Whether the documents of one file stand together, at the place of its best."""
    deadline: float = Field(5.0, gt=0, le=600)
    """Seconds that an answer waits for its legs; one that is late is answered without."""
    slow_ms: float = Field(500.0, ge=0)
    """From how many milliseconds on a search is logged as slow."""
    log_query: bool = True
    """Whether logs and traces contain the query and its keywords; false keeps what people ask out of them."""

    @model_validator(mode="before")
    @classmethod
    def _take_k(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "k" not in given:
            return given
        if "limit" in given:
            raise ValueError("k and limit are two names of one option; give one of them")
        return {"limit" if name == "k" else name: value for name, value in given.items()}

    @classmethod
    def recommended(cls, **changes: Any) -> HybridRetrieverOptions:
        """Options that find more than the defaults do where questions share words with their answers.

        The keyword leg goes by relevance and has the larger say, and first places stand out; docs/langchain.md has the
        figures. `changes` are options to set beside.
        """
        chosen = {"keyword_ranking": "relevance", "vector_weight": 0.3, "keyword_weight": 0.7, "rrf_k": 2}
        return cls.model_validate(chosen | changes)
