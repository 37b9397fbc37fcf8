"""The form in which what people say and what they wrote are compared."""

from __future__ import annotations

import re

from homing.text.folding import fold

_CJK = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_CONTRACTIONS = (
    (re.compile(r"\b(what|it|that|there|which|how|who|where|let)'s\b"), r"\1 is"),
    (re.compile(r"\b(do|does|did|is|are|should|must|would|could)n't\b"), r"\1 not"),
    (re.compile(r"\b(do|does|did)nt\b"), r"\1 not"),
    (re.compile(r"\bcan't\b|\bcannot\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"\b(i)'(?:d|ll|m)\b"), r"\1"),
    (re.compile(r"'s\b|s'(?=\s|$)"), lambda found: "" if found[0] == "'s" else "s"),
)
_EMOJI = re.compile("[\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]+")
_JOINTS = re.compile(r"[_\-/'\"“”‘’「」『』《》()\[\]{}*#~`^|\\<>]+")
# A full stop inside 20.5 is part of the number; any other ends a sentence.
_STOP = re.compile(r"\.(?!\d)|(?<!\d)\.")
_SPACES = re.compile(r"\s+")
_SPACE_BY_CJK = re.compile(rf"(?<=[{_CJK}]) | (?=[{_CJK}])")


def spoken(text: str) -> str:
    """The comparable form: lower case, simplified, half-width, contractions written out, no spaces beside Chinese.

    Emoji are dropped, because nobody says them, unless nothing else is left.
    """
    form = fold(text).lower()
    for pattern, written_out in _CONTRACTIONS:
        form = pattern.sub(written_out, form)
    form = _STOP.sub("。", _JOINTS.sub(" ", form))
    bare = _tidy(_EMOJI.sub(" ", form))
    return bare or _tidy(form)


def _tidy(form: str) -> str:
    return _SPACE_BY_CJK.sub("", _SPACES.sub(" ", form)).strip()


def is_chinese(text: str) -> bool:
    """Whether an answer to this text should be in Chinese."""
    return re.search(rf"[{_CJK}]", text) is not None


def singular(words: str) -> str | None:
    """An English plural without its ending; None for what is not one."""
    if len(words) < 3 or not words.endswith("s") or not words[-2].isascii() or words.endswith(("ss", "us", "is")):
        return None
    if words.endswith("ies"):
        return words[:-3] + "y"
    if words.endswith(("ches", "shes", "xes")):
        return words[:-2]
    return words[:-1]
