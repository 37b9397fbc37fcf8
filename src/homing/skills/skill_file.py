"""A SKILL.md as found in the wild, read so that whatever a person can read is understood."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from homing.skills.front_matter import split_front_matter
from homing.skills.injection import suspicions
from homing.skills.skill import MAX_DESCRIPTION, MAX_NAME, Skill, one_line
from homing.text.decoding import NotText, decode_any

MAX_BYTES = 32 * 1024 * 1024
MAX_TAGS = 64

_NAMES = ("name", "title", "名称", "技能名称")
_DESCRIPTIONS = ("description", "desc", "summary", "描述", "说明")
_TAGS = ("tags", "tag", "keywords", "labels", "标签", "关键词")
_KNOWN = {*_NAMES, *_DESCRIPTIONS, *_TAGS, "metadata"}
_SEPARATOR = re.compile(r"[,，、;；\n]")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.*?)\s*#*\s*$", re.MULTILINE)


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
