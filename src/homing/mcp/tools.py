"""Operations as tools: what a tool takes, answers and refuses is the operation's own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio.from_thread
import anyio.to_thread
from mcp.server.elicitation import render_elicitation_schema
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool as LibraryTool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata
from mcp_types import (
    Annotations,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    TextContent,
    ToolAnnotations,
)
from pydantic import BaseModel, Field

from homing.errors import HomingError
from homing.on_search import OnSearch, ignore_search
from homing.operations import OPERATIONS, Call, Operation
from homing.operations.agent_tools import PATIENCE, answer_agent
from homing.operations.operation import Report, Scope, Tool
from homing.text.decoding import readable

if TYPE_CHECKING:
    from homing.app import Homing

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Access:
    """An open data folder as one caller may use it; `on_search` is told of every search that was answered."""

    app: Homing
    scope: Scope = "admin"
    on_search: OnSearch = ignore_search


AccessOf = Callable[[Any], Access]
"""From what a transport says about a request (its HTTP request; None over stdio) to what its caller may reach.

Called in a worker thread for every call, so that one connection never answers with the data of another.
"""


class Reply(BaseModel):
    """What a person answers to a question of a tool."""

    answer: str = Field(description="Your answer, in your own words.")


class BoundTool(LibraryTool):
    """A tool that is an operation."""

    async def run(self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False) -> Any:
        """The answer; errors are answers, too. A question about a device is put to the person, where the client can."""
        request, report = context.request_context.request, _progress(context)
        first: CallToolResult = await anyio.to_thread.run_sync(self.fn, arguments, request, report)
        asked = first.structured_content or {}
        if asked.get("decision") not in ("ask", "confirm") or not asked.get("question"):
            return first
        reply = await self._reply(asked["question"], context)
        if not isinstance(reply, ElicitResult):
            return first if reply is None else reply
        answer = str((reply.content or {}).get("answer") or "")
        if reply.action != "accept" or not answer.strip():
            return first
        again = {**arguments, "text": answer, "state": asked["state"]}
        return await anyio.to_thread.run_sync(self.fn, again, request, report)

    async def _reply(self, question: str, context: Context[Any, Any]) -> ElicitResult | InputRequiredResult | None:
        """What the person says; a request for it, which the client answers by calling again; None where it cannot."""
        session, given = context.session, (context.input_responses or {}).get("reply")
        if isinstance(given, ElicitResult):
            return given
        if session.client_capabilities is None or session.client_capabilities.elicitation is None:
            return None
        schema = render_elicitation_schema(Reply)
        if session.can_send_request:
            found: ElicitResult = await session.elicit_form(question, schema, related_request_id=context.request_id)
            return found
        wanted = ElicitRequest(params=ElicitRequestFormParams(message=question, requested_schema=schema))
        return InputRequiredResult(input_requests={"reply": wanted})


def _progress(context: Context[Any, Any]) -> Report:
    """Tells a client that wants to know how much is done, a hundred times at most; ends work that was taken back."""
    last = [0, -1]

    def report(done: int, total: int) -> None:
        anyio.from_thread.check_cancelled()
        share = done * 100 // max(total, 1)
        if done > last[0] and share > last[1]:
            last[:] = done, share
            anyio.from_thread.run(context.report_progress, done, total)

    return report


def bound_tools(access_of: AccessOf) -> list[LibraryTool]:
    """A tool for each operation that is one."""
    return [_bound(one, one.tool, access_of) for one in OPERATIONS.values() if one.tool is not None]


def _bound(operation: Operation, tool: Tool, access_of: AccessOf) -> BoundTool:
    def answer(arguments: dict[str, Any], request: Any, report: Report) -> CallToolResult:
        try:
            access = access_of(request)
            call = Call(access.app, access.app, scope=access.scope, report=report, patience=PATIENCE)
            text, data = answer_agent(operation, call, arguments, access.on_search)
            block = TextContent(type="text", text=text, annotations=Annotations(audience=["assistant"]))
            return CallToolResult(content=[block], structured_content=data)
        except HomingError as error:
            log.info("%s: %s: %s", tool.name, error.code, error.message)
            return failed(error.code, error.message, error.details)
        except Exception:
            log.exception("%s failed", tool.name)
            return failed("INTERNAL_ERROR", "something went wrong in Homing; its log says what")

    reads = operation.scope == "read"
    return BoundTool(
        fn=answer,
        name=tool.name,
        title=tool.name.replace("_", " ").capitalize(),
        description=tool.description,
        parameters=operation.input.model_json_schema(),
        fn_metadata=FuncMetadata(
            arg_model=ArgModelBase, output_schema=operation.output.model_json_schema(mode="serialization")
        ),
        is_async=False,
        annotations=ToolAnnotations(
            read_only_hint=reads,
            destructive_hint=None if reads else tool.destructive,
            idempotent_hint=None if reads else tool.destructive,
            open_world_hint=False,
        ),
    )


def failed(code: str, message: str, details: dict[str, object] | None = None) -> CallToolResult:
    """A tool error: the code first, then what to do; both also as structured content."""
    return CallToolResult(
        content=[TextContent(type="text", text=readable(f"{code}: {message}"))],
        structured_content=readable({"error": {"code": code, "message": message, "details": details or {}}}),
        is_error=True,
    )
