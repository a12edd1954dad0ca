# ruff: noqa: E501
"""Pairs of words of which a thing can have only one at a time. Pure: no I/O."""

from __future__ import annotations

import re
from functools import lru_cache

_PAIRS = """
深色 浅色; 深色 亮色; 暗色 亮色; 黑色 白色; 允许 禁止; 支持 反对; 同意 反对; 喜欢 讨厌; 喜欢 厌恶; 爱 恨; 启用 禁用; 启用 停用; 开启 关闭; 打开 关闭; 开 关;
可以 禁止; 必须 禁止; 必须 可选; 公开 私有; 公开 保密; 远程 现场; 线上 线下; 同步 异步; 手动 自动; 左 右; 前 后; 上升 下降; 增加 减少; 提高 降低; 通过 失败; 成功 失败; 完成 未完成;
单身 已婚; 男 女; 早起 晚起; 早 晚; 上午 下午; 详细 简短; 详细 简洁; 冗长 简洁; 长 短; 大 小; 多 少; 高 低; 快 慢; 热 冷; 甜 咸; 素食 吃肉; 中文 英文; 内部 外部; 升序 降序; 在职 离职; 有效 失效; 在线 离线;
乐观 悲观; 严格 宽松; 正式 非正式; 免费 收费; 总是 从不; 全职 兼职; 长期 短期; 国内 国外; 空格 制表符; 接受 拒绝; 保留 删除; 合并 拆分; 已付 未付; 稳定 不稳定; 主动 被动
dark light; allow forbid; allowed forbidden; like hate; likes hates; like dislike; likes dislikes; love hate; loves hates; enable disable; enabled disabled; on off; open closed; opened closed; public private;
remote onsite; remote on-site; remote office; sync async; synchronous asynchronous; manual automatic; manually automatically; left right; before after; increase decrease; raise lower; pass fail; passed failed;
success failure; single married; male female; early late; morning evening; detailed brief; verbose concise; long short; large small; high low; fast slow; hot cold; vegetarian carnivore; internal external;
ascending descending; online offline; optimistic pessimistic; strict lenient; formal informal; free paid; always never; full-time part-time; tabs spaces; accept reject; accepts rejects; keep delete; required optional;
mandatory optional; supports opposes; support oppose; agree disagree; agrees disagrees; start stop; true false; yes no; win lose; buy sell; approve reject; approved rejected; merge split; stable unstable; introvert extrovert
"""  # fmt: skip


def _partners() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for pair in _PAIRS.replace("\n", ";").split(";"):
        if pair.strip():
            a, b = pair.split()
            found.setdefault(a, set()).add(b)
            found.setdefault(b, set()).add(a)
    return {word: frozenset(others) for word, others in found.items()}


_PARTNERS = _partners()
_WORD = re.compile(
    "|".join(
        rf"(?<![a-z-]){re.escape(w)}(?![a-z-])" if w.isascii() else re.escape(w)
        for w in sorted(_PARTNERS, key=len, reverse=True)
        # One Chinese character is part of too many words.
        if w.isascii() or len(w) > 1
    )
)


def opposite(a: str, b: str) -> tuple[str, str] | None:
    """A word of `a` and its opposite in `b`, where neither text has both; None without. Texts in
    lower case."""
    mine, theirs = _words(a), _words(b)
    for word in sorted(mine - theirs):
        for other in sorted(_PARTNERS[word] & (theirs - mine)):
            return word, other
    return None


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text))
