"""Writes src/homing/text/traditional.txt: which single traditional characters are read as which simplified ones.

Asks OpenCC (Apache-2.0) about every CJK ideograph, one character at a time, with the mainland, Taiwan and Hong Kong
tables. The result is data, so the package needs no OpenCC at run time. Run: `pip install opencc`, then
`python tools/make_traditional.py`.
"""

from __future__ import annotations

from pathlib import Path

import opencc

BLOCKS = [(0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0x20000, 0x323AF)]

# Variants that OpenCC leaves alone because they carry a shade of meaning; a search should not insist on it.
VARIANTS = {"妳": "你", "牠": "它"}

# Everyday simplified characters that a regional table reads as a rare traditional one.
SIMPLE = {"么"}


def table() -> dict[str, str]:
    converters = [opencc.OpenCC(name) for name in ("t2s", "tw2s", "hk2s")]
    mapping = dict(VARIANTS)
    for first, last in BLOCKS:
        for code in range(first, last + 1):
            character = chr(code)
            for converter in converters:
                simple = converter.convert(character)
                if simple != character and len(simple) == 1 and character not in SIMPLE:
                    mapping.setdefault(character, simple)
    # A chain (A is B, B is C) would fold a character and its own simplified form differently.
    for character in mapping:
        while (end := mapping[character]) in mapping:
            mapping[character] = mapping[end]
    return mapping


def main() -> None:
    mapping = dict(sorted(table().items()))
    path = Path(__file__).parents[1] / "src/homing/text/traditional.txt"
    # The n-th character of the first line is read as the n-th of the second.
    path.write_text(f"{''.join(mapping)}\n{''.join(mapping.values())}\n", encoding="utf-8")
    print(f"{len(mapping)} characters, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
