"""What is said to a person when nothing is done, in the language of the sentence."""

from __future__ import annotations

from collections.abc import Sequence

from homing.devices.answer import Hint

_TEXTS: dict[Hint, tuple[str, str]] = {
    "unknown_room": ("没有找到“{what}”这个房间。{offer}", "There is no room called “{what}”. {offer}"),
    "unknown_device": ("没有找到“{what}”。{offer}", "I found no “{what}”. {offer}"),
    "multiple_close_matches": ("您指的是哪一个？{offer}", "Which one do you mean? {offer}"),
    "no_matching_command": ("“{what}”不支持这个操作。", "“{what}” cannot do that."),
    "value_out_of_range": ("这个数值不行，允许的范围是 {what}。", "That value is not possible; allowed is {what}."),
    "missing_value": ("要调到多少？", "To what value?"),
    "no_reference": ("您指的是哪个设备？", "Which device do you mean?"),
    "not_understood": ("没有听懂要做什么。", "I did not understand what to do."),
    "negated": ("好的，不做这个操作。", "All right, I will not do that."),
    "deferred": ("只能立即执行，不能定时或按条件执行。", "I can only act now, not at another time or on a condition."),
}
_OFFER = ("可选：{names}。", "Possible: {names}.")
_SHOWN = 6


def question_for(hint: Hint, chinese: bool, *, what: str = "", offers: Sequence[str] = ()) -> str:
    """The text of a hint; at most six offers are named."""
    language = 0 if chinese else 1
    names = ("、" if chinese else ", ").join(offers[:_SHOWN]) + ("…" if len(offers) > _SHOWN else "")
    offer = _OFFER[language].format(names=names) if offers else ""
    return _TEXTS[hint][language].format(what=what, offer=offer).strip()
