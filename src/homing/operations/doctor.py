"""Whether everything works, proven."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from homing.config import Settings
from homing.doctor import Part, diagnose, healthy
from homing.operations.models import Input, Output
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


class Checkup(Input):
    """Which checks to run."""

    part: Part = Field(
        "all", description="`data` reads everything that is kept, which takes a while; `quick` is all the rest."
    )


@operation("admin", http="GET /doctor", tag="health")
def run_doctor(call: Call, asked: Checkup) -> Diagnosis:
    """Write and find test records, check the data, and say how to fix what is broken. A remote model is not asked."""
    return diagnosis(call.owner.settings, part=asked.part)


def diagnosis(settings: Settings, *, live: bool = False, part: Part = "all") -> Diagnosis:
    """What every check saw; with `live` a model behind an API is asked as well."""
    findings = diagnose(settings, live=live, part=part)
    return Diagnosis(healthy=healthy(findings), findings=[FindingOut.of(one) for one in findings])
