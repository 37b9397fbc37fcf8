"""Development sets of long requests that want several things: questions to different assistants, joined into one.

    python several.py --dev DEV_FOLDER --out DEV_FOLDER_OF_LONG_REQUESTS

Writes `several_zh` and `several_en` in the form of the other sets: the documents of agents_zh and agents_en, and the
assistants of all its parts as the right answers of a request; recall@5 is the figure to look at.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
from pathlib import Path

from evaluate import read_lines

REQUESTS = 600
JOINTS = {
    "zh": ("。另外，", "，然后还想问：", "。同时，", "。还有一件事，", "。最后，"),
    "en": (" Also, ", " Then, ", " At the same time, ", " One more thing: ", " Finally, "),
}


def join(parts: list[str], language: str, draw: random.Random) -> str:
    text = parts[0].rstrip("。？?.! ")
    for part in parts[1:]:
        text += draw.choice(JOINTS[language]) + part.rstrip("。？?.! ")
    return text


def write(path: Path, rows: list[dict]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dev", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    for language in JOINTS:
        source, out, draw = args.dev / f"agents_{language}", args.out / f"several_{language}", random.Random(4)
        out.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / "corpus.jsonl", out / "corpus.jsonl")
        text = {row["id"]: row["text"] for row in read_lines(source / "queries.jsonl")}
        right = [row for row in read_lines(source / "qrels.jsonl") if row["score"] > 0]
        queries, qrels = [], []
        for number in range(REQUESTS):
            rows = {row["did"]: row["qid"] for row in draw.sample(right, draw.choice((3, 4)))}
            queries.append({"id": str(number), "text": join([text[qid] for qid in rows.values()], language, draw)})
            qrels += [{"qid": str(number), "did": did, "score": 1} for did in rows]
        write(out / "queries.jsonl", queries)
        write(out / "qrels.jsonl", qrels)


if __name__ == "__main__":
    main()
