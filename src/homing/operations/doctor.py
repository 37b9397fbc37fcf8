"""Whether everything works, proven."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from homing.config import Settings
from homing.doctor import diagnose, healthy
from homing.operations.models import Nothing, Output
from homing.operations.operation import Call, operation


class FindingOut(Output):
    """What one check saw; `mend` is the command or setting that puts it right."""

    check: str = Field(examples=["search zh semantic"])
    status: Literal["ok", "warn", "fail", "skip"]
    detail: str = Field(examples=["written, searched and found in 4 ms"])
    detail_zh: str = Field(
        description="The same in Chinese, where it was written.", examples=["写入、搜索、找到，用时 4 毫秒"]
    )
    mend: str = Field(examples=["homing memory reindex"])


class Diagnosis(Output):
    """Everything that was checked."""

    healthy: bool
    findings: list[FindingOut]


@operation("admin", http="GET /doctor", tag="health")
def run_doctor(call: Call, asked: Nothing) -> Diagnosis:
    """Write and find probes, check the data, and say how to mend what is broken. A remote model is not asked."""
    return diagnosis(call.owner.settings)


def diagnosis(settings: Settings, *, live: bool = False) -> Diagnosis:
    """What every check saw; with `live` a model behind an API is asked as well."""
    findings = diagnose(settings, live=live)
    return Diagnosis(healthy=healthy(findings), findings=[FindingOut.of(one) for one in findings])
