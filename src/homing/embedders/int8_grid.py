"""Numbers on an int8 grid: how weights are rounded, and how the range of an activation is shared out.

Activations have a few channels with values ten times those of the others, and one grid must span them all. A matrix
product lets us move that burden: `x @ W = (x * f) @ (W / f)` for any factor f per channel, so loud channels are turned
down and their weights, which have a grid of their own for each column, are turned up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

SHARE = 0.8
"""How much of a channel's loudness moves into the weights. Measured: .7 to .85 are alike, .5 and 1 are worse."""


@dataclass(frozen=True, slots=True)
class Range:
    """The values an activation was seen to take: for each channel its smallest and its largest."""

    low: Floats
    high: Floats

    def times(self, factors: Floats) -> Range:
        """The range after every channel was multiplied by its positive factor."""
        return Range(self.low * factors, self.high * factors)


@dataclass(frozen=True, slots=True)
class Grid:
    """`value ≈ (step - zero) * scale` for uint8 steps."""

    scale: npt.NDArray[Any]
    zero: npt.NDArray[Any]


def grid_over(seen: Range) -> Grid:
    """The grid that spans everything seen, with zero exactly on it. Nothing is clipped: the extremes carry meaning."""
    low, high = min(float(seen.low.min()), 0.0), max(float(seen.high.max()), 0.0)
    scale = max((high - low) / 255, 1e-12)
    return Grid(np.array(scale, dtype=np.float32), np.array(round(-low / scale), dtype=np.uint8))


def balance(seen: Range, weights: Sequence[Floats], *, share: float = SHARE) -> Floats:
    """For each channel, the factor that makes activation and weights equally hard to round.

    `weights` are the matrices (channels, columns) that the activation is multiplied with. Only the ratios of the
    factors matter; their geometric mean is 1.
    """
    loudness = np.maximum(np.maximum(np.abs(seen.low), np.abs(seen.high)), 1e-3).astype(np.float64)
    strength = np.maximum(np.max([np.abs(weight).max(axis=1) for weight in weights], axis=0), 1e-6)
    factors = strength ** (1 - share) / loudness**share
    balanced: Floats = (factors / np.exp(np.log(factors).mean())).astype(np.float32)
    return balanced


def quantise_rows(table: Floats) -> tuple[npt.NDArray[np.int8], Floats]:
    """Symmetric int8 with one scale for each row: `table ≈ quantised * scale[:, None]`."""
    scale = np.maximum(np.abs(table).max(axis=1), 1e-12).astype(np.float32) / np.float32(127)
    return np.rint(table / scale[:, None]).astype(np.int8), scale


def quantise_columns(weight: Floats) -> tuple[npt.NDArray[np.int8], Floats]:
    """Symmetric int8 with one scale for each column: `weight ≈ quantised * scale`."""
    quantised, scale = quantise_rows(np.ascontiguousarray(weight.T))
    return np.ascontiguousarray(quantised.T), scale
