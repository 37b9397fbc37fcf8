"""The language of the shell: what commands say, in English or in Chinese.

A command writes its messages in English, as literals; `chinese.json` has the Chinese of each.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

from homing.errors_zh import has_chinese


def reads_chinese() -> bool:
    """Whether the user writes Chinese, or has a Chinese machine. Programs, which ask for JSON, read English."""
    from homing.config import speaks_chinese

    given = sys.argv[1:]
    return "--json" not in given and (has_chinese(" ".join(given)) or speaks_chinese())


def text(english: str, /, **values: object) -> str:
    """A message in the language of the user, with its values: `{count:#file}` is 1 file, 2 files in English."""
    return _Message().vformat(chinese().get(english, english) if reads_chinese() else english, (), values)


@cache
def chinese() -> dict[str, str]:
    """Every heading and message of the shell in Chinese, by its English."""
    import json

    found: dict[str, str] = json.loads(Path(__file__).with_name("chinese.json").read_text(encoding="utf-8"))
    return found


class _Message(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec.startswith("#"):
            return f"{value} {format_spec[1:]}" if value == 1 else f"{value} {format_spec[1:]}s"
        return format(value, format_spec)
