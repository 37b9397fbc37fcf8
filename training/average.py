"""A weighted mean of several models' weights.

    python average.py --tokenizer tokenizer.json --out averaged [--revive] stage1=0.4 stage2=0.6

Two components of the teacher's vectors (127 and 223) are always zero: its last normalisation multiplies them by
nothing. What is distilled from it inherits that. `--revive` gives them a hundredth of a voice in the weights that ship,
since whoever looks at a vector may take a zero for a fault; cosines change by one or two ten-thousandths.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import torch

from encoder import Encoder, load, save
from evaluate import weights_of

SILENT, WHISPER = 1e-4, 0.01  # the weights of other components lie near 1


def average(models: list[tuple[Encoder, float]]) -> Encoder:
    total = sum(weight for _, weight in models)
    result = Encoder(models[0][0].vocabulary)
    states = [(model.state_dict(), weight / total) for model, weight in models]
    with torch.no_grad():
        for name, value in result.state_dict().items():
            value.copy_(sum(state[name].to(value.device) * weight for state, weight in states))
    return result


def revive(model: Encoder) -> int:
    """Wakes the components that the last normalisation silences; returns how many there were."""
    weight = model.encoder.layer[-1].output.LayerNorm.weight.data
    silent = weight.abs() < SILENT
    weight[silent] = WHISPER
    return int(silent.sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", help="folder=weight")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--revive", action="store_true")
    args = parser.parse_args()
    models = []
    for item in args.models:
        folder, _, weight = item.rpartition("=")
        models.append((load(weights_of(Path(folder))), float(weight)))
    result = average(models)
    if args.revive:
        print(f"{revive(result)} silent components revived")
    save(result, args.out)
    shutil.copy(args.tokenizer, args.out / "tokenizer.json")


if __name__ == "__main__":
    main()
