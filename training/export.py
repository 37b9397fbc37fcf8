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

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from evaluate import RetrievalSet, read_set, weights_of
from homing.embedders.bert_graph import BertConfig
from homing.embedders.bert_int8 import build_int8
from homing.embedders.calibration import fit_scale
from homing.embedders.local import LocalProvider
from homing.embedders.model_folder import Check, write_model_folder
from homing.vectors import Scale
from quantise import observe, sample_texts

# Not among them: the sets that share their source with training data.
SCALE_SETS = (
    "passages_q-zh_d-zh", "passages_q-zh_d-en", "passages_q-en_d-zh", "passages_q-en_d-en",
    "agents_zh", "agents_en", "tools_bfcl",
)  # fmt: skip
CHECK = (
    "Homing finds the skill, the memory, the device or the paragraph that a request is about, in Chinese and in "
    "English, on your own machine. 一句话说清你要什么：提交代码、打开客厅的灯、找到那段写孤独的文字，"
    "它都能找到，不需要联网。"
)
"""Long enough to pass through every part of every layer; a processor that computes it alike computes all alike."""
PAIRS_A_SET = 300
"""Each set counts the same, so that no one kind of text decides the border."""
NEAR = 50
"""Which of the wrong documents, the nearest first, is the near one. The first few are often right ones that nobody
marked; the tenth would put many right answers under 0.55 and 0.7, where callers cut."""


def cosines_of_pairs(provider: LocalProvider, data: RetrievalSet, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Cosines of queries with a document that answers them, and with two that do not: a random one and a near one."""
    draw = np.random.default_rng(seed)
    chosen = draw.permutation(len(data.queries))[:PAIRS_A_SET]
    cosines = provider.embed([data.queries[query] for query in chosen]) @ provider.embed(data.documents).T
    related, chance, near = [], [], []
    for row, query in zip(cosines, chosen, strict=True):
        right = data.relevant[query]
        wrong = np.delete(row, list(right))
        related.append(row[min(right)])
        chance.append(draw.choice(wrong))
        near.append(np.partition(wrong, -NEAR)[-NEAR])
    return np.array(related), np.array(chance + near)


def measured_scale(provider: LocalProvider, dev: Path) -> Scale:
    """The scale over all SCALE_SETS; prints what each set has to say."""
    near, far = [], []
    for name in SCALE_SETS:
        related, unrelated = cosines_of_pairs(provider, read_set(dev / name))
        near.append(related)
        far.append(unrelated)
        for kind, cosines in (("related", related), ("unrelated", unrelated)):
            low, high = np.percentile(cosines, [5, 95])
            print(f"{name:24} {kind:9} {cosines.mean():.3f} (5-95 %: {low:.3f} to {high:.3f})", flush=True)
    return fit_scale(np.concatenate(near), np.concatenate(far))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--calibration", type=Path, required=True)
    parser.add_argument("--dev", type=Path, required=True)
    parser.add_argument("--texts", type=int, default=3000, help="calibration texts")
    parser.add_argument("--max-tokens", type=int, default=512)
    parser.add_argument("--name", default="all-MiniLM-L6-v2-zh")
    parser.add_argument("--version", default="1")
    args = parser.parse_args(arguments)

    tokenizer = (args.weights / "tokenizer.json").read_bytes()
    config = BertConfig.from_json(json.loads((args.weights / "config.json").read_text()))
    weights = load_file(weights_of(args.weights))
    ranges = observe(weights, config, Tokenizer.from_buffer(tokenizer), sample_texts(args.calibration, args.texts))
    graph = build_int8(weights, config, ranges)
    args.out.mkdir(parents=True, exist_ok=True)

    def write(scale: Scale | None = None, check: Check | None = None) -> None:
        write_model_folder(
            args.out, graph=graph, tokenizer=tokenizer, name=args.name, version=args.version,
            dimensions=config.hidden, max_tokens=args.max_tokens, scale=scale, check=check,
        )  # fmt: skip

    write()
    provider = LocalProvider(args.out)
    scale = measured_scale(provider, args.dev)
    write(scale, Check(CHECK, [round(float(value), 5) for value in provider.embed([CHECK])[0]]))
    size = sum(file.stat().st_size for file in args.out.iterdir())
    print(f"{args.out}: {size / 1e6:.1f} MB, border {scale.border}, steepness {scale.steepness}")


if __name__ == "__main__":
    main()
