"""Who answers `search:fts:query`."""

from __future__ import annotations

from homing.app import Homing
from homing.channels.search_messages import Highlight, SearchFtsQueryRequest, SearchFtsQueryResponse, SearchFtsResult
from homing.channels.work import Work
from homing.records import Hit


def query(app: Homing, request: SearchFtsQueryRequest, work: Work) -> SearchFtsQueryResponse:
    """Search by words, a page at a time."""
    found = app.documents.search(
        request.project_id,
        request.query,
        mode="keyword",
        # One more than is shown tells whether there is a next page.
        top_k=request.limit + 1,
        offset=request.offset,
        offsets=request.offset_unit,
    )
    work.on_search("documents", found.mode, found.degraded)
    return SearchFtsQueryResponse(
        results=[_result(hit) for hit in found.hits[: request.limit]],
        has_more=len(found) > request.limit,
        took_ms=found.timings.get("total_ms", 0.0),
    )


def _result(hit: Hit) -> SearchFtsResult:
    place = hit.metadata
    return SearchFtsResult(
        chunk_id=hit.id,
        document_id=place["document_id"],
        project_id=place["project_id"],
        text=hit.text,
        start_offset=place["start_offset"],
        end_offset=place["end_offset"],
        snippet=place["snippet"],
        snippet_highlights=[Highlight(start=start, end=end) for start, end in place["snippet_highlights"]],
        highlights=[Highlight(start=start, end=end) for start, end in place["highlights"]],
        pending=place["pending"],
    )
