"""The YAML at the head of a SKILL.md: read as YAML where it is, and line by line where it is not quite.

Scalars are kept as they are written (`version: 1.10` is "1.10"). Anchors are understood as long as what they expand to
stays small, so a file of a few lines cannot fill the memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

MAX_CHARACTERS = 64_000
"""Front matter that is read as YAML; a longer one is read line by line."""
MAX_NODES = 5_000
MAX_DEPTH = 20

_FENCE = re.compile(r"\A(?:\s*<!--.*?-->)?\s*^(-{3,}|\+{3,})[ \t]*$\n?", re.MULTILINE | re.DOTALL)
_KEY = re.compile(r"^([\w.\-\u4e00-\u9fff]+)[ \t]*[:：](?:[ \t]+(.*)|[ \t]*)$")
_BLOCK = re.compile(r"^[|>][+-]?\d?$")
_ITEM = re.compile(r"^\s*-\s+(.*)$")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The fields, the text below them, and what had to be repaired to read them."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    body: str = ""
    repairs: tuple[str, ...] = ()


def split_front_matter(text: str) -> FrontMatter:
    """The front matter of a text with `\\n` line ends, and the rest of it."""
    found = _FENCE.match(text)
    if found is None:
        return FrontMatter({}, text, ("no front matter",))
    fence = re.compile(rf"^(?:{re.escape(found[1])}|\.\.\.)[ \t]*$\n?", re.MULTILINE)
    closing = fence.search(text, found.end())
    repairs: tuple[str, ...] = ()
    if closing is not None:
        head, body = text[found.end() : closing.start()], text[closing.end() :]
    else:
        head, body = _unclosed(text[found.end() :])
        repairs = ("front matter is not closed",)
    fields, how = _read(head)
    if not fields and not head.strip().startswith("{"):
        # A rule at the top of a plain text, not front matter.
        return FrontMatter({}, text if head.strip() else body, ("no front matter",))
    return FrontMatter(fields, body, (*repairs, *how))


def _unclosed(rest: str) -> tuple[str, str]:
    """Fields as far as they go: up to the first heading, or the first blank line that no field follows."""
    lines = rest.split("\n")
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if line.startswith("#") or (not line.strip() and not _KEY.match(following)):
            return "\n".join(lines[:number]), "\n".join(lines[number:])
    return rest, ""


def _read(head: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    try:
        return _yaml(head), ()
    except _TooMuch as error:
        problem = str(error)
    except yaml.YAMLError as error:
        problem = _describe(head, error)
    except (ValueError, TypeError, RecursionError) as error:
        problem = f"not YAML ({type(error).__name__})"
    return _by_lines(head), (problem,)


class _TooMuch(ValueError):
    """More than a person writes."""


def _yaml(head: str) -> dict[str, Any]:
    if len(head) > MAX_CHARACTERS:
        raise _TooMuch(f"front matter of {len(head):,} characters read line by line")
    loader = yaml.BaseLoader(head)
    try:
        node = loader.get_single_node()
        if node is None:
            return {}
        if not isinstance(node, yaml.MappingNode):
            raise ValueError("not a mapping")
        _measure(node)
        found = loader.construct_document(node)
    finally:
        loader.dispose()
    return {str(key): value for key, value in found.items()}


def _measure(root: yaml.Node) -> None:
    """Refuses what would expand to more than a person writes, without expanding it."""
    sizes: dict[int, int] = {}
    above: set[int] = set()

    def size(node: yaml.Node, depth: int) -> int:
        known = sizes.get(id(node))
        if known is not None:
            return known
        if id(node) in above or depth > MAX_DEPTH:
            raise _TooMuch("anchors that contain themselves, or nesting too deep, ignored")
        above.add(id(node))
        total = 1
        if isinstance(node, yaml.SequenceNode):
            total += sum(size(item, depth + 1) for item in node.value)
        elif isinstance(node, yaml.MappingNode):
            total += sum(size(key, depth + 1) + size(item, depth + 1) for key, item in node.value)
        above.discard(id(node))
        if total > MAX_NODES:
            raise _TooMuch("anchors that expand to too much ignored")
        sizes[id(node)] = total
        return total

    size(root, 0)


def _describe(head: str, error: yaml.YAMLError) -> str:
    """What is wrong, in words for whoever wrote the file."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = str(getattr(error, "problem", "") or "not YAML")
    lines = head.split("\n")
    line = lines[mark.line] if mark is not None and mark.line < len(lines) else ""
    place = f" (line {mark.line + 2})" if mark is not None else ""
    if "\t" in line and ("token" in problem or "tab" in problem or line.startswith("\t")):
        return f"tab as indentation{place}"
    if "mapping values are not allowed" in problem:
        key = _KEY.match(line)
        return f"unquoted colon in {key[1] if key else 'a value'}{place}"
    return f"{problem}{place}"


def _by_lines(head: str) -> dict[str, Any]:
    """Fields as a person reads them: `key: the rest of the line`, indented lines below belong to it."""
    fields: dict[str, Any] = {}
    key, first, below = "", "", list[str]()

    def finish() -> None:
        if key and key not in fields:
            fields[key] = _value(first, below)

    for line in head.split("\n"):
        found = _KEY.match(line)
        if found is not None:
            finish()
            key, first, below = found[1], (found[2] or "").strip(), []
        elif line.strip():
            below.append(line.expandtabs(2))
    finish()
    return fields


def _value(first: str, below: list[str]) -> Any:
    items = [_ITEM.match(line) for line in below]
    if not first and items and all(items):
        return [_unquoted(item[1].strip()) for item in items if item is not None]
    inner = [_KEY.match(line.strip()) for line in below]
    if not first and inner and all(inner):
        return {one[1]: _unquoted((one[2] or "").strip()) for one in inner if one is not None}
    if first.startswith("[") and first.endswith("]"):
        return [_unquoted(item.strip()) for item in first[1:-1].split(",") if item.strip()]
    lead = [] if _BLOCK.match(first) else [first]
    return _unquoted(" ".join([*lead, *(line.strip() for line in below)]).strip())


def _unquoted(text: str) -> str:
    text = re.sub(r"^[&*!][\w-]+\s+(?=\S)", "", text)
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
