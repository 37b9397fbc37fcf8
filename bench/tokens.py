"""What makes keyword search good: recall of BM25 per way of cutting text into tokens.

Runs real SQLite FTS5 over every retrieval set below a folder (`corpus.jsonl {id, name|title, text, tags}`,
`queries.jsonl {id, text}`, `qrels.jsonl {qid, did}`) and prints recall@1 and recall@10 for each option, the product's
own choice first. Run: `python bench/tokens.py DATA [--sets NAME …]`; writes bench/results/tokens.json.
Needs `pip install rjieba` for the rows with words.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from operator import add
from pathlib import Path
from typing import Any

import apsw

from homing.text import tokens as product
from homing.text.folding import fold
from homing.text.stopwords import CHINESE, COMMON, ENGLISH
from homing.text.tokens import cut, is_run, stem, word_tokens

RESULTS = Path(__file__).parent / "results" / "tokens.json"
TOKENIZE = "ascii tokenchars '+#.'"
"""For FTS5: every character beyond ASCII is a part of a word, so that it keeps the tokens as they are."""
STOP_ENGLISH = frozenset(map(stem, ENGLISH))


@dataclass(frozen=True)
class Option:
    """One way to cut. What differs from the product's choice is named.

    `index` and `query` say what is made of a run of Chinese: u(nigrams), r(are unigrams: the common left out),
    b(igrams), w(ords longer than a bigram), W (words alone), p(airs inside words).
    """

    name: str
    index: str = "ub"
    query: str = "br"
    english_stops: bool = True
    chinese_stops: str = "characters"
    stemming: str = "plural"


OPTIONS = [
    Option("unigrams only", index="u", query="u"),
    Option("bigrams only", index="b", query="b"),
    Option("bigrams asked", query="b"),
    Option("bigrams + all unigrams asked", query="bu"),
    Option("bigrams + rare unigrams asked"),
    Option("words only", index="W", query="W"),
    Option("bigrams + words", index="ubw", query="bw"),
    Option("bigrams + rare unigrams + words", index="ubw", query="brw"),
    Option("pairs inside words asked", query="p"),
    Option("pairs inside words + rare unigrams", query="pr"),
    Option("no stop words", english_stops=False, chinese_stops="none"),
    Option("no Chinese stop words", chinese_stops="none"),
    Option("only listed pairs are stop words", chinese_stops="pairs"),
    Option("no stemming", stemming="none"),
    Option("stronger stemming", stemming="suffixes"),
]


def suffixes(word: str) -> str:
    """Plural, -ing, -ed, -ly: what a light English stemmer takes off."""
    word = stem(word)
    if len(word) < 6 or not word.isascii() or not word.isalpha():
        return word
    for suffix in ("ing", "ed", "ly"):
        root = word.removesuffix(suffix)
        if root != word and len(root) > 3:
            doubled = root[-1] == root[-2] and root[-1] not in "lsz"
            return root[:-1] if doubled else root
    return word.removesuffix("e")


def pieces_of_run(run: str, how: str) -> list[str]:
    made: list[str] = []
    if "u" in how:
        made += run
    if "r" in how:
        made += [character for character in run if character not in COMMON]
    if "b" in how:
        made += map(add, run, run[1:])
    if "w" in how:
        made += [word for word in words(run) if len(word) > 2]
    if "W" in how:
        made += words(run)
    if "p" in how:
        for word in words(run):
            made += map(add, word, word[1:]) if len(word) > 1 else [word]
    return made


def words(run: str) -> list[str]:
    import rjieba  # measured here, and not a dependency of the product

    return list(rjieba.cut_for_search(run))


def cut_text(text: str, how: str, stemming: str) -> list[str]:
    made: list[str] = []
    for piece in cut(fold(text)):
        if is_run(piece):
            made += pieces_of_run(piece, how)
        else:
            made += map(suffixes, word_tokens(piece)) if stemming == "suffixes" else word_tokens(piece)
    return made


def stopped(term: str, option: Option) -> bool:
    if option.english_stops and term in STOP_ENGLISH:
        return True
    if option.chinese_stops == "none":
        return False
    return term in CHINESE or (option.chinese_stops == "characters" and all(character in CHINESE for character in term))


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def measure(folder: Path, write: Callable[[str], list[str]], ask: Callable[[str], list[str]]) -> dict[str, float]:
    database = apsw.Connection(":memory:")
    database.execute(f'create virtual table found using fts5(id unindexed, body, tokenize="{TOKENIZE}")')
    with database:
        for row in rows(folder / "corpus.jsonl"):
            text = "\n".join([row.get("name") or row.get("title") or "", row["text"], " ".join(row.get("tags") or [])])
            database.execute("insert into found values (?, ?)", (row["id"], " ".join(write(text))))
    relevant: dict[str, set[str]] = {}
    for row in rows(folder / "qrels.jsonl"):
        relevant.setdefault(row["qid"], set()).add(row["did"])
    first = tenth = 0.0
    spent = 0.0
    queries = [row for row in rows(folder / "queries.jsonl") if row["id"] in relevant]
    for row in queries:
        wanted = relevant[row["id"]]
        question = " OR ".join(f'"{term}"' for term in ask(row["text"]))
        started = time.perf_counter()
        answer = (
            [found for (found,) in database.execute("select id from found(?) order by rank limit 10", (question,))]
            if question
            else []
        )
        spent += time.perf_counter() - started
        first += answer[:1] != [] and answer[0] in wanted
        tenth += len(wanted.intersection(answer)) / len(wanted)
    count = max(1, len(queries))
    return {"recall@1": first / count, "recall@10": tenth / count, "ms": 1000 * spent / count}


def ways(option: Option) -> tuple[Callable[[str], list[str]], Callable[[str], list[str]]]:
    def write(text: str) -> list[str]:
        return cut_text(text, option.index, option.stemming)

    def ask(query: str) -> list[str]:
        terms = list(dict.fromkeys(cut_text(query, option.query, option.stemming)))
        return ([term for term in terms if not stopped(term, option)] or terms)[: product.MAX_TERMS]

    return write, ask


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with one folder per retrieval set")
    parser.add_argument("--sets", nargs="*", help="only these")
    arguments = parser.parse_args()
    folders = [path.parent for path in sorted(arguments.data.glob("*/qrels.jsonl"))]
    folders = [path for path in folders if not arguments.sets or path.name in arguments.sets]
    results: dict[str, dict[str, dict[str, float]]] = {}
    width = max(len(option.name) for option in OPTIONS) + 2
    print("recall@1 / recall@10 / ms a query".ljust(width), *(folder.name[-18:].rjust(18) for folder in folders))
    for option in [None, *OPTIONS]:
        name = option.name if option else "the product"
        # The stemmer is part of cutting words; the row without it takes it out there.
        product.stem = str if option and option.stemming == "none" else stem
        product._known.clear()
        write, ask = ways(option) if option else (product.tokens, product.query_terms)
        results[name] = {folder.name: measure(folder, write, ask) for folder in folders}
        cells = (f"{r['recall@1']:.3f} {r['recall@10']:.3f} {r['ms']:5.1f}".rjust(18) for r in results[name].values())
        print(name.ljust(width), *cells, flush=True)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
