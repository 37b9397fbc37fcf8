"""Bilingual place names from Natural Earth tables (public domain) as `{"en", "zh"}` lines.

python names.py --out names.jsonl.xz places.csv countries.geojson ...
"""

from __future__ import annotations

import argparse
import csv
import json
import lzma
from collections.abc import Iterator
from pathlib import Path


def rows_of(path: Path) -> Iterator[dict]:
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)
    else:
        for feature in json.loads(path.read_text(encoding="utf-8"))["features"]:
            yield feature["properties"]


def names_in(path: Path) -> Iterator[tuple[str, str]]:
    for row in rows_of(path):
        lower = {key.lower(): value for key, value in row.items() if key}
        english, chinese = lower.get("name_en"), lower.get("name_zh")
        if english and chinese and english != chinese:
            yield english.strip(), chinese.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    names = sorted({name for table in args.tables for name in names_in(table)})
    with lzma.open(args.out, "wt", encoding="utf-8") as out:
        for english, chinese in names:
            out.write(json.dumps({"en": english, "zh": chinese}, ensure_ascii=False) + "\n")
    print(f"{len(names)} names")


if __name__ == "__main__":
    main()
