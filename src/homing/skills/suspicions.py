"""Signs that a text of somebody else tries to command the model that reads it."""

from __future__ import annotations

import re

_SIGNS: tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...] = (
    (
        "asks to ignore instructions",
        ("ignore", "disregard", "forget", "override", "忽略", "视", "視", "忘", "不要"),
        re.compile(
            r"\b(?:ignore|disregard|forget|override)\b.{0,30}\b(?:previous|prior|above|earlier|all|other|system|your)\b"
            r".{0,30}\b(?:instruction|prompt|rule|guideline|message|direction)s?\b"
            r"|(?:忽略|無視|无视|忘记|忘記|不要理会|不要遵守).{0,12}(?:之前|以上|前面|先前|上述|所有|系统|系統).{0,8}"
            r"(?:指令|指示|提示|规则|規則|要求|说明)",
            re.IGNORECASE | re.DOTALL,
        ),
    ),
    (
        "asks to hide something from the user",
        ("user", "用户", "用戶"),
        re.compile(
            r"\b(?:do not|don't|never|without)\b.{0,15}\b(?:tell|telling|inform|informing|mention|notify|notifying)\b"
            r".{0,20}\b(?:the )?user\b"
            r"|(?:不要|不得|切勿|别)(?:告诉|告訴|通知|告知|让|讓)用[户戶]",
            re.IGNORECASE,
        ),
    ),
    (
        "asks for the system prompt or for keys",
        ("prompt", "key", "password", "credential", ".env", "提示", "密"),
        re.compile(
            r"\b(?:reveal|print|output|send|exfiltrate|leak|upload|post)\b.{0,40}"
            r"\b(?:system prompt|api[ _-]?keys?|passwords?|credentials|private keys?|\.env|ssh keys?)\b"
            r".{0,40}\b(?:to|into|at)\b.{0,20}(?:https?://|\bserver\b|\bwebhook\b|@)"
            r"|(?:输出|泄露|洩露|透露|发送|發送).{0,10}(?:系统提示|系統提示|密钥|密鑰|密码|密碼)",
            re.IGNORECASE,
        ),
    ),
    (
        "pretends to be a system message",
        ("<", "[", "###"),
        re.compile(r"<\|?(?:im_start|system|/?system-reminder)\|?>|\[/?INST\]|^\s*###\s*system\s*:", re.I | re.M),
    ),
    ("holds characters that nobody sees", (), re.compile(r"[\U000e0000-\U000e007f]{2}|[\u202a-\u202e\u2066-\u2069]")),
    ("holds characters that nobody sees", (), re.compile(r"[\u200b\u2060\ufeff]{4,}")),
)
"""What to say, what a text must hold to be worth a closer look (anything beyond ASCII where nothing is named), and the
look: nearly every text that is shown is done with after the first."""
_OTHER_CASE = "\u017f\u0130\u0131"
"""Letters that are an s or an i to a pattern that ignores case, and not to `lower`."""
MAX_READ = 200_000
"""Characters that are looked through for signs of injection."""


def suspicions(text: str) -> tuple[str, ...]:
    """What in a text looks like an attempt to command the model; nothing for most texts. A hint, not a verdict."""
    read = text[:MAX_READ]
    plain, every = read.lower(), any(one in read for one in _OTHER_CASE)
    found = {
        what: None
        for what, hints, pattern in _SIGNS
        if (every or (any(one in plain for one in hints) if hints else not read.isascii())) and pattern.search(read)
    }
    return tuple(found)
