"""The few tools that a request needs, out of hundreds of definitions: for models that should not be shown them all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from homing.embedders.local import LocalProvider
from homing.embedders.provider import EmbeddingProvider
from homing.engine.engine import temporary_engine
from homing.errors import InvalidArgument
from homing.skills.finding import find
from homing.skills.hits import FoundSkills
from homing.skills.index import SkillIndex
from homing.skills.indexing import content_of
from homing.skills.skill import Skill

Tool = Mapping[str, Any]
"""A definition as OpenAI (with or without `function` around it), Anthropic (`input_schema`) or MCP (`inputSchema`)
write it."""

_SCHEMAS = ("parameters", "input_schema", "inputSchema")


class ToolIndex:
    """Tool definitions, ranked like skills; they come back as they were given."""

    def __init__(self, tools: Sequence[Tool], embedder: EmbeddingProvider) -> None:
        self._tools: dict[str, Tool] = {}
        skills = []
        for at, tool in enumerate(tools):
            skill = _described(tool, at)
            if skill.name in self._tools:
                raise InvalidArgument(f"two tools are named {skill.name!r}; a model could not tell them apart")
            self._tools[skill.name] = tool
            skills.append(skill)
        self._index = SkillIndex(temporary_engine(embedder))
        self._index.put([(skill, content_of(skill)) for skill in skills])
        self._index.engine.embed_written()

    @classmethod
    def from_tools(cls, tools: Sequence[Tool], *, embedder: EmbeddingProvider | None = None) -> Self:
        """An index of definitions in any of the usual forms; embedded by the bundled model unless told otherwise."""
        return cls(tools, embedder or LocalProvider())

    def __len__(self) -> int:
        return len(self._tools)

    def find(self, query: str, limit: int = 5, threshold: float | None = None) -> FoundSkills:
        """The tools that fit, with score and reasons; by keywords where the model fails."""
        return find(self._index, query, limit, threshold)

    def select(self, query: str, limit: int = 5, threshold: float | None = None) -> list[Tool]:
        """The definitions that fit, best first, ready to be handed to a model."""
        return [self._tools[hit.name] for hit in self.find(query, limit, threshold)]


def _described(tool: Tool, at: int) -> Skill:
    if not isinstance(tool, Mapping):
        raise InvalidArgument(f"tool {at} is not a mapping; give definitions as OpenAI, Anthropic or MCP write them")
    inner = tool.get("function")
    told = inner if isinstance(inner, Mapping) else tool
    name = told.get("name") or tool.get("type")
    if not isinstance(name, str) or not name.strip():
        raise InvalidArgument(f"tool {at} has no name; give definitions as OpenAI, Anthropic or MCP write them")
    schema: Mapping[str, Any] = next((told[key] for key in _SCHEMAS if isinstance(told.get(key), Mapping)), {})
    return Skill(name, str(told.get("description") or ""), body="\n".join(_parameters(schema)))


def _parameters(schema: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """A line for each parameter: its name, what it means, and the values it may have."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or depth > 4:
        return
    for name, told in properties.items():
        if isinstance(told, Mapping):
            values = told.get("enum")
            chosen = f" ({', '.join(map(str, values))})" if isinstance(values, list) else ""
            yield f"{name}: {told.get('description') or ''}{chosen}"
            yield from _parameters(told, depth + 1)
