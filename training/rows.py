"""Start weights: the teacher's, plus a row for every new character.

    python rows.py --teacher TEACHER_FOLDER --tokenizer tokenizer.json --glossary glossary.jsonl.xz --out start

A new row starts at the mean of the pieces of its dictionary gloss; a character without an entry of its own takes the
mean over the words that contain it. A little noise keeps characters of equal gloss apart.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections import defaultdict
from pathlib import Path

import torch
from tokenizers import Tokenizer

from data import read_jsonl
from encoder import load, save
from evaluate import weights_of

NOISE = 0.01


def glosses_of(path: Path) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Glosses of single characters, and of the words each character occurs in."""
    own: dict[str, list[str]] = defaultdict(list)
    within: dict[str, list[str]] = defaultdict(list)
    for row in read_jsonl(path):
        for form in {row["zh"], row["trad"]}:
            for character in set(form):
                (own if len(form) == 1 else within)[character] += row["en"]
    return own, within


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("teacher", "tokenizer", "glossary", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    strings: dict[int, list[str]] = defaultdict(list)
    for string, number in json.loads(args.tokenizer.read_text(encoding="utf-8"))["model"]["vocab"].items():
        strings[number].append(string)
    tokenizer = Tokenizer.from_file(str(args.tokenizer))
    own, within = glosses_of(args.glossary)
    old = load(weights_of(args.teacher)).vocabulary
    model = load(weights_of(args.teacher), vocabulary=max(strings) + 1)
    table = model.embeddings.word_embeddings.weight.data
    mean, glossed = table[1000:old].mean(0), 0
    for number in range(old, len(table)):
        glosses = [gloss for string in strings[number] for gloss in own[string]]
        glosses = glosses or [gloss for string in strings[number] for gloss in within[string]]
        pieces = [piece for gloss in glosses[:40] for piece in tokenizer.encode(gloss, add_special_tokens=False).ids]
        pieces = [piece for piece in pieces if 999 < piece < old]
        glossed += bool(pieces)
        table[number] = (table[pieces].mean(0) if pieces else mean) + NOISE * torch.randn(384)
    save(model, args.out)
    shutil.copy(args.tokenizer, args.out / "tokenizer.json")
    print(f"{len(table) - old} new rows, {glossed} of them from a gloss")


if __name__ == "__main__":
    main()
