"""The demo's files as value objects: who is who, who said what, what was remembered when.

Ids are made of the files' keys; `day` counts back from today (0), so nothing of it is in the
future but what expires. Reads package files, nothing else.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from functools import cache
from importlib.resources import files
from typing import Any

from memcore.models import Memory, MemoryType, Role, Scope, Status, Subject, Visibility
from memcore.services.worlds import (
    World,
    WorldAgent,
    WorldChange,
    WorldConversation,
    WorldDecision,
    WorldLibrary,
    WorldMessage,
)
from memcore.text import content_hash

_SPACE = uuid.UUID("5d2f6c1e-0d1b-4b7e-9c57-6c616e746572")
HERE = files("memcore.demo")


def identity(kind: str, key: str) -> str:
    """The id of a thing of the demo, the same in every installation."""
    return str(uuid.uuid5(_SPACE, f"{kind}:{key}"))


def session_of(key: str) -> str:
    """The id of a conversation, readable because it is shown as a scope."""
    return f"demo-{key}"


@cache
def lines(name: str) -> tuple[dict[str, Any], ...]:
    """The objects of one JSON Lines file. Do not change them."""
    text = (HERE / name).read_text(encoding="utf-8")
    return tuple(json.loads(line) for line in text.splitlines() if line)


@cache
def cast() -> dict[str, Any]:
    """world.json: users, projects, libraries, agents."""
    loaded: dict[str, Any] = json.loads((HERE / "world.json").read_text(encoding="utf-8"))
    return loaded


def moment(now: datetime, day: int, clock: str) -> datetime:
    """That day and time (UTC), but never later than now."""
    hour, minute = map(int, clock.split(":"))
    then = datetime.combine(now.date() + timedelta(days=day), time(hour, minute), UTC)
    return min(then, now)


def clock_of(text: str) -> str:
    """A time of the working day, always the same for a text."""
    minute = int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) % (10 * 60)
    return f"{8 + minute // 60:02d}:{minute % 60:02d}"


def memories(now: datetime) -> Iterator[Memory]:
    for item in lines("memories.jsonl"):
        created = moment(now, item["day"], item["time"])
        status = Status(item.get("status", "active"))
        used = item.get("last_used")
        scope = Scope(item["scope"])
        session = session_of(item["session"]) if "session" in item else None
        place = {Scope.USER: item["user"], Scope.PROJECT: item.get("project")}.get(scope, session)
        yield Memory(
            id=identity("memory", item["key"]),
            content=item["content"],
            title="",
            tags=tuple(item["tags"]),
            memory_type=MemoryType(item["type"]),
            scope=scope,
            scope_id=place or "",
            confidence=item["confidence"],
            relevance=0.8,
            visibility=Visibility(item.get("visibility", "members")),
            status=status,
            library_id=identity("library", item["library"]),
            user_id=item["user"],
            created_by=item["user"],
            source="extraction" if "message" in item else "explicit",
            content_hash=content_hash(item["content"]),
            created_at=created,
            updated_at=created if status is Status.ACTIVE else _left(now, item),
            agent_id=identity("agent", item["agent"]),
            shared=item.get("shared", False),
            project_id=item.get("project"),
            conversation_id=session,
            source_message_id=(
                identity("message", f"{item['session']}#{item['message']}")
                if "message" in item
                else None
            ),
            superseded_by=(
                identity("memory", item["superseded_by"]) if "superseded_by" in item else None
            ),
            access_count=item.get("access_count", 0),
            last_used_at=max(moment(now, used, clock_of(item["key"])), created)
            if used is not None
            else None,
            expires_at=(
                datetime.combine(now.date() + timedelta(days=item["expires"]), time(20), UTC)
                if "expires" in item
                else None
            ),
        )


def _left(now: datetime, item: dict[str, Any]) -> datetime:
    """When a memory stopped being active: with its successor, else two days later."""
    if "superseded_by" in item:
        by = next(x for x in lines("memories.jsonl") if x["key"] == item["superseded_by"])
        return moment(now, by["day"], by["time"])
    return moment(now, min(item["day"] + 2, 0), item["time"])


def world(
    now: datetime, remembered: tuple[Memory, ...], decisions: tuple[WorldDecision, ...]
) -> World:
    """All of it. `remembered` are `memories(now)`; empty where only the ids matter."""
    people = cast()
    return World(
        users={u["id"]: u["name"] for u in people["users"]},
        projects={
            p["id"]: (p["name"], {user: Role(role) for user, role in p["members"].items()})
            for p in people["projects"]
        },
        libraries=tuple(
            WorldLibrary(
                identity("library", x["key"]),
                x["name"],
                x["description"],
                x["settings"],
                moment(now, x["day"], "09:00"),
            )
            for x in people["libraries"]
        ),
        agents=tuple(
            WorldAgent(
                identity("agent", a["key"]),
                a["name"],
                identity("library", a["library"]),
                a["short_term_memory_size"],
            )
            for a in people["agents"]
        ),
        conversations=tuple(_conversation(now, c) for c in lines("conversations.jsonl")),
        memories=remembered,
        decisions=decisions,
        changes=tuple(_changes(remembered)),
    )


def subject(item: dict[str, Any]) -> Subject:
    """Whose memory an item of the files is, or who asks."""
    return Subject(
        library_id=identity("library", item["library"]),
        user_id=item["user"],
        project_id=item.get("project"),
        session_id=session_of(item["session"]) if "session" in item else None,
        agent_id=identity("agent", item["agent"]),
    )


def _conversation(now: datetime, item: dict[str, Any]) -> WorldConversation:
    return WorldConversation(
        id=session_of(item["key"]),
        library_id=identity("library", item["library"]),
        agent_id=identity("agent", item["agent"]),
        user_id=item["user"],
        project_id=item["project"],
        title=item["title"],
        messages=tuple(
            WorldMessage(
                identity("message", f"{item['key']}#{i}"),
                m["role"],
                m["content"],
                moment(now, item["day"], m["time"]),
            )
            for i, m in enumerate(item["messages"])
        ),
    )


def _changes(remembered: tuple[Memory, ...]) -> Iterator[WorldChange]:
    for memory in remembered:
        if memory.status is Status.ACTIVE:
            continue
        yield WorldChange(
            at=memory.updated_at,
            actor=memory.user_id,
            action="supersede" if memory.status is Status.SUPERSEDED else "status",
            memory_id=memory.id,
            library_id=memory.library_id,
            batch_id=identity("batch", memory.id),
            before={"status": Status.ACTIVE, "superseded_by": None},
            after={"status": memory.status, "superseded_by": memory.superseded_by},
        )
