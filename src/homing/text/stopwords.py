"""Words that say nothing about what a text is about, in English and Chinese."""

from __future__ import annotations

_ENGLISH = """
a about after all also am an and any are as at be because been before being between both but by can could did do
does doing done down each few for from further get gets give go goes had has have having he her here hers him his
how i if in into is it its just let lets like make many may me might more most much must my need no nor not of off
on once one only onto or other our ours out over own per please same shall she should so some such than that the
their theirs them then there these they this those though through to too under until up upon us very via want
wants was we were what when where whether which while who whom whose why will with within without would yes yet
you your yours im ive id ill dont doesnt didnt isnt arent wasnt werent cant couldnt wont wouldnt shouldnt youre
youve thats whats theres hello hi thanks thank http https www
"""

_CHINESE = """
的 了 着 过 得 是 在 有 和 与 及 或 也 都 就 还 又 再 才 很 太 更 最 不 没 把 被 给 让 向 往 从 到 对 于 为 以 由
将 而 且 但 则 若 如 因 所 其 之 这 那 哪 此 某 每 各 个 些 么 呢 吗 吧 啊 呀 哦 嗯 嘛 啦 我 你 您 他 她 它 们 谁 请
帮 想 要 会 能 可 用 做 去 来 说 看 里 一
我们 你们 他们 她们 它们 咱们 自己 大家 这个 那个 哪个 这些 那些 哪些 这里 那里 哪里 这样 那样 怎样 怎么 什么 为什么
为何 如何 多少 几个 是否 可以 能够 可能 应该 需要 想要 希望 请问 帮我 帮忙 请帮 给我 告诉 一下 一个 一些 一种 一样
有没 没有 有些 有的 不是 不能 不要 不会 不可 就是 还是 还有 只是 只有 但是 可是 不过 然而 因为 所以 由于 因此 如果
要是 虽然 即使 而且 并且 以及 或者 或是 关于 对于 至于 根据 按照 通过 进行 其中 其他 其它 之间 之后 之前 以后 以前
时候 现在 已经 正在 曾经 非常 比较 特别 十分 都是 也是 是的 好的 谢谢 你好 您好 我的 你的 他的 她的 它的 您的 我要
我想 你能 能不 是不 么样 是什 在哪
"""

ENGLISH = frozenset(_ENGLISH.split())
CHINESE = frozenset(_CHINESE.split())
"""Single characters and words, simplified."""

_FREQUENT = (
    "的用在一中个可以有是为数使和如件不将行对定时文了这要于你器我下到或置能类会应果上程示方本作性请选字式此表法其来并"
    "发例设们分成型所标序过项参建关它值指理通更名后加据动包代提码新户符模出接目存点入些单该现调进配息自需开象多则生您"
    "间组务信地制何内面他实当部被列属创与前运工同回人查大编从问义供试之元具任容服量子函解已择图格常管集相保改持安命位"
    "而源支版含取重库显除返最引特全添控阅认变合由处者但向计然口化求结令种因无确还机都也构看节称测正小素必语明意操每样"
    "输事号段体导注区系装外度载题执只始默情员没许换网证功访好启复算限录击基态期档空记就色完键级细储资须么主及着块错况"
    "页打给消串按检转步视想写详且移找两吗端否非流修别话传布路框高误状预等统第整日电得未很略展里像获条那形起次线域验窗"
    "索规板签说达知店权备决经括比效删允助辑异环受议帮准适仅道边密头收告车邮公述连见家原译策止活什交放客平身扩某直去天"
    "联即响根终织心带读插站物手言范景考若台护识览订送案析址业做少志声酒匹先让推针造长周快境再三围共餐句链群学径报负便"
    "简馆留描架拉反致场询队片强失协络增层影产浏感份把另附续托依书够国替排谢门射哪缓较菜二清离递费局几年力至映"
)
COMMON = frozenset(_FREQUENT).union(*CHINESE)
"""The characters of stop words, and the 500 most frequent ones in 150,000 sentences of manuals and conversation.

Alone, such a character stands in so many texts that asking for it costs more than it tells; see bench/tokens.py.
"""
