"""Memories into files and out of them.

Export: every row goes through the one visibility predicate, page by page, so that a large export
holds one page in memory. Import: files say what was remembered, never who or whose; each record
goes through the gate like any draft, and is embedded with the library's own embedder.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from memcore.extraction import fields
from memcore.extraction.confidence import read_confidence
from memcore.models import Actor, Draft, Memory, Subject, Visibility
from memcore.plain import plain
from memcore.rules import files
from memcore.services.memories import Filter, MemoryService
from memcore.text import clean, content_hash

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


@dataclass(frozen=True, slots=True)
class NotImported:
    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of a file."""

    form: str
    encoding: str
    records: int
    stored: int
    """In a dry run: what would be judged."""
    refused: tuple[NotImported, ...]
    """By line."""
    notes: tuple[str, ...]
    """What was assumed for the whole file."""
    batch_id: str | None = None
    """Takes the import back by `memories.undo`; None where nothing was stored."""


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

    def import_file(
        self,
        data: bytes,
        name: str = "",
        *,
        subject: Subject,
        actor: Actor | None = None,
        dry_run: bool = False,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Imported:
        """Store the records of a file (rules/files says which forms) as memories of `subject`.
        Owner, author, id, status and vectors in the file are not taken over; its times are kept,
        one without a zone counts as UTC. A column of confidences that goes up to 100 is percent
        throughout. Raises InvalidInput for the file as a whole, and what `add_many` raises."""
        reading = files.read(data, name)
        scale = _confidence_scale(reading.records)
        refused = [NotImported(b.line, b.reason) for b in reading.bad]
        notes = ["Confidence was read as percent: 90 is 0.9."] if scale != 1 else []
        if any("user_id" in r.values or "created_by" in r.values for r in reading.records):
            notes.append(
                f"Owners named in the file are not taken over: all is {subject.user_id}'s."
            )
        if any(_VECTOR & set(r.values) for r in reading.records):
            notes.append("Vectors in the file are not taken over; texts are embedded again.")
        drafts: list[Draft] = []
        lines: list[int] = []
        now = datetime.now(UTC)
        naive = 0
        for record in reading.records:
            draft, reason, assumed_utc = _draft(record, scale, now)
            naive += assumed_utc
            if draft is None:
                refused.append(NotImported(record.line, reason))
            else:
                drafts.append(draft)
                lines.append(record.line)
        if naive:
            notes.append(f"{naive} times without a zone were read as UTC.")
        stored = len(drafts)
        batch = str(uuid.uuid4())
        if not dry_run:
            stored = 0
            line_of: dict[str, int] = {}
            first_with: dict[str, int] = {}
            judged = self._memories.add_many(
                drafts, subject=subject, actor=actor, progress=progress, batch_id=batch
            )
            for line, draft, result in zip(lines, drafts, judged, strict=True):
                said_in = first_with.setdefault(content_hash(clean(draft.content)), line)
                if result.memory is not None:
                    stored += 1
                    line_of[result.memory.id] = line
                    continue
                reason = result.refused
                if verdict := result.verdict:
                    reason = next(c.note for c in verdict.checks if c.name == verdict.blocked_by)
                    first = line_of.get(verdict.matched_id or "")
                    if first is None and said_in != line:
                        first = said_in
                    if first is not None:
                        reason = f"The same is said in line {first}. {reason}"
                refused.append(NotImported(line, reason))
        refused.sort(key=lambda r: r.line)
        return Imported(
            reading.form, reading.encoding, len(reading.records) + len(reading.bad), stored,
            tuple(refused), tuple(notes), None if dry_run or not stored else batch,
        )  # fmt: skip


_VECTOR = {"vector", "embedding", "embeddings"}
_TIMES = ("created_at", "createdat", "timestamp", "time", "date", "创建时间", "时间", "日期")
_EXPIRY = ("expires_at", "expiry", "expiration", "过期时间")
_VISIBILITY = ("visibility", "可见范围")
_CATEGORY = ("category", "分类")
_ATTRIBUTES = ("attributes", "metadata", "属性")


def _confidence_scale(records: Sequence[files.Record]) -> float:
    """100 where the whole column is percent: whole numbers, some above 1, none above 100."""
    seen = []
    for record in records:
        value = fields.pick(record.values, fields.CONFIDENCE_KEYS)
        try:
            seen.append(float(value))
        except (TypeError, ValueError):
            continue
    whole = all(v.is_integer() and 0 <= v <= 100 for v in seen)
    return 100.0 if seen and whole and max(seen) > 1 else 1.0


def _draft(record: files.Record, scale: float, now: datetime) -> tuple[Draft | None, str, bool]:
    """(draft, why there is none, whether a time without a zone was read as UTC)."""
    values = {k: _undefused(v) for k, v in record.values.items()}
    status = str(values.get("status") or "active").strip().lower()
    if status != "active":
        return None, f"Its status is {status[:40]}; only active memories are imported.", False
    content = fields.pick(values, fields.CONTENT_KEYS)
    if not isinstance(content, str) or not clean(content):
        known = ", ".join(map(str, list(values)[:8]))
        return None, f"It has no content. Its fields: {known[:200]}.", False
    raw = fields.pick(values, fields.CONFIDENCE_KEYS)
    if scale != 1 and raw is not None:
        with contextlib.suppress(TypeError, ValueError):
            raw = float(raw) / scale
    confidence, reason = read_confidence(raw)
    if confidence is None:
        return None, f"Its {reason}.", False
    created, naive, reason = _moment(fields.pick(values, _TIMES))
    if reason:
        return None, reason, False
    expires, naive_too, reason = _moment(fields.pick(values, _EXPIRY))
    if reason:
        return None, reason, False
    wanted = str(fields.pick(values, _VISIBILITY) or "").strip().lower()
    attributes = fields.pick(values, _ATTRIBUTES)
    title = fields.pick(values, fields.TITLE_KEYS)
    draft = Draft(
        content=content,
        memory_type=fields.read_type(fields.pick(values, fields.TYPE_KEYS))[0],
        scope=fields.read_scope(fields.pick(values, fields.SCOPE_KEYS))[0],
        confidence=confidence,
        title=title if isinstance(title, str) else "",
        tags=fields.read_tags(fields.pick(values, fields.TAG_KEYS)),
        category=str(fields.pick(values, _CATEGORY) or ""),
        visibility=Visibility(wanted) if wanted in set(Visibility) else Visibility.MEMBERS,
        source="import",
        source_id=str(values["id"]) if values.get("id") else None,
        expires_at=expires,
        created_at=created,
        attributes={
            **(attributes if isinstance(attributes, Mapping) else {}),
            "imported_at": now.isoformat(),
        },
    )
    return draft, "", naive or naive_too


def _moment(value: Any) -> tuple[datetime | None, bool, str]:
    """(aware moment, whether its zone was assumed, why it cannot be read)."""
    if value is None:
        return None, False, ""
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            if not math.isfinite(value):
                raise ValueError
            # Milliseconds since 1970 are thirteen digits.
            return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC), False, ""
        moment = datetime.fromisoformat(str(value).strip().replace("/", "-"))
    except (ValueError, OverflowError, OSError):
        return None, False, f"{str(value)[:40]!r} is no time; write it like 2026-05-01T08:00:00Z."
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC), True, ""
    return moment.astimezone(UTC), False, ""


def _undefused(value: Any) -> Any:
    """A cell as it was before `export` kept a spreadsheet from taking it for a formula."""
    if isinstance(value, str) and value[:1] == "'" and _FORMULA.match(value[1:]):
        return value[1:]
    return value


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
