"""What was found, as the block that goes into a prompt."""

from __future__ import annotations

import re
from collections.abc import Iterable

from homing.records import Hit

EMPTY = "暂无相关参考资料"

# A passage that looks like the heading of another one would pass for it.
_HEADING = re.compile(r"^(\s*)(#+\s*资料)", re.MULTILINE)


def prompt_block(hits: Iterable[Hit]) -> str:
    """The passages under numbered headings, each with its similarity and its file; a sentence where there are none."""
    blocks = [_heading(number, hit) + "\n" + _HEADING.sub(r"\1\\\2", hit.text) for number, hit in enumerate(hits, 1)]
    return "\n\n".join(blocks) or EMPTY


def _heading(number: int, hit: Hit) -> str:
    # Without a vector leg there is no similarity to tell.
    near = "关键词匹配" if hit.score is None else f"相似度: {hit.score * 100:.1f}%"
    place = f" ({hit.metadata['part']})" if hit.metadata.get("part") else ""
    return f"### 资料 {number} [{near}] {hit.metadata.get('fileName', hit.id)}{place}"
