"""Makes tokenizer.json: the teacher's word pieces, 6,834 Chinese characters, and aliases for traditional forms.

    python vocabulary.py --teacher TEACHER_FOLDER --out tokenizer.json [--compare tokenizer.json]

A traditional character gets the id of its simplified form (OpenCC's table), so both scripts give one vector. The JSON
is written by hand: `Tokenizer.save` keeps only one string per id and would drop the aliases in silence.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import opencc

# characters.txt: the new characters in the order of their ids, the frequent ones first.
CHARACTERS = Path(__file__).with_name("characters.txt")
KEPT = "乾吒夥後徵捱摺於榘甯菸薹醣麴麽"  # also words of their own in simplified text: they keep their own id
VARIANTS = {"枱": "台", "簷": "檐", "痺": "痹", "敍": "叙", "睪": "睾", "粧": "妆", "衞": "卫", "糭": "粽"}


def simplified_forms() -> dict[str, str]:
    """Traditional character to its first simplified form."""
    table = Path(opencc.__file__).with_name("dictionary") / "TSCharacters.txt"
    forms = {}
    for line in table.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            traditional, simplified = line.split("\t")[:2]
            forms[traditional] = simplified.split(" ")[0]
    return forms | VARIANTS


def extended(vocabulary: dict[str, int]) -> dict[str, int]:
    result = dict(vocabulary)
    for place, character in enumerate(CHARACTERS.read_text(encoding="utf-8").strip()):
        result[character] = len(vocabulary) + place
    known = set(result)
    for traditional, simplified in simplified_forms().items():
        if simplified != traditional and simplified in known and traditional not in KEPT:
            result[traditional] = result[simplified]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teacher", type=Path, required=True, help="folder that holds the teacher's tokenizer.json")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--compare", type=Path, help="a tokenizer.json that must hold the same vocabulary")
    args = parser.parse_args()
    tokenizer = json.loads((args.teacher / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["truncation"] = tokenizer["padding"] = None
    tokenizer["model"]["vocab"] = extended(tokenizer["model"]["vocab"])
    args.out.write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")
    print(f"{len(tokenizer['model']['vocab'])} strings, {max(tokenizer['model']['vocab'].values()) + 1} ids")
    if args.compare:
        other = json.loads(args.compare.read_text(encoding="utf-8"))
        different = [key for key in tokenizer if key != "model" and tokenizer[key] != other[key]]
        different += [key for key in tokenizer["model"] if tokenizer["model"][key] != other["model"][key]]
        print("same as the compared file" if not different else f"differs in: {', '.join(different)}")


if __name__ == "__main__":
    main()
