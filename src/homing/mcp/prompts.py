"""Prompts for the usual jobs, and the names that a client completes while a person types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import anyio.to_thread
from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import CompleteRequestParams, CompleteResult, Completion
from pydantic import Field

from homing.errors import HomingError
from homing.mcp.library import add_handler
from homing.mcp.resources import refused, skill_keys
from homing.mcp.tools import Access, AccessOf
from homing.operations import OPERATIONS, Call
from homing.operations.agent_tools import answer_agent

MAX_COMPLETIONS = 100
"""Names in one answer, as the protocol has it."""

NOTES = (
    "Answer the question from the passages below, which were found in my notes. Say which document each fact comes "
    "from. Where they do not answer it, say so and do not guess. Answer in the language of the question.\n\n"
    "Question: {asked}\n\n{found}"
)
SKILL = (
    "Do the task below. Skills that may fit it were found; read the best one with get_skill before you begin, and "
    "follow it where it fits. Answer in the language of the task.\n\nTask: {asked}\n\n{found}"
)
KNOWN = (
    "Tell me what you remember about the subject below, from what was found in memory. Say what is certain and what "
    "may be out of date. Answer in the language of the subject.\n\nSubject: {asked}\n\n{found}"
)

Question = Annotated[str, Field(description="The question, in Chinese or English.")]
Task = Annotated[str, Field(description="What is to be done, in Chinese or English.")]
Subject = Annotated[str, Field(description="A person, a thing or a subject.")]
ProjectName = Annotated[str, Field(description="A project of documents; all of them where none is named.")]


class Prompts:
    """The prompts of whatever data folder a request may reach. What was found is fenced as data in each."""

    def __init__(self, access_of: AccessOf) -> None:
        self._access_of = access_of

    def add_to(self, server: MCPServer[Any]) -> None:
        """Offer the prompts, and complete the names of projects, documents and skills."""
        server.prompt(title="Answer from my notes")(self.answer_from_notes)
        server.prompt(title="Do it with a skill")(self.use_a_skill)
        server.prompt(title="What do you remember?")(self.what_is_known)
        # The library's decorator does not say whose request it is, which several users need.
        add_handler(server, "completion/complete", CompleteRequestParams, self.complete)

    def answer_from_notes(self, question: Question, ctx: Context, project: ProjectName = "") -> str:
        """Answer a question from the documents, naming the places."""
        asked = {"query": question, "limit": 8} | ({"project": project} if project else {})
        return NOTES.format(asked=question, found=self._found("search_documents", asked, ctx))

    def use_a_skill(self, task: Task, ctx: Context) -> str:
        """Do a task by the skill that fits it."""
        return SKILL.format(asked=task, found=self._found("find_skills", {"query": task, "limit": 3}, ctx))

    def what_is_known(self, about: Subject, ctx: Context) -> str:
        """What was remembered about a subject in earlier conversations."""
        return KNOWN.format(asked=about, found=self._found("recall", {"query": about, "limit": 10}, ctx))

    def _found(self, tool: str, asked: dict[str, Any], ctx: Context) -> str:
        [operation] = [one for one in OPERATIONS.values() if one.tool is not None and one.tool.name == tool]
        access = self._access_of(ctx.request_context.request)
        try:
            return answer_agent(operation, Call(access.app, access.app, scope="read"), asked, access.on_search)[0]
        except HomingError as error:
            raise refused(error) from error

    async def complete(self, ctx: ServerRequestContext[Any, Any], params: CompleteRequestParams) -> CompleteResult:
        """The names that begin with what was typed, and behind them those that hold it."""
        chosen = (params.context.arguments if params.context else None) or {}
        typed = params.argument.value.casefold()
        try:
            names = await anyio.to_thread.run_sync(self._names, ctx.request, params.argument.name, chosen)
        except HomingError as error:
            raise refused(error) from error
        found = (one for one in names if typed in one.casefold())
        matching = sorted(found, key=lambda one: (not one.casefold().startswith(typed), one))
        shown = matching[:MAX_COMPLETIONS]
        return CompleteResult(
            completion=Completion(values=shown, total=len(matching), has_more=len(matching) > len(shown))
        )

    def _names(self, request: Any, argument: str, chosen: dict[str, str]) -> Iterable[str]:
        access: Access = self._access_of(request)
        match argument:
            case "skill":
                return set(skill_keys(access.app.skills.list_skills()).values())
            case "project":
                return [one.id for one in access.app.documents.projects()]
            case "document":
                projects = [chosen["project"]] if chosen.get("project") else self._names(request, "project", chosen)
                return {one.id for project in projects for one in access.app.documents.documents(project)}
        return ()
