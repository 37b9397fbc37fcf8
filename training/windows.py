"""What it costs or gains to read long texts in windows: recall@1 of a model folder for several ways of reading.

    python windows.py MODEL_FOLDER --dev DEV_FOLDER [--out log/windows.json] [--ways 512/512 256/256 1024/256]

A way is TOKENS/WINDOW: how many tokens of a text are read, and how many at once.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path

from evaluate import read_set
from fidelity import recall_at_1
from homing.embedders.local import LocalProvider
from homing.embedders.model_folder import DESCRIPTION

SETS = ("passages_q-zh_d-zh", "passages_q-zh_d-en", "passages_q-en_d-zh", "passages_q-en_d-en")


def provider_that_reads(model: Path, way: str, into: Path) -> LocalProvider:
    """The same model with another length and window."""
    shutil.copytree(model, into)
    tokens, window = map(int, way.split("/"))
    told = json.loads((into / DESCRIPTION).read_text(encoding="utf-8"))
    (into / DESCRIPTION).write_text(json.dumps(told | {"max_tokens": tokens, "window": window}), encoding="utf-8")
    return LocalProvider(into)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--dev", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--ways", nargs="+", default=["256/256", "512/512", "1024/256", "1024/128"])
    args = parser.parse_args()
    sets = {name: read_set(args.dev / name) for name in SETS}
    report = {}
    for way in args.ways:
        with tempfile.TemporaryDirectory() as folder:
            provider = provider_that_reads(args.model, way, Path(folder) / "model")
            report[way] = {
                name: round(recall_at_1(data, provider.embed(data.queries), provider.embed(data.documents)), 4)
                for name, data in sets.items()
            }
        print(way, report[way], flush=True)
    if args.out:
        args.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
