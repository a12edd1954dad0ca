"""The demo's gate log: the real rules, on facts gathered from the files instead of the database.

Each draft is judged against what lived in its scope at that moment. Pure but for the vectors it is
handed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np

from memcore.embeddings import Vectors
from memcore.models import (
    Draft,
    Facts,
    Memory,
    MemoryType,
    Neighbour,
    Scope,
    Status,
    Subject,
    Verdict,
)
from memcore.rules import duplicates, gate, sensitive
from memcore.services.worlds import WorldDecision
from memcore.settings import GateSettings
from memcore.text import content_hash

_NEIGHBOURS = 5


class Judge:
    def __init__(
        self,
        memories: Sequence[Memory],
        vectors: Mapping[str, Vectors],
        settings: Mapping[str, GateSettings],
    ) -> None:
        """`vectors`: memory id → vector; `settings`: library id → the gate's."""
        self._memories = memories
        self._units = {i: v / (np.linalg.norm(v) or 1.0) for i, v in vectors.items()}
        self._settings = settings

    def accepted(self, memory: Memory) -> WorldDecision:
        """The decision that let `memory` in."""
        draft = Draft(
            memory.content, memory.memory_type, memory.scope, memory.confidence,
            tags=memory.tags, visibility=memory.visibility, shared=memory.shared,
            source=memory.source, source_message_id=memory.source_message_id,
        )  # fmt: skip
        who = Subject(
            memory.library_id, memory.user_id, memory.project_id, memory.conversation_id,
            memory.agent_id,
        )  # fmt: skip
        settings = self._settings[memory.library_id]
        facts = self._facts(draft, who, memory.scope_id, self._units[memory.id], memory.created_at)
        verdict = gate.judge(draft, facts, settings)
        replaced = [m.id for m in self._memories if m.superseded_by == memory.id]
        while not verdict.accepted or (verdict.matched_id and verdict.matched_id not in replaced):
            # Here a person let it in, or said what it replaces. The log keeps what the gate knew of
            # the rest, so that a replay comes to the same verdict.
            matched = verdict.matched_id
            known = tuple(n for n in facts.neighbours or () if n.memory_id != matched)
            if len(known) == len(facts.neighbours or ()):
                break
            facts = replace(facts, neighbours=known)
            verdict = gate.judge(draft, facts, settings)
        return _decision(draft, who, facts, settings, verdict, memory.created_at, memory.id)

    def rejected(
        self, item: Mapping[str, Any], who: Subject, vector: Vectors, at: datetime
    ) -> WorldDecision:
        """The decision on a draft of drafts.jsonl."""
        draft = Draft(
            item["content"], MemoryType(item["type"]), Scope(item["scope"]), item["confidence"],
            source="extraction" if who.session_id else "explicit",
        )  # fmt: skip
        place = {Scope.USER: who.user_id, Scope.PROJECT: who.project_id}.get(
            draft.scope, who.session_id
        )
        settings = self._settings[who.library_id]
        unit = vector / (np.linalg.norm(vector) or 1.0)
        facts = self._facts(draft, who, place or "", unit, at)
        verdict = gate.judge(draft, facts, settings)
        return _decision(draft, who, facts, settings, verdict, at, None)

    def _facts(self, draft: Draft, who: Subject, place: str, unit: Vectors, at: datetime) -> Facts:
        found = sensitive.find(draft.content)
        digest = content_hash(draft.content)
        lived = [
            m for m in self._memories
            if (m.library_id, m.scope, m.scope_id) == (who.library_id, draft.scope, place)
            and m.created_at < at
            and (m.status in (Status.ACTIVE, Status.SUPERSEDED) and
                 (m.status is Status.ACTIVE or m.updated_at >= at))
            and (m.agent_id == who.agent_id or m.shared)
        ]  # fmt: skip
        near = sorted(
            (
                Neighbour(
                    m.id, m.content, float(np.clip(self._units[m.id] @ unit, 0, 1)),
                    m.content_hash == digest, m.memory_type,
                )
                for m in lived
            ),
            key=lambda n: (not n.exact, -n.similarity, n.memory_id),
        )  # fmt: skip
        return Facts(
            text=sensitive.mask(draft.content, found) if found else draft.content,
            confidence=draft.confidence,
            neighbours=duplicates.annotate(draft.content, near[:_NEIGHBOURS]),
            extractions_in_window=1 if draft.source == "extraction" else 0,
            rate_exempt=draft.source != "extraction",
            sensitive=found,
        )


def _decision(
    draft: Draft,
    who: Subject,
    facts: Facts,
    settings: GateSettings,
    verdict: Verdict,
    at: datetime,
    memory_id: str | None,
) -> WorldDecision:
    return WorldDecision(
        at, who.library_id, who.agent_id or "", who.user_id, who.project_id, who.session_id,
        draft, facts, settings, verdict, memory_id,
    )  # fmt: skip
