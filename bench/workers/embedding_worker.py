"""One contender of bench/embedding.py: loads its model, then answers JSON lines until its input ends."""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Embed = Callable[[Sequence[str]], Any]


def weights_file(folder: Path) -> Path:
    return next(path for name in ("weights", "model") if (path := folder / f"{name}.safetensors").exists())


def homing_int8(args: argparse.Namespace) -> Embed:
    from homing.embedders.local import LocalProvider

    provider = LocalProvider(args.model, threads=args.threads)
    provider.load()
    return provider.embed


def onnxruntime_fp32(args: argparse.Namespace) -> Embed:
    """The same graph without quantisation: one session on all cores, equal lengths together, 32 texts a batch."""
    import numpy as np
    import onnxruntime
    from tokenizers import Tokenizer

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = args.threads
    session = onnxruntime.InferenceSession(args.work / "fp32.onnx", options, providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(str(args.weights / "tokenizer.json"))
    tokenizer.enable_truncation(512)

    def embed(texts: Sequence[str]) -> Any:
        rows: list[Any] = [None] * len(texts)
        by_length: dict[int, list[int]] = {}
        ids = [encoding.ids for encoding in tokenizer.encode_batch_fast(list(texts))]
        for place, row in enumerate(ids):
            by_length.setdefault(len(row), []).append(place)
        for places in by_length.values():
            for start in range(0, len(places), 32):
                part = places[start : start + 32]
                batch = np.array([ids[place] for place in part], dtype=np.int64)
                for place, row in zip(part, session.run(None, {"ids": batch})[0], strict=True):
                    rows[place] = row
        return np.stack(rows)

    return embed


def sentence_transformers(args: argparse.Namespace) -> Embed:
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(args.threads)
    model = SentenceTransformer(str(args.work / "torch"), device="cpu")
    return lambda texts: model.encode(list(texts), batch_size=32, show_progress_bar=False)


def prepare_fp32(args: argparse.Namespace) -> None:
    from safetensors.numpy import load_file

    from homing.embedders.bert_graph import BertConfig, build_fp32

    config = BertConfig.from_json(json.loads((args.weights / "config.json").read_text()))
    (args.work / "fp32.onnx").write_bytes(build_fp32(load_file(weights_file(args.weights)), config))


def prepare_torch(args: argparse.Namespace) -> None:
    from safetensors.torch import load_file
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = str(args.work / "bert")
    model = BertModel(BertConfig(**json.loads((args.weights / "config.json").read_text())), add_pooling_layer=False)
    weights = {name: value.float() for name, value in load_file(weights_file(args.weights)).items()}
    model.load_state_dict(weights, strict=False)
    model.save_pretrained(folder)
    PreTrainedTokenizerFast(
        tokenizer_file=str(args.weights / "tokenizer.json"), model_max_length=512,
        pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]",
    ).save_pretrained(folder)  # fmt: skip
    modules = [Transformer(folder, max_seq_length=512), Pooling(model.config.hidden_size), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(str(args.work / "torch"))


LOAD: dict[str, Callable[[argparse.Namespace], Embed]] = {
    "homing int8": homing_int8,
    "onnxruntime fp32": onnxruntime_fp32,
    "sentence-transformers": sentence_transformers,
}
PREPARE = {"onnxruntime fp32": prepare_fp32, "sentence-transformers": prepare_torch}


def peak_megabytes() -> float:
    """Of this program alone: `getrusage` would count the parent's memory from before the program was started."""
    status = Path("/proc/self/status")
    if status.exists():
        [peak] = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return int(peak.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def answer(embed: Embed, request: dict[str, Any]) -> dict[str, Any]:
    if request["do"] == "memory":
        return {"peak_mb": peak_megabytes()}
    clock = time.process_time if request["clock"] == "cpu" else time.perf_counter
    groups = [request["texts"]] if request["do"] == "batch" else [[text] for text in request["texts"]]
    seconds = []
    for group in groups:
        started = clock()
        embed(group)
        seconds.append(clock() - started)
    return {"seconds": seconds[0] if request["do"] == "batch" else seconds}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("contender", choices=LOAD)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--prepare", action="store_true")
    args = parser.parse_args()
    if args.prepare:
        PREPARE[args.contender](args)
        return
    # In a process of its own: what it takes to convert weights is no part of what it takes to run them.
    if args.contender in PREPARE and subprocess.call([sys.executable, *sys.argv, "--prepare"], stdout=sys.stderr):
        raise SystemExit(f"cannot prepare {args.contender}")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not mix with the answers
    started = time.perf_counter()
    embed = LOAD[args.contender](args)
    print(json.dumps({"load_s": time.perf_counter() - started}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(embed, json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
