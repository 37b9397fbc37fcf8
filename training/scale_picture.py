"""The cosines of related and unrelated pairs as a picture, with the scale that was fitted between them.

python scale_picture.py MODEL_FOLDER OUT.svg --dev DEV_FOLDER
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from evaluate import read_set
from homing.embedders.local import LocalProvider
from homing.vectors import Scale
from scale import SCALE_SETS, cosines_of, together

WIDTH, HEIGHT, MARGIN, BINS = 720, 320, 44, 60
LABEL = 16  # more room at the right, for the label of the score axis
LOW, HIGH = -0.3, 1.0
KINDS = (("unrelated", "#9aa5b1"), ("related", "#2f7d6b"))


def across(cosine: float) -> float:
    return MARGIN + (cosine - LOW) / (HIGH - LOW) * (WIDTH - 2 * MARGIN)


def up(share: float) -> float:
    return HEIGHT - MARGIN - share * (HEIGHT - 2 * MARGIN)


def bars(cosines: np.ndarray, colour: str, tallest: float) -> list[str]:
    counts, edges = np.histogram(cosines, bins=BINS, range=(LOW, HIGH))
    return [
        f'<rect x="{across(edge):.1f}" y="{up(share):.1f}" width="{across(edges[1]) - across(edges[0]):.1f}" '
        f'height="{up(0) - up(share):.1f}" fill="{colour}" fill-opacity="0.6"/>'
        for edge, share in zip(edges, counts / len(cosines) / tallest, strict=False)
        if share > 0
    ]


def label(x: float, y: float, text: str, colour: str = "#444", anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}">{text}</text>'


def picture(unrelated: np.ndarray, related: np.ndarray, scale: Scale) -> str:
    """A standalone SVG: two histograms, the score curve over them, and the border."""
    shares = [np.histogram(c, bins=BINS, range=(LOW, HIGH))[0].max() / len(c) for c in (unrelated, related)]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + LABEL} {HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH + LABEL}" height="{HEIGHT}" fill="white"/>',
    ]
    for (kind, colour), cosines, place in zip(KINDS, (unrelated, related), (0.02, 0.62), strict=True):
        parts += [*bars(cosines, colour, max(shares)), label(across(place), MARGIN - 24, f"{kind} pairs", colour)]
    curve = " ".join(f"{across(c):.1f},{up(scale.score(float(c))):.1f}" for c in np.linspace(LOW, HIGH, 131))
    border = across(scale.border)
    parts += [
        f'<polyline points="{curve}" fill="none" stroke="#c2571a" stroke-width="2"/>',
        f'<line x1="{border:.1f}" x2="{border:.1f}" y1="{up(1):.1f}" y2="{up(0):.1f}" stroke="#444" '
        'stroke-dasharray="4 3"/>',
        label(border, MARGIN - 8, f"border {scale.border:.2f}"),
        label(across(HIGH) + 4, up(1) + 4, "score 1", "#c2571a", "start"),
        label(across(HIGH) + 4, up(0.5) + 4, "0.5", "#c2571a", "start"),
        f'<line x1="{across(LOW):.1f}" x2="{across(HIGH):.1f}" y1="{up(0):.1f}" y2="{up(0):.1f}" stroke="#444"/>',
        *(label(across(tick / 10), up(0) + 18, f"{tick / 10:.1f}") for tick in range(-2, 11, 2)),
        label(WIDTH / 2, HEIGHT - 8, "cosine"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--dev", type=Path, required=True)
    args = parser.parse_args()
    provider = LocalProvider(args.model)
    if provider.scale is None:
        raise SystemExit(f"{args.model} has no scale to draw; export it first")
    cosines = together({name: cosines_of(provider, read_set(args.dev / name)) for name in SCALE_SETS})
    unrelated = np.concatenate([cosines.random, cosines.near])
    args.out.write_text(picture(unrelated, cosines.related, provider.scale), encoding="utf-8")


if __name__ == "__main__":
    main()
