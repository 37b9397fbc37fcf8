"""Chinese questions by topic, English requests by intent, and bilingual prompt titles, each from one public repository.

    python topics.py --questions QUESTION_FOLDER --out topics.jsonl.xz
    python topics.py --intents data_full.json --out intents.jsonl.xz
    python topics.py --prompts prompt_en.json prompt_zh-Hans.json --out prompts.jsonl.xz

QUESTION_FOLDER holds the tables `| topic | question |` of PlexPt/awesome-chatgpt-prompts-zh (MIT; written by a
language model, so a topic is at times beside the point), data_full.json is CLINC150's (CC-BY-3.0; only its train
part is read), the prompt files are those of rockbenben/ChatGPT-Shortcut (MIT).
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

MOST = 40  # questions of one topic: the common ones have thousands
# Kinds of exercise for a language model, not topics.
TASKS = re.compile(
    r"分类|生成|编辑|任务|命令|改写|问答|比较|排序|解释|总结|描述|要求|指令|开放|抽取|标注|GPT|其他|问题"
)
_CHINESE = re.compile(r"[\u4e00-\u9fff]")


def questions(folder: Path) -> Iterable[dict[str, str]]:
    """Topics of two to twelve characters with at most MOST questions each, drawn at random but the same every time."""
    by_topic: dict[str, set[str]] = defaultdict(set)
    for path in sorted(folder.glob("*.md")):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if len(cells) != 2:
                continue
            topic, question = cells
            good = 2 <= len(topic) <= 12 and 6 <= len(question) <= 80 and topic[-1] not in "？?" and topic != question
            if good and _CHINESE.search(topic) and _CHINESE.search(question) and not TASKS.search(topic):
                by_topic[topic].add(question)
    draw = random.Random(3)
    for topic in sorted(by_topic):
        kept = sorted(by_topic[topic])
        for question in draw.sample(kept, min(MOST, len(kept))):
            yield {"topic": topic, "question": question}


def intents(path: Path) -> Iterable[dict[str, str]]:
    for question, intent in json.loads(path.read_text(encoding="utf-8"))["train"]:
        yield {"topic": intent, "question": question}


def prompts(english: Path, chinese: Path) -> Iterable[dict[str, str]]:
    """Titles, remarks and prompts in both languages."""
    other = {row["id"]: row["zh-Hans"] for row in json.loads(chinese.read_text(encoding="utf-8"))}
    for row in json.loads(english.read_text(encoding="utf-8")):
        if row["id"] in other:
            one, two = row["en"], other[row["id"]]
            for left, right in (("title", "title"), ("remark", "remark"), ("prompt", "description")):
                if one.get(left) and two.get(right):
                    yield {"en": one[left], "zh": two[right], "src": "prompt_titles"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--questions", type=Path)
    source.add_argument("--intents", type=Path)
    source.add_argument("--prompts", type=Path, nargs=2)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    if args.questions:
        rows = questions(args.questions)
    elif args.intents:
        rows = intents(args.intents)
    else:
        rows = prompts(*args.prompts)
    count = 0
    with lzma.open(args.out, "wt", encoding="utf-8") as out:
        for row in rows:
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
    print(f"{count} rows")


if __name__ == "__main__":
    main()
