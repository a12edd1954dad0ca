"""Base URLs: one spelling, and only where an endpoint may be."""

import socket
from typing import Any

import pytest

from memcore.endpoints import guard
from memcore.errors import ConfigError, EndpointError


@pytest.mark.parametrize(
    ("typed", "spelled"),
    [
        ("https://models.example:8000", "https://models.example:8000/v1"),
        ("https://models.example:8000/", "https://models.example:8000/v1"),
        ("  https://Models.Example:8000/v1/ \n", "https://models.example:8000/v1"),
        ("https://models.example/v1/embeddings", "https://models.example/v1"),
        ("https://models.example/v1/chat/completions/", "https://models.example/v1"),
        ("https://models.example:443//api//v4", "https://models.example/api/v4"),
        ("http://[::1]:11434", "http://[::1]:11434/v1"),
        ("https://models.example./v1", "https://models.example/v1"),
        ("https://例え.テスト/v1", "https://xn--r8jz45g.xn--zckzah/v1"),
    ],
)
def test_spellings_of_one_endpoint_are_one(typed: str, spelled: str) -> None:
    assert str(guard.base_url(typed)) == spelled
    assert str(guard.base_url(spelled)) == spelled


@pytest.mark.parametrize(
    "typed",
    [
        "", "   ", "models.example/v1", "ftp://models.example", "file:///etc/passwd",
        "https://", "https:///v1", "https://me:pw@models.example/v1", "https://a b/v1",
        "https://models.example/v1?key=1", "https://models.example/v1#x", "https://h:99999",
        "https://h\\@evil.example/", "gopher://x/", "https://h\n.example",
    ],
)  # fmt: skip
def test_what_is_no_base_url_is_refused(typed: str) -> None:
    with pytest.raises(ConfigError) as caught:
        guard.base_url(typed)
    assert "pw" not in str(caught.value)


def addresses(monkeypatch: pytest.MonkeyPatch, *found: str) -> None:
    def resolve(host: Any, port: Any, *_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


PRIVATE = [
    "127.0.0.1", "127.9.9.9", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254",
    "100.64.0.1", "100.100.100.200", "0.0.0.0", "224.0.0.1", "255.255.255.255", "192.0.2.1",
    "::1", "::", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1",
    "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::127.0.0.1",
    "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a00:1", "64:ff9b::808:808",
    "2002:7f00:1::", "2002:a9fe:a9fe::1", "2002:808:808::1", "2001:0:7f00:1::1", "fec0::1",
]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_only_this_server_reaches_is_refused(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    addresses(monkeypatch, address)
    with pytest.raises(ConfigError, match="may not be"):
        guard.check(guard.base_url("https://models.example"), frozenset())


def test_one_private_address_among_public_ones_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses(monkeypatch, "8.8.8.8", "10.0.0.1")
    with pytest.raises(ConfigError, match=r"models\.example"):
        guard.check(guard.base_url("https://models.example"), frozenset())


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:808:808"])
def test_a_public_address_is_taken(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    addresses(monkeypatch, address)
    assert guard.check(guard.base_url("https://models.example"), frozenset()) == (address,)


@pytest.mark.parametrize("spelling", ["2130706433", "0x7f.1", "0177.0.0.1", "127.1", "[::1]"])
def test_odd_spellings_of_this_machine_are_seen_through(spelling: str) -> None:
    with pytest.raises((ConfigError, EndpointError)):
        guard.check(guard.base_url(f"https://{spelling}:8443"), frozenset())


def test_plain_http_is_refused_for_a_host_nobody_named(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses(monkeypatch, "8.8.8.8")
    url = guard.base_url("http://models.example")
    with pytest.raises(ConfigError, match="in clear"):
        guard.check(url, frozenset())
    assert guard.check(url, frozenset({"models.example"})) == ("8.8.8.8",)


def test_a_named_host_may_be_private_on_its_named_port(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses(monkeypatch, "10.0.0.5")
    allowed = guard.allowed_hosts({guard.VARIABLE: " Models.lan:8000 , "})
    assert guard.check(guard.base_url("http://models.lan:8000"), allowed) == ("10.0.0.5",)
    with pytest.raises(ConfigError):
        guard.check(guard.base_url("http://models.lan:22"), allowed)


def test_a_named_host_that_turns_into_the_metadata_service_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    addresses(monkeypatch, "169.254.169.254")
    allowed = frozenset({"models.lan", "169.254.169.254"})
    with pytest.raises(ConfigError, match="metadata"):
        guard.check(guard.base_url("http://models.lan"), allowed)
    assert guard.check(guard.base_url("http://169.254.169.254"), allowed)


def test_a_host_that_does_not_exist_says_so() -> None:
    with pytest.raises(EndpointError, match="cannot be found"):
        guard.check(guard.base_url("https://no-such-host.invalid"), frozenset())
