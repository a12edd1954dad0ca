# ruff: noqa: E501 — Chinese characters count twice
"""Texts that carry nothing to remember: greetings, thanks, acknowledgements, heartbeats.

Pure: no I/O. A text is noise only when nothing is left of it once such phrases, time stamps,
punctuation and emoji are taken out; one word of substance makes it a statement. The gate's length
check then counts no meaningful character.
"""

from __future__ import annotations

import re
import unicodedata

_ENGLISH = """
ok, okay, okey, k, kk, thanks, thank, thx, ty, tysm, cheers, much appreciated, appreciate it,
appreciate that, i appreciate it, got it, got that, gotcha, understood, noted, roger, roger that,
copy, copy that, acknowledged, ack, will do, sure, sure thing, of course, certainly, absolutely,
definitely, no problem, no worries, np, sounds good, sounds great, looks good, lgtm, all good,
all set, makes sense, fine, great, perfect, awesome, nice, cool, excellent, good, good job,
good work, good one, well done, wonderful, amazing, alright, all right, right, yes, yeah, yep, yup,
ya, no, nope, nah, hm, hmm, uh, um, ah, oh, wow, lol, haha, hehe, hi, hey, hello, hiya,
good morning, good afternoon, good evening, good night, good day, bye, goodbye, see you, see ya,
see you later, see you soon, see you tomorrow, later, cya, welcome, you're welcome, youre welcome,
my pleasure, please, pls, there, everyone, all, guys, so much, very much, again, then, it's, its,
that, that's, now, done, a lot, a bunch, a ton, a million, you, u, for your help, for the help,
for your reply, for the reply, for the update, mate, man, heartbeat, heart beat, keepalive,
keep alive, ping, pong, health check, healthcheck, healthz, livez, readyz, status, alive, noop,
no op, tick, test, testing
"""
_CHINESE = """
好, 好的, 好哒, 好嘞, 好呀, 好啊, 好吧, 好滴, 行, 行的, 行吧, 可以, 可以的, 没问题, 没事, 没事儿, 没关系, 收到,
已阅, 已读, 明白, 明白了, 明白啦, 了解, 了解了, 知道, 知道了, 知道啦, 懂了, 晓得了, 清楚了, 嗯, 哦, 噢, 喔, 啊, 哈,
呵, 嘿, 额, 呃, 唉, 哎, 对, 对的, 对啊, 对呀, 是, 是的, 是啊, 是呀, 没错, 不错, 真棒, 厉害, 牛, 赞, 太好了, 太棒了,
太赞了, 真好, 很好, 很棒, 非常好, 非常棒, 谢谢, 谢谢你, 谢谢您, 多谢, 多谢啦, 谢啦, 谢了, 非常感谢, 太感谢了, 感谢,
感谢你, 感谢您, 的帮助, 的帮忙, 的支持, 的回复, 帮助, 支持, 配合, 辛苦, 辛苦了, 辛苦啦, 你辛苦了, 您辛苦了, 大家辛苦了,
麻烦你了, 麻烦您了, 麻烦了, 不客气, 不用谢, 客气了, 拜拜, 再见, 回见, 晚安, 早, 早安, 早上好, 上午好, 中午好, 下午好,
晚上好, 你好, 您好, 大家好, 哈喽, 在吗, 在, 在的, 稍等, 等一下, 请稍候, 继续, 下一步, 完成, 完成了, 完成啦, 搞定, 搞定了,
搞定啦, 心跳, 心跳检测, 保活, 测试, 测试一下, 了, 啦, 的, 呀, 哈哈
"""


def _any_of(listed: str) -> str:
    words = {w.strip() for w in listed.replace("\n", " ").split(",") if w.strip()}
    longest_first = sorted(words, key=lambda w: (-len(w), w))
    return "|".join(re.escape(w).replace(r"\ ", r"\s+") for w in longest_first)


_PHRASE = re.compile(rf"(?:{_any_of(_ENGLISH)})(?![a-z0-9'])|(?:{_any_of(_CHINESE)})")
_STAMP = re.compile(
    r"\d{4}[-/]\d{1,2}[-/]\d{1,2}"
    r"(?:[t ]\d{1,2}:\d{2}(?::\d{2})?(?:\.\d+)?(?:z|[+-]\d{2}:?\d{2})?)?"
    r"|\b\d{1,2}:\d{2}(?::\d{2})?\b|\b\d{10,13}\b"
)
_STRETCHED = re.compile(r"([a-z])\1{2,}")
_LONGEST = 200


def only_noise(text: str) -> bool:
    """True when `text` only greets, thanks, acknowledges or beats. Blank text is not noise but
    short. Texts over 200 code points are not looked at: they say something."""
    if not text or len(text) > _LONGEST:
        return False
    text = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").replace("_", " ")
    text = _STRETCHED.sub(r"\1", _STAMP.sub(" ", text))
    words = "".join(c if c.isalnum() or c == "'" else " " for c in text).replace(" '", " ")
    at, seen = 0, False
    while at < len(words):
        if words[at] in " '":
            at += 1
        elif m := _PHRASE.match(words, at):
            at, seen = m.end(), True
        else:
            return False
    return seen
