"""The vectors of MiniLM beside bge-en for every text of the distillation corpus, once for many runs.

    python vectors.py --prepared prepared --teacher TEACHER_FOLDER --bge-en bge-en --start START_FOLDER --out vectors.pt

The start weights are what the two vectors are turned towards, so that the student starts near its target. The file
also holds the mean of bge-en's vectors, which every later use of that teacher takes off.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch

from corpus import Corpus
from encoder import load
from evaluate import weights_of
from teachers import English

SEED = 5  # of the cuts into passages: a run that reads the file must cut alike


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("prepared", "teacher", "bge-en", "start", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    started = time.time()
    english = English(weights_of(args.teacher), args.bge_en, device)
    english.turn(load(weights_of(args.start)).to(device).eval(), args.prepared)
    corpus = Corpus.read(args.prepared / "distil.npz", english, device=device, seed=SEED)
    torch.save({"targets": corpus.targets.cpu(), "middle": torch.as_tensor(english.middle).clone().cpu()}, args.out)
    print(f"{corpus.summary()} after {time.time() - started:.0f} s")


if __name__ == "__main__":
    main()
