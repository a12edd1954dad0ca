# ruff: noqa: E501
"""One visible rule for each field of an item a model sends. Pure: no I/O.

| field | rule |
|---|---|
| content | text, cleaned; a placeholder, a refusal or no text at all is skipped |
| type | the ten names in any spelling, and the aliases of `TYPE_ALIASES`; else fact, with a note |
| confidence | see `memcore/extraction/confidence.py` |
| scope | the three names and the aliases of `SCOPE_ALIASES`; else user |
| title | text, at most 80 characters; else the start of the content |
| tags | a list, or text cut at commas; at most 8, each at most 40 characters, no repeats |

A rule never raises for what it is given, and says what it assumed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from memcore.models import MemoryType, Scope
from memcore.text import clean, shorten

MOST_TAGS = 8

CONTENT_KEYS = (
    "content", "text", "memory", "fact", "statement", "sentence", "memory_content", "memory_text",
    "内容", "记忆", "记忆内容", "事实", "陈述", "observation", "description", "summary", "value",
)  # fmt: skip
TYPE_KEYS = (
    "type",
    "memory_type",
    "memorytype",
    "category",
    "kind",
    "label",
    "类型",
    "类别",
    "分类",
)
CONFIDENCE_KEYS = (
    "confidence",
    "score",
    "certainty",
    "probability",
    "置信度",
    "可信度",
    "confidence_score",
)
SCOPE_KEYS = ("scope", "level", "作用域", "范围")
TITLE_KEYS = ("title", "name", "headline", "标题", "topic")
TAG_KEYS = ("tags", "keywords", "labels", "标签", "关键词")
EVIDENCE_KEYS = ("evidence", "source_turn", "turn", "source", "quote", "evidence_turn", "turn_id",
                 "message_id", "依据", "来源", "原文")  # fmt: skip
ACTION_KEYS = ("action", "event", "operation", "op", "操作")
TARGET_KEYS = ("id", "memory_id", "target", "target_id", "update_id", "replaces")

TYPE_ALIASES: Mapping[str, MemoryType] = {
    **dict.fromkeys(
        ("preference", "prefer", "like", "dislike", "taste", "interest", "偏好", "喜好", "喜欢", "爱好"),
        MemoryType.PREFERENCE,
    ),
    **dict.fromkeys(
        ("fact", "personal", "personalinfo", "profile", "biographical", "identity", "knowledge",
         "info", "information", "semantic", "事实", "个人信息", "信息", "身份", "基本信息"),
        MemoryType.FACT,
    ),
    **dict.fromkeys(
        ("skill", "ability", "expertise", "competence", "capability", "技能", "能力", "专长"),
        MemoryType.SKILL,
    ),
    **dict.fromkeys(
        ("habit", "routine", "behavior", "behaviour", "procedural", "习惯", "惯例", "行为"),
        MemoryType.HABIT,
    ),
    **dict.fromkeys(
        ("event", "plan", "appointment", "schedule", "episodic", "experience", "事件", "计划",
         "日程", "经历", "安排"),
        MemoryType.EVENT,
    ),
    **dict.fromkeys(
        ("context", "background", "situation", "上下文", "背景", "情境"), MemoryType.CONTEXT
    ),
    **dict.fromkeys(
        ("constraint", "rule", "requirement", "restriction", "limit", "limitation", "policy",
         "约束", "限制", "规则", "规范", "要求"),
        MemoryType.CONSTRAINT,
    ),
    **dict.fromkeys(
        ("decision", "choice", "agreement", "conclusion", "决策", "决定", "结论", "选择"),
        MemoryType.DECISION,
    ),
    **dict.fromkeys(
        ("taskprogress", "progress", "task", "todo", "taskstatus", "milestone", "任务进度", "进度",
         "任务", "进展", "待办"),
        MemoryType.TASK_PROGRESS,
    ),
    **dict.fromkeys(
        ("reference", "link", "url", "resource", "document", "参考", "引用", "资料", "链接", "文档"),
        MemoryType.REFERENCE,
    ),
}  # fmt: skip
SCOPE_ALIASES: Mapping[str, Scope] = {
    **dict.fromkeys(("session", "conversation", "chat", "会话", "对话", "本次"), Scope.SESSION),
    **dict.fromkeys(("project", "team", "workspace", "项目", "团队"), Scope.PROJECT),
    **dict.fromkeys(("user", "personal", "global", "person", "用户", "个人", "全局"), Scope.USER),
}
_PLACEHOLDERS = frozenset(
    """string text content str value n/a na none null nil undefined unknown example todo tbd memory
    fact statement placeholder lorem 无 暂无 没有 空 未知 不详 示例 例子 内容 记忆 占位 一句话 字符串""".split()
)
_REFUSED = (
    r"^\W*(?:非常|很|真的)?(?:抱歉|对不起|不好意思|很遗憾)"
    r"|^\W*(?:i['’]?m|i am|we['’]?re|we are)? ?(?:very |so )?(?:sorry|afraid)\b"
    r"|^\W*(?:as an? (?:ai|language model)|作为(?:一个|一名)?(?:ai|人工智能|语言模型))"
    r"|(?:无法|不能|没法|难以)(?:从[^。]{0,24})?(?:提取|抽取)"
    r"|\b(?:cannot|can['’]?t|can not|unable to|not able to|won['’]?t) (?:\w+ )?(?:extract|assist|comply)\b"
    r"|(?:not enough|insufficient) (?:\w+ )?(?:information|context|content)\b"
    r"|^\W*(?:there (?:is|are|were) )?no (?:new |relevant |useful )?(?:memories|facts|information)"
    r"(?: (?:to|was|were|found)\b|\W*$)"
    r"|没有(?:足够|可供?|需要|值得|任何|发现)[^。]{0,10}(?:信息|记忆|提取|记住|保存)"
    r"|请(?:您)?提供更多|please provide (?:more|the|additional)"
)
REFUSED_ITEM = re.compile(_REFUSED, re.IGNORECASE)
"""A refusal that was filled in as content."""
REFUSAL = re.compile(
    rf"{_REFUSED}|(?:无法|不能|没法)(?:协助|满足|完成|处理|帮助|提供)|(?:信息|内容|上下文)(?:不足|不够)"
    r"|\b(?:cannot|can['’]?t|can not|unable to|not able to|won['’]?t) (?:\w+ ){0,2}"
    r"(?:help|fulfil|provide|process|do (?:that|this)|determine|identify|continue)\b",
    re.IGNORECASE,
)
"""A refusal that came instead of a payload."""


def pick(item: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """The first of `keys` that `item` has with a value, however it is spelled; else None."""
    folded = {str(k).strip().casefold().replace("-", "_").replace(" ", "_"): k for k in item}
    for key in keys:
        if key in folded and item[folded[key]] not in (None, ""):
            return item[folded[key]]
    return None


def read_content(value: Any) -> tuple[str, str]:
    """(text, reason it is unusable); one of the two is empty."""
    if isinstance(value, Mapping):
        value = pick(value, CONTENT_KEYS)
    if isinstance(value, list) and value and all(isinstance(v, str) for v in value):
        value = "\n".join(value)
    if value is None:
        return "", "no_content"
    if not isinstance(value, str):
        return "", "content_is_no_text"
    text = clean(value)
    if len(text) > 1 and text[0] in "\"'“「" and text[-1] in "\"'”」" and text.count(text[0]) <= 2:
        # Quotes around the whole belong to the writing down, not to what was said.
        text = text[1:-1].strip() if text[-1] not in text[1:-1] else text
    if text and re.fullmatch(r"[.…_*<>\s-]+", text):
        return "", "placeholder"
    if not text or not any(c.isalnum() for c in text):
        return "", "no_content"
    bare = text.casefold().strip("<>[](){}【】「」\"'`.。…:：# ")
    numbered = re.fullmatch(
        r"(?:memory|item|fact|statement|sentence|记忆|条目|事实|内容)\s*\d+", bare
    )
    if (
        bare in _PLACEHOLDERS
        or numbered
        or (text[0] in "<[【{" and text[-1] in ">]】}" and len(text) < 40)
    ):
        return "", "placeholder"
    if (
        len(text) < 160
        and REFUSED_ITEM.search(text)
        and not re.search(r"用户|\buser\b", text, re.IGNORECASE)
    ):
        return "", "refusal_text"
    return text, ""


def read_type(value: Any, hint: MemoryType | None = None) -> tuple[MemoryType, str]:
    """(type, what was assumed). `hint`: what the list it stood in was called."""
    if isinstance(value, (list, tuple)):
        value = next((v for v in value if as_type(v)), value[0] if value else None)
    if value is None or (isinstance(value, str) and not value.strip()):
        return hint or MemoryType.FACT, "" if hint else "no type given: fact"
    if found := as_type(value):
        return found, ""
    parts = re.split(r"[|/,、，;；]|\bor\b", str(value))
    if found := next((t for p in parts if (t := as_type(p))), None):
        return found, f"type {shorten(str(value), 40)!r} read as {found}"
    return hint or MemoryType.FACT, f"type {shorten(str(value), 40)!r} is unknown: fact"


def as_type(value: Any) -> MemoryType | None:
    """The type a word names in any spelling; None when it names none."""
    if not isinstance(value, str):
        return None
    word = unicodedata.normalize("NFKC", value).strip().casefold()
    word = word.rpartition(".")[2] if re.fullmatch(r"[\w.]+", word) else word
    word = re.sub(r"[\W_]", "", word)
    for form in (word, word.removesuffix("类型"), word.removesuffix("类"), word.removesuffix("型"),
                 word.removeprefix("用户"), word.removeprefix("user"), word.removesuffix("memory"),
                 word.removesuffix("s"), word.removesuffix("ies") + "y"):  # fmt: skip
        if form in TYPE_ALIASES:
            return TYPE_ALIASES[form]
    return None


def read_scope(value: Any) -> tuple[Scope, str]:
    if value is None or not isinstance(value, str):
        return Scope.USER, ""
    word = unicodedata.normalize("NFKC", value).strip().casefold().rpartition(".")[2]
    word = word.removesuffix("级").removesuffix("_level").removesuffix("-level").strip()
    if word in SCOPE_ALIASES:
        return SCOPE_ALIASES[word], ""
    return Scope.USER, f"scope {shorten(value, 40)!r} is unknown: user"


def read_title(value: Any, content: str) -> str:
    title = clean(value) if isinstance(value, str) else ""
    return shorten(title or content, 80 if title else 40)


def read_tags(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = re.split(r"[,，、;；|\n]", value)
    elif isinstance(value, Mapping):
        value = list(value)
    if not isinstance(value, (list, tuple)):
        return ()
    # Only text and whole numbers can name something; anything nested is no tag.
    words = [clean(str(v)).strip("#\"' ") for v in value if isinstance(v, (str, int))]
    unique = {w.casefold(): shorten(w, 40) for w in reversed(words) if w and len(w) <= 200}
    return tuple(reversed(unique.values()))[:MOST_TAGS]
