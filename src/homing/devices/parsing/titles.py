"""What is to be played: everything behind the verb that is neither a player nor a place."""

from __future__ import annotations

from dataclasses import replace

from homing.devices.parsing.tokens import Kind, Token
from homing.devices.query import SpokenValue
from homing.text.folding import fold

_LEAD_IN = frozenset({"on", "in", "at", "through", "via", "在", "用", "喺"})
_PLAIN = (
    Kind.FILLER,
    Kind.OF,
    Kind.ANY,
    Kind.ALL,
    Kind.ALSO,
    Kind.TO,
    Kind.BY,
    Kind.COUNT,
    Kind.REFERENCE,
    Kind.OBJECT_MARK,
)
_ANYTHING = frozenset(
    {"music", "song", "songs", "音乐", "歌", "歌曲", "video", "视频", "something", "点歌", "track", "playback"}
)


_FOR_LISTENING = frozenset({"嚟听", "嚟听下", "嚟听吓", "来听", "来听听", "听听", "please", "吧"})


def with_title(tokens: list[Token], form: str, raw: str) -> list[Token]:
    """The tokens with the title as one value, of the property `title`, where a sentence asks to play one."""
    verbs = [at for at, t in enumerate(tokens) if t.action is not None and t.action.concepts == {"play"}]
    verb = next((at for at in verbs if not tokens[at].text.endswith("ing")), None)
    if verb is None:
        return tokens
    behind = tokens[verb + 1 :]
    stop = next(
        (at for at, token in enumerate(behind) if token.text in (",", "。", "?", "!", "and then", "然后")), len(behind)
    )
    said, after = behind[:stop], behind[stop:]
    said, where = _player(said)
    title = [token for token in said if not token.is_a(*_PLAIN) or token.is_a(Kind.UNKNOWN, Kind.PLACE, Kind.TYPE)]
    if not title or all(token.is_a(Kind.NAME) or token.text in _ANYTHING for token in title):
        return tokens
    if all(token.is_a(Kind.TYPE) and token.type is not None and "media_player" in token.type.types for token in title):
        return tokens
    while len(title) > 1 and said[-1].text in _FOR_LISTENING:
        said, title = said[:-1], [token for token in title if token is not said[-1]]
    first = said[0] if not said[0].text.isascii() or said[0].is_a(Kind.UNKNOWN, Kind.FILLER, Kind.ANY) else title[0]
    value = Token(
        form[first.start : said[-1].end],
        frozenset({Kind.VALUE}),
        value=SpokenValue(text=_as_written(form[first.start : said[-1].end], raw)),
        property="title",
        start=first.start,
        end=said[-1].end,
    )
    return [*tokens[: verb + 1], value, *where, *after]


def _player(said: list[Token]) -> tuple[list[Token], list[Token]]:
    """A player or a place at the end ("on the TV") apart from the rest."""
    for at in range(len(said) - 1, 0, -1):
        if said[at].text in _LEAD_IN:
            where = said[at + 1 :]
            known = [token for token in where if token.is_a(Kind.NAME, Kind.PLACE, Kind.TYPE, Kind.HERE)]
            if known and all(token.is_a(Kind.NAME, Kind.PLACE, Kind.TYPE, Kind.HERE, *_PLAIN) for token in where):
                rest, more = _player(said[:at])
                return rest, [*more, *(replace(token) for token in where)]
            return said, []
    return said, []


def _as_written(title: str, raw: str) -> str:
    """The title in the characters of the sentence, with the marks around it."""
    folded = fold(raw).lower()
    letters = [at for at, character in enumerate(folded) if character.isalnum()]
    wanted = "".join(character for character in title if character.isalnum())
    at = "".join(folded[i] for i in letters).find(wanted)
    if at < 0 or not wanted or len(folded) != len(raw):
        return title
    first, last = letters[at], letters[at + len(wanted) - 1]
    while last + 1 < len(raw) and raw[last + 1] in "》”」』\"'!！?？)）" and raw[last + 1] not in "?？":
        last += 1
    while first > 0 and raw[first - 1] in "《“「『\"'(（":
        first -= 1
    return raw[first : last + 1]
