"""Users, projects and who belongs to them. Roles come from here, never from a request."""

from __future__ import annotations

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert

from memcore.database import queries
from memcore.database.tables import ProjectMemberRow, ProjectRow, UserRow
from memcore.errors import InvalidInput, PermissionDenied
from memcore.models import Actor, Role
from memcore.services.runtime import Runtime
from memcore.text import clean


class PeopleService:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def actor(self, user_id: str) -> Actor:
        """The user as one who asks. An unknown user has no roles and sees nothing."""
        with self._runtime.engine.connect() as connection:
            return Actor(user_id, queries.roles_of(connection, user_id))

    def users(self) -> list[str]:
        """Ids of all users, in order."""
        with self._runtime.engine.connect() as connection:
            return list(connection.scalars(select(UserRow.id).order_by(UserRow.id)))

    def projects(self) -> list[str]:
        """Ids of all projects, in order."""
        with self._runtime.engine.connect() as connection:
            return list(connection.scalars(select(ProjectRow.id).order_by(ProjectRow.id)))

    def introduce(self, user_id: str, *, name: str = "") -> None:
        """Make sure the user exists; a name replaces the one known."""
        statement = insert(UserRow).values(id=_identifier(user_id), name=clean(name))
        with self._runtime.engine.begin() as connection:
            connection.execute(
                statement.on_conflict_do_update(
                    index_elements=[UserRow.id], set_={"name": statement.excluded.name}
                )
                if name
                else statement.on_conflict_do_nothing()
            )

    def join(
        self, project_id: str, user_id: str, role: Role | str, *, actor: Actor, name: str = ""
    ) -> None:
        """Give `user_id` a role in a project, making both where new; whoever makes a project may.
        Raises PermissionDenied unless the actor is owner or admin of an existing project."""
        wanted = Role(role)
        with self._runtime.engine.begin() as connection:
            created = connection.execute(
                insert(ProjectRow)
                .values(id=_identifier(project_id), name=clean(name))
                .on_conflict_do_nothing()
                .returning(ProjectRow.id)
            ).first()
            self._must_lead(queries.roles_of(connection, actor.user_id), project_id, actor, created)
            queries.introduce(connection, _identifier(user_id), None)
            statement = insert(ProjectMemberRow).values(
                user_id=user_id, project_id=project_id, role=wanted
            )
            connection.execute(
                statement.on_conflict_do_update(
                    index_elements=[ProjectMemberRow.user_id, ProjectMemberRow.project_id],
                    set_={"role": wanted},
                )
            )

    def leave(self, project_id: str, user_id: str, *, actor: Actor) -> None:
        """Take a user out of a project. Their memories stay; what they see shrinks at once."""
        with self._runtime.engine.begin() as connection:
            roles = queries.roles_of(connection, actor.user_id)
            if actor.user_id != user_id:
                self._must_lead(roles, project_id, actor, None)
            connection.execute(
                delete(ProjectMemberRow).where(
                    ProjectMemberRow.project_id == project_id, ProjectMemberRow.user_id == user_id
                )
            )

    def members(self, project_id: str) -> dict[str, Role]:
        """User id → role."""
        with self._runtime.engine.connect() as connection:
            rows = connection.execute(
                select(ProjectMemberRow.user_id, ProjectMemberRow.role)
                .where(ProjectMemberRow.project_id == project_id)
                .order_by(ProjectMemberRow.user_id)
            )
            return {row.user_id: row.role for row in rows}

    def _must_lead(
        self, roles: dict[str, Role], project_id: str, actor: Actor, created: object
    ) -> None:
        if actor.operator or created or roles.get(project_id) in (Role.OWNER, Role.ADMIN):
            return
        raise PermissionDenied("Only an owner or admin of a project changes its members.")


def _identifier(value: str) -> str:
    cleaned = clean(value)
    if not cleaned or cleaned != value or len(value) > 200:
        raise InvalidInput(
            f"{value[:80]!r} cannot be an id.", hint="Use 1 to 200 visible characters."
        )
    return value
