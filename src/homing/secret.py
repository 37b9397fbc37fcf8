"""An API key that cannot be printed by accident."""

from __future__ import annotations

from homing.errors import InvalidKey

MASK = "**********"


class Secret:
    """Holds a key; shows itself only when asked by name. An empty one is false and means that there is no key.

    White space around it, as a copied key often has, is dropped. What cannot stand in a header is refused here, because
    an HTTP library that refuses it later quotes it.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str | Secret = "") -> None:
        value = value.reveal() if isinstance(value, Secret) else value.strip()
        if not (value.isascii() and (value.isprintable())):
            raise InvalidKey(
                "the API key holds characters that no key has (a line break, a full-width letter); copy it again"
            )
        self._value = value

    def reveal(self) -> str:
        """The key itself."""
        return self._value

    def hide_in(self, text: str) -> str:
        """The text with every occurrence of the key masked."""
        return text.replace(self._value, MASK) if self._value else text

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return f"Secret({MASK if self else ''!r})"

    __str__ = __repr__
