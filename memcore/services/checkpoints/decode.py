"""Stored bytes → plain values, without ever importing or calling what they name. Pure: no I/O.

LangGraph's serializer rebuilds objects by importing the class a blob names. A database that
somebody else can write to must not run code in a console, so this decoder keeps the name as text
and the arguments as values. What it returns is JSON-like throughout:

    {"__type__": "package.Class", "value": …}   an object, by name; nothing was imported
    {"__bytes__": 120, "hex": "89504e47…"}      raw bytes: their number and how they begin
    {"__opaque__": "pickle …", "bytes": 120, "hex": "80049…"}   refused or not understood

A stored mapping that has one of these three keys itself gets it back with `_` behind, so that no
state can pass for what it is not. What was declared secret (pydantic's SecretStr) is masked.

Extension codes 0-7 carry msgpack of (module, class, arguments[, method]), as written by
langgraph-checkpoint 2 to 4 (serde/jsonplus.py). `pickle` is refused always.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

import ormsgpack

MAX_BYTES = 16 * 1024 * 1024
"""Blobs above this are described, not decoded; readers do not even fetch them."""
MAX_DEPTH = 100
MAX_ITEMS = 500_000
_MAX_EXT_DEPTH = 40
_HEAD = 32

CONSTRUCTOR_SINGLE, CONSTRUCTOR_POSITIONAL, CONSTRUCTOR_KEYWORDS, METHOD = 0, 1, 2, 3
PYDANTIC_V1, PYDANTIC_V2, NUMPY_ARRAY, DELTA_SNAPSHOT = 4, 5, 6, 7
_CONSTRUCTORS = range(CONSTRUCTOR_SINGLE, PYDANTIC_V2 + 1)

DELTA_TYPE = "langgraph.checkpoint.serde.types._DeltaSnapshot"
_NUMPY_TYPE = "numpy.ndarray"
_RESERVED = ("__type__", "__bytes__", "__opaque__")
_SECRETS = ("pydantic.types.SecretStr", "pydantic.types.SecretBytes")
_DTYPE = re.compile(r"[<>|=]?[biufc]\d{1,2}")
_NUMPY_SHOWN = 8

# A character nobody sees can hide what a state holds; each is shown as a sign of its own.
_SIGNS: dict[int, int | str] = {
    **{code: 0x2400 + code for code in range(0x20) if code not in (0x09, 0x0A, 0x0D)},
    0x7F: 0x2421,
    **{code: f"⟨U+{code:04X}⟩" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))},
    **{code: f"⟨U+{code:04X}⟩" for code in range(0x80, 0xA0)},
    **dict.fromkeys(range(0xD800, 0xE000), 0xFFFD),
}
_HIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Decoded:
    value: Any
    """JSON-like; see the module's docstring."""
    problem: str | None = None
    """Why it could not be decoded, in words; None: it was."""
    types: tuple[str, ...] = ()
    """Names of the classes it mentions, sorted. None of them was imported."""


@dataclass(frozen=True, slots=True)
class _Typed:
    name: str
    value: Any
    call: str | None = None


@dataclass(frozen=True, slots=True)
class _Opaque:
    reason: str
    data: bytes


def visible(text: str) -> str:
    """`text` with NUL and other control, direction-override and broken characters shown as signs:
    NUL becomes ␀. Tabs and line breaks stay."""
    return text.translate(_SIGNS) if _HIDDEN.search(text) else text


def opaque(reason: str, data: bytes | None, size: int | None = None) -> dict[str, Any]:
    """The value shown in place of what was not decoded."""
    data = data or b""
    return {
        "__opaque__": reason,
        "bytes": len(data) if size is None else size,
        "hex": data[:_HEAD].hex(),
    }


def decode(kind: str | None, blob: bytes | memoryview | None) -> Decoded:
    """The value of a blob of serializer type `kind` (null, bytes, bytearray, json, msgpack; a
    suffix such as `+aes` means encrypted). Never raises: what cannot be decoded becomes an
    `__opaque__` value with its size, and `problem` says why."""
    kind = kind or "null"
    data = bytes(blob) if blob is not None else b""
    if kind in ("null", "empty"):
        return Decoded(None)
    if kind in ("bytes", "bytearray"):
        return Decoded(_bytes(data))
    if "+" in kind:
        cipher = visible(kind.split("+", 1)[1])[:20]
        return _refused(f"encrypted ({cipher})", data)
    if kind == "pickle":
        return _refused("pickle is refused: reading it would run code", data)
    if kind not in ("json", "msgpack"):
        return _refused(f"unknown serializer {visible(kind)[:40]!r}", data)
    if len(data) > MAX_BYTES:
        return _refused(f"larger than {MAX_BYTES // (1024 * 1024)} MB", data)
    try:
        raw = json.loads(data) if kind == "json" else _unpack(data, 0)
    except (ValueError, TypeError, RecursionError, MemoryError) as error:
        return _refused(f"broken {kind}: {visible(str(error))[:120]}", data)
    return plain_json(raw)


def plain_json(value: Any) -> Decoded:
    """A value that PostgreSQL kept as JSON, in the same form as a decoded blob."""
    plain = _Plain()
    return Decoded(plain.of(value, 0), plain.problem, tuple(sorted(plain.types)))


def _refused(reason: str, data: bytes) -> Decoded:
    return Decoded(opaque(reason, data), reason)


def _unpack(data: bytes, depth: int) -> Any:
    def hook(code: int, body: bytes) -> Any:
        return _extension(code, body, depth + 1)

    return ormsgpack.unpackb(data, ext_hook=hook, option=ormsgpack.OPT_NON_STR_KEYS)


def _extension(code: int, body: bytes, depth: int) -> Any:
    if depth > _MAX_EXT_DEPTH:
        return _Opaque(f"objects nested deeper than {_MAX_EXT_DEPTH}", body)
    try:
        if code == DELTA_SNAPSHOT:
            return _Typed(DELTA_TYPE, _unpack(body, depth))
        if code in _CONSTRUCTORS:
            module, name, value, *method = _unpack(body, depth)
            if isinstance(module, str) and isinstance(name, str):
                call = method[0] if code == METHOD and method else None
                return _Typed(f"{module}.{name}", value, str(call) if call else None)
        if code == NUMPY_ARRAY:
            return _array(*_unpack(body, depth))
    except (ValueError, TypeError, RecursionError, MemoryError):
        return _Opaque(f"broken extension type {code}", body)
    return _Opaque(f"unknown extension type {code}", body)


def _array(dtype: Any, shape: Any, order: Any, buffer: bytes) -> _Typed:
    """An array by shape and first values. The type name comes from the blob: only plain numbers
    are read."""
    shown: list[Any] = []
    if isinstance(dtype, str) and _DTYPE.fullmatch(dtype):
        import numpy as np

        kind = np.dtype(dtype)
        count = min(len(buffer) // kind.itemsize, _NUMPY_SHOWN)
        first = np.frombuffer(buffer[: count * kind.itemsize] or bytes(kind.itemsize), dtype=kind)
        first = first[:count]
        shown = [str(x) if kind.kind == "c" else x for x in first.tolist()]
    return _Typed(
        _NUMPY_TYPE,
        {"dtype": str(dtype), "shape": shape, "bytes": len(buffer), "first": shown},
    )


def _bytes(data: bytes) -> dict[str, Any]:
    return {"__bytes__": len(data), "hex": data[:_HEAD].hex()}


class _Plain:
    """Turns unpacked values into JSON-like ones, counting so that no blob can exhaust memory."""

    def __init__(self) -> None:
        self.types: set[str] = set()
        self.items = 0
        self.problem: str | None = None

    def of(self, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, (bool, int)):
            return value
        if isinstance(value, str):
            return visible(value)
        if isinstance(value, float):
            return value if math.isfinite(value) else str(value)
        self.items += 1
        if depth > MAX_DEPTH or self.items > MAX_ITEMS:
            limit = f"nested deeper than {MAX_DEPTH}" if depth > MAX_DEPTH else "too many values"
            self.problem = self.problem or limit
            return {"__opaque__": limit, "bytes": 0, "hex": ""}
        if isinstance(value, (list, tuple)):
            return [self.of(item, depth + 1) for item in value]
        if isinstance(value, dict):
            return self._envelope(value, depth) or {
                self._key(k): self.of(v, depth + 1) for k, v in value.items()
            }
        if isinstance(value, _Typed):
            return self._typed(value.name, self.of(value.value, depth + 1), value.call)
        if isinstance(value, (bytes, bytearray)):
            return _bytes(bytes(value))
        if isinstance(value, _Opaque):
            self.problem = self.problem or value.reason
            return opaque(value.reason, value.data)
        return opaque(f"value of {type(value).__name__}", b"")

    def _typed(self, name: str, value: Any, call: str | None = None) -> dict[str, Any]:
        name = visible(name)[:200]
        self.types.add(name)
        shown = {"__type__": name, "value": "•••" if name in _SECRETS else value}
        if call:
            shown["call"] = visible(call)[:100]
        return shown

    def _envelope(self, value: dict[Any, Any], depth: int) -> dict[str, Any] | None:
        """LangChain's JSON form of an object, which its own reader would import and call."""
        names = value.get("id")
        if (
            value.get("lc") not in (1, 2)
            or value.get("type") not in ("constructor", "not_implemented", "secret")
            or not isinstance(names, list)
        ):
            return None
        args, keywords = value.get("args"), value.get("kwargs")
        body = {"args": args, "kwargs": keywords} if args and keywords else (args or keywords)
        name = ".".join(str(part) for part in names)
        return self._typed(name, self.of(body, depth + 1))

    def _key(self, key: Any) -> str:
        if isinstance(key, str):
            return f"{key}_" if key in _RESERVED else visible(key)
        if isinstance(key, (bytes, bytearray)):
            return f"0x{bytes(key[:_HEAD]).hex()}"
        return visible(str(key))[:200]


def class_name(value: Any) -> str:
    """The bare class name of a typed value, '' for anything else."""
    if isinstance(value, dict) and isinstance(value.get("__type__"), str):
        return str(value["__type__"]).rsplit(".", 1)[-1]
    return ""


def unwrap(value: Any) -> Any:
    """The arguments of a typed value; anything else as it is."""
    while isinstance(value, dict) and "__type__" in value and "value" in value:
        value = value["value"]
    return value


def unwrap_delta(value: Any) -> Any:
    """The value a delta channel's snapshot stands for; anything else as it is."""
    return value["value"] if is_delta(value) else value


def is_delta(value: Any) -> bool:
    return isinstance(value, dict) and value.get("__type__") == DELTA_TYPE


def readable(value: Any) -> Any:
    """`value` for a tree view: simple objects on one line ("2026-05-04 · datetime.datetime"),
    others as {"package.Class": …}; refused ones in words."""
    if isinstance(value, list):
        return [readable(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "__type__" in value:
        inner = readable(value.get("value"))
        if isinstance(inner, (str, int, float)) and not isinstance(inner, bool):
            return f"{inner} · {value['__type__']}"
        return {str(value["__type__"]): inner}
    if "__bytes__" in value:
        return f"{value['__bytes__']} bytes · {value['hex']}"
    if "__opaque__" in value:
        return f"not decoded: {value['__opaque__']} ({value['bytes']} bytes)"
    return {key: readable(item) for key, item in value.items()}
