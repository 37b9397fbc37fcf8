"""Answers of searches, in one shape for every source."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from homing.engine.search import NOTICES
from homing.operations.addresses import document_uri, skill_uri
from homing.operations.models import Output
from homing.records import Hit, Mode, Notice, Retrieved
from homing.skills.finding import FoundSkills, SkillHit
from homing.skills.suspicions import suspicions
from homing.text.tokens import matched_terms, spans

if TYPE_CHECKING:
    from homing.devices.answer import Answer as DeviceAnswer

Source = Literal["skills", "documents", "memory", "devices"]

MAX_MARKED = 20_000
"""Characters of a text in which the words of a query are looked up."""
SHOWN = (
    "name", "tags", "path", "project_id", "document_id", "part", "start_offset", "end_offset", "collection",
    "session_key",
)  # fmt: skip
"""What of the metadata of a hit a model reads."""


class NoticeOut(Output):
    """A sentence for a person, in both languages."""

    zh: str = Field(examples=["语义搜索暂时不可用，已切换为关键词搜索"])
    en: str = Field(examples=["Semantic search is unavailable for now; these are keyword results"])

    def __str__(self) -> str:
        return f"{self.zh} / {self.en}"


class LegOut(Output):
    """What one leg of a search says: its place there, its own score, and what that brought to the whole."""

    leg: str = Field(examples=["vector"])
    rank: int | None = Field(examples=[1])
    score: float = Field(examples=[0.62])
    weight: float | None = Field(examples=[0.7])
    share: float | None = Field(examples=[0.0115])


class HitOut(Output):
    """One hit. `score` is the probability that it is about the query; of a search by meaning alone, its cosine on the
    model's readable scale.

    `matched` are the words of the query that the text contains, `spans` where they stand in it. `uri` is the resource
    with the whole document or skill. `flags` names what in the text looks like an attempt to command a model: a hint,
    not a verdict, and empty for most texts.
    """

    id: str = Field(examples=["ch1#3"])
    text: str = Field(examples=["他一个人守着灯塔，三十年没有和人说话。"])
    score: float | None = Field(examples=[0.81])
    cosine: float | None = Field(examples=[0.62])
    fused: float = Field(examples=[0.0163])
    legs: list[LegOut]
    matched: list[str] = Field(examples=[["灯塔"]])
    spans: list[tuple[int, int]] = Field(examples=[[[6, 8]]])
    reasons: list[str]
    uri: str | None = Field(examples=["homing://documents/novel/ch1"])
    flags: list[str]
    metadata: dict[str, Any]


class SearchOut(Output):
    """The hits of one source. `degraded` says that a leg failed, `reason` which and why, `notice` tells a person.

    By default weaker hits are left out, and all of them where the first is not likely to be right; `left_out` says how
    many. `confidence` is the probability that the first hit, shown or not, is right; null where that cannot be told: a
    leg failed, only one was asked, or the model was never calibrated (`homing models calibrate`), and then nothing is
    silenced. `corrected` are words of the query that no text holds, and the spelling at one letter's distance that was
    searched for instead.
    """

    source: str = Field(examples=["documents"])
    mode: Mode
    degraded: bool
    reason: str | None = Field(examples=["vector:TIMEOUT"])
    notice: NoticeOut | None
    hits: list[HitOut]
    took_ms: float = Field(examples=[6.4])
    corrected: dict[str, str] = Field(default_factory=dict, examples=[{"comit": "commit"}])
    confidence: float | None = Field(None, examples=[0.92])
    left_out: int = Field(0, examples=[3])

    def searches(self) -> Iterator[tuple[str, Mode, bool]]:
        """This search."""
        yield self.source, self.mode, self.degraded

    def summary(self) -> str:
        """How much was found, and what a person should know about it."""
        said = "1 hit found." if len(self.hits) == 1 else f"{len(self.hits)} hits found."
        if self.left_out:
            said = f"{said} {self.left_out} weaker {'hit' if self.left_out == 1 else 'hits'} left out."
        return " ".join([said, *(str(one) for one in (self.spelling(), self.notice) if one is not None)])

    def spelling(self) -> NoticeOut | None:
        """What a person should know about words that were read as others."""
        if not self.corrected:
            return None
        zh = "、".join(f"没有文本含有“{word}”，已按“{read}”搜索" for word, read in self.corrected.items())
        en = "; ".join(f'no text contains "{word}", searched for "{read}"' for word, read in self.corrected.items())
        return NoticeOut(zh=zh, en=en)

    def lines(self) -> Sequence[Any]:
        """The hits without their explanation."""
        return [
            {
                "id": hit.id,
                "text": hit.text,
                "score": None if hit.score is None else round(hit.score, 4),
                **{key: hit.metadata[key] for key in SHOWN if hit.metadata.get(key) not in (None, "", [])},
                "matched": hit.matched,
                "uri": hit.uri,
                "flags": hit.flags,
            }
            for hit in self.hits
        ]


def search_out(source: str, query: str, found: Retrieved) -> SearchOut:
    """What a search answered."""
    return _group(source, found, [hit_of(_as_read(query, found), hit) for hit in found.hits])


def skills_out(query: str, found: FoundSkills) -> SearchOut:
    """What a search for skills answered."""
    return _group("skills", found, [_skill_hit(_as_read(query, found), hit) for hit in found.hits])


def devices_out(query: str, answer: DeviceAnswer, took_ms: float) -> SearchOut:
    """The devices that a sentence means, as hits."""
    return SearchOut.of(
        answer,
        source="devices",
        notice=_notice(NOTICES["vector"]) if answer.degraded else None,
        hits=[_device_hit(query, one, step) for step in answer.to_dict()["steps"] for one in step["candidates"]],
        took_ms=took_ms,
    )


def hit_of(query: str, hit: Hit) -> HitOut:
    """One hit with its explanation."""
    places = _marked_already(hit) if "highlights" in hit.metadata else marked(query, hit.text)
    return HitOut.of(
        hit,
        legs=[LegOut.of(one, score=finite(one.raw)) for one in hit.legs],
        matched=list(hit.keywords or dict.fromkeys(hit.text[start:end] for start, end in places)),
        spans=places,
        uri=_uri(hit.metadata),
        flags=list(suspicions(hit.text)),
        metadata={**hit.metadata, "collection": hit.collection},
    )


def _uri(metadata: Mapping[str, Any]) -> str | None:
    place = metadata.get("project_id"), metadata.get("document_id")
    return None if None in place else document_uri(*map(str, place))


def marked(query: str, text: str) -> list[tuple[int, int]]:
    """Where in a text the words of a query stand."""
    return [(one.start, one.end) for one in spans(query, text[:MAX_MARKED])]


def _marked_already(hit: Hit) -> list[tuple[int, int]]:
    """Documents mark their hits themselves, in the whole document."""
    start = hit.metadata["start_offset"]
    return [(first - start, last - start) for first, last in hit.metadata["highlights"]]


def finite(number: float) -> float:
    """A number that JSON can tell."""
    return number if math.isfinite(number) else 0.0


def _group(source: str, found: Retrieved | FoundSkills, hits: list[HitOut]) -> SearchOut:
    took = round(found.timings.get("total_ms", 0.0), 3)
    return SearchOut.of(found, source=source, notice=_notice(found.notice), hits=hits, took_ms=took)


def _as_read(query: str, found: Retrieved | FoundSkills) -> str:
    """A query with the spellings that its words were read as."""
    return " ".join([query, *found.corrected.values()])


def _notice(notice: Notice | None) -> NoticeOut | None:
    return None if notice is None else NoticeOut(zh=notice.zh, en=notice.en)


def _skill_hit(query: str, hit: SkillHit) -> HitOut:
    text = hit.description or hit.name
    return HitOut.of(
        hit,
        text=text,
        fused=hit.score,
        legs=[
            LegOut(leg=why.leg, rank=None, score=finite(why.value), weight=None, share=None)
            for at, why in enumerate(hit.why)
            if all(why.leg != before.leg for before in hit.why[:at])
        ],
        matched=list(dict.fromkeys(word for why in hit.why for word in why.keywords)),
        spans=marked(query, text),
        reasons=[f"{why.leg}:{why.part}" for why in hit.why],
        uri=skill_uri(hit.id),
        flags=list(suspicions(text)),
        metadata={
            "name": hit.name,
            "tags": list(hit.tags),
            "path": hit.path,
            "why": [
                {
                    "leg": why.leg,
                    "part": why.part,
                    "text": why.text,
                    "value": finite(why.value),
                    "keywords": list(why.keywords),
                }
                for why in hit.why
            ],
        },
    )


def _device_hit(query: str, candidate: Mapping[str, Any], step: Mapping[str, Any]) -> HitOut:
    text = " · ".join(part for part in (candidate["room"], candidate["name"]) if part)
    shown = {key: candidate[key] for key in ("name", "room", "type", "command", "value", "change", "explanation")}
    return HitOut(
        id=candidate["id"],
        text=text,
        score=candidate["score"],
        cosine=None,
        fused=candidate["score"],
        legs=[],
        matched=matched_terms(query, text),
        spans=marked(query, text),
        reasons=list(candidate["reasons"]),
        uri=None,
        flags=[],
        metadata={**shown, "decision": step["decision"], "hint": step["hint"]},
    )
