"""What is meant by a clause: a command, a question, a statement, a quotation, a prohibition or a complaint.

A clause is written as a pattern first: names and kinds become D, places P, verbs V (of the past v), particles T, values
N, words for a state S, what is excepted X; everything else stays as it was said. What reports is no command.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from homing.devices.lexicon.sayings import COMPLAINTS
from homing.devices.parsing.tokens import Kind, Token
from homing.devices.query import Mood

_QUOTED = re.compile(r"[“\"「『][^”\"」』]{2,}[”\"」』]|(?<!\w)'[^']{3,}'(?!\w)")
_WHO = "我们?|咱们?|他们?|她们?|佢哋?|它们?|有人|人家|妈妈?|爸爸?|老婆|老公|孩子们?|小孩|奶奶|爷爷|老师|同事|客人|邻居"


def _any_of(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(parts))


_REQUESTS = _any_of(
    r"\b(?:can|could|would|will) (?:you|we)\b|\bwould it be possible\b",
    r"\bmind V", r"能|可以|可否|可唔可以|得唔得|好不好|行不行|[好行得](?:吗|么)",
    r"麻烦|帮我|帮忙|请(?!问)|帮手|唔该|拜托",
)  # fmt: skip
"""A question that holds one of these, and a verb, is a request."""
_ASKS = _any_of(
    r"^(?:(?:so|and|but|hey|ok|D) )*(?:what|which|who|whose|why|when|where|how|is|are|am|was|were|do(?! not)|does|did|"
    r"has|have(?! the| all| D)|had|should|shall|may|might|(?:can|could|would|will)(?! you| we)|any)(?: |$)",
    r"\bcheck that\b",
    r"\b(?:tell me|know|see|check|find out|wonder\w*|ask) (?:if|whether|what|which|how|who|why|where|when)\b",
    r"\b(?:how many|how much|whether)\b",
    r"吗|么(?:$|\?)|是不是|是否|有没有|有冇|系咪|是咪|会不会|几(?!乎)|多少|哪(?!.{0,2}都)|谁(?!都)|什么(?!都)|为何|怎|咋|如何|啥(?!都)|乜(?!都)|点解|点样|边(?:个|度|盏|间)|"
    r"何时|多久|有任何|D(?:能|可以)V吗|干嘛|干啥|干吗|做乜|(\w)(?:不|没|唔)\1|(?:没|没有|未|(?<!要)不|冇)[啊呀呢]?$|V了不",
)
_ABOUT_SOMETHING_ELSE = _any_of(
    r"^(?:(?:so|and|but) )?(?:who|whose|when|how (?:do|can|should|to|come)|should|shall|can i|could i|may|"
    r"might|what if)\b",
    r"谁(?!S)|边个(?!S)|怎么(?!样)|怎样[VS]|如何[VS]|点样|什么时候|几时|何时|多久|咋|干嘛|干啥|干吗|做乜",
)
"""Questions that no state of a device answers."""
_POLITE = _any_of(
    r"能不能|可不可以|可唔可以|能唔能|得唔得|好不好|行不行|[好行得]吗|[好行]么|可以吗|吗|么",
    r"^(?:(?:so|and|hey|ok|okay|please|D) )*(?:(?:can|could|would|will) (?:you|we)|would it be possible)\b",
    r"^how about|^why not|^what about",
)
_FORBIDS = _any_of(
    r"\b(?:not|never|no need|without|refrain|avoid)\b|\bstop Ving\b",
    r"别|不要|不用|不许|勿|甭|莫|禁止|不准|不必|无需|不能(?!吗)|不可(?!以)|不想|不需要|唔好|唔使|唔准|唔要|咪|没让|没叫|不是|休想|不该|不应|不会|[不唔](?=V)",
)
_QUOTES = _any_of(
    r"\b(?:said|says|say|saying|told|tells|asked|asks|shouted|whispered|yelled|wrote|reads|mentioned|claims?|claimed|"
    r"suggested|reminded|heard|called out|according to)\b",
    r"听说|据说|写|提到|回答|(?:说|讲|话|喊|念|(?<!请)问)(?=.*[VST])",
    rf"(?:{_WHO}|谁|老板|医生).{{0,3}}(?:叫|让|要|告诉|吩咐|提醒|喊)(?:我|他|她|佢|大家)",
)
_REPORTS = _any_of(
    r"已经|已(?=V|S|被|把)|刚|啱|方才|一直|正在|仍|昨|琴日|寻日|前天|上次|之前|曾|从来|总是|老是|经常|有时|每次|整晚|整夜|成晚|成日|忘|唔记得|"
    r"坏|居然|竟然|原来|好像|似乎|可能|大概|也许|应该|打算|准备|本来|差点|有人|被|过了|完了|着呢|仲|紧$|(?:是|系).*的呢?$|(?:是|系)[VSN]|"
    r"[VT](?:了|咗|过)(?:一|半|好|很|整|几|成|N|D)|V过|[没未冇](?=[VS])|[唔不](?=S)|"
    r"虽然|既然|因为|即使|尽管|才|又(?=V|把|N)|该(?=V)|自己(?=V)|N(?=V(?:了|咗))|(?<![帮给替请])我(?=V(?:了|咗|$))|^[DP的]*给V$|让我(?!们)",
    rf"^(?:刚才|今天|昨天)?(?:{_WHO})(?!想|要|需|希望|的)(?:刚|又|也|都|就|先|再|已经|会|去|来|在|自己|一会儿)*(?:把|将|V|S)",
    rf"(?:^|[^帮给替请让叫])(?:{_WHO})(?:会|去|来|自己)|^(?:{_WHO})(?!想|要|需|希望|的|家)[^VDPNSTX,]{{1,4}}[DP]",
    r"\b(?:is|are|was|were|am|been|being|has|had|have (?:been|already|just|a|v)|did|does|v|seems?|looks?|feels?|"
    r"sounds?|stays?|stayed|keeps|kept|leaves|left (?:the|my|it|on|all|D)|forgot|forgets|broke|broken|remembers?|"
    r"always|usually|often|sometimes|already|ago|love|loves|hate|hates|likes?|think|thinks|guess|hopes?|wish|"
    r"believe|noticed|saw|went|came|comes|got|gets|made|makes|goes|will|might|should|would|could|must|may|"
    r"going to|about to|used to|he|she|they|someone|somebody|nobody|everyone|everybody|people|Vs|let me)\b|^V is\b",
    r"^(?:(?:and|but|so|yes|no|well) )*(?:i|we)(?: \w+)? (?:V|have|keep|leave)\b",
)
_WISHES = _any_of(
    r"^(?:\w+ )?(?:i|we)(?: really| just)? (?:want|need|would (?:like|love|prefer|appreciate))\b(?! to know)",
    r"\b(?:make sure|ensure|see to it)\b|^(?:let us|let there|how about|why not|what about)\b",
    r"(?:我们?|咱们?)(?:想要?|要|需要|希望)|^(?:请|麻烦)?(?:确保|保证|务必|记得)",
)
_IMPERATIVE = re.compile(
    r"(?:(?:please|now|just|then|also|and|hey|ok|okay|so|D|P|kindly|go|quickly|in the|on the) )*"
    r"(?!V is\b)(?:V|stop|check|show|query|read|report|get)\b"
)


def quotes_a_command(raw: str) -> bool:
    """Whether words stand in quotation marks: he said “turn it off”."""
    found = _QUOTED.search(raw)
    return found is not None


def pattern_of(tokens: Sequence[Token]) -> str:
    """The clause with its known words replaced by what they are."""
    parts: list[str] = []
    end = None
    for token in tokens:
        if end is not None and token.start > end:
            parts.append(" ")
        parts.append(_letter(token))
        end = token.end
    return "".join(parts).strip()


def _letter(token: Token) -> str:
    verb = token.is_a(Kind.ACTION, Kind.CARRIER)
    if token.is_a(Kind.EXCEPT_OPEN) and not verb:
        return "X"
    if token.is_a(Kind.NAME, Kind.ANY_DEVICE) or (token.is_a(Kind.TYPE, Kind.PROPERTY) and not verb):
        return "D"
    if token.is_a(Kind.PLACE):
        return "P"
    if token.state is not None and not verb:
        return "S"
    if token.text == "stop" or (token.action is not None and "query" in token.action.concepts):
        return token.text
    if verb and token.text not in ("want", "need", "like", "have", "keep", "leave"):
        return "v" if token.past else "Vs" if token.plural else "Ving" if token.going else "V"
    if token.is_a(Kind.PARTICLE):
        return "T"
    if token.is_a(Kind.VALUE):
        return "N"
    return token.text


def mood_of(tokens: Sequence[Token], *, asks: bool = False) -> Mood:
    """What the tokens of one clause mean; `asks` says that a question mark stands behind it."""
    pattern = pattern_of(tokens)
    verb = re.search(r"[VTN]|stop", pattern) is not None
    request = verb and _REQUESTS.search(pattern) is not None
    wishes = _WISHES.search(pattern) is not None
    if _QUOTES.search(pattern):
        return "quotation"
    polite = (request or (wishes and verb)) and re.search(r"D(?:能|可以)V吗", pattern) is None
    if _ASKS.search(_POLITE.sub("", pattern) if polite else pattern):
        return "question"
    if _FORBIDS.search(_POLITE.sub("", pattern)):
        return "negation"
    if complaint_of(tokens) is not None:
        return "complaint"
    imperative = _IMPERATIVE.match(pattern) is not None
    marked = re.search(r"把|将|保持|X", pattern) is not None
    if not (wishes or request or imperative) and (_REPORTS.search(pattern) or ("S" in pattern and not marked)):
        return "statement"
    if marked and _REPORTS.search(pattern) and not (wishes or request):
        return "statement"
    return "question" if asks and not polite and not (imperative and pattern.isascii()) else "command"


def is_clear(tokens: Sequence[Token]) -> bool:
    """Whether an English command has the form of one: no word that nobody knows stands before its verb."""
    for token in tokens:
        if token.is_a(Kind.ACTION, Kind.CARRIER, Kind.PARTICLE, Kind.VALUE) and not token.is_a(Kind.NAME):
            return True
        if token.kinds <= {Kind.UNKNOWN} and token.text.isascii():
            return False
    return True


def is_negated(tokens: Sequence[Token]) -> bool:
    """Whether it forbids: 别开灯. A 不 or 没 at the end asks."""
    negations = [(at, token.text) for at, token in enumerate(tokens) if token.is_a(Kind.NEGATION)]
    return any(text not in ("不", "没", "没有", "未", "冇") or at < len(tokens) - 1 for at, text in negations)


def about_something_else(tokens: Sequence[Token]) -> bool:
    """Whether a question is none about the state of a device: who, when, how to, should I."""
    return _ABOUT_SOMETHING_ELSE.search(pattern_of(tokens)) is not None


def complaint_of(tokens: Sequence[Token]) -> tuple[str, str] | None:
    """What a complaint is about, and where it should go: 太亮了 is too much brightness. None where it is none."""
    gaps = [" " if tokens[at].start > tokens[at - 1].end else "" for at in range(1, len(tokens))]
    text = "".join(gap + token.text for gap, token in zip(["", *gaps], tokens, strict=True))
    return next((meant for found, meant in COMPLAINTS if found.search(text)), None)


def is_deferred(tokens: Sequence[Token]) -> bool:
    """Whether it speaks of another time or a condition."""
    asks = ("check", "see", "know", "tell me", "wonder", "ask", "find out")
    times = [at for at, token in enumerate(tokens) if token.is_a(Kind.WHEN) and not token.is_a(Kind.NAME)]
    return any(tokens[at].text != "if" or at == 0 or tokens[at - 1].text not in asks for at in times)
