"""Memories out of the database as files. Every row goes through the one visibility predicate, page
by page, so that a large export holds one page in memory."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from memcore.models import Actor, Memory
from memcore.plain import plain
from memcore.services.memories import Filter, MemoryService

Form = Literal["jsonl", "csv"]

_PAGE = 1000
_MOST = 10_000_000
_COLUMNS = (
    "id", "title", "content", "memory_type", "tags", "scope", "scope_id", "status", "confidence",
    "visibility", "shared", "user_id", "project_id", "agent_id", "conversation_id", "category",
    "source", "source_id", "source_message_id", "superseded_by", "access_count", "last_used_at",
    "expires_at", "created_at", "updated_at", "created_by",
)  # fmt: skip
_FORMULA = re.compile(r"^[=+\-@\t\r]")


class TransferService:
    def __init__(self, memories: MemoryService) -> None:
        self._memories = memories

    def export(self, filter: Filter, *, actor: Actor, form: Form = "jsonl") -> Iterator[str]:
        """Lines of all memories that match and the actor may see, oldest first. jsonl: one object
        of a memory's own fields per line, which `import` reads back. csv: with a byte order mark,
        so that spreadsheets read Chinese, and with cells that would be formulas defused."""
        if form == "csv":
            yield "\ufeff" + _csv_line(_COLUMNS)
        # By a list of ids, so that rows written meanwhile neither repeat nor push others out.
        ids = self._memories.ids(filter, actor=actor, limit=_MOST)
        for start in range(0, len(ids), _PAGE):
            some = Filter(ids=tuple(ids[start : start + _PAGE]))
            page = self._memories.browse(some, actor=actor, sort="oldest", limit=_PAGE)
            for memory in page.memories:
                yield _json_line(memory) if form == "jsonl" else _csv_line(_cells(memory))


def file_name(library: str, form: Form, moment: datetime) -> str:
    """memcore_<library>_<time>.<form>, with only characters every file system takes."""
    safe = re.sub(r"[^\w\-]+", "-", library, flags=re.UNICODE).strip("-") or "library"
    return f"memcore_{safe[:60]}_{moment:%Y%m%d-%H%M}.{form}"


def _json_line(memory: Memory) -> str:
    return json.dumps(plain(memory), ensure_ascii=False) + "\n"


def _cells(memory: Memory) -> tuple[str, ...]:
    fields = plain(memory)
    out = []
    for name in _COLUMNS:
        value = fields[name]
        text = "; ".join(value) if isinstance(value, list) else "" if value is None else str(value)
        out.append("'" + text if isinstance(value, (str, list)) and _FORMULA.match(text) else text)
    return tuple(out)


def _csv_line(cells: tuple[str, ...]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\r\n").writerow(cells)
    return buffer.getvalue()
