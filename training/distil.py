"""Stage 1: Chinese and English sentences and passages learn to land where the teacher puts the English text.

    python distil.py --prepared prepared --teacher TEACHER_FOLDER --start START_FOLDER --out stage1 --seconds 900
    python distil.py … --vectors vectors.pt

With --vectors the targets are those of MiniLM beside bge-en (`vectors.py`).
Per text |v − t|², and for Chinese texts 0.1 · InfoNCE against the teacher vectors of the same batch. A batch is four
chunks; the texts of a chunk have equal length, so nothing is padded. The learning rate follows the clock: a cosine
over `--seconds`, so the run uses exactly the time it is given.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path

import torch
from torch import Tensor

from corpus import Corpus, Items
from encoder import Encoder, load, save
from evaluate import weights_of
from vectors import SEED

CHUNKS = 4  # a step
TEMPERATURE = 0.05


def loss_of(vectors: Tensor, targets: Tensor, contrast: float) -> Tensor:
    loss = (vectors - targets).square().sum(-1).mean()
    if contrast:
        logits = vectors @ targets.T / TEMPERATURE
        # Equal sentences are common in documentation; an equal target is no negative.
        same = targets @ targets.T > 0.999
        same.fill_diagonal_(False)
        truth = torch.arange(len(vectors), device=vectors.device)
        loss = loss + contrast * torch.nn.functional.cross_entropy(logits.masked_fill(same, -1e4), truth)
    return loss


def optimiser_of(model: Encoder, rate: float, embedding_rate: float) -> torch.optim.AdamW:
    words = [model.embeddings.word_embeddings.weight]
    rest = [value for value in model.parameters() if value is not words[0]]
    decayed = [value for value in rest if value.ndim > 1]
    plain = [value for value in rest if value.ndim == 1]
    groups = [
        {"params": words, "lr": embedding_rate, "peak": embedding_rate, "weight_decay": 0.0},
        {"params": decayed, "lr": rate, "peak": rate, "weight_decay": 0.01},
        {"params": plain, "lr": rate, "peak": rate, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, betas=(0.9, 0.98), fused=words[0].is_cuda)


def set_rate(optimiser: torch.optim.AdamW, step: int, warmup: int, progress: float) -> None:
    factor = min(1.0, (step + 1) / warmup) * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
    for group in optimiser.param_groups:
        group["lr"] = group["peak"] * max(factor, 1e-3)


def anchor_step(model: Encoder, items: Items, chunk: int, weight: float, contrast: float) -> tuple[Tensor, int]:
    """Adds one chunk's gradient; returns its loss and its tokens."""
    ids, targets, chinese = items.batch(chunk)
    loss = loss_of(model(ids), targets, contrast if chinese else 0.0)
    (loss * weight * min(1.0, ids.numel() / items.budget)).backward()
    return loss.detach(), ids.numel()


def taught_by(teacher: Path, vectors: Path | None, device: str) -> Encoder | Tensor:
    return torch.load(vectors)["targets"].to(device) if vectors else load(weights_of(teacher)).to(device).eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("prepared", "teacher", "start", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=900)
    parser.add_argument("--tokens", type=int, default=131_072, help="tokens of a step")
    parser.add_argument("--rate", type=float, default=4e-4)
    parser.add_argument("--embedding-rate", type=float, default=1e-3)
    parser.add_argument("--warmup", type=int, default=300)
    parser.add_argument("--contrast", type=float, default=0.1)
    parser.add_argument("--vectors", type=Path, help="file that vectors.py wrote")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    started = time.time()
    teacher = taught_by(args.teacher, args.vectors, device)
    seed = SEED if args.vectors else args.seed
    corpus = Corpus.read(args.prepared / "distil.npz", teacher, device=device, seed=seed)
    print(f"teacher vectors after {time.time() - started:.0f} s: {corpus.summary()}", flush=True)
    del teacher
    model = load(weights_of(args.start)).to(device).train()
    optimiser = optimiser_of(model, args.rate, args.embedding_rate)
    args.out.mkdir(parents=True, exist_ok=True)
    log = {
        "arguments": {key: str(value) for key, value in vars(args).items()},
        "corpus": corpus.summary(),
        "lines": [],
    }
    step, tokens, epoch, started = 0, 0, 0, time.time()
    total: dict[bool, Tensor] = {True: torch.zeros(2, device=device), False: torch.zeros(2, device=device)}
    while (elapsed := time.time() - started) < args.seconds:
        items = corpus.epoch(epoch, budget=args.tokens // CHUNKS)
        epoch += 1
        for start in range(0, len(items) - CHUNKS + 1, CHUNKS):
            elapsed = time.time() - started
            if elapsed >= args.seconds:
                break
            set_rate(optimiser, step, args.warmup, elapsed / args.seconds)
            for place in range(start, start + CHUNKS):
                loss, count = anchor_step(model, items, place, 1 / CHUNKS, args.contrast)
                total[items.is_chinese(place)] += torch.stack([loss, torch.ones_like(loss)])
                tokens += count
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            step += 1
            if step % 200 == 0:
                chinese, english = ((value[0] / value[1].clamp(min=1)).item() for value in total.values())
                line = {"step": step, "epoch": epoch, "seconds": round(time.time() - started), "tokens": tokens,
                        "loss_zh": round(chinese, 4), "loss_en": round(english, 4)}  # fmt: skip
                log["lines"].append(line)
                print(line, flush=True)
                for value in total.values():
                    value.zero_()
    log["end"] = {"step": step, "epoch": epoch, "tokens": tokens, "seconds": round(time.time() - started)}
    save(model, args.out)
    (args.out / "log.json").write_text(json.dumps(log, indent=1) + "\n")
    print(log["end"])


if __name__ == "__main__":
    main()
