"""`POST /map`: vectors on a plane, with a question among them."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

import numpy as np
import numpy.typing as npt
from fastapi import APIRouter
from pydantic import Field

from homing.app import Homing
from homing.embedders.provider import EmbeddingProvider
from homing.engine.search import NOTICES
from homing.errors import EmbeddingError
from homing.operations.hits import NoticeOut
from homing.operations.models import Input, Name, Output, Query
from homing.server.access import Reading
from homing.server.embedded import SOURCES, Embedded, Stretch, stretches
from homing.vectors import Matrix, Vector, score_of

router = APIRouter(tags=["map"])

NEAREST = 5
DIGITS = 4


class MapBody(Input):
    """What to draw: one source or all of them, and a question to place among it."""

    source: Literal["all", "skills", "documents", "memory"] = Field("all", examples=["documents"])
    project: Name | None = Field(None, description="Only documents of this project.", examples=["novel"])
    query: Query | None = Field(None, examples=["孤独的感觉"])
    limit: int = Field(
        400,
        ge=2,
        le=2_000,
        description="How many points are drawn of more than these: an even sample, and what is nearest to the query.",
    )


class Place(Output):
    """Where something lies: what was sampled within [-1, 1], the question and what is near to it maybe beyond."""

    x: float = Field(examples=[0.31])
    y: float = Field(examples=[-0.12])


class MapPoint(Place):
    """A vector. `group` is the document it is a paragraph of, or the kind of memory."""

    id: str
    source: str = Field(examples=["documents"])
    group: str = Field(examples=["灯塔"])
    label: str = Field(examples=["他一个人守着灯塔"])


class MapNear(Output):
    """One of the vectors that are nearest to the question, in all dimensions and not only in the two that are drawn."""

    id: str
    source: str
    label: str
    score: float
    cosine: float


class MapAnswer(Output):
    """A map: `shown` is the share of all differences that the two directions show.

    All vectors on it were made by `model`; those of other models are `left_out`. `total` counts what could be drawn.
    Where the question could not be embedded `degraded` is true, and the map is without it.
    """

    model: str = Field(examples=["local/all-MiniLM-L6-v2-zh@384"])
    points: list[MapPoint]
    query: Place | None
    near: list[MapNear]
    shown: float = Field(examples=[0.34])
    total: int
    left_out: int
    degraded: bool
    reason: str | None = Field(examples=["vector:PROVIDER_UNAVAILABLE"])
    notice: NoticeOut | None


@router.post("/map")
def draw_map(body: MapBody, caller: Reading) -> MapAnswer:
    """Draw vectors on a plane, the same ones at the same places every time, with a question among them."""
    app = caller.app
    sources = SOURCES if body.source == "all" else (body.source,)
    found = [one for source in sources for one in stretches(app, source, body.project)]
    counts: Counter[str] = Counter()
    for one in found:
        counts[one.model] += one.count
    model = counts.most_common(1)[0][0] if counts else ""
    # Vectors of two models are never compared, not even by eye.
    same = [one for one in found if one.model == model]
    drawn = _sampled(same, body.limit)
    projection = Projection.of(_rows(drawn))
    question, embedder, failure = _question(app, body.query, model) if drawn else (None, None, None)
    near = [] if question is None or embedder is None else _nearest(same, question, embedder)
    # What is nearest is on the map, whether or not it is in the sample; the places of the others do not depend on it.
    shown = {(one.source, one.group, one.id): one for one in (*drawn, *(one for one, _ in near))}
    return MapAnswer(
        model=model,
        points=_points(list(shown.values()), projection),
        query=None if question is None else _place(projection, question),
        near=[one for _, one in near],
        shown=round(projection.shown, DIGITS),
        total=counts[model],
        left_out=counts.total() - counts[model],
        degraded=failure is not None,
        reason=None if failure is None else f"vector:{failure.code}",
        notice=None if failure is None else NoticeOut(zh=NOTICES["vector"].zh, en=NOTICES["vector"].en),
    )


def _question(
    app: Homing, query: str | None, model: str
) -> tuple[Vector | None, EmbeddingProvider | None, EmbeddingError | None]:
    """The vector of a question by the model that made the others; the error of a model that does not answer."""
    try:
        if query is None or not app.models.embeds:
            return None, None, None
        embedder = app.models.provider(model)
        return embedder.embed([query], kind="query")[0], embedder, None
    except EmbeddingError as error:
        return None, None, error


def _sampled(same: list[Stretch], limit: int) -> list[Embedded]:
    """Vectors of all stretches, evenly spread over what lies in them."""
    ids = [one.ids() for one in same]
    ends = list(accumulate(len(one) for one in ids))
    chosen: list[list[str]] = [[] for _ in same]
    for at in sample(ends[-1] if ends else 0, limit):
        which = bisect_right(ends, at)
        chosen[which].append(ids[which][at - ends[which]])
    return [vector for one, some in zip(same, chosen, strict=True) for vector in one.some(some)]


def _nearest(same: list[Stretch], question: Vector, embedder: EmbeddingProvider) -> list[tuple[Embedded, MapNear]]:
    """What is nearest of all there is, and not only of what is drawn."""
    found = [vector for one in same for vector in one.some(one.nearest(question, NEAREST))]
    cosines = [float(one.vector @ question) for one in found]
    best = sorted(range(len(found)), key=lambda at: (-cosines[at], found[at].source, found[at].id))[:NEAREST]
    return [
        (
            found[at],
            MapNear(
                id=found[at].id,
                source=found[at].source,
                label=found[at].label,
                score=score_of(cosines[at], embedder.scale),
                cosine=cosines[at],
            ),
        )
        for at in best
    ]


def _rows(drawn: list[Embedded]) -> Matrix:
    return np.stack([one.vector for one in drawn]) if drawn else np.zeros((0, 1), dtype=np.float32)


def _points(drawn: list[Embedded], projection: Projection) -> list[MapPoint]:
    if not drawn:
        return []
    return [
        MapPoint(
            id=one.id,
            source=one.source,
            group=one.group,
            label=one.label,
            x=round(float(x), DIGITS),
            y=round(float(y), DIGITS),
        )
        for one, (x, y) in zip(drawn, projection.place(_rows(drawn)), strict=True)
    ]


def _place(projection: Projection, vector: Vector) -> Place:
    ((x, y),) = projection.place(vector[np.newaxis, :])
    return Place(x=round(float(x), DIGITS), y=round(float(y), DIGITS))


Places = npt.NDArray[np.float64]
"""One row (x, y) for each vector."""


@dataclass(frozen=True, slots=True)
class Projection:
    """The two directions in which some vectors differ most (principal components).

    `shown` is the share of all their differences that these two directions show, in [0, 1]: what the map leaves out is
    as honest a part of it as what it draws. The same vectors give the same map on every call.
    """

    mean: npt.NDArray[np.float64]
    axes: npt.NDArray[np.float64]
    reach: float
    shown: float

    @classmethod
    def of(cls, vectors: Matrix) -> Projection:
        """Fit to vectors, one row each; fewer than two have no differences, and all lie in the middle."""
        rows = np.asarray(vectors, dtype=np.float64)
        width = rows.shape[1]
        mean = rows.mean(axis=0) if len(rows) else np.zeros(width)
        apart = rows - mean
        values, axes = _principal(apart)
        everything = float((apart**2).sum())
        places = apart @ axes.T
        return cls(
            mean=mean,
            axes=axes,
            reach=float(np.abs(places).max(initial=0.0)) or 1.0,
            shown=float(values.sum() / everything) if everything > 1e-12 else 0.0,
        )

    def place(self, vectors: Matrix) -> Places:
        """Where vectors lie, the fitted ones within [-1, 1]; others may lie outside. Both axes have one scale."""
        rows = np.asarray(vectors, dtype=np.float64)
        placed: Places = (rows - self.mean) @ self.axes.T / self.reach
        return placed


def sample(size: int, limit: int) -> Sequence[int]:
    """Which of `size` rows to draw where only `limit` are: evenly spread, always the same ones."""
    if size <= limit:
        return range(size)
    return [at * size // limit for at in range(limit)]


def _principal(apart: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The two largest principal values and their directions; a direction that does not exist is zero."""
    count, width = apart.shape
    # The smaller of the two products has the same values, and a model's width may be in the thousands.
    if count < width:
        values, left = np.linalg.eigh(apart @ apart.T)
        directions = apart.T @ left
    else:
        values, directions = np.linalg.eigh(apart.T @ apart)
    values = values[::-1][:2]
    directions = directions[:, ::-1][:, :2].T
    axes = np.zeros((2, width))
    kept = np.zeros(2)
    for at, (value, direction) in enumerate(zip(values, directions, strict=True)):
        length = float(np.linalg.norm(direction))
        if value > 1e-12 and length > 1e-9:
            # An axis may point either way; the same way every time is what keeps a map recognisable.
            sign = 1.0 if direction[np.abs(direction).argmax()] > 0 else -1.0
            axes[at] = sign * direction / length
            kept[at] = value
    return kept, axes
