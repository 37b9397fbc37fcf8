"""The results that `homing eval --save` kept."""

from __future__ import annotations

from pydantic import Field

from homing.evaluation.result import Evaluation, Summary, list_results, read_result
from homing.operations.models import Input, Nothing, Output
from homing.operations.operation import Call, operation

TAG = "evaluations"


class EvaluationList(Output):
    """What is kept, the latest first."""

    evaluations: list[Summary]


class OfEvaluation(Input):
    """One evaluation."""

    id: str = Field(pattern=r"^[0-9A-Za-z][0-9A-Za-z-]{0,99}$")


@operation("read", http="GET /evaluations", tag=TAG)
def list_evaluations(call: Call, asked: Nothing) -> EvaluationList:
    """List the evaluations that were kept, the latest first."""
    return EvaluationList(evaluations=list_results(call.app.settings.data))


@operation("read", http="GET /evaluations/{id}", tag=TAG, may_miss=True)
def get_evaluation(call: Call, asked: OfEvaluation) -> Evaluation:
    """Get one evaluation with all its figures."""
    return read_result(call.app.settings.data, asked.id)
