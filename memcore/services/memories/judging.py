"""What the gate would say, without storing anything: for pages, previews and the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import Connection, exists, select

from memcore.database import queries
from memcore.database.rate import Rate, rate_of
from memcore.embeddings import Vectors
from memcore.models import Actor, Draft, Facts, Library, Neighbour, Scope, Subject, Verdict
from memcore.rules import gate
from memcore.services.memories.adding import scope_id_of
from memcore.services.memories.screening import screened
from memcore.services.runtime import Runtime
from memcore.settings import LibrarySettings


class Judging:
    """Part of MemoryService: verdicts without consequences."""

    _runtime: Runtime
    _open: Callable[[Subject], tuple[Library, LibrarySettings]]
    _may_create: Callable[[Connection, Actor, Draft, Subject], None]
    _facts: Callable[..., Facts]
    _embedded: Callable[[Library, Sequence[str]], list[Vectors | str]]

    def validate_memory(
        self, draft: Draft, *, subject: Subject, actor: Actor | None = None
    ) -> tuple[Facts, Verdict]:
        """What the gate would say to one draft, with the facts it would say it on. Raises
        InvalidInput, PermissionDenied, LibraryDisabled, AgentMemoryOff, NotFound,
        DatabaseError."""
        return self.validate_many([draft], subject=subject, actor=actor)[0]

    propose = validate_memory

    def validate_many(
        self, drafts: Sequence[Draft], *, subject: Subject, actor: Actor | None = None
    ) -> list[tuple[Facts, Verdict]]:
        """`validate_memory` of each by itself, embedded together."""
        library, settings = self._open(subject)
        actor = actor or Actor(subject.user_id)
        screens = [screened(d) for d in drafts]
        places = [scope_id_of(s.draft, subject) for s in screens]
        out = []
        # Never committed: looking introduces nobody.
        with self._runtime.engine.connect() as connection:
            for scope in dict.fromkeys(s.draft.scope for s in screens):
                self._may_create(connection, actor, Draft("", scope=scope), subject)
            share = settings.share_between_agents
            homes = [(s.draft.scope, p) for s, p in zip(screens, places, strict=True)]
            lived = {
                (scope, place): connection.scalar(
                    select(
                        exists().where(
                            queries.living_in_scope(library.id, scope, place, subject, share=share)
                        )
                    )
                )
                for scope, place in {
                    (s.draft.scope, p) for s, p in zip(screens, places, strict=True)
                }
            }
            # Where nothing lives there is nothing to compare with, and nothing to embed.
            alone = [not lived[home] for home in homes]
            texts = [s.draft.content[: settings.gate.max_length] for s in screens]
            vectors = iter(
                self._embedded(library, [t for t, a in zip(texts, alone, strict=True) if not a])
            )
            for screen, place, single in zip(screens, places, alone, strict=True):
                facts = self._facts(
                    connection, library, settings, screen, subject, actor, place,
                    None if single else next(vectors), alone=single,
                )  # fmt: skip
                out.append((facts, gate.judge(screen.draft, facts, settings.gate)))
        return out

    def check_duplicate(
        self, content: str, *, subject: Subject, scope: Scope = Scope.USER
    ) -> tuple[Neighbour, ...] | None:
        """Living memories of that scope nearest to `content`, nearest first; None where similarity
        cannot be had now."""
        facts, _ = self.validate_memory(Draft(content, scope=scope), subject=subject)
        return facts.neighbours

    def check_rate_limit(self, *, subject: Subject) -> Rate:
        """Extraction runs of the session in the last 24 h, how many are left, and when the next
        slot opens."""
        _, settings = self._open(subject)
        with self._runtime.engine.connect() as connection:
            return rate_of(connection, subject, settings.gate.max_extractions)
