"""Everything memcore raises on purpose, in one tree.

    MemcoreError
    ├── ConfigError            a setting or environment variable is unusable
    ├── InvalidInput           a value handed in by a caller is unusable
    │   ├── InvalidVector      wrong length, zero norm, NaN or infinity
    │   └── IllegalTransition  a status change the table in models.py does not allow
    ├── NotFound               no such thing, or none the actor may see
    ├── PermissionDenied       the actor may see it, but not do this to it
    ├── Conflict               the record changed since it was read
    │   └── EmbedderChanged    the library was given another embedder meanwhile
    ├── LibraryDisabled        the library is switched off
    ├── AgentMemoryOff         the agent's memory is, or it is bound to another library
    ├── DatabaseError          the database cannot be reached or used
    │   └── ExtensionMissing   pgvector is not there
    ├── EndpointError          a model endpoint failed
    │   ├── EndpointRefused    it refused the key or the request
    │   ├── EndpointTimeout    it did not answer in time
    │   └── EndpointReply      it answered something unusable
    ├── StoreError             a vector store failed
    ├── UnsafeBlob             stored bytes ask to import or run code
    └── MissingExtra           an optional package is not installed

A class docstring is the default message and safe to show to a user: never put
a secret or another user's content into a message. `hint` says what to do next.
"""

from __future__ import annotations


class MemcoreError(Exception):
    """memcore could not do this."""

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        self.message = message or (type(self).__doc__ or "").strip().splitlines()[0]
        self.hint = hint
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message


class ConfigError(MemcoreError):
    """A setting is unusable."""


class InvalidInput(MemcoreError):
    """That value cannot be used."""


class InvalidVector(InvalidInput):
    """That vector cannot be used."""


class IllegalTransition(InvalidInput):
    """A memory cannot change from this status to that one."""


class NotFound(MemcoreError):
    """There is no such thing, or none you may see."""


class PermissionDenied(MemcoreError):
    """You may not do this."""


class Conflict(MemcoreError):
    """It was changed by someone else since you opened it."""


class EmbedderChanged(Conflict):
    """The library was given another embedder a moment ago."""


class LibraryDisabled(MemcoreError):
    """This library is switched off: it is neither recalled nor written."""


class AgentMemoryOff(MemcoreError):
    """This agent's memory is switched off: it neither recalls nor writes."""


class DatabaseError(MemcoreError):
    """The database cannot be reached."""


class ExtensionMissing(DatabaseError):
    """The database has no pgvector extension."""


class EndpointError(MemcoreError):
    """The model endpoint failed."""


class EndpointRefused(EndpointError):
    """The model endpoint refused the request."""


class EndpointTimeout(EndpointError):
    """The model endpoint did not answer in time."""


class EndpointReply(EndpointError):
    """The model endpoint sent a reply that cannot be used."""


class StoreError(MemcoreError):
    """The vector store failed."""


class UnsafeBlob(MemcoreError):
    """Stored bytes ask to import or run code and were not decoded."""


class MissingExtra(MemcoreError):
    """An optional package is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"{package} is not installed.", hint=f"Install it with: pip install 'memcore[{extra}]'"
        )
