"""Profiles: what is known about a user or a project, from their memories and from people's hands.

Computed at each read through the one visibility predicate, so nothing can be stale; only what
people wrote by hand is stored, with a version that keeps a slow editor from undoing a fast one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from sqlalchemy import and_, func, select
from sqlalchemy.dialects.postgresql import insert

from memcore.database import queries
from memcore.database.tables import MemoryRow, ProfileRow
from memcore.errors import Conflict, InvalidInput, PermissionDenied
from memcore.models import Actor, Role, Scope, Status, Subject
from memcore.rules.aggregation import Profile, aggregate, patched
from memcore.services.libraries import LibraryService
from memcore.services.runtime import Runtime

Kind = Literal["user", "project"]

MOST_MEMORIES = 2000
"""A profile reads at most this many memories, newest first."""


class ProfileService:
    def __init__(self, runtime: Runtime, libraries: LibraryService) -> None:
        self._runtime = runtime
        self._libraries = libraries

    def get(
        self,
        kind: Kind,
        subject_id: str,
        *,
        library_id: str,
        actor: Actor,
        agent_id: str | None = None,
    ) -> Profile:
        """The profile as `actor` may see it: of a user their user-scope memories, of a project its
        project-scope ones. With `agent_id`, only what that agent may use. Raises NotFound."""
        library = self._libraries.get(library_id)
        scope = _scope(kind)
        share = self._runtime.settings_of(library).settings.share_between_agents
        who = Subject(library.id, actor.user_id, agent_id=agent_id)
        of_profile = (
            ProfileRow.library_id == library.id,
            ProfileRow.kind == kind,
            ProfileRow.subject_id == subject_id,
        )
        with self._runtime.engine.connect() as connection:
            rows = connection.execute(
                select(*queries.MEMORY_COLUMNS)
                .where(
                    and_(
                        MemoryRow.library_id == library.id,
                        MemoryRow.scope == scope,
                        MemoryRow.scope_id == subject_id,
                        MemoryRow.status == Status.ACTIVE,
                        queries.unexpired(),
                        queries.visible(actor),
                        queries.of_agent(who, share_between_agents=share),
                    )
                )
                .order_by(MemoryRow.created_at.desc(), MemoryRow.id)
                .limit(MOST_MEMORIES)
            )
            memories = [queries.memory_from(row) for row in rows]
            written = None
            if self._may_read(kind, subject_id, queries.roles_of(connection, actor.user_id), actor):
                written = connection.execute(select(ProfileRow).where(*of_profile)).first()
        statements, counts = aggregate(memories)
        profile = Profile(kind, subject_id, library.id, statements, counts)
        if written is None:
            return profile
        return Profile(
            kind,
            subject_id,
            library.id,
            statements,
            counts,
            fields=written.fields,
            version=written.version,
            edited_by=written.edited_by,
            edited_at=written.updated_at,
        )

    def for_agent(self, subject: Subject) -> tuple[Profile, ...]:
        """What goes into a prompt: the user's profile and, with a project, the project's. Raises
        NotFound, LibraryDisabled, AgentMemoryOff."""
        self._libraries.opened(subject)
        actor = Actor(subject.user_id)
        found = [
            self.get(
                "user",
                subject.user_id,
                library_id=subject.library_id,
                actor=actor,
                agent_id=subject.agent_id,
            )
        ]
        if subject.project_id:
            found.append(
                self.get(
                    "project",
                    subject.project_id,
                    library_id=subject.library_id,
                    actor=actor,
                    agent_id=subject.agent_id,
                )
            )
        return tuple(found)

    def write(
        self,
        kind: Kind,
        subject_id: str,
        patch: Mapping[str, Any],
        *,
        library_id: str,
        actor: Actor,
        version: int | None = None,
        removed: Sequence[str] = (),
    ) -> Profile:
        """Lay `patch` over the fields written by hand, field by field. `version` is the one the
        editor saw: Conflict where somebody changed one of the same fields since; other fields
        are merged. Raises InvalidInput, PermissionDenied."""
        library = self._libraries.get(library_id)
        _scope(kind)
        with self._runtime.engine.begin() as connection:
            roles = queries.roles_of(connection, actor.user_id)
            if not self._may_write(kind, subject_id, roles, actor):
                raise PermissionDenied(
                    "A user's profile is edited by that user, a project's by its owner, admins "
                    "and editors."
                )
            key = (
                ProfileRow.library_id == library.id,
                ProfileRow.kind == kind,
                ProfileRow.subject_id == subject_id,
            )
            connection.execute(
                insert(ProfileRow)
                .values(library_id=library.id, kind=kind, subject_id=subject_id)
                .on_conflict_do_nothing()
            )
            now = connection.execute(select(ProfileRow).where(*key).with_for_update()).one()
            if version is not None and version != now.version:
                theirs = {k for k, v in now.touched.items() if v > version}
                both = sorted(theirs & (set(patch) | set(removed)))
                if both:
                    raise Conflict(
                        f"{', '.join(both)} was changed by {now.edited_by} since you opened it.",
                        hint="Load it again; your text is still in the form.",
                    )
            fields = patched(now.fields, patch, removed)
            touched = now.touched | dict.fromkeys([*patch, *removed], now.version + 1)
            connection.execute(
                ProfileRow.__table__.update()  # type: ignore[attr-defined]
                .where(*key)
                .values(
                    fields=fields,
                    touched=touched,
                    version=now.version + 1,
                    edited_by=actor.user_id,
                    updated_at=func.now(),
                )
            )
        return self.get(kind, subject_id, library_id=library.id, actor=actor)

    def subjects(self, *, library_id: str, actor: Actor) -> list[tuple[Kind, str, int]]:
        """Users and projects the actor may see memories of, how many each; most first."""
        with self._runtime.engine.connect() as connection:
            rows = connection.execute(
                select(MemoryRow.scope, MemoryRow.scope_id, func.count().label("n"))
                .where(
                    MemoryRow.library_id == self._libraries.get(library_id).id,
                    MemoryRow.scope.in_((Scope.USER, Scope.PROJECT)),
                    MemoryRow.status == Status.ACTIVE,
                    queries.unexpired(),
                    queries.visible(actor),
                )
                .group_by(MemoryRow.scope, MemoryRow.scope_id)
                .order_by(func.count().desc(), MemoryRow.scope_id)
            ).all()
        return [("user" if r.scope is Scope.USER else "project", r.scope_id, r.n) for r in rows]

    def _may_read(
        self, kind: Kind, subject_id: str, roles: Mapping[str, Role], actor: Actor
    ) -> bool:
        return actor.operator or (
            actor.user_id == subject_id if kind == "user" else subject_id in roles
        )

    def _may_write(
        self, kind: Kind, subject_id: str, roles: Mapping[str, Role], actor: Actor
    ) -> bool:
        if actor.operator:
            return True
        if kind == "user":
            return bool(actor.user_id) and actor.user_id == subject_id
        return roles.get(subject_id) in (Role.OWNER, Role.ADMIN, Role.EDITOR)


def _scope(kind: str) -> Scope:
    try:
        return {"user": Scope.USER, "project": Scope.PROJECT}[kind]
    except KeyError:
        raise InvalidInput(f"A profile is of a user or a project, not of a {kind!r}.") from None
