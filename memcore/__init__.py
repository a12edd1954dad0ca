"""memcore: long-term memory for AI agents. See `open_core`."""

from memcore.core import Core, open_core
from memcore.models import (
    Actor,
    Agent,
    Draft,
    Library,
    Memory,
    MemoryType,
    Role,
    Scope,
    Status,
    Subject,
    Visibility,
)

__all__ = [
    "Actor",
    "Agent",
    "Core",
    "Draft",
    "Library",
    "Memory",
    "MemoryType",
    "Role",
    "Scope",
    "Status",
    "Subject",
    "Visibility",
    "open_core",
]
