"""`/metrics`: what the server counts, for Prometheus."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

from homing.server.access import Reading

router = APIRouter(tags=["health"])


@router.get("/metrics", response_class=PlainTextResponse)
def metrics(caller: Reading) -> PlainTextResponse:
    """Counters in the text format of Prometheus."""
    return PlainTextResponse(caller.service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
