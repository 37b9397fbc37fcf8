"""From trained weights to the model folder that ships: int8 graph, tokenizer, scale.

    python export.py WEIGHTS_FOLDER OUT_FOLDER --calibration TRAIN_FOLDER --dev DEV_FOLDER

WEIGHTS_FOLDER holds config.json, tokenizer.json and weights (or model) .safetensors under BertModel names. The ranges
of the activations come from texts of TRAIN_FOLDER, the scale from pairs of DEV_FOLDER.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file
from tokenizers import Tokenizer

from evaluate import read_set, weights_of
from homing.embedders.bert_graph import BertConfig, split_weights
from homing.embedders.local import LocalProvider
from homing.embedders.model_folder import FIRST_VERSION, write_model_folder
from homing.vectors import Scale
from int8_graph import build_int8
from quantise import observe, sample_texts
from scale import SCALE_SETS, cosines_of, fitted

CHECK = (
    "Homing finds the skill, the memory, the device or the paragraph that a request is about, in Chinese and in "
    "English, on your own machine. 一句话说清你要什么：提交代码、打开客厅的灯、找到那段写孤独的文字，"
    "它都能找到，不需要联网。"
)
"""Long enough to pass through every part of every layer; a processor that computes it alike computes all alike."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--calibration", type=Path, required=True)
    parser.add_argument("--dev", type=Path, required=True)
    parser.add_argument("--texts", type=int, default=3000, help="calibration texts")
    parser.add_argument("--max-tokens", type=int, default=1024, help="of a text that are read")
    parser.add_argument("--window", type=int, default=256, help="tokens that are read at once: as many as were taught")
    parser.add_argument("--name", default="all-MiniLM-L6-v2-zh")
    parser.add_argument("--version", default=FIRST_VERSION, help="counts releases that give other vectors")
    args = parser.parse_args(arguments)

    tokenizer = (args.weights / "tokenizer.json").read_bytes()
    config = BertConfig.from_json(json.loads((args.weights / "config.json").read_text()))
    weights = load_file(weights_of(args.weights))
    texts = sample_texts(args.calibration, args.texts)
    ranges = observe(weights, config, Tokenizer.from_buffer(tokenizer), texts, window=args.window)
    graph, constants = split_weights(build_int8(weights, config, ranges))
    args.out.mkdir(parents=True, exist_ok=True)

    def write(scale: Scale | None = None, check: dict[str, Any] | None = None) -> None:
        write_model_folder(
            args.out, graph=graph, weights=constants, tokenizer=tokenizer, name=args.name, version=args.version,
            dimensions=config.hidden, max_tokens=args.max_tokens, window=args.window, scale=scale, check=check,
        )  # fmt: skip

    write()
    provider = LocalProvider(args.out)
    scale = fitted({name: cosines_of(provider, read_set(args.dev / name)) for name in SCALE_SETS})
    write(scale, {"text": CHECK, "vector": [round(float(value), 5) for value in provider.embed([CHECK])[0]]})
    size = sum(file.stat().st_size for file in args.out.iterdir())
    print(f"{args.out}: {size / 1e6:.1f} MB, border {scale.border}, steepness {scale.steepness}")


if __name__ == "__main__":
    main()
