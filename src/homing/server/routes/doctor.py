"""`GET /doctor`: whether everything works, proven."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from pydantic import Field

from homing.doctor import diagnose, healthy
from homing.server.access import Administering
from homing.server.body import Answer

router = APIRouter(tags=["health"])


class FindingTold(Answer):
    """What one check saw; `mend` is the command or setting that puts it right."""

    check: str = Field(examples=["search zh semantic"])
    status: Literal["ok", "warn", "fail", "skip"]
    detail: str = Field(examples=["written, searched and found in 4 ms"])
    detail_zh: str = Field(
        description="The same in Chinese, where it was written.", examples=["写入、搜索、找到，用时 4 毫秒"]
    )
    mend: str = Field(examples=["homing memory reindex"])


class Diagnosis(Answer):
    """Everything that was checked."""

    healthy: bool
    findings: list[FindingTold]


@router.get("/doctor")
def run_doctor(caller: Administering) -> Diagnosis:
    """Write and find probes, check the data, and say how to mend what is broken. A remote model is not asked."""
    findings = diagnose(caller.service.app.settings)
    return Diagnosis(
        healthy=healthy(findings),
        findings=[
            FindingTold(check=one.check, status=one.status, detail=one.detail, detail_zh=one.detail_zh, mend=one.mend)
            for one in findings
        ],
    )
