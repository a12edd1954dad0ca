"""The HTTP transport below `client`: connects to the very address that the guard judged, and
reads no endless reply. Import it late: the HTTP library takes a tenth of a second to load."""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx2

from memcore.endpoints import guard
from memcore.errors import EndpointRefused, EndpointReply

_MOST_BYTES = 64 * 1024 * 1024


class Pinned(httpx2.BaseTransport):
    """Serves one base URL. Names are resolved and judged anew for each request."""

    def __init__(self, url: guard.BaseURL, allowed: frozenset[str] | None) -> None:
        self._url = url
        self._allowed = allowed
        self._inner = httpx2.HTTPTransport(trust_env=False)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.host != self._url.host:
            raise EndpointRefused(f"A call for {self._url} was about to go elsewhere.")
        seconds = (request.extensions.get("timeout") or {}).get("read") or 600.0
        ends = time.monotonic() + seconds
        # The certificate is checked against the name, not the address.
        request.extensions["sni_hostname"] = self._url.host
        asked = request.url
        failure: Exception = EndpointRefused(f"{self._url} has no address.")
        for address in guard.check(self._url, self._allowed):
            request.url = asked.copy_with(host=address)
            try:
                response = self._inner.handle_request(request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
                continue
            finally:
                request.url = asked
            assert isinstance(response.stream, httpx2.SyncByteStream)
            response.stream = _Bounded(response.stream, ends)
            return response
        raise failure

    def close(self) -> None:
        self._inner.close()


class _Bounded(httpx2.SyncByteStream):
    """A body that ends by `ends` (a server that drips bytes resets every read timeout) and
    within 64 MiB."""

    def __init__(self, stream: httpx2.SyncByteStream, ends: float) -> None:
        self._stream = stream
        self._ends = ends

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for part in self._stream:
            size += len(part)
            if size > _MOST_BYTES:
                raise EndpointReply("The endpoint's reply has no end: over 64 MiB.")
            if time.monotonic() > self._ends:
                raise httpx2.ReadTimeout("the reply came too slowly")
            yield part

    def close(self) -> None:
        self._stream.close()
