"""Phrases in a keyword query: what stands in quotes must stand in the text as it is."""

from __future__ import annotations

import re
from collections.abc import Sequence

from homing.text.folding import Folded, fold
from homing.text.tokens import Span, cut, is_character, is_run, spans, tokens

_QUOTED = re.compile(r'"([^"]+)"|“([^”]+)”|「([^」]+)」|『([^』]+)』|＂([^＂]+)＂')


def phrases(query: str) -> list[str]:
    """What stands in quotes in a query: "…", “…”, 「…」 or 『…』. A quote that is not closed quotes nothing."""
    return [found for one in _QUOTED.finditer(query) if tokens(found := next(filter(None, one.groups())))]


def holds_all(text: str, wanted: Sequence[str]) -> bool:
    """Whether every phrase stands in the text, word by word; case, width and traditional characters do not matter."""
    written = _joined(text)
    return all(_joined(one) in written for one in wanted)


def says_enough(query: str, matched: Sequence[str]) -> bool:
    """Whether more than single characters of longer Chinese words matched: 独 in 独自 is not 独角兽."""
    if any(len(one) > 1 or not is_character(fold(one)) for one in matched):
        return True
    return not any(is_run(piece) for piece in cut(fold(query)))


def places(query: str, text: str) -> list[Span]:
    """What to highlight: the phrases where there are any, and the other words of the query."""
    wanted = phrases(query)
    rest = _QUOTED.sub(" ", query) if wanted else query
    found = [*_phrase_places(wanted, text), *(spans(rest, text) if rest.strip() else [])]
    merged: list[Span] = []
    for one in sorted(found, key=lambda span: (span.start, span.end)):
        if merged and one.start < merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(one.end, merged[-1].end))
        else:
            merged.append(one)
    return merged


def _phrase_places(wanted: Sequence[str], text: str) -> list[Span]:
    if not wanted:
        return []
    folded = Folded(text)
    written = folded.text.lower()
    found: list[Span] = []
    for phrase in wanted:
        # White space and punctuation between the words may differ; the words may not.
        words = [re.escape(word) for word in re.findall(r"\w+|[^\w\s]", Folded(phrase).text.lower())]
        for one in re.finditer(r"[\W_]*?".join(words), written):
            if one.end() > one.start():
                found.append(Span(*folded.place(one.start(), one.end())))
    return found


def _joined(text: str) -> str:
    return f" {' '.join(tokens(text))} "
