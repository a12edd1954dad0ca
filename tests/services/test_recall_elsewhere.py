"""A recall whose vectors live in another store gives what one in the database gives."""

from __future__ import annotations

from typing import Any

import pytest

from memcore.core import Core
from memcore.models import Library, Subject
from tests.services.test_recall import put

WORDS = [
    "tea",
    "jasmine tea",
    "a tea garden",
    "rowing at dawn",
    "night trains",
    "茶馆在河边",
    "绿茶",
]


@pytest.fixture
def moved(core: Core, library: Library) -> tuple[Library, Library]:
    """The same memories twice: vectors in the database, vectors in this process's memory."""
    other = core.libraries.create("elsewhere", embedder="hash:64")
    for here in (library, other):
        for i in range(40):
            text = f"{WORDS[i % len(WORDS)]} {i}"
            put(core, here, text, confidence=0.5 + i / 100, content_hash=text)
            put(core, here, f"theirs: {text}", user_id="u2", content_hash="2" + text)
    store = core.stores.create("ram", kind="memory")
    core.runtime.jobs.wait(core.stores.move(other, store.id).id, 30)
    core.libraries.forget()
    return library, core.libraries.get(other.id)


@pytest.mark.parametrize("mode", ["hybrid", "vector", "keyword"])
@pytest.mark.parametrize("query", ["jasmine tea", "绿茶", "trains at night"])
def test_order_and_scores_are_the_same(
    core: Core, moved: tuple[Library, Library], mode: Any, query: str
) -> None:
    here, there = (
        core.memories.recall(query, subject=Subject(x.id, "u1"), mode=mode, k=10) for x in moved
    )
    assert moved[1].vector_store != "pgvector"
    assert [h.memory.content for h in here.hits] == [h.memory.content for h in there.hits]
    assert [h.score for h in here.hits] == pytest.approx([h.score for h in there.hits], abs=1e-6)
    assert all(h.memory.user_id == "u1" for h in there.hits)
