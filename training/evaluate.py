"""Recall@1, recall@5, MRR and nDCG@10 of one or more models on the development retrieval sets.

    python evaluate.py --dev DEV_FOLDER --out eval.json teacher=TEACHER_FOLDER candidate=FOLDER ...

A document is embedded as "name: text" (with --titles a passage as "title: text"), a query as it is, both as the product
reads them: in windows of --length tokens, cut between sentences. Ranking is by cosine over the whole corpus of a set.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from encoder import Encoder, load
from homing.embedders.local import SENTENCE_MARKS, windows

SETS = (
    "passages_q-zh_d-zh", "passages_q-zh_d-en", "passages_q-en_d-zh", "passages_q-en_d-en",
    "agents_zh", "agents_en", "tools_bfcl", "tools_stabletoolbench",
)  # fmt: skip
MAX_TOKENS = 1024


@dataclass(frozen=True)
class RetrievalSet:
    name: str
    documents: list[str]
    queries: list[str]
    relevant: list[set[int]]


@dataclass(frozen=True)
class Score:
    recall_1: float
    recall_5: float
    mrr_10: float
    ndcg_10: float


def read_lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.open(encoding="utf-8")]


def read_set(folder: Path, joiner: str = ": ", titles: bool = False) -> RetrievalSet:
    """Only queries with at least one relevant document count."""
    corpus, queries = read_lines(folder / "corpus.jsonl"), read_lines(folder / "queries.jsonl")
    place = {row["id"]: index for index, row in enumerate(corpus)}
    relevant: dict[str, set[int]] = defaultdict(set)
    for row in read_lines(folder / "qrels.jsonl"):
        if row["score"] > 0:
            relevant[row["qid"]].add(place[row["did"]])
    queries = [row for row in queries if relevant[row["id"]]]
    documents = []
    for row in corpus:
        name = row.get("name") or (row.get("title") if titles else None)
        documents.append(f"{name}{joiner}{row['text']}" if name else row["text"])
    return RetrievalSet(
        folder.name, documents, [row["text"] for row in queries], [relevant[row["id"]] for row in queries]
    )


def embed(model: Encoder, tokenizer: Tokenizer, texts: list[str], *, length: int, dtype: torch.dtype) -> Tensor:
    """The mean direction of a text's windows; what lies beyond MAX_TOKENS is not read."""
    ends = {end for mark in SENTENCE_MARKS for end in tokenizer.encode(mark, add_special_tokens=False).ids}
    every = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
    every = [ids if len(ids) <= MAX_TOKENS else ids[: MAX_TOKENS - 1] + ids[-1:] for ids in every]
    cut = [windows(ids, length, ends=ends) for ids in every]
    rows = embed_ids(model, [ids for one in cut for ids in one], dtype=dtype)
    means = torch.stack([part.mean(0) for part in rows.split([len(one) for one in cut])])
    return functional.normalize(means, dim=1)


def embed_ids(model: Encoder, rows: list[list[int]], *, dtype: torch.dtype) -> Tensor:
    device = next(model.parameters()).device
    order = sorted(range(len(rows)), key=lambda index: len(rows[index]))
    result = torch.empty(len(rows), 384)
    with torch.inference_mode():
        for start in range(0, len(order), 128):
            part = order[start : start + 128]
            ids = torch.zeros(len(part), len(rows[part[-1]]), dtype=torch.long)
            for place, index in enumerate(part):
                ids[place, : len(rows[index])] = torch.tensor(rows[index])
            result[part] = model(ids.to(device), padded=True, dtype=dtype).float().cpu()
    return result


def score(data: RetrievalSet, queries: Tensor, documents: Tensor) -> Score:
    ranked = (queries @ documents.T).topk(10, dim=1).indices.tolist()
    total = [0.0] * 4
    for order, relevant in zip(ranked, data.relevant, strict=True):
        hits = [rank for rank, document in enumerate(order) if document in relevant]
        ideal = sum(1 / math.log2(rank + 2) for rank in range(min(10, len(relevant))))
        total[0] += order[0] in relevant
        total[1] += sum(rank < 5 for rank in hits) / min(5, len(relevant))
        total[2] += 1 / (hits[0] + 1) if hits else 0.0
        total[3] += sum(1 / math.log2(rank + 2) for rank in hits) / ideal
    return Score(*(round(value / len(ranked), 4) for value in total))


def evaluate(
    model: Encoder,
    tokenizer: Tokenizer,
    sets: list[RetrievalSet],
    *,
    length: int = 256,
    dtype: torch.dtype = torch.float32,
) -> dict[str, dict[str, float]]:
    model.eval()
    result = {}
    for data in sets:
        queries = embed(model, tokenizer, data.queries, length=length, dtype=dtype)
        documents = embed(model, tokenizer, data.documents, length=length, dtype=dtype)
        result[data.name] = asdict(score(data, queries, documents))
    return result


def weights_of(folder: Path) -> Path:
    return next(path for name in ("weights", "model") if (path := folder / f"{name}.safetensors").exists())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", help="name=folder with weights (or model) .safetensors and tokenizer.json")
    parser.add_argument("--dev", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--joiner", default=": ")
    parser.add_argument("--titles", action="store_true")
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    sets = [read_set(args.dev / name, args.joiner, args.titles) for name in args.sets]
    results = {}
    for item in args.models:
        name, _, folder = item.partition("=")
        tokenizer = Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        model = load(weights_of(Path(folder))).to(device)
        results[name] = evaluate(model, tokenizer, sets, length=args.length)
        print(name, {key: value["recall_1"] for key, value in results[name].items()}, flush=True)
    if args.out:
        args.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
