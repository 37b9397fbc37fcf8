"""Fitting the scale on which a model's cosine can be read as a score."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from homing.errors import InvalidArgument
from homing.vectors import Scale

FEWEST = 20
"""Fewer pairs of a kind say nothing about a border."""
STEEPEST = 40.0
"""Where the two kinds hardly overlap, steepness would grow without bound and every score become 0 or 1."""


def fit_scale(related: npt.ArrayLike, unrelated: npt.ArrayLike) -> Scale:
    """The scale that best tells related from unrelated pairs by their cosines, both kinds counting the same in total.

    A logistic regression of one variable: at the border a pair is as likely related as not. Refuses too few pairs, and
    cosines that do not rise with relatedness, since no border lies between them.
    """
    near, far = _cosines(related, "related"), _cosines(unrelated, "unrelated")
    if near.mean() <= far.mean():
        raise InvalidArgument(
            f"related pairs (mean cosine {near.mean():.3f}) are no closer than unrelated ones ({far.mean():.3f}); "
            "check that the pairs are what they are called, or that the model knows their language"
        )
    cosines = np.concatenate([near, far])
    labels = np.concatenate([np.ones(near.size), np.zeros(far.size)])
    weights = np.concatenate([np.full(near.size, 0.5 / near.size), np.full(far.size, 0.5 / far.size)])
    slope, offset = _logistic(cosines, labels, weights, start=_start(near, far))
    steepness = min(slope, STEEPEST)
    return Scale(border=round(-offset / slope, 4), steepness=round(steepness, 3))


def _cosines(values: npt.ArrayLike, kind: str) -> npt.NDArray[np.float64]:
    cosines = np.asarray(values, dtype=np.float64).ravel()
    if cosines.size < FEWEST:
        raise InvalidArgument(f"{cosines.size} {kind} pairs are too few to fit a scale; give at least {FEWEST}")
    if not np.isfinite(cosines).all() or np.abs(cosines).max() > 1.001:
        raise InvalidArgument(f"the cosines of {kind} pairs must lie in [-1, 1]")
    return cosines


def _start(near: npt.NDArray[np.float64], far: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    slope = 4 / max(near.mean() - far.mean(), 0.1)
    return np.array([slope, -slope * (near.mean() + far.mean()) / 2])


def _logistic(
    x: npt.NDArray[np.float64],
    labels: npt.NDArray[np.float64],
    weights: npt.NDArray[np.float64],
    *,
    start: npt.NDArray[np.float64],
) -> tuple[float, float]:
    """Newton's method on the weighted log loss with a faint pull of the slope to zero, so that it always has an end."""
    pull = 1e-6
    design = np.stack([x, np.ones_like(x)], axis=1)

    def loss(at: npt.NDArray[np.float64]) -> float:
        margin = design @ at
        return float(weights @ (np.logaddexp(0, margin) - labels * margin) + pull * at[0] ** 2 / 2)

    at = start
    for _ in range(100):
        chance = 1 / (1 + np.exp(-np.clip(design @ at, -500, 500)))
        gradient = design.T @ (weights * (chance - labels)) + pull * np.array([at[0], 0.0])
        curvature = (design * (weights * chance * (1 - chance))[:, None]).T @ design + np.diag([pull, 1e-12])
        step = np.linalg.solve(curvature, gradient)
        while loss(at - step) > loss(at) and np.abs(step).max() > 1e-12:
            step = step / 2
        at = at - step
        if np.abs(step).max() < 1e-9:
            break
    return float(at[0]), float(at[1])
