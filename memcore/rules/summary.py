"""The offline running summary: the most telling sentences of what left the window.

Pure: no I/O. Extractive, so that nothing can be invented: each line is a sentence somebody said,
marked with who said it. The same input gives the same summary. When it outgrows its budget the
least telling lines go, old before new at equal weight.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memcore.models import Message
from memcore.rules.tokens import estimate_tokens
from memcore.text import clean, normalise, shorten

DEFAULT_BUDGET = 400
LONGEST_LINE = 160

_SENTENCE = re.compile(r"[^。！？!?\n]+?(?:[。！？!?\n]+|\.(?=\s|$)|$)")
_TELLING = re.compile(
    r"\d|记住|决定|改成|改为|必须|不要|不能|喜欢|偏好|习惯|计划|截止|负责|因为|叫"
    r"|\b(?:remember|decided?|must|never|always|prefer|like|plan|deadline|because|agreed|is called"
    r"|my|we)\b",
    re.IGNORECASE,
)
_CHATTER = re.compile(
    r"^\W*(?:你好|您好|嗨|谢谢|多谢|好的|嗯+|哈+|再见"
    r"|hi|hello|hey|thanks?|thank you|ok(?:ay)?|bye|sure)\W*$",
    re.IGNORECASE,
)


def sentences(text: str) -> list[str]:
    """`text` cut at sentence ends and line breaks; a full stop inside a word or number is none."""
    return [s for part in _SENTENCE.findall(text) if (s := part.strip())]


def extend(summary: str, messages: Sequence[Message], budget: int = DEFAULT_BUDGET) -> str:
    """`summary` with the most telling sentences of `messages` added, within `budget` estimated
    tokens. Lines that are already there are not repeated; `[]` changes nothing."""
    lines = [line for line in summary.splitlines() if line.strip()]
    seen = {normalise(line) for line in lines}
    for message in messages:
        if message.role not in ("user", "assistant"):
            continue
        said = [s for s in sentences(clean(message.content)) if not _CHATTER.match(s)]
        # An agent's reply is mostly explanation: its first sentence stands for it.
        for sentence in said if message.role == "user" else said[:1]:
            line = f"{message.name or message.role}: {shorten(sentence, LONGEST_LINE)}"
            if (key := normalise(line)) not in seen:
                seen.add(key)
                lines.append(line)
    while lines and estimate_tokens("\n".join(lines)) > budget:
        lines.pop(min(range(len(lines)), key=lambda i: (_weight(lines[i]), i)))
    return "\n".join(lines)


def _weight(line: str) -> int:
    speaker, _, said = line.partition(": ")
    return (speaker != "assistant") + min(3, len(_TELLING.findall(said)))
