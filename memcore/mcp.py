"""`memcore mcp`: the two memory tools as an MCP server over stdio, on the official SDK.

Whose memory it is comes from the command line, since a client over stdio serves one person:

    memcore mcp --library team --user u1 [--project p1] [--session s1] [--agent desk]

Standard output belongs to the protocol; everything else goes to standard error. Needs the `mcp`
extra.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memcore import tools
from memcore.core import Core
from memcore.errors import MissingExtra
from memcore.models import Subject

if TYPE_CHECKING:
    from mcp.server import MCPServer


def server(core: Core, subject: Subject) -> MCPServer:
    """The server for one subject, not yet running. Raises MissingExtra."""
    try:
        from mcp.server import MCPServer
    except ImportError:
        raise MissingExtra("mcp", "mcp") from None
    made = MCPServer(
        "memcore",
        instructions="Long-term memory: search it before you answer, add what will matter later.",
        log_level="WARNING",
    )

    @made.tool("memory_add", description=tools.DESCRIPTIONS["memory_add"])
    def memory_add(content: str, memory_type: str = "fact", scope: str = "user") -> str:
        return tools.memory_add(core, subject, content, memory_type, scope)

    @made.tool("memory_search", description=tools.DESCRIPTIONS["memory_search"])
    def memory_search(
        query: str,
        k: int | None = None,
        memory_type: str | None = None,
        scope: str | None = None,
    ) -> str:
        return tools.memory_search(core, subject, query, k, memory_type, scope)

    return made
