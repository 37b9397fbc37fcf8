"""What a sentence asks for, as fields: the QueryIR, published as JSON Schema by `QueryIR.model_json_schema()`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Quantifier = Literal["one", "all", "any", "except"]
Mood = Literal["command", "question", "statement", "quotation", "negation", "complaint"]
"""What is meant by a sentence: only a command is ever acted upon. A statement may report or tell of a plan."""
LAST_MENTIONED = "last-mentioned"
REST = "rest"
"""The reference of 其他 and "the others": what stands beside devices that were spoken of, or that stay as they are."""


class SpokenValue(BaseModel):
    """The value in a sentence: a number with its unit, a word, or one end of whatever range the device has.

    `relative` means "by so much", not "to so much".
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: float | None = None
    unit: Literal["%", "°", "°C", "°F", "K"] | None = None
    text: str | None = None
    extreme: Literal["max", "min"] | None = None
    relative: bool = False


class QueryIR(BaseModel):
    """One command or question about devices, understood but not yet looked up in a home.

    `action` is the verb in the speaker's language. `scope_include` names rooms and floors; `scope_exclude` names rooms,
    floors, devices or types. `type_word` is the word that was said for `type_hint` ("blinds" where the type is cover),
    and `name_hint` whatever was said that is not understood otherwise. `negated` is a sentence that forbids (别开灯),
    `deferred` one that speaks of another time or a condition: neither is ever acted upon, and nor is any `mood` but a
    command. One that is not `clear` has not the form of a command, and is confirmed first. `compound` says that the
    sentence holds more commands than this one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    raw: str = ""
    action: str = ""
    name_hint: str | None = None
    type_hint: str | None = None
    type_word: str | None = None
    scope_include: tuple[str, ...] = ()
    scope_exclude: tuple[str, ...] = ()
    quantifier: Quantifier = "one"
    references: tuple[Literal["last-mentioned", "here", "rest"], ...] = ()
    property: str | None = None
    value: SpokenValue | None = None
    mood: Mood = "command"
    clear: bool = True
    negated: bool = False
    deferred: bool = False
    compound: bool = False
    confidence: float = Field(1.0, ge=0, le=1)
    parser: Literal["rules", "llm"] = "rules"

    def says_no_object(self) -> bool:
        """Whether only a verb was said: 再亮一点, 关掉."""
        said = self.name_hint or self.type_hint or self.type_word or self.scope_include or self.scope_exclude
        return not said and "here" not in self.references
