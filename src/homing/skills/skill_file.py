"""The SKILL.md files of a folder as found in the wild, read so that whatever a person can read is understood.

Front matter is read as YAML where it is that, and line by line where it is not quite. Scalars are kept as they are
written (`version: 1.10` is "1.10"). Anchors are understood as long as what they expand to stays small, so a file of a
few lines cannot fill the memory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from homing.errors import NotFound
from homing.skills.skill import MAX_DESCRIPTION, MAX_NAME, Skill, one_line
from homing.skills.suspicions import suspicions
from homing.text.decoding import NotText, decode_any

MAX_BYTES = 32 * 1024 * 1024
MAX_TAGS = 64

_NAMES = ("name", "title", "名称", "技能名称")
_DESCRIPTIONS = ("description", "desc", "summary", "描述", "说明")
_TAGS = ("tags", "tag", "keywords", "labels", "标签", "关键词")
_KNOWN = {*_NAMES, *_DESCRIPTIONS, *_TAGS, "metadata"}
_SEPARATOR = re.compile(r"[,，、;；\n]")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.*?)\s*#*\s*$", re.MULTILINE)

FILE = "SKILL.md"
PASSED_OVER = frozenset({".git", ".hg", ".svn", ".venv", "node_modules", "__pycache__", "site-packages"})

MAX_FRONT_MATTER = 64_000
"""Characters of front matter that are read as YAML; a longer one is read line by line."""
MAX_NODES = 5_000
MAX_DEPTH = 20
_FENCE = re.compile(r"\A(?:\s*<!--.*?-->)?\s*^(-{3,}|\+{3,})[ \t]*$\n?", re.MULTILINE | re.DOTALL)
_KEY = re.compile(r"^([\w.\-\u4e00-\u9fff]+)[ \t]*[:：](?:[ \t]+(.*)|[ \t]*)$")
_BLOCK = re.compile(r"^[|>][+-]?\d?$")
_ITEM = re.compile(r"^\s*-\s+(.*)$")


class Unreadable(ValueError):
    """A SKILL.md that nobody can read; the message says why."""


@dataclass(frozen=True, slots=True)
class SkillFile:
    """The skill of a file, what had to be repaired to read it, and what looks like an attempt to command a model."""

    skill: Skill
    repairs: tuple[str, ...] = ()
    suspicions: tuple[str, ...] = ()


def read_content(file: Path) -> bytes:
    """The bytes of a SKILL.md. Raises Unreadable."""
    try:
        if not file.is_file():
            raise Unreadable("not a file")
        if file.stat().st_size > MAX_BYTES:
            raise Unreadable(f"larger than {MAX_BYTES // 1024**2} MiB")
        return file.read_bytes()
    except OSError as error:
        raise Unreadable(error.strerror or "cannot be read") from error


def parse_skill(content: bytes, folder: Path) -> SkillFile:
    """The skill in the bytes of a SKILL.md that lies in `folder`. Raises Unreadable."""
    try:
        decoded = decode_any(content)
    except NotText as error:
        raise Unreadable(str(error)) from error
    text = decoded.text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    if not text.strip():
        raise Unreadable("empty")
    repairs = [] if decoded.encoding in ("utf-8", "utf-16") else [f"read as {decoded.encoding.upper()}"]
    if decoded.replaced:
        repairs.append(f"{decoded.replaced} broken characters replaced")
    matter = split_front_matter(text)
    repairs += matter.repairs
    skill, missing = _skill(matter.fields, matter.body, folder)
    return SkillFile(skill, (*repairs, *missing), suspicions(text))


def _skill(fields: Mapping[str, Any], body: str, folder: Path) -> tuple[Skill, list[str]]:
    low = {key.lower(): value for key, value in fields.items()}
    nested = low.get("metadata")
    nested = dict(nested) if isinstance(nested, Mapping) else {}
    repairs: list[str] = []
    name = one_line(_text(_first(low, _NAMES)), MAX_NAME)
    if not name:
        name = one_line(folder.name, MAX_NAME) or "skill"
        repairs.append("name taken from the folder")
    description = one_line(_text(_first(low, _DESCRIPTIONS)), MAX_DESCRIPTION)
    if not description:
        description = _opening(body)
        repairs.append("description taken from the text" if description else "no description")
    tags = _tags(_first(low, _TAGS)) or _tags(_first({key.lower(): one for key, one in nested.items()}, _TAGS))
    others = {key: value for key, value in fields.items() if key.lower() not in _KNOWN}
    return Skill(name, description, tags, str(folder), body, {**nested, **others}), repairs


def _first(fields: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((fields[name] for name in names if fields.get(name)), "")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return " ".join(f"{key}: {_text(one)}" for key, one in value.items())
    return " ".join(_text(one) for one in value)


def _tags(value: Any) -> tuple[str, ...]:
    if isinstance(value, Mapping):
        value = list(value)
    parts = _SEPARATOR.split(value.strip("[]")) if isinstance(value, str) else [_text(one) for one in value]
    cleaned = (one_line(part.strip().strip("\"'#"), 60) for part in parts)
    return tuple(dict.fromkeys(tag for tag in cleaned if tag))[:MAX_TAGS]


def _opening(body: str) -> str:
    """The first heading and the first paragraph: what a person would read first."""
    heading = _HEADING.search(body)
    plain = _HEADING.sub("", body[:20_000])
    paragraph = next((part for part in re.split(r"\n\s*\n", plain) if re.search(r"\w", part)), "")
    parts = [heading[1] if heading else "", paragraph]
    return one_line(". ".join(part for part in parts if part.strip()), 500)


@dataclass(frozen=True, slots=True)
class Place:
    """A folder with a SKILL.md, or one that was passed over, and then why."""

    folder: Path
    file: Path
    passed_over: str = ""


def skill_places(root: Path) -> Iterator[Place]:
    """The folders below `root` (itself included) that hold a SKILL.md, by path.

    A link to a folder is not followed: what lies inside the root is found where it is, and what lies outside is not
    ours. A SKILL.md that is a link is read where its target lies inside.
    """
    if not root.is_dir():
        raise NotFound(f"there is no folder {root}; give the folder that holds the skills")
    real = root.resolve()
    for at, folders, files in os.walk(real):
        folders.sort()
        for name in [name for name in folders if os.path.islink(os.path.join(at, name))]:
            target = Path(at, name).resolve()
            if not target.is_relative_to(real) and any(_named(target)):
                yield Place(Path(at, name), Path(at, name, FILE), "a link that leads out of the folder")
        folders[:] = [name for name in folders if name not in PASSED_OVER]
        # Of SKILL.md and skill.md in one folder the first is meant.
        found = min((name for name in files if name.lower() == "skill.md"), default=None)
        if found is not None:
            yield _place(Path(at), Path(at, found), real)


def _place(folder: Path, file: Path, root: Path) -> Place:
    if file.is_symlink() and not file.resolve().is_relative_to(root):
        return Place(folder, file, "a link that leads out of the folder")
    return Place(folder, file)


def _named(folder: Path) -> Iterator[str]:
    try:
        yield from (name for name in os.listdir(folder) if name.lower() == "skill.md")
    except OSError:
        return


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
    if len(head) > MAX_FRONT_MATTER:
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
