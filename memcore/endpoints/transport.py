"""The HTTP transport below `client`: connects to the very address that the guard judged, ends
with its time whatever the server does, and reads no endless reply. Import it late: the HTTP library
takes a tenth of a second to load."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterable, Iterator

import httpcore2
import httpx2

from memcore.endpoints import guard
from memcore.errors import EndpointRefused, EndpointReply

_MOST_BYTES = 64 * 1024 * 1024


class Pinned(httpx2.BaseTransport):
    """Serves one base URL. Names are resolved and judged anew for each request. A request's read
    timeout is the time it has for everything: name, connection, TLS, headers and body."""

    def __init__(self, url: guard.BaseURL, allowed: frozenset[str] | None) -> None:
        self._url = url
        self._allowed = allowed
        self._time = _Time()
        self._inner = _Timed(self._time)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.host != self._url.host:
            raise EndpointRefused(f"A call for {self._url} was about to go elsewhere.")
        seconds = (request.extensions.get("timeout") or {}).get("read") or 600.0
        self._time.ends = time.monotonic() + seconds
        # The certificate is checked against the name, not the address.
        request.extensions["sni_hostname"] = self._url.host
        asked = request.url
        failure: Exception = EndpointRefused(f"{self._url} has no address.")
        addresses = self._addresses(seconds)
        for place, address in enumerate(addresses):
            request.url = asked.copy_with(host=address)
            # An address that swallows everything leaves time for the next one.
            left = (self._time.ends - time.monotonic()) / (len(addresses) - place)
            request.extensions["timeout"] = {
                **(request.extensions.get("timeout") or {}),
                "connect": max(0.01, left),
            }
            try:
                response = self._inner.handle_request(request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
                continue
            finally:
                request.url = asked
            assert isinstance(response.stream, httpx2.SyncByteStream)
            response.stream = _Bounded(response.stream)
            return response
        raise failure

    def close(self) -> None:
        self._inner.close()

    def _addresses(self, seconds: float) -> tuple[str, ...]:
        """What the guard lets through. Looking a name up cannot be told when to end, so it is left
        alone after its time."""
        found: list[tuple[str, ...] | BaseException] = []

        def look_up() -> None:
            try:
                found.append(guard.check(self._url, self._allowed))
            except BaseException as error:
                found.append(error)

        looking = threading.Thread(target=look_up, name="memcore name lookup", daemon=True)
        looking.start()
        looking.join(seconds)
        if not found:
            raise httpx2.ConnectTimeout("the host's name was not resolved in time")
        if isinstance(found[0], BaseException):
            raise found[0]
        return found[0]


class _Time(threading.local):
    """When the request of this thread has to be over, on the monotonic clock."""

    ends = float("inf")

    def left(self, timeout: float | None, late: type[Exception]) -> float:
        """Seconds one wait may take: a server that sends a byte now and then ends no wait, but
        all of them have one end. Raises `late` past it."""
        left = self.ends - time.monotonic()
        if left <= 0:
            raise late("the request's time is over")
        return left if timeout is None else min(left, timeout)


class _Timed(httpx2.HTTPTransport):
    """The plain transport on connections that keep to `_Time`."""

    def __init__(self, time: _Time) -> None:
        context = httpx2.create_ssl_context(trust_env=False)
        super().__init__(verify=context, trust_env=False)
        # The transport takes no backend of its own; a test on a dripping server holds this to it.
        self._pool = httpcore2.ConnectionPool(
            ssl_context=context,
            max_connections=100,
            max_keepalive_connections=20,
            keepalive_expiry=5.0,
            network_backend=_Backend(time),
        )


class _Backend(httpcore2.SyncBackend):
    def __init__(self, time: _Time) -> None:
        self._time = time

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        timeout = self._time.left(timeout, httpcore2.ConnectTimeout)
        opened = super().connect_tcp(host, port, timeout, local_address, socket_options)
        return _Stream(opened, self._time)


class _Stream(httpcore2.NetworkStream):
    def __init__(self, inner: httpcore2.NetworkStream, time: _Time) -> None:
        self._inner = inner
        self._time = time

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._time.left(timeout, httpcore2.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, self._time.left(timeout, httpcore2.WriteTimeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        timeout = self._time.left(timeout, httpcore2.ConnectTimeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, timeout), self._time)

    def get_extra_info(self, info: str) -> object:
        return self._inner.get_extra_info(info)


class _Bounded(httpx2.SyncByteStream):
    """A body within 64 MiB."""

    def __init__(self, stream: httpx2.SyncByteStream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for part in self._stream:
            size += len(part)
            if size > _MOST_BYTES:
                raise EndpointReply("The endpoint's reply has no end: over 64 MiB.")
            yield part

    def close(self) -> None:
        self._stream.close()
