"""Whether a message says nothing that a text could be about: small talk, or noise."""

from __future__ import annotations

import re

from homing.text.folding import fold

MAX_CHARACTERS = 60
"""Who writes more says something."""

_CHINESE = """
你好 您好 你们好 大家好 哈喽 哈啰 嗨 嘿 喂 早 早安 早上好 上午好 中午好 下午好 晚上好 晚安 在吗 在不在 在么
有人吗 有人在吗 好久不见 谢谢 谢谢你 谢谢您 多谢 感谢 非常感谢 太感谢 辛苦 不客气 不用谢 没事 没关系 抱歉 对不起
不好意思 再见 拜拜 拜 回头见 明天见 一会见 回见 下次见 慢走 保重 加油 好 行 可以 是 对 不 不是 不对 不要 不行
没有 没错 当然 明白 知道 懂 了解 收到 继续 算了 随便 无所谓 厉害 真棒 太棒 很棒 你真棒 不错 真不错 很好 太好 牛
赞 你是谁 你叫什么 你叫什么名字 你好吗 你怎么样 最近怎么样 最近好吗 吃了吗 你在干嘛 你在做什么 你会什么 我爱你
我喜欢你 我很无聊 好无聊 无聊 测试 测试一下 试试 试一下 随便聊聊 聊聊天 聊聊 陪我聊天 陪我聊聊 讲个笑话
今天心情不错 今天真开心 今天天气真好 今天天气不错 开心 哎呀 哇 唉 额 呃
"""
_ENGLISH = """
hello, hi, hey, hiya, howdy, yo, greetings, morning, good morning, good afternoon, good evening, good night, good
day, there, thanks, thank you, so much, very much, a lot, many thanks, thx, ty, cheers, much appreciated, you're
welcome, you are welcome, no problem, np, bye, goodbye, see you, see ya, later, soon, tomorrow, take care, good
luck, have a nice day, have a good day, have a good one, ok, okay, k, yes, yeah, yep, yup, no, nope, nah, sure, of
course, fine, great, cool, nice, awesome, wow, oh, ah, um, uh, hmm, hm, lol, haha, hehe, hahaha, alright, all right,
right, got it, i see, i understand, understood, never mind, nevermind, whatever, maybe, sorry, my bad, excuse me,
please, well done, good job, great job, nice one, who are you, what is your name, what's your name, whats your name,
how are you, doing, today, how is it going, how's it going, what's up, whats up, sup, how do you do, nice to meet
you, pleased to meet you, are you there, anyone there, anybody there, tell me a joke, i'm bored, im bored, i am
bored, i love you, i like you, love you, just chatting, let's chat, just kidding, test, testing, 123, good to see
you, long time no see, that's great, that is great, sounds good, i'm fine, i am fine
"""
_PHRASES = frozenset(_CHINESE.split()) | {" ".join(one.split()) for one in _ENGLISH.split(",")}
_PARTICLES = frozenset("啊呀吧呢吗嘛啦哦噢喔哈呵嘻嗯哟喽了的个")
_KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm", "poiuytrewq", "lkjhgfdsa", "mnbvcxz")
_UNHEARD = re.compile(
    "(?=b[cfgkpqvwxz]|c[bfjnpvwx]|d[kpqxz]|f[bcdghjkmnpqvwxz]|g[bcfjkpqvxz]|h[ghjkpqvxz]|i[wy]|"
    "j[bcdfghjklmnpqrstvwxyz]|k[cgjqvxz]|l[jqxz]|m[dghjkqtvwxz]|o[q]|p[dfjnqvwxz]|"
    "q[abcdefghijklmnopqrstvwxyz]|r[jx]|s[jxz]|t[jkqvx]|u[hquw]|v[bcdfghjklmnpqtvwxz]|w[gjpquvwxz]|"
    "x[bdfgjklmnqrsvwxz]|y[hjqvxy]|z[cdfgjkmnpqrstvwx])"
)
"""Neighbours that fewer than four of the words in the vocabulary of the bundled model have."""
_LONGEST = max(map(len, _PHRASES))
_PIECE = re.compile(r"[a-z']+|[0-9]+|[\u3400-\u9fff]")


def is_small_talk(message: str) -> bool:
    """Whether a message consists of phrases that are said for politeness, in Chinese, English or both, or is one
    character over and over. One in quotes is meant literally, and one without a single word is not small talk.
    """
    if len(message) > MAX_CHARACTERS or message.strip()[:1] in tuple('"“「『＂'):
        return False
    said = " ".join(_PIECE.findall(fold(message).lower().replace("’", "'")))
    # Chinese characters stand together, words stand apart.
    said = re.sub(r"(?<=[\u3400-\u9fff]) (?=[\u3400-\u9fff])", "", said)
    return bool(said) and (_consists(said) or (len(said) > 1 and len(set(said)) == 1 and not said.isdigit()))


def is_noise(message: str) -> bool:
    """Whether a message looks like fingers on a keyboard: no letter at all, digits, or words that nobody can pronounce.
    Some names look like that, so who finds the word in a text knows better."""
    return all(one.isdigit() or _is_typed(one) for one in _PIECE.findall(fold(message).lower()))


def _is_typed(word: str) -> bool:
    """Whether a Latin word is keys in a row, has too few vowels to be one, or too many neighbours that none has."""
    if word[0] >= "\u3400" or len(word) < 4:
        return False
    in_a_row = any(word[:4] in keys for keys in _KEYS)
    unheard = len(_UNHEARD.findall(word))
    return in_a_row or sum(letter in "aeiouy" for letter in word) * 6 < len(word) or unheard * 5 >= 2 * (len(word) - 1)


def _consists(said: str) -> bool:
    """Whether a text can be cut into known phrases and particles."""
    reached = {0}
    for at in range(len(said)):
        if at not in reached:
            continue
        if said[at] in _PARTICLES or said[at] == " ":
            reached.add(at + 1)
        for end in range(at + 1, min(len(said), at + _LONGEST) + 1):
            if said[at:end] in _PHRASES and _ends(said, end):
                reached.add(end)
    return len(said) in reached


def _ends(said: str, at: int) -> bool:
    """Whether no Latin word goes on here."""
    return at == len(said) or said[at] == " " or said[at] >= "\u3400" or said[at - 1] >= "\u3400"
