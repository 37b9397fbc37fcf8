"""What may be embedded: a list of strings, and what remains of a string that cannot be written as UTF-8."""

from __future__ import annotations

from collections.abc import Sequence

from homing.errors import InvalidArgument


def checked_texts(texts: Sequence[str]) -> list[str]:
    """The texts as a list. Refuses a bare string, which would be embedded letter by letter, and what is not text."""
    if isinstance(texts, str):
        raise InvalidArgument("texts to embed are a list of strings; got one string: put it in a list")
    for text in texts:
        if not isinstance(text, str):
            raise InvalidArgument(f"texts to embed are strings; got {type(text).__name__}")
    return list(texts)


def without_surrogates(text: str) -> str:
    """The same text, except that halves of a surrogate pair are joined and lone ones replaced by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
