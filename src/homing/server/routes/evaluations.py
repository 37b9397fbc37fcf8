"""`/evaluations`: the results that `homing eval --save` kept."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from homing.evaluation.result import Evaluation, Summary
from homing.evaluation.saved import list_results, read_result
from homing.server.access import Reading
from homing.server.body import Answer

router = APIRouter(prefix="/evaluations", tags=["evaluations"])


class Evaluations(Answer):
    """What is kept, the latest first."""

    evaluations: list[Summary]


@router.get("")
def evaluations(caller: Reading) -> Evaluations:
    """List the evaluations that were kept, the latest first."""
    return Evaluations(evaluations=list_results(caller.app.settings.data))


@router.get("/{evaluation_id}")
def evaluation(
    evaluation_id: Annotated[str, Path(pattern=r"^[0-9A-Za-z][0-9A-Za-z-]{0,99}$")], caller: Reading
) -> Evaluation:
    """One evaluation with all its figures."""
    return read_result(caller.app.settings.data, evaluation_id)
