"""A data folder with a little of everything, in both languages, and something hostile."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from homing.app import Homing

HOSTILE = '<img src=x onerror="window.hacked=1">'
HOSTILE_TEXT = f"有毒的段落 {HOSTILE} <script>window.hacked=1</script> 到此为止"
SKILLS = {
    "git-commit": "分析 Git 改动，写出规范的提交信息并提交代码",
    "excel-analysis": "读取 Excel 文件，做数据统计分析",
    "translate-document": "Translate a document between Chinese and English",
}
STORY = "\n\n".join(
    (
        "老周守了三十一年灯塔，岛上没有别的人，只有风和海鸟。",
        "他太久没有和人说话，句子到了嘴边就忘了怎么拐弯。",
        "春天的时候，一个女孩跟着船来了，说要写一篇关于海鸟的论文。",
        "发动机的火花塞要每年更换一次。",
    )
)
MEMORIES = (
    ("knowledge", "Billing: we decided to charge per seat, monthly."),
    ("observation", "用户不吃辣，对花生过敏。"),
)


def fill(app: Homing, folder: Path) -> None:
    """Put it all in, and wait until it is embedded."""
    for name, description in SKILLS.items():
        _skill(folder / name, name, description)
    _skill(folder / "hostile", f"'{HOSTILE}'", "有毒的技能 poisonous")
    app.skills.scan(folder)
    app.documents.save("novel", "灯塔", STORY)
    app.documents.save("novel", HOSTILE.replace("/", ""), HOSTILE_TEXT)
    for collection, text in MEMORIES:
        app.memory.remember(collection, text)
    app.devices.load(Path(str(files("homing") / "examples" / "home.json")))
    app.documents.flush()
    app.engine.flush()


def _skill(folder: Path, name: str, description: str) -> None:
    folder.mkdir(parents=True)
    text = f"---\nname: {name}\ndescription: {description}\n---\nWrite it with care. 仔细写。\n"
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
