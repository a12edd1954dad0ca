"""Which base URLs memcore talks to, and spelling them one way.

People type base URLs, and a server that fetches whatever it is told reaches what only it can:
its own ports, the company's network, the cloud's metadata service with its credentials. So:
https to public addresses only; everything else only where MEMCORE_ALLOWED_ENDPOINTS names the
host (`localhost:11434, models.lan, 10.0.0.5:8000`). The address that was judged is the one that
is connected to, and redirects are not followed (client.py).
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from memcore.errors import ConfigError, EndpointError

VARIABLE = "MEMCORE_ALLOWED_ENDPOINTS"

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Paths people paste from a documentation page; the client adds its own.
_ENDINGS = ("/embeddings", "/chat/completions", "/completions", "/models")
_NAT64 = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))
_IPV4_IN_IPV6 = (ipaddress.ip_network("::/96"), ipaddress.ip_network("::ffff:0:0:0/96"))


@dataclass(frozen=True, slots=True)
class BaseURL:
    """A base URL in its one spelling: `str()` gives it."""

    scheme: str
    host: str
    """Lower case; IPv6 without brackets."""
    port: int
    path: str
    """Begins with a slash, ends without; `/v1` where none was given."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = {"http": 80, "https": 443}[self.scheme]
        return f"{self.scheme}://{host}{'' if self.port == usual else f':{self.port}'}{self.path}"


def base_url(text: str) -> BaseURL:
    """`text` as typed → its one spelling. White space around, trailing slashes, a missing `/v1`
    and a pasted `/embeddings` make no difference. Raises ConfigError, never echoing a password."""
    text = text.strip()
    if not text or re.search(r"[\s\x00-\x1f\x7f\\]", text):
        raise ConfigError(
            "The base URL is empty or has white space in it.",
            hint="It looks like https://api.example.com/v1.",
        )
    if "://" not in text:
        raise ConfigError(
            f"The base URL {text[:80]!r} has no scheme.", hint=f"Write https://{text[:80]}"
        )
    try:
        parts = urlsplit(text)
        port = parts.port
        host = (parts.hostname or "").rstrip(".").encode("idna").decode().lower()
    except (ValueError, UnicodeError):
        raise ConfigError("The base URL has a host or port that cannot be.") from None
    if parts.scheme not in ("http", "https"):
        raise ConfigError(f"The base URL's scheme is {parts.scheme!r}; it takes https or http.")
    if "@" in parts.netloc:
        raise ConfigError(
            "The base URL has a user name or password in it.", hint="Enter the key as API key."
        )
    if not host:
        raise ConfigError("The base URL names no host.")
    if parts.query or parts.fragment:
        raise ConfigError("The base URL has a query or a fragment; leave out what follows ? or #.")
    path = re.sub(r"/{2,}", "/", parts.path).rstrip("/")
    for ending in _ENDINGS:
        path = path.removesuffix(ending).rstrip("/")
    if port is None:
        port = 443 if parts.scheme == "https" else 80
    return BaseURL(parts.scheme, host, port, path or "/v1")


def allowed_hosts(environ: Mapping[str, str] | None = None) -> frozenset[str]:
    """What MEMCORE_ALLOWED_ENDPOINTS names: `host` or `host:port`, lower case."""
    raw = (os.environ if environ is None else environ).get(VARIABLE, "")
    return frozenset(part.strip().lower() for part in raw.split(",") if part.strip())


def check(url: BaseURL, allowed: frozenset[str] | None = None) -> tuple[str, ...]:
    """The addresses `url` may be connected to, resolved now. Raises ConfigError for one that may
    not, EndpointError where the name cannot be resolved."""
    allowed = allowed_hosts() if allowed is None else allowed
    bracketed = f"[{url.host}]" if ":" in url.host else url.host
    named = bool({url.host, bracketed, f"{bracketed}:{url.port}"} & allowed)
    if url.scheme == "http" and not named:
        raise ConfigError(
            f"{url.host} would be asked over http: key and texts would travel in clear.",
            hint=f"Use https, or name {bracketed}:{url.port} in {VARIABLE}.",
        )
    addresses = _resolve(url)
    for address in addresses:
        reason = _refused(address)
        if reason is None:
            continue
        # A name on the list may stand for a private address, never for the metadata service:
        # that takes the literal address on the list.
        literal = str(address) == url.host
        if not named or (address.is_link_local and not literal):
            raise ConfigError(
                f"{url.host} is {reason}, which an endpoint may not be.",
                hint=f"If you run a model server there, name {bracketed}:{url.port} in {VARIABLE}.",
            )
    return tuple(str(address) for address in addresses)


def _resolve(url: BaseURL) -> list[Address]:
    try:
        found = socket.getaddrinfo(url.host, url.port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError):
        raise EndpointError(
            f"The host {url.host!r} cannot be found.", hint="Check the base URL's spelling."
        ) from None
    unique = dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in found)
    return [ipaddress.ip_address(address) for address in unique]


def _refused(address: Address) -> str | None:
    """Why a public endpoint cannot be at `address`; None where it can."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address.teredo:
            return "a tunnelled address"
        if inner is None and any(address in network for network in (*_NAT64, *_IPV4_IN_IPV6)):
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return _refused(inner) if address.ipv4_mapped else "a translated address"
        if address.is_site_local:
            return "a private or reserved address"
    if address.is_loopback:
        return "this machine"
    if address.is_link_local:
        return "a link-local address (where clouds keep their metadata service)"
    if address.is_multicast or address.is_unspecified or not address.is_global:
        return "a private or reserved address"
    return None
