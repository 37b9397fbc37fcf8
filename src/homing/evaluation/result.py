"""What an evaluation says: the JSON that `homing eval --json` prints, `--save` keeps in a data folder, the page draws.

`Evaluation.model_json_schema()` is its schema. Every share lies between 0 and 1, and more is better.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from homing.errors import InvalidArgument, NotFound, StoreCorrupt, StoreReadOnly

log = logging.getLogger(__name__)

FIGURES = ("recall_1", "recall_5", "recall_10", "ndcg_10", "mrr", "abstained", "kept")
"""The figures that a floor can be set for."""

Figure = Literal["recall_1", "recall_5", "recall_10", "ndcg_10", "mrr", "abstained", "kept"]
Language = Literal["all", "zh", "en", "mixed"]
Mode = Literal["semantic", "keyword", "hybrid"]

FOLDER = "evaluations"
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,99}")


class Part(BaseModel):
    """A part of a result: nothing but what is declared."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SetSummary(Part):
    """A golden set."""

    name: str
    documents: int
    questions: int
    unanswerable: int = Field(description="questions that no document answers")
    missing: int = Field(description="relevant documents that the corpus does not hold; nobody can find them")
    languages: dict[Language, int] = Field(description="questions by language")


class Row(Part):
    """The means of one set, model, configuration and language."""

    set: str
    model: str = Field(description="identity of the embedding model")
    configuration: str = Field(description="name of the configuration, e.g. `hybrid evidence`, `hybrid 0.7/0.3 k=60`")
    mode: Mode
    vector_weight: float
    keyword_weight: float
    rrf_k: int
    min_score: float | None = Field(description="semantic matches that score less were left out")
    language: Language = Field(description="`all`, or the questions of one language")
    questions: int
    recall_1: float = Field(description="share of questions with a relevant document in the first place")
    recall_5: float = Field(description="… among the first five")
    recall_10: float = Field(description="… among the first ten")
    ndcg_10: float = Field(description="gain of the first ten, discounted by place, over the best possible")
    mrr: float = Field(description="mean of one over the place of the first relevant document among the first ten")
    abstained: float | None = Field(description="share of the unanswerable questions that found nothing to speak of")
    kept: float | None = Field(description="share of the answerable questions that found something")


class Latency(Part):
    """Milliseconds of a whole search, embedding included."""

    set: str
    model: str
    mode: Mode
    questions: int
    p50_ms: float
    p95_ms: float


class Threshold(Part):
    """What abstaining below a score would do, by the score of the best semantic match."""

    set: str
    model: str
    threshold: float
    abstained: float = Field(description="share of the unanswerable questions below it")
    kept: float = Field(description="share of the answerable questions at or above it")


class Reliability(Part):
    """What was said about so likely a thing, and how often it was so: one dot of a reliability diagram."""

    set: str
    model: str
    kind: Literal["confidence", "score"] = Field(description="of answers by their first hit, or of the hits shown")
    said: float = Field(description="mean of what was said in this tenth")
    was: float = Field(description="share that was right")
    count: int


class Best(Part):
    """The configuration with the highest nDCG@10 of a set."""

    set: str
    model: str
    configuration: str
    ndcg_10: float
    recall_1: float


class Floor(Part):
    """What was demanded of the best fused configuration of a set, and what it reached."""

    set: str
    language: Language
    figure: Figure
    floor: float
    value: float
    reached: bool


class Evaluation(Part):
    """A whole evaluation."""

    format: Literal[1] = Field(1, description="changes when a reader of this one could not read the next")
    id: str
    created: str = Field(description="ISO 8601, UTC")
    version: str = Field(description="version of Homing")
    threshold: float = Field(description="an answer whose best match scores less counts as no answer")
    sets: tuple[SetSummary, ...]
    models: tuple[str, ...]
    rows: tuple[Row, ...]
    latency: tuple[Latency, ...]
    thresholds: tuple[Threshold, ...] = Field(description="empty for sets without unanswerable questions")
    best: tuple[Best, ...]
    floors: tuple[Floor, ...]
    reliability: tuple[Reliability, ...] = Field((), description="of searches by evidence, where the model was fitted")

    @property
    def passed(self) -> bool:
        """Whether every floor was reached."""
        return all(floor.reached for floor in self.floors)


class Summary(Part):
    """An evaluation in a list of them."""

    id: str
    created: str
    sets: tuple[str, ...]
    models: tuple[str, ...]
    configurations: int
    best: tuple[Best, ...]
    passed: bool


def save_result(data: Path, result: Evaluation) -> Path:
    """Keep a result; returns its file. A process that is killed meanwhile leaves no half of one."""
    file = _file(data, result.id)
    draft = file.with_suffix(f".{os.getpid()}.tmp")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(result.model_dump_json(indent=1), encoding="utf-8")
        draft.replace(file)
    except OSError as error:
        raise StoreReadOnly(f"{file} cannot be written: {error.strerror}; choose another --data folder") from error
    return file


def list_results(data: Path) -> list[Summary]:
    """What is kept, the latest first. A file that cannot be read is left out, with a warning."""
    found = []
    for file in sorted((data / FOLDER).glob("*.json"), reverse=True):
        try:
            found.append(summary_of(read_result(data, file.stem)))
        except (StoreCorrupt, NotFound, InvalidArgument) as error:
            log.warning("passed over: %s", error)
    return found


def read_result(data: Path, result_id: str) -> Evaluation:
    """A kept result. Raises NotFound; StoreCorrupt where the file is damaged."""
    file = _file(data, result_id)
    try:
        return Evaluation.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        raise NotFound(f"there is no evaluation {result_id!r}; `homing eval … --save` keeps one") from None
    except (ValidationError, OSError) as error:
        raise StoreCorrupt(f"{file} is damaged; delete it and evaluate again") from error


def summary_of(result: Evaluation) -> Summary:
    """What a list shows of a result."""
    return Summary(
        id=result.id,
        created=result.created,
        sets=tuple(one.name for one in result.sets),
        models=result.models,
        configurations=len({row.configuration for row in result.rows}),
        best=result.best,
        passed=result.passed,
    )


def _file(data: Path, result_id: str) -> Path:
    # An id comes from a URL: it names a file of this folder and nothing else.
    if not _ID.fullmatch(result_id):
        raise InvalidArgument(f"an evaluation id consists of letters, digits and hyphens; got {result_id!r}")
    return data / FOLDER / f"{result_id}.json"
