"""Turns the raw training texts into token arrays.

    python prepare.py --data TRAIN_FOLDER --dev DEV_FOLDER --tokenizer tokenizer.json --cmrc cmrc2018_train.json.xz \
        --names names.jsonl.xz --topics topics.jsonl.xz --intents intents.jsonl.xz \
        --prompts prompts.jsonl.xz --dictionary dictionary.jsonl.xz --reading reading.jsonl.xz --out prepared

Writes `distil.npz` (aligned sentences, dictionary entries and names, English sections, polite requests) and
`retrieve.npz` (headings and their sections, questions and their passages, questions and their topics, plain text to
read). Texts that repeat a development text are left out and counted in `prepared.json`. Without --dictionary and
--reading the data are those of the third generation.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import re
from collections import Counter
from multiprocessing import Pool
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from data import Texts, read_jsonl, save_texts, tokenise
from glossing import Glossary
from overlap import Overlap

WINDOW = 240  # characters of a question's passage; the articles are about twice as long
POLITE = (
    "帮我", "请帮我", "请", "我想", "我要", "麻烦你", "麻烦帮我", "能不能帮我", "可以帮我", "帮忙", "请你", "我需要",
)  # fmt: skip
JOINTS_ZH = [
    "，", "。", "，另外", "，然后", "，同时", "，并且", "；还有", "。最后，", "。此外，我还想知道",
    "，接着帮我", "。顺便", "，以及",
]  # fmt: skip
JOINTS_EN = [", and", ".", ". Also,", ", then", ". After that,", "; besides,", ". Finally,", ". I also want to know"]
REQUESTS = 160_000  # short Chinese texts that come a second time as a polite request
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_SENTENCE = re.compile(r"[^。！？!?；;]*[。！？!?；;]?[」』”）)]*")
_overlap: Overlap | None = None


def _start(dev: Path, tokenizer: Path) -> None:
    global _overlap
    _overlap = Overlap(dev, tokenizer)


def _repeats(text: str) -> bool:
    assert _overlap is not None
    return text in _overlap


class Cleaner:
    """Drops rows of which any text repeats a development text, on all cores, and keeps count."""

    def __init__(self, dev: Path, tokenizer: Path) -> None:
        self._pool = Pool(initializer=_start, initargs=(dev, tokenizer))
        self.counts: Counter[str] = Counter()

    def keep(self, kind: str, columns: list[list[str]]) -> list[bool]:
        kept = [True] * len(columns[0])
        for column in columns:
            for place, repeats in enumerate(self._pool.imap(_repeats, column, chunksize=2_000)):
                kept[place] = kept[place] and not repeats
        self.counts[f"{kind} kept"] += sum(kept)
        self.counts[f"{kind} dropped"] += len(kept) - sum(kept)
        return kept


def windows(context: str) -> list[tuple[int, str]]:
    """Runs of whole sentences of about WINDOW characters, each with its place in the article."""
    found: list[tuple[int, str]] = []
    start, run = 0, ""
    for match in _SENTENCE.finditer(context):
        if run and len(run) + len(match.group()) > WINDOW:
            found.append((start, run))
            start, run = match.start(), ""
        run += match.group()
    return [*found, (start, run)] if run.strip() else found


def questions(path: Path, cleaner: Cleaner, limit: int | None) -> tuple[list[str], list[str], list[int], list[int]]:
    """Questions, passages, each question's passage, each passage's article."""
    articles = json.loads(lzma.decompress(path.read_bytes()))["data"]
    paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]][:limit]
    kept = cleaner.keep("question article", [[paragraph["context"] for paragraph in paragraphs]])
    asked: list[str] = []
    passages: list[str] = []
    answer_in: list[int] = []
    article_of: list[int] = []
    for article, (paragraph, good) in enumerate(zip(paragraphs, kept, strict=True)):
        if not good:
            continue
        parts = windows(paragraph["context"])
        first = len(passages)
        passages += [text for _, text in parts]
        article_of += [article] * len(parts)
        for question in paragraph["qas"]:
            place = question["answers"][0]["answer_start"]
            part = max(index for index, (start, _) in enumerate(parts) if start <= max(place, 0))
            asked.append(question["question"])
            answer_in.append(first + part)
    cleaner.counts["questions"] = len(asked)
    cleaner.counts["question passages"] = len(passages)
    return asked, passages, answer_in, article_of


def entries(glossary: Path, names: Path, dictionary: Path | None) -> tuple[list[str], list[str]]:
    """Dictionary words with their first gloss, again with up to three, bilingual names, and the large dictionary."""
    chinese: list[str] = []
    english: list[str] = []
    for row in read_jsonl(glossary):
        glosses = [gloss for gloss in row["en"] if not gloss.startswith(("variant of", "old variant", "surname"))]
        for gloss in dict.fromkeys(["; ".join(glosses[:1]), "; ".join(glosses[:3])]):
            if gloss:
                chinese.append(row["zh"])
                english.append(gloss)
    for path in (names, dictionary):
        for row in read_jsonl(path) if path else ():
            chinese.append(row["zh"])
            english.append(row["en"])
    return chinese, english


def requests(texts: list[str]) -> tuple[list[str], list[int]]:
    """Short texts with something polite before them, and the row of each: politeness must not move a vector."""
    draw = random.Random(3)
    short = [row for row, text in enumerate(texts) if 2 <= len(text) <= 14 and _CHINESE.search(text)]
    short = [row for row in short if texts[row][-1] not in "。！？!?:："]
    rows = sorted(draw.sample(short, min(REQUESTS, len(short))))
    return [draw.choice(POLITE) + texts[row] for row in rows], rows


def by_topic(path: Path, cleaner: Cleaner, kind: str, limit: int | None) -> tuple[list[str], list[str], list[int]]:
    """Topics, questions in the order of their topics, and where each topic's questions begin."""
    rows = list(read_jsonl(path))[:limit]
    kept = cleaner.keep(kind, [[row["question"] for row in rows]])
    groups: dict[str, list[str]] = {}
    for row, good in zip(rows, kept, strict=True):
        if good:
            groups.setdefault(row["topic"], []).append(row["question"])
    starts = np.concatenate([[0], np.cumsum([len(group) for group in groups.values()])])
    return list(groups), [question for group in groups.values() for question in group], starts.tolist()


def plain(path: Path | None, cleaner: Cleaner, limit: int | None) -> dict[str, list[dict[str, str]]]:
    """Sentences of plain text in the order of their sources, by language."""
    rows = list(read_jsonl(path))[:limit] if path else []
    kept = cleaner.keep("sentence to read", [[row["text"] for row in rows]])
    rows = [row for row, good in zip(rows, kept, strict=True) if good]
    return {language: [row for row in rows if row["lang"] == language] for language in ("zh", "en")}


def numbered(names: list[str]) -> np.ndarray:
    """The same number for the same name."""
    number: dict[str, int] = {}
    return np.array([number.setdefault(name, len(number)) for name in names], dtype=np.int32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("data", "dev", "tokenizer", "cmrc", "names", "topics", "intents", "prompts", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("dictionary", "reading"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--limit", type=int, help="read only this many rows of each file (to try the pipeline)")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    cleaner = Cleaner(args.dev, args.tokenizer)
    tokenizer = Tokenizer.from_file(str(args.tokenizer))

    def tokens(texts: list[str]) -> Texts:
        return tokenise(tokenizer, texts)

    pairs = list(read_jsonl(args.data / "pairs.jsonl.xz"))[: args.limit]
    pairs += list(read_jsonl(args.prompts))[: args.limit]
    kept = cleaner.keep("pair", [[row["zh"] for row in pairs], [row["en"] for row in pairs]])
    pairs = [row for row, good in zip(pairs, kept, strict=True) if good]
    sources = sorted({row["src"] for row in pairs})
    chinese, english = entries(args.data / "glossary.jsonl.xz", args.names, args.dictionary)
    cleaner.counts["dictionary entries and names"] = len(chinese[: args.limit])

    sections = list(read_jsonl(args.data / "sections.jsonl.xz"))
    if args.limit:
        sections = sections[: args.limit] + sections[-args.limit :]
    kept = cleaner.keep("section", [[row["body"] for row in sections]])
    sections = [row for row, good in zip(sections, kept, strict=True) if good]
    asked_for, asked_row = requests([row["zh"] for row in pairs])
    cleaner.counts["polite requests"] = len(asked_for)
    save_texts(
        args.out / "distil.npz",
        {
            "zh": tokens([row["zh"] for row in pairs]),
            "en": tokens([row["en"] for row in pairs]),
            "word": tokens(chinese[: args.limit]),
            "gloss": tokens(english[: args.limit]),
            "section": tokens([f"{row['heading']}: {row['body']}" for row in sections if row["lang"] == "en"]),
            "request": tokens(asked_for),
        },
        request_row=np.array(asked_row, dtype=np.int64),
        source=np.array([sources.index(row["src"]) for row in pairs], dtype=np.int16),
        sources=np.array(sources),
    )
    asked, passages, answer_in, article_of = questions(args.cmrc, cleaner, args.limit)
    glossed = Glossary(args.data / "glossary.jsonl.xz", args.names)
    topics, topic_questions, topic_starts = by_topic(args.topics, cleaner, "topic question", args.limit)
    intents, intent_questions, intent_starts = by_topic(args.intents, cleaner, "intent question", args.limit)
    reading = plain(args.reading, cleaner, args.limit)
    save_texts(
        args.out / "retrieve.npz",
        {
            "title": tokens([row["title"] for row in sections]),
            "heading": tokens([row["heading"] for row in sections]),
            "body": tokens([row["body"] for row in sections]),
            "question": tokens(asked),
            "passage": tokens(passages),
            "glossed": tokens([glossed(text) for text in asked]),
            "topic": tokens(topics),
            "topic_question": tokens(topic_questions),
            "intent": tokens(intents),
            "intent_words": tokens([name.replace("_", " ") for name in intents]),
            "intent_question": tokens(intent_questions),
            "role": tokens(["助手", "专家", "顾问", "老师", "小助手", "分析师", "师", "工具"]),
            "colon": tokens([":"]),
            "prefix_zh": tokens(["", "", "帮我", "请帮我", "如何", "怎么", "我想", "怎样", "什么是", "请问"]),
            "polite_zh": tokens(["", "", "", "", *POLITE]),
            "join_zh": tokens(JOINTS_ZH),
            "join_en": tokens(JOINTS_EN),
            "reading_zh": tokens([row["text"] for row in reading["zh"]]),
            "reading_en": tokens([row["text"] for row in reading["en"]]),
            "prefix_en": tokens(
                [
                    "",
                    "",
                    "how to",
                    "help me",
                    "I want to",
                    "how do I",
                    "what is",
                    "please",
                    "show me",
                    "can you",
                ]
            ),
        },
        chinese=np.array([row["lang"] == "zh" for row in sections]),
        answer_in=np.array(answer_in),
        article_of=np.array(article_of),
        source_zh=numbered([row["source"] for row in reading["zh"]]),
        source_en=numbered([row["source"] for row in reading["en"]]),
        topic_start=np.array(topic_starts),
        intent_start=np.array(intent_starts),
    )
    (args.out / "prepared.json").write_text(json.dumps(cleaner.counts, indent=1) + "\n")
    print(dict(cleaner.counts))


if __name__ == "__main__":
    main()
