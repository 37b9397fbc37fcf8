"""A weighted mean of several models' weights.

python average.py --out averaged stage1=0.4 stage2=0.6
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import torch

from encoder import Encoder, load, save
from evaluate import weights_of


def average(models: list[tuple[Encoder, float]]) -> Encoder:
    total = sum(weight for _, weight in models)
    result = Encoder(models[0][0].vocabulary)
    states = [(model.state_dict(), weight / total) for model, weight in models]
    with torch.no_grad():
        for name, value in result.state_dict().items():
            value.copy_(sum(state[name].to(value.device) * weight for state, weight in states))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", help="folder=weight")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    args = parser.parse_args()
    models = []
    for item in args.models:
        folder, _, weight = item.rpartition("=")
        models.append((load(weights_of(Path(folder))), float(weight)))
    save(average(models), args.out)
    shutil.copy(args.tokenizer, args.out / "tokenizer.json")


if __name__ == "__main__":
    main()
