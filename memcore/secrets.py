"""Keys at rest: encrypted with Fernet, shown masked, rotated without asking anybody anything.

The key comes from MEMCORE_SECRET_KEY (several, comma-separated: the first encrypts, all decrypt)
or, without it, from `secret.key` in the home folder, made on first use and readable by its owner
alone (0600). A database copied without its key keeps its secrets.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from memcore.errors import ConfigError

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

VARIABLE = "MEMCORE_SECRET_KEY"


class Secret:
    """A secret in clear. `repr`, `str` and formatting show it masked; only `reveal` gives it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return masked(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __reduce__(self) -> str:
        raise TypeError("a secret is not written out")


def masked(value: str) -> str:
    """`••••` and the last four characters; short secrets show none of theirs."""
    return f"••••{value[-4:]}" if len(value) >= 12 else "••••" if value else ""


class Vault:
    """Encrypts and decrypts. Built from the environment and the home folder; holds no secrets."""

    def __init__(self, home: Path, environ: Mapping[str, str] | None = None) -> None:
        self._home = home
        self._given = (os.environ if environ is None else environ).get(VARIABLE, "").strip()

    def seal(self, secret: Secret | None) -> bytes | None:
        """Encrypted bytes for the database; None and the empty secret stay None."""
        return self._fernet().encrypt(secret.reveal().encode()) if secret else None

    def open(self, sealed: bytes | None) -> Secret | None:
        """The secret. Raises ConfigError when no key at hand opens it."""
        from cryptography.fernet import InvalidToken

        if sealed is None:
            return None
        try:
            return Secret(self._fernet().decrypt(sealed).decode())
        except InvalidToken:
            raise ConfigError(
                "A stored key cannot be decrypted with the secret key at hand.",
                hint=f"Set {VARIABLE} to the key it was encrypted with, or enter it again.",
            ) from None

    def rotate(self, sealed: bytes) -> bytes:
        """The same secret encrypted under the newest key. Raises ConfigError."""
        self.open(sealed)
        return self._fernet().rotate(sealed)

    def new_key(self) -> None:
        """Put a fresh key in front of the others in the home folder's file. Raises ConfigError
        where the key comes from the environment: it is replaced there."""
        from cryptography.fernet import Fernet

        if self._given:
            raise ConfigError(
                f"The secret key comes from {VARIABLE}.",
                hint="Put a new key in front of the old one there, separated by a comma.",
            )
        keys = [Fernet.generate_key().decode(), *self._keys()]
        path = self._home / "secret.key"
        _write_private(path, "\n".join(keys) + "\n", exclusive=False)

    def _fernet(self) -> MultiFernet:
        from cryptography.fernet import Fernet, MultiFernet

        try:
            return MultiFernet([Fernet(key) for key in self._keys()])
        except ValueError:
            where = VARIABLE if self._given else str(self._home / "secret.key")
            raise ConfigError(
                f"{where} holds no usable key: 32 bytes in URL-safe base64.",
                hint="Make one with: memcore secret-key",
            ) from None

    def _keys(self) -> list[str]:
        from cryptography.fernet import Fernet

        if self._given:
            return [part.strip() for part in self._given.split(",") if part.strip()]
        path = self._home / "secret.key"
        if not path.exists():
            self._home.mkdir(parents=True, exist_ok=True)
            # Another process may make it at the same moment: the first one's stays.
            with contextlib.suppress(FileExistsError):
                _write_private(path, Fernet.generate_key().decode() + "\n", exclusive=True)
        if os.name == "posix" and path.stat().st_mode & 0o077:
            raise ConfigError(
                f"{path} can be read by others.",
                hint=f"Run: chmod 600 {path}, then rotate the key.",
            )
        return path.read_text().split()


def _write_private(path: Path, text: str, *, exclusive: bool) -> None:
    """Complete or not at all, and readable by its owner alone from the first byte on. With
    `exclusive`, FileExistsError says that another writer was first."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    part = Path(name)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if exclusive:
            os.link(part, path)
        else:
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)
