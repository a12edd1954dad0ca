"""The console's entry point: `streamlit run app.py`, or `memcore serve`.

`pages/` next to a script that itself calls `st.navigation` is broken in Streamlit 1.67: a cold deep
link and AppTest lose the frame. As an `st.App` whose script is `pages/_frame.py`, both work.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADERS = (
    # Only the console itself may frame it; nothing it shows needs another origin.
    (b"x-frame-options", b"SAMEORIGIN"),
    (b"content-security-policy", b"frame-ancestors 'self'; object-src 'none'; base-uri 'self'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
)


class SecurityHeaders:
    """Adds the headers Streamlit does not set. Plain ASGI, so streams and websockets pass."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), *_HEADERS]}
            await send(message)

        await self._app(scope, receive, with_headers)


@asynccontextmanager
async def lifespan(app: st.App) -> AsyncIterator[dict[str, object]]:
    yield {}
    from pages.shared import session

    session.close()


app = st.App(
    Path(__file__).parent / "pages" / "_frame.py",
    lifespan=lifespan,
    middleware=[Middleware(SecurityHeaders)],
)
