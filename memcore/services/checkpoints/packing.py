"""Rows of LangGraph's tables ↔ one compressed archive payload. Pure: no I/O.

`messages` is rewritten whole at each change, so a thread's blobs repeat each other almost
completely, at distances far beyond deflate's 32 kB window: xz with a 16 MB dictionary made 182 kB
of 85 MB where deflate made 39 MB (docs/checkpoints.md).
"""

from __future__ import annotations

import hashlib
import lzma
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import ormsgpack

from memcore.errors import StoreError

_LARGEST_DICTIONARY = 16 * 1024 * 1024
_FORMAT = 1


@dataclass(slots=True)
class Parcel:
    """Rows as they stand in the tables; JSON columns as text, so that they come back unchanged."""

    checkpoints: list[Sequence[Any]] = field(default_factory=list)
    """(namespace, id, parent, type, checkpoint, metadata)"""
    blobs: list[Sequence[Any]] = field(default_factory=list)
    """(namespace, channel, version, type, blob)"""
    writes: list[Sequence[Any]] = field(default_factory=list)
    """(namespace, id, task, path, idx, channel, type, blob)"""
    unlinked: list[Sequence[str]] = field(default_factory=list)
    """(namespace, id, parent) of checkpoints that stayed and lost their parent."""

    @property
    def octets(self) -> int:
        """Bytes of values, writes and rows, counted as in a plan: without keys."""
        rows = sum(len(text.encode()) for row in self.checkpoints for text in row[-2:])
        return rows + sum(len(row[-1] or b"") for row in (*self.blobs, *self.writes))


def pack(parcel: Parcel) -> tuple[bytes, str]:
    """The payload and its SHA-256."""
    raw = ormsgpack.packb(
        [_FORMAT, parcel.checkpoints, parcel.blobs, parcel.writes, parcel.unlinked]
    )
    # No larger than there are bytes to look back on: its tables are made anew for each payload.
    dictionary = min(_LARGEST_DICTIONARY, max(4096, 1 << len(raw).bit_length()))
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": dictionary}]
    payload = lzma.compress(raw, format=lzma.FORMAT_XZ, filters=filters)
    return payload, hashlib.sha256(payload).hexdigest()


def unpack(payload: bytes, digest: str) -> Parcel:
    """The rows. Raises StoreError where the payload is not what was stored."""
    if hashlib.sha256(payload).hexdigest() != digest:
        raise StoreError("The archived bytes do not match their checksum; nothing was restored.")
    try:
        version, *rows = ormsgpack.unpackb(lzma.decompress(payload, format=lzma.FORMAT_XZ))
    except (lzma.LZMAError, ValueError) as error:
        raise StoreError("The archived bytes cannot be read; nothing was restored.") from error
    if version != _FORMAT or len(rows) != 4:
        raise StoreError(f"The archive is of format {version}, which this version cannot read.")
    return Parcel(*rows)
