"""Scores many weighted averages of the same few models without writing them to disk.

    python soups.py --dev DEV_FOLDER --tokenizer tokenizer.json --out soups.json \
        --models s=stage1 a=s2a b=s2b --soups s1 a1 s5a25b25 ...

A soup is written as the models' letters, each with its share: s5a25b25 is .5 s + .25 a + .25 b.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import torch
from tokenizers import Encoding, Tokenizer

from average import average
from encoder import load
from evaluate import SETS, evaluate, read_set, weights_of


class Remembered:
    """A tokenizer that has seen every list of texts before: the texts stay the same from soup to soup."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer, self._known = tokenizer, {}

    def encode(self, text: str, **options: bool) -> Encoding:
        return self._tokenizer.encode(text, **options)

    def encode_batch(self, texts: list[str]) -> list[Encoding]:
        if id(texts) not in self._known:
            self._known[id(texts)] = self._tokenizer.encode_batch(texts)
        return self._known[id(texts)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", required=True, help="letter=folder")
    parser.add_argument("--soups", nargs="+", required=True)
    parser.add_argument("--dev", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--titles", action="store_true")
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    sets = [read_set(args.dev / name, titles=args.titles) for name in args.sets]
    tokenizer = Tokenizer.from_file(str(args.tokenizer))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    remembered = Remembered(tokenizer)
    models = dict(item.split("=", 1) for item in args.models)
    loaded = {letter: load(weights_of(Path(folder))).to(device) for letter, folder in models.items()}
    results = {}
    for soup in args.soups:
        parts = [(loaded[letter], float(f"0.{share}")) for letter, share in re.findall(r"([a-z])(\d+)", soup)]
        results[soup] = evaluate(average(parts).to(device), remembered, sets)
        print(soup, {key: value["recall_1"] for key, value in results[soup].items()}, flush=True)
        args.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
