"""How much of a text a remote model reads, estimated without its tokenizer."""

from __future__ import annotations

import numpy as np

# In sixths of a token for each byte of UTF-8: three ASCII bytes, or two of any others, count as one token. English
# prose has four to five bytes a token and Chinese about two to three in the byte-pair vocabularies of these APIs, so
# ordinary text is over-counted somewhat, which is the safe side: who counts too few is refused.
_ASCII, _OTHER = 2, 3
_OTHER_BYTES = bytes(range(128, 256))


def estimate_tokens(text: str) -> int:
    """About how many tokens the text has; rather too many than too few. Expects text that UTF-8 can write."""
    encoded = text.encode()
    ascii_bytes = len(encoded) if len(encoded) == len(text) else len(encoded.translate(None, _OTHER_BYTES))
    return -(-(_ASCII * ascii_bytes + _OTHER * (len(encoded) - ascii_bytes)) // 6)


def cut_to_tokens(text: str, tokens: int) -> str:
    """The longest beginning of the text that has at most so many tokens by estimate, ending between characters."""
    if estimate_tokens(text) <= tokens:
        return text
    encoded = text.encode()
    costs = np.where(np.frombuffer(encoded, dtype=np.uint8) < 128, _ASCII, _OTHER)
    end = int(np.searchsorted(np.cumsum(costs), 6 * tokens, side="right"))
    return encoded[:end].decode(errors="ignore")
