"""The development sets, and unanswerable questions beside them, as both legs of the product measure them.

Vectors are remembered in a folder of one's own, by model and text, so that a second run embeds nothing.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from homing.embedders.cached import Cached
from homing.embedders.provider import EmbeddingProvider
from homing.evaluation.golden import GoldenSet, Question, read_golden
from homing.models.fitting import MeasuredTexts, Measures

SETS = (
    "passages_q-zh_d-zh", "passages_q-zh_d-en", "passages_q-en_d-zh", "passages_q-en_d-en",
    "agents_zh", "agents_en", "tools_bfcl", "tools_stabletoolbench",
)  # fmt: skip
TRADITIONAL = {
    "passages_q-zht_d-zht": ("passages_q-zh_d-zh", True),
    "passages_q-zh_d-zht": ("passages_q-zh_d-zh", False),
}
"""Sets in traditional characters: of which set, and whether the questions are written so as well."""
SHORT = {"passages_q-": "", "_d-": "→", "tools_": "", "stabletoolbench": "stb"}
KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
COMMON = (
    "的一是了我不人在他有这个上们来到时大地为子中你说生国年着就那和要她出也得里后自以会家可下而过天去能对小多然于心学么之都好看"
    "起发当没成只如事把还用第样道想作种开美总从无情己面最女但现前些所同日手又行意动方期它头经长儿回位分爱老因很给名法间"
)
MARKS = ("???", "！！！", "……", "123456", "0", "...", "---", "#$%^&", "@@@", "6666", "233333", "?!", "。。。", "1")
TALK = (
    "你好", "您好", "嗨", "在吗", "早上好", "晚安", "谢谢", "谢谢你", "不客气", "再见", "拜拜", "好的", "嗯", "哦",
    "哈哈", "是的", "不是", "没事", "对不起", "辛苦了", "你是谁", "你叫什么名字", "你好吗", "最近怎么样",
    "今天心情不错", "我爱你", "加油", "测试", "测试一下", "随便聊聊", "讲个笑话吧", "无聊", "呵呵", "吃了吗",
    "周末愉快", "你真聪明", "我不太明白", "那就这样吧", "hello", "hi", "hey there", "good morning", "good night",
    "thanks", "thank you so much", "you're welcome", "bye", "see you later", "ok", "yes", "no", "sure", "cool",
    "lol", "haha", "how are you?", "how's it going", "what's up", "who are you", "nice to meet you", "sorry",
    "never mind", "test", "testing 123", "tell me a joke", "i'm bored", "i love you", "great job",
    "you are so smart", "i don't get it", "that will be all", "hello 你好", "ok 好的", "thanks 谢谢啦", "hi 在吗",
    "haha 哈哈", "bye 再见", "嗯嗯 yes", "test 测试",
)  # fmt: skip


def label(name: str) -> str:
    """A name that fits over a column."""
    for long, short in SHORT.items():
        name = name.replace(long, short)
    return name


def simplified(name: str) -> str:
    """The name of a set or, of one in traditional characters, of its twin."""
    return name.replace("zht", "zh")


def family(name: str) -> str:
    """What kind of texts a set has: what belongs to another kind belongs elsewhere."""
    return name.split("_")[0]


def read_sets(folder: Path) -> dict[str, GoldenSet]:
    """The development sets by name; with OpenCC at hand, the Chinese passages in traditional characters as well."""
    sets = {name: read_golden(folder / name) for name in SETS}
    if (convert := _traditional()) is not None:
        for name, (of, questions_too) in TRADITIONAL.items():
            sets[name] = _rewritten(sets[of], name, convert, questions_too)
    return sets


def _traditional() -> Callable[[str], str] | None:
    try:
        from opencc import OpenCC  # type: ignore[import-not-found]
    except ImportError:
        print("opencc is not installed: traditional Chinese is left out")
        return None
    convert: Callable[[str], str] = OpenCC("s2t").convert
    return convert


def _rewritten(golden: GoldenSet, name: str, convert: Callable[[str], str], questions_too: bool) -> GoldenSet:
    questions = tuple(replace(one, text=convert(one.text)) if questions_too else one for one in golden.questions)
    return GoldenSet(name, {key: convert(text) for key, text in golden.corpus.items()}, questions)


def remembered(provider: EmbeddingProvider, folder: Path) -> EmbeddingProvider:
    """The model with a file of its own in which its vectors are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    # The same name may stand for other weights.
    row = provider.embed(["Homing finds what a request is about. 一句话说清你要什么。"])[0]
    return Cached(provider, folder / f"{hashlib.sha256(row.round(3).tobytes()).hexdigest()[:16]}.db", by_kind=False)


def measure(texts: MeasuredTexts, questions: Sequence[Question]) -> Measures:
    """What both legs say of the questions of a set."""
    return texts.measure([one.text for one in questions], [list(one.relevant) for one in questions])


def elsewhere(name: str, sets: Mapping[str, GoldenSet], each: int = 60) -> list[str]:
    """Questions of sets of another kind."""
    others = [sets[one] for one in SETS if family(one) != family(name)]
    return [one.text for other in others for one in random.Random(2).sample(other.questions, each)]


def words_of_others(name: str, sets: Mapping[str, GoldenSet], each: int = 60) -> list[str]:
    """Single words of sets of another kind."""
    found = []
    for other in (one for one in SETS if family(one) != family(name)):
        texts = " ".join(list(sets[other].corpus.values())[:400])
        words = sorted(
            {one.lower() for one in re.findall(r"[A-Za-z]{4,}|(?<![\u4e00-\u9fff])[\u4e00-\u9fff]{2}", texts)}
        )
        found += random.Random(3).sample(words, each)
    return found


def noise(count: int = 150) -> list[str]:
    """What a cat on a keyboard asks: letters, characters, marks, and both languages in one."""
    draw = random.Random(4)

    def letters(of: str, least: int, most: int) -> str:
        return "".join(draw.choice(of) for _ in range(draw.randint(least, most)))

    def row() -> str:
        keys = draw.choice(KEYS)
        start = draw.randrange(len(keys) - 4)
        return keys[start : start + draw.randint(4, 6)] * draw.randint(1, 2)

    kinds = (
        row,
        lambda: " ".join(letters("qwxzjkvbpasdfgh", 5, 8) for _ in range(draw.randint(1, 3))),
        lambda: letters(COMMON, 4, 12),
        lambda: draw.choice(MARKS),
        lambda: draw.choice(COMMON) * draw.randint(2, 6),
        lambda: f"{letters(COMMON, 3, 3)} {letters('qwxzjkvbp', 6, 6)}",
    )
    return [draw.choice(kinds)() for _ in range(count)]
