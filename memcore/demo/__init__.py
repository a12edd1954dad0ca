"""The demo world: three weeks of a small team that builds a reservation app for bookshops.

Six people, two projects, two libraries, four agents, fifteen conversations, about 300 memories,
more than half of them in Chinese. Decisions change (React Native gives way to the web, two days of
hold become three), one rule is contested, some things expired, were archived or suppressed, some
are their owner's alone. The agents of one library keep apart, those of the other share.

Texts and figures are JSON Lines beside this file. Vectors of the default embedder are shipped,
because making them would take half a minute; other embedders make them live.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from memcore.demo import story
from memcore.demo.judging import Judge
from memcore.embeddings import Embedder, Vectors, calibrated_for, open_embedder
from memcore.models import SearchResult, Subject
from memcore.rules import ranking
from memcore.settings import GateSettings, resolve

if TYPE_CHECKING:
    from memcore.core import Core

_BATCH = 32
LIBRARY = story.identity("library", "lantern-team")
"""Id of the library a presenter starts with."""


@dataclass(frozen=True, slots=True)
class Loaded:
    library_id: str
    """Of the library a presenter starts with."""
    memories: int
    already: bool
    """True: it was there, and nothing was done."""


def load(
    core: Core,
    *,
    embedder: str = "local",
    today: datetime | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Loaded:
    """Put the demo world in; does nothing where it is in already. `today` is the last day of the
    story (default: now). `progress` is told texts done and total while vectors are made. Raises
    Conflict where a library or agent of that name is someone else's, and what the embedder
    raises."""
    now = today or datetime.now(UTC)
    libraries = {
        story.identity("library", item["key"]): item["settings"]
        for item in story.cast()["libraries"]
    }
    first = next(iter(libraries))
    if core.worlds.holds(list(libraries)):
        return Loaded(first, 0, True)
    opened = open_embedder(embedder)
    memories = tuple(story.memories(now))
    drafts = story.lines("drafts.jsonl")
    made = _vectors(opened, [*(m.content for m in memories), *(d["content"] for d in drafts)],
                    progress)  # fmt: skip
    vectors = {m.id: v for m, v in zip(memories, made, strict=False)}
    judge = Judge(memories, vectors, {i: _gate(core, s, opened) for i, s in libraries.items()})
    decisions = [judge.accepted(memory) for memory in memories]
    for draft, vector in zip(drafts, made[len(memories) :], strict=True):
        at = story.moment(now, draft["day"], story.clock_of(draft["content"]))
        decisions.append(judge.rejected(draft, story.subject(draft), vector, at))
    decisions.sort(key=lambda d: d.at)
    core.worlds.put(
        story.world(now, memories, tuple(decisions)),
        vectors,
        embedder=opened.name,
        dimensions=opened.dimensions,
    )
    core.libraries.forget()
    core.worlds.recalled(list(_recalls(core, now)))
    return Loaded(first, len(memories), False)


def remove(core: Core) -> int:
    """Take the demo world out; returns how many memories went. Other libraries are not touched."""
    gone = core.worlds.remove(story.world(datetime.now(UTC), (), ()))
    core.libraries.forget()
    return gone


def _recalls(core: Core, now: datetime) -> Iterator[tuple[Subject, SearchResult, datetime]]:
    """What the agents asked, oldest first, answered by what was remembered at that moment."""
    asked = sorted(story.lines("queries.jsonl"), key=lambda q: (q["day"], q["time"]))
    for item in asked:
        at = story.moment(now, item["day"], item["time"])
        subject = story.subject(item)
        found = core.memories.recall(item["query"], subject=subject)
        then = tuple(c for c in found.candidates if c.memory.created_at < at)
        ranked = ranking.rank(then, found.ranking, now=at)
        yield (
            subject,
            replace(found, candidates=then, hits=ranked.hits, dropped=ranked.dropped,
                    stages={"searched": len(then), **ranked.stages}),
            at,
        )  # fmt: skip


def _gate(core: Core, overrides: dict[str, Any], embedder: Embedder) -> GateSettings:
    return resolve(
        overrides,
        environment=core.runtime.environment,
        calibrated=calibrated_for(embedder.name),
    ).settings.gate


# ---- vectors -------------------------------------------------------------------------------------


def _vectors(
    embedder: Embedder, texts: Sequence[str], progress: Callable[[int, int], None]
) -> list[Vectors]:
    """One vector per text: shipped ones where they were made of exactly this text by exactly this
    embedder, the rest made now."""
    shipped = _shipped(embedder)
    known = {text: shipped[_key(text)] for text in texts if _key(text) in shipped}
    missing = [text for text in dict.fromkeys(texts) if text not in known]
    for start in range(0, len(missing), _BATCH):
        part = missing[start : start + _BATCH]
        known.update(zip(part, embedder.embed_documents(part), strict=True))
        progress(start + len(part), len(missing))
    return [known[text] for text in texts]


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _shipped(embedder: Embedder) -> dict[str, Vectors]:
    """SHA-256 of a text → its vector, from the file of this embedder; empty where there is none or
    it does not fit. Checked, because a vector of another text would make recall lie."""
    file = story.HERE / (embedder.name.replace(":", "-") + ".npz")
    if not file.is_file():
        return {}
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
        vectors = stored["vectors"].astype(np.float32)
        keys = [bytes(row).hex() for row in stored["keys"]]
    if vectors.ndim != 2 or vectors.shape[1] != embedder.dimensions or len(keys) != len(vectors):
        return {}
    if not np.isfinite(vectors).all():
        return {}
    return dict(zip(keys, vectors, strict=True))


def to_ship(embedder: Embedder) -> dict[str, Any]:
    """The arrays of the shipped file of `embedder`: keys (n, 32) uint8, the SHA-256 of each text;
    vectors (n, dimensions) float16. For `np.savez_compressed` whenever the texts change."""
    files = ("memories.jsonl", "drafts.jsonl")
    texts = list(dict.fromkeys(item["content"] for name in files for item in story.lines(name)))
    keys = np.array([list(bytes.fromhex(_key(text))) for text in texts], dtype=np.uint8)
    return {"keys": keys, "vectors": embedder.embed_documents(texts).astype(np.float16)}
