"""No statement, question or prohibition is ever acted upon, whatever words it is made of."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homing.devices import DeviceRetriever, load_home
from tests.effort import times

DEVELOPMENT = Path(__file__).with_name("development")

ENGLISH = {
    "v": "turn on, turn off, open, close, lock, unlock, dim, start, stop, brighten, pause, mute, switch off, shut",
    "ing": "turning on, turning off, opening, closing, locking, unlocking, dimming, starting, switching off",
    "past": "turned on, turned off, opened, closed, locked, unlocked, dimmed, switched off, paused, started",
    "state": "on, off, open, closed, locked, unlocked, running, too old, turned on, switched off, shut, broken",
    "who": "she, he, my wife, the kids, somebody, my neighbour, dad, they, the cleaner, anna, the cat",
    "when": " all night| yesterday| again| already| since noon| for hours||||",
    "lead": "||||well, |yeah, |look, |by the way, |hey, ",
}
ENGLISH_SENTENCES = """
the D is state+when
the D was state+when
the D are state
the D in the R is state
who past the D+when
who past the D in the R
i past the D+when
i just past the D
i already past the D
i forgot to v the D
i was about to v the D
i was going to v the D
i will v the D myself
i always v the D at night
i think the D is state
i hope the D is state
it looks like the D is state
who left the D state+when
who has past the D
the D has been state+when
the D should be state
who says the D is state
who said v the D
who told me to v the D
who asked me to v the D
the sign says v the D
"v the D", who said
the label reads “v the D”
is the D state?
is the D in the R state
are the D state
was the D state+when?
did who v the D?
did you v the D
why is the D state?
why did who v the D
who past the D?
who will v the D?
when did who v the D
when should i v the D
how do i v the D?
how can i v the D
should i v the D?
can i v the D from here?
do you know if the D is state
what happens if i v the D
has anyone past the D?
is it safe to v the D
which one of the D is state?
don't v the D
do not v the D
please don't v the D
never v the D
no need to v the D
you don't have to v the D
you must not v the D
you shouldn't v the D
i don't want you to v the D
i don't want the D state
there is no need to v the D
stop ing the D
avoid ing the D
let's not v the D
make sure not to v the D
whatever you do, don't v the D
"""
CHINESE = {
    "v": "打开 关掉 关闭 开 关 锁上 解锁 调暗 调亮 拉上 拉开 启动 停掉 暂停 开启 关上",
    "着": "开着 关着 锁着 亮着 打开了 关好了 坏了 没关 没开 没锁 还开着 挺好看 是新买的 太旧了",
    "谁": "妈妈 爸爸 老婆 他 她 孩子 邻居 客人 有人 奶奶 小明 我",
    "时": "昨天 刚才 刚刚 已经 早就 昨晚 一直",
    "头": "|||||哎，|嗯，|对了，|你看，",
}
CHINESE_SENTENCES = """
D着
D着呢
R的D着
D一直着
D时着
谁把D给v了
谁时把D v了
我刚把D v了
我已经v了D
我时v过D
D已经v了
D昨晚开了一夜
D是着的
D被谁v了
谁说要v D
谁说D着
谁说：“v D”
谁让我v D
谁叫我去v D
我忘了v D
我打算v D
我本来想v D
我等下自己去v D
D好像着
听说D着
“v D”是谁说的
说明书上写着v D
D着吗
D是不是着
D v了吗
D v了没有
D v了没
谁把D v了？
谁v了D
为什么要v D
怎么v D
什么时候v D
要不要v D
该不该v D
你知道D着不
是你v的D吗
v D会怎么样
哪个D着
别v D
不要v D
请不要v D
不用v D
千万别v D
千万别把D v了
不许v D
不准v D
先别v D
先不要v D
D不用v
D别v
没必要v D
没让你v D
不是让你v D
不需要v D
禁止v D
没人让你v D
唔好v D
唔使v D
咪v D
我啱啱v咗D
谁v咗D
邊個v咗D
D v咗未
點解v D
D仲着緊
佢話v D
"""


@cache
def home(name: str) -> DeviceRetriever:
    read = load_home(DEVELOPMENT / name)
    return DeviceRetriever(read.devices, read.rooms)


@st.composite
def said(draw: st.DrawFn) -> tuple[str, str]:
    """A sentence that asks for nothing, and the home it is said in."""
    english = draw(st.booleans())
    name = "house" if english else draw(st.sampled_from(["flat", "townhouse"]))
    devices = [device.name for device in home(name).home.devices if device.type not in ("scene", "script")]
    kinds = ["lights", "light", "front door", "curtains"] if english else ["灯", "空调", "窗帘", "门", "燈", "冷氣"]
    sentences = ENGLISH_SENTENCES if english else CHINESE_SENTENCES
    template = draw(st.sampled_from(sentences.strip().splitlines()))
    device = draw(st.sampled_from([*devices, *kinds]))
    room = draw(st.sampled_from([room.name for room in home(name).home.rooms]))
    words = ENGLISH if english else CHINESE
    for key in (key for key in words if key not in ("lead", "头")):
        cell = words[key]
        options = cell.split("|") if "|" in cell else cell.split(", ") if english else cell.split()
        chosen = draw(st.sampled_from(options))
        template = _put(template, key, chosen, english)
    template = _put(_put(template, "D", device, english), "R", room, english)
    lead = draw(st.sampled_from((ENGLISH["lead"] if english else CHINESE["头"]).split("|")))
    return name, (lead + template).replace("+", "") if english else lead + template.replace(" ", "")


def _put(template: str, key: str, text: str, english: bool) -> str:
    if not english:
        return template.replace(key, text)
    parts = [text if word.strip('?,“”"') == key else None for word in template.replace("+", " + ").split(" ")]
    words = template.replace("+", " + ").split(" ")
    return " ".join(w.replace(key, p) if p is not None else w for w, p in zip(words, parts, strict=True)).replace(
        " + ", "+"
    )


@pytest.mark.slow
@settings(max_examples=times(300, in_full=10_000), deadline=None)
@given(said(), st.booleans())
def test_only_a_command_acts(sentence: tuple[str, str], somewhere: bool) -> None:
    name, text = sentence
    rooms = home(name).home.rooms
    answer = home(name).ask(text, room=rooms[0].name if somewhere else None)
    assert not any(step.decision == "act" for step in answer.steps), (text, answer.steps)


@pytest.mark.slow
def test_reports_questions_and_prohibitions_in_many_words_act_on_nothing() -> None:
    templates = Path(__file__).with_name("not_commands.txt").read_text(encoding="utf-8").splitlines()
    for at, template in enumerate(templates):
        names = ("house",) if template.isascii() else ("flat", "townhouse")
        for name in names:
            devices = [device.name for device in home(name).home.devices if device.type not in ("scene", "script")]
            said = [devices[at % len(devices)], devices[7 * at % len(devices)], "lights" if len(names) == 1 else "灯"]
            for text in (template.replace("D", device) for device in said):
                answer = home(name).ask(text, room=home(name).home.rooms[0].name)
                assert not any(step.decision == "act" for step in answer.steps), (text, answer.steps)


@pytest.mark.parametrize(
    ("text", "mood"),
    [
        ("the front door is unlocked", "statement"), ("大门没锁", "statement"), ("烤箱是开的", "statement"),
        ("is the oven on?", "question"), ("大门锁了没", "question"), ("他说“打开大门”", "quotation"),
        ("don't open the gate", "negation"), ("唔好開燈", "negation"), ("太亮了", "complaint"),
        ("it's freezing", "complaint"), ("can you turn off the lamp?", "command"), ("能不能把灯关了", "command"),
        ("i want all the lights off", "command"),
    ],
)  # fmt: skip
def test_the_mood_that_was_heard_is_told(text: str, mood: str) -> None:
    answer = home("house" if text.isascii() else "flat").ask(text)
    assert answer.mood == mood
