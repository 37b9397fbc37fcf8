"""What tests of the channels share: an answer that must be one, and a novel to ask about."""

from __future__ import annotations

from typing import Any

from homing.channels import Channels

LONELY = "房间里只剩下她自己，电话再也没有响过，夜里她常对着空椅子说话。"
LEFT_HANDED = "林晚是左撇子，小时候被父亲逼着用右手写字。"
AFRAID = "沈舟怕水，七岁那年他差点在河里淹死。"
KITCHEN = "厨房里飘着番茄炒蛋的香味，孩子们围着桌子等开饭。"
KEY = "She keeps her mother's silver key on a chain around her neck."
HARBOUR = "港口的吊车在凌晨三点停了下来，码头上堆满了 container 😀 和漂流木。"
NOVEL = "\n\n".join([LONELY, LEFT_HANDED, AFRAID, KITCHEN, KEY, HARBOUR])


def ask(channels: Channels, channel: str, **payload: Any) -> dict[str, Any]:
    """The data of an answer; fails where there is an error."""
    envelope = channels.invoke(channel, payload)
    assert envelope["ok"], envelope
    data: dict[str, Any] = envelope["data"]
    return data


def refused(channels: Channels, channel: str, payload: Any = None) -> dict[str, Any]:
    """The error of an answer; fails where there is none."""
    envelope = channels.invoke(channel, payload)
    assert not envelope["ok"], envelope
    assert set(envelope["error"]) == {"code", "message", "details"}
    error: dict[str, Any] = envelope["error"]
    return error


def save(channels: Channels, project: str, document: str, text: str) -> dict[str, Any]:
    """Save a document and wait until it is embedded."""
    saved = ask(channels, "document:save", projectId=project, documentId=document, text=text)
    assert ask(channels, "embedding:status", projectId=project, waitMs=30_000)["pending"] == 0
    return saved
