"""Stage 2: a query learns to find its document.

    python retrieve.py --prepared prepared --teacher TEACHER_FOLDER --start stage1 --out stage2 --seconds 260
    python retrieve.py … --vectors vectors.pt --bge-en bge-en --bge-zh bge-zh --relations 1

Every step adds the gradients of two anchor chunks (stage 1's loss, so that vectors stay where they are) and of one
batch of query and document pairs of one kind, with the other documents of the batch and a mined one per query as
negatives. Kinds: question → passage, the same with the question glossed into English, question → topic, request →
intent, heading → section in both languages, first sentence → rest of the passage in all four language directions and
of plain text, several requests in one → the document of each.

With --relations the batch is also judged by the teachers: how near they find each query and each document is what the
student's similarities should say, too (Kullback–Leibler divergence over the documents of the batch). English pairs and
aligned ones are judged in English by MiniLM with bge-en, Chinese ones by the start weights with bge-zh; a request that
wants several things is as near to a document as the nearest of its parts.
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
from distil import anchor_step, optimiser_of, set_rate, taught_by
from encoder import load, save
from evaluate import weights_of
from pairs import Pairs, PairSource
from teachers import Chinese, English
from vectors import SEED

SCALE = 20.0  # of InfoNCE
PAIR_SCALE, BORDER = 16.0, 0.5  # of the sigmoid loss, which keeps cosines readable as scores
TEACHER_SCALE = 25.0  # of the teachers' similarities
BESIDE = 0.3  # of the pair loss where teachers judge, too; they know better than a single right answer
LABELLED = ("topic", "intent")  # kinds where the right answer says more than the texts do


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


def judged(pairs: Pairs, english: English, chinese: Chinese) -> Tensor:
    """What share of a query each document should have, by the teachers of its language."""
    teacher = english if pairs.english or pairs.kind.endswith("_en") or pairs.kind == "intent" else chinese
    queries, documents = pairs.english or (pairs.queries, pairs.documents)
    queries = queries if pairs.parts is None else pairs.parts
    near = teacher.wide(queries, padded=True) @ teacher.wide(documents, padded=True).T
    if pairs.owner is None:
        return torch.softmax(TEACHER_SCALE * near, 1)
    count = int(pairs.owner[-1]) + 1
    own = functional.one_hot(pairs.owner, count).T.to(near.dtype)
    best = torch.stack([near[pairs.owner == number].amax(0) for number in range(count)])
    return 0.5 * torch.softmax(TEACHER_SCALE * best, 1) + 0.5 * own / own.sum(1, keepdim=True)


def relation_loss(queries: Tensor, documents: Tensor, shares: Tensor) -> Tensor:
    return functional.kl_div(torch.log_softmax(SCALE * (queries @ documents.T), 1), shares, reduction="batchmean")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("prepared", "teacher", "start", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=260)
    parser.add_argument("--rate", type=float, default=6e-5)
    parser.add_argument("--embedding-rate", type=float, help="as --rate")
    parser.add_argument("--anchors", type=int, default=2, help="chunks a step")
    for name in ("bge-en", "bge-zh"):
        parser.add_argument(f"--{name}", type=Path, help="folder that teachers.py wrote")
    parser.add_argument("--judge", type=Path, help="judges Chinese beside bge-zh; the start weights by default")
    parser.add_argument("--vectors", type=Path, help="file that vectors.py wrote")
    parser.add_argument(
        "--relations", type=float, default=0.0, help="weight of the teachers' judgement within the pair loss"
    )
    parser.add_argument("--near", type=float, default=0.0, help="share of batches made of near neighbours")
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
    seed = SEED if args.vectors else args.seed
    teacher = taught_by(args.teacher, args.vectors, device)
    corpus = Corpus.read(args.prepared / "distil.npz", teacher, device=device, seed=seed)
    del teacher
    model = load(weights_of(args.start)).to(device).train()
    source = PairSource(args.prepared, corpus, args.seed, args.kinds, args.near)
    source.mine(model)
    english = chinese = None
    if args.relations:
        middle = torch.load(args.vectors)["middle"].to(device)
        english = English(weights_of(args.teacher), args.bge_en, device, middle)
        judge = load(weights_of(args.judge or args.start)).to(device).eval()
        chinese = Chinese(judge, args.bge_zh, args.start / "tokenizer.json", source.sample(), device)
    optimiser = optimiser_of(model, args.rate, args.embedding_rate or args.rate)
    args.out.mkdir(parents=True, exist_ok=True)
    log = {
        "arguments": {key: str(value) for key, value in vars(args).items()},
        "kinds": source.sizes(),
        "lines": [],
    }
    epoch = 1000 * args.seed
    items, place, started = corpus.epoch(epoch, args.chunk), 0, time.time()
    sums: dict[str, list[Tensor]] = {}
    step = 0
    while (elapsed := time.time() - started) < args.seconds:
        set_rate(optimiser, step, 50, elapsed / args.seconds)
        for _ in range(args.anchors):
            if place == len(items):
                epoch, place = epoch + 1, 0
                items = corpus.epoch(epoch, args.chunk)
            loss, _ = anchor_step(model, items, place, 1 / args.anchors, args.contrast)
            sums.setdefault("anchor", []).append(loss)
            place += 1
        pairs = source.draw(args.rows)
        queries, documents = model(pairs.queries, padded=True), model(pairs.documents, padded=True)
        loss = torch.zeros((), device=device)
        if pairs.owner is None:
            loss = pair_loss(queries, documents, pairs, args.sigmoid)
            sums.setdefault(pairs.kind, []).append(loss.detach())
        if english and chinese:
            relations = relation_loss(queries, documents, judged(pairs, english, chinese).clone())
            sums.setdefault(f"{pairs.kind} relations", []).append(relations.detach())
            loss = loss * (1.0 if pairs.kind in LABELLED else BESIDE) + args.relations * relations
        (loss * args.weight).backward()
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
