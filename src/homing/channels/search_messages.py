"""Request and response of `search:fts:query`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from homing.channels.message import Name, OffsetUnit, Query, Request, Response


class SearchFtsQueryRequest(Request):
    """Find the paragraphs of a project that hold words; a phrase in quotes is found as it stands."""

    project_id: Name
    query: Query
    limit: int = Field(20, ge=1, le=1000, description="How many at most.")
    offset: int = Field(0, ge=0, le=8_000, description="How many to pass over: the next page.")
    offset_unit: OffsetUnit = "characters"


class Highlight(Response):
    """A place in a text: `text.slice(start, end)`."""

    start: int
    end: int


class SearchFtsResult(Response):
    """A paragraph with a piece of it to show."""

    chunk_id: str
    document_id: str
    project_id: str
    text: str
    start_offset: int
    end_offset: int
    snippet: str = Field(description="About 120 characters around the first word that was found, on one line.")
    snippet_highlights: list[Highlight] = Field(description="Where the words stand in the snippet.")
    highlights: list[Highlight] = Field(description="Where the words stand in the document.")
    pending: bool = Field(description="Whether it still waits for its embedding.")


class SearchFtsQueryResponse(Response):
    """The paragraphs, best first."""

    results: list[SearchFtsResult]
    mode: Literal["fts"] = "fts"
    has_more: bool = Field(description="Whether a next page has something on it.")
    took_ms: float
