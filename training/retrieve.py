"""Stage 2: a query learns to find its document.

    python retrieve.py --prepared prepared --teacher TEACHER_FOLDER --start stage1 --out stage2 --seconds 260

Every step adds the gradients of two anchor chunks (stage 1's loss, so that vectors stay where they are) and of one
batch of query and document pairs of one kind, with the other documents of the batch and a mined one per query as
negatives. Kinds: question → passage, the same with the question glossed into English, question → topic, request →
intent, heading → section in both languages, first sentence → rest of the passage in all four language directions.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from corpus import Corpus
from distil import anchor_step, optimiser_of, set_rate
from encoder import load, save
from evaluate import weights_of
from pairs import Pairs, PairSource

SCALE = 20.0  # of InfoNCE
PAIR_SCALE, BORDER = 16.0, 0.5  # of the sigmoid loss, which keeps cosines readable as scores
ANCHORS = 2  # chunks a step


def pair_loss(queries: Tensor, documents: Tensor, pairs: Pairs, sigmoid: float) -> Tensor:
    """InfoNCE from query to document, plus a small loss on the cosines themselves."""
    cosine = queries @ documents.T
    truth = torch.arange(len(queries), device=queries.device)
    excused = pairs.excused
    if pairs.twins is not None:
        with torch.no_grad():
            excused = excused | (documents[: len(queries)] @ documents.T > pairs.twins)
        excused[truth, truth] = False
    loss = functional.cross_entropy((cosine * SCALE).masked_fill(excused, -1e4), truth)
    back = cosine[:, : len(queries)].T
    loss = 0.75 * loss + 0.25 * functional.cross_entropy(
        (back * SCALE).masked_fill(excused[:, : len(truth)].T, -1e4), truth
    )
    if sigmoid:
        logits = (cosine - BORDER) * PAIR_SCALE
        right = functional.softplus(-logits[truth, truth]).mean()
        wrong = functional.softplus(logits).masked_fill(excused, 0.0)
        wrong[truth, truth] = 0.0
        loss = loss + sigmoid * (right + wrong.sum(1).mean())
    return loss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("prepared", "teacher", "start", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=260)
    parser.add_argument("--rate", type=float, default=6e-5)
    parser.add_argument("--rows", type=int, default=384, help="pairs of a batch")
    parser.add_argument("--weight", type=float, default=0.15, help="of the pair loss; the anchor has 1")
    parser.add_argument("--sigmoid", type=float, default=0.1)
    parser.add_argument("--contrast", type=float, default=0.1)
    parser.add_argument("--chunk", type=int, default=32_768)
    parser.add_argument("--kinds", type=json.loads, default={}, help="shares of kinds that differ, as JSON")
    parser.add_argument("--seed", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    teacher = load(weights_of(args.teacher)).to(device).eval()
    corpus = Corpus.read(args.prepared / "distil.npz", teacher, device=device, seed=args.seed)
    del teacher
    model = load(weights_of(args.start)).to(device).train()
    source = PairSource(args.prepared, corpus, args.seed, shares=args.kinds)
    source.mine(model)
    optimiser = optimiser_of(model, args.rate, args.rate)
    args.out.mkdir(parents=True, exist_ok=True)
    log = {
        "arguments": {key: str(value) for key, value in vars(args).items()},
        "kinds": source.sizes(),
        "lines": [],
    }
    items, place, epoch, started = corpus.epoch(1000, args.chunk), 0, 1000, time.time()
    sums: dict[str, list[Tensor]] = {}
    step = 0
    while (elapsed := time.time() - started) < args.seconds:
        set_rate(optimiser, step, 50, elapsed / args.seconds)
        for _ in range(ANCHORS):
            if place == len(items):
                epoch, place = epoch + 1, 0
                items = corpus.epoch(epoch, args.chunk)
            loss, _ = anchor_step(model, items, place, 1 / ANCHORS, args.contrast)
            sums.setdefault("anchor", []).append(loss)
            place += 1
        pairs = source.draw(args.rows)
        loss = pair_loss(model(pairs.queries, padded=True), model(pairs.documents, padded=True), pairs, args.sigmoid)
        (loss * args.weight).backward()
        sums.setdefault(pairs.kind, []).append(loss.detach())
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        step += 1
        if step % 100 == 0:
            line = {"step": step, "seconds": round(time.time() - started)}
            line |= {name: round(torch.stack(values).mean().item(), 4) for name, values in sorted(sums.items())}
            log["lines"].append(line)
            print(line, flush=True)
            sums.clear()
    log["end"] = {"step": step, "seconds": round(time.time() - started)}
    save(model, args.out)
    (args.out / "log.json").write_text(json.dumps(log, indent=1) + "\n")


if __name__ == "__main__":
    main()
