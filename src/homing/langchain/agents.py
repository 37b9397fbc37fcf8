"""What an agent of LangChain gets from an app: its operations as tools, and its skills as a retriever."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import run_in_executor
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import Field

from homing.app import Homing
from homing.errors import HomingError, InvalidArgument, NotFound

if TYPE_CHECKING:
    from homing.operations import Call, Operation
    from homing.skills.finding import SkillHit

MEMORY = ("recall", "remember", "forget")
SKILLS = ("find_skills", "get_skill")


def agent_tools(app: Homing, names: Iterable[str] = (*SKILLS, *MEMORY), *, may_write: bool = True) -> list[BaseTool]:
    """Tools for `create_agent`, by name; the same as over MCP, with the same arguments and answers.

    The content of an answer is text for a model, in which what others wrote is fenced as data; its artifact is the
    whole answer. What goes wrong is told to the model, with a stable code. Without `may_write` only those that read.
    """
    from homing.operations import OPERATIONS, Call
    from homing.operations.agent_tools import PATIENCE

    known = {one.tool.name: one for one in OPERATIONS.values() if one.tool is not None}
    chosen = list(names)
    if unknown := sorted(set(chosen) - set(known)):
        raise InvalidArgument(f"there is no tool {', '.join(unknown)}; known: {', '.join(sorted(known))}")
    call = Call(app, app, scope="write" if may_write else "read", patience=PATIENCE)
    return [_tool(known[name], call) for name in chosen if call.may(known[name].scope)]


def _tool(operation: Operation, call: Call) -> BaseTool:
    from homing.operations.agent_tools import answer_agent

    def run(**arguments: Any) -> tuple[str, dict[str, Any]]:
        try:
            return answer_agent(operation, call, arguments)
        except HomingError as error:
            raise ToolException(f"{error.code}: {error.message}") from error

    assert operation.tool is not None
    return StructuredTool(
        name=operation.tool.name,
        description=operation.tool.description,
        args_schema=operation.input.model_json_schema(),
        func=run,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )


class SkillRetriever(BaseRetriever):
    """The skills of an app that fit a request, as documents: the body of each SKILL.md, with `name`, `description`,
    `path`, `tags` and `score` in the metadata."""

    app: Any = Field(frozen=True)
    k: int = Field(5, ge=1, le=100)
    threshold: float | None = Field(None, ge=0, le=1)
    """What a skill must score; None is no threshold."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        found = self.app.skills.find_relevant_skills(query, k or self.k, self.threshold)
        return [self._document(hit, found.reason) for hit in found]

    def _document(self, hit: SkillHit, degraded: str | None) -> Document:
        try:
            body = self.app.skills.get_skill(hit.id).body
        except NotFound:
            # It was removed a moment ago.
            body = ""
        known = {name: getattr(hit, name) for name in ("name", "description", "path", "score")}
        metadata = {**known, "tags": list(hit.tags), "degraded": degraded}
        return Document(id=hit.id, page_content=body or hit.description, metadata=metadata)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return await run_in_executor(None, self._get_relevant_documents, query, run_manager=run_manager.get_sync(), k=k)
