# ruff: noqa: E501
"""Texts that carry nothing to remember: greetings, thanks, acknowledgements, heartbeats.

Pure: no I/O. A text is noise only when nothing is left of it once such phrases, time stamps,
punctuation and emoji are taken out; one word of substance makes it a statement. The gate's length
check then counts no meaningful character.
"""

from __future__ import annotations

import re
import unicodedata

_PHRASES = re.compile(
    r"""(?:
      好[的哒嘞呀啊吧滴]*|行[的吧]?|可以的?|没问题|没事儿?|没关系|收到|已阅|已读|明白[了啦]?|了解[了啦]?|知道[了啦]?|懂了|晓得了|清楚了|嗯+|哦+|噢+|喔+|啊+|哈+|呵+|嘿+|额+|呃+|唉+|哎+
     |对[的啊呀]?|是[的啊呀]|没错|不错|真棒|厉害|牛|赞|(?:太|真|很|非常)?(?:好|棒|赞|感谢|谢谢)[了啦你您]?|多?谢+[谢了啦你您]*|感谢[你您]?(?:的?(?:帮助|帮忙|支持|回复|配合))?|辛苦(?:你|您|大家)?[了啦]?|麻烦(?:你|您)?[了啦]|不客气|不用谢|客气了|拜拜|再见|回见|晚安|早安?|早上好|上午好|中午好|下午好|晚上好|你好|您好|大家好|哈喽|在吗|在的?|稍等|等一下|请稍候|继续|下一步|完成[了啦]?|搞定[了啦]?|ok[aey]*|okk+|k+
     |thanks?(?:\s(?:so\smuch|a\s(?:lot|bunch|ton|million)|again|very\smuch|for\s(?:the|your)\shelp|everyone|all|mate|man))?|thank\s(?:you|u)(?:\s(?:so\smuch|very\smuch|again|all|for\s(?:the|your)\s(?:help|reply|update)))?|thx+|ty+|tysm|cheers|much\sappreciated|appreciate\s(?:it|that)|i\sappreciate\sit
     |got\s(?:it|that)|gotcha|understood|noted|roger(?:\sthat)?|copy(?:\sthat)?|acknowledged|ack|will\sdo|sure(?:\sthing)?|of\scourse|certainly|absolutely|definitely|no\s(?:problem|worries)|np|sounds\s(?:good|great)|looks\sgood|lgtm|all\sgood|all\sset|makes\ssense|fine|great|perfect|awesome|nice|cool|excellent|good(?:\sjob|\swork|\sone)?|well\sdone|wonderful|amazing|alright|all\sright|right|yes|yeah|yep|yup|ya|no|nope|nah|hm+|uh+|um+|ah+|oh+|wow|lol|haha+|hehe+
     |hi+|hey+|hello+|hiya|good\s(?:morning|afternoon|evening|night|day)|bye+(?:\sbye)?|goodbye|see\s(?:you|ya)(?:\s(?:later|soon|tomorrow))?|later|cya|welcome|you'?re\swelcome|my\spleasure|please|pls|there|everyone|all|guys|so\smuch|very\smuch|again|then|it's|its|is|that|that's|now|done
     |heart[\s_-]*beat|keep[\s_-]*alive|ping|pong|health[\s_-]*check|healthz?|livez|readyz|status|alive|no[\s_-]*op|tick|test(?:ing)?|心跳|心跳检测|保活|测试(?:一下)?
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_STAMP = re.compile(
    r"\d{4}[-/]\d{1,2}[-/]\d{1,2}(?:[T ]\d{1,2}:\d{2}(?::\d{2})?(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2})?)?|\b\d{1,2}:\d{2}(?::\d{2})?\b|\b\d{10,13}\b",
    re.IGNORECASE,
)
_LONGEST = 200


def only_noise(text: str) -> bool:
    """True when `text` only greets, thanks, acknowledges or beats. Blank text is not noise but
    short. Texts over 200 code points are not looked at: they say something."""
    if not text or len(text) > _LONGEST:
        return False
    text = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").replace("_", " ")
    stamped = _STAMP.sub(" ", text)
    words = "".join(c if c.isalnum() or c in "' " else " " for c in stamped)
    at, seen = 0, False
    while at < len(words):
        if words[at] in " '":
            at += 1
            continue
        m = _longest(words, at)
        if m is None:
            return False
        at, seen = m, True
    return seen


def _longest(words: str, at: int) -> int | None:
    """End of the phrase at `at`; a Latin phrase must end where the word ends."""
    m = _PHRASES.match(words, at)
    while m:
        end = m.end()
        tail = words[end : end + 1]
        if not (words[end - 1].isascii() and tail.isascii() and tail.isalnum()):
            return end
        m = _PHRASES.fullmatch(words, at, end - 1) if end - 1 > at else None
    return None
