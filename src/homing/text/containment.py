"""Which of some keywords a text contains, without cutting every text into all of its words."""

from __future__ import annotations

from collections.abc import Sequence

from homing.text.folding import fold
from homing.text.tokens import tokens
from homing.text.words import cut, is_run, word_tokens

_FIRST_CJK = "\u3005"


class Containment:
    """Looks for keywords in texts: as written, in any width, case and script, or by all of their words.

    So 數據 is found by 数据, ＡＰＩ by api, and `fileRead` by `file_read`.
    """

    def __init__(self, keywords: Sequence[str]) -> None:
        self._keywords = [(one, fold(one).lower(), set(tokens(one))) for one in keywords]
        # A word of the index begins a word of the text, joints aside, but for the y of a plural in -ies.
        self._beginnings = {
            one: [_without_joints(word).removesuffix("y") for word in words] for one, _, words in self._keywords
        }

    def in_text(self, text: str) -> tuple[str, ...]:
        """The keywords that the text contains, in their order."""
        folded = fold(text)
        written = folded.lower()
        jointless, known = "", set[str]()
        found = []
        for keyword, plain, words in self._keywords:
            if plain not in written:
                if not words:
                    continue
                if min(words) >= _FIRST_CJK:
                    if not all(word in written for word in words):
                        continue
                else:
                    jointless = jointless or _without_joints(written)
                    if not all(one in jointless for one in self._beginnings[keyword]):
                        continue
                    # Cutting a text costs more than all the rest, so only where a word may be there.
                    known = known or {word for piece in cut(folded) if not is_run(piece) for word in word_tokens(piece)}
                    if not words <= known:
                        continue
            found.append(keyword)
        return tuple(found)


def _without_joints(text: str) -> str:
    for joint in "_'.,-":
        text = text.replace(joint, "")
    return text
