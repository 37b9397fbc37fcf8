"""What the served folder of these tests holds."""

from __future__ import annotations

SKILLS = {
    "git-commit": "生成Git提交信息, write commit messages",
    "file-read": "Read a file from disk",
    "send-mail": "发送邮件",
}
MEMORIES = (
    ("observation", "用户不吃辣，对花生过敏"),
    ("knowledge", "Invoices are sent on the first working day of the month."),
)
NOVEL = {
    "ch1": "他一个人守着灯塔，三十年没有和人说话。\n\n早饭是两个馒头。",
    "ch2": "The market was loud and full of people.",
}
HOME = {
    "rooms": [{"name": "卧室"}, {"name": "客厅"}],
    "devices": [
        {"id": "lamp", "name": "主灯", "type": "light", "room": "卧室"},
        {"id": "strip", "name": "灯带", "type": "light", "room": "客厅"},
        {"id": "fan", "name": "老伙计", "type": "fan", "room": "客厅"},
    ],
}
